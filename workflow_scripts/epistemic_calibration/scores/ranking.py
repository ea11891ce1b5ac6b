"""Does the uncertainty tell where a method errs? Errors kept, beside those of 1 − max p."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from epistemic_calibration.metrics import ErrorRanking
from epistemic_calibration.metrics._label_counts import label_moments, squared_error
from epistemic_calibration.metrics.controls import CONTROLS, control_estimates
from epistemic_calibration.metrics.ranking import errors_and_doubt, rank_errors
from epistemic_calibration.scores.base import (
    ANY,
    DIFFERENCE,
    POSITIVE,
    SHARE,
    Inputs,
    Metric,
    Row,
    interval_rows,
    limits_of,
)

# Of errors of 0 and 1, and of the squared error: name, attribute, label, digits.
_ERRORS = (
    ("kept_error_90", "kept_error_90", "Errors kept at 90 %", 4),
    ("kept_error_80", "kept_error_80", "Errors kept at 80 %", 4),
    ("kept_error_50", "kept_error_50", "Errors kept at 50 %", 4),
    ("aurc", "aurc", "AURC", 4),
    ("augrc", "augrc", "AUGRC", 4),
    ("auroc_of_errors", "auroc_of_errors", "AUROC of errors", 3),
)
_SQUARED = (
    ("kept_squared_error_90", "kept_error_90", "Reducible error kept at 90 %", 5),
    ("squared_augrc", "augrc", "AUGRC of the reducible error", 5),
)
#: Differences that have rows.
_COMPARED = ("kept_error_90", "augrc", "auroc_of_errors", *(name for name, *_ in _SQUARED))


def _metrics() -> Iterator[Metric]:
    yield Metric("error_rate", "Errors", 4, SHARE)
    for name, _, label, digits in (*_ERRORS, *_SQUARED):
        # A squared error may be estimated below 0, and its limits are not bounded.
        squared = "squared" in name
        ends = DIFFERENCE if squared else SHARE
        by_eu = Metric(name, label, digits, ends)
        yield by_eu
        yield Metric(f"{name}_by_prediction", f"{label}, by 1 − max p", digits, ends)
        if name == "kept_error_90":
            yield from limits_of(by_eu, ends)
        if name in _COMPARED:
            label = f"{label}: by EU less by 1 − max p"
            apart = Metric(f"{name}_difference", label, digits, DIFFERENCE)
            yield from (apart, *limits_of(apart, ANY if squared else DIFFERENCE))
    for name in CONTROLS:
        label = f"Share that is reported, of the control {name}"
        yield Metric(f"share_of_{name}", label, 3, POSITIVE)
        if name != "constant":
            yield Metric(f"slope_of_{name}", f"Slope on EU, of the control {name}", 3)


METRICS = tuple(_metrics())


class _Task(NamedTuple):
    """Of one task: errors, EU and doubt of every input, and of those with several labels."""

    error: np.ndarray
    uncertainty: np.ndarray
    doubt: np.ndarray
    squared: np.ndarray | None
    kept: np.ndarray | None  # inputs of the three below, and of squared
    said: np.ndarray | None
    mean: np.ndarray | None


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield the ranking of the errors of a task."""
    yield from _ranking_rows([summary(inputs)], inputs.settings)


def summary(inputs: Inputs) -> _Task:
    """Return what must be known of a task."""
    sample = inputs.sample
    error, doubt = errors_and_doubt(sample, inputs.prediction)
    if inputs.n_positive is None:
        return _Task(error, sample.uncertainty, doubt, None, None, None, None)
    first, second, kept = label_moments(inputs.n_positive, inputs.n_labels)
    mean, said = sample.mean[kept], inputs.factor * sample.uncertainty[kept]
    squared = squared_error(first, second, mean)
    return _Task(error, sample.uncertainty, doubt, squared, np.flatnonzero(kept), said, mean)


def rows_of_all_tasks(tasks: Sequence[_Task], settings: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the ranking of the errors of all tasks together, and the controls."""
    yield from _ranking_rows(tasks, settings)
    if tasks[0].squared is None:
        return
    controls = control_estimates(
        *zip(*((task.squared, task.said, task.mean) for task in tasks), strict=True),
        groups=np.arange(len(tasks[0].squared)),
        **{name: settings[name] for name in ("random_state", "confidence_level")},
    )
    for name, control in controls.items():
        for what, value in control.items():
            if not math.isnan(value.estimate):
                yield Row(f"{what}_of_{name}", value.estimate)


def _ranking_rows(tasks: Sequence[_Task], settings: Mapping[str, Any]) -> Iterator[Row]:
    level = settings["confidence_level"]
    n = len(tasks[0].error)
    if any(len(task.error) != n for task in tasks):
        raise ValueError("tasks have different numbers of samples")
    error, uncertainty, doubt = (
        np.concatenate([getattr(task, name) for task in tasks])
        for name in ("error", "uncertainty", "doubt")
    )
    inputs = np.tile(np.arange(n), len(tasks))
    found = rank_errors(error, uncertainty, doubt, inputs, level)
    yield Row("error_rate", found.error.estimate)
    yield from _rows_of(found, _ERRORS)
    if tasks[0].squared is None:
        return
    kept = np.concatenate([t * n + task.kept for t, task in enumerate(tasks)])
    squared = np.concatenate([task.squared for task in tasks])
    found = rank_errors(squared, uncertainty[kept], doubt[kept], inputs[kept], level)
    yield from _rows_of(found, _SQUARED)


def _rows_of(found: ErrorRanking, names: Sequence[tuple]) -> Iterator[Row]:
    for name, attribute, *_ in names:
        eu, doubt, apart = (
            getattr(order, attribute)
            for order in (found.by_uncertainty, found.by_prediction, found.difference)
        )
        yield from tuple(interval_rows(name, eu))[: 3 if name == "kept_error_90" else 1]
        yield Row(f"{name}_by_prediction", doubt.estimate)
        if name in _COMPARED:
            yield from interval_rows(f"{name}_difference", apart)
