"""Where every result comes from: specs, fingerprints and receipts.

A *spec* is everything that determines the content of a job's outputs: its stage, its settings,
the code that it runs and the fingerprints of its inputs. Its SHA-256 is the *fingerprint*.
Since a spec holds the fingerprints of its inputs, it fixes the whole chain back to the raw data.

A *receipt* is written by a job beside the results, one for each output: the fingerprint of the
spec that it was made from, and the SHA-256 of what is in it. What last digits depend on beyond the
spec (libraries, processor, device) stands there too, for the result and all that it is made of.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epistemic_calibration.files import atomic_path, write_text

if TYPE_CHECKING:
    import numpy as np

# What numbers depend on, by the name under which it is imported.
_MODULES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "torch": "torch",
    "laplace-torch": "laplace",
    "gpytorch": "gpytorch",
    "pandas": "pandas",
    "numba": "numba",
}
_PACKAGES = (*_MODULES, "snakemake")
_SMALL = 2**20
_RECEIPT = {"fingerprint", "sha256", "signature", "made_with", "warnings"}


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
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        # A large buffer for each of thousands of small files would take longer than they do.
        if os.fstat(file.fileno()).st_size < _SMALL:
            return hashlib.sha256(file.read()).hexdigest()
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that numbers depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


# What last digits depend on


def made_with() -> dict[str, list[str]]:
    """Return what the last digits of this process's numbers depend on beyond the spec.

    Returns
    -------
    dict of str to list of str
        The versions of Python and of the libraries that are loaded; ``processor``, with the code
        that the linear algebra of NumPy has chosen for it; and ``device``, where networks ran.
        One value each.
    """
    found = {"python": platform.python_version(), "processor": _processor()}
    for package, module in _MODULES.items():
        if module in sys.modules and package in versions():
            found[package] = versions()[package]
    if device := _device():
        found["device"] = device
    return {name: [value] for name, value in found.items()}


def merged_with(several: Iterable[Mapping[str, Sequence[str]]]) -> dict[str, list[str]]:
    """Return all values that there are of each name, sorted.

    Examples
    --------
    >>> merged_with([{"numpy": ["2.4.6"]}, {"numpy": ["2.3.0"], "device": ["cpu"]}])
    {'device': ['cpu'], 'numpy': ['2.3.0', '2.4.6']}
    """
    found: dict[str, set[str]] = {}
    for one in several:
        for name, values in one.items():
            found.setdefault(name, set()).update(values)
    return {name: sorted(found[name]) for name in sorted(found)}


def unlike(made: Mapping[str, Sequence[str]]) -> str:
    """Return a sentence on what differs between the parts of a result, or nothing.

    Examples
    --------
    >>> unlike({"numpy": ["2.3.0", "2.4.6"], "device": ["cpu"]})
    'parts were made with numpy 2.3.0 and 2.4.6; last digits may differ for that reason alone'
    >>> unlike({"numpy": ["2.4.6"], "device": ["cpu"]})
    ''
    """
    differing = [f"{name} {' and '.join(v)}" for name, v in made.items() if len(v) > 1]
    if not differing:
        return ""
    return (
        f"parts were made with {', '.join(differing)}; last digits may differ for that reason alone"
    )


def _processor() -> str:
    machine = platform.machine()
    if "numpy" not in sys.modules:
        return machine
    from threadpoolctl import threadpool_info

    blas = sorted(
        (pool for pool in threadpool_info() if pool["user_api"] == "blas"),
        # SciPy may bring one of its own, which not every job loads.
        key=lambda pool: ("numpy" not in pool["filepath"], pool["filepath"]),
    )
    return " ".join([machine, *(pool.get("architecture", "") for pool in blas[:1])]).strip()


def _device() -> str:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return torch.cuda.get_device_name()
    # Without it, torch is loaded for something else.
    return "cpu" if "epistemic_calibration.device" in sys.modules else ""


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
    except PermissionError:
        raise
    except (OSError, ValueError) as error:
        raise StaleResultError(f"{path} cannot be read ({error}). Run snakemake again.") from error
    raise StaleResultError(f"{path} is not what its name says. Delete it and run again.")


# Receipts


def receipt_path(path: str | Path) -> Path:
    """Return where the receipt of a result is: results/a/b -> results/receipts/a/b.json."""
    return Path(receipt_name(path))


# A start asks this and the next of each result, and objects of paths are slow to make.
def receipt_name(path: str | Path) -> str:
    """Return `receipt_path` as text.

    Examples
    --------
    >>> receipt_name("results/a/b.npz")
    'results/receipts/a/b.npz.json'
    """
    folder, _, name = os.path.normpath(path).partition("/")
    return f"{folder}/receipts/{name}.json"


def file_signature(path: str | Path) -> list[int]:
    """Return size, inode, and times of modification and change of a file.

    As long as they stay, its content does.
    """
    stat = os.stat(path)  # noqa: PTH116
    return [stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns]


def write_receipt(
    path: str | Path,
    fingerprint: str,
    warnings: Sequence[Mapping[str, Any]] = (),
    made: Mapping[str, Sequence[str]] | None = None,
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
    made : mapping, optional
        What the job and those before it were made with, as in `merged_with`.
    """
    # The signature first: what changes between the two is not vouched for.
    signature = file_signature(path)
    receipt = {
        "path": os.path.normpath(path),
        "fingerprint": fingerprint,
        "sha256": file_digest(path),
        "signature": signature,
        "made_with": dict(made or {}),
        "warnings": list(warnings),
    }
    write_text(receipt_path(path), canonical_json(receipt) + "\n")


def is_finished(path: str | Path, fingerprint: str) -> bool:
    """Return whether a result is there, made from the spec of this fingerprint, and whole."""
    receipt = read_receipt(path)
    return (
        receipt is not None
        and receipt["fingerprint"] == fingerprint
        and Path(path).is_file()
        and receipt["sha256"] == file_digest(path)
    )


def read_receipt(path: str | Path, base_dir: str | Path = ".") -> dict[str, Any] | None:
    """Return the receipt of a result, or None where it has none of its own.

    Raises
    ------
    PermissionError
        If it must not be read.
    """
    try:
        with open(f"{base_dir}/{receipt_name(path)}", "rb", buffering=0) as file:  # noqa: PTH123
            receipt = json.loads(file.read().decode())
        complete = receipt.keys() >= _RECEIPT
        return receipt if complete and receipt["path"] == os.path.normpath(path) else None
    except PermissionError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def check_inputs(paths: Sequence[str | Path], expected: Sequence[str]) -> list[dict[str, Any]]:
    """Check that files are whole and were made from the specs with these fingerprints.

    Returns
    -------
    list of dict
        The receipt of each file.

    Raises
    ------
    StaleResultError
        Naming the first file that is not, and what to do.
    """
    found, receipts = set(), []
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
        receipts.append(receipt)
    if missing := set(expected) - found:
        raise StaleResultError(f"{len(missing)} of the files to be read are not among {paths}")
    return receipts


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
    except PermissionError:
        # Its message says it; deleting the file would be no remedy.
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise StaleResultError(
            f"{path} cannot be read ({error}): it is truncated or not a result of this "
            f"workflow. Delete it and run again."
        ) from error
