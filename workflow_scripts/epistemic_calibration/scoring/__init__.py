"""Which metrics are scored, how tables show them, and the scores of one set of hypotheses.

Families of metrics are found by file name. To add a metric to the scores and the tables, add
one line to ``METRICS`` of a family and yield its row beside it; to add a family, add a file with
both (`base.py` documents them).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from epistemic_calibration.metrics import Sample
from epistemic_calibration.registry import available, load
from epistemic_calibration.scoring.base import Inputs, Metric, Row

__all__ = ["METRICS", "Metric", "Scorer", "rows_of_all_tasks", "table_metrics"]


def _load_families() -> tuple[ModuleType, ...]:
    families = [load(__name__, name) for name in available(__name__)]
    return tuple(sorted(families, key=lambda family: getattr(family, "ORDER", math.inf)))


def _collect(families: Iterable[ModuleType]) -> dict[str, Metric]:
    metrics: dict[str, Metric] = {}
    for family in families:
        for metric in family.METRICS:
            if metric.name in metrics:
                raise ValueError(f"{family.__file__} describes {metric.name!r} a second time")
            metrics[metric.name] = metric
    return metrics


_FAMILIES = _load_families()

#: Every metric by name, in the order of the families.
METRICS: dict[str, Metric] = _collect(_FAMILIES)


def table_metrics(table: str) -> tuple[Metric, ...]:
    """Return the metrics that a table shows, in its order.

    Parameters
    ----------
    table : str
        As in `Metric.tables`.

    Examples
    --------
    >>> [metric.label for metric in table_metrics("paper")][:3]
    ['Accuracy', 'ECE', 'EECE']
    """
    shown = [metric for metric in METRICS.values() if table in metric.tables]
    return tuple(sorted(shown, key=lambda metric: metric.tables[table]))


class Scorer:
    """Every score of one set of hypotheses.

    Parameters
    ----------
    arrays : mapping
        ``y_true`` of shape (n_samples,), labels in {0, 1}; ``hypotheses`` of shape
        (n_samples, n_hypotheses), in [0, 1]; and, where the method reports them,
        ``prediction`` and ``epistemic_uncertainty`` of shape (n_samples,).
    settings : mapping
        The ``scores`` block of the configuration: n_bins, binning, ece_n_bins,
        corrected_n_bins, corrected_binning, confidence_level, n_resamples, recalibration and
        random_state.

    Attributes
    ----------
    y_true : ndarray of shape (n_samples,)
        As given.
    mean : ndarray of float64, shape (n_samples,)
        Mean of the hypotheses.
    corrected_bins : ndarray of int, shape (n_samples,)
        Bins of the corrected error.

    Raises
    ------
    ValueError
        If the arrays are not as above, or a setting is out of range.

    Examples
    --------
    >>> hypotheses = np.random.default_rng(0).beta(2, 3, size=(200, 5))
    >>> arrays = {"y_true": hypotheses.mean(axis=1) > 0.5, "hypotheses": hypotheses}
    >>> settings = dict(n_bins=10, binning="kmeans", ece_n_bins=10, corrected_n_bins=10)
    >>> settings |= dict(corrected_binning="nested", confidence_level=0.95, n_resamples=99)
    >>> settings |= dict(recalibration=False, random_state=0)
    >>> row = next(Scorer(arrays, settings).rows())
    >>> row["scope"], row["metric"], row["value"]
    ('task', 'accuracy', 1.0)
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> None:
        sample = Sample(
            arrays["y_true"],
            arrays["hypotheses"],
            epistemic_uncertainty=arrays.get("epistemic_uncertainty"),
        )
        self.y_true = arrays["y_true"]
        self.mean = sample.mean
        self.corrected_bins = sample.bins(
            n_bins=settings["corrected_n_bins"],
            binning=settings["corrected_binning"],
            random_state=settings["random_state"],
        )
        prediction = arrays.get("prediction", self.mean)
        self._inputs = Inputs(sample, prediction, self.corrected_bins, settings)

    def rows(self, diagnostics: Mapping[str, float] | None = None) -> Iterator[dict[str, Any]]:
        """Yield one row per metric.

        Parameters
        ----------
        diagnostics : mapping, optional
            Numbers about the fit; they become rows named ``diagnostic_NAME``.

        Yields
        ------
        dict
            scope ("task"), metric, value, n_bins, n_hypotheses and binning; n_bins and binning
            are None where there are no bins.
        """
        n_hypotheses = self._inputs.sample.hypotheses.shape[1]
        for family in _FAMILIES:
            for row in family.rows(self._inputs):
                yield _tidy(row, "task", n_hypotheses)
        for name, value in (diagnostics or {}).items():
            yield _tidy(Row(f"diagnostic_{name}", value), "task", n_hypotheses)


def rows_of_all_tasks(
    samples: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], settings: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield what is estimated of all tasks of a data set together, one row per metric.

    Parameters
    ----------
    samples : sequence over tasks, of (y_true, mean, corrected_bins)
        Attributes of a `Scorer` per task; sample n of every task is the same image.
    settings : mapping
        As in `Scorer`.

    Yields
    ------
    dict
        As `Scorer.rows` does, with the scope "all_tasks" and n_hypotheses None.

    Raises
    ------
    ValueError
        If the tasks differ in their number of samples.
    """
    for family in _FAMILIES:
        if hasattr(family, "rows_of_all_tasks"):
            for row in family.rows_of_all_tasks(samples, settings):
                yield _tidy(row, "all_tasks", None)


def _tidy(row: Row, scope: str, n_hypotheses: int | None) -> dict[str, Any]:
    # No table would show a row that is not described.
    if row.metric not in METRICS and not row.metric.startswith("diagnostic_"):
        raise ValueError(f"no family of scores describes {row.metric!r} in its METRICS")
    return {
        "scope": scope,
        "metric": row.metric,
        "value": float(row.value),
        "n_bins": row.n_bins,
        "n_hypotheses": n_hypotheses,
        "binning": row.binning,
    }
