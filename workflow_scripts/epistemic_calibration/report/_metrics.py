"""What metrics are called in tables and figures; apart, as it makes all metrics a source."""

from __future__ import annotations


def metric_label(metric: str) -> str:
    """Return the label of a metric, or its name with spaces if it is not registered."""
    from epistemic_calibration.scores import METRICS

    return METRICS[metric].label if metric in METRICS else metric.replace("_", " ")
