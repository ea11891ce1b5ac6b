"""Where every result comes from: specs, fingerprints and receipts.

A *spec* is everything that determines the content of a job's outputs: its stage, its settings,
the code that it runs and the fingerprints of the jobs whose outputs it reads. Its SHA-256 is the
*fingerprint*. Since a spec holds the fingerprints of those jobs, it fixes the whole chain back to
the raw data.

A *receipt* is written when a job ends: the fingerprint of its spec, and the SHA-256 of each file
that it has made. What last digits depend on beyond the spec (libraries, processor, device) stands
there too, for these files and all that they are made of.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from epistemic_calibration.files import file_digest, write_text

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
_RECEIPT = {"fingerprint", "outputs", "made_with", "warnings"}


class StaleResultError(RuntimeError):
    """A file was made from another spec than the one asked for, or has changed since."""


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


def made_with() -> dict[str, list[str]]:
    """Return what the last digits of this process's numbers depend on beyond the spec."""
    found = {"python": platform.python_version(), "processor": _processor()}
    for package, module in _MODULES.items():
        if module in sys.modules:
            with contextlib.suppress(PackageNotFoundError):
                found[package] = version(package)
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


def job_name(stage: str, where: Mapping[str, Any]) -> str:
    """Return the name of a job: its stage, and its wildcards in the order of the alphabet.

    Examples
    --------
    >>> job_name("latents", {"seed": 0, "dataset": "mnist"})
    'latents/mnist-0'
    """
    return f"{stage}/{'-'.join(str(where[key]) for key in sorted(where)) or stage}"


def spec_path(job: str) -> str:
    """Return where the spec of a job is kept."""
    return f"results/specs/{job}.json"


def read_spec(path: str | Path) -> dict[str, Any]:
    """Read a spec."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StaleResultError(f"{path} cannot be read ({error}). Run snakemake again") from error


# Receipts


def receipt_path(job: str) -> str:
    """Return where the receipt of a job is kept."""
    return f"results/receipts/{job}.json"


def files_of(outputs: Iterable[str | Path]) -> list[str]:
    """Return the files of outputs, some of which may be folders, without hidden ones."""
    found: list[str] = []
    for path in map(Path, outputs):
        below = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
        found += [f.as_posix() for f in below if not f.name.startswith(".")]
    return found


def write_receipt(
    job: str,
    fingerprint: str,
    outputs: Sequence[str],
    warnings: Sequence[Mapping[str, Any]] = (),
    made: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write the receipt of a job that has ended well."""
    receipt = {
        "fingerprint": fingerprint,
        "outputs": {path: file_digest(path) for path in files_of(outputs)},
        "made_with": dict(made or {}),
        "warnings": list(warnings),
    }
    write_text(receipt_path(job), canonical_json(receipt) + "\n")


def read_receipt(job: str, base_dir: str | Path = ".") -> dict[str, Any] | None:
    """Return the receipt of a job, or None where it has none that is whole."""
    try:
        receipt = json.loads(Path(base_dir, receipt_path(job)).read_bytes())
        return receipt if receipt.keys() >= _RECEIPT else None
    except (OSError, ValueError, AttributeError):
        return None


def is_current(job: str, fingerprint: str, base_dir: str | Path = ".") -> bool:
    """Return whether the outputs of a job are there, made from the spec of this fingerprint.

    Their content is not read: jobs do that, and `python -m epistemic_calibration.workflow.verify`.
    """
    receipt = read_receipt(job, base_dir)
    return (
        receipt is not None
        and receipt["fingerprint"] == fingerprint
        and all(Path(base_dir, path).is_file() for path in receipt["outputs"])
    )


def damaged(outputs: Mapping[str, str], base_dir: str | Path = ".") -> list[str]:
    """Return the files whose content is not that of a receipt, or which are lost."""
    found = ((path, Path(base_dir, path), digest) for path, digest in outputs.items())
    return [p for p, file, digest in found if not file.is_file() or file_digest(file) != digest]


def check_inputs(
    inputs: Mapping[str, Mapping[str, str]], paths: Mapping[str, Sequence[str]]
) -> list[dict[str, Any]]:
    """Check that files are whole and were made from the specs asked for."""
    receipts, faults = [], []
    for name, jobs in inputs.items():
        recorded: dict[str, str] = {}
        for job, expected in jobs.items():
            receipt = read_receipt(job)
            if receipt is not None and receipt["fingerprint"] == expected:
                receipts.append(receipt)
                recorded |= receipt["outputs"]
        if jobs and not paths[name]:
            raise StaleResultError(f"no file of the input {name} was handed to the job")
        for path in paths[name]:
            files = {f: d for f, d in recorded.items() if f == path or f.startswith(f"{path}/")}
            if not files:
                faults.append(f"{path} was made from other settings, code or inputs than asked for")
            faults += [
                f"{f} is not what its job has written: changed, or lost" for f in damaged(files)
            ]
    if faults:
        raise StaleResultError("; ".join(dict.fromkeys([*faults, "delete it and run again"])))
    return receipts
