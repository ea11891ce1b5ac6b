"""Faults of a method's class that show before it is fitted, and the types of its parameters."""

from __future__ import annotations

import difflib
import inspect
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

from epistemic_calibration.methods import Method

#: Types of defaults that stand for the type of a parameter without an annotation.
_TYPES = {bool: bool, int: int, float: float, str: str, list: list, tuple: list, dict: dict}


def class_faults(method: type[Method], given: Mapping[str, Any], key: str) -> Iterator[str]:
    """Say what will not work in a class with the parameters that ``key`` gives."""
    signature = inspect.signature(method.__init__).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.values())
    if "random_state" not in signature and not takes_any:
        yield (
            f"{key}: {method.__name__} takes no random_state; give its __init__ the keyword "
            f"random_state=0, and keep it as self.random_state"
        )
    needed = [
        name
        for name, p in list(signature.items())[1:]
        if p.default is p.empty and p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    for name in needed:
        if name in given or name == "random_state":
            continue
        yield (
            f"{key}.{name}: {method.__name__} has no default for it; give it here, or a default "
            f"there"
        )
    contract = [name for name in vars(Method) if name[0] != "_" and callable(getattr(Method, name))]
    for name, value in vars(method).items():
        # Nobody would call it, and the mean or the variance would be taken instead.
        close = difflib.get_close_matches(name, contract, n=1, cutoff=0.85)
        if callable(value) and name[0] != "_" and close and close[0] not in (name, *vars(method)):
            yield f"{key}: {method.__name__} defines {name}; did you mean {close[0]!r}?"


def signature_fields(method: type[Method]) -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    """Return the parameters of a class whose ``__init__`` is its own, by name.

    Each has its annotation, or the type of its default; the default, or ``...``; and a
    description where the type is that of the default.
    """
    try:
        hints = typing.get_type_hints(method.__init__, include_extras=True)
    except NameError:
        hints = {}
    fields = {}
    for name, p in list(inspect.signature(method.__init__).parameters.items())[1:]:
        if name == "random_state" or p.kind not in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD):
            continue
        default = ... if p.default is p.empty else p.default
        hint, told = hints.get(name), {}
        if hint is None or not _is_checkable(hint):
            hint = _TYPES.get(type(default), Any)
            if hint is not Any:
                told = {"description": f"as its default {default!r}; annotate it to allow others"}
        fields[name] = (hint, default, told)
    return fields


def _is_checkable(hint: Any) -> bool:
    try:
        TypeAdapter(hint)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError):
        return False
    return True
