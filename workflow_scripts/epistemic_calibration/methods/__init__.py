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

__all__ = [
    "Method",
    "Predictions",
    "available_methods",
    "load_method",
    "method_path",
    "user_file",
]

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

    A user's file may be followed by ``::`` and the name of the class.

    Examples
    --------
    >>> method_path("centroids").name
    'centroids.py'
    >>> method_path("folder/mine.py").as_posix()
    'folder/mine.py'
    """
    return user_file(name_or_file) or registry.module_path(__name__, name_or_file)


def user_file(name_or_file: str) -> Path | None:
    """Return the file of a user's method; None of a method of this folder.

    Examples
    --------
    >>> user_file("folder/mine.py::Mine").as_posix(), user_file("eknn")
    ('folder/mine.py', None)
    """
    path = Path(name_or_file.partition("::")[0])
    return path if path.suffix == ".py" else None


def load_method(name_or_file: str) -> type[Method]:
    """Return the Method class of a registered name, or of a user's ``.py`` file.

    A user's file may import others of its folder, until another folder's file is loaded. Where
    it defines several methods, ``FILE::CLASS`` is one of them.

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
    file, _, class_name = name_or_file.partition("::")
    if file.endswith(".py"):
        module = _load_file(Path(file))
    elif name_or_file in available_methods():
        module = registry.load(__name__, name_or_file)
    else:
        raise ValueError(
            f"unknown method {name_or_file!r}; available: {', '.join(available_methods())}, "
            f"or the path of a .py file that defines one"
        )
    method = registry.only_class(module, Method, class_name or None)
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
