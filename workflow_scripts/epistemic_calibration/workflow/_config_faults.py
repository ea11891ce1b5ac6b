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


def check_yaml(path: str | Path) -> None:
    """Check that a file is YAML, and gives no key twice, of which the first would be lost."""
    try:
        root = yaml.compose(Path(path).read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: {' '.join(str(error).split())}"]) from None
    waiting, faults, known = [("", root)], [], set()
    while waiting:
        key, node = waiting.pop()
        # An alias is the node that it names, and may name one that it is part of.
        if id(node) in known or not isinstance(node, yaml.CollectionNode):
            continue
        known.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += [(f"{key}.{k}", value) for k, value in enumerate(node.value)]
            continue
        seen: set[str] = set()
        for name, value in node.value:
            below = ".".join(filter(None, (key, str(name.value))))
            if below in seen:
                line = name.start_mark.line + 1
                faults.append(f"{below} is given twice, the second time in line {line} of {path}")
            seen.add(below)
            waiting.append((below, value))
    if faults:
        raise ConfigError(faults)


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
