"""The page of files of predictions: each is a method of one data set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from epistemic_calibration.evaluation import evaluate
from epistemic_calibration.evaluation._plot import size_curve
from epistemic_calibration.metrics import Sample
from epistemic_calibration.metrics.ranking import errors_and_doubt
from epistemic_calibration.report._diagnostics import reliability, risk_coverage, top_bins
from epistemic_calibration.report.comparisons import compare_methods
from epistemic_calibration.report.page.run import RunResults, run_page
from epistemic_calibration.report.results import DatasetResults

# What an evaluation of several classes calls the numbers of all of them.
_NAMES = {"tece_classwise": "tece_corrected", "brier_sum": "brier"}


def files_page(
    files: Mapping[str, Mapping[str, np.ndarray]],
    *,
    n_bins: int | None = None,
    confidence_level: float = 0.95,
    random_state: int = 0,
) -> str:
    """Return the page of one file of predictions or more, as HTML.

    Parameters
    ----------
    files : mapping of str to mapping
        By what they are called, as `read_predictions` returns them: of the same inputs.
    n_bins, confidence_level, random_state
        As in `evaluate`.

    Raises
    ------
    ValueError
        If the files have other labels or groups than the first, or `evaluate` refuses one; the
        message names it.
    ModuleNotFoundError
        If a library of the extra ``page`` is missing.
    """
    first, *others = files
    for name in others:
        for array in ("y_true", "groups"):
            pair = [files[k].get(array) for k in (first, name)]
            if any(a is not None for a in pair) and not np.array_equal(*pair):
                raise ValueError(
                    f"{name} has other {array} than {first}: files of one page must be of the "
                    f"same inputs in the same order"
                )
    options = {"confidence_level": confidence_level, "random_state": random_state}
    rows, diagnostics, warnings = [], {}, []
    labels, predictions, bins = [], {}, {}
    for name, arrays in files.items():
        e = _evaluated(name, arrays, n_bins=n_bins, **options)
        found = list(_rows(e.to_frame()))
        tasks = [str(c) for c in e.class_names or ()] if e.n_classes > 2 else [""]
        warnings += [f"{name}: {w}" if others else w for w in e.warnings]
        if "tece_corrected" in {row["metric"] for row in found}:
            samples = e._inputs.tasks()
            labels, predictions[name] = [s.y for s in samples], [[s.mean for s in samples]]
            bins[name] = [[e._inputs.nested_bins(s, e.n_bins) for s in samples]]
            diagnostics[name] = _diagnosed(e, samples, bins[name][0], tasks)
            if e.reported_error is not None:
                found += _curve(e)
        rows += [{"method": name, **row} for row in found]
    differences = None
    if len(predictions) > 1:
        groups = files[first].get("groups")
        differences = compare_methods(labels, predictions, bins, groups=groups, **options)
    title = "Your predictions" if others else first
    results = DatasetResults(
        pd.DataFrame(rows).assign(dataset=title, seed=random_state, task=None),
        title,
        {name: {"label": name, "family": "active"} for name in files},
        differences=differences,
        diagnostics=diagnostics,
        tasks=tasks,
        confidence_level=confidence_level,
        warnings=warnings,
    )
    return run_page(RunResults([results]))


def _evaluated(name: str, arrays: Mapping[str, np.ndarray], **options: Any) -> Any:
    given = dict(arrays)
    axes = {"axes": "nhc"} if given["hypotheses"].ndim == 3 else {}
    try:
        return evaluate(given.pop("y_true"), given.pop("hypotheses"), **given, **axes, **options)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _rows(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the numbers of an evaluation as scores of a run, those of all classes together."""
    if "class" in frame:
        frame = frame[frame["class"] == ""]
    frame = frame.assign(metric=frame["metric"].replace(_NAMES)).set_index("metric")
    for name, row in frame.iterrows():
        for end, value in (("", row["value"]), ("_low", row["ci_low"]), ("_high", row["ci_high"])):
            if not math.isnan(value):
                yield _row(f"{name}{end}", value)
    needed = {"reported_error", "reducible_error_at_most", "tece_corrected"}
    known = {"reported_share_at_least", "reducible_error"}
    if needed <= set(frame.index) and not known & set(frame.index):
        said, tece = frame.loc["reported_error"], frame.loc["tece_corrected"]
        at_most = frame.loc["reducible_error_at_most", "ci_high"]
        for end, value, error in (
            ("least", said["ci_low"], at_most),
            ("most", said["ci_high"], tece["ci_low"]),
        ):
            yield _row(f"reported_share_at_{end}", value / error if error > 0 else math.inf)


def _row(metric: str, value: float, number: int | None = None) -> dict[str, Any]:
    scope = "all_tasks" if number is None else "bin"
    return {"scope": scope, "bin": number, "metric": metric, "value": float(value)}


def _diagnosed(
    e: Any, samples: list[Sample], bins: list[np.ndarray], tasks: list[str]
) -> dict[str, Any]:
    inputs, level = e._inputs, e.confidence_level
    y_true, mean = (np.stack([getattr(s, name) for s in samples]) for name in ("y", "mean"))
    # An error is a wrong class, not a wrong answer to one of the questions.
    wrong, doubt = errors_and_doubt(inputs.sample, inputs.prediction)
    orders = {"uncertainty": inputs.ranking_key, "prediction": doubt}
    options = {"confidence_level": level, "groups": inputs.groups}
    return {
        "reliability": reliability(y_true, mean, **options),
        "risk_coverage": risk_coverage(wrong, orders),
        "top_bins": top_bins(y_true, mean, np.stack(bins), tasks, **options),
    }


def _curve(e: Any) -> Iterator[dict[str, Any]]:
    """Yield the error of all questions in bins of EU, or its bounds."""
    found = size_curve(e, e._inputs)
    if e.second_order is None:
        values = {"uncertainty": found.uncertainty, "at_least": found.ci_low}
        prefix, values["at_most"] = "bounds_curve", found.ci_high
    else:
        values = {"uncertainty": found.uncertainty, "error": found.error}
        prefix, values = "curve", values | {"error_low": found.ci_low, "error_high": found.ci_high}
    for name, column in values.items():
        for number, value in enumerate(column):
            yield _row(f"{prefix}_{name}", value, number)
