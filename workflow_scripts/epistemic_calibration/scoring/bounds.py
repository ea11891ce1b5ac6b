"""Bounds of the error of each method from one label per input, beside the best of all methods.

To bound the error by a stronger model than those of a run, add its predictions as a method.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration.metrics.one_label import curve_of_bounds
from epistemic_calibration.scoring.base import Inputs, Metric, Row

ORDER = 7

_CURVE_BINS = 10

METRICS = (
    Metric("brier_of_mean", "Brier score of the mean", 4, "lower", (0, 1), of_all_tasks=True),
    Metric(
        "brier_above_best",
        "Brier score of the mean less that of the best method",
        4,
        "lower",
        (-1, 1),
        of_all_tasks=True,
    ),
    *(
        Metric(name, label, digits, None, (0, math.inf), of_all_tasks=True, kind="diagnostic")
        for name, label, digits in (
            ("reducible_error_at_least", "Reducible error, at least", 4),
            ("reducible_error_at_most", "Reducible error, at most", 4),
            ("reported_share_at_least", "Share of the error that is reported, at least", 3),
            ("reported_share_at_most", "Share of the error that is reported, at most", 3),
        )
    ),
    *(
        Metric(f"bounds_curve_{name}", label, 5, None, kind="diagnostic")
        for name, label in (
            ("uncertainty", "Error that is reported in a bin of EU, with bounds"),
            ("at_least", "Reducible error in a bin of EU, at least"),
            ("at_most", "Reducible error in a bin of EU, at most"),
        )
    ),
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield nothing: a bound needs the other methods."""
    yield from ()


def rows_of_methods(
    y_true: Sequence[np.ndarray],
    compared: Mapping[str, Mapping[str, np.ndarray]],
    settings: Mapping[str, Any],
) -> Iterator[tuple[str, Row]]:
    """Yield the bounds of every method, as means over tasks."""
    options = {
        "random_state": settings["random_state"],
        "confidence_level": settings["confidence_level"],
    }
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
        for name, values in (
            ("uncertainty", curve.uncertainty),
            ("at_least", curve.ci_low),
            ("at_most", curve.ci_high),
        ):
            for number, value in enumerate(values):
                row = Row(f"bounds_curve_{name}", value, "quantile", len(values), number)
                yield method, row
