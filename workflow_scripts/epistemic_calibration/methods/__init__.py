"""Second-order classifiers: a module of this folder that defines one Method is a method."""

from __future__ import annotations

import dataclasses
import importlib.util
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

from epistemic_calibration import registry
from epistemic_calibration.methods.base import Method, Predictions

__all__ = ["Method", "Predictions", "available_methods", "load_method", "method_path"]

#: Folders of users' methods from which modules can be imported: the last one alone.
_user_folders: list[str] = []


def available_methods() -> list[str]:
    """Return the names of the methods in this folder, sorted.

    Examples
    --------
    >>> "deep_ensemble" in available_methods()
    True
    """
    return list(registry.available(__name__))


def method_path(name_or_file: str) -> Path:
    """Return the file that defines a method: of this folder by name, or a user's ``.py``.

    Examples
    --------
    >>> method_path("centroids").name
    'centroids.py'
    >>> method_path("folder/mine.py").as_posix()
    'folder/mine.py'
    """
    if name_or_file.endswith(".py"):
        return Path(name_or_file)
    return registry.module_path(__name__, name_or_file)


def load_method(name_or_file: str) -> type[Method]:
    """Return the Method class of a registered name, or of a user's ``.py`` file.

    A user's file may import others of its folder, until another folder's file is loaded.

    Raises
    ------
    ValueError
        If there is no such method, its module does not define exactly one, or its class has
        parameters as fields and is not a dataclass.

    Examples
    --------
    >>> load_method("deep_ensemble").label
    'Deep Ensemble'
    """
    if name_or_file.endswith(".py"):
        module = _load_file(Path(name_or_file))
    elif name_or_file in available_methods():
        module = registry.load(__name__, name_or_file)
    else:
        raise ValueError(
            f"unknown method {name_or_file!r}; available: {', '.join(available_methods())}, "
            f"or the path of a .py file that defines one"
        )
    method = registry.only_class(module, Method)
    # The decorator puts defaults in the place of fields.
    left = [name for name, value in vars(method).items() if isinstance(value, dataclasses.Field)]
    if left:
        raise ValueError(
            f"{module.__file__}: {method.__name__} has the parameter(s) {', '.join(left)}, but is "
            f"not a dataclass: decorate it with @dataclass(kw_only=True, eq=False)"
        )
    return method


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"no such method file: {path}")
    _enter_folder(str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(f"user_method_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _enter_folder(folder: str) -> None:
    """Let imports find the modules of a folder, and forget those of the one before.

    Two methods may each have a ``model.py`` beside them.
    """
    while _user_folders and _user_folders[-1] != folder:
        left = _user_folders.pop()
        sys.path.remove(left)
        for name in {module.name for module in pkgutil.iter_modules([left])} & set(sys.modules):
            if str(getattr(sys.modules[name], "__file__", "")).startswith(left):
                for loaded in [m for m in sys.modules if m.partition(".")[0] == name]:
                    del sys.modules[loaded]
    if not _user_folders:
        # At the end, so that no file beside a method stands in for a library.
        sys.path.append(folder)
        _user_folders.append(folder)
