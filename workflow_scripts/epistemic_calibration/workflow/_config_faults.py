"""Faults of a configuration in words: the key, its value, and what is allowed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema


class ConfigError(ValueError):
    """The configuration is wrong.

    Attributes
    ----------
    faults : list of str
        One line each: the key, its value, and what is allowed.
    """

    def __init__(self, faults: Collection[str]) -> None:
        self.faults = list(dict.fromkeys(faults))
        super().__init__("\n".join(["the configuration is wrong:", *self.faults]))


class SchemaOfKeys(GenerateJsonSchema):
    """JSON schema without titles, which would repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def parse(model: type[Any], value: Any, key: str, faults: list[str]) -> Any:
    """Return a value as a model; if it is wrong, None, and its faults are added to the list.

    Parameters
    ----------
    model : type
        A pydantic model.
    value : object
        What the configuration says.
    key : str
        Where it says so, such as ``methods.eknn``; empty for the configuration as a whole.
    faults : list of str
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults += _explain(error, model.model_json_schema(schema_generator=SchemaOfKeys), key)
    return None


def unknown(name: Any, known: Collection[str]) -> str:
    """Return what to say of a key that there is not."""
    return f"unknown key{suggest(name, known)}; allowed: {', '.join(sorted(known)) or 'none'}"


def suggest(name: Any, known: Collection[str]) -> str:
    """Return the end of a sentence, with the known name that is meant, if one is like it."""
    close = difflib.get_close_matches(str(name), [str(k) for k in known], n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def _explain(error: ValidationError, schema: Mapping[str, Any], key: str) -> Iterator[str]:
    missing: dict[str, list[str]] = {}
    wrong: dict[tuple[str, str, str], list[str]] = {}
    for fault in error.errors(include_url=False):
        keys, node = _locate(fault["loc"], schema)
        path = ".".join([*([key] if key else []), *map(_one_line, keys)])
        match fault["type"]:
            case "missing":
                missing.setdefault(path.rpartition(".")[0], []).append(str(keys[-1]))
            case "union_tag_not_found":
                missing.setdefault(path, []).append(node["discriminator"]["propertyName"])
            case "extra_forbidden":
                yield f"{path}: {unknown(keys[-1], node['properties'])}"
            case "union_tag_invalid":
                tag = fault["ctx"]["tag"]
                words = _no_choice(tag, fault["ctx"]["expected_tags"])
                yield f"{path}.{node['discriminator']['propertyName']}: {tag!r} {words}"
            case "literal_error" if isinstance(fault["input"], list) and len(keys) < len(
                fault["loc"]
            ):
                # Of "a word or a list" the list was meant, and what is wrong in it is told.
                pass
            case _:
                shown = repr(fault["input"])
                shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
                what = node.get("description", "")
                wrong.setdefault((path, shown, what), []).append(_words(fault))
    for path, names in missing.items():
        yield f"{path or 'config'}: missing key(s) {', '.join(names)}"
    for (path, shown, what), words in wrong.items():
        # There is more than one where a value may be one of two things.
        text = " or ".join(sorted(words, key=lambda text: text.endswith("?")))
        yield f"{path or 'config'}: {shown} {text}{f' ({what})' if what else ''}"


def _locate(location: tuple[Any, ...], schema: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Return the keys that lead to a fault, and the part of the schema for what lies there.

    Of an unknown key it is the part for the block. Between the keys of a location pydantic
    names the member of a union that it has tried; these names are left out.
    """

    def resolved(node: Any) -> dict[str, Any]:
        node = node if isinstance(node, dict) else {}
        options = [option for option in node.get("anyOf", ()) if option != {"type": "null"}]
        if "$ref" in node:
            options = [schema["$defs"][node["$ref"].rpartition("/")[2]]]
        if len(options) != 1:
            return node
        own = {key: value for key, value in node.items() if key not in ("$ref", "anyOf")}
        return {**resolved(options[0]), **own}

    keys, node, block = [], resolved(schema), {}
    for part in location:
        if part == "[key]":
            return keys, block.get("propertyNames", {})
        if "discriminator" in node:
            node = resolved({"$ref": node["discriminator"]["mapping"][part]})
        elif "anyOf" in node:
            arrays = (option for option in node["anyOf"] if option.get("type") == "array")
            node = {**next(arrays, {}), "description": node.get("description", "")}
        else:
            keys.append(part)
            block, known = node, node.get("properties", {})
            if part in known:
                node = resolved(known[part])
            elif node.get("additionalProperties") is not False:
                values = [*node.get("patternProperties", {}).values(), node.get("items")]
                node = resolved(values[0])
    return keys, node


def _one_line(name: Any) -> str:
    """Return a key as part of a path, with what would break its line written as in Python."""
    return str(name) if str(name).isprintable() else repr(name)


def _words(fault: Mapping[str, Any]) -> str:
    match fault["type"]:
        case "string_pattern_mismatch":
            return f"does not match '{fault['ctx']['pattern']}'"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "should be a block of keys and values"
        case "literal_error":
            return _no_choice(fault["input"], fault["ctx"]["expected"])
    # Pydantic's sentences begin with what it calls the value: Input, List, String.
    return fault["msg"].partition(" ")[2].replace(" after validation", "")


def _no_choice(value: Any, choices: str) -> str:
    names = re.findall(r"'(.+?)'", choices)
    return f"should be {choices}{suggest(value, names)}"
