"""What Snakemake need not find out anew for each of thousands of jobs that it plans."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import snakemake.common
from snakemake.resources import Resource

if TYPE_CHECKING:
    from snakemake.rules import Rule

Function = TypeVar("Function", bound=Callable)


def known_parameters(function: Function) -> Function:
    """Tell Snakemake which parameters a function of a rule takes, and return the function.

    Otherwise it asks Python, twice or more for each job.
    """
    _tell(function, function)
    return function


def know_parameters_of_resources(rules: Iterable[Rule]) -> None:
    """Tell Snakemake which parameters the functions take that evaluate the resources of rules."""
    _tell(Resource.evaluate, Resource("any", None).evaluate)
    for rule in rules:
        for resource in rule.resources.values():
            if resource.is_evaluable():
                known_parameters(getattr(resource, "_evaluator", None))


def any_in_another(paths: Iterable[str]) -> bool:
    """Return whether one of the paths lies in another, as in a folder.

    Examples
    --------
    >>> any_in_another(["a/b", "a/c/d", "a/bc"])
    False
    >>> any_in_another(["a/b", "a/c/d", "./a/c"])
    True
    """
    files = {os.path.abspath(path) for path in paths}  # noqa: PTH100
    folders = {path.rpartition("/")[0] for path in files}
    above = {str(folder) for path in folders for folder in (Path(path), *Path(path).parents)}
    return not files.isdisjoint(above)


def _tell(function: Callable, as_called: Callable) -> None:
    # Not every version of Snakemake can be told, nor of every callable; then it asks.
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        parameters = inspect.signature(as_called).parameters
        snakemake.common.overwrite_function_params(function, parameters)
