"""What a Python file does and imports, which its content tells.

A run and each of its jobs ask this of a hundred files, and parsing them would take most of a
start. Of the project's own files the answers are kept beside Python's bytecode, by the SHA-256 of
a file's bytes: an answer can be missing there, but not out of date.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

from epistemic_calibration.files import write_text

#: Whose answers are kept.
_PACKAGE = Path(__file__).resolve().parents[1]


class Code(NamedTuple):
    """What a Python file does and imports.

    Attributes
    ----------
    sha256 : str
        Of what it does: comments, docstrings and layout do not count.
    imports : tuple of (int, str)
        The modules, and the names that may be modules, of its import statements, those for type
        checking excepted: how many folders up they start (0: an absolute import), and the dotted
        name from there.
    """

    sha256: str
    imports: tuple[tuple[int, str], ...]


@cache
def code_of(path: Path) -> Code:
    """Return what a Python file does and imports.

    Raises
    ------
    ValueError
        If it is not Python; the message names the file and the line.
    """
    content = path.read_bytes()
    if not path.is_relative_to(_PACKAGE.parent):
        return _parsed(path, content)
    digest = hashlib.sha256(content).hexdigest()
    known = _known()
    if digest not in known:
        known[digest] = _parsed(path, content)
        _new.add(digest)
    return known[digest]


def keep_answers() -> None:
    """Keep what this process has found out for the next ones; failing to is no error."""
    if _new and not sys.dont_write_bytecode:
        answers = {digest: list(code) for digest, code in _known().items()}
        with contextlib.suppress(OSError):
            write_text(_answers_path(), json.dumps({"of": _of(), "code": answers}))
            _new.clear()


_new: set[str] = set()


@cache
def _known() -> dict[str, Code]:
    """Return what earlier processes have found out, by the SHA-256 of a file's bytes."""
    try:
        kept = json.loads(_answers_path().read_text(encoding="utf-8"))
        if kept["of"] == _of() and len(kept["code"]) <= _MOST:
            return {
                digest: Code(sha256, tuple((up, name) for up, name in imports))
                for digest, (sha256, imports) in kept["code"].items()
            }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return {}


#: Answers on earlier versions of files stay until there are so many.
_MOST = 2000


@cache
def _of() -> str:
    """Return what answers depend on besides the file: this file and Python's grammar."""
    return hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode()).hexdigest()


def _answers_path() -> Path:
    return Path(cache_from_source(__file__)).with_suffix(".json")


def _parsed(path: Path, content: bytes) -> Code:
    try:
        tree = ast.parse(content, filename=str(path))
    except (SyntaxError, ValueError) as error:
        where = f"{path}:{getattr(error, 'lineno', None) or 1}"
        raise ValueError(f"{where}: {getattr(error, 'msg', error)}") from None
    # Before what follows, which changes the tree.
    imports = tuple(sorted(set(_imports(tree))))
    return Code(_sha256_of(tree), imports)


def _sha256_of(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        # Any text that stands alone is a comment.
        if isinstance(body, list):
            node.body = [line for line in body if not _is_text(line)]
        # So is the description of a parameter.
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "parameter":
            node.keywords = [k for k in node.keywords if k.arg != "description"]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _imports(node: ast.AST) -> Iterator[tuple[int, str]]:
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
