"""What is wrong with the text of a configuration file, before its values are looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epistemic_calibration.workflow._config_faults import ConfigError

#: Values of a file with its aliases written out; the shipped configuration has about 500.
MOST_VALUES = 100_000

#: Numbers that are text to YAML 1.1, which wants a point and a sign, as in 1.0e-3.
_TEXT_LIKE_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+")
_OCTAL = re.compile(r"[-+]?0[0-7_]+")


def check_yaml(path: str | Path) -> None:
    """Check the text of a YAML file.

    Parameters
    ----------
    path : path

    Raises
    ------
    ConfigError
        If it cannot be parsed, with the line; if a key is given twice, of which YAML keeps the
        last; if a number is written so that YAML reads another value, or text; if its aliases
        make more than `MOST_VALUES` values of it.
    """
    import yaml

    try:
        with Path(path).open(encoding="utf-8") as file:
            root = yaml.compose(file, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        raise ConfigError([f"{path}: {where}: not YAML: {what}"]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: not YAML: {' '.join(str(error).split())}"]) from None
    if _n_values(root, {}) > MOST_VALUES:
        raise ConfigError(
            [f"{path}: its aliases (*name) make more than {MOST_VALUES:,} values of it"]
        )
    if faults := list(_faults(root, "", str(path))):
        raise ConfigError(faults)


def _n_values(node: Any, known: dict[int, int]) -> int:
    """Return how many values a node has with its aliases written out."""
    if id(node) not in known:
        # Of an alias inside of what it stands for.
        known[id(node)] = MOST_VALUES + 1
        parts = getattr(node, "value", ())
        parts = () if isinstance(parts, str) else parts
        pairs = (part[1] if isinstance(part, tuple) else part for part in parts)
        known[id(node)] = 1 + sum(_n_values(part, known) for part in pairs)
    return known[id(node)]


def _faults(node: Any, key: str, path: str) -> Iterator[str]:
    import yaml

    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for name_node, value in node.value:
            name = f"{key}.{name_node.value}" if key else str(name_node.value)
            if name in seen:
                line = name_node.start_mark.line + 1
                yield f"{name}: given twice, the second time in line {line} of {path}"
            seen.add(name)
            yield from _faults(value, name, path)
    elif isinstance(node, yaml.SequenceNode):
        for k, value in enumerate(node.value):
            yield from _faults(value, f"{key}.{k}", path)
    elif isinstance(node, yaml.ScalarNode) and node.style is None:
        yield from _number_faults(node, key, path)


def _number_faults(node: Any, key: str, path: str) -> Iterator[str]:
    where, text = f"{key}: line {node.start_mark.line + 1} of {path}", node.value
    if node.tag.endswith(":str") and _TEXT_LIKE_NUMBER.fullmatch(text):
        digits, _, power = text.lower().partition("e")
        digits = digits if "." in digits else f"{digits}.0"
        power = power if power[0] in "+-" else f"+{power}"
        yield f"{where}: YAML reads {text} as text; write {digits}e{power}"
    elif node.tag.endswith(":int") and _OCTAL.fullmatch(text) and text.strip("+-0_"):
        number = text.lstrip("+-").lstrip("0_")
        yield f"{where}: YAML reads {text} as the octal number {int(text, 8)}; write {number}"
    elif node.tag.endswith(":int") and ":" in text:
        yield f"{where}: YAML reads {text} as a number in base 60; quote it, or write a number"
