"""The corrected error, its interval, its lower bound and its tests, for two classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from _study import LEVEL, Study, generator, inside, seen
from scipy.special import betaln, expit, logit, logsumexp, ndtr, ndtri

from epistemic_calibration import metrics

N_HYPOTHESES = 20
N_BINS = 50


class Sample(NamedTuple):
    y: np.ndarray
    hypotheses: np.ndarray


class Predictor(NamedTuple):
    """A predictor with known error.

    Its hypotheses are independent Beta draws at every input with mean p and standard
    deviation spread·sqrt(p(1 − p)), where spread is the first or the second of two values
    at random; logit p is normal with ``location`` and ``scale``. With Δ the mean of the hypotheses,

        P(Y = 1 | Δ, spread) = sigmoid(slope·logit Δ + shift) ± dependence·Δ(1 − Δ),

    plus where the spread is the first.
    """

    description: str
    spreads: tuple[float, float] = (0.45, 0.15)
    slope: float = 1.0
    shift: float = 0.0
    dependence: float = 0.0
    shape: bool = False
    location: float = 0.0
    scale: float = 1.5

    def inputs(self, normal: np.ndarray) -> np.ndarray:
        return np.clip(expit(self.location + self.scale * normal), 1e-4, 1 - 1e-4)

    def draw(self, n: int, h: int, rng: np.random.Generator) -> Sample:
        p = self.inputs(rng.standard_normal(n))
        first = rng.random(n) < 0.5
        if self.shape:
            # Two values with the same mean and variance, skewed to one side or the other.
            spread = self.spreads[0] * np.sqrt(p * (1 - p))
            q = np.where(first, 0.2, 0.8)
            up, down = np.sqrt((1 - q) / q) * spread, np.sqrt(q / (1 - q)) * spread
            high = rng.random((n, h)) < q[:, None]
            hypotheses = np.where(high, (p + up)[:, None], (p - down)[:, None]).clip(0, 1)
        else:
            precision = np.where(first, *self.spreads) ** -2.0 - 1
            parameters = ((q * precision)[:, None] for q in (p, 1 - p))
            hypotheses = rng.beta(*parameters, (n, h))
        true = self.frequency(hypotheses, first.astype(float))
        return Sample((rng.random(n) < true).astype(float), hypotheses)

    def frequency(self, hypotheses: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Return P(Y = 1) where ``first`` is the probability of the first spread."""
        mean = np.clip(hypotheses.mean(axis=1), 1e-6, 1 - 1e-6)
        mean_part = expit(self.slope * logit(mean) + self.shift)
        return (mean_part + (2 * first - 1) * self.dependence * mean * (1 - mean)).clip(0, 1)

    def true_frequency(self, hypotheses: np.ndarray) -> np.ndarray:
        """Return P(Y = 1 | Π), with what the row itself tells of its spread (Bayes)."""
        n, h = hypotheses.shape
        if self.dependence == 0:
            return self.frequency(hypotheses, np.zeros(n))
        if self.shape:
            low, high = hypotheses.min(axis=1), hypotheses.max(axis=1)
            share = np.mean(hypotheses > ((low + high) / 2)[:, None], axis=1)
            return self.frequency(hypotheses, (share < 0.5).astype(float))
        p = self.inputs(ndtri((np.arange(250) + 0.5) / 250))
        rows = np.clip(hypotheses, 1e-300, 1 - 1e-16)
        logs = np.stack([np.log(rows).sum(axis=1), np.log1p(-rows).sum(axis=1)], axis=1)
        evidence = []
        for spread in self.spreads:
            a, b = p * (spread**-2.0 - 1), (1 - p) * (spread**-2.0 - 1)
            likelihood = logs @ np.stack([a - 1, b - 1]) - h * betaln(a, b)
            evidence.append(logsumexp(likelihood, axis=1))
        return self.frequency(hypotheses, expit(evidence[0] - evidence[1]))


@cache
def tece(predictor: Predictor, h: int = N_HYPOTHESES) -> float:
    rng, parts = generator("truth"), []
    for _ in range(4):
        rows = predictor.draw(2500, h, rng).hypotheses
        true = predictor.true_frequency(rows)
        parts.append(metrics.true_epistemic_calibration_error(true, rows))
    return float(np.mean(parts))


CALIBRATED = Predictor("calibrated")
RARE = {"location": -2.8, "scale": 1.8}
PREDICTORS = {
    "calibrated": CALIBRATED,
    "mean": Predictor("overconfident mean", slope=0.6, shift=0.2),
    "dependent": Predictor("spread tells of the label", dependence=0.32),
    "both": Predictor("both errors", slope=0.75, dependence=0.2),
    "forest": Predictor("calibrated, wide scatter", spreads=(0.7, 0.5)),
    "forest_dependent": Predictor("wide scatter, dependent", spreads=(0.7, 0.5), dependence=0.32),
    "narrow_dependent": Predictor(
        "narrow scatter, dependent", spreads=(0.06, 0.02), dependence=0.32
    ),
    "shape": Predictor(
        "skewness tells of the label", spreads=(0.3, 0.3), dependence=0.32, shape=True
    ),
    "rare": Predictor("calibrated, 10 % positives", **RARE),
    "rare_mean": Predictor("overconfident mean, 10 % positives", slope=0.6, shift=0.2, **RARE),
    "rare_dependent": Predictor(
        "spread tells of the label, 10 % positives", dependence=0.6, **RARE
    ),
    "certain": Predictor("calibrated, nearly certain", location=-7.0, scale=5.0),
}


# --- Predictions that are nearly certain, tied, or err in steps


class Rows(NamedTuple):
    """Rows of one sample, and P(Y = 1) at each."""

    hypotheses: np.ndarray
    p_true: np.ndarray


#: Deviations of mean 0 and variance 1.
EVEN = np.linspace(-1, 1, N_HYPOTHESES) / np.linspace(-1, 1, N_HYPOTHESES).std()


def rows(mean: np.ndarray, spread: np.ndarray, shape: np.ndarray = EVEN) -> np.ndarray:
    """Return hypotheses with these means and standard deviations ``spread``·Δ(1 − Δ)."""
    return mean[:, None] + (spread * mean * (1 - mean))[:, None] * shape


def tempered(mean: np.ndarray, slope: float = 0.6) -> np.ndarray:
    odds = (mean / (1 - mean)) ** slope
    return odds / (1 + odds)


def uncertain(share: float) -> Callable[[int, np.random.Generator], Rows]:
    """The mean is overconfident; most predictions are nearly 0; the row is a function of Δ."""

    def draw(n: int, rng: np.random.Generator) -> Rows:
        position = np.where(rng.random(n) < share, rng.normal(0, 2, n), rng.normal(-8, 1, n))
        mean = expit(position)
        frequency = tempered(mean)
        return Rows(rows(mean, np.full(n, 0.5)), frequency)

    return draw


def cells(n_rows: int) -> Callable[[int, np.random.Generator], Rows]:
    """Few distinct rows, of distinct means, that err by 0.1."""

    def draw(n: int, rng: np.random.Generator) -> Rows:
        means = rng.uniform(0.1, 0.9, n_rows)
        frequency = means + rng.choice([-0.1, 0.1], n_rows)
        distinct = rows(means, rng.uniform(0.1, 0.5, n_rows))
        cell = rng.integers(0, n_rows, n)
        return Rows(distinct[cell], frequency[cell])

    return draw


def steps(n_steps: int, *, shared: bool) -> Callable[[int, np.random.Generator], Rows]:
    """The error jumps between ±0.08 as Δ grows; so does EU, if ``shared``, at the same Δ."""

    def draw(n: int, rng: np.random.Generator) -> Rows:
        mean = rng.uniform(0.1, 0.9, n)
        sign = 1 - 2 * (np.floor((mean - 0.1) / 0.8 * n_steps) % 2)
        spread = np.where(sign > 0, 0.5, 0.2) if shared else rng.uniform(0.2, 0.5, n)
        frequency = mean + 0.08 * sign
        return Rows(rows(mean, spread), frequency)

    return draw


SCENARIOS = {
    **{f"overconfident, {s} % uncertain": uncertain(s / 100) for s in (5, 20, 100)},
    "20 distinct rows": cells(20),
    "60 distinct rows": cells(60),
}
STEPS = {
    "4 steps, EU jumps too": steps(4, shared=True),
    "10 steps": steps(10, shared=False),
    "40 steps": steps(40, shared=False),
}


# --- Few positives, copies and clusters


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


def directions(mean: np.ndarray, bins: np.ndarray, size: float, rng: np.random.Generator):
    """Return errors of this size, with one direction in each bin that leaves probabilities."""
    order = np.argsort(bins, kind="stable")
    starts = np.flatnonzero(np.diff(bins[order], prepend=-1))
    highest = np.maximum.reduceat(mean[order], starts)
    lowest = np.minimum.reduceat(mean[order], starts)
    up, down = highest + size <= 1, lowest - size >= 0
    sign = np.where(up & down, rng.choice([-1, 1], len(starts)), np.where(up, 1, -1))
    return size * sign[np.unique(bins, return_inverse=True)[1]]


# --- One draw of each study


def covers(rng: np.random.Generator, predictor: Predictor, n: int = 2000):
    y, hypotheses = predictor.draw(n, N_HYPOTHESES, rng)
    truth = tece(predictor)
    error = metrics.corrected_epistemic_calibration_error(y, hypotheses)
    bound = metrics.cross_fitted_lower_bound(y, hypotheses)
    found = {"truth": truth, "covers": inside(error, truth)}
    found["lower limit above TECE"] = bool(bound.ci_low > truth)
    if truth > 1e-9:
        found |= {"estimate / TECE": error.estimate / truth, "bound / TECE": bound.estimate / truth}
    else:
        found["estimate in SE"] = error.estimate / error.standard_error
    return found


def by_bins(rng: np.random.Generator, predictor: Predictor, n: int = 4000):
    y, hypotheses = predictor.draw(n, N_HYPOTHESES, rng)
    nested, kmeans = (
        metrics.assign_bins(hypotheses, n_bins=n_bins, binning=binning)
        for n_bins, binning in ((50, "nested"), (100, "kmeans"))
    )
    eece = metrics.expected_epistemic_calibration_error(y, hypotheses, bins=kmeans)
    found = {
        name: metrics.corrected_epistemic_calibration_error(y, hypotheses, bins=bins).estimate
        for name, bins in (("K-means", kmeans), ("nested", nested))
    }
    values = {"TECE": tece(predictor), "EECE": eece}
    values |= {f"corrected, {name}": value for name, value in found.items()}
    return {name: 1e4 * value for name, value in values.items()}


def certain(rng: np.random.Generator, draw: Callable[..., Rows], n: int):
    hypotheses, p_true = draw(n, rng)
    truth = float(np.mean((p_true - hypotheses.mean(axis=1)) ** 2))
    y = rng.random(n) < p_true
    split = metrics.split_epistemic_calibration_error(y, hypotheses)
    return {
        "truth": truth,
        "estimate / TECE": split.total.estimate / truth,
        "covers": inside(split.total, truth),
        "dependence above 0": split.epistemic_dependence.ci_low > 0,
    }


def rejects(rng: np.random.Generator, predictor: Predictor, n: int = 2000):
    y, hypotheses = predictor.draw(n, N_HYPOTHESES, rng)
    seed = {"random_state": int(rng.integers(1 << 30))}
    resampled = {"n_resamples": 199, **seed}
    p_values = {
        "calibration": metrics.epistemic_calibration_test(y, hypotheses, **resampled),
        "mean calibration": metrics.mean_calibration_test(y, hypotheses, **resampled),
        "independence": metrics.epistemic_independence_test(y, hypotheses, **seed),
    }
    found = {f"{name} rejected": test.p_value <= LEVEL for name, test in p_values.items()}
    return {"truth": tece(predictor), **found}


def in_groups(rng: np.random.Generator, kind: str, prevalence: float, n: int = 1000):
    hypotheses, score, groups = clustered(kind, n, prevalence, rng)
    mean = hypotheses.mean(axis=1)
    bins = metrics.assign_bins(hypotheses, n_bins=N_BINS, binning="quantile")
    found = {}
    for name, true in (("calibrated", mean), ("overconfident", overconfident(mean))):
        y = ndtr(score) < true
        error = metrics.corrected_epistemic_calibration_error(
            y, hypotheses, bins=bins, groups=groups
        )
        found[f"{name}: covers"] = inside(error, max(seen(true - mean, bins, groups), 0))
        if name == "calibrated":
            test = metrics.epistemic_calibration_test(
                y, hypotheses, bins=bins, groups=groups, n_resamples=199
            )
            found["test rejects"] = test.p_value <= LEVEL
    return found


def detects(rng: np.random.Generator, n: int, prevalence: float):
    hypotheses = rows_of(centres(prevalence, rng.standard_normal(n)), rng)
    mean = hypotheses.mean(axis=1)
    bins = metrics.assign_bins(hypotheses, n_bins=N_BINS, binning="nested")
    least = metrics.corrected_epistemic_calibration_error(
        rng.random(n) < mean, hypotheses, bins=bins
    ).minimum_detectable
    true = np.clip(mean + directions(mean, bins, np.sqrt(least), rng), 0, 1)
    test = metrics.epistemic_calibration_test(
        rng.random(n) < true, hypotheses, bins=bins, n_resamples=399
    )
    return {"truth": least, "found": test.p_value <= LEVEL}


STUDIES = (
    Study(
        "coverage",
        "The corrected error has no bias but what bins hide, its 95 % interval covers TECE, and "
        "the lower limit of the bound without bins is above TECE in 5 % of draws at most.",
        {p.description: partial(covers, predictor=p) for p in PREDICTORS.values()},
        {"covers": (0.9, 1), "lower limit above TECE": (0, 0.05), "estimate in SE": (-0.2, 0.2)},
        draws=200,
    ),
    Study(
        "which bins",
        "Estimates · 10⁴. EECE is as large where nothing is wrong as where something is. K-means "
        "of the raw hypotheses is blind to dependence where they scatter much or little, and to "
        "shape; nested bins see it.",
        {
            PREDICTORS[name].description: partial(by_bins, predictor=PREDICTORS[name])
            for name in (
                "calibrated",
                "forest",
                "dependent",
                "forest_dependent",
                "narrow_dependent",
                "shape",
            )
        },
        {},
        draws=20,
    ),
    Study(
        "certain predictions",
        "Where most predictions are nearly certain, or tied, intervals cover TECE, and no "
        "dependence is found where there is none.",
        {
            f"{name}, N = {n:,}": partial(certain, draw=draw, n=n)
            for name, draw in SCENARIOS.items()
            for n in (1000, 10_000)
        },
        {"covers": (0.88, 1), "dependence above 0": (0, 0.06)},
        draws=200,
    ),
    Study(
        "error in steps",
        "What is estimated is TECE at the resolution of the bins: of an error that jumps with Δ, "
        "narrower steps are hidden, and what coarse bins hide of wider ones passes for dependence.",
        {
            f"{name}, N = {n:,}": partial(certain, draw=draw, n=n)
            for name, draw in STEPS.items()
            for n in (1000, 10_000)
        },
        {"estimate / TECE": (-0.1, 1.05)},
        draws=100,
    ),
    Study(
        "size of tests",
        "Tests at level 0.05 reject a calibrated predictor in 5 % of draws.",
        {
            p.description: partial(rejects, predictor=p)
            for p in (PREDICTORS[name] for name in ("calibrated", "rare", "forest", "certain"))
        },
        dict.fromkeys(
            ("calibration rejected", "mean calibration rejected", "independence rejected"),
            (0.0, 0.08),
        ),
        draws=400,
    ),
    Study(
        "power of tests",
        "The test of one part finds what the overall test finds, and not the other part.",
        {
            "overconfident mean": partial(rejects, predictor=CALIBRATED._replace(slope=0.7)),
            "spread tells": partial(rejects, predictor=CALIBRATED._replace(dependence=0.32)),
        },
        {"calibration rejected": (0.6, 1)},
        draws=200,
    ),
    Study(
        "groups",
        "Given groups, intervals cover what bins see and tests keep their level, for copies and "
        "for clusters.",
        {
            f"{kind}, {100 * p:g} % positive": partial(in_groups, kind=kind, prevalence=p)
            for kind in DEPENDENCE
            for p in (0.5, 0.02)
        },
        {
            "calibrated: covers": (0.92, 1),
            "overconfident: covers": (0.9, 1),
            "test rejects": (0, 0.08),
        },
        draws=200,
    ),
    Study(
        "detection",
        "An error of the size `minimum_detectable` is found in about 80 % of draws, in more where "
        "positives are rare.",
        {
            f"{n:,} inputs, {100 * p:g} % positive": partial(detects, n=n, prevalence=p)
            for n, p in ((2000, 0.5), (1000, 0.02), (300, 0.1))
        },
        {"found": (0.74, 0.9)},
        draws=400,
    ),
)
