"""Is the epistemic uncertainty of the right size? Scores from several labels per input."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration.metrics._contributions import Contributions, contributions
from epistemic_calibration.metrics._label_counts import label_moments
from epistemic_calibration.metrics.error_curve import curve
from epistemic_calibration.metrics.label_order import (
    mean_within_label_correlation,
    within_label_products,
)
from epistemic_calibration.metrics.law_error import LawError
from epistemic_calibration.metrics.law_test import can_reject
from epistemic_calibration.metrics.second_order import summarize
from epistemic_calibration.scores.base import (
    DIFFERENCE,
    POSITIVE,
    SHARE,
    Inputs,
    Metric,
    Row,
    curve_rows,
    interval_rows,
    limits_of,
)

#: Quantiles of EU in the curve of the error against EU.
_CURVE_BINS = 10

# Estimates with intervals, by their attribute of `metrics.SecondOrderError`.
_ESTIMATES = {
    "reducible": Metric("reducible_error", "Reducible error", 4, DIFFERENCE),
    "uncertainty": Metric("reported_error", "Error that is reported", 4, POSITIVE),
    "gap": Metric("size_gap", "Gap: error less what is reported", 4, (-math.inf, 1)),
    "share": Metric("reported_share", "Share of the error that is reported", 3, POSITIVE),
    "slope": Metric("size_slope", "Slope of the error on EU", 2),
    "size_error": Metric("size_error", "Size error", 6),
    "calibration_error": Metric(
        "tece_all_labels", "Corrected TECE, from all labels", 4, DIFFERENCE
    ),
    "variance_in_bins": Metric("variance_in_bins", "Variance of p* in bins", 4, DIFFERENCE),
    "aleatoric": Metric("aleatoric_uncertainty", "Aleatoric uncertainty", 4, (-0.25, 0.25)),
}
# Those whose intervals may also allow for other members of the same law.
_OF_LAW = {
    attribute: replace(metric, name=f"{metric.name}_of_law")
    for attribute, metric in _ESTIMATES.items()
    if attribute in LawError.__dataclass_fields__
}
_CORRELATION = Metric(
    "within_label_correlation", "Correlation with label frequency within a class", 3, DIFFERENCE
)

METRICS = (
    *_ESTIMATES.values(),
    *(limit for metric in _ESTIMATES.values() for limit in limits_of(metric)),
    *(limit for metric in _OF_LAW.values() for limit in limits_of(metric, what=" of the law")),
    Metric("p_second_order", "p* is distributed as the hypotheses", range=SHARE),
    _CORRELATION,
    *limits_of(_CORRELATION, DIFFERENCE),
    Metric("labels_per_input", "Labels per input", 1, POSITIVE),
    Metric("curve_uncertainty", "Error that is reported in a bin of EU", 5),
    Metric("curve_error", "Reducible error in a bin of EU", 5),
    Metric("curve_error_low", "Reducible error in a bin of EU, lower limit", 5),
    Metric("curve_error_high", "Reducible error in a bin of EU, upper limit", 5),
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield the second-order error of a task and the test of it, where there are several labels."""
    if inputs.n_positive is None:
        return
    settings = inputs.settings
    of_task = _contributions(inputs)
    level = settings["confidence_level"]
    yield from _rows_of(summarize([of_task], confidence_level=level))
    if inputs.sample.reported is None and can_reject(
        inputs.sample.hypotheses.shape[1], exchangeable=inputs.exchangeable, draws="functions"
    ):
        # The hypotheses say nothing of an uncertainty that the method reports itself.
        test = metrics.second_order_test(
            inputs.n_positive,
            inputs.n_labels,
            inputs.sample.hypotheses,
            exchangeable=inputs.exchangeable,
            n_resamples=settings["n_resamples"],
            random_state=settings["random_state"],
        )
        yield Row("p_second_order", test.p_value)
    products, kept = _products(inputs)
    correlation = mean_within_label_correlation([products], kept, None, level)
    yield from interval_rows("within_label_correlation", correlation)
    yield Row("labels_per_input", float(np.mean(inputs.n_labels)))


def summary(
    inputs: Inputs,
) -> tuple[Contributions, tuple[np.ndarray, np.ndarray]] | None:
    """Return what each input says, where there are several labels."""
    if inputs.n_positive is None:
        return None
    return _contributions(inputs), _products(inputs)


def rows_of_all_tasks(
    summaries: Sequence[tuple[Contributions, tuple[np.ndarray, np.ndarray]]],
    settings: Mapping[str, Any],
) -> Iterator[Row]:
    """Yield means over tasks, which share their images, and the error in quantiles of EU."""
    level = settings["confidence_level"]
    tasks, products = zip(*summaries, strict=True)
    yield from _rows_of(summarize(tasks, confidence_level=level))
    correlation = mean_within_label_correlation(
        [of_task for of_task, _ in products], products[0][1], None, level
    )
    yield from interval_rows("within_label_correlation", correlation)
    images = np.arange(int(tasks[0].kept.sum()))
    found = curve([task.asked for task in tasks], images, _CURVE_BINS, level)
    yield from curve_rows(
        {
            "curve_uncertainty": found.uncertainty,
            "curve_error": found.error,
            "curve_error_low": found.ci_low,
            "curve_error_high": found.ci_high,
        }
    )


def _contributions(inputs: Inputs) -> Contributions:
    settings = inputs.settings
    if "contributions" not in inputs.kept:
        inputs.kept["contributions"] = contributions(
            label_moments(inputs.n_positive, inputs.n_labels),
            inputs.sample.hypotheses,
            epistemic_uncertainty=inputs.sample.reported,
            exchangeable=inputs.exchangeable,
            n_bins=settings["corrected_n_bins"],
            binning=settings["corrected_binning"],
            random_state=settings["random_state"],
        )
    return inputs.kept["contributions"]


def _products(inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    labels = inputs.sample.y if inputs.classes is None else inputs.classes
    return within_label_products(labels, inputs.sample.mean, inputs.n_positive, inputs.n_labels)


def _rows_of(error: metrics.SecondOrderError) -> Iterator[Row]:
    for attribute, metric in _ESTIMATES.items():
        yield from interval_rows(metric.name, getattr(error, attribute))
    for attribute, metric in _OF_LAW.items() if error.law is not None else ():
        _, *limits = interval_rows(metric.name, getattr(error.law, attribute))
        yield from limits
