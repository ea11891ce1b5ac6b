"""Scores of the prediction alone: accuracy, proper scores, classical calibration."""

from __future__ import annotations

import math
from collections.abc import Iterator

from epistemic_calibration import metrics
from epistemic_calibration.scoring.base import Inputs, Metric, Row

ORDER = 1

METRICS = (
    Metric(
        "accuracy",
        "Accuracy",
        3,
        "higher",
        (0, 1),
        {"paper": 1, "summary": 1, "by_eece": 1},
        short_label="Acc.",
    ),
    Metric("brier", "Brier score", 3, "lower", (0, 1), {"paper": 8, "by_eece": 2}),
    Metric("log_loss", "Log loss", 3, "lower", (0, math.inf), {"paper": 9, "by_eece": 3}),
    Metric("auroc", "AUROC", 3, "higher", (0, 1), {"paper": 10, "by_eece": 4}),
    Metric("ece", "ECE", 4, "lower", (0, 1), {"paper": 2, "by_eece": 5}),
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield the scores of the prediction."""
    y_true, prediction = inputs.sample.y, inputs.prediction
    yield Row("accuracy", metrics.accuracy(y_true, prediction))
    yield Row("brier", metrics.brier_score(y_true, prediction))
    yield Row("log_loss", metrics.log_loss(y_true, prediction))
    yield Row("auroc", metrics.auroc(y_true, prediction))
    n_bins = inputs.settings["ece_n_bins"]
    ece = metrics.expected_calibration_error(y_true, prediction, n_bins=n_bins)
    yield Row("ece", ece, "uniform", n_bins)
