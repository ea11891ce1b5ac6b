"""Registries without lists: a module of a folder is what its name says.

Methods, encoders, data sources, tables, figures and toy experiments are found this way: a
file ``NAME.py`` of the folder registers NAME. Files whose name begins with an underscore,
and ``base.py``, hold what the others share.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
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
    found = (module.name for module in pkgutil.iter_modules([str(folder)]))
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


def registered_files(package: str) -> list[Path]:
    """Return the files of all names that a package registers."""
    return [module_path(package, name) for name in available(package)]


def only_class(module: ModuleType, base: type) -> type[Any]:
    """Return the one concrete subclass of ``base`` that a module defines.

    Raises
    ------
    ValueError
        If it defines none or several.
    """
    classes = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
    ]
    defined = [value for value in classes if not inspect.isabstract(value)]
    if len(defined) != 1:
        lacking = (
            f"; {c.__name__} lacks {', '.join(sorted(c.__abstractmethods__))}"
            for c in classes
            if c not in defined
        )
        raise ValueError(
            f"{module.__file__} must define exactly one concrete subclass of {base.__name__}, "
            f"found {len(defined)}: {[c.__name__ for c in defined]}{''.join(lacking)}"
        )
    return defined[0]
