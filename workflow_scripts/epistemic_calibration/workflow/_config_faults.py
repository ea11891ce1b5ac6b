"""Faults of a configuration in words: the key, what is allowed, and its value."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema


class ConfigError(ValueError):
    """The configuration is wrong; ``faults`` has a line each: key, what is allowed, value."""

    def __init__(self, faults: Collection[str]) -> None:
        self.faults = list(dict.fromkeys(faults))
        super().__init__("\n".join(["the configuration is wrong:", *self.faults]))


class SchemaOfKeys(GenerateJsonSchema):
    """JSON schema without titles, which would repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _Loader(yaml.SafeLoader):
    """Reads YAML, and refuses a key that is given twice, of which YAML takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    f"{key.value} is given twice", None, None, key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def check_yaml(path: str | Path) -> None:
    """Check the text of a YAML file."""
    try:
        yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: {' '.join(str(error).split())}"]) from None


def parse(model: type[Any], value: Any, key: str, faults: list[str]) -> Any:
    """Return a value as a model; if it is wrong, None, and its faults are added to the list."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults += _explain(error, model, key)
    return None


def suggest(name: Any, known: Collection[str]) -> str:
    """Return the end of a sentence, with the known name that is meant, if one is like it."""
    close = difflib.get_close_matches(str(name), [str(k) for k in known], n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def _explain(error: ValidationError, model: type[Any], key: str) -> Iterator[str]:
    for fault in error.errors(include_url=False):
        names = [str(n) if str(n).isprintable() else repr(n) for n in (key, *fault["loc"])]
        names = names if key else names[1:]
        path = ".".join(names) or "config"
        if fault["type"] == "extra_forbidden":
            known = _properties(model.model_json_schema(schema_generator=SchemaOfKeys))
            yield f"{path}: unknown key{suggest(names[-1], known)}"
        elif fault["type"] == "missing":
            yield f"{path}: missing"
        else:
            shown = repr(fault["input"])
            yield f"{path}: {fault['msg']}, got {shown if len(shown) <= 60 else shown[:57] + '...'}"


def _properties(schema: Any) -> set[str]:
    """Return the names of all keys that a JSON schema knows, at any depth."""
    found: set[str] = set()
    for name, part in schema.items() if isinstance(schema, dict) else ():
        found |= {*part} if name == "properties" else set()
        found |= _properties(part)
    return found
