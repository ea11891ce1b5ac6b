"""Methods and their trainings: intervals and comparisons over inputs, tasks and trainings."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pandas as pd
from _study import LEVEL, Study, generator, inside, seen
from scipy.special import expit, softmax

from epistemic_calibration import metrics
from epistemic_calibration.metrics._trainings import found_with
from epistemic_calibration.metrics.binning import quantile_bins
from epistemic_calibration.report.results import all_tasks_scores

N, N_BINS = 2000, 50
#: Inputs on the logit scale: as they come, or of which 1 % are positive.
INPUTS = {
    "": lambda normal: 1.5 * normal,
    "1 % positive": lambda normal: normal - 5,
}


def trained(z: np.ndarray, spread: float, rng: np.random.Generator) -> np.ndarray:
    """Return what a training of a method predicts that is 30 % too sure of itself on average."""
    slope, shift = rng.normal([1.3, 0], [spread, 0.3 * spread])
    return expit(slope * z + shift)


@cache
def expected_error(spread: float, inputs: str) -> float:
    """Return the TECE to be expected of a training."""
    rng = generator("expected", spread, inputs)
    z = INPUTS[inputs](rng.standard_normal(10_000))
    errors = [np.mean((trained(z, spread, rng) - expit(z)) ** 2) for _ in range(2000)]
    return float(np.mean(errors))


def equal_methods(rng: np.random.Generator, spread: float, seeds: tuple[int, int], inputs: str):
    """Two methods that are the same, with trainings of their own."""
    z = INPUTS[inputs](rng.standard_normal(N))
    y = rng.random(N) < expit(z)
    runs = {
        name: [[trained(z, spread, rng)] for _ in range(n)]
        for name, n in zip("ab", seeds, strict=True)
    }
    bins = {name: [[quantile_bins(run[0], N_BINS)] for run in of] for name, of in runs.items()}
    options = {"n_resamples": 399, "random_state": int(rng.integers(1 << 30))}
    pair = metrics.compare_mean_corrected_errors([y], runs, bins, **options)["a", "b"]
    mean = metrics.mean_corrected_error([y], runs["a"], bins["a"], **options)
    truth = expected_error(spread, inputs)
    found = {
        "truth": truth,
        "methods differ": pair.p_value <= LEVEL,
        "these trainings differ": pair.p_value_fixed <= LEVEL,
        "covers": inside(mean, truth),
    }
    if seeds[0] > 1:
        rows = []
        for seed, both in enumerate(zip(runs["a"], bins["a"], strict=True)):
            one = metrics.mean_corrected_error([y], *both, **options)
            ends = {"": one.estimate, "_low": one.ci_low, "_high": one.ci_high}
            rows += [(seed, f"tece_corrected{end}", value) for end, value in ends.items()]
        scores = pd.DataFrame(rows, columns=["seed", "metric", "value"]).assign(
            dataset="", method="a", scope="all_tasks"
        )
        shown = all_tasks_scores(scores, "").loc["a"]
        low, high = shown["tece_corrected_low"], shown["tece_corrected_high"]
        found["table covers"] = bool(low <= truth <= high)
    return found


def other_methods(rng: np.random.Generator, seeds: int):
    """Two methods so far apart that as many trainings show it four times of five."""
    n, spread = 4000, 0.02
    # TECE is the square of the error: of standard deviation 2·0.15·0.02.
    apart = found_with(np.array([seeds]), 0.95)[0] * spread
    p = rng.uniform(0.4, 0.6, n)
    y = rng.random(n) < p
    errors = {"a": rng.normal(0.15, spread, seeds), "b": rng.normal(0.15 + apart, spread, seeds)}
    runs = {name: [[p + e] for e in of] for name, of in errors.items()}
    bins = {name: [[quantile_bins(p, 20)]] * seeds for name in runs}
    pair = metrics.compare_mean_corrected_errors([y], runs, bins, n_resamples=399)["a", "b"]
    return {"truth": 0.15**2 - (0.15 + apart) ** 2, "methods differ": pair.p_value <= LEVEL}


def ten_tasks(rng: np.random.Generator, slope: float, n: int = 1000):
    """Ten one-vs-all tasks whose labels are one class an image."""
    logits = rng.normal(0, 2, (n, 10))
    predictions, true = softmax(logits, axis=1), softmax(slope * logits, axis=1)
    chosen = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    bins = [quantile_bins(p, 20) for p in predictions.T]
    error = metrics.mean_corrected_error(
        [chosen == k for k in range(10)], list(predictions.T), bins, n_resamples=199
    )
    truth = float(np.mean([seen(e, b) for e, b in zip((true - predictions).T, bins, strict=True)]))
    return {
        "truth": max(truth, 0.0),
        "estimate less truth, in SE": (error.estimate - truth) / error.standard_error,
        "covers": inside(error, max(truth, 0.0)),
    }


def six_methods(rng: np.random.Generator, shared: float, sharpness: float, n: int = 600):
    """Six equal methods on ten exclusive tasks; all know a share, and each something else."""
    common, own = rng.dirichlet(np.full(10, 0.2), n), rng.dirichlet(np.full(10, 0.2), (6, n))
    p = shared * common + (1 - shared) * own.mean(axis=0)
    chosen = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 9)
    weight = (1 - shared) / 6
    mean = (shared * common + weight * own + weight * 5 / 10) ** sharpness
    mean /= mean.sum(axis=2, keepdims=True)
    predictions = {str(k): list(m.T) for k, m in enumerate(mean)}
    bins = {name: [quantile_bins(c, 20) for c in of] for name, of in predictions.items()}
    pairs = metrics.compare_mean_corrected_errors(
        list(np.eye(10)[chosen].T), predictions, bins, n_resamples=299
    )
    p_values = np.array([d.p_value for d in pairs.values()])
    return {
        "pairs that differ": float(np.mean(p_values <= LEVEL)),
        "any differs, by Holm": bool((metrics.holm_correction(p_values) <= LEVEL).any()),
    }


STUDIES = (
    Study(
        "trainings",
        "Two methods of equal expected TECE, trained anew, are said to differ in about 5 % of "
        "runs, and intervals cover the expected TECE, where there are several trainings.",
        {
            f"SD factor {spread}, {a} and {b} seeds{', ' * bool(inputs)}{inputs}": partial(
                equal_methods, spread=spread, seeds=(a, b), inputs=inputs
            )
            for spread, a, b, inputs in (
                (0.02, 3, 3, ""),
                (0.06, 2, 2, ""),
                (0.06, 5, 5, ""),
                (0.06, 1, 5, ""),
                (0.15, 5, 5, ""),
                (0.15, 2, 2, "1 % positive"),
            )
        },
        {"methods differ": (0, 0.09), "covers": (0.9, 1), "table covers": (0.9, 1)},
        draws=100,
    ),
    Study(
        "one training",
        "Of one training each, comparisons and intervals are of these trainings: as methods they "
        "would be said to differ much too often.",
        {
            f"SD factor {s}": partial(equal_methods, spread=s, seeds=(1, 1), inputs="")
            for s in (0.0, 0.02, 0.15)
        },
        {},
        draws=100,
    ),
    Study(
        "seeds that tell",
        "With as many seeds as tables say, methods are told apart in four runs of five.",
        {f"{n} seeds": partial(other_methods, seeds=n) for n in (3, 5, 10)},
        {"methods differ": (0.7, 0.9)},
        draws=100,
    ),
    Study(
        "means over tasks",
        "The interval of the mean over tasks that share their images covers what its bins see.",
        {f"logits × {s}": partial(ten_tasks, slope=s) for s in (1.0, 0.9, 0.7)},
        {"covers": (0.93, 1), "estimate less truth, in SE": (-0.15, 0.15)},
        draws=100,
    ),
    Study(
        "equal methods",
        "Equal methods on the same images are said to differ in 5 % of pairs, and by Holm any of "
        "fifteen pairs in 5 % of runs.",
        {
            f"{100 * shared:g} % shared, sharpened {power}": partial(
                six_methods, shared=shared, sharpness=power
            )
            for shared, power in ((0.0, 1.0), (0.5, 1.0), (0.5, 1.5), (0.95, 1.5))
        },
        {"pairs that differ": (0, 0.07), "any differs, by Holm": (0, 0.08)},
        draws=100,
    ),
)
