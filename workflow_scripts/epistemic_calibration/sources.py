"""Which source files of the package a script runs, found without running it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent
_SCRIPTS = _PACKAGE.parent


@cache
def source_files(*entries: Path) -> tuple[Path, ...]:
    """Return ``entries`` and every file of the package that they import, directly or not.

    Imports inside functions count, imports for type checking only do not. An entry may be
    a data file of the project, which imports nothing.
    """
    found: set[Path] = set()
    waiting = [entry.resolve() for entry in entries]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(_imports(path))
    return tuple(sorted(found))


@cache
def source_hashes(*entries: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of `source_files`, by its name within the project."""
    return {_display_name(path): _hash(path) for path in source_files(*entries)}


def _display_name(path: Path) -> str:
    # A file outside the project is told by its name, so that moving a working folder
    # does not make its results stale.
    return path.relative_to(_SCRIPTS).as_posix() if path.is_relative_to(_SCRIPTS) else path.name


@cache
def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    if path.suffix != ".py":
        return ()
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return tuple(file for module in _imported_modules(tree) for file in _files_of(module))


def _imported_modules(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for branch in child.orelse:
                yield from _imported_modules(branch)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module and child.level == 0:
            yield child.module
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        else:
            yield from _imported_modules(child)


def _files_of(module: str) -> Iterator[Path]:
    parts = module.split(".")
    if parts[0] != _PACKAGE.name:
        return
    # Importing a.b.c runs the __init__ of a and of a.b as well.
    for depth in range(1, len(parts) + 1):
        base = _SCRIPTS.joinpath(*parts[:depth])
        for candidate in (base / "__init__.py", base.with_suffix(".py")):
            if candidate.is_file():
                yield candidate
