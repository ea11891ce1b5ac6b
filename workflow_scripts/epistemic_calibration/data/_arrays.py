"""Reading arrays from .npy and .npz files: their sizes first, and never a pickle."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from pathlib import Path

import numpy as np

from epistemic_calibration.data.base import DataError


def array_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all arrays of an .npz file by name, from their headers alone."""
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
) -> dict[str, np.ndarray]:
    """Return the arrays of ``names`` that an .npz file has; all by default.

    Arrays that need more memory than ``max_bytes`` are refused before anything is unpacked; so
    are Python objects, which would run code.
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
                    raise DataError(
                        f"{path}: {name} holds Python objects, which are not read, since that "
                        f"would run code: save numbers or strings (.astype(float), .astype(str))"
                    )
                wanted.append(name)
                n_bytes[name] = max(info.file_size, math.prod(shape) * dtype.itemsize)
        total = sum(n_bytes.values())
        if max_bytes is not None and total > max_bytes:
            largest = max(n_bytes, key=n_bytes.__getitem__)
            raise DataError(
                f"{path} ({path.stat().st_size:,} bytes) unpacks to {total:,} bytes "
                f"({largest}: {n_bytes[largest]:,}), more than the {max_bytes:,} of "
                f"max_bytes= of read_predictions: if the file is right, raise it"
            )
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in wanted}
    except DataError:
        raise
    except Exception as error:
        raise _unreadable(path, error) from None


def read_array(path: Path) -> np.ndarray:
    """Return the array of an .npy file, which must hold no Python objects."""
    try:
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:
        raise _unreadable(path, error, "numpy.save") from None


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype]:
    with archive.open(info) as file:
        # Version 3 is version 2 with names of fields in UTF-8, and arrays with fields are no data.
        first = np.lib.format.read_magic(file) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        return shape, dtype


def _unreadable(path: Path, error: Exception, function: str = "numpy.savez") -> DataError:
    words = " ".join(str(error).split())[:200] or type(error).__name__
    return DataError(f"{path} cannot be read ({words}): it must be a file of {function}")
