"""Show each claim of the documentation by simulations whose truth is known exactly.

    python validation/run.py --quick                 # ten minutes on one core
    python validation/run.py --full                  # hours
    python validation/run.py --quick --only coverage trainings

Writes ``claims.csv``, a row for each measure of each scenario, and ``claims.md``, the same for
readers. Ends with 1 where a measure is outside what is claimed. Numbers do not depend on which
studies run.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

import corrected
import recalibration
import second_order
import several_classes
import trainings

STUDIES = {
    study.name: study
    for module in (corrected, trainings, second_order, several_classes, recalibration)
    for study in module.STUDIES
}


def markdown(table: pd.DataFrame) -> str:
    """Return a section per claim: scenarios down, measures across."""
    parts = ["# What the documentation claims, measured\n"]
    for name, rows in table.groupby("study", sort=False):
        claimed = rows[["measure", "claimed_low", "claimed_high"]].drop_duplicates("measure")
        ranges = [
            f"{row.measure}: {row.claimed_low:g} to {row.claimed_high:g}"
            for row in claimed.itertuples()
            if row.claimed_low > -float("inf") or row.claimed_high < float("inf")
        ]
        failed = rows[~rows["holds"]]
        shown = rows.pivot_table(
            index=["scenario", "truth", "draws"],
            columns="measure",
            values="value",
            sort=False,
            dropna=False,
        ).dropna(how="all")
        parts.append(f"## {name}\n\n{rows['claim'].iloc[0]}\n\nClaimed: {'; '.join(ranges)}.\n")
        parts.append(shown.reset_index().to_markdown(index=False, floatfmt=".3g") + "\n")
        parts += [
            f"**Does not hold:** {row.scenario}, {row.measure}: {row.value:.3g}.\n"
            for row in failed.itertuples()
        ]
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    extent = parser.add_mutually_exclusive_group(required=True)
    extent.add_argument("--quick", action="store_true", help="fewer draws: ten minutes")
    extent.add_argument("--full", action="store_true", help="all draws: hours")
    parser.add_argument("--only", nargs="+", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--output", type=Path, default=Path("build/validation"), help="folder")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, object]] = []
    # Small products of matrices: threads would only wait for each other.
    with threadpool_limits(1):
        for name in args.only:
            started = time.perf_counter()
            rows += STUDIES[name].rows(quick=args.quick)
            print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
            table = pd.DataFrame(rows)
            table.to_csv(args.output / "claims.csv", index=False, float_format="%.6g")
            (args.output / "claims.md").write_text(markdown(table), encoding="utf-8")
    failed = table[~table["holds"]]
    for row in failed.itertuples():
        print(f"does not hold: {row.study}, {row.scenario}: {row.measure} is {row.value:.3g}")
    print(f"{len(table) - len(failed)} of {len(table)} measures are as claimed: {args.output}")
    return int(len(failed) > 0)


if __name__ == "__main__":
    sys.exit(main())
