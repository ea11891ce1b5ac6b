"""What jobs warned of, as text for tables and for the screen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_MOST_NAMED = 4


def sentences(
    found: Sequence[Mapping[str, Any]], labels: Mapping[str, str] | None = None
) -> list[str]:
    """Return warnings as text, those that differ in numbers only as one.

    ``found`` is as in receipts; ``labels`` are what readers see of methods, by name.

    Examples
    --------
    >>> where = {"dataset": "pets", "seed": "0", "method": "mine"}
    >>> shared = {"stage": "hypotheses", "where": where, "count": 2}
    >>> sentences(
    ...     [{"text": f"R-hat is {r}", "job": str(r), **shared} for r in (1.2, 1.5)],
    ...     {"mine": "My method"},
    ... )
    ['My method on pets, 4 times: R-hat is 1.2']
    """
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for warning in found:
        alike = re.sub(r"\d+([.,]\d+)*(e[+-]?\d+)?", "#", warning["text"])
        key = (warning["stage"], warning["where"].get("dataset", ""), alike)
        groups.setdefault(key, []).append(warning)
    return [_sentence(group, labels or {}) for group in groups.values()]


def warning_notes(
    found: Sequence[Mapping[str, Any]], labels: Mapping[str, str] | None = None
) -> list[str]:
    """Return warnings as notes below a table, one each; arguments as of `sentences`.

    Examples
    --------
    >>> warning = {"stage": "encoder", "where": {"dataset": "pets"}, "count": 1, "job": "a"}
    >>> warning_notes([{**warning, "text": "no better than the mean image"}])
    ['Warning: Encoder on pets: no better than the mean image.']
    """
    return [f"Warning: {sentence}." for sentence in sentences(found, labels)]


def unlike(made: Mapping[str, Sequence[str]]) -> str:
    """Return a sentence on what differs between the parts of a result, or nothing.

    Examples
    --------
    >>> unlike({"numpy": ["2.3.0", "2.4.6"], "device": ["cpu"]})
    'parts were made with numpy 2.3.0 and 2.4.6; last digits may differ for that reason alone'
    >>> unlike({"numpy": ["2.4.6"], "device": ["cpu"]})
    ''
    """
    differing = [f"{name} {' and '.join(v)}" for name, v in made.items() if len(v) > 1]
    if not differing:
        return ""
    return (
        f"parts were made with {', '.join(differing)}; last digits may differ for that reason alone"
    )


def _sentence(group: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> str:
    where = [warning["where"] for warning in group]
    names = dict.fromkeys(w["method"] for w in where if "method" in w)
    shown = [labels.get(name, name) for name in names]
    who = ", ".join(shown) if len(shown) <= _MOST_NAMED else f"{len(shown)} methods"
    place = where[0].get("dataset") or where[0].get("experiment") or ""
    stage = group[0]["stage"]
    if not who and not stage.endswith("tables"):
        who = stage.replace("_", " ").capitalize()
    n = sum(warning["count"] for warning in group)
    times = f", {n} times" if n > 1 else ""
    origin = " on ".join(part for part in (who, place) if part)
    return f"{origin}{times}: {group[0]['text']}".removeprefix(": ")
