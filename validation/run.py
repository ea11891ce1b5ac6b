"""Show each claim of the documentation by simulations whose truth is known exactly.

    python validation/run.py                         # half an hour on one core
    python validation/run.py --quick                 # a tenth of the draws: five minutes
    python validation/run.py --quick --only coverage trainings

Writes ``claims.csv``, a row for each measure of each scenario, and ``claims.md``, which is
docs/validation_numbers.md. Ends with 1 where a measure is outside what is claimed. Numbers do not
depend on which studies run.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

import corrected
import ranking
import recalibration
import second_order
import several_classes
import trainings

STUDIES = {
    study.name: study
    for module in (corrected, trainings, second_order, ranking, several_classes, recalibration)
    for study in module.STUDIES
}


#: Studies of more scenarios are shown by the least and the largest value of each measure.
N_SHOWN = 6


def markdown(table: pd.DataFrame) -> str:
    """Return a section per study."""
    parts = ["# Numbers of the simulations\n"]
    parts.append(fill("Made by `python validation/run.py`; do not edit."))
    for name, rows in table.groupby("study", sort=False):
        parts.append(f"## {name[0].upper()}{name[1:]}\n\n{fill(rows['claim'].iloc[0])}")
        scenarios = rows["scenario"].unique()
        lines: list[list[str]] = []
        if len(scenarios) > N_SHOWN:
            lines.append(["measure", "claimed", "least", "largest"])
            for measure, of in rows.groupby("measure", sort=False):
                ends = (of.loc[of["value"].idxmin()], of.loc[of["value"].idxmax()])
                shown = [f"{number(end)} ({end['scenario']})" for end in ends]
                lines.append([measure, claimed(of.iloc[0]), *shown])
        else:
            measures = rows.groupby("measure", sort=False).first().reset_index()
            lines.append(["scenario", *measures["measure"]])
            for scenario in scenarios:
                of = rows[rows["scenario"] == scenario].set_index("measure")
                of = of.reindex(measures["measure"])
                lines.append([scenario, *(number(row) for _, row in of.iterrows())])
            if (limits := [claimed(row) for _, row in measures.iterrows()]) and any(limits):
                lines.append(["*claimed*", *limits])
        lines.insert(1, ["--"] * len(lines[0]))
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
        failed = rows[~rows["holds"]]
        parts += [
            fill(f"**Does not hold:** {row['scenario']}, {row['measure']}: {number(row)}.")
            for _, row in failed.iterrows()
        ]
        plural = f", of each of {len(scenarios)} scenarios" if len(scenarios) > N_SHOWN else ""
        parts.append(f"*{rows['draws'].max()} draws{plural}.*\n")
    return "\n".join(parts).replace("|  |", "| |").replace("|  |", "| |")


def fill(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def number(row: pd.Series) -> str:
    value = row["value"]
    if pd.isna(value):
        return "—"
    text = f"{100 * value:.3g} %" if row["percent"] else f"{value if abs(value) > 1e-9 else 0:.3g}"
    return text.replace("-", "−")


def claimed(row: pd.Series) -> str:
    """Return the range that is claimed, or nothing."""
    low, high = row["claimed_low"], row["claimed_high"]
    if not (low > -float("inf") or high < float("inf")):
        return ""
    scale, unit = (100, " %") if row["percent"] else (1, "")
    return f"{scale * low:g} to {scale * high:g}{unit}"


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
            table.to_csv(args.output / "claims.csv", index=False, float_format="%.6g")
            (args.output / "claims.md").write_text(markdown(table), encoding="utf-8")
    failed = table[~table["holds"]]
    for row in failed.itertuples():
        print(f"does not hold: {row.study}, {row.scenario}: {row.measure} is {row.value:.3g}")
    print(f"{len(table) - len(failed)} of {len(table)} measures are as claimed: {args.output}")
    return int(len(failed) > 0)


if __name__ == "__main__":
    sys.exit(main())
