"""The page of files of predictions: each is a method of one data set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration._class_evaluation import ClassEvaluation
from epistemic_calibration.evaluation import Evaluation, evaluate
from epistemic_calibration.metrics import Sample
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.report._diagnostics import diagnose, risk_coverage
from epistemic_calibration.report._results import DatasetResults
from epistemic_calibration.report.comparisons import compare_methods
from epistemic_calibration.report.page.run import RunResults, run_page

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
    import pandas as pd

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
    rows, diagnostics, warnings, compared = [], {}, [], {}
    for name, arrays in files.items():
        result = _evaluated(name, arrays, n_bins=n_bins, **options)
        rows += [{"method": name, **row} for row in _rows(result)]
        prefix = f"{name}: " if others else ""
        warnings += [f"{prefix}{warning}" for warning in result.warnings]
        seen = _seen(result)
        if seen is not None:
            y_true, compared[name], tasks = seen
            diagnostics[name] = _diagnosed(result, *seen)
    differences = None
    if len(compared) > 1:
        differences = compare_methods(
            list(y_true),
            {name: list(arrays["mean_prediction"]) for name, arrays in compared.items()},
            {name: list(arrays["bins"]) for name, arrays in compared.items()},
            groups=files[first].get("groups"),
            **options,
        )
    title = first if not others else "Your predictions"
    scores = pd.DataFrame(rows).assign(dataset=title, seed=random_state, task=None)
    results = DatasetResults(
        name=title,
        scores=scores,
        methods={name: {"label": name, "family": "active"} for name in files},
        differences=differences,
        diagnostics=diagnostics,
        tasks=tasks if compared else (),
        seeds=[random_state],
        confidence_level=confidence_level,
        warnings=warnings,
    )
    return run_page(RunResults([results]))


def _evaluated(
    name: str, arrays: Mapping[str, np.ndarray], **options: Any
) -> Evaluation | ClassEvaluation:
    given = dict(arrays)
    axes = {"axes": "nhc"} if given["hypotheses"].ndim == 3 else {}
    try:
        return evaluate(given.pop("y_true"), given.pop("hypotheses"), **given, **axes, **options)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _rows(result: Evaluation | ClassEvaluation) -> Iterator[dict[str, Any]]:
    """Yield scores as a run has them, of all classes together."""
    frame = result.to_frame()
    if "class" in frame:
        frame = frame[frame["class"] == ""]
    for row in frame.itertuples():
        name = _NAMES.get(row.metric, row.metric)
        for end, value in (("", row.value), ("_low", row.ci_low), ("_high", row.ci_high)):
            if not math.isnan(value):
                yield {"scope": "all_tasks", "metric": f"{name}{end}", "value": value}
    tece = result.classwise and result.classwise.mean if _several(result) else result.tece
    if result.reported_error is None or tece is None:
        return
    if result.second_order is None:
        said, at_most = result.reported_error, result.reducible_at_most.ci_high
        low = said.ci_low / at_most if at_most > 0 else math.inf
        high = said.ci_high / tece.ci_low if tece.ci_low > 0 else math.inf
        for end, value in (("least", low), ("most", high)):
            yield {"scope": "all_tasks", "metric": f"reported_share_at_{end}", "value": value}
    yield from _curve(result)


def _curve(result: Evaluation | ClassEvaluation) -> Iterator[dict[str, Any]]:
    from epistemic_calibration import _class_evaluation_plot, _evaluation_plot

    of = _class_evaluation_plot if _several(result) else _evaluation_plot
    curve = of.size_curve(result, result._inputs)
    if result.second_order is None:
        names = {"uncertainty": curve.uncertainty, "at_most": curve.ci_high}
        names["at_least"] = np.zeros_like(curve.ci_high)
        prefix = "bounds_curve"
    else:
        prefix, names = "curve", {"uncertainty": curve.uncertainty, "error": curve.error}
        names |= {"error_low": curve.ci_low, "error_high": curve.ci_high}
    for name, values in names.items():
        for number, value in enumerate(values):
            metric = f"{prefix}_{name}"
            yield {"scope": "bin", "bin": number, "metric": metric, "value": float(value)}


def _several(result: Evaluation | ClassEvaluation) -> bool:
    return isinstance(result, ClassEvaluation)


def _seen(
    result: Evaluation | ClassEvaluation,
) -> tuple[np.ndarray, dict[str, np.ndarray], list[str]] | None:
    """Return labels and what `diagnose` needs, a row for each class against all others."""
    sample = result._inputs.sample
    if _several(result):
        tasks = list(result.class_names)
        samples = [
            Sample((sample.y == c).astype(np.uint8), sample.hypotheses[:, :, c])
            for c in range(len(tasks))
        ]
        known = result.classwise is not None
    else:
        tasks, samples, known = [""], [sample], result.tece is not None
    if not known:
        return None
    draws = result.exchangeable and samples[0].reported is None and result.n_hypotheses > 1
    factor = metrics.finite_draws_factor(result.n_hypotheses) if draws else 1.0
    bins = {"n_bins": result.n_bins, "binning": "nested", "random_state": result.random_state}
    compared = {
        "mean_prediction": np.stack([s.mean for s in samples]),
        "bins": np.stack([s.bins(**bins) for s in samples]),
        "uncertainty": np.stack([factor * s.uncertainty for s in samples]),
    }
    return np.stack([s.y for s in samples]), compared, tasks


def _diagnosed(
    result: Evaluation | ClassEvaluation,
    y_true: np.ndarray,
    compared: Mapping[str, np.ndarray],
    tasks: list[str],
) -> dict[str, Any]:
    inputs, level = result._inputs, result.confidence_level
    found = diagnose(y_true, compared, tasks, confidence_level=level, groups=inputs.groups)
    if isinstance(inputs.sample, ClassSample):
        # An error is a wrong class, not a wrong answer to one of the questions.
        mean = compared["mean_prediction"]
        orders = {"uncertainty": compared["uncertainty"].sum(axis=0), "prediction": -mean.max(0)}
        found["risk_coverage"] = risk_coverage(inputs.sample.top != inputs.sample.y, orders)
    return found
