"""Which code a job runs, found without running it: its script and all that this imports."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import cache_from_source
from pathlib import Path

from epistemic_calibration.workflow.code_digests import code_of
from epistemic_calibration.workflow.provenance import StaleResultError

_PACKAGE = Path(__file__).resolve().parents[1]
#: Folder of the stages' scripts and of the package.
SCRIPTS = _PACKAGE.parent
# Of Python, and of the environment that it runs in.
_PYTHON = (Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())


@cache
def source_files(*entries: Path) -> tuple[Path, ...]:
    """Return ``entries`` and every file of the project that they import, directly or not.

    Imports inside functions count, imports for type checking only do not. An entry may be
    a data file of the project, which imports nothing. Of an entry outside the project the
    files in its folder count, too.
    """
    return tuple(sorted(_roots(*entries)))


@cache
def source_hashes(base_dir: Path, *entries: Path) -> dict[str, str]:
    """Return the hash of the code of each file of `source_files`, by its name.

    Names are relative to the project, or to ``base_dir`` for files outside it, so that
    moving a working folder does not make its results stale.
    """
    return {_name(path, base_dir.resolve()): code_hash(path) for path in source_files(*entries)}


@cache
def code_hash(path: Path) -> str:
    """Return the SHA-256 of what a file does: comments, docstrings and layout do not count.

    Of a file that is not Python, of its bytes.
    """
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return code_of(path).sha256


def check_sources(expected: dict[str, str], base_dir: Path) -> list[Path]:
    """Check that the code on disk is that of a spec, and return its files.

    Bytecode that Python keeps of them, and that may be of another version, is deleted: Python
    tells it by the time of the source, which a copy or an archive may bring along.

    Raises
    ------
    StaleResultError
        Naming the first file that differs.
    """
    paths = source_paths(expected, base_dir)
    for path, digest in zip(paths, expected.values(), strict=True):
        if not path.is_file() or code_hash(path) != digest:
            raise StaleResultError(f"{path} was edited since the run began. Run snakemake again")
        compiled = Path(cache_from_source(str(path)))
        with contextlib.suppress(OSError):
            if compiled.stat().st_mtime_ns < path.stat().st_ctime_ns:
                compiled.unlink()
    return paths


def source_paths(names: Iterable[str], base_dir: Path) -> list[Path]:
    """Return the files of the names that `source_hashes` gives."""
    return [_path(name, base_dir) for name in names]


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


def shadowed(path: Path) -> Iterator[str]:
    """Say of a user's method which of its files an import cannot reach.

    A file named like a module of Python or of an installed package is never imported: the
    other one is.
    """
    for file, root in _roots(path).items():
        name = file.relative_to(root).parts[0].removesuffix(".py") if root != SCRIPTS else ""
        if name in sys.stdlib_module_names:
            other = f"Python's module {name}"
        else:
            other = _installed(name) if name else None
        if other:
            yield f"{file.name} is named like {other}, which imports find instead; rename it"


def _installed(name: str) -> str | None:
    """Return where the environment has a module, without loading it."""
    folders = [folder for folder in sys.path if is_of_the_environment(Path(folder).resolve())]
    spec = PathFinder.find_spec(name, folders)
    return f"the installed {spec.origin}" if spec and spec.origin else None


def not_listed(path: Path, base_dir: Path) -> str:
    """Return what to say of a file of the user's that a spec lacks, after what a job did to it."""
    name = _name(path, base_dir.resolve())
    return (
        f"{name}, which its spec does not list, so that changing it would rerun nothing. List it "
        f"in the entry of the method: depends_on: [{name}]"
    )


def is_of_the_environment(path: Path) -> bool:
    """Return whether a resolved path lies in Python or its libraries."""
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return bool(installed) or any(path.is_relative_to(root) for root in _PYTHON)


def check_loaded(expected: Mapping[str, str], base_dir: Path, new: Collection[str] = ()) -> None:
    """Check that this process has loaded no code of the project or the user but that of its spec.

    Parameters
    ----------
    expected : mapping of str to str
        The sources of the spec.
    base_dir : path
        The working folder.
    new : collection of str
        Modules that code of a user's has loaded, which count wherever they are.

    Raises
    ------
    StaleResultError
        If a file of the project, of the folder of a user's method, or of a new module outside
        the environment, was imported in a way that no import statement shows, so that editing it
        would rerun nothing.
    """
    known = set(source_paths(expected, base_dir))
    users = {path.parent for path in known if not path.is_relative_to(SCRIPTS)}
    for name, module in list(sys.modules.items()):
        path = _resolved(getattr(module, "__file__", None) or "/")
        if path in known or is_of_the_environment(path) or not path.is_file():
            continue
        if any(path.is_relative_to(folder) for folder in (SCRIPTS, *users)):
            raise StaleResultError(
                f"the job has loaded {path}, which no import statement of its sources shows, so "
                f"that editing it would rerun nothing. Import it by a statement, or list it in the "
                f"entry of the method: depends_on: [{_name(path, base_dir.resolve())}]"
            )
        if name in new:
            raise StaleResultError(f"the job has loaded {not_listed(path, base_dir)}")


# A job looks at its modules after each task: thousands of files, in few folders.
@cache
def _resolved(path: str) -> Path:
    file = Path(path)
    return file.resolve() if file.is_symlink() else _resolved_folder(file.parent) / file.name


@cache
def _resolved_folder(folder: Path) -> Path:
    return folder.resolve()


def _name(path: Path, base_dir: Path) -> str:
    if path.is_relative_to(SCRIPTS.parent):
        return path.relative_to(SCRIPTS.parent).as_posix()
    return Path(os.path.relpath(path, base_dir)).as_posix()


def _path(name: str, base_dir: Path) -> Path:
    mine = (base_dir / name).resolve()
    return mine if mine.is_file() else SCRIPTS.parent / name


@cache
def _roots(*entries: Path) -> dict[Path, Path]:
    """Return the source files, each with the folder that it is imported from."""
    found: dict[Path, Path] = {}
    waiting = [(path, _root(path)) for path in (entry.resolve() for entry in entries)]
    while waiting:
        path, root = waiting.pop()
        if path not in found:
            found[path] = root
            new = (file for file in _imports(path, root) if file not in found)
            waiting += [(file, _root(file, root)) for file in new]
    return found


def _root(path: Path, outside: Path | None = None) -> Path:
    inside = path.parent == SCRIPTS or path.is_relative_to(_PACKAGE)
    return SCRIPTS if inside else outside or path.parent


@cache
def _imports(path: Path, root: Path) -> tuple[Path, ...]:
    if path.suffix != ".py":
        return ()
    package = path.relative_to(root).parent.parts
    files: set[Path] = set()
    for up, name in code_of(path).imports:
        above = package[: len(package) - up + 1] if up else ()
        files.update(_files_of(".".join([*above, name]), root))
    return tuple(sorted(files))


@cache
def _files_of(module: str, root: Path) -> tuple[Path, ...]:
    parts = [part for part in module.split(".") if part]
    folder = SCRIPTS if parts[:1] == [_PACKAGE.name] else root
    # Importing a.b.c runs the __init__ of a and of a.b as well.
    bases = [folder.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    candidates = [(base / "__init__.py", base.with_suffix(".py")) for base in bases]
    return tuple(path for pair in candidates for path in pair if path.is_file())
