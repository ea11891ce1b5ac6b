"""The log of a job: progress, what its step prints, and at the end how it ended, in one line."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
import sysconfig
import textwrap
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

logger = logging.getLogger("epistemic_calibration")

#: What a step prints beyond is left out: a failed job's log is shown on the screen.
_MOST_CHARACTERS = 10_000
_DONE, _FAILED = "done in ", "FAILED: "
_SOURCES = Path(__file__).parents[2]
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
_OF_A_METHOD = re.compile(
    r"(?P<file>[^:]+\.py): (?P<what>.*) \(line (?P<line>\d+) of [^)]+\)(?P<more>.*)", re.DOTALL
)
_MAX_LENGTH = 400
# Enough for the last lines of a log.
_TAIL = 4000


class JobLog:
    """Where progress goes: a file that is started anew, or the screen.

    Parameters
    ----------
    path : path or None
        None for the screen.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is None:
            handler: logging.Handler = logging.StreamHandler()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
            # Appending, as others write to the same file.
            handler = logging.FileHandler(path, mode="a", encoding="utf-8")
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", handlers=[handler]
        )

    @contextlib.contextmanager
    def printed(self) -> Iterator[None]:
        """Have the log take what is printed, by libraries and child processes, too."""
        if self.path is None:
            yield
        else:
            with self._instead_of_the_screen():
                yield

    @contextlib.contextmanager
    def _instead_of_the_screen(self) -> Iterator[None]:
        sys.stdout.flush()
        sys.stderr.flush()
        streams, screen = (sys.stdout, sys.stderr), [os.dup(number) for number in (1, 2)]
        with self.path.open("a", encoding="utf-8", errors="replace", buffering=1) as file:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            printed = _Printed(file)
            sys.stdout = sys.stderr = printed
            try:
                yield
            finally:
                sys.stdout, sys.stderr = streams
                for number, copy in zip((1, 2), screen, strict=True):
                    os.dup2(copy, number)
                    os.close(copy)
                if printed.left_out:
                    logger.info("%d characters of what was printed are left out", printed.left_out)


class Outcome(NamedTuple):
    """How a job ended: ``unfinished`` while it runs, or where it was killed."""

    state: Literal["done", "failed", "unfinished"]
    reason: str = ""


def done_line(seconds: float) -> str:
    """Return the last line of the log of a job that did what it had to."""
    return f"{_DONE}{seconds:.1f} s"


def failed_line(error: BaseException) -> str:
    """Return the last line of the log of a job that failed.

    It names the line of code that is to blame: the last one outside of this project and of the
    libraries, which is one of the user's own file; else the project's last one.

    Examples
    --------
    >>> try:
    ...     {}["a"]
    ... except KeyError as error:
    ...     print(failed_line(error))
    FAILED: KeyError: 'a'
    """
    text = f"{_place(error)}{type(error).__name__}: {error}"
    # What a user's method raises is told with its line already.
    if method := _OF_A_METHOD.fullmatch(str(error)):
        place = f"{Path(method['file']).name}, line {method['line']}"
        text = f"{place}: {method['what']}{method['more']}"
    return _FAILED + textwrap.shorten(text, _MAX_LENGTH, placeholder=" …")


def read_outcome(path: str | Path) -> Outcome | None:
    """Return how the job of a log ended, or None where there is no log.

    Examples
    --------
    >>> import tempfile
    >>> log = Path(tempfile.mkdtemp(), "job.log")
    >>> _ = log.write_text("2026-01-01 00:00:00,000 ERROR FAILED: ValueError: no\\n")
    >>> read_outcome(log)
    Outcome(state='failed', reason='ValueError: no')
    """
    try:
        with Path(path).open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return None
    # A line of the log begins with a time and a level.
    ends = re.match(r"\S+ \S+ [A-Z]+ (.*)", lines[-1] if lines else "")
    if ends and ends[1].startswith(_FAILED):
        return Outcome("failed", ends[1].removeprefix(_FAILED))
    return Outcome("done" if ends and ends[1].startswith(_DONE) else "unfinished")


def _place(error: BaseException) -> str:
    """Return "FILE, line N: " of the code to blame, or nothing where it is a library's alone."""
    while cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
        error = cause
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_file() and not frame.filename.startswith(_LIBRARIES)
    ]
    own = [frame for frame in frames if not Path(frame.filename).is_relative_to(_SOURCES)]
    if not frames:
        return ""
    frame = (own or frames)[-1]
    return f"{Path(frame.filename).name}, line {frame.lineno}: "


class _Printed(io.TextIOBase):
    """A stream that takes so much text and counts the rest."""

    encoding = "utf-8"

    def __init__(self, file: io.TextIOBase) -> None:
        self._file = file
        self._room = _MOST_CHARACTERS
        self.left_out = 0

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()

    def write(self, text: str) -> int:
        shown = text[: self._room]
        self.left_out += len(text) - len(shown)
        if shown and not self._file.closed:
            self._room -= len(shown)
            self._file.write(shown)
        return len(text)
