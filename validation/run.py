"""Show each claim of the documentation by simulations whose truth is known exactly.

    python validation/run.py                         # ten minutes on one core
    python validation/run.py --quick                 # a tenth of the draws: five minutes
    python validation/run.py --quick --only coverage trainings

Writes ``validation_numbers.csv``, a row for each measure of each scenario, and
``validation_numbers.md``, a row for each study; docs/ has those of a run of all draws. Ends with 1
where a measure is outside what is claimed. Numbers do not depend on which studies run.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

import corrected
import ranking
import recalibration
import second_order
import several_classes
import trainings

NAME = "validation_numbers"
STUDIES = {
    study.name: study
    for module in (corrected, trainings, second_order, ranking, several_classes, recalibration)
    for study in module.STUDIES
}


def markdown(table: pd.DataFrame) -> str:
    """Return a row per study: its claim, and each measure from the least to the largest."""
    lines = ["| study | claim | found in the scenarios, least to largest | draws of each |"]
    lines.append("| -- | -- | -- | -- |")
    for name, rows in table.groupby("study", sort=False):
        found = []
        for measure, of in rows.groupby("measure", sort=False):
            values = of["value"].where(of["value"].abs() > 1e-9, 0).agg(["min", "max"])
            scale, unit = (100, " %") if of["percent"].all() else (1, "")
            ends = dict.fromkeys(f"{scale * v:.3g}" for v in values)
            found.append(f"{measure} {' to '.join(ends)}{unit}".replace(" -", " −"))
            for scenario in of.loc[~of["holds"], "scenario"]:
                found.append(f"**{measure} not as claimed: {scenario}**")
        draws = f"{rows['scenario'].nunique()} × {rows['draws'].max()}"
        lines.append(f"| `{name}` | {rows['claim'].iloc[0]} | {'; '.join(found)} | {draws} |")
    title = (
        "# Numbers of the simulations\n\nEach scenario is in [a table](validation_numbers.csv).\n\n"
    )
    return title + "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws")
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
            table.drop(columns="claim").to_csv(
                args.output / f"{NAME}.csv", index=False, float_format="%.4g"
            )
            (args.output / f"{NAME}.md").write_text(markdown(table), encoding="utf-8")
    failed = table[~table["holds"]]
    claimed = table[np.isfinite(table[["claimed_low", "claimed_high"]]).any(axis=1)]
    for row in failed.itertuples():
        print(f"does not hold: {row.study}, {row.scenario}: {row.measure} is {row.value:.3g}")
    n_held = len(claimed) - len(failed)
    print(
        f"{n_held} of {len(claimed)} measures that a claim is about are as claimed: {args.output}"
    )
    return int(len(failed) > 0)


if __name__ == "__main__":
    sys.exit(main())
