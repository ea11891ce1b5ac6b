"""Measure limits, tests and comparisons where they are hardest: few positives, copies, no error.

    .venv/bin/python validation/few_positives_and_copies.py
    .venv/bin/python validation/few_positives_and_copies.py --quick   # to see that it runs
    .venv/bin/python validation/few_positives_and_copies.py --only positives

Prints Markdown tables, and writes each as CSV with ``--output FOLDER``. Percentages of draws; the
results do not depend on which experiments run.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtr, ndtri
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

from epistemic_calibration import metrics
from epistemic_calibration.metrics.binning import quantile_bins

LEVEL = 0.05
N_BINS = 50


def generator(*key: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def rows_of(centre: np.ndarray, rng: np.random.Generator, h: int = 10) -> np.ndarray:
    """Return hypotheses around p = expit(centre): Beta draws of large or of small spread."""
    p = expit(centre)
    precision = np.where(rng.random(len(p)) < 0.5, 4.0, 40.0)
    return rng.beta((p * precision)[:, None], ((1 - p) * precision)[:, None], (len(p), h))


def centres(prevalence: float, normal: np.ndarray) -> np.ndarray:
    """Return logits whose probabilities have this mean; the rarer, the less they scatter."""
    scale = 1.5 if prevalence > 0.3 else 1.0
    grid = np.linspace(-12, 4, 801)
    nodes = scale * ndtri((np.arange(200) + 0.5) / 200)
    means = expit(grid[:, None] + nodes).mean(axis=1)
    return scale * normal + np.interp(prevalence, means, grid)


def overconfident(mean: np.ndarray) -> np.ndarray:
    """Return P(Y = 1 | Π) of predictions whose logits are too large by two thirds."""
    clipped = np.clip(mean, 1e-9, 1 - 1e-9)
    middle = logit(mean.mean())
    return expit(middle + 0.6 * (logit(clipped) - middle))


def seen_by(bins: np.ndarray, error: np.ndarray, groups: np.ndarray | None = None) -> float:
    """Return the mean of the corrected estimate, given predictions: over pairs of groups."""
    groups = np.arange(len(error)) if groups is None else groups
    keys = np.unique(bins * (groups.max() + 1) + groups, return_inverse=True)[1]
    of_bin = np.zeros(keys.max() + 1, dtype=int)
    of_bin[keys] = bins
    size, sums = np.bincount(keys), np.bincount(keys, weights=error)
    n = np.bincount(bins)
    pairs = n**2 - np.bincount(of_bin, weights=size**2)
    squares = np.bincount(bins, weights=error) ** 2 - np.bincount(of_bin, weights=sums**2)
    used = pairs > 0
    return float(np.average(squares[used] / pairs[used], weights=n[used]))


# --- The lower bound


def positives(repeats: Callable[[int], int]) -> dict[str, pd.DataFrame]:
    rows = []
    for n, prevalence in (
        (1000, 0.003),
        (300, 0.01),
        (3000, 0.003),
        (300, 0.02),
        (1000, 0.01),
        (1000, 0.5),
        (10_000, 0.0003),
        (10_000, 0.001),
        (10_000, 0.01),
        (10_000, 0.5),
    ):
        for repeat in range(repeats(n)):
            rng = generator("positives", n, prevalence, repeat)
            hypotheses = rows_of(centres(prevalence, rng.standard_normal(n)), rng)
            mean = hypotheses.mean(axis=1)
            row = {"N": n, "positives, %": 100 * prevalence, "positives": n * prevalence}
            for name, true in (("calibrated", mean), ("overconfident", overconfident(mean))):
                y = rng.random(n) < true
                bound = metrics.cross_fitted_lower_bound(y, hypotheses, random_state=repeat)
                tece = np.mean((true - mean) ** 2)
                row[f"{name}: limit above TECE, %"] = 100.0 * (bound.ci_low > tece)
                if name == "overconfident":
                    row["limit above 0, %"] = 100.0 * (bound.ci_low > 0)
                    row["limit / TECE"] = bound.ci_low / tece
            rows.append(row)
    groups = pd.DataFrame(rows).groupby(["N", "positives, %", "positives"], sort=False)
    return {
        "Lower limit of `cross_fitted_lower_bound` (nominal: above TECE in 5 % at most)": (
            groups.mean().round(2).assign(draws=groups.size())
        )
    }


# --- Copies and clusters

#: Copies of each input; or how many inputs a cluster has, and how correlated their labels are.
DEPENDENCE = {
    "independent": (1, 0.0, False),
    "copies × 2": (2, 1.0, True),
    "copies × 4": (4, 1.0, True),
    "clusters of 5, ρ = 0.5": (5, 0.5, False),
    "clusters of 20, ρ = 0.2": (20, 0.2, False),
}


def clustered(
    kind: str, n: int, prevalence: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return hypotheses, normal scores of the labels, and groups."""
    size, correlation, copies = DEPENDENCE[kind]
    groups = np.arange(n) // size
    n_groups = groups[-1] + 1
    if copies:
        hypotheses = rows_of(centres(prevalence, rng.standard_normal(n_groups)), rng)
        return hypotheses[groups], rng.standard_normal(n_groups)[groups], groups
    # Inputs of a cluster are alike, so that many are in the same bin.
    alike = np.sqrt(0.8) * rng.standard_normal(n_groups)[groups]
    alike += np.sqrt(0.2) * rng.standard_normal(n)
    hypotheses = rows_of(centres(prevalence, alike), rng)
    score = np.sqrt(correlation) * rng.standard_normal(n_groups)[groups]
    score += np.sqrt(1 - correlation) * rng.standard_normal(n)
    return hypotheses, score, groups


def copies(repeats: Callable[[int], int]) -> dict[str, pd.DataFrame]:
    rows = []
    for n, prevalence, kind in itertools.product((1000, 10_000), (0.5, 0.02), DEPENDENCE):
        for repeat in range(repeats(n)):
            rng = generator("copies", n, prevalence, kind, repeat)
            hypotheses, score, groups = clustered(kind, n, prevalence, rng)
            mean = hypotheses.mean(axis=1)
            bins = metrics.assign_bins(hypotheses, n_bins=N_BINS, binning="quantile")
            key = {"N": n, "positives, %": 100 * prevalence, "samples": kind}
            for told in (False, True):
                if told and kind == "independent":
                    continue
                options = {"groups": groups} if told else {}
                row = {**key, "groups": "given" if told else ""}
                for name, true in (("calibrated", mean), ("overconfident", overconfident(mean))):
                    y = ndtr(score) < true
                    target = seen_by(bins, true - mean, groups if told else None)
                    result = metrics.corrected_epistemic_calibration_error(
                        y, hypotheses, bins=bins, **options
                    )
                    bound = metrics.cross_fitted_lower_bound(y, hypotheses, **options)
                    test = metrics.epistemic_calibration_test(
                        y, hypotheses, bins=bins, n_resamples=199, random_state=repeat, **options
                    )
                    of_mean = metrics.mean_calibration_test(
                        y, hypotheses, n_resamples=199, random_state=repeat, **options
                    )
                    row[f"{name}: covered"] = 100.0 * (result.ci_low <= target <= result.ci_high)
                    row[f"{name}: limit above"] = 100.0 * (
                        bound.ci_low > np.mean((true - mean) ** 2)
                    )
                    row[f"{name}: test rejects"] = 100.0 * (test.p_value <= LEVEL)
                    row[f"{name}: of the mean"] = 100.0 * (of_mean.p_value <= LEVEL)
                    row[f"{name}: estimate − truth, 10⁻⁴"] = 1e4 * (result.estimate - target)
                rows.append(row)
    groups = pd.DataFrame(rows).groupby(["N", "positives, %", "samples", "groups"], sort=False)
    return {
        "Copies and clusters (50 quantile bins): % of draws": (
            groups.mean().round(1).assign(draws=groups.size())
        )
    }


# --- Comparisons

N_METHODS, N_TASKS = 6, 10
#: How much of what is known all methods know; sharpness of the predictions (1: calibrated).
COMPARED = {
    "TECE 0, nothing shared": (0.0, 1.0),
    "TECE 0, half shared": (0.5, 1.0),
    "half shared, erring": (0.5, 1.5),
    "95 % shared, erring": (0.95, 1.5),
    "half shared, TECE near the floor": (0.5, 1.12),
    "half shared, TECE far above the floor": (0.5, 2.0),
}


def exclusive_tasks(
    n: int, shared: float, sharpness: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels, shape (n, tasks), and predictions of methods, shape (methods, n, tasks).

    P(Y | all) is the mean of what all know and of what each method knows for itself, with the
    means 1/10 for what it does not know: where they are not sharpened, all are calibrated.
    """
    common = rng.dirichlet(np.full(N_TASKS, 0.2), n)
    own = rng.dirichlet(np.full(N_TASKS, 0.2), (N_METHODS, n))
    p = shared * common + (1 - shared) * own.mean(axis=0)
    classes = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, N_TASKS - 1)
    weight = (1 - shared) / N_METHODS
    mean = shared * common + weight * own + weight * (N_METHODS - 1) / N_TASKS
    mean = mean**sharpness
    mean /= mean.sum(axis=2, keepdims=True)
    return np.eye(N_TASKS)[classes], mean


def comparisons(repeats: Callable[[int], int]) -> dict[str, pd.DataFrame]:
    rows = []
    for n, scenario in itertools.product((600, 2000, 10_000), COMPARED):
        if n == 600 and "floor" in scenario:
            continue
        if n == 10_000 and "floor" not in scenario:
            continue
        n_bins = 20 if n < 5000 else 50
        for repeat in range(max(3, repeats(n) // 3)):
            rng = generator("comparisons", n, scenario, repeat)
            y, mean = exclusive_tasks(n, *COMPARED[scenario], rng)
            bins = {
                str(k): [quantile_bins(column, n_bins) for column in m.T]
                for k, m in enumerate(mean)
            }
            result = metrics.compare_mean_corrected_errors(
                list(y.T),
                {str(k): list(m.T) for k, m in enumerate(mean)},
                bins,
                n_resamples=299,
                random_state=repeat,
            )
            one = metrics.mean_corrected_error(list(y.T), list(mean[0].T), bins["0"], n_resamples=2)
            p = np.array([d.p_value for d in result.values()])
            z = np.array([d.estimate / d.standard_error for d in result.values()])
            rows.append(
                {
                    "N": n,
                    "scenario": scenario,
                    "TECE": one.estimate,
                    "floor": one.noise_floor,
                    "SD of z": np.mean(z**2),
                    "pairs rejected, %": 100 * np.mean(p <= LEVEL),
                    "any by Holm, %": 100.0 * (metrics.holm_correction(p) <= LEVEL).any(),
                }
            )
    groups = pd.DataFrame(rows).groupby(["N", "scenario"], sort=False)
    table = groups.mean()
    table["SD of z"] = np.sqrt(table["SD of z"])
    table = pd.DataFrame({c: table[c].map("{:.2g}".format) for c in table})
    return {
        f"Equal methods compared ({N_METHODS} methods, {N_TASKS} exclusive tasks)": (
            table.assign(draws=groups.size())
        )
    }


# --- Detection


def directions(mean: np.ndarray, bins: np.ndarray, size: float, rng: np.random.Generator):
    """Return errors of this size, with one direction in each bin that leaves probabilities."""
    order = np.argsort(bins, kind="stable")
    starts = np.flatnonzero(np.diff(bins[order], prepend=-1))
    highest = np.maximum.reduceat(mean[order], starts)
    lowest = np.minimum.reduceat(mean[order], starts)
    up, down = highest + size <= 1, lowest - size >= 0
    sign = np.where(up & down, rng.choice([-1, 1], len(starts)), np.where(up, 1, -1))
    return size * sign[np.unique(bins, return_inverse=True)[1]]


def detection(repeats: Callable[[int], int]) -> dict[str, pd.DataFrame]:
    rows = []
    for n, prevalence in ((2000, 0.5), (1000, 0.02), (300, 0.1), (10_000, 0.5), (10_000, 0.01)):
        for repeat in range(repeats(n)):
            rng = generator("detection", n, prevalence, repeat)
            hypotheses = rows_of(centres(prevalence, rng.standard_normal(n)), rng)
            mean = hypotheses.mean(axis=1)
            bins = metrics.assign_bins(hypotheses, n_bins=N_BINS, binning="nested")
            least = metrics.corrected_epistemic_calibration_error(
                rng.random(n) < mean, hypotheses, bins=bins
            ).minimum_detectable
            error = directions(mean, bins, np.sqrt(least), rng)
            true = np.clip(mean + error, 0, 1)
            test = metrics.epistemic_calibration_test(
                rng.random(n) < true, hypotheses, bins=bins, n_resamples=399, random_state=repeat
            )
            rows.append(
                {
                    "N": n,
                    "positives, %": 100 * prevalence,
                    "minimum detectable, 10⁻⁴": 1e4 * least,
                    "seen by the bins": seen_by(bins, true - mean) / least,
                    "found, %": 100.0 * (test.p_value <= LEVEL),
                }
            )
    groups = pd.DataFrame(rows).groupby(["N", "positives, %"], sort=False)
    return {
        "Power at `minimum_detectable` (80 % is promised)": (
            groups.mean().round(3).assign(draws=groups.size())
        ),
        "The same of means over ten tasks": _detection_over_tasks(repeats),
    }


def _detection_over_tasks(repeats: Callable[[int], int]) -> pd.DataFrame:
    """Detection by the quantile of what calibrated labels give, since there is no exact test."""
    rows = []
    for n, kind in itertools.product((1000, 10_000), ("independent", "exclusive", "one task")):
        rng = generator("detection over tasks", n, kind)
        if kind == "exclusive":
            mean = 0.5 / N_TASKS + 0.5 * rng.dirichlet(np.full(N_TASKS, 0.3), n)
        else:
            mean = expit(rng.normal(-2.5, 1.0, (n, N_TASKS)))
            if kind == "one task":
                mean[:] = mean[:, :1]
        bins = [quantile_bins(column, 20) for column in mean.T]

        def drawn(
            probability: np.ndarray, kind: str = kind, rng: np.random.Generator = rng
        ) -> np.ndarray:
            uniform = rng.random((len(probability), N_TASKS))
            if kind == "one task":
                uniform[:] = uniform[:, :1]
            if kind == "exclusive":
                chosen = (probability.cumsum(axis=1) < uniform[:, :1]).sum(axis=1)
                return np.eye(N_TASKS)[chosen.clip(0, N_TASKS - 1)]
            return (uniform < probability).astype(float)

        def estimate(
            y: np.ndarray, n_resamples: int = 2, mean: np.ndarray = mean, bins: list = bins
        ) -> metrics.CorrectedError:
            return metrics.mean_corrected_error(
                list(y.T), list(mean.T), bins, n_resamples=n_resamples
            )

        n_draws = 3 * max(3, repeats(n) // 2)
        null = [estimate(drawn(mean)).estimate for _ in range(n_draws)]
        critical = np.quantile(null, 1 - LEVEL)
        least = np.mean([estimate(drawn(mean), 499).minimum_detectable for _ in range(10)])
        sign = np.tile([1.0, -1.0], N_TASKS // 2)
        error = np.sqrt(least) * sign[None] * np.ones((n, 1))
        if kind != "exclusive":
            error = np.stack(
                [directions(m, b, np.sqrt(least), rng) for m, b in zip(mean.T, bins, strict=True)],
                axis=1,
            )
        if kind == "one task":
            error[:] = error[:, :1]
        found = [estimate(drawn(np.clip(mean + error, 0, 1))).estimate for _ in range(n_draws)]
        rows.append(
            {
                "N": n,
                "tasks": kind,
                "minimum detectable, 10⁻⁴": 1e4 * least,
                "found, %": 100 * np.mean(np.array(found) > critical),
                "draws": n_draws,
            }
        )
    return pd.DataFrame(rows).set_index(["N", "tasks"]).round(3)


EXPERIMENTS = {
    "positives": positives,
    "copies": copies,
    "comparisons": comparisons,
    "detection": detection,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, to see that it runs")
    parser.add_argument("--draws", type=int, default=400, help="of each sample (default 400)")
    parser.add_argument("--only", nargs="+", default=list(EXPERIMENTS), help="experiments to run")
    parser.add_argument("--output", type=Path, help="folder for the tables as CSV")
    args = parser.parse_args()
    unknown = set(args.only) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"unknown experiments {sorted(unknown)}; there are {list(EXPERIMENTS)}")

    def repeats(n: int) -> int:
        # Samples of 10,000 are slow.
        return 3 if args.quick else args.draws // 5 if n > 5000 else args.draws

    with threadpool_limits(1):
        for name in args.only:
            for title, table in EXPERIMENTS[name](repeats).items():
                table = table.reset_index()
                print(f"\n### {title}\n\n{table.to_markdown(index=False)}", flush=True)
                if args.output:
                    args.output.mkdir(parents=True, exist_ok=True)
                    stem = re.sub(r"\W+", "_", title.split("(")[0]).strip("_").lower()
                    table.to_csv(args.output / f"{stem}.csv", index=False)


if __name__ == "__main__":
    main()
