"""Scores of the prediction alone: accuracy, proper scores, classical calibration."""

from __future__ import annotations

from collections.abc import Iterator

from epistemic_calibration import metrics
from epistemic_calibration.scores.base import POSITIVE, SHARE, Inputs, Metric, Row

METRICS = (
    Metric("accuracy", "Accuracy", 3, SHARE, short_label="Acc."),
    Metric("brier", "Brier score", 3, SHARE),
    Metric("log_loss", "Log loss", 3, POSITIVE),
    Metric("auroc", "AUROC", 3, SHARE),
    Metric("ece", "ECE", 4, SHARE),
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield the scores of the prediction."""
    given = inputs.sample.y, inputs.prediction
    for name in ("accuracy", "brier_score", "log_loss", "auroc"):
        yield Row(name.removesuffix("_score"), getattr(metrics, name)(*given))
    n_bins = inputs.settings["ece_n_bins"]
    yield Row("ece", metrics.expected_calibration_error(*given, n_bins=n_bins), "uniform", n_bins)
