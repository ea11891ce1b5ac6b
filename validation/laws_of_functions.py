"""Measure what is said of a right law of functions, and of labels collected by a rule.

    .venv/bin/python validation/laws_of_functions.py           # 25 minutes on one core
    .venv/bin/python validation/laws_of_functions.py --quick   # a minute, to see that it runs

Members and p* are functions σ(φ(x)'w), w from one normal law: the members are right. How many
directions φ has is how many independent things a function can be wrong in. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

from epistemic_calibration.metrics import LabelCollectionWarning, counts_of_first_labels
from epistemic_calibration.metrics.label_collection import stopping_fault
from epistemic_calibration.metrics.law_test import second_order_test
from epistemic_calibration.metrics.second_order import second_order_error

LEVEL = 0.05
QUANTITIES = ("gap", "share", "slope")
#: Directions of the law; 0 is a draw at each input, independent of those at others.
DIRECTIONS = (2, 10, 50, 500, 0)
#: Draws and inputs from which the truth is worked out.
N_LAW, N_TRUTH = 400, 10_000


def draw(
    rng: np.random.Generator, n: int, h: int, directions: int, centre: np.ndarray, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return p* and h members at n new inputs."""
    x = rng.standard_normal((n, len(centre))) / np.sqrt(len(centre))
    if directions == 0:
        middle = (x @ centre)[:, None]
        rows = expit(middle + rng.standard_normal((n, h + 1)))
        return rows[:, 0], rows[:, 1:]
    weights = centre[:, None] + rng.standard_normal((len(centre), h))
    return expit(x @ truth), expit(x @ weights)


def exact(
    rng: np.random.Generator, h: int, directions: int, centre: np.ndarray, truth: np.ndarray
) -> dict[str, float]:
    """Return what the law, with this p*, has over all inputs."""
    if directions == 0:
        return {"gap": 0.0, "share": 1.0, "slope": 1.0}
    p, law = draw(rng, N_TRUTH, N_LAW, directions, centre, truth)
    variance = law.var(axis=1, ddof=1)
    squared = (p - law.mean(axis=1)) ** 2 - variance / N_LAW
    halves = law[:, ::2].var(axis=1, ddof=1), law[:, 1::2].var(axis=1, ddof=1)
    said = variance.mean()
    return {
        "gap": squared.mean() - said,
        "share": (1 + 1 / h) * said / (squared.mean() + said / h),
        "slope": np.cov(variance, squared)[0, 1] / np.cov(*halves)[0, 1],
    }


def laws(repeats: int, *, n: int = 2000, k: int = 5, h: int = 20) -> dict[str, pd.DataFrame]:
    rows = []
    for directions in DIRECTIONS:
        for repeat in range(repeats):
            rng = np.random.default_rng([repeat, directions])
            size = directions or 10
            centre = 1.5 * rng.standard_normal(size)
            truth = centre + rng.standard_normal(size)
            true = exact(rng, h, directions, centre, truth)
            p, members = draw(rng, n, h, directions, centre, truth)
            s = rng.binomial(k, p)
            found = second_order_error(s, k, members, binning="quantile")
            row: dict[str, object] = {"directions": directions or "each input alone"}
            row["gap of these members holds 0"] = found.gap.ci_low <= 0 <= found.gap.ci_high
            for name in QUANTITIES:
                for of, result in (("members", found), ("law", found.law)):
                    value = getattr(result, name)
                    row[f"{name}: {of}"] = value.ci_low <= true[name] <= value.ci_high
            test = second_order_test(s, k, members, n_resamples=199)
            row["rejected"] = test.p_value <= LEVEL
            rows.append(row)
    groups = pd.DataFrame(rows).groupby("directions", sort=False)
    table = (100 * groups.mean()).round(1).assign(draws=groups.size())
    return {f"Right laws of functions, % of draws (N = {n}, k = {k}, H = {h})": table}


def rules(repeats: int, *, n: int = 3000, h: int = 10) -> dict[str, pd.DataFrame]:
    rows = []
    for repeat in range(repeats):
        rng = np.random.default_rng([repeat, 7])
        mean = rng.beta(1.5, 1.5, n).clip(0.01, 0.99)
        precision = 1.5 + np.exp(rng.normal(1.2, 1.2, n))
        p, *members = rng.beta(mean * precision, (1 - mean) * precision, (h + 1, n))
        members = np.stack(members, axis=1)
        labels = (rng.random((n, 5)) < p[:, None]).astype(float)
        sums, number = labels.cumsum(axis=1).astype(int), np.arange(1, 6)
        agree = labels[:, 0] == labels[:, 1]
        for rule, k in {
            "five of each input": np.full(n, 5),
            "two to five, by the input": np.where(members.var(axis=1) > 0.02, 5, 2),
            "three more where the first two differ": np.where(agree, 2, 5),
            "until two agree": np.where(agree, 2, 3),
            "until three agree": (np.maximum(sums, number - sums) >= 3).argmax(axis=1) + 1,
        }.items():
            s = sums[np.arange(n), k - 1]
            asked = np.where(number <= k[:, None], labels, np.nan)
            share, first = (
                second_order_error(*counts, members, binning="quantile").share
                for counts in ((s, k), counts_of_first_labels(asked))
            )
            rows.append(
                {
                    "rule": rule,
                    "warned, %": 100.0 * (stopping_fault(s, k) is not None),
                    "share (1 is right)": share.estimate,
                    "covered, %": 100.0 * (share.ci_low <= 1 <= share.ci_high),
                    "share of the first two": first.estimate,
                    "covered by these, %": 100.0 * (first.ci_low <= 1 <= first.ci_high),
                }
            )
    groups = pd.DataFrame(rows).groupby("rule", sort=False)
    return {"Labels by rule": groups.mean().round(2).assign(draws=groups.size())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, to see that it runs")
    parser.add_argument("--draws", type=int, default=200, help="of each law (default 200)")
    args = parser.parse_args()
    repeats = 3 if args.quick else args.draws
    # Warnings are counted.
    warnings.simplefilter("ignore", LabelCollectionWarning)
    with threadpool_limits(1):
        for experiment in (rules, laws):
            for title, table in experiment(repeats).items():
                print(
                    f"\n### {title}\n\n{table.reset_index().to_markdown(index=False)}", flush=True
                )


if __name__ == "__main__":
    main()
