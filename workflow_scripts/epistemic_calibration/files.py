"""Files that are whole or absent: text, and arrays with a record of what they are."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class DamagedFileError(RuntimeError):
    """A file of results cannot be read as what was written."""


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


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file's content, as 64 hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: str | Path, text: str) -> None:
    """Write a text file; it appears whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_npz(path: str | Path, arrays: Mapping[str, np.ndarray], **record: Any) -> None:
    """Write arrays and a record of what they are; the file appears whole or not at all.

    Parameters
    ----------
    path : path
    arrays : mapping of str to ndarray
    **record
        What JSON can say; kept in the array ``provenance``.
    """
    import numpy as np

    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays, provenance=np.array(json.dumps(record, allow_nan=False)))


def read_npz(
    path: str | Path, names: Sequence[str] | None = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read arrays and their record from a file written by `write_npz`.

    Parameters
    ----------
    path : path
    names : sequence of str, optional
        Arrays to read, where the file has them; all by default.

    Raises
    ------
    DamagedFileError
        If the file is truncated or corrupt; the message names it.
    """
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            record = json.loads(str(file["provenance"]))
            wanted = [n for n in file.files if n != "provenance"] if names is None else names
            return {name: file[name] for name in wanted if name in file.files}, record
    except PermissionError:
        # Deleting the file would be no remedy.
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise DamagedFileError(
            f"{path} cannot be read ({error}): it is truncated or not a result of this "
            f"workflow. Delete it and run again."
        ) from error
