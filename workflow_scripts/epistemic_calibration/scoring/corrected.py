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
    Metric(
        "confidence_level",
        "Confidence level of intervals",
        2,
        None,
        (0, 1),
        of_all_tasks=True,
        kind="diagnostic",
    ),
    Metric(
        "tece_corrected_half_bins",
        "Corrected TECE, half the bins",
        4,
        "lower",
        (-1, 1),
        {"drivers": 6},
    ),
    Metric(
        "tece_corrected_double_bins",
        "Corrected TECE, twice the bins",
        4,
        "lower",
        (-1, 1),
        {"drivers": 7},
    ),
    Metric(
        "tece_reported",
        "TECE with the reported uncertainty, at least",
        4,
        "lower",
        (-1, math.inf),
        {"paper": 7, "drivers": 8},
    ),
    Metric(
        "tece_reported_low",
        "TECE with the reported uncertainty, lower limit",
        4,
        "lower",
        (0, math.inf),
    ),
    Metric("mean_miscalibration", "Mean miscalibration", 4, "lower", (-1, 1), {"drivers": 10}),
    Metric("epistemic_dependence", "Epistemic dependence", 4, "lower", (-2, 2), {"drivers": 11}),
    Metric(
        "tece_cross_fitted",
        "Cross-fitted lower bound of TECE",
        4,
        "lower",
        (-math.inf, 1),
        {"drivers": 12},
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
    for name, other in (("half", max(1, n_bins // 2)), ("double", 2 * n_bins)):
        bins = {"n_bins": other, "binning": settings["corrected_binning"], "random_state": seed}
        # Methods are compared at the same resolution.
        bins["adaptive"] = False
        moved = metrics.corrected_epistemic_calibration_error(sample, **bins)
        yield Row(
            f"tece_corrected_{name}_bins", moved.estimate, settings["corrected_binning"], other
        )
    # Where a method reports nothing else, its uncertainty is the variance, and the two agree.
    estimate, low = corrected.estimate, corrected.ci_low
    if sample.reported is not None:
        bound = metrics.reported_uncertainty_error(
            sample,
            n_bins=n_bins,
            binning=settings["corrected_binning"],
            random_state=seed,
            confidence_level=level,
        ).lower
        estimate, low = bound.estimate, bound.ci_low
    yield Row("tece_reported", estimate, settings["corrected_binning"], n_bins)
    yield Row("tece_reported_low", low, settings["corrected_binning"], n_bins)
    split = metrics.split_epistemic_calibration_error(
        sample, n_bins=n_bins, random_state=seed, confidence_level=level, adaptive=False
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
    yield Row("confidence_level", settings["confidence_level"])


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
