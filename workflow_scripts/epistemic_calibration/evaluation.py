"""Everything that labels and hypotheses say of a predictor, in one call and on one screen."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration import _estimates
from epistemic_calibration.metrics import (
    CorrectedError,
    EECEParts,
    ErrorRanking,
    Estimate,
    HypothesisTest,
    Sample,
    SecondOrderError,
)
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._validation import check_fraction
from epistemic_calibration.metrics.ranking import Kind, check_kind
from epistemic_calibration.predictions._intake import Inputs, intake

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from epistemic_calibration._slices import Slices

_SECOND_ORDER = {
    "reducible_error": "reducible",
    "size_gap": "gap",
    "reported_share": "share",
    "size_slope": "slope",
    "size_error": "size_error",
    "tece_all_labels": "calibration_error",
    "variance_in_bins": "variance_in_bins",
    "aleatoric_uncertainty": "aleatoric",
}
_RANKED = (
    "kept_error_90",
    "kept_error_80",
    "kept_error_50",
    "aurc",
    "excess_aurc",
    "augrc",
    "excess_augrc",
    "auroc_of_errors",
)
_COLUMNS = ["metric", "class", "value", "ci_low", "ci_high", "points"]


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Evaluation:
    """What `evaluate` finds. Printing it gives a summary of one screen.

    Errors are in squared units of probability: 0.0025 is off by 5 points, root mean square.
    What cannot be said, or is not of so many classes, is None: everything about calibration below
    11 inputs.

    Attributes
    ----------
    n_samples, n_hypotheses : int
    n_groups : int or None
        Groups of inputs that are independent of each other, where ``groups`` are given.
    class_names : tuple of str or None
        Names of the labels; of 0 and 1 only where they have any.
    class_shares : tuple of float
        Share of the inputs of each label.
    predictor : str
        What accuracy, Brier score, ECE, TECE and its tests are of: the mean of the hypotheses, or
        the ``prediction`` given.
    accuracy, brier : Estimate
        The Brier score of several classes is a sum over them, in [0, 2]. The interval of the
        accuracy is Wilson's, unless there are groups.
    confidence : float
        Mean probability of the predicted class: the accuracy that the predictor claims.
    ece : float or None
        Classical expected calibration error of the prediction, 10 bins of equal width.
    tece : CorrectedError or None
        The corrected TECE, E[(P(Y = 1 | Π) − Δ)²], Δ the predictor; of several classes the mean
        over them, each against all others.
    mean_miscalibration, epistemic_dependence : CorrectedError or None
        Its two parts.
    eece : EECEParts or None
        The paper's EECE and its parts.
    tece_of_classes : dict of str to CorrectedError
        Of several classes, each against all others.
    top_label : CorrectedError or None
        Of several classes, TECE of the predicted one, given which it is.
    canonical : CorrectedError or None
        Of several classes, TECE of all jointly, a squared distance of vectors.
    worst_class : str or None
        The class of largest TECE.
    worst : CorrectedError or None
        Its TECE; the interval allows for having been chosen from all classes (Bonferroni).
    tests : dict of str to HypothesisTest
        ``epistemic_calibration``, ``mean_calibration``, ``epistemic_independence``, and
        ``second_order`` where there are several labels per input; the last two take no groups,
        and are missing where there are any. Of several classes ``top_label_calibration`` and
        ``canonical_calibration``.
    reported_error : Estimate or None
        The squared error that the method says it makes, c_H·E[EU]; a mean over classes.
    reducible_at_most : Estimate
        Brier score of the mean: an upper bound of E[(p* − Δ)²]; a mean over classes.
    share_bounds : tuple of float or None
        What one label per input says of the share of E[(p* − Δ)²] that is reported.
    second_order : SecondOrderError or None
        Where there are several labels per input; a mean over classes.
    second_order_of_classes : dict of str to SecondOrderError
    controls : dict of str to dict
        Share and slope of uncertainties that know nothing, where there are several labels per
        input: ``product``, Δ(1 − Δ); ``constant``; and ``shuffled`` among inputs.
    ranking : ErrorRanking or None
        Whether the uncertainty tells where the prediction errs, beside the prediction itself.
    n_bins : int
        Bins of the corrected TECE; of each class, of the predicted one, and of all jointly.
    eece_n_bins : int or None
    exchangeable : bool
    kind_of_uncertainty : str
    confidence_level : float
    random_state : int
    warnings : tuple of str
        What makes these numbers less than they seem, one line each.
    """

    n_samples: int
    n_hypotheses: int
    n_groups: int | None
    class_names: tuple[str, ...] | None
    class_shares: tuple[float, ...]
    predictor: str = "mean of the hypotheses"
    accuracy: Estimate
    brier: Estimate
    confidence: float
    ece: float | None = None
    tece: CorrectedError | None = None
    mean_miscalibration: CorrectedError | None = None
    epistemic_dependence: CorrectedError | None = None
    eece: EECEParts | None = None
    tece_of_classes: dict[str, CorrectedError] = field(default_factory=dict)
    top_label: CorrectedError | None = None
    canonical: CorrectedError | None = None
    worst_class: str | None = None
    worst: CorrectedError | None = None
    tests: dict[str, HypothesisTest] = field(default_factory=dict)
    reported_error: Estimate | None = None
    reducible_at_most: Estimate
    share_bounds: tuple[float, float] | None = None
    second_order: SecondOrderError | None = None
    second_order_of_classes: dict[str, SecondOrderError] = field(default_factory=dict)
    controls: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    ranking: ErrorRanking | None = None
    n_bins: int
    eece_n_bins: int | None = None
    exchangeable: bool
    kind_of_uncertainty: Kind
    confidence_level: float
    random_state: int
    warnings: tuple[str, ...]
    _inputs: _estimates.Evaluated = field(repr=False)

    def __repr__(self) -> str:
        from epistemic_calibration._evaluation_text import summary

        return summary(self)

    @property
    def n_classes(self) -> int:
        return len(self.class_shares)

    @property
    def positive_share(self) -> float:
        """Share of the inputs with label 1."""
        return self.class_shares[1]

    @property
    def judgement(self) -> dict[str, str]:
        """Plain sentences on the ``mean``, and on ``size`` and ``ranking`` of the uncertainty."""
        from epistemic_calibration._evaluation_text import on_mean, on_ranking, on_size

        return {"mean": on_mean(self), "size": on_size(self), "ranking": on_ranking(self)}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it; what is NaN or infinite is None.

        Examples
        --------
        >>> from epistemic_calibration import evaluate
        >>> evaluate([0, 1] * 50, [[0.4, 0.5]] * 100).to_dict()["tece"]["n_bins"]
        1
        """
        return plain(self) | {"judgement": self.judgement}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per metric, named as in the scores of the benchmark.

        Returns
        -------
        DataFrame
            metric, class (empty for all together), value, ci_low, ci_high, and points, 100·√value
            where the value is a squared error of a probability.

        Examples
        --------
        >>> from epistemic_calibration import evaluate
        >>> evaluate([0, 1] * 50, [[0.4, 0.5]] * 100).to_frame().loc[0, "metric"]
        'accuracy'
        """
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=_COLUMNS)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw reliability, the error against the uncertainty, and the errors kept.

        With one label per input the error is a range, from what calibration shows to the Brier
        score. Of several classes reliability is that of the predicted one.

        Parameters
        ----------
        path : path, optional
            Where to save the figure; the ending says how (``.png``, ``.pdf``, ``.svg``).

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed.
        """
        from epistemic_calibration._evaluation_plot import draw

        return draw(self, self._inputs, path)

    def _rows(self) -> Iterator[tuple]:
        several = self.n_classes > 2
        yield from _row("accuracy", self.accuracy)
        yield from _row("confidence", self.confidence)
        yield from _row("brier_sum" if several else "brier", self.brier, root=not several)
        yield from _row("ece", self.ece)
        yield from _row("tece_classwise" if several else "tece_corrected", self.tece, root=True)
        yield from _row("tece_top_label", self.top_label, root=True)
        yield from _row("tece_canonical", self.canonical, root=True)
        for name in ("mean_miscalibration", "epistemic_dependence"):
            yield from _row(name, getattr(self, name), root=True, limits=False)
        if self.eece is not None:
            for end in ("", "_calibration", "_dispersion", "_noise_floor"):
                value = getattr(self.eece, end[1:] or "eece")
                yield from _row(f"eece{end}", value, root=end in ("_calibration", "_noise_floor"))
        yield from _row("reported_error", self.reported_error, root=True)
        yield from _row("reducible_error_at_most", self.reducible_at_most, root=True)
        for end, value in zip(("least", "most"), self.share_bounds or (), strict=False):
            yield from _row(f"reported_share_at_{end}", value)
        yield from _second_order_rows(self.second_order)
        for name, control in self.controls.items():
            for what, value in control.items():
                if not math.isnan(value.estimate):
                    yield from _row(f"{what}_of_{name}", value)
        yield from _ranking_rows(self.ranking)
        for name, test in self.tests.items():
            yield from _row(f"p_{name}", test.p_value)
        for name in ("n_samples", "n_hypotheses", "n_groups"):
            yield from _row(name, getattr(self, name))
        if several:
            for of, share in zip(self.class_names, self.class_shares, strict=True):
                yield from _row("class_share", share, of)
        for of, error in self.tece_of_classes.items():
            yield from _row("tece_corrected", error, of, root=True)
        for of, second in self.second_order_of_classes.items():
            yield from _second_order_rows(second, of)


def _row(name: str, value: Any, of: str = "", *, root: bool = False, limits: bool = True) -> list:
    """Return the row of a number, an estimate, or nothing, and what a corrected error can see."""
    if value is None:
        return []
    ends = math.nan, math.nan
    number = value
    if not isinstance(value, (int, float)):
        number, ends = value.estimate, (value.ci_low, value.ci_high)
    points = 100 * math.sqrt(max(number, 0.0)) if root else math.nan
    rows = [(name, of, float(number), *ends, points)]
    if limits and isinstance(value, CorrectedError) and name.startswith("tece_"):
        short = "tece" if name == "tece_corrected" and not of else name
        for end in ("noise_floor", "minimum_detectable"):
            if (limit := getattr(value, end)) is not None:
                rows += _row(f"{short}_{end}", float(limit), of, root=True)
    return rows


def _second_order_rows(second: SecondOrderError | None, of: str = "") -> Iterator[tuple]:
    if second is not None:
        for name, attribute in _SECOND_ORDER.items():
            root = attribute in ("reducible", "calibration_error", "variance_in_bins")
            yield from _row(name, getattr(second, attribute), of, root=root, limits=False)


def _ranking_rows(ranking: ErrorRanking | None, squared: bool = False) -> Iterator[tuple]:
    if ranking is None:
        return
    if not squared:
        yield from _row("error_rate", ranking.error)
    orders = {
        "": ranking.by_uncertainty,
        "_by_prediction": ranking.by_prediction,
        "_difference": ranking.difference,
    }
    for suffix, order in orders.items():
        for name in _RANKED:
            value = getattr(order, name)
            if suffix == "_difference" and name.startswith("excess"):
                continue
            if not math.isnan(getattr(value, "estimate", value)):
                shown = name.replace("_error_", "_squared_error_") if squared else name
                shown = f"squared_{name}" if squared and shown == name else shown
                root = squared and name.startswith("kept") and suffix != "_difference"
                yield from _row(shown + suffix, value, root=root)
    if not squared:
        yield from _ranking_rows(ranking.squared, squared=True)


def evaluate(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    prediction: ArrayLike | None = None,
    n_positive: ArrayLike | None = None,
    n_labels: ArrayLike | None = None,
    label_counts: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    class_names: ArrayLike | None = None,
    axes: str | None = None,
    exchangeable: bool = True,
    sample_weight: None = None,
    by: ArrayLike | None = None,
    kind_of_uncertainty: Kind = "variance",
    n_bins: int | None = None,
    confidence_level: float = 0.95,
    random_state: int = 0,
) -> Evaluation | Slices:
    """Evaluate a second-order classifier: is it right, does it know how far, and where not?

    Parameters
    ----------
    y_true, hypotheses, epistemic_uncertainty, prediction, n_positive, n_labels, label_counts, \
groups, class_names, axes, exchangeable
        As `predictions.as_predictions` takes and checks them; ``prediction`` is then what is judged
        in place of the mean of the hypotheses. Of an uncertainty of several classes, and of
        another kind than the variance, only the order is judged. Several labels per input are
        independent given the input: of other raters for each, or where the same ones label all
        inputs, of raters who agree on where to draw the line; else intervals are too narrow.
    sample_weight : None
        Weights are not taken; the error says how to draw inputs in proportion to them.
    by : array-like of shape (n_samples,), optional
        Parts of the inputs, such as sites or years, to be evaluated one by one.
    kind_of_uncertainty : {"variance", "mutual_information", "expected_entropy"}
        What ``epistemic_uncertainty`` is, or what of the hypotheses orders the inputs. The size is
        always that of a variance.
    n_bins : int, optional
        Bins of the corrected TECE, of which finer ones are used where these see more; the EECE
        has twice as many. By default a bin has 20 inputs or more (copies in a group are one), and
        there are at most 50; that of the EECE has 10, and at most 100.
    confidence_level : float in (0, 1), default 0.95
    random_state : int, default 0
        Seed of K-means, of the labels that tests redraw, and of folds and halves.

    Returns
    -------
    Evaluation, or Slices with ``by``

    Raises
    ------
    ValueError
        As `predictions.as_predictions`, or if a bin would have fewer than two inputs.

    Warns
    -----
    UserWarning
        As `predictions.as_predictions`; the result has these warnings, too.

    Notes
    -----
    A hypothesis is a member of an ensemble, a posterior draw, or a pass; the share of the error
    that is reported is the squared spread–skill ratio, c_H·E[EU]/E[(p* − Δ)²] with c_H =
    (H + 1)/(H − 1) for H draws.

    See Also
    --------
    metrics.split_epistemic_calibration_error, metrics.decompose_eece, \
metrics.second_order_error, metrics.error_ranking : the estimates one by one.

    Examples
    --------
    Hypotheses that are too bold by a factor of two on the logit scale:

    >>> import numpy as np
    >>> from epistemic_calibration import evaluate
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(0, 1.5, 4000)
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-logits))
    >>> hypotheses = 1 / (1 + np.exp(-2 * (logits[:, None] + rng.normal(0, 0.3, (4000, 20)))))
    >>> result = evaluate(y, hypotheses)
    >>> result.judgement["mean"].startswith("The probabilities are off by about 10")
    True
    >>> result.tece.ci_low < result.tece.estimate < result.tece.ci_high
    True
    >>> len(str(result).splitlines()) <= 45
    True
    """
    inputs = intake(
        y_true,
        hypotheses,
        epistemic_uncertainty=epistemic_uncertainty,
        prediction=prediction,
        n_positive=n_positive,
        n_labels=n_labels,
        label_counts=label_counts,
        groups=groups,
        class_names=class_names,
        axes=axes,
        exchangeable=exchangeable,
        sample_weight=sample_weight,
        kind_of_uncertainty=check_kind(kind_of_uncertainty),
    )
    for doubt in inputs.doubts:
        warnings.warn(doubt, UserWarning, stacklevel=2)
    settings = {
        "n_bins": n_bins,
        "confidence_level": confidence_level,
        "random_state": random_state,
    }
    if by is not None:
        from epistemic_calibration._slices import evaluate_by

        return evaluate_by(inputs, by, **settings)
    return evaluate_inputs(inputs, **settings)


def evaluate_inputs(
    inputs: Inputs,
    *,
    n_bins: int | None,
    confidence_level: float,
    random_state: int,
) -> Evaluation:
    """Evaluate what `intake` has checked."""
    reported, ranked_by = inputs.epistemic_uncertainty, None
    several = inputs.hypotheses.ndim == 3
    if several or inputs.kind_of_uncertainty != "variance":
        reported, ranked_by = None, reported
    if several:
        sample = ClassSample(inputs.y_true, inputs.hypotheses)
    else:
        sample = Sample(inputs.y_true, inputs.hypotheses, epistemic_uncertainty=reported)
    evaluated = _estimates.Evaluated(
        sample,
        sample.mean if inputs.prediction is None else inputs.prediction.astype(np.float64),
        inputs.label_counts,
        inputs.groups,
        exchangeable=inputs.exchangeable,
        kind=inputs.kind_of_uncertainty,
        ranked_by=ranked_by,
        level=check_fraction(confidence_level, name="confidence_level"),
        random_state=random_state,
    )
    if several:
        found = _estimates.several_classes(evaluated, list(inputs.class_names), n_bins)
    else:
        found = _estimates.two_classes(evaluated, n_bins)
    found["warnings"] = (*inputs.doubts, *found["warnings"])
    return Evaluation(
        n_samples=len(sample.y),
        n_hypotheses=sample.hypotheses.shape[1],
        class_names=inputs.class_names,
        predictor="prediction given" if evaluated.has_own_prediction else "mean of the hypotheses",
        exchangeable=evaluated.exchangeable,
        kind_of_uncertainty=evaluated.kind,
        confidence_level=evaluated.level,
        random_state=random_state,
        _inputs=evaluated,
        **found,
    )


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it, a dataclass by its public fields."""
    if dataclasses.is_dataclass(value):
        names = (f.name for f in dataclasses.fields(value))
        # Bins are many, and figures have them.
        public = (name for name in names if name != "bins" and name[0] != "_")
        return {name: plain(getattr(value, name)) for name in public}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
