"""Everything that labels and hypotheses of several classes say of a predictor."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration.evaluation import (
    LEAST_SAMPLES,
    accuracy_of,
    mean_of,
    numbers_of_bins,
    plain,
    units_of,
)
from epistemic_calibration.metrics import (
    Classwise,
    CorrectedError,
    Estimate,
    HypothesisTest,
    Sample,
    SecondOrderError,
)
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._classwise import worst_class as error_of_worst
from epistemic_calibration.metrics._groups import distinct_inputs, nested_bins_of_groups

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_TESTS = {
    "top_label": "p_top_label_calibration",
    "canonical": "p_canonical_calibration",
}
_SECOND_ORDER = {
    "reducible_error": "reducible",
    "size_gap": "gap",
    "reported_share": "share",
    "size_slope": "slope",
    "size_error": "size_error",
    "aleatoric_uncertainty": "aleatoric",
}


@dataclass(frozen=True, repr=False, eq=False)
class ClassEvaluation:
    """What `evaluate` finds of three classes or more. Printing it gives one screen.

    Errors are in squared units of probability: 0.0025 is off by 5 points, root mean square.
    What cannot be said is None: everything about calibration below 11 inputs.

    Attributes
    ----------
    n_samples, n_hypotheses : int
    n_groups : int or None
        Groups of inputs that are independent of each other, where ``groups`` are given.
    class_names : tuple of str
    class_shares : dict of str to float
        Share of the labels, by class.
    accuracy : Estimate
        Of the class of largest Δ, the mean of the hypotheses; Wilson's interval, unless there are
        groups.
    confidence : float
        Mean Δ of that class: the accuracy that the predictor claims.
    brier : Estimate
        Squared distance of Δ from the label, a sum over classes, in [0, 2].
    classwise : Classwise of CorrectedError, or None
        TECE of every class against all others, and their mean.
    top_label : CorrectedError or None
        TECE of the predicted class, given which it is.
    canonical : CorrectedError or None
        TECE of all classes jointly, a squared distance of vectors.
    worst_class : str or None
        The class of largest estimate.
    worst : CorrectedError or None
        Its TECE; the interval allows for having been chosen from all classes (Bonferroni).
    tests : dict of str to HypothesisTest
        ``top_label`` and ``canonical``, that these errors are 0.
    reported_error : Estimate or None
        The squared error that the method says it makes, c_H·E[EU], a mean over classes.
    reducible_at_most : Estimate
        An upper bound of E[(p* − Δ)²], a mean over classes: the Brier score over their number.
    second_order : Classwise of SecondOrderError, or None
        Where there are several labels per input.
    n_bins : int
        Bins of each class, of the predicted one, and of all jointly.
    exchangeable : bool
    confidence_level : float
    random_state : int
    warnings : tuple of str
        What makes these numbers less than they seem, one line each.
    """

    n_samples: int
    n_hypotheses: int
    n_groups: int | None
    class_names: tuple[str, ...]
    class_shares: dict[str, float]
    accuracy: Estimate
    confidence: float
    brier: Estimate
    classwise: Classwise[CorrectedError] | None
    top_label: CorrectedError | None
    canonical: CorrectedError | None
    worst_class: str | None
    worst: CorrectedError | None
    tests: dict[str, HypothesisTest]
    reported_error: Estimate | None
    reducible_at_most: Estimate
    second_order: Classwise[SecondOrderError] | None
    n_bins: int
    exchangeable: bool
    confidence_level: float
    random_state: int
    warnings: tuple[str, ...]
    _inputs: ClassInputs = field(repr=False)

    def __repr__(self) -> str:
        from epistemic_calibration._class_evaluation_text import summary

        return summary(self)

    @property
    def judgement(self) -> dict[str, str]:
        """Plain sentences on the ``mean`` and on the ``size`` of the uncertainty."""
        from epistemic_calibration._class_evaluation_text import on_mean, on_size

        return {"mean": on_mean(self), "size": on_size(self)}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it; what is NaN or infinite is None.

        Examples
        --------
        >>> from epistemic_calibration import evaluate
        >>> hypotheses = [[[0.2, 0.3, 0.5]]] * 99
        >>> evaluate([0, 1, 2] * 33, hypotheses).to_dict()["class_names"]
        ['0', '1', '2']
        """
        return plain(self) | {"judgement": self.judgement}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per metric, and per class where it is of one.

        Returns
        -------
        DataFrame
            metric, class (empty for all together), value, ci_low, ci_high, and points, 100·√value
            where the value is a squared error of a probability.

        Examples
        --------
        >>> from epistemic_calibration import evaluate
        >>> evaluate([0, 1, 2] * 33, [[[0.2, 0.3, 0.5]]] * 99).to_frame().loc[0, "metric"]
        'accuracy'
        """
        import pandas as pd

        return pd.DataFrame(
            self._rows(), columns=["metric", "class", "value", "ci_low", "ci_high", "points"]
        )

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw reliability of the predicted class, the error of each, and error against EU.

        Parameters
        ----------
        path : path, optional
            Where to save the figure; the ending says how (``.png``, ``.pdf``, ``.svg``).

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed.
        """
        from epistemic_calibration._class_evaluation_plot import draw

        return draw(self, self._inputs, path)

    def _rows(self) -> list[tuple[str, str, float, float, float, float]]:
        nan = math.nan

        def number(name: str, value: float, of: str = "", points: float = nan) -> tuple:
            return name, of, float(value), nan, nan, points

        def estimate(
            name: str, value: Estimate | CorrectedError, of: str = "", *, root: bool = True
        ) -> tuple:
            points = 100 * math.sqrt(max(value.estimate, 0.0)) if root else nan
            return name, of, value.estimate, value.ci_low, value.ci_high, points

        def corrected(name: str, value: CorrectedError, of: str = "") -> list[tuple]:
            rest = ("noise_floor", "minimum_detectable")
            return [estimate(name, value, of)] + [
                number(f"{name}_{end}", squared, of, 100 * math.sqrt(max(squared, 0.0)))
                for end in rest
                if (squared := getattr(value, end)) is not None
            ]

        rows = [
            estimate("accuracy", self.accuracy, root=False),
            number("confidence", self.confidence),
            estimate("brier_sum", self.brier, root=False),
        ]
        if self.classwise is not None:
            rows += corrected("tece_classwise", self.classwise.mean)
            rows += corrected("tece_top_label", self.top_label)
            rows += corrected("tece_canonical", self.canonical)
        if self.reported_error is not None:
            rows.append(estimate("reported_error", self.reported_error))
        rows.append(estimate("reducible_error_at_most", self.reducible_at_most))
        of_all = [] if self.second_order is None else [("", self.second_order.mean)]
        rows += [number(_TESTS[name], test.p_value) for name, test in self.tests.items()]
        sizes = ["n_samples", "n_hypotheses"] + ["n_groups"] * (self.n_groups is not None)
        rows += [number(name, getattr(self, name)) for name in sizes]
        for c, of in enumerate(self.class_names):
            rows.append(number("class_share", self.class_shares[of], of))
            if self.classwise is not None:
                rows += corrected("tece_corrected", self.classwise.classes[c], of)
            if self.second_order is not None:
                of_all.append((of, self.second_order.classes[c]))
        rows += [
            estimate(name, getattr(result, attribute), of, root=attribute == "reducible")
            for of, result in of_all
            for name, attribute in _SECOND_ORDER.items()
        ]
        return rows


@dataclass(frozen=True)
class ClassInputs:
    """What figures need."""

    sample: ClassSample
    counts: np.ndarray | None
    groups: np.ndarray | None


def evaluate_classes(
    sample: ClassSample,
    class_names: list[str],
    *,
    counts: np.ndarray | None,
    groups: np.ndarray | None,
    exchangeable: bool,
    n_bins: int | None,
    level: float,
    random_state: int,
) -> ClassEvaluation:
    """Evaluate a second-order classifier of several classes; `evaluate` documents it.

    Parameters
    ----------
    sample : ClassSample
        With labels.
    class_names : list of str
    counts : ndarray of int, shape (n_samples, n_classes), or None
        Labels of each class that an input has.
    groups : ndarray of int, shape (n_samples,), or None
        Groups 0, 1, ....
    """
    n, n_hypotheses, n_classes = sample.hypotheses.shape
    n_groups, n_units = units_of(groups, n)
    first, _ = distinct_inputs(sample.hypotheses, groups)
    bins, _ = numbers_of_bins(n_bins, len(np.arange(n)[first]))
    options = {"confidence_level": level, "random_state": random_state, "groups": groups}
    error = sample.error()
    brier = np.square(error).sum(axis=1)

    reported_error = None
    if n_hypotheses > 1:
        factor = metrics.finite_draws_factor(n_hypotheses) if exchangeable else 1.0
        reported_error = mean_of(factor * sample.variance.mean(axis=1), level, groups)

    classwise = top_label = canonical = worst = worst_class = second_order = None
    tests = {}
    y, rows = sample.y, sample.hypotheses
    if n_units >= LEAST_SAMPLES:
        classwise = metrics.classwise_epistemic_calibration_error(y, rows, n_bins=bins, **options)
        top_label = metrics.top_label_epistemic_calibration_error(y, rows, n_bins=bins, **options)
        task = metrics.top_label_task(
            y, rows, n_bins=bins, groups=groups, random_state=random_state
        )
        canonical = metrics.canonical_epistemic_calibration_error(y, rows, n_bins=bins, **options)
        canonical = _at_least(canonical, top_label)
        canonical = _at_least(canonical, classwise.mean, n_classes)
        tests = {
            "top_label": metrics.epistemic_calibration_test(
                task.y_true,
                task.hypotheses,
                bins=task.bins,
                groups=groups,
                random_state=random_state,
            ),
            "canonical": metrics.canonical_epistemic_calibration_test(
                y, rows, n_bins=bins, groups=groups, random_state=random_state
            ),
        }
        k = int(np.argmax([of_class.estimate for of_class in classwise.classes]))
        worst_class = class_names[k]
        of_worst = Sample((y == k).astype(int), rows[:, :, k])
        nested = of_worst.bins(n_bins=bins, binning="nested", random_state=random_state)
        if groups is not None:
            nested = nested_bins_of_groups(of_worst, groups, bins, random_state)[1]
        worst = error_of_worst(of_worst.y, of_worst.mean, nested, groups, level, n_classes)
    if reported_error is not None and counts is not None:
        kept = counts.sum(axis=1) >= 2
        n_kept = int(kept.sum()) if groups is None else len(np.unique(groups[kept]))
        if n_kept >= LEAST_SAMPLES:
            second_order = metrics.classwise_second_order_error(
                counts, rows, exchangeable=exchangeable, n_bins=bins, **options
            )
    shares = np.bincount(y, minlength=n_classes) / n
    predicted = np.take_along_axis(sample.mean, sample.top[:, None], axis=1)
    return ClassEvaluation(
        n_samples=n,
        n_hypotheses=n_hypotheses,
        n_groups=n_groups,
        class_names=tuple(class_names),
        class_shares=dict(zip(class_names, shares.tolist(), strict=True)),
        accuracy=accuracy_of(sample.top == y, level, groups),
        confidence=float(predicted.mean()),
        brier=mean_of(brier, level, groups, most=2.0),
        classwise=classwise,
        top_label=top_label,
        canonical=canonical,
        worst_class=worst_class,
        worst=worst,
        tests=tests,
        reported_error=reported_error,
        reducible_at_most=mean_of(brier / n_classes, level, groups, most=2 / n_classes),
        second_order=second_order,
        n_bins=bins,
        exchangeable=exchangeable,
        confidence_level=level,
        random_state=random_state,
        warnings=tuple(_warnings(sample, class_names, top_label, counts, second_order)),
        _inputs=ClassInputs(sample, counts, groups),
    )


def _at_least(joint: CorrectedError, part: CorrectedError, times: int = 1) -> CorrectedError:
    """Return the joint error, no less than a part of it that is surely above 0."""
    if part.ci_low == 0:
        return joint
    ends = {
        name: max(getattr(joint, name), times * getattr(part, name))
        for name in ("estimate", "ci_low", "ci_high")
    }
    return dataclasses.replace(joint, **ends)


def _warnings(
    sample: ClassSample,
    class_names: list[str],
    top_label: CorrectedError | None,
    counts: np.ndarray | None,
    second_order: Classwise[SecondOrderError] | None,
) -> list[str]:
    found = []
    n = len(sample.y)
    of_class = np.bincount(sample.y, minlength=sample.n_classes)
    absent = [class_names[c] for c in np.flatnonzero(of_class == 0)]
    rare = [class_names[c] for c in np.flatnonzero((of_class > 0) & (of_class < 30))]
    if absent:
        found.append(f"No input has the label {_few(absent)}.")
    if rare and n >= LEAST_SAMPLES:
        found.append(f"Fewer than 30 inputs have the label {_few(rare)}: its interval is rough.")
    if top_label is not None and top_label.estimate < top_label.minimum_detectable:
        found.append(
            f"The error of the predicted class lies below the smallest that {n:,} inputs reliably "
            f"show."
        )
    if counts is not None:
        n_kept = int(np.count_nonzero(counts.sum(axis=1) >= 2))
        if second_order is None and sample.hypotheses.shape[1] > 1:
            found.append(
                f"Only {n_kept} inputs have two labels or more; the size of the uncertainty takes "
                f"{LEAST_SAMPLES}."
            )
        elif n_kept < n:
            found.append(f"{n - n_kept:,} inputs with fewer than two labels say nothing of size.")
    return found


def _few(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return shown if len(names) <= 4 else f"{shown} or {len(names) - 4} others"
