"""Parameters written once: a dataclass field with its default, bounds and description."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

#: Bounds that `parameter` takes, named as in JSON schema's Python dialects.
BOUNDS = ("ge", "gt", "le", "lt", "min_length")
_SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


def parameter(
    default: Any = dataclasses.MISSING,
    *,
    description: str = "",
    default_factory: Any = dataclasses.MISSING,
    **bounds: float,
) -> Any:
    """Return a dataclass field whose bounds and description the configuration reads.

    Parameters
    ----------
    default, default_factory
        As of `dataclasses.field`.
    description : str
        What it is, with its unit, for error messages and the exported schema.
    **bounds
        ``ge``, ``gt``, ``le``, ``lt`` for numbers, ``min_length`` for sequences. A choice is
        an annotation: ``Literal["a", "b"]``.

    Raises
    ------
    TypeError
        If a bound is none of these.

    Examples
    --------
    >>> @dataclasses.dataclass(kw_only=True)
    ... class Forest:
    ...     n_trees: int = parameter(100, ge=1, description="trees, and so hypotheses")
    >>> Forest().n_trees
    100
    >>> dataclasses.fields(Forest)[0].metadata["ge"]
    1
    """
    unknown = sorted(set(bounds) - set(BOUNDS))
    if unknown:
        raise TypeError(f"parameter() takes the bounds {', '.join(BOUNDS)}, not {unknown}")
    return dataclasses.field(
        default=default,
        default_factory=default_factory,
        metadata={"description": description, **bounds},
    )


def check_ranges(instance: Any) -> None:
    """Raise a ValueError if a number among the fields of a dataclass is out of its bounds."""
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        for bound, sign in _SIGNS.items():
            limit = field.metadata.get(bound)
            if limit is None or not isinstance(value, (int, float)):
                continue
            if not getattr(operator, bound)(value, limit):
                raise ValueError(f"{field.name}={value!r} must be {sign} {limit}")
