"""Registries without lists: a module of a folder is what its name says.

Methods, encoders, data sources, tables, figures and toy experiments are found this way: a
file ``NAME.py`` of the folder registers NAME. Files whose name begins with an underscore,
and ``base.py``, hold what the others share.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any


@cache
def available(package: str) -> tuple[str, ...]:
    """Return the names that a package registers, sorted.

    Parameters
    ----------
    package : str
        Dotted name, such as ``epistemic_calibration.methods``.

    Examples
    --------
    >>> "random_forest" in available("epistemic_calibration.methods")
    True
    """
    folder = Path(importlib.import_module(package).__file__).parent
    found = (m.name for m in pkgutil.iter_modules([str(folder)]) if not m.ispkg)
    return tuple(sorted(n for n in found if n != "base" and not n.startswith("_")))


def load(package: str, name: str) -> ModuleType:
    """Return the module that registers ``name``.

    Raises
    ------
    ValueError
        If there is none; the message names those that there are.
    """
    if name not in available(package):
        kind = package.rpartition(".")[2]
        raise ValueError(f"nothing called {name!r} in {kind}: {', '.join(available(package))}")
    return importlib.import_module(f"{package}.{name}")


def module_path(package: str, name: str) -> Path:
    """Return the file that registers ``name``, whether it exists or not."""
    return Path(importlib.import_module(package).__file__).parent / f"{name}.py"


def registered_files(*packages: str) -> list[Path]:
    """Return the files of all names that packages register."""
    return [module_path(package, name) for package in packages for name in available(package)]


def only_class(module: ModuleType, base: type, name: str | None = None) -> type[Any]:
    """Return the one concrete subclass of ``base`` that a module defines, or that of a name.

    Raises
    ------
    ValueError
        If it defines none, or several and no name chooses one.
    """
    classes = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
    ]
    defined = [value for value in classes if not inspect.isabstract(value)]
    chosen = [value for value in defined if name in (None, value.__name__)]
    if len(chosen) != 1:
        names = [value.__name__ for value in defined]
        wanted = "exactly one concrete subclass" if name is None else f"a concrete subclass {name}"
        raise ValueError(
            f"{module.__file__} must define {wanted} of {base.__name__}, found {len(defined)}: "
            f"{names}{''.join(_shortcomings(module, base, classes, defined))}"
        )
    return chosen[0]


def _shortcomings(
    module: ModuleType, base: type, classes: list[type], defined: list[type]
) -> Iterator[str]:
    """Say of each class why it is none of those that are looked for."""
    for value in classes:
        if value not in defined:
            yield f"; {value.__name__} lacks {', '.join(sorted(value.__abstractmethods__))}"
    if not classes:
        for value in vars(module).values():
            if inspect.isclass(value) and value.__module__ == module.__name__:
                yield f"; {value.__name__} is no subclass: class {value.__name__}({base.__name__})"
