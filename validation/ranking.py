"""Intervals of errors kept, of areas, and of differences between two orders."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from _study import Study, generator, inside
from scipy.optimize import brentq
from scipy.stats import norm

from epistemic_calibration.metrics.ranking import rank_errors

#: Noise of the errors, given the difficulty.
NOISE = 0.7
MEASURES = {
    "kept at 90 %": lambda r: r.by_uncertainty.kept_error_90,
    "AUROC": lambda r: r.by_uncertainty.auroc_of_errors,
    "difference at 90 %": lambda r: r.difference.kept_error_90,
    "difference of AURC": lambda r: r.difference.aurc,
}


def draw(rng: np.random.Generator, n: int, kind: str, rate: float):
    """Return errors, two scores of a latent difficulty, one closer to it, and groups."""
    copies = 3 if kind == "groups" else 1
    m = n // copies
    difficulty = rng.standard_normal(m)
    uncertainty = difficulty + 0.8 * rng.standard_normal(m)
    doubt = difficulty + 0.5 * rng.standard_normal(m)
    if kind == "ties":
        uncertainty, doubt = np.round(1.5 * uncertainty), np.round(1.5 * doubt)
    threshold = brentq(lambda t: norm.cdf(-t / np.sqrt(1 + NOISE**2)) - rate, -5, 10)
    p = norm.cdf((difficulty - threshold) / NOISE)
    # Most errors are those of the whole group.
    u = rng.random((m, copies))
    shared = rng.random(m) < 0.6
    u[shared] = u[shared, :1]
    error = (u < p[:, None]).astype(float).ravel()
    of_inputs = (np.repeat(values, copies) for values in (uncertainty, doubt))
    return error, *of_inputs, np.repeat(np.arange(m), copies)


@cache
def truth(kind: str, rate: float) -> dict[str, float]:
    found = rank_errors(*draw(generator("truth", kind), 1_000_000, kind, rate), 0.95)
    return {name: of(found).estimate for name, of in MEASURES.items()}


def ranked(rng: np.random.Generator, n: int, kind: str, rate: float):
    found = rank_errors(*draw(rng, n, kind, rate), 0.95)
    return {name: inside(of(found), truth(kind, rate)[name]) for name, of in MEASURES.items()}


STUDIES = (
    Study(
        "order of errors",
        "Intervals of errors kept, of AUROC, and of differences between two orders cover them, for "
        "ties and groups, and from few errors on.",
        {
            f"{n * rate:g} errors of {n:,}, {kind}": partial(ranked, n=n, kind=kind, rate=rate)
            for n, kind, rate in (
                (200, "continuous", 0.2),
                (1000, "continuous", 0.005),
                (1000, "ties", 0.05),
                (3000, "groups", 0.05),
                (10_000, "ties", 0.02),
            )
        },
        dict.fromkeys(MEASURES, (0.9, 1)),
        draws=200,
    ),
)
