"""Reading arrays from .npy and .npz files: their sizes first, and never a pickle."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO

import numpy as np

from epistemic_calibration.data.base import DataError

#: Memory that the arrays of a file may take, by default.
MAX_BYTES = 16_000_000_000
#: Bytes of the longest header that is read, as numpy's own limit.
_MAX_HEADER = 10_000


def array_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all arrays of an .npz file by name, from their headers alone.

    Raises
    ------
    DataError
        If the file is none of numpy, or truncated.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                info.filename.removesuffix(".npy"): _header(archive, info)[0]
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
    # A broken zip archive raises BadZipFile, ValueError, zlib.error and others.
    except Exception as error:
        raise _unreadable(path, error) from None


def read_arrays(
    path: Path,
    names: Collection[str] | None = None,
    max_bytes: int | None = None,
    *,
    limit: str = "the config key datasets.<name>.max_bytes",
) -> dict[str, np.ndarray]:
    """Return the arrays of ``names`` that an .npz file has; all by default.

    Parameters
    ----------
    path : Path
    names : collection of str, optional
    max_bytes : int, optional
        Refuse, before anything is unpacked, arrays that need more memory than that by what
        their headers or the archive's directory say.
    limit : str
        What to call that limit in a message.

    Raises
    ------
    DataError
        If the file is none of numpy, truncated, or holds Python objects; or too large.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            wanted, n_bytes = [], {}
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                if name == info.filename or (names is not None and name not in names):
                    continue
                if name in n_bytes:
                    raise DataError(f"{path} has two arrays called {name!r}: leave one out")
                shape, dtype = _header(archive, info)
                if dtype.hasobject:
                    raise DataError(_objects(f"{path}: {name}"))
                wanted.append(name)
                n_bytes[name] = max(info.file_size, math.prod(shape) * dtype.itemsize)
        total = sum(n_bytes.values())
        if max_bytes is not None and total > max_bytes:
            largest = max(n_bytes, key=n_bytes.__getitem__)
            raise DataError(
                f"{path} ({path.stat().st_size:,} bytes) unpacks to {total:,} bytes "
                f"({largest}: {n_bytes[largest]:,}), more than the {max_bytes:,} of {limit}: if "
                f"the file is right, raise it"
            )
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in wanted}
    except (DataError, PermissionError):
        raise
    except Exception as error:
        raise _unreadable(path, error) from None


def read_array(path: Path) -> np.ndarray:
    """Return the array of an .npy file.

    Raises
    ------
    DataError
        If the file is none of numpy, truncated, or holds Python objects.
    """
    try:
        with path.open("rb") as file:
            shape, dtype = _read_header(file)
        if dtype.hasobject:
            raise DataError(_objects(str(path)))
        n_bytes, promised = path.stat().st_size, math.prod(shape) * dtype.itemsize
        if promised > n_bytes:
            raise ValueError(f"its header promises {promised:,} bytes, and it has {n_bytes:,}")
        return np.load(path, allow_pickle=False)
    except (DataError, PermissionError):
        raise
    except Exception as error:
        raise DataError(
            f"{path} cannot be read ({_words(error)}): it must be a file of numpy.save"
        ) from None


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype]:
    with archive.open(info) as file:
        return _read_header(file)


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    # Version 3 is version 2 with names of fields in UTF-8, and arrays with fields are no data.
    if version not in read:
        raise ValueError(f"format version {version} of numpy")
    shape, _, dtype = read[version](file, max_header_size=_MAX_HEADER)
    return shape, dtype


def _objects(what: str) -> str:
    return (
        f"{what} holds Python objects, which are not read, since that would run code: save "
        f"numbers or strings (.astype(float), .astype(str))"
    )


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"{path} cannot be read ({_words(error)}): it must be a file of numpy.savez")


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
