"""The log of a job: progress, warnings once each, and whatever its step prints."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger("epistemic_calibration")

#: What a step prints beyond is left out: a failed job's log is shown on the screen.
_MOST_CHARACTERS = 10_000


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
        self._warnings = _Once()
        handler.addFilter(self._warnings)
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", handlers=[handler]
        )
        logging.captureWarnings(True)

    @contextlib.contextmanager
    def printed(self) -> Iterator[None]:
        """Have the log take what is printed, by libraries and child processes, too."""
        try:
            if self.path is None:
                yield
            else:
                with self._instead_of_the_screen():
                    yield
        finally:
            for text, n in self._warnings.repeated():
                logger.info("%d times in all: %s", n, text)

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


class _Once(logging.Filter):
    """Lets each warning of Python pass once, and counts the others."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name != "py.warnings":
            return True
        text = record.getMessage()
        self._seen[text] += 1
        return self._seen[text] == 1

    def repeated(self) -> Iterator[tuple[str, int]]:
        """Yield the first line of each warning that came again, and how often it came."""
        for text, n in self._seen.items():
            if n > 1:
                yield text.partition("\n")[0], n
