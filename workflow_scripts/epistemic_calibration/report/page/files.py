"""The page of files of predictions: each is a method of one data set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from epistemic_calibration import metrics
from epistemic_calibration.evaluation import evaluate
from epistemic_calibration.metrics import Sample
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._label_counts import label_moments
from epistemic_calibration.metrics.error_curve import (
    Asked,
    asked_of_uncertainty,
    curve,
    halves_of_uncertainty,
)
from epistemic_calibration.report._diagnostics import diagnose, risk_coverage
from epistemic_calibration.report.comparisons import compare_methods
from epistemic_calibration.report.page.run import RunResults, run_page
from epistemic_calibration.report.results import DatasetResults

_CURVE_BINS = 10
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
    rows, diagnostics, warnings, compared = [], {}, [], {}
    tasks = _Tasks(files[first], [])
    for name, arrays in files.items():
        result = _evaluated(name, arrays, n_bins=n_bins, **options)
        tasks = _Tasks(arrays, [str(c) for c in result.class_names or ()])
        found = list(_rows(result.to_frame()))
        warnings += [f"{name}: {w}" if others else w for w in result.warnings]
        if "tece_corrected" in {row["metric"] for row in found}:
            compared[name] = tasks.compared(result.n_bins, random_state)
            diagnostics[name] = tasks.diagnosed(compared[name], confidence_level)
            if result.reported_error is not None:
                found += tasks.curve(confidence_level)
        rows += [{"method": name, **row} for row in found]
    differences = None
    if len(compared) > 1:
        differences = compare_methods(
            list(tasks.y_true),
            {name: [arrays["mean_prediction"]] for name, arrays in compared.items()},
            {name: [arrays["bins"]] for name, arrays in compared.items()},
            groups=files[first].get("groups"),
            **options,
        )
    title = "Your predictions" if others else first
    results = DatasetResults(
        pd.DataFrame(rows).assign(dataset=title, seed=random_state, task=None),
        title,
        {name: {"label": name, "family": "active"} for name in files},
        differences=differences,
        diagnostics=diagnostics,
        tasks=tasks.names,
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


@dataclass(frozen=True)
class _Tasks:
    """A file as the question of its label, or of each of several classes against the others."""

    arrays: Mapping[str, np.ndarray]
    class_names: list[str]

    @property
    def names(self) -> list[str]:
        return self.class_names if self.several else [""]

    @property
    def several(self) -> bool:
        return len(self.class_names) > 2

    @property
    def samples(self) -> list[Sample]:
        y, hypotheses = self.arrays["y_true"], self.arrays["hypotheses"]
        if not self.several:
            hypotheses = hypotheses[:, :, 1] if hypotheses.ndim == 3 else hypotheses
            reported = self.arrays.get("epistemic_uncertainty")
            return [Sample(y, hypotheses, epistemic_uncertainty=reported)]
        of_classes = ClassSample(y, hypotheses)
        return [
            Sample((of_classes.y == c).astype(np.uint8), of_classes.hypotheses[:, :, c])
            for c in range(of_classes.n_classes)
        ]

    @property
    def y_true(self) -> np.ndarray:
        return np.stack([sample.y for sample in self.samples])

    @property
    def exchangeable(self) -> bool:
        return bool(self.arrays.get("exchangeable", True))

    def counts(self) -> tuple[list[np.ndarray], np.ndarray] | None:
        """Return how many labels of an input each question has for it, and how many in all."""
        if "label_counts" in self.arrays:
            counts = self.arrays["label_counts"]
            return list(counts.T if self.several else counts.T[1:]), counts.sum(axis=1)
        if "n_positive" in self.arrays:
            return [self.arrays["n_positive"]], self.arrays["n_labels"]
        return None

    def compared(self, n_bins: int, random_state: int) -> dict[str, np.ndarray]:
        """Return what `diagnose` needs, a row for each question."""
        samples = self.samples
        n_hypotheses = samples[0].hypotheses.shape[1]
        draws = self.exchangeable and samples[0].reported is None and n_hypotheses > 1
        factor = metrics.finite_draws_factor(n_hypotheses) if draws else 1.0
        bins = {"n_bins": n_bins, "binning": "nested", "random_state": random_state}
        return {
            "mean_prediction": np.stack([s.mean for s in samples]),
            "bins": np.stack([s.bins(**bins) for s in samples]),
            "uncertainty": np.stack([factor * s.uncertainty for s in samples]),
        }

    def diagnosed(self, compared: Mapping[str, np.ndarray], level: float) -> dict[str, Any]:
        groups = self.arrays.get("groups")
        found = diagnose(self.y_true, compared, confidence_level=level, groups=groups)
        if self.several:
            # An error is a wrong class, not a wrong answer to one of the questions.
            mean = compared["mean_prediction"]
            wrong = self.y_true[mean.argmax(axis=0), np.arange(mean.shape[1])] == 0
            orders = {"uncertainty": compared["uncertainty"].sum(axis=0)}
            orders["prediction"] = -mean.max(axis=0)
            found["risk_coverage"] = risk_coverage(wrong, orders)
        return found

    def curve(self, level: float) -> Iterator[dict[str, Any]]:
        """Yield the error of all questions in bins of EU, or its upper bound, the Brier score."""
        samples, counts = self.samples, self.counts()
        index = np.arange(len(samples[0].y))
        groups = self.arrays.get("groups", index)
        asked = []
        for place, sample in enumerate(samples):
            if counts is None:
                key, compared = halves_of_uncertainty(
                    sample.hypotheses,
                    epistemic_uncertainty=sample.reported,
                    exchangeable=self.exchangeable,
                )
                asked.append(Asked(key, (sample.y - sample.mean) ** 2, compared, index))
                continue
            first, second, kept = label_moments(counts[0][place], counts[1])
            kept = np.flatnonzero(kept)
            reported = None if sample.reported is None else sample.reported[kept]
            rows = sample.hypotheses[kept]
            asked.append(asked_of_uncertainty(first, second, rows, reported, self.exchangeable))
        if counts is not None:
            groups = groups[kept]
        found = curve(asked, groups, min(_CURVE_BINS, max(1, len(groups) // 20)), level)
        names = {"uncertainty": found.uncertainty}
        if counts is None:
            prefix = "bounds_curve"
            names |= {"at_least": np.zeros_like(found.ci_high), "at_most": found.ci_high}
        else:
            prefix = "curve"
            names |= {"error": found.error, "error_low": found.ci_low, "error_high": found.ci_high}
        for name, values in names.items():
            for number, value in enumerate(values):
                yield _row(f"{prefix}_{name}", value, number)
