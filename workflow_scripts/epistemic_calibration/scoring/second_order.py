"""Is the epistemic uncertainty of the right size? Scores from several labels per input."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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
from epistemic_calibration.metrics.law_test import can_reject
from epistemic_calibration.metrics.second_order import summarize
from epistemic_calibration.scoring.base import Inputs, Metric, Row

ORDER = 6

#: Quantiles of EU in the curve of the error against EU.
_CURVE_BINS = 10

# Estimates: their name in the scores, and in `metrics.SecondOrderError`; those with an interval
# have rows NAME_low and NAME_high.
_ESTIMATES = {
    "reducible_error": ("reducible", "Reducible error", 4, "lower", (-1, 1)),
    "reported_error": ("uncertainty", "Error that is reported", 4, None, (0, math.inf)),
    "size_gap": ("gap", "Gap: error less what is reported", 4, None, (-math.inf, 1)),
    "reported_share": ("share", "Share of the error that is reported", 3, None, (0, math.inf)),
    "size_slope": ("slope", "Slope of the error on EU", 2, None, (-math.inf, math.inf)),
    "size_error": ("size_error", "Size error", 6, "lower", (-math.inf, math.inf)),
    "tece_all_labels": (
        "calibration_error",
        "Corrected TECE, from all labels",
        4,
        "lower",
        (-1, 1),
    ),
    "variance_in_bins": ("variance_in_bins", "Variance of p* in bins", 4, None, (-1, 1)),
    "aleatoric_uncertainty": ("aleatoric", "Aleatoric uncertainty", 4, None, (-0.25, 0.25)),
}

# Intervals that allow for other members of the same law.
_OF_LAW = ("size_gap", "reported_share", "size_slope", "size_error")

METRICS = (
    *(
        Metric(name, label, digits, better, range_, of_all_tasks=True)
        for name, (_, label, digits, better, range_) in _ESTIMATES.items()
    ),
    *(
        Metric(
            f"{name}_{end}",
            f"{label}, {'lower' if end == 'low' else 'upper'} limit",
            digits,
            None,
            (-math.inf, math.inf),
            of_all_tasks=True,
            kind="diagnostic",
        )
        for name, (_, label, digits, _, _) in _ESTIMATES.items()
        for end in ("low", "high")
    ),
    *(
        Metric(
            f"{name}_of_law_{end}",
            f"{_ESTIMATES[name][1]}, {'lower' if end == 'low' else 'upper'} limit of the law",
            _ESTIMATES[name][2],
            None,
            (-math.inf, math.inf),
            of_all_tasks=True,
            kind="diagnostic",
        )
        for name in _OF_LAW
        for end in ("low", "high")
    ),
    Metric(
        "p_second_order",
        "p* is distributed as the hypotheses",
        4,
        None,
        (0, 1),
        kind="p_value",
        resampled=True,
    ),
    Metric(
        "within_label_correlation",
        "Correlation with label frequency within a class",
        3,
        None,
        (-1, 1),
        of_all_tasks=True,
        kind="diagnostic",
    ),
    Metric(
        "within_label_correlation_low",
        "Correlation with label frequency within a class, lower limit",
        3,
        None,
        (-1, 1),
        of_all_tasks=True,
        kind="diagnostic",
    ),
    Metric(
        "within_label_correlation_high",
        "Correlation with label frequency within a class, upper limit",
        3,
        None,
        (-1, 1),
        of_all_tasks=True,
        kind="diagnostic",
    ),
    Metric(
        "labels_per_input",
        "Labels per input",
        1,
        None,
        (0, math.inf),
        kind="diagnostic",
    ),
    *(
        Metric(f"curve_{name}", label, 5, None, kind="diagnostic")
        for name, label in (
            ("uncertainty", "Error that is reported in a bin of EU"),
            ("error", "Reducible error in a bin of EU"),
            ("error_low", "Reducible error in a bin of EU, lower limit"),
            ("error_high", "Reducible error in a bin of EU, upper limit"),
        )
    ),
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
    yield from _with_limits("within_label_correlation", correlation)
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
    yield from _with_limits("within_label_correlation", correlation)
    images = np.arange(int(tasks[0].kept.sum()))
    found = curve([task.asked for task in tasks], images, _CURVE_BINS, level)
    for name, values in (
        ("uncertainty", found.uncertainty),
        ("error", found.error),
        ("error_low", found.ci_low),
        ("error_high", found.ci_high),
    ):
        for number, value in enumerate(values):
            yield Row(f"curve_{name}", value, "quantile", len(values), number)


def _contributions(inputs: Inputs) -> Contributions:
    if "contributions" not in inputs.kept:
        inputs.kept["contributions"] = _new_contributions(inputs)
    return inputs.kept["contributions"]


def _new_contributions(inputs: Inputs) -> Contributions:
    settings = inputs.settings
    return contributions(
        label_moments(inputs.n_positive, inputs.n_labels),
        inputs.sample.hypotheses,
        epistemic_uncertainty=inputs.sample.reported,
        exchangeable=inputs.exchangeable,
        n_bins=settings["corrected_n_bins"],
        binning=settings["corrected_binning"],
        random_state=settings["random_state"],
    )


def _products(inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    labels = inputs.sample.y if inputs.classes is None else inputs.classes
    return within_label_products(labels, inputs.sample.mean, inputs.n_positive, inputs.n_labels)


def _rows_of(error: metrics.SecondOrderError) -> Iterator[Row]:
    for name, (attribute, *_) in _ESTIMATES.items():
        yield from _with_limits(name, getattr(error, attribute))
    for name in _OF_LAW if error.law is not None else ():
        of_law = getattr(error.law, _ESTIMATES[name][0])
        yield Row(f"{name}_of_law_low", of_law.ci_low)
        yield Row(f"{name}_of_law_high", of_law.ci_high)


def _with_limits(name: str, estimate: metrics.Estimate | metrics.CorrectedError) -> Iterator[Row]:
    yield Row(name, estimate.estimate)
    yield Row(f"{name}_low", estimate.ci_low)
    yield Row(f"{name}_high", estimate.ci_high)
