"""Measure the corrected error and its split where bins could hide error or invent dependence.

    .venv/bin/python validation/certain_predictions.py                # 10 minutes on one core
    .venv/bin/python validation/certain_predictions.py --quick        # a minute
    .venv/bin/python validation/certain_predictions.py --only splits  # some of the experiments

Prints Markdown tables, and writes them as CSV with ``--output FOLDER``; the results do not depend
on which experiments run. P(Y = 1 | row) is set, so TECE and what the bins see of it are exact. All
columns in % of draws are those of level 0.05.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

from epistemic_calibration import metrics
from epistemic_calibration.metrics.binning import coarse_bins

LEVEL = 0.05
N_BINS = 50
N_HYPOTHESES = 20


class Draw(NamedTuple):
    """Rows of one sample, and P(Y = 1) at each: given its row, and given its mean alone."""

    hypotheses: np.ndarray
    p_true: np.ndarray
    p_of_mean: np.ndarray


#: Deviations of mean 0 and variance 1: even, one value far out, in two groups, in three.
EVEN = np.linspace(-1, 1, N_HYPOTHESES) / np.linspace(-1, 1, N_HYPOTHESES).std()
SKEWED = np.repeat([2.0, -0.5], [N_HYPOTHESES // 5, N_HYPOTHESES * 4 // 5])
TWO = np.repeat([-1.0, 1.0], N_HYPOTHESES // 2)
THREE = np.repeat([-1.0, 0, 1.0], [N_HYPOTHESES // 4, N_HYPOTHESES // 2, N_HYPOTHESES // 4])
THREE *= np.sqrt(2)


def rows(mean: np.ndarray, spread: np.ndarray, shape: np.ndarray = EVEN) -> np.ndarray:
    """Return hypotheses with these means and standard deviations ``spread``·Δ(1 − Δ)."""
    return mean[:, None] + (spread * mean * (1 - mean))[:, None] * shape


def tempered(mean: np.ndarray, slope: float = 0.6) -> np.ndarray:
    odds = (mean / (1 - mean)) ** slope
    return odds / (1 + odds)


def uncertain(share: float) -> Callable[[int, np.random.Generator], Draw]:
    """The mean is overconfident; most predictions are nearly 0; the row is a function of Δ."""

    def draw(n: int, rng: np.random.Generator) -> Draw:
        position = np.where(rng.random(n) < share, rng.normal(0, 2, n), rng.normal(-8, 1, n))
        mean = expit(position)
        frequency = tempered(mean)
        return Draw(rows(mean, np.full(n, 0.5)), frequency, frequency)

    return draw


def cells(n_rows: int) -> Callable[[int, np.random.Generator], Draw]:
    """Few distinct rows, of distinct means, that err by 0.1."""

    def draw(n: int, rng: np.random.Generator) -> Draw:
        means = rng.uniform(0.1, 0.9, n_rows)
        frequency = means + rng.choice([-0.1, 0.1], n_rows)
        distinct = rows(means, rng.uniform(0.1, 0.5, n_rows))
        cell = rng.integers(0, n_rows, n)
        return Draw(distinct[cell], frequency[cell], frequency[cell])

    return draw


def steps(n_steps: int, *, shared: bool) -> Callable[[int, np.random.Generator], Draw]:
    """The error jumps between ±0.08 as Δ grows; so does EU, if ``shared``, at the same Δ."""

    def draw(n: int, rng: np.random.Generator) -> Draw:
        mean = rng.uniform(0.1, 0.9, n)
        sign = 1 - 2 * (np.floor((mean - 0.1) / 0.8 * n_steps) % 2)
        spread = np.where(sign > 0, 0.5, 0.2) if shared else rng.uniform(0.2, 0.5, n)
        frequency = mean + 0.08 * sign
        return Draw(rows(mean, spread), frequency, frequency)

    return draw


def zeros(n: int, rng: np.random.Generator) -> Draw:
    """Half of the predictions are exactly 0, where 1 % are positive; the others are right."""
    mean = np.where(rng.random(n) < 0.5, 0, rng.uniform(0, 1, n))
    frequency = np.where(mean == 0, 0.01, mean)
    return Draw(rows(mean, np.full(n, 0.3)), frequency, frequency)


def dependent(kind: str, *, effect: float, rare: bool = False):
    """The mean is right and ``kind`` of the row tells of the label, by ± effect·Δ(1 − Δ)."""

    def draw(n: int, rng: np.random.Generator) -> Draw:
        mean = expit(rng.normal(-3, 1.8, n) if rare else rng.normal(0, 1.5, n))
        spread = 0.3 * rng.uniform(0.7, 1.3, n)
        if kind == "tail":
            spread = 0.45 * np.exp(-np.abs(rng.normal(0, 1, n)))
            told = spread > 0.45 * np.exp(-0.0627)
            # Nothing of it is in the mean: 5 % up, 95 % a little down.
            sign = np.where(told, 1, -0.05 / 0.95)
            hypotheses = rows(mean, spread)
        else:
            told = rng.random(n) < 0.5
            sign = np.where(told, 1.0, -1.0)
            spread = np.where(told, 1.5, 0.5) * spread if kind == "spread" else spread
            first, second = {
                "spread": (EVEN, EVEN),
                "skewness": (SKEWED, -SKEWED),
                "bimodality": (TWO, THREE),
            }[kind]
            hypotheses = np.where(
                told[:, None], rows(mean, spread, first), rows(mean, spread, second)
            )
        frequency = np.clip(mean + effect * sign * mean * (1 - mean), 0, 1)
        return Draw(hypotheses, frequency, mean)

    return draw


def independent(*, rare: bool = False) -> Callable[[int, np.random.Generator], Draw]:
    """A calibrated predictor whose spread varies."""

    def draw(n: int, rng: np.random.Generator) -> Draw:
        mean = expit(rng.normal(-3, 1.8, n) if rare else rng.normal(0, 1.5, n))
        return Draw(rows(mean, np.exp(rng.normal(-1.5, 0.4, n)).clip(0, 0.5)), mean, mean)

    return draw


#: No epistemic dependence.
WITHOUT = {
    "calibrated": independent(),
    "calibrated, rare class": independent(rare=True),
    **{f"overconfident, {s} % uncertain": uncertain(s / 100) for s in (5, 10, 20, 50, 100)},
    "20 distinct rows": cells(20),
    "60 distinct rows": cells(60),
    "4 steps, EU jumps too": steps(4, shared=True),
    "10 steps, EU jumps too": steps(10, shared=True),
    "10 steps": steps(10, shared=False),
    "80 steps": steps(80, shared=False),
    "half exactly 0": zeros,
}
DEPENDENT = {
    "spread": dependent("spread", effect=0.3),
    "spread, rare class": dependent("spread", effect=0.4, rare=True),
    "skewness": dependent("skewness", effect=0.3),
    "bimodality": dependent("bimodality", effect=0.3),
    "tail of EU (top 5 %)": dependent("tail", effect=0.8),
}


def generator(*key: str | int) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(str(k).encode()) for k in key])


def seen(error: np.ndarray, bins: np.ndarray) -> float:
    """Return the mean of the corrected estimate over labels whose errors have these means."""
    n = np.bincount(bins)
    used = n > 1
    sums, squares = (np.bincount(bins, weights=w)[used] for w in (error, error**2))
    n = n[used]
    return float(((sums**2 - squares) / (n - 1)).sum() / n.sum())


def splits(draws: Callable[[int], tuple[int, int]]) -> pd.DataFrame:
    """The split and the test of independence."""
    result = []
    for name, draw in (WITHOUT | DEPENDENT).items():
        for n in (1000, 10_000):
            n_predictors, n_labels = draws(n)
            for predictor in range(n_predictors):
                rng = generator(name, n, predictor)
                hypotheses, p_true, p_of_mean = draw(n, rng)
                mean = hypotheses.mean(axis=1)
                fine = metrics.assign_bins(hypotheses, binning="nested", n_bins=N_BINS)
                tece = np.mean((p_true - mean) ** 2)
                total = seen(p_true - mean, fine)
                dependence = total - seen(p_true - mean, coarse_bins(mean, N_BINS))
                for _ in range(n_labels):
                    y = (rng.random(n) < p_true).astype(int)
                    split = metrics.split_epistemic_calibration_error(
                        y, hypotheses, bins=fine, n_bins=N_BINS
                    )
                    test = metrics.epistemic_independence_test(y, hypotheses)
                    row = {
                        "scenario": name,
                        "N": n,
                        "TECE, 1e-4": 1e4 * tece,
                        "estimate": 1e4 * split.total.estimate,
                        "SE": 1e4 * split.total.standard_error,
                        "bins see": 1e4 * total,
                        "dependence": 1e4 * np.mean((p_true - p_of_mean) ** 2),
                        "dependence seen": 1e4 * dependence,
                        "covers TECE, %": split.total.ci_low <= tece <= split.total.ci_high,
                        "covers what bins see, %": split.total.ci_low
                        <= max(total, 0)
                        <= split.total.ci_high,
                        "dependence above 0, %": split.epistemic_dependence.ci_low > 0,
                        "independence rejected, %": test.p_value <= LEVEL,
                    }
                    result.append(row)
    return summary(result, ["scenario", "N"])


def tasks(draws: Callable[[int], tuple[int, int]]) -> pd.DataFrame:
    """The mean over ten exclusive classes, of which MNIST's networks are nearly certain."""
    result = []
    for n in (1000, 10_000):
        n_predictors, n_labels = (max(1, m // 2) for m in draws(n))
        for predictor in range(n_predictors):
            rng = generator("tasks", n, predictor)
            logits = rng.normal(0, 2, (n, 10))
            logits[np.arange(n), rng.integers(0, 10, n)] += rng.gamma(4, 3, n)
            means, p_true = softmax(logits, axis=1), softmax(0.7 * logits, axis=1)
            bins = [
                metrics.assign_bins(rows(m, np.full(n, 0.5)), binning="nested", n_bins=N_BINS)
                for m in means.T
            ]
            tece = np.mean((p_true - means) ** 2)
            total = np.mean([seen(e, b) for e, b in zip((p_true - means).T, bins, strict=True)])
            for _ in range(n_labels):
                label = (rng.random((n, 1)) > p_true.cumsum(axis=1)).sum(axis=1)
                y = [(label == c).astype(int) for c in range(10)]
                error = metrics.mean_corrected_error(y, list(means.T), bins, n_resamples=199)
                result.append(
                    {
                        "N": n,
                        "TECE, 1e-4": 1e4 * tece,
                        "estimate": 1e4 * error.estimate,
                        "SE": 1e4 * error.standard_error,
                        "bins see": 1e4 * total,
                        "covers TECE, %": error.ci_low <= tece <= error.ci_high,
                        "covers what bins see, %": error.ci_low <= total <= error.ci_high,
                    }
                )
    return summary(result, ["N"])


def small(draws: Callable[[int], tuple[int, int]]) -> pd.DataFrame:
    """Tests of independence and intervals with few samples, or few positives."""
    result = []
    positives = {50: (0.5, 0.1), 100: (0.5, 0.1, 0.01), 300: (0.5, 0.02), 1000: (0.5, 0.01, 0.003)}
    for n, frequencies in positives.items():
        for frequency in frequencies:
            for repeat in range(20 * draws(n)[0]):
                rng = generator("small", n, str(frequency), repeat)
                a = 0.8 if frequency == 0.5 else 0.5
                mean = rng.beta(a, a / frequency - a, n).clip(1e-6, 1 - 1e-6)
                hypotheses = rows(mean, np.exp(rng.normal(-1.5, 0.4, n)).clip(0, 0.5))
                y = (rng.random(n) < mean).astype(int)
                reject = {
                    f"{method} rejects, %": metrics.epistemic_independence_test(
                        y, hypotheses, method=method, random_state=repeat
                    ).p_value
                    <= LEVEL
                    for method in ("gcm", "score")
                }
                error = metrics.corrected_epistemic_calibration_error(y, hypotheses)
                result.append(
                    {"N": n, "positives, %": str(100 * frequency), "TECE, 1e-4": 0.0}
                    | reject
                    | {"covers TECE, %": error.ci_low == 0}
                )
    for n, frequency in ((20, 0.1), (50, 0.04), (100, 0.02), (100, 0.1)):
        for repeat in range(40 * draws(n)[0]):
            y = generator("zeros", n, repeat).random(n) < frequency
            error = metrics.corrected_epistemic_calibration_error(y, np.zeros((n, 5)))
            result.append(
                {
                    "N": n,
                    "positives, %": f"{100 * frequency:g}, predictions 0",
                    "TECE, 1e-4": 1e4 * frequency**2,
                    "covers TECE, %": error.ci_low <= frequency**2 <= error.ci_high,
                }
            )
    return summary(result, ["N", "positives, %"])


def summary(result: list[dict], keys: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame(result)
    groups = frame.groupby(keys, sort=False)
    table = groups.mean()
    if "estimate" in table:
        table.insert(2, "SD", groups["estimate"].std())
    if "bins see" in table:
        position = table.columns.get_loc("bins see")
        table.insert(position, "bins see, %", 100 * table.pop("bins see") / table["TECE, 1e-4"])
    for column in table:
        if frame.get(column, pd.Series(dtype=float)).dtype in (bool, object):
            table[column] = 100 * table[column].astype(float)
    return table.assign(draws=groups.size()).reset_index()


EXPERIMENTS = {"splits": splits, "tasks": tasks, "small": small}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, to see that it runs")
    parser.add_argument("--output", type=Path, help="folder, for the tables as CSV")
    parser.add_argument("--only", nargs="+", default=list(EXPERIMENTS), help="experiments to run")
    parser.add_argument("--labels", type=int, default=20, help="label draws of each predictor")
    args = parser.parse_args()
    unknown = set(args.only) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"unknown experiments {sorted(unknown)}; there are {list(EXPERIMENTS)}")

    def draws(n: int) -> tuple[int, int]:
        """Return how many predictors of n samples, and how many labels of each."""
        if args.quick:
            return 2, 2
        return (10 if n > 5000 else 20), args.labels

    # Small products of matrices: threads would only wait for each other.
    with threadpool_limits(1):
        for name in args.only:
            table = EXPERIMENTS[name](draws)
            print(f"\n### {EXPERIMENTS[name].__doc__}\n")
            print(table.to_markdown(index=False, floatfmt=".3g"), flush=True)
            if args.output is not None:
                args.output.mkdir(parents=True, exist_ok=True)
                table.to_csv(args.output / f"{name}.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
