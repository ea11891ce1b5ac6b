"""Which of two files of predictions of the same inputs errs less."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration._evaluation_text import in_points, inputs_of, interval, number
from epistemic_calibration.evaluation import LEAST_SAMPLES, numbers_of_bins, units_of
from epistemic_calibration.metrics import CorrectedError, ErrorDifference
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._groups import distinct_inputs, nested_bins_of_groups


@dataclass(frozen=True, repr=False)
class Comparison:
    """Corrected TECE of two predictors of the same inputs, and their difference.

    Attributes
    ----------
    errors : dict of str to CorrectedError
        By name, in the order given; of three classes or more the mean over classes, each against
        all others.
    brier : dict of str to float
        Of the means of the hypotheses; of three classes or more a sum over classes.
    difference : ErrorDifference
        First less second.
    n_samples, n_bins : int
    n_groups : int or None
        Groups of inputs that are independent of each other, where there are any.
    n_classes : int
    """

    errors: dict[str, CorrectedError]
    brier: dict[str, float]
    difference: ErrorDifference
    n_samples: int
    n_bins: int
    n_groups: int | None = None
    n_classes: int = 2

    @property
    def judgement(self) -> str:
        """One sentence: which errs less, or that it cannot be told."""
        first, second = self.errors
        d = self.difference
        if d.ci_low <= 0 <= d.ci_high:
            return (
                f"Which of the two errs less cannot be told with {inputs_of(self)} "
                f"(p = {d.p_value:.2g})."
            )
        better, worse = (first, second) if d.estimate < 0 else (second, first)
        classes = ", on average over classes" if self.n_classes > 2 else ""
        return f"{better} errs less than {worse}{classes} (p = {d.p_value:.2g})."

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return dataclasses.asdict(self) | {"judgement": self.judgement}

    def __repr__(self) -> str:
        d = self.difference
        width = max(len(name) for name in [*self.errors, "Difference, first less second"]) + 2
        lines = [f"{'':<{width}}{'Brier':>8}{'Corrected TECE':>16}  {'interval':<19} in points"]
        lines += [
            f"{name:<{width}}{number(self.brier[name]):>8}{number(error.estimate):>16}  "
            f"{interval(error):<19} {in_points(error)}"
            for name, error in self.errors.items()
        ]
        of_each = ""
        if self.n_classes > 2:
            of_each = f" and class; TECE is a mean over {self.n_classes} classes"
        lines += [
            f"{'Difference, first less second':<{width}}{'':>8}{number(d.estimate):>16}  "
            f"{interval(d)}",
            f"→ {self.judgement}",
            f"Settings: {inputs_of(self)}, {self.n_bins} nested bins each{of_each}, "
            f"{100 * d.confidence_level:g} % intervals",
        ]
        return "\n".join(lines)


def compare(
    predictors: Mapping[str, Mapping[str, np.ndarray]],
    *,
    n_bins: int | None = None,
    confidence_level: float = 0.95,
    random_state: int = 0,
) -> Comparison:
    """Compare two predictors by the corrected TECE; of several classes, by their mean.

    Parameters
    ----------
    predictors : mapping from name to mapping
        Two, each as `read_predictions` returns them.
    n_bins, confidence_level, random_state
        As in `evaluate`.

    Raises
    ------
    ValueError
        If they have other labels, classes or groups, or fewer than 11 inputs, or groups of them.
    """
    (first, a), (second, b) = predictors.items()
    n = len(a["y_true"])
    if len(b["y_true"]) != n:
        raise ValueError(
            f"{first} has {n} inputs and {second} has {len(b['y_true'])}: they must be the same"
        )
    n_classes = _same_classes(predictors)
    differ = np.count_nonzero(a["y_true"] != b["y_true"])
    if differ:
        raise ValueError(
            f"{first} and {second} differ in {differ} of {n} labels: they must have the same "
            f"inputs in the same order"
        )
    groups = _same_groups(predictors)
    n_groups, n_units = units_of(groups, n)
    if n_units < LEAST_SAMPLES:
        units = "inputs" if groups is None else "groups"
        raise ValueError(f"a comparison takes {LEAST_SAMPLES} {units} or more, got {n_units}")
    n_inputs = [
        len(np.arange(n)[distinct_inputs(p["hypotheses"], groups)[0]]) for p in predictors.values()
    ]
    n_bins, _ = numbers_of_bins(n_bins, min(n_inputs))
    tasks = {name: _tasks(p, n_classes) for name, p in predictors.items()}
    bins = {
        name: [
            task.bins(n_bins=n_bins, binning="nested", random_state=random_state)
            if groups is None
            else nested_bins_of_groups(task, groups, n_bins, random_state)[1]
            for task in of_predictor
        ]
        for name, of_predictor in tasks.items()
    }
    options = {"confidence_level": confidence_level, "groups": groups}
    differences = metrics.compare_mean_corrected_errors(
        [task.y for task in tasks[first]],
        {name: [task.mean for task in of_predictor] for name, of_predictor in tasks.items()},
        bins,
        random_state=random_state,
        **options,
    )
    errors = {}
    for name, of_predictor in tasks.items():
        if n_classes == 2:
            errors[name] = metrics.corrected_epistemic_calibration_error(
                of_predictor[0], bins=bins[name][0], **options
            )
        else:
            errors[name] = metrics.mean_corrected_error(
                [task.y for task in of_predictor],
                [task.mean for task in of_predictor],
                bins[name],
                random_state=random_state,
                **options,
            )
    return Comparison(
        errors=errors,
        brier={
            name: float(sum(metrics.brier_score(task.y, task.mean) for task in of_predictor))
            for name, of_predictor in tasks.items()
        },
        difference=differences[first, second],
        n_samples=n,
        n_bins=n_bins,
        n_groups=n_groups,
        n_classes=n_classes,
    )


def _same_classes(predictors: Mapping[str, Mapping[str, np.ndarray]]) -> int:
    """Return the number of classes."""
    (first, a), (second, b) = predictors.items()
    n_first, n_second = (
        p["hypotheses"].shape[2] if p["hypotheses"].ndim == 3 else 2 for p in (a, b)
    )
    if n_first != n_second:
        raise ValueError(f"{first} has {n_first} classes and {second} has {n_second}")
    names = [list(map(str, p["class_names"])) for p in (a, b) if "class_names" in p]
    if len(names) == 2 and names[0] != names[1]:
        raise ValueError(
            f"the classes of {first} are {names[0][:5]} and those of {second} {names[1][:5]}: they "
            f"must be the same in the same order"
        )
    return n_first


def _same_groups(predictors: Mapping[str, Mapping[str, np.ndarray]]) -> np.ndarray | None:
    """Return the groups that one or both have."""
    (first, a), (second, b) = predictors.items()
    groups = [p["groups"] for p in (a, b) if "groups" in p]
    if not groups:
        return None
    # Both are numbered in the order of their values, which may differ.
    together = len(np.unique(np.stack(groups), axis=1).T)
    if any(len(np.unique(labels)) != together for labels in groups):
        raise ValueError(f"{first} and {second} differ in which inputs are of one group")
    return groups[0]


def _tasks(predictor: Mapping[str, np.ndarray], n_classes: int) -> list[metrics.Sample]:
    """Return the task, or one for each class against all others."""
    y, hypotheses = predictor["y_true"], predictor["hypotheses"]
    if n_classes == 2:
        return [metrics.Sample(y, hypotheses)]
    normalised = ClassSample(y, hypotheses).hypotheses
    return [
        metrics.Sample((y == c).astype(np.uint8), normalised[:, :, c]) for c in range(n_classes)
    ]
