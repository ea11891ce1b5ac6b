"""Measure the estimators of several classes on predictors of which everything is known.

    .venv/bin/python validation/several_classes.py                # an hour on one core
    .venv/bin/python validation/several_classes.py --quick        # two minutes, to see that it runs
    .venv/bin/python validation/several_classes.py --only bins    # some of the experiments

Prints Markdown tables of bias, coverage, size and power, and of how bins compare; the results do
not depend on which experiments run. Where two numbers stand as 2.5/3.5, they are percentages of
draws in which the interval was above and below the truth.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import softmax
from scipy.stats import norm
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

from epistemic_calibration import metrics

LEVEL = 0.05
N_HYPOTHESES = 10
N_RESAMPLES = 199
CLASSES = (3, 10)
SIZES = (1000, 10_000)


class Draw(NamedTuple):
    """Predictions, and P(Y | Π), which is a function of them."""

    hypotheses: np.ndarray
    mean: np.ndarray
    p: np.ndarray

    @property
    def error(self) -> np.ndarray:
        return self.p - self.mean


class Scenario(NamedTuple):
    """A predictor whose hypotheses are draws of a Dirichlet distribution at every input.

    P(Y | Π) ∝ Δ^exponent, and ``dependence`` less of an exponent where the hypotheses vary
    much, more where they vary little. With ``swap``, half of the probability of class 0 goes to
    class 1 where the hypotheses vary much, and back where they vary little; with ``shape``,
    where they differ about class 0 and where they differ about class 1.
    """

    description: str
    exponent: float = 1.0
    dependence: float = 0.0
    scale: float = 1.5
    by_class: bool = False
    swap: bool = False
    shape: bool = False

    def draw(self, n: int, n_classes: int, rng: np.random.Generator) -> Draw:
        logits = rng.normal(0, self.scale, (n, n_classes))
        if self.shape:
            # Only the logit of one of two classes is uncertain.
            noise = np.zeros((n, N_HYPOTHESES, n_classes))
            doubtful = rng.integers(0, 2, n)
            noise[np.arange(n), :, doubtful] = rng.normal(0, 1.5, (n, N_HYPOTHESES))
            hypotheses = softmax(logits[:, None] + noise, axis=2)
        else:
            law = softmax(logits, axis=1) + 1e-4
            precision = np.where(rng.random(n) < 0.5, 4.0, 40.0) * (1 if n_classes < 5 else 2)
            parameters = np.repeat((law * precision[:, None])[:, None], N_HYPOTHESES, axis=1)
            gamma = rng.standard_gamma(parameters) + 1e-12
            hypotheses = gamma / gamma.sum(axis=2, keepdims=True)
        mean = hypotheses.mean(axis=1)
        return Draw(hypotheses, mean, self._truth(hypotheses, mean))

    def _truth(self, hypotheses: np.ndarray, mean: np.ndarray) -> np.ndarray:
        n_classes = mean.shape[1]
        largest = 1 - np.square(mean).sum(axis=1)
        relative = np.sqrt(hypotheses.var(axis=1).sum(axis=1) / largest)
        # Between what both precisions give.
        much = relative > (0.28 if n_classes < 5 else 0.21)
        power = self.exponent + self.dependence * np.where(much, -1, 1)
        p = mean ** power[:, None]
        if self.by_class:
            p = p * np.linspace(0.75, 1.3, n_classes)
        p /= p.sum(axis=1, keepdims=True)
        if self == Scenario(self.description):
            # Not but for rounding.
            return mean
        if self.swap or self.shape:
            spread = hypotheses.std(axis=1)[:, :2] / np.sqrt(mean * (1 - mean))[:, :2]
            first = spread[:, 0] > spread[:, 1] if self.shape else much
            moved = 0.5 * np.where(first, p[:, 0], -p[:, 1])
            p[:, 0] -= moved
            p[:, 1] += moved
        return p


SCENARIOS = {
    "calibrated": Scenario("calibrated"),
    "over": Scenario("overconfident", exponent=0.7),
    "certain": Scenario("overconfident, nearly certain", exponent=0.7, scale=4.0),
    "spread": Scenario("exponent depends on spread", dependence=0.3),
    "class": Scenario("classes too frequent", by_class=True),
    "swap": Scenario("two classes swap by spread", swap=True),
    "shape": Scenario("by which class is in doubt", shape=True),
}


def generator(*key: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def labels_of(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random((len(p), 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)


def seen(error: np.ndarray, bins: np.ndarray) -> float:
    """Return the mean over labels of the estimate, of independent errors with these means."""
    n = np.bincount(bins)
    sums = np.stack([np.bincount(bins, weights=e) for e in error.T], axis=1)
    squares = np.bincount(bins, weights=np.square(error).sum(axis=1))
    used = n > 1
    values = (np.square(sums).sum(axis=1) - squares)[used] / (n * (n - 1))[used]
    return float(np.average(values, weights=n[used]))


def row_of(
    result: metrics.CorrectedError, true: float, expected: float, p: float
) -> dict[str, float]:
    return {
        "true": true,
        "seen": expected,
        "estimate": result.estimate,
        "SE": result.standard_error,
        "above": 100.0 * (result.ci_low > expected),
        "below": 100.0 * (result.ci_high < expected),
        "covered": 100.0 * (result.ci_low <= true <= result.ci_high),
        "rejected": 100.0 * (p <= LEVEL),
        "detectable": result.minimum_detectable,
    }


def estimates_of(
    draw: Draw, y: np.ndarray, seed: int, *, classwise: bool
) -> dict[str, dict[str, float]]:
    """Return what each estimator makes of labels, beside the truth of what it estimates."""
    hypotheses, error = draw.hypotheses, draw.error
    n, n_classes = error.shape
    bins = metrics.assign_class_bins(hypotheses)
    options = {"n_resamples": N_RESAMPLES, "random_state": seed}
    p = metrics.canonical_epistemic_calibration_test(y, hypotheses, bins=bins, **options).p_value
    result = metrics.canonical_epistemic_calibration_error(y, hypotheses, bins=bins)
    true = float(np.square(error).sum() / n)
    rows = {"canonical": row_of(result, true, seen(error, bins), p)}

    task = metrics.top_label_task(y, hypotheses)
    p = metrics.epistemic_calibration_test(
        task.y_true, task.hypotheses, bins=task.bins, **options
    ).p_value
    result = metrics.top_label_epistemic_calibration_error(y, hypotheses, bins=task.bins)
    top = error[np.arange(n), task.predicted][:, None]
    rows["top label"] = row_of(result, float(np.mean(top**2)), seen(top, task.bins), p)
    if not classwise:
        return rows

    partitions = [
        metrics.assign_bins(hypotheses[:, :, c], n_bins=50, binning="nested")
        for c in range(n_classes)
    ]
    result = metrics.classwise_epistemic_calibration_error(
        y, hypotheses, bins=partitions, n_resamples=N_RESAMPLES, random_state=seed
    ).mean
    # There is no exact test of the mean: an interval above 0 rejects, 2.5 % if it is right.
    p = float(result.ci_low <= 0)
    expected = np.mean([seen(error[:, [c]], partitions[c]) for c in range(n_classes)])
    rows["mean of classes"] = row_of(result, true / n_classes, float(expected), p)
    return rows


def coverage(repeats: Callable[[int], int]) -> dict[str, pd.DataFrame]:
    rows = []
    for name in ("calibrated", "over", "certain", "spread"):
        scenario = SCENARIOS[name]
        for n_classes in CLASSES:
            for n in SIZES:
                for repeat in range(repeats(n)):
                    rng = generator("coverage", name, n_classes, n, repeat)
                    draw = scenario.draw(n, n_classes, rng)
                    y = labels_of(draw.p, rng)
                    # The wild bootstrap of ten tasks is slow.
                    classwise = n_classes * n < 100_000 or repeat % 4 == 0
                    found = estimates_of(draw, y, repeat, classwise=classwise)
                    key = {"scenario": scenario.description, "C": n_classes, "N": n}
                    rows += [key | {"estimator": k} | values for k, values in found.items()]
    groups = pd.DataFrame(rows).groupby(["estimator", "scenario", "C", "N"], sort=False)
    mean, size = groups.mean(), groups.size()
    bias = groups["estimate"].mean() - mean["seen"]
    residual = pd.DataFrame(rows)
    residual["deviation"] = residual["estimate"] - residual["seen"]
    deviation = residual.groupby(["estimator", "scenario", "C", "N"], sort=False)["deviation"].std()
    table = pd.DataFrame(
        {
            "TECE": mean["true"].map("{:.2g}".format),
            "seen, %": (100 * mean["seen"] / mean["true"]).map("{:.0f}".format),
            "bias / SE of bias": (bias / deviation * np.sqrt(size)).map("{:+.1f}".format),
            "SE / SD": (mean["SE"] / deviation).map("{:.2f}".format),
            "misses what bins see, %": mean["above"].map("{:.1f}".format)
            + "/"
            + mean["below"].map("{:.1f}".format),
            "covers TECE, %": mean["covered"].map("{:.0f}".format),
            "rejected, %": mean["rejected"].map("{:.1f}".format),
            "detectable": mean["detectable"].map("{:.2g}".format),
            "draws": size,
        }
    )
    table.loc[mean["true"] == 0, "seen, %"] = ""
    return {"Bias, intervals and tests (rejected: classes by ci_low > 0, 2.5 is nominal)": table}


# --- Bins that were compared


def _kmeans(features: np.ndarray, n_bins: int) -> np.ndarray:
    return metrics.assign_bins(np.clip(features, 0, 1), n_bins=n_bins)


def sliced(draw: Draw, n_bins: int) -> np.ndarray:
    """K-means on sorted projections on 2C fixed random directions (sliced Wasserstein)."""
    n_classes = draw.mean.shape[1]
    directions = np.random.default_rng(0).normal(size=(n_classes, 2 * n_classes))
    directions /= np.linalg.norm(directions, axis=0)
    rows = np.sort(draw.hypotheses @ directions, axis=1).reshape(len(draw.mean), -1)
    rows -= rows.min()
    return _kmeans(rows / rows.max(), n_bins)


def within(draw: Draw, coarse: np.ndarray, n_shapes: int) -> np.ndarray:
    spread = draw.hypotheses.std(axis=1)
    labels = np.empty(len(coarse), dtype=int)
    for k in np.unique(coarse):
        inside = coarse == k
        labels[inside] = k * n_shapes + _kmeans(spread[inside], n_shapes)
    return np.unique(labels, return_inverse=True)[1]


def by_top_label(draw: Draw, n_bins: int, n_shapes: int = 5) -> np.ndarray:
    """Predicted class, quantiles of its probability, and within them K-means on spread."""
    top, probability = draw.mean.argmax(axis=1), draw.mean.max(axis=1)
    coarse = np.empty(len(top), dtype=int)
    for k in np.unique(top):
        inside = top == k
        n_levels = max(1, round(n_bins / n_shapes * inside.mean()))
        ranks = probability[inside].argsort().argsort()
        coarse[inside] = k * n_bins + ranks * n_levels // inside.sum()
    return within(draw, np.unique(coarse, return_inverse=True)[1], n_shapes)


def by_mean(draw: Draw, n_bins: int, n_shapes: int = 3) -> np.ndarray:
    """K-means on the mean, and within it on spread, not divided by the largest."""
    return within(draw, _kmeans(draw.mean, max(1, n_bins // n_shapes)), n_shapes)


def library(draw: Draw, n_bins: int, binning: str) -> np.ndarray:
    return metrics.assign_class_bins(draw.hypotheses, n_bins=n_bins, binning=binning)


PARTITIONS = {
    "nested (default)": partial(library, binning="nested"),
    "K-means on Δ, on spread within": by_mean,
    "moments": partial(library, binning="moments"),
    "sliced": sliced,
    "top label, on spread within": by_top_label,
    "kmeans": partial(library, binning="kmeans"),
}


def null_variance(mean: np.ndarray, bins: np.ndarray) -> float:
    """Return the variance of the estimate for labels that are Categorical(Δ)."""
    variance, n_used = 0.0, 0
    for m in np.unique(bins):
        p = mean[bins == m]
        n = len(p)
        if n > 1:
            noise = np.stack([np.diag(row) - np.outer(row, row) for row in p])
            pairs = np.square(noise.sum(axis=0)).sum() - np.square(noise).sum()
            variance += 2 * pairs / (n - 1) ** 2
            n_used += n
    return float(variance / n_used**2)


def bins(repeats: Callable[[int], int]) -> dict[str, pd.DataFrame]:
    """Share of the error that bins see, and power by the normal law: no labels are drawn."""
    rows = []
    for name, scenario in SCENARIOS.items():
        if name == "calibrated":
            continue
        for n_classes in CLASSES:
            for n in SIZES:
                for repeat in range(min(5, repeats(n))):
                    draw = scenario.draw(
                        n, n_classes, generator("bins", name, n_classes, n, repeat)
                    )
                    true = float(np.square(draw.error).sum() / n)
                    for partition, assign in PARTITIONS.items():
                        for n_bins in (20, 50, 100) if "default" in partition else (50,):
                            labels = assign(draw, n_bins)
                            expected = seen(draw.error, labels)
                            deviation = np.sqrt(null_variance(draw.mean, labels))
                            power = norm.cdf(expected / deviation - norm.ppf(1 - LEVEL))
                            rows.append(
                                {
                                    "bins": f"{partition}, {n_bins}",
                                    "scenario": scenario.description,
                                    "C, N": f"{n_classes}, {n}",
                                    "seen": 100 * expected / true,
                                    "power": 100 * power,
                                }
                            )
    table = pd.DataFrame(rows)
    return {
        f"{title}, %": table.pivot_table(
            index="bins", columns=["scenario", "C, N"], values=column, sort=False
        )
        .round(0)
        .astype(int)
        .set_axis(
            [f"{a}: {b}" for a, b in table[["scenario", "C, N"]].drop_duplicates().values], axis=1
        )
        .T
        for column, title in (("seen", "Share of TECE that bins see"), ("power", "Power at 0.05"))
    }


EXPERIMENTS = {"coverage": coverage, "bins": bins}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, to see that it runs")
    parser.add_argument("--draws", type=int, default=1000, help="of each sample (default 1000)")
    parser.add_argument("--only", nargs="+", default=list(EXPERIMENTS), help="experiments to run")
    parser.add_argument("--output", type=Path, help="file for the tables as well")
    args = parser.parse_args()
    unknown = set(args.only) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"unknown experiments {sorted(unknown)}; there are {list(EXPERIMENTS)}")

    def repeats(n: int) -> int:
        # Samples of 10,000 are slow.
        return 3 if args.quick else args.draws // 4 if n > 5000 else args.draws

    text = []
    # Small products of matrices: threads would only wait for each other.
    with threadpool_limits(1):
        for name in args.only:
            for title, table in EXPERIMENTS[name](repeats).items():
                text.append(f"\n### {title}\n\n{table.reset_index().to_markdown(index=False)}")
                print(text[-1], flush=True)
    if args.output is not None:
        args.output.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
