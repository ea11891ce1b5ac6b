"""Where every result comes from: specs, fingerprints and receipts.

A *spec* is everything that determines the content of a job's outputs: its stage, its settings,
the code that it runs and the fingerprints of its inputs. Its SHA-256 is the *fingerprint*.
Since a spec holds the fingerprints of its inputs, it fixes the whole chain back to the raw data.

A *receipt* is written by a job beside the results, one for each output: the fingerprint of the
spec that it was made from, and the SHA-256 of what is in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epistemic_calibration.files import atomic_path, write_text

if TYPE_CHECKING:
    import numpy as np

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "laplace-torch", "pandas", "snakemake")


class StaleResultError(RuntimeError):
    """A file is damaged, or was made from another spec than the one asked for."""


def canonical_json(value: Any) -> str:
    """Return JSON that does not depend on the order of keys.

    Examples
    --------
    >>> canonical_json({"b": 1, "a": [2.0, None]})
    '{"a":[2.0,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def fingerprint(spec: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a spec, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(spec).encode()).hexdigest()


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file's content, as 64 hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that numbers depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


# Specs


def spec_path(spec: Mapping[str, Any]) -> str:
    """Return where a spec is kept: a name for people, and 16 digits of its fingerprint."""
    name = "-".join([*spec["where"].values(), fingerprint(spec)[:16]])
    return f"results/specs/{spec['stage']}/{name}.json"


def write_spec(spec: Mapping[str, Any], base_dir: str | Path = ".") -> None:
    """Write a spec where `spec_path` has it, unless it is there, whole."""
    path = Path(base_dir, spec_path(spec))
    text = json.dumps(spec, sort_keys=True, indent=1, allow_nan=False) + "\n"
    if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
        write_text(path, text)


def read_spec(path: str | Path) -> dict[str, Any]:
    """Read a spec.

    Raises
    ------
    StaleResultError
        If it is not the spec that its name says.
    """
    try:
        spec = json.loads(Path(path).read_text(encoding="utf-8"))
        named = Path(path).stem.rpartition("-")[2]
        if fingerprint(spec).startswith(named):
            return spec
    except (OSError, ValueError) as error:
        raise StaleResultError(f"{path} cannot be read ({error}). Run snakemake again.") from error
    raise StaleResultError(f"{path} is not what its name says. Delete it and run again.")


# Receipts


def receipt_path(path: str | Path) -> Path:
    """Return where the receipt of a result is: results/a/b -> results/receipts/a/b.json."""
    path = Path(path)
    return Path(path.parts[0], "receipts", *path.parts[1:-1], f"{path.name}.json")


def file_signature(path: str | Path) -> list[int]:
    """Return size, inode, and times of modification and change of a file.

    As long as they stay, its content does.
    """
    stat = Path(path).stat()
    return [stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns]


def write_receipt(
    path: str | Path, fingerprint: str, warnings: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Write the receipt of a result that is finished.

    Parameters
    ----------
    path : path
        Relative, in results/.
    fingerprint : str
        Of the spec that it was made from.
    warnings : sequence of mapping
        What the job and those before it have warned of, as in `job_warnings`.
    """
    # The signature first: what changes between the two is not vouched for.
    signature = file_signature(path)
    receipt = {
        "path": Path(path).as_posix(),
        "fingerprint": fingerprint,
        "sha256": file_digest(path),
        "signature": signature,
        "versions": versions(),
        "warnings": list(warnings),
    }
    write_text(receipt_path(path), canonical_json(receipt) + "\n")


def read_receipt(path: str | Path, base_dir: str | Path = ".") -> dict[str, Any] | None:
    """Return the receipt of a result, or None where it has none of its own."""
    try:
        receipt = json.loads(Path(base_dir, receipt_path(path)).read_text(encoding="utf-8"))
        complete = receipt.keys() >= {"fingerprint", "sha256", "signature", "warnings"}
        return receipt if complete and receipt["path"] == Path(path).as_posix() else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def check_inputs(
    paths: Sequence[str | Path], expected: Sequence[str]
) -> list[list[dict[str, Any]]]:
    """Check that files are whole and were made from the specs with these fingerprints.

    Returns
    -------
    list of list of dict
        The warnings in the receipt of each file.

    Raises
    ------
    StaleResultError
        Naming the first file that is not, and what to do.
    """
    found, warnings = set(), []
    for path in paths:
        receipt = read_receipt(path)
        if receipt is None or receipt["fingerprint"] not in expected:
            raise StaleResultError(
                f"{path} was made from other settings, sources or inputs than those asked for. "
                f"Delete it and run again."
            )
        if receipt["sha256"] != file_digest(path):
            raise StaleResultError(
                f"{path} is not what the job that made it has written: it is truncated or was "
                f"changed. Delete it and run again."
            )
        found.add(receipt["fingerprint"])
        warnings.append(receipt["warnings"])
    if missing := set(expected) - found:
        raise StaleResultError(f"{len(missing)} of the files to be read are not among {paths}")
    return warnings


# Arrays


def write_npz(
    path: str | Path, arrays: Mapping[str, np.ndarray], spec: Mapping[str, Any], **extra: Any
) -> None:
    """Write arrays with a record of their origin; the file appears whole or not at all.

    Parameters
    ----------
    path : path
    arrays : mapping of str to ndarray
    spec : mapping
        Stored as JSON in the array ``provenance``, with its fingerprint and library versions.
    **extra
        Further entries of that record.
    """
    import numpy as np

    record = {"fingerprint": fingerprint(spec), "spec": spec, "versions": versions(), **extra}
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays, provenance=np.array(canonical_json(record)))


def read_npz(
    path: str | Path, names: Sequence[str] | None = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read arrays and the record of their origin from a file written by `write_npz`.

    Parameters
    ----------
    path : path
    names : sequence of str, optional
        Arrays to read, where the file has them; all by default.

    Raises
    ------
    StaleResultError
        If the file is truncated or corrupt; the message names it.
    """
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            record = json.loads(str(file["provenance"]))
            wanted = [n for n in file.files if n != "provenance"] if names is None else names
            return {name: file[name] for name in wanted if name in file.files}, record
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise StaleResultError(
            f"{path} cannot be read ({error}): it is truncated or not a result of this "
            f"workflow. Delete it and run again."
        ) from error
