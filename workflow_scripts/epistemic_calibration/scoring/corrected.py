"""The corrected TECE with its interval, its two parts, and a lower bound without bins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration.scoring.base import Inputs, Metric, Row

ORDER = 3

METRICS = (
    Metric(
        "tece_corrected",
        "Corrected TECE",
        4,
        "lower",
        (-1, 1),
        {"paper": 6, "drivers": 5, "comparisons": 1},
        of_all_tasks=True,
    ),
    Metric(
        "tece_corrected_low",
        "Corrected TECE, lower limit",
        4,
        "lower",
        (0, math.inf),
        of_all_tasks=True,
    ),
    Metric(
        "tece_corrected_high",
        "Corrected TECE, upper limit",
        4,
        "lower",
        (0, math.inf),
        of_all_tasks=True,
    ),
    Metric(
        "tece_noise_floor",
        "Noise floor of the uncorrected TECE",
        4,
        None,
        (0, 0.25),
        of_all_tasks=True,
        kind="diagnostic",
    ),
    Metric(
        "tece_minimum_detectable",
        "Smallest TECE that can be detected",
        4,
        None,
        (0, math.inf),
        of_all_tasks=True,
        kind="diagnostic",
    ),
    Metric(
        "tece_dropped_mass",
        "Share of samples alone in their bin",
        4,
        None,
        (0, 1),
        of_all_tasks=True,
        kind="diagnostic",
    ),
    Metric("mean_miscalibration", "Mean miscalibration", 4, "lower", (-1, 1), {"drivers": 7}),
    Metric("epistemic_dependence", "Epistemic dependence", 4, "lower", (-2, 2), {"drivers": 8}),
    Metric(
        "tece_cross_fitted",
        "Cross-fitted lower bound of TECE",
        4,
        "lower",
        (-math.inf, 1),
        {"drivers": 9},
    ),
    Metric(
        "tece_cross_fitted_low",
        "Cross-fitted lower bound of TECE, lower limit",
        4,
        "lower",
        (0, 1),
    ),
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield the corrected TECE with what describes it, its parts, and the lower bound."""
    sample, settings = inputs.sample, inputs.settings
    level, seed = settings["confidence_level"], settings["random_state"]
    corrected = metrics.corrected_epistemic_calibration_error(
        sample, bins=inputs.corrected_bins, confidence_level=level
    )
    yield from _corrected_rows(corrected, settings)
    n_bins = settings["corrected_n_bins"]
    split = metrics.split_epistemic_calibration_error(
        sample, n_bins=n_bins, random_state=seed, confidence_level=level
    )
    yield Row("mean_miscalibration", split.mean_miscalibration.estimate, "nested", n_bins)
    yield Row("epistemic_dependence", split.epistemic_dependence.estimate, "nested", n_bins)
    bound = metrics.cross_fitted_lower_bound(sample, random_state=seed, confidence_level=level)
    yield Row("tece_cross_fitted", bound.estimate)
    yield Row("tece_cross_fitted_low", bound.ci_low)


def summary(inputs: Inputs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, mean prediction and bins of a task."""
    return inputs.sample.y, inputs.sample.mean, inputs.corrected_bins


def rows_of_all_tasks(
    summaries: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], settings: Mapping[str, Any]
) -> Iterator[Row]:
    """Yield the mean over tasks of the corrected TECE, whose tasks share their images."""
    y_true, means, bins = zip(*summaries, strict=True)
    corrected = metrics.mean_corrected_error(
        y_true,
        means,
        bins,
        confidence_level=settings["confidence_level"],
        random_state=settings["random_state"],
    )
    yield from _corrected_rows(corrected, settings)


def _corrected_rows(
    corrected: metrics.CorrectedError, settings: Mapping[str, Any]
) -> Iterator[Row]:
    bins = settings["corrected_binning"], settings["corrected_n_bins"]
    yield Row("tece_corrected", corrected.estimate, *bins)
    yield Row("tece_corrected_low", corrected.ci_low, *bins)
    yield Row("tece_corrected_high", corrected.ci_high, *bins)
    yield Row("tece_noise_floor", corrected.noise_floor, *bins)
    yield Row("tece_minimum_detectable", corrected.minimum_detectable, *bins)
    yield Row("tece_dropped_mass", corrected.dropped_mass, *bins)
