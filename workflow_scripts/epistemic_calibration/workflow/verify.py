"""Check every result against the receipt of the job that made it: ``make verify``.

Jobs check what they read; this reads everything, final tables, figures and pages too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from epistemic_calibration.workflow.provenance import (
    StaleResultError,
    damaged,
    fingerprint,
    read_receipt,
    read_spec,
    spec_path,
)


def faults(base_dir: str | Path = ".") -> Iterator[str]:
    """Yield what is wrong with the results in a folder, a line for each file or job."""
    receipts = Path(base_dir, "results", "receipts")
    for path in sorted(receipts.rglob("*.json")):
        job = path.relative_to(receipts).with_suffix("").as_posix()
        receipt = read_receipt(job, base_dir)
        if receipt is None:
            yield f"{path}: not a receipt. Delete it, and the run makes its results again"
            continue
        for file in damaged(receipt["outputs"], base_dir):
            yield f"{file}: not what its job has written: changed, or lost. Delete it and run again"
        try:
            asked = fingerprint(read_spec(Path(base_dir, spec_path(job))))
        except StaleResultError as error:
            yield str(error)
            continue
        if asked != receipt["fingerprint"]:
            yield f"{job}: made from other settings, code or inputs than asked for. Run snakemake"


def main() -> int:
    """Print the faults; return 1 if there are any, or no results."""
    n_jobs = len(list(Path("results/receipts").rglob("*.json")))
    found = list(faults())
    for fault in found:
        print(fault)
    print(f"{n_jobs} jobs, {len(found)} faults")
    return int(bool(found) or n_jobs == 0)


if __name__ == "__main__":
    sys.exit(main())
