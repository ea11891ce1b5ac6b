"""The corrected TECE with its interval, its two parts, and a lower bound without bins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration.scores.base import (
    DIFFERENCE,
    POSITIVE,
    SHARE,
    Inputs,
    Metric,
    Row,
    interval_rows,
    limits_of,
)

_TECE = Metric("tece_corrected", "Corrected TECE", 4, DIFFERENCE)
_CROSS_FITTED = Metric("tece_cross_fitted", "Cross-fitted lower bound of TECE", 4, (-math.inf, 1))
_REPORTED = "TECE with the reported uncertainty"

METRICS = (
    _TECE,
    *limits_of(_TECE, POSITIVE),
    Metric("tece_noise_floor", "Noise floor of the uncorrected TECE", 4, (0, 0.25)),
    Metric("tece_minimum_detectable", "Smallest TECE that can be detected", 4, POSITIVE),
    Metric("tece_dropped_mass", "Share of samples alone in their bin", 4, SHARE),
    Metric("confidence_level", "Confidence level of intervals", 2, SHARE),
    Metric("tece_corrected_half_bins", "Corrected TECE, half the bins", 4, DIFFERENCE),
    Metric("tece_corrected_double_bins", "Corrected TECE, twice the bins", 4, DIFFERENCE),
    Metric("tece_reported", f"{_REPORTED}, at least", 4, (-1, math.inf)),
    Metric("tece_reported_low", f"{_REPORTED}, lower limit", 4, POSITIVE),
    Metric("mean_miscalibration", "Mean miscalibration", 4, DIFFERENCE),
    Metric("epistemic_dependence", "Epistemic dependence", 4, (-2, 2)),
    _CROSS_FITTED,
    limits_of(_CROSS_FITTED, SHARE)[0],
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield the corrected TECE with what describes it, its parts, and the lower bound."""
    sample, settings = inputs.sample, inputs.settings
    level, seed = settings["confidence_level"], settings["random_state"]
    corrected = metrics.corrected_epistemic_calibration_error(
        sample, bins=inputs.corrected_bins, confidence_level=level
    )
    yield from _corrected_rows(corrected, settings)
    binning, n_bins = settings["corrected_binning"], settings["corrected_n_bins"]
    bins = {"binning": binning, "random_state": seed}
    for name, other in (("half", max(1, n_bins // 2)), ("double", 2 * n_bins)):
        # Methods are compared at the same resolution.
        moved = metrics.corrected_epistemic_calibration_error(
            sample, n_bins=other, adaptive=False, **bins
        )
        yield Row(f"tece_corrected_{name}_bins", moved.estimate, binning, other)
    # Where a method reports nothing else, its uncertainty is the variance, and the two agree.
    at_least: metrics.CorrectedError | metrics.Estimate = corrected
    if sample.reported is not None:
        at_least = metrics.reported_uncertainty_error(
            sample, n_bins=n_bins, confidence_level=level, **bins
        ).lower
    yield Row("tece_reported", at_least.estimate, binning, n_bins)
    yield Row("tece_reported_low", at_least.ci_low, binning, n_bins)
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
    options = {name: settings[name] for name in ("random_state", "confidence_level")}
    corrected = metrics.mean_corrected_error(y_true, means, bins, **options)
    yield from _corrected_rows(corrected, settings)
    yield Row("confidence_level", settings["confidence_level"])


def _corrected_rows(
    corrected: metrics.CorrectedError, settings: Mapping[str, Any]
) -> Iterator[Row]:
    bins = settings["corrected_binning"], settings["corrected_n_bins"]
    yield from interval_rows("tece_corrected", corrected, *bins)
    for name in ("noise_floor", "minimum_detectable", "dropped_mass"):
        yield Row(f"tece_{name}", getattr(corrected, name), *bins)
