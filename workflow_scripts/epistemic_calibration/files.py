"""Files that are whole or absent."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# Random characters of `tempfile.mkstemp`.
_TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}(\.\w+)?")
# A file that is being written is younger, whatever clocks say.
_STALE_SECONDS = 600


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary name beside ``path``; rename it to ``path`` if the block succeeds.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_path(folder / "table.csv") as temporary:
    ...     _ = temporary.write_text("a,b")
    >>> (folder / "table.csv").read_text()
    'a,b'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes private files; a result is as readable as any other new file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_temporary_files(folder: str | Path) -> int:
    """Remove what processes that were killed have left of `atomic_path`, and return how many.

    Files younger than ten minutes stay: another process may be writing them.

    Examples
    --------
    >>> import tempfile
    >>> remove_temporary_files(tempfile.mkdtemp())
    0
    """
    n_removed = 0
    for path in Path(folder).rglob(".*"):
        with contextlib.suppress(OSError):
            if (
                _TEMPORARY.fullmatch(path.name)
                and path.is_file()
                and time.time() - path.stat().st_mtime > _STALE_SECONDS
            ):
                path.unlink()
                n_removed += 1
    return n_removed


def write_text(path: str | Path, text: str) -> None:
    """Write a text file; it appears whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
