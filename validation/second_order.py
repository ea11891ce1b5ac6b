"""Measure the second-order estimators on predictors of which everything is known.

    .venv/bin/python validation/second_order.py                  # 40 minutes on one core
    .venv/bin/python validation/second_order.py --quick          # a minute, to see that it runs
    .venv/bin/python validation/second_order.py --only coverage  # some of the experiments

Prints Markdown tables of bias, coverage, size and power; the results do not depend on which
experiments run. Where two numbers stand as 2.5/3.5, they are percentages of draws in which the
interval was above and below the truth.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

from epistemic_calibration.metrics.binning import quantile_bins
from epistemic_calibration.metrics.law_test import second_order_test
from epistemic_calibration.metrics.one_label import bounds_from_one_label
from epistemic_calibration.metrics.second_order import (
    SecondOrderError,
    mean_second_order_error,
    second_order_error,
    true_second_order_error,
)

LEVEL = 0.05
N_BINS = 50
LABELS = (2, 3, 10, 50)
SIZES = (500, 2000, 10_000)
#: Inputs that the same people label, in the scenario of clusters.
CLUSTER = 20


class Draw(NamedTuple):
    """What one sample of inputs is; everything of the first axis n."""

    p_true: np.ndarray
    hypotheses: np.ndarray
    true_variance: np.ndarray  # Var(p*) of the law of p* at the input
    variance: np.ndarray  # of the law of the hypotheses


class Scenario(NamedTuple):
    """A predictor whose law at every input is a Beta distribution.

    At an input with mean μ, hypotheses are draws of the law with mean μ and variance
    V = μ(1 − μ)/(precision + 1); p* is one of the law with the same mean and ``factor`` times
    this variance, all inputs or, with ``tail``, only where V is in its top 5 %.
    """

    description: str
    factor: float = 1.0
    tail: bool = False
    wrong_inputs: bool = False
    rare: bool = False
    ties: bool = False
    clusters: bool = False

    @property
    def exchangeable(self) -> bool:
        # Of ties, the rows are the law, and p* is one of them.
        return not self.ties

    def laws(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return mean, variance of the hypotheses and variance of p*."""
        mean = expit(rng.normal(-4.0, 1.0, n)) if self.rare else rng.beta(1.2, 1.2, n)
        largest = mean * (1 - mean)
        variance = largest / (1 + _precision(n, rng))
        if self.wrong_inputs:
            return mean, variance, largest / (1 + _precision(n, rng))
        factor = np.where(variance > _tail(self.rare), self.factor, 1) if self.tail else self.factor
        return mean, variance, variance * factor

    def draw(self, n: int, h: int, rng: np.random.Generator) -> Draw:
        if self.ties:
            # Forty cells with the same row at all of their inputs, as of a forest.
            mean, variance, _ = Scenario("")._replace(ties=False).laws(40, rng)
            cells = _beta(mean[:, None], variance[:, None], (40, h), rng)
            cell = rng.integers(0, 40, n)
            rows = cells[cell]
            law = rows.var(axis=1)
            return Draw(rows[np.arange(n), rng.integers(0, h, n)], rows, law, law)
        mean, variance, true_variance = self.laws(n, rng)
        p = _beta(mean, true_variance, n, rng)
        rows = _beta(mean[:, None], variance[:, None], (n, h), rng)
        return Draw(p, rows, true_variance, variance)

    def labels(self, p: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
        """Return the number of positive ones of ``k`` labels of each input."""
        if not self.clusters:
            return rng.binomial(k, p)
        # Each person says 1 with probability p ± p(1 − p), with the same sign for 20 inputs.
        sign = 2.0 * rng.integers(0, 2, (-(-len(p) // CLUSTER), k)) - 1
        probability = (
            p[:, None] + (p * (1 - p))[:, None] * np.repeat(sign, CLUSTER, axis=0)[: len(p)]
        )
        return (rng.random((len(p), k)) < probability).sum(axis=1)


def _precision(n: int, rng: np.random.Generator) -> np.ndarray:
    # At least 2.5, so that three times the variance is possible.
    return 2.5 + np.exp(rng.normal(1.2, 1.2, n))


def _beta(mean: np.ndarray, variance: np.ndarray, shape: tuple | int, rng: np.random.Generator):
    precision = mean * (1 - mean) / variance - 1
    return rng.beta(mean * precision, (1 - mean) * precision, shape)


@cache
def _tail(rare: bool) -> float:
    variance = Scenario("", rare=rare).laws(1_000_000, generator("tail"))[1]
    return float(np.quantile(variance, 0.95))


SCENARIOS = {
    "right": Scenario("right size"),
    "half": Scenario("half the variance", factor=2.0),
    "double": Scenario("twice the variance", factor=0.5),
    "wrong": Scenario("right on average, wrong inputs", wrong_inputs=True),
    "tail": Scenario("a third in the top 5 %", factor=3.0, tail=True),
    "ties": Scenario("right, ties (40 distinct rows)", ties=True),
    "rare": Scenario("right, 3 % positives", rare=True),
    "rare_half": Scenario("half, 3 % positives", factor=2.0, rare=True),
    "clusters": Scenario("right, people label 20 inputs each", clusters=True),
}


class Truth(NamedTuple):
    reducible: float
    gap: float
    share: float
    slope: float
    aleatoric: float
    size_error: float


@cache
def truth(name: str, h: int, n_bins: int = N_BINS) -> Truth:
    scenario = SCENARIOS[name]
    if scenario.ties:
        # The rows are drawn anew each time: only what holds for all of them.
        return Truth(np.nan, 0.0, 1.0, 1.0, np.nan, 0.0)
    rng = generator("truth", name)
    mean, variance, true_variance = scenario.laws(4_000_000, rng)
    covariance = np.cov(variance, true_variance)
    reducible = true_variance.mean() + variance.mean() / h
    # Halves of the draws choose the bins; what is asked of them has this expectation given
    # the law.
    part = slice(0, 600_000)
    rows = _beta(mean[part, None], variance[part, None], (600_000, h // 2), rng)
    gap = (true_variance - variance)[part]
    bins = quantile_bins(rows.var(axis=1), n_bins)
    sums, squares, n = (np.bincount(bins, weights=w) for w in (gap, gap**2, np.ones_like(gap)))
    return Truth(
        reducible=float(reducible),
        gap=float((true_variance - variance).mean()),
        share=float((1 + 1 / h) * variance.mean() / reducible),
        slope=float(covariance[0, 1] / covariance[0, 0]),
        aleatoric=float((mean * (1 - mean) - true_variance).mean()),
        size_error=float(np.mean((sums**2 - squares) / (n * (n - 1)))),
    )


def generator(*key: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def estimate(scenario: Scenario, draw: Draw, s: np.ndarray, k: int, seed: int) -> SecondOrderError:
    groups = np.arange(len(s)) // CLUSTER if scenario.clusters else None
    return second_order_error(
        s,
        k,
        draw.hypotheses,
        exchangeable=scenario.exchangeable,
        # K-means has no part in what is measured here, and is slow.
        binning="quantile",
        groups=groups,
        random_state=seed,
    )


def missed(table: pd.core.groupby.DataFrameGroupBy, name: str) -> pd.Series:
    above, below = (100 * table[f"{name} {side}"].mean() for side in ("above", "below"))
    known = table[f"{name} true"].mean().notna()
    return (above.map("{:.1f}".format) + "/" + below.map("{:.1f}".format)).where(known, "")


QUANTITIES = ("reducible", "gap", "share", "slope", "aleatoric", "size_error")
KEYS = ["scenario", "N", "k"]


def coverage(repeats: Callable[[int], int], *, h: int = 20) -> dict[str, pd.DataFrame]:
    rows = []
    for name, scenario in SCENARIOS.items():
        for n in SIZES:
            # There are no more bins than of 100 inputs each.
            true = truth(name, h, min(N_BINS, n // 100))
            for repeat in range(repeats(n)):
                rng = generator("coverage", name, n, repeat)
                draw = scenario.draw(n, h, rng)
                for k in LABELS:
                    result = estimate(
                        scenario, draw, scenario.labels(draw.p_true, k, rng), k, repeat
                    )
                    row = {"scenario": scenario.description, "N": n, "k": k}
                    for quantity in QUANTITIES:
                        value, target = getattr(result, quantity), getattr(true, quantity)
                        row[quantity] = value.estimate
                        row[f"{quantity} SE"] = value.standard_error
                        row[f"{quantity} above"] = value.ci_low > target
                        row[f"{quantity} below"] = value.ci_high < target
                        row[f"{quantity} true"] = target
                    row["gap ≠ 0"] = not result.gap.ci_low <= 0 <= result.gap.ci_high
                    row["slope ≠ 1"] = not result.slope.ci_low <= 1 <= result.slope.ci_high
                    row["size error > 0"] = result.size_error.ci_low > 0
                    row["detectable"] = result.size_error.minimum_detectable
                    # The delta method on logarithms, beside Fieller's interval.
                    with np.errstate(invalid="ignore", over="ignore"):
                        log_error = result.share.standard_error / result.share.estimate
                        half = np.exp(1.96 * log_error)
                        row["log true"] = true.share
                        row["log above"] = not result.share.estimate / half <= true.share
                        row["log below"] = result.share.estimate * half < true.share
                    rows.append(row)
    table = pd.DataFrame(rows)
    groups = table.groupby(KEYS, sort=False)
    mean, n_repeats = groups.mean(), groups.size()
    bias = pd.DataFrame(
        {
            f"{q}: true, bias / SE of bias, SE / SD": (
                mean[f"{q} true"].map("{:.3g}".format)
                + ", "
                + ((mean[q] - mean[f"{q} true"]) / groups[q].std() * np.sqrt(n_repeats)).map(
                    "{:+.1f}".format
                )
                + ", "
                + (mean[f"{q} SE"] / groups[q].std()).map("{:.2f}".format)
            )
            for q in ("reducible", "gap", "slope", "size_error")
        }
    )
    covers = pd.DataFrame({q: missed(groups, q) for q in QUANTITIES})
    covers["share, delta method"] = missed(groups, "log")
    found = 100 * mean[["gap ≠ 0", "slope ≠ 1", "size error > 0"]]
    found["size error: true"] = mean["size_error true"].map("{:.2g}".format)
    found["detectable"] = mean["detectable"].map("{:.2g}".format)
    found["draws"] = n_repeats
    return {
        "Bias and standard errors": bias,
        "Intervals that miss, % of draws (above/below the truth; 2.5/2.5 is nominal)": covers,
        "Size and power: rejected at 0.05, % of draws": found.round(1),
    }


def tests(repeats: Callable[[int], int], *, h: int = 20) -> dict[str, pd.DataFrame]:
    rows = []
    for name, scenario in SCENARIOS.items():
        if scenario.clusters:
            continue
        for n in (500, 2000):
            for repeat in range(repeats(n)):
                rng = generator("tests", name, n, repeat)
                draw = scenario.draw(n, h, rng)
                for k in (2, 3, 10):
                    s = scenario.labels(draw.p_true, k, rng)
                    row = {"scenario": scenario.description, "N": n, "k": k}
                    for column, n_bins, exchangeable in (
                        ("10 bins", 10, scenario.exchangeable),
                        ("1 bin", 1, scenario.exchangeable),
                        ("10 bins, as if p* were one of the draws", 10, False),
                    ):
                        if exchangeable != scenario.exchangeable and k != 3:
                            continue
                        p = second_order_test(
                            s,
                            k,
                            draw.hypotheses,
                            exchangeable=exchangeable,
                            draws="inputs",
                            n_bins=n_bins,
                            n_resamples=199,
                            random_state=repeat,
                        ).p_value
                        row[column] = 100.0 * (p <= LEVEL)
                    rows.append(row)
    groups = pd.DataFrame(rows).groupby(KEYS, sort=False)
    return {
        "`second_order_test`: rejected at 0.05, % of draws": groups.mean()
        .assign(draws=groups.size())
        .round(1)
    }


def finite(
    repeats: Callable[[int], int], *, n: int = 10_000, k: int = 5
) -> dict[str, pd.DataFrame]:
    """What H draws, instead of their law, do to a right EU and to one twice too small."""
    rows = []
    for name in ("right", "half"):
        scenario = SCENARIOS[name]
        for h in (2, 3, 4, 5, 10, 20, 100):
            true = truth(name, h) if h > 3 else None
            for repeat in range(repeats(n) // (4 if h == 100 else 1)):
                rng = generator("finite", name, h, repeat)
                draw = scenario.draw(n, h, rng)
                s = rng.binomial(k, draw.p_true)
                result = estimate(scenario, draw, s, k, repeat)
                plain = second_order_error(
                    s, k, draw.hypotheses, exchangeable=False, binning="quantile"
                )
                row = {
                    "scenario": scenario.description,
                    "H": h,
                    "share": result.share.estimate,
                    "slope": result.slope.estimate,
                    "size error": result.size_error.estimate,
                    "gap ≠ 0, %": 100.0 * (not result.gap.ci_low <= 0 <= result.gap.ci_high),
                    "size error > 0, %": 100.0 * (result.size_error.ci_low > 0),
                    "share, c = 1": plain.share.estimate,
                    "slope by least squares": plain.slope.estimate,
                }
                # c_H, but bins of the EU that is judged.
                bins = quantile_bins(draw.hypotheses.var(axis=1), N_BINS)
                same = second_order_error(s, k, draw.hypotheses, bins=bins).size_error
                row["size error, bins of the same draws"] = same.estimate
                row["> 0, %"] = 100.0 * (same.ci_low > 0)
                row["size error: true"] = true.size_error if true else np.nan
                rows.append(row)
    groups = pd.DataFrame(rows).groupby(["scenario", "H"], sort=False)
    table = groups.mean()
    formats = {
        column: "{:.2g}" if "size error" in column and "%" not in column else "{:.3g}"
        for column in table
    }
    table = pd.DataFrame({c: table[c].map(formats[c].format) for c in table})
    return {f"Finite numbers of draws (N = {n}, k = {k})": table.assign(draws=groups.size())}


def clusters(repeats: Callable[[int], int], *, h: int = 20) -> dict[str, pd.DataFrame]:
    """What happens if it is not said that the same people labelled several inputs."""
    scenario, true = SCENARIOS["clusters"], truth("clusters", 20)
    rows = []
    for n in (500, 2000, 10_000):
        for repeat in range(repeats(n)):
            rng = generator("clusters", n, repeat)
            draw = scenario.draw(n, h, rng)
            for k in LABELS:
                s = scenario.labels(draw.p_true, k, rng)
                row = {"N": n, "k": k}
                for column, told in (("groups given", scenario), ("not given", SCENARIOS["right"])):
                    result = estimate(told, draw, s, k, repeat)
                    inside = result.gap.ci_low <= true.gap <= result.gap.ci_high
                    row[f"gap covered, {column}"] = 100.0 * inside
                    found = result.size_error.ci_low > 0
                    row[f"size error > 0, {column}"] = 100.0 * found
                rows.append(row)
    groups = pd.DataFrame(rows).groupby(["N", "k"], sort=False)
    return {
        "People who label 20 inputs each, %": groups.mean().round(1).assign(draws=groups.size())
    }


def tasks(repeats: Callable[[int], int], *, n: int = 1000, h: int = 20) -> dict[str, pd.DataFrame]:
    """Means over ten one-vs-all tasks that share their inputs."""
    rows = []
    for scale, description in ((1.0, "right size"), (0.6, "0.36 of the variance")):
        big = generator("tasks", scale)
        _, p, mean_rows = _softmax_draws(200_000, 2, scale, big)
        # Of the law, by two draws of it: Var = E(a − b)²/2.
        variance = np.mean((mean_rows[:, :, 0] - mean_rows[:, :, 1]) ** 2) / 2
        centre = mean_rows.prod(axis=2) - p * mean_rows.sum(axis=2) + p**2
        true = float(centre.mean() - variance)
        for repeat in range(repeats(n)):
            rng = generator("tasks", scale, repeat)
            counts, _, hypotheses = _softmax_draws(n, h, scale, rng)
            of_tasks = [hypotheses[:, c] for c in range(10)]
            result = mean_second_order_error(
                counts.T, 3, of_tasks, binning="quantile", random_state=repeat
            )
            single = [
                second_order_error(s, 3, r, binning="quantile").gap.standard_error
                for s, r in zip(counts.T[:3], of_tasks[:3], strict=True)
            ]
            rows.append(
                {
                    "scenario": description,
                    "gap: true": true,
                    "gap": result.gap.estimate,
                    "SE": result.gap.standard_error,
                    "SE if independent": np.sqrt(np.mean(np.square(single)) / 10),
                    "covered, %": 100.0 * (result.gap.ci_low <= true <= result.gap.ci_high),
                    "size error > 0, %": 100.0 * (result.size_error.ci_low > 0),
                }
            )
    groups = pd.DataFrame(rows).groupby("scenario", sort=False)
    table = groups.mean().assign(SD=groups["gap"].std(), draws=groups.size())
    return {f"Means over ten tasks (N = {n}, k = 3)": table.map("{:.3g}".format)}


def _softmax_draws(
    n: int, h: int, scale: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts of 3 labels, p* and hypotheses; their logits scatter around the same."""
    logits = rng.normal(0, 1.5, (n, 10))
    p = softmax(logits + rng.normal(0, 0.7, (n, 10)), axis=1)
    noise = rng.normal(0, 0.7 * scale, (n, 10, h))
    hypotheses = softmax(logits[:, :, None] + noise, axis=1)
    return rng.multinomial(3, p), p, hypotheses


def bounds(repeats: Callable[[int], int]) -> dict[str, pd.DataFrame]:
    """Bounds from one label, with a good, a middling and twenty equally poor references."""
    rows = []
    for n in (500, 2000, 10_000):
        for repeat in range(repeats(n)):
            rng = generator("bounds", n, repeat)
            p = rng.beta(0.5, 0.5, n)
            y = rng.random(n) < p
            method = 0.5 + 0.5 * (p - 0.5)
            # Of the population: E(p − ½)² = 1/8, E p(1 − p) = 1/8 for this Beta distribution.
            true, true_brier = 0.25 / 8, 0.25 / 8 + 1 / 8
            poor = np.clip(p + rng.normal(0, 0.12, (20, n)), 0, 1)
            for description, reference in (
                ("knows p*", p),
                ("errs by half as much", 0.5 + 0.75 * (p - 0.5)),
                ("best of 20 poor ones", poor),
            ):
                result = bounds_from_one_label(y, method, reference, random_state=repeat)
                row = {
                    "reference": description,
                    "N": n,
                    "lower": result.lower.estimate,
                    "upper": result.upper.estimate,
                    "truth inside, %": 100.0 * (result.ci_low <= true <= result.ci_high),
                    "upper covered, %": 100.0
                    * (result.upper.ci_low <= true_brier <= result.upper.ci_high),
                }
                if description == "knows p*":
                    covered = result.lower.ci_low <= true <= result.lower.ci_high
                    row["lower covered, %"] = 100.0 * covered
                rows.append(row)
    groups = pd.DataFrame(rows).groupby(["reference", "N"], sort=False)
    table = groups.mean().round(4).assign(draws=groups.size())
    return {"Bounds from one label (true reducible error 0.0312)": table}


def parts(repeats: Callable[[int], int], *, h: int = 20) -> dict[str, pd.DataFrame]:
    """The two parts of the reducible error over bins of the hypotheses."""
    rows = []
    for name in ("right", "half", "rare"):
        scenario = SCENARIOS[name]
        for n in (2000, 10_000):
            # The bins are quantiles, so those of a large sample are the same but for noise.
            large = scenario.draw(300_000, h, generator("parts", name))
            true = true_second_order_error(large.p_true, large.hypotheses, binning="quantile")
            for repeat in range(repeats(n)):
                rng = generator("parts", name, n, repeat)
                draw = scenario.draw(n, h, rng)
                for k in (2, 10):
                    result = estimate(scenario, draw, rng.binomial(k, draw.p_true), k, repeat)
                    row = {"scenario": scenario.description, "N": n, "k": k}
                    for part in ("calibration_error", "variance_in_bins"):
                        value, target = getattr(result, part), getattr(true, part).estimate
                        row[f"{part}: true"] = target
                        row[f"{part}: estimate"] = value.estimate
                        row[f"{part}: covered, %"] = 100.0 * (
                            value.ci_low <= target <= value.ci_high
                        )
                    rows.append(row)
    groups = pd.DataFrame(rows).groupby(KEYS, sort=False)
    table = groups.mean()
    table = pd.DataFrame(
        {c: table[c].map(("{:.1f}" if "%" in c else "{:.3g}").format) for c in table}
    )
    return {"Parts of the reducible error over 50 bins": table.assign(draws=groups.size())}


EXPERIMENTS = {
    "coverage": coverage,
    "tests": tests,
    "finite": finite,
    "clusters": clusters,
    "tasks": tasks,
    "parts": parts,
    "bounds": bounds,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, to see that it runs")
    parser.add_argument("--draws", type=int, default=1000, help="of each sample (default 1000)")
    parser.add_argument("--only", nargs="+", default=list(EXPERIMENTS), help="experiments to run")
    args = parser.parse_args()
    unknown = set(args.only) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"unknown experiments {sorted(unknown)}; there are {list(EXPERIMENTS)}")

    def of_coverage(n: int) -> int:
        # Samples of 10,000 are slow.
        return 3 if args.quick else args.draws // 2 if n > 5000 else args.draws

    def of_others(n: int) -> int:
        return 3 if args.quick else args.draws // 5 if n > 5000 else args.draws * 4 // 10

    # Small products of matrices: threads would only wait for each other.
    with threadpool_limits(1):
        for name in args.only:
            repeats = of_coverage if name == "coverage" else of_others
            for title, table in EXPERIMENTS[name](repeats).items():
                print(
                    f"\n### {title}\n\n{table.reset_index().to_markdown(index=False)}", flush=True
                )


if __name__ == "__main__":
    main()
