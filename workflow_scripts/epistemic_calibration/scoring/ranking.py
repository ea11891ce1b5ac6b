"""Does the uncertainty tell where a method errs? Errors kept, beside those of 1 − max p."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from epistemic_calibration.metrics import ErrorRanking, Estimate
from epistemic_calibration.metrics._label_counts import label_moments
from epistemic_calibration.metrics._members import finite_draws_factor
from epistemic_calibration.metrics.controls import CONTROLS, control_estimates
from epistemic_calibration.metrics.ranking import errors_and_doubt, rank_errors
from epistemic_calibration.scoring.base import Inputs, Metric, Row

ORDER = 8

# Of errors of 0 and 1, and of the squared error: name, attribute, label, digits, better.
_ERRORS = (
    ("kept_error_90", "kept_error_90", "Errors kept at 90 %", 4, "lower"),
    ("kept_error_80", "kept_error_80", "Errors kept at 80 %", 4, "lower"),
    ("kept_error_50", "kept_error_50", "Errors kept at 50 %", 4, "lower"),
    ("aurc", "aurc", "AURC", 4, "lower"),
    ("excess_aurc", "excess_aurc", "AURC above the ideal order's", 4, "lower"),
    ("augrc", "augrc", "AUGRC", 4, "lower"),
    ("auroc_of_errors", "auroc_of_errors", "AUROC of errors", 3, "higher"),
)
_SQUARED = (
    ("kept_squared_error_90", "kept_error_90", "Reducible error kept at 90 %", 5, "lower"),
    ("squared_augrc", "augrc", "AUGRC of the reducible error", 5, "lower"),
)
#: Differences that have rows.
_COMPARED = ("kept_error_90", "augrc", "auroc_of_errors", *(name for name, *_ in _SQUARED))
_LIMITS = (("low", "lower limit"), ("high", "upper limit"))


def _metrics() -> Iterator[Metric]:
    yield Metric("error_rate", "Errors", 4, "lower", (0, 1), of_all_tasks=True)
    described = {"of_all_tasks": True, "kind": "diagnostic"}
    for name, _, label, digits, better in (*_ERRORS, *_SQUARED):
        squared = "squared" in name
        # A squared error may be estimated below 0, and its limits are not bounded.
        ends = (-1, 1) if squared else (0, 1)
        for suffix, of in (("", ""), ("_by_prediction", ", by 1 − max p")):
            yield Metric(name + suffix, label + of, digits, better, ends, of_all_tasks=True)
        if name == "kept_error_90":
            for end, what in _LIMITS:
                yield Metric(f"{name}_{end}", f"{label}, {what}", digits, None, ends, **described)
        if name in _COMPARED:
            label = f"{label}: by EU less by 1 − max p"
            yield Metric(f"{name}_difference", label, digits, None, (-1, 1), **described)
            ends = (-math.inf, math.inf) if squared else (-1, 1)
            for end, what in _LIMITS:
                full = f"{name}_difference_{end}"
                yield Metric(full, f"{label}, {what}", digits, None, ends, **described)
    for control in CONTROLS:
        what = f"of the control {control}"
        share = f"Share that is reported, {what}"
        yield Metric(f"share_of_{control}", share, 3, None, (0, math.inf), **described)
        if control != "constant":
            yield Metric(f"slope_of_{control}", f"Slope on EU, {what}", 3, None, **described)


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
    if "ranked" not in inputs.kept:
        inputs.kept["ranked"] = _task(inputs)
    return inputs.kept["ranked"]


def _task(inputs: Inputs) -> _Task:
    sample = inputs.sample
    error, doubt = errors_and_doubt(sample, inputs.prediction)
    if inputs.n_positive is None:
        return _Task(error, sample.uncertainty, doubt, None, None, None, None)
    first, second, kept = label_moments(inputs.n_positive, inputs.n_labels)
    mean, said = sample.mean[kept], sample.uncertainty[kept]
    h = sample.hypotheses.shape[1]
    if inputs.exchangeable and sample.reported is None and h > 1:
        said = finite_draws_factor(h) * said
    squared = (first - mean) ** 2 + (second - first**2)
    return _Task(error, sample.uncertainty, doubt, squared, np.flatnonzero(kept), said, mean)


def rows_of_all_tasks(tasks: Sequence[_Task], settings: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the ranking of the errors of all tasks together, and the controls."""
    yield from _ranking_rows(tasks, settings)
    if tasks[0].squared is None:
        return
    controls = control_estimates(
        *zip(*((task.squared, task.said, task.mean) for task in tasks), strict=True),
        groups=np.arange(len(tasks[0].squared)),
        random_state=settings["random_state"],
        confidence_level=settings["confidence_level"],
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
        yield Row(name, _value(eu))
        if name == "kept_error_90":
            yield from _limits(name, eu)
        yield Row(f"{name}_by_prediction", _value(doubt))
        if name in _COMPARED:
            yield Row(f"{name}_difference", _value(apart))
            yield from _limits(f"{name}_difference", apart)


def _value(estimate: Estimate | float) -> float:
    return estimate.estimate if isinstance(estimate, Estimate) else estimate


def _limits(name: str, estimate: Estimate) -> Iterator[Row]:
    yield Row(f"{name}_low", estimate.ci_low)
    yield Row(f"{name}_high", estimate.ci_high)
