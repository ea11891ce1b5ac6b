"""EECE, its parts, and the epistemic uncertainty that it judges."""

from __future__ import annotations

import math
from collections.abc import Iterator

from epistemic_calibration import metrics
from epistemic_calibration.scoring.base import Inputs, Metric, Row

ORDER = 2

METRICS = (
    Metric(
        "eece",
        "EECE",
        4,
        "lower",
        (0, math.inf),
        {"paper": 3, "summary": 2, "by_eece": 6, "drivers": 1},
    ),
    Metric(
        "eece_calibration",
        "EECE: calibration part g²",
        4,
        "lower",
        (0, 1),
        {"paper": 4, "summary": 3, "by_eece": 7, "drivers": 2},
        short_label="g²",
    ),
    Metric(
        "eece_dispersion",
        "EECE: dispersion part W",
        4,
        None,
        (0, 1),
        {"paper": 5, "summary": 4, "by_eece": 8, "drivers": 3},
        short_label="W",
    ),
    Metric(
        "mean_epistemic_uncertainty",
        "Mean epistemic uncertainty",
        4,
        None,
        (0, math.inf),
        {"by_eece": 9, "drivers": 4},
    ),
    Metric(
        "eece_noise_floor",
        "Noise floor of g²",
        4,
        None,
        (0, 0.25),
        {"drivers": 9},
        kind="diagnostic",
    ),
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield the mean epistemic uncertainty, then EECE and its parts."""
    sample, settings = inputs.sample, inputs.settings
    yield Row("mean_epistemic_uncertainty", sample.uncertainty.mean())
    bins = settings["binning"], settings["n_bins"]
    parts = metrics.decompose_eece(
        sample, n_bins=bins[1], binning=bins[0], random_state=settings["random_state"]
    )
    yield Row("eece", parts.eece, *bins)
    yield Row("eece_calibration", parts.calibration, *bins)
    yield Row("eece_dispersion", parts.dispersion, *bins)
    yield Row("eece_noise_floor", parts.noise_floor, *bins)
