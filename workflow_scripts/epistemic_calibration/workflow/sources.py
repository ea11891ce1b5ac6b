"""Which code a job runs, found without running it: its script and all that this imports."""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from epistemic_calibration.workflow.provenance import StaleResultError

_PACKAGE = Path(__file__).resolve().parents[1]
#: Folder of the package, and that of the stages' scripts.
SCRIPTS = _PACKAGE.parent
STAGES = SCRIPTS / "stages"
#: What runs jobs and keeps their results, which no number depends on: `FORMAT` stands for it.
_MACHINERY = _PACKAGE / "workflow"
#: Changed by hand when the machinery writes results that older code could not have written.
FORMAT = 1


@cache
def source_files(*entries: Path) -> tuple[Path, ...]:
    """Return ``entries`` and every file of the project that they import, directly or not.

    Imports inside functions count; imports for type checking only, and the machinery of the
    workflow, do not. An entry may be a data file of the project, which imports nothing. Of an
    entry outside the project the files in its folder count, too.
    """
    return tuple(sorted(_roots(*entries)))


@cache
def source_hashes(base_dir: Path, *entries: Path) -> dict[str, str]:
    """Return the hash of the code of each file of `source_files`, by its name.

    Names are relative to the project, or to ``base_dir`` for files outside it, so that
    moving a working folder does not make its results stale.
    """
    return {_name(path, base_dir.resolve()): code_hash(path) for path in source_files(*entries)}


def code_hash(path: Path) -> str:
    """Return the SHA-256 of what a file does: comments, docstrings and layout do not count.

    Of a file that is not Python, of its bytes.
    """
    return _code(path)[0]


def check_sources(expected: dict[str, str], base_dir: Path) -> None:
    """Check that the code on disk is that of a spec."""
    for path, digest in zip(source_paths(expected, base_dir), expected.values(), strict=True):
        if not path.is_file() or code_hash(path) != digest:
            raise StaleResultError(f"{path} was edited since the run began. Run snakemake again")


def source_paths(names: Iterable[str], base_dir: Path) -> list[Path]:
    """Return the files of the names that `source_hashes` gives."""
    own = [(base_dir / name).resolve() for name in names]
    return [p if p.is_file() else SCRIPTS.parent / n for p, n in zip(own, names, strict=True)]


def files_below(folder: Path) -> list[Path]:
    """Return the files of a folder and those below it, but for hidden ones and bytecode."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(
            part.startswith(".") or part == "__pycache__" for part in path.relative_to(folder).parts
        )
    )


def _name(path: Path, base_dir: Path) -> str:
    if path.is_relative_to(SCRIPTS.parent):
        return path.relative_to(SCRIPTS.parent).as_posix()
    return Path(os.path.relpath(path, base_dir)).as_posix()


@cache
def _roots(*entries: Path) -> dict[Path, Path]:
    """Return the source files, each with the folder that it is imported from."""
    found: dict[Path, Path] = {}
    waiting = [(path, _root(path)) for path in (entry.resolve() for entry in entries)]
    while waiting:
        path, root = waiting.pop()
        if path not in found:
            found[path] = root
            new = (file for file in _imported_files(path, root) if file not in found)
            waiting += [(file, _root(file, root)) for file in new]
    return found


def _root(path: Path, outside: Path | None = None) -> Path:
    inside = path.parent == STAGES or path.is_relative_to(_PACKAGE)
    return SCRIPTS if inside else outside or path.parent


@cache
def _imported_files(path: Path, root: Path) -> tuple[Path, ...]:
    package = path.relative_to(root).parent.parts
    files: set[Path] = set()
    for up, name in _code(path)[1]:
        above = package[: len(package) - up + 1] if up else ()
        files.update(_files_of(".".join([*above, name]), root))
    return tuple(sorted(file for file in files if not file.is_relative_to(_MACHINERY)))


@cache
def _files_of(module: str, root: Path) -> tuple[Path, ...]:
    parts = [part for part in module.split(".") if part]
    folder = SCRIPTS if parts[:1] == [_PACKAGE.name] else root
    # Importing a.b.c runs the __init__ of a and of a.b as well.
    bases = [folder.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    candidates = [(base / "__init__.py", base.with_suffix(".py")) for base in bases]
    return tuple(path for pair in candidates for path in pair if path.is_file())


@cache
def _code(path: Path) -> tuple[str, tuple[tuple[int, str], ...]]:
    """Return the hash of a file's code, and what it imports, as of `_imports`."""
    content = path.read_bytes()
    if path.suffix != ".py":
        return hashlib.sha256(content).hexdigest(), ()
    try:
        tree = ast.parse(content, filename=str(path))
    except (SyntaxError, ValueError) as error:
        where = f"{path}:{getattr(error, 'lineno', None) or 1}"
        raise ValueError(f"{where}: {getattr(error, 'msg', error)}") from None
    imports = tuple(_imports(tree))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        # Any text that stands alone is a comment.
        if isinstance(body, list):
            node.body = [line for line in body if not _is_text(line)]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest(), imports


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield how many folders up each import starts (0: absolute), and the name from there."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for branch in child.orelse:
                yield from _imports(branch)
        elif isinstance(child, ast.Import):
            yield from ((0, alias.name) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            module = child.module or ""
            yield child.level, module
            for alias in child.names:
                yield child.level, f"{module}.{alias.name}".lstrip(".")
        elif not isinstance(child, ast.expr):
            # No expression holds a statement.
            yield from _imports(child)
