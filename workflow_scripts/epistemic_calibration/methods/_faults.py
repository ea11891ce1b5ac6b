"""Faults of a method in one line, with the line of its file that led to them."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

_READ_ONLY = (
    "what a method is given must not be changed, as the next task gets it too: work on a copy "
    "(X = X - mean, not X -= mean)"
)


def told(error: BaseException, path: str | Path | None = None) -> str:
    """Return an exception in one line, with the last line of the user's file that led to it."""
    where = ""
    if path is not None and (line := _line(error, Path(path))):
        where = f" (line {line} of {Path(path).name})"
    message = " ".join(str(getattr(error, "msg", "") or error).split())
    return f"{type(error).__name__}{f': {message}' if message else ''}{where}{_advice(error)}"


def _line(error: BaseException, path: Path) -> int | None:
    here = path.resolve()
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).resolve() == here:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename).resolve() == here]
    return lines[-1] if lines else None


def _advice(error: BaseException) -> str:
    if isinstance(error, ValueError) and "read-only" in str(error):
        return f"; {_READ_ONLY}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return (
            f"; install the package that has it, as by `{sys.executable} -m pip install "
            f"{package}`, or put {package}.py beside the method"
        )
    return ""
