"""Which source files of the package a script runs, found without running it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_SCRIPTS = _PACKAGE.parent


@cache
def source_files(*entries: Path) -> tuple[Path, ...]:
    """Return ``entries`` and every file of the package that they import, directly or not.

    Imports inside functions count, imports for type checking only do not. An entry may be
    a data file of the project, which imports nothing. Of an entry outside the project the
    files in its folder count, too.
    """
    return tuple(sorted(_roots(*entries)))


@cache
def source_hashes(*entries: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of `source_files`, by its name.

    Names are relative to the project, or to the folder of an entry outside it, so that
    moving a working folder does not make its results stale.
    """
    roots = _roots(*entries)
    return {path.relative_to(roots[path]).as_posix(): _hash(path) for path in sorted(roots)}


@cache
def _roots(*entries: Path) -> dict[Path, Path]:
    """Return the source files, each with the folder that it is imported from."""
    found: dict[Path, Path] = {}
    waiting = [(path, _root(path)) for path in (entry.resolve() for entry in entries)]
    while waiting:
        path, root = waiting.pop()
        if path not in found:
            found[path] = root
            waiting += [(file, _root(file, root)) for file in _imports(path, root)]
    return found


def _root(path: Path, outside: Path | None = None) -> Path:
    inside = path.parent == _SCRIPTS or path.is_relative_to(_PACKAGE)
    return _SCRIPTS if inside else outside or path.parent


@cache
def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _imports(path: Path, root: Path) -> tuple[Path, ...]:
    if path.suffix != ".py":
        return ()
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    package = path.relative_to(root).parent.parts
    modules = set(_imported_modules(tree, package))
    files = {file for module in modules for file in _files_of(module, root)}
    return tuple(sorted(files))


def _imported_modules(node: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for branch in child.orelse:
                yield from _imported_modules(branch, package)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            above = package[: len(package) - child.level + 1] if child.level else ()
            parts = [*above, *filter(None, [child.module])]
            yield ".".join(parts)
            yield from (".".join([*parts, alias.name]) for alias in child.names)
        else:
            yield from _imported_modules(child, package)


def _files_of(module: str, root: Path) -> Iterator[Path]:
    parts = [part for part in module.split(".") if part]
    folder = _SCRIPTS if parts[:1] == [_PACKAGE.name] else root
    # Importing a.b.c runs the __init__ of a and of a.b as well.
    for depth in range(1, len(parts) + 1):
        base = folder.joinpath(*parts[:depth])
        for candidate in (base / "__init__.py", base.with_suffix(".py")):
            if candidate.is_file():
                yield candidate
