"""Where every result comes from: specs, fingerprints, and files that are whole or absent.

A *spec* is everything that determines the content of a file: the stage, its settings,
the source files it runs and the fingerprints of its inputs. Its SHA-256 is the
*fingerprint*, stored inside the file. Since a spec holds the fingerprints of its inputs,
it fixes the whole chain back to the images, and a file made under other settings can be
told from its fingerprint alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

#: Under which pictures carry it.
FINGERPRINT_KEY = "fingerprint"

_RECORDED_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "laplace-torch")


class StaleResultError(RuntimeError):
    """A file is broken, or was made by other settings, sources or inputs than asked for."""


def canonical_json(value: Any) -> str:
    """Return JSON that does not depend on the order of keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(spec: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a spec, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(spec).encode()).hexdigest()


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary name beside ``path``; rename it to ``path`` if the block succeeds."""
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


def provenance_record(spec: Mapping[str, Any], **extra: Any) -> dict[str, Any]:
    """Return what a result file says of its origin: fingerprint, spec, library versions."""
    versions = {}
    for package in _RECORDED_PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {"fingerprint": fingerprint(spec), "spec": spec, "versions": versions, **extra}


def write_npz(
    path: str | Path, arrays: Mapping[str, np.ndarray], spec: Mapping[str, Any], **extra: Any
) -> None:
    """Write arrays with their provenance; the file appears whole or not at all."""
    record = np.array(canonical_json(provenance_record(spec, **extra)))
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays, provenance=record)


def read_npz(
    path: str | Path, *, expected_fingerprint: str | None = None, names: list[str] | None = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read arrays and provenance, and check that the file is whole and the one meant.

    Parameters
    ----------
    path : path of an ``.npz`` file written by `write_npz`
    expected_fingerprint : str, optional
        What the file must have been made from.
    names : list of str, optional
        Arrays to read; all by default.

    Raises
    ------
    StaleResultError
        If the file is truncated or corrupt, or its fingerprint is another one. The
        message names the file and the first field of the spec that differs.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            record = json.loads(str(file["provenance"]))
            wanted = [n for n in file.files if n != "provenance"] if names is None else names
            arrays = {name: file[name] for name in wanted if name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise StaleResultError(
            f"{path} cannot be read ({error}): it is truncated or not a result of this "
            f"workflow. Delete it and run again."
        ) from error
    if expected_fingerprint is not None:
        check_fingerprint(path, record["fingerprint"], expected_fingerprint)
    return arrays, record


def check_fingerprint(path: str | Path, found: str, expected: str) -> None:
    """Raise StaleResultError if a file's fingerprint is not the expected one."""
    if found != expected:
        raise StaleResultError(
            f"{path} was made from other settings, sources or inputs than the ones now asked "
            f"for (its fingerprint is {found[:12]}, expected {expected[:12]}). Delete it and "
            f"run again, or run snakemake with --forcerun."
        )


def read_provenance_json(path: str | Path, record: str | None, expected_fingerprint: str) -> dict:
    """Return the provenance stored as JSON in a file that is not an ``.npz``, checked.

    Raises
    ------
    StaleResultError
        If there is none, or its fingerprint is not the expected one.
    """
    if record is None:
        raise StaleResultError(f"{path} says nothing of its origin. Delete it and run again.")
    provenance = json.loads(record)
    check_fingerprint(path, provenance["fingerprint"], expected_fingerprint)
    return provenance
