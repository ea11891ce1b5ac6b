"""Bounds of the error of each method from one label per input, beside the best of all methods.

To bound the error by a stronger model than those of a run, add its predictions as a method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration.metrics.one_label import curve_of_bounds
from epistemic_calibration.scores.base import (
    DIFFERENCE,
    POSITIVE,
    SHARE,
    Metric,
    Row,
    curve_rows,
)

_CURVE_BINS = 10

METRICS = (
    Metric("brier_of_mean", "Brier score of the mean", 4, SHARE),
    Metric(
        "brier_above_best", "Brier score of the mean less that of the best method", 4, DIFFERENCE
    ),
    *(
        Metric(f"{name}_at_{end}", f"{label}, at {end}", digits, POSITIVE)
        for name, label, digits in (
            ("reducible_error", "Reducible error", 4),
            ("reported_share", "Share of the error that is reported", 3),
        )
        for end in ("least", "most")
    ),
    Metric("bounds_curve_uncertainty", "Error that is reported in a bin of EU, with bounds", 5),
    Metric("bounds_curve_at_least", "Reducible error in a bin of EU, at least", 5),
    Metric("bounds_curve_at_most", "Reducible error in a bin of EU, at most", 5),
)


def rows_of_methods(
    y_true: Sequence[np.ndarray],
    compared: Mapping[str, Mapping[str, np.ndarray]],
    settings: Mapping[str, Any],
) -> Iterator[tuple[str, Row]]:
    """Yield the bounds of every method, as means over tasks."""
    options = {name: settings[name] for name in ("random_state", "confidence_level")}
    predictions = {name: arrays["mean_prediction"] for name, arrays in compared.items()}
    references = np.stack(list(predictions.values()), axis=1)
    for method, arrays in compared.items():
        bounds = metrics.mean_bounds_from_one_label(
            y_true,
            predictions[method],
            references,
            epistemic_uncertainty=arrays["uncertainty"],
            **options,
        )
        for name, value in (
            ("brier_of_mean", bounds.upper.estimate),
            ("brier_above_best", bounds.lower.estimate),
            ("reducible_error_at_least", bounds.ci_low),
            ("reducible_error_at_most", bounds.ci_high),
            ("reported_share_at_least", bounds.share_low),
            ("reported_share_at_most", bounds.share_high),
        ):
            yield method, Row(name, value)
        curve = curve_of_bounds(
            y_true,
            predictions[method],
            references,
            chosen_by=arrays["uncertainty_chosen_by"],
            compared=arrays["uncertainty_compared"],
            n_bins=_CURVE_BINS,
            **options,
        )
        curves = {
            "bounds_curve_uncertainty": curve.uncertainty,
            "bounds_curve_at_least": curve.ci_low,
            "bounds_curve_at_most": curve.ci_high,
        }
        for row in curve_rows(curves):
            yield method, row
