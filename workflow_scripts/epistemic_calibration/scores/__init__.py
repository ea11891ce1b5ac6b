"""Which metrics are scored, how tables show them, and the scores of one set of hypotheses.

To add a metric to the scores, add one line to ``METRICS`` of a family and yield its row beside it;
to show it in a table, add its name to `TABLE_METRICS`. A family is a file with both, which
`_FAMILIES` lists (`base.py` documents them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from epistemic_calibration.metrics import Sample
from epistemic_calibration.metrics.error_curve import halves_of_uncertainty
from epistemic_calibration.scores import (
    bounds,
    calibration_tests,
    corrected,
    counts,
    eece,
    first_order,
    ranking,
    recalibration,
    second_order,
)
from epistemic_calibration.scores.base import Inputs, Metric, Row

__all__ = [
    "METRICS",
    "TABLE_METRICS",
    "Metric",
    "Scorer",
    "rows_of_all_tasks",
    "rows_of_methods",
    "table_metrics",
]

_FAMILIES = (
    first_order,
    eece,
    corrected,
    calibration_tests,
    recalibration,
    second_order,
    counts,
    ranking,
)
#: Those that estimate something of all tasks together, from the ``summary`` of each.
_OF_ALL_TASKS = {"corrected": corrected, "second_order": second_order, "ranking": ranking}

#: Every metric by name.
METRICS: dict[str, Metric] = {m.name: m for f in (*_FAMILIES, bounds) for m in f.METRICS}

#: Names of the metrics that a table shows, in its order.
TABLE_METRICS: dict[str, tuple[str, ...]] = {
    "paper": (
        *("accuracy", "ece", "eece", "eece_calibration", "eece_dispersion"),
        *("tece_corrected", "tece_reported", "brier", "log_loss", "auroc"),
    ),
    "summary": ("accuracy", "eece", "eece_calibration", "eece_dispersion"),
    "by_eece": (
        *("accuracy", "brier", "log_loss", "auroc", "ece"),
        *("eece", "eece_calibration", "eece_dispersion", "mean_epistemic_uncertainty"),
        *("log_loss_before_recalibration", "log_loss_after_recalibration"),
    ),
    "drivers": (
        *("eece", "eece_calibration", "eece_dispersion", "mean_epistemic_uncertainty"),
        *("tece_corrected", "tece_corrected_half_bins", "tece_corrected_double_bins"),
        *("tece_reported", "eece_noise_floor", "mean_miscalibration", "epistemic_dependence"),
        *("tece_cross_fitted", "p_epistemic_calibration", "p_mean_calibration"),
        "p_epistemic_independence",
    ),
    "comparisons": ("tece_corrected",),
}


def table_metrics(table: str) -> tuple[Metric, ...]:
    """Return the metrics that a table shows, in its order.

    Examples
    --------
    >>> [metric.label for metric in table_metrics("paper")][:3]
    ['Accuracy', 'ECE', 'EECE']
    """
    return tuple(METRICS[name] for name in TABLE_METRICS[table])


class Scorer:
    """Every score of one set of hypotheses.

    Parameters
    ----------
    arrays : mapping
        ``y_true`` of shape (n_samples,), labels in {0, 1}; ``hypotheses`` of shape
        (n_samples, n_hypotheses), in [0, 1]; where the method reports them, ``prediction`` and
        ``epistemic_uncertainty`` of shape (n_samples,), and ``exchangeable``, False where the
        hypotheses are no draws; where there are several labels per input, ``n_positive`` and
        ``n_labels``, int of shape (n_samples,), and the ``classes`` of the inputs, if there are
        more than the two labels.
    settings : mapping
        The ``scores`` block of the configuration: n_bins, binning, ece_n_bins,
        corrected_n_bins, corrected_binning, confidence_level, n_resamples, recalibration and
        random_state.

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
        corrected_bins = sample.bins(
            n_bins=settings["corrected_n_bins"],
            binning=settings["corrected_binning"],
            random_state=settings["random_state"],
        )
        self._inputs = Inputs(
            sample,
            arrays.get("prediction", sample.mean),
            corrected_bins,
            settings,
            n_positive=arrays.get("n_positive"),
            n_labels=arrays.get("n_labels"),
            classes=arrays.get("classes"),
            exchangeable=bool(arrays.get("exchangeable", True)),
        )

    def rows(self, diagnostics: Mapping[str, float] | None = None) -> Iterator[dict[str, Any]]:
        """Yield one row per metric.

        Columns scope ("task"), bin, metric, value, n_bins, n_hypotheses and binning; n_bins and
        binning are None where there are no bins. ``diagnostics``, numbers about the fit, become
        rows named ``diagnostic_NAME``.
        """
        n_hypotheses = self._inputs.sample.hypotheses.shape[1]
        for family in _FAMILIES:
            for row in family.rows(self._inputs):
                yield _tidy(row, "task", n_hypotheses)
        for name, value in (diagnostics or {}).items():
            yield _tidy(Row(f"diagnostic_{name}", value), "task", n_hypotheses)

    def summaries(self) -> dict[str, Any]:
        """Return what the families must know of a task for `rows_of_all_tasks`, by family."""
        return {name: family.summary(self._inputs) for name, family in _OF_ALL_TASKS.items()}

    def compared(self) -> dict[str, np.ndarray]:
        """Return what `rows_of_methods` and comparisons of methods must know of a task.

        Arrays of shape (n_samples,): ``mean_prediction``; ``bins`` of the corrected error;
        ``uncertainty``, the squared error that the method says it makes, and the same by which
        inputs are chosen and with which the error made on these is compared,
        ``uncertainty_chosen_by`` and ``uncertainty_compared``.
        """
        inputs, sample = self._inputs, self._inputs.sample
        chosen_by, compared = halves_of_uncertainty(
            sample.hypotheses,
            epistemic_uncertainty=sample.reported,
            exchangeable=inputs.exchangeable,
        )
        return {
            "mean_prediction": sample.mean,
            "bins": inputs.corrected_bins,
            "uncertainty": inputs.factor * sample.uncertainty,
            "uncertainty_chosen_by": chosen_by,
            "uncertainty_compared": compared,
        }


def rows_of_all_tasks(
    summaries: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield what is estimated of all tasks of a data set together, one row per metric.

    ``summaries`` are the `Scorer.summaries` of each task; sample n of every task is the same image.
    Rows are as those of `Scorer.rows`, with n_hypotheses None and the scope "all_tasks", or "bin"
    and the number of the bin for what is of one bin of all tasks. A ValueError says that the tasks
    differ in their number of samples.
    """
    for name, family in _OF_ALL_TASKS.items():
        of_family = [of_task[name] for of_task in summaries]
        if all(summary is not None for summary in of_family):
            for row in family.rows_of_all_tasks(of_family, settings):
                yield _tidy(row, "all_tasks", None)


def rows_of_methods(
    y_true: Sequence[np.ndarray],
    compared: Mapping[str, Mapping[str, np.ndarray]],
    settings: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield what is estimated of each method beside all others, one row per method and metric.

    ``y_true`` are labels of each task, ``compared`` by method the arrays of `Scorer.compared`, each
    of shape (n_tasks, n_samples). Rows are as those of `rows_of_all_tasks`, and method.
    """
    for method, row in bounds.rows_of_methods(y_true, compared, settings):
        yield {"method": method, **_tidy(row, "all_tasks", None)}


def _tidy(row: Row, scope: str, n_hypotheses: int | None) -> dict[str, Any]:
    # No table would show a row that is not described.
    if row.metric not in METRICS and not row.metric.startswith("diagnostic_"):
        raise ValueError(f"no family of scores describes {row.metric!r} in its METRICS")
    return {
        "scope": scope if row.bin is None else "bin",
        "bin": row.bin,
        "metric": row.metric,
        "value": float(row.value),
        "n_bins": row.n_bins,
        "n_hypotheses": n_hypotheses,
        "binning": row.binning,
    }
