"""The log of a job: progress, what its step prints, and at the end how it ended, in one line."""

from __future__ import annotations

import logging
import re
import sys
import sysconfig
import textwrap
import traceback
from pathlib import Path

logger = logging.getLogger("epistemic_calibration")

_SOURCES = Path(__file__).parents[2]
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
_OF_A_METHOD = re.compile(
    r"(?P<file>[^:]+\.py): (?P<what>.*) \(line (?P<line>\d+) of [^)]+\)(?P<more>.*)", re.DOTALL
)
_MAX_LENGTH = 2000


def start_log() -> None:
    """Have progress written to the standard output, which the rule sends to the job's log."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout
    )


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
    return "FAILED: " + textwrap.shorten(text, _MAX_LENGTH, placeholder=" …")


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
