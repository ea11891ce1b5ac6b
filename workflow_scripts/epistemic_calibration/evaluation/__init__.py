"""Everything that labels and hypotheses say of a predictor, in one call and on one screen."""

from __future__ import annotations

import dataclasses
import math
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.evaluation import _estimates
from epistemic_calibration.metrics import (
    CorrectedError,
    EECEParts,
    ErrorRanking,
    Estimate,
    HypothesisTest,
    LabelCollectionWarning,
    SecondOrderError,
)
from epistemic_calibration.metrics._validation import check_fraction
from epistemic_calibration.metrics.law_error import Draws
from epistemic_calibration.metrics.ranking import Kind, check_kind
from epistemic_calibration.predictions._intake import Inputs, intake

if TYPE_CHECKING:
    from typing import Unpack

    import pandas as pd
    from matplotlib.figure import Figure

    from epistemic_calibration.evaluation._slices import Slices
    from epistemic_calibration.predictions._intake import Given

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
_KEPT = ("kept_error_90", "kept_error_80", "kept_error_50")
_RANKED = (*_KEPT, "aurc", "augrc", "auroc_of_errors")
# Squared errors of a probability, which are read in points.
_SQUARED = re.compile(
    r"brier|tece_.*|.*_noise_floor|mean_miscalibration|epistemic_dependence|eece_calibration|"
    r"reported_error|reducible_error.*|variance_in_bins|kept_squared_error_\d+(_by_prediction)?"
)


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
        from epistemic_calibration.evaluation._text import summary

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
        from epistemic_calibration.evaluation._text import on_mean, on_ranking, on_size

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

        rows = [(name, "", value) for name, value in _numbers(self).items()]
        if self.n_classes > 2:
            for of, share in zip(self.class_names, self.class_shares, strict=True):
                rows.append(("class_share", of, share))
        for of, error in self.tece_of_classes.items():
            rows += [
                (name, of, value) for name, value in _corrected("tece_corrected", error).items()
            ]
        for of, second in self.second_order_of_classes.items():
            rows += [(name, of, value) for name, value in _of_second_order(second).items()]
        columns = ["metric", "class", "value", "ci_low", "ci_high", "points"]
        found = [_row(*row) for row in rows if row[2] is not None]
        return pd.DataFrame(found, columns=columns)

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
        from epistemic_calibration.evaluation._plot import draw

        return draw(self, self._inputs, path)


def _numbers(e: Evaluation) -> dict[str, Any]:
    """Return numbers, estimates and None by the names of the benchmark, of all classes together."""
    several = e.n_classes > 2
    found = {"accuracy": e.accuracy, "confidence": e.confidence}
    found |= {"brier_sum" if several else "brier": e.brier, "ece": e.ece}
    found |= (
        _corrected("tece_classwise", e.tece)
        if several
        else _corrected("tece_corrected", e.tece, "tece")
    )
    found |= _corrected("tece_top_label", e.top_label)
    found |= _corrected("tece_canonical", e.canonical)
    for name in ("mean_miscalibration", "epistemic_dependence"):
        found[name] = getattr(e, name)
    if e.eece is not None:
        found["eece"] = e.eece.eece
        for end in ("calibration", "dispersion", "noise_floor"):
            found[f"eece_{end}"] = getattr(e.eece, end)
    found |= {"reported_error": e.reported_error, "reducible_error_at_most": e.reducible_at_most}
    least, most = e.share_bounds or (None, None)
    found |= {"reported_share_at_least": least, "reported_share_at_most": most}
    found |= _of_second_order(e.second_order)
    for name, control in e.controls.items():
        found |= {f"{what}_of_{name}": value for what, value in control.items() if _is_told(value)}
    found |= _of_ranking(e.ranking)
    found |= {f"p_{name}": test.p_value for name, test in e.tests.items()}
    return found | {name: getattr(e, name) for name in ("n_samples", "n_hypotheses", "n_groups")}


def _corrected(name: str, error: CorrectedError | None, short: str = "") -> dict[str, Any]:
    """Return an error, and what it can see."""
    if error is None:
        return {}
    ends = ("noise_floor", "minimum_detectable")
    return {name: error} | {f"{short or name}_{end}": getattr(error, end) for end in ends}


def _of_second_order(second: SecondOrderError | None) -> dict[str, Any]:
    return {name: getattr(second, a) for name, a in _SECOND_ORDER.items()} if second else {}


def _of_ranking(ranking: ErrorRanking | None, *, squared: bool = False) -> dict[str, Any]:
    if ranking is None:
        return {}
    found = {} if squared else {"error_rate": ranking.error}
    for suffix in ("", "_by_prediction", "_difference"):
        order = getattr(ranking, suffix[1:] or "by_uncertainty")
        for name in _RANKED:
            value = getattr(order, name)
            if not _is_told(value):
                continue
            if squared:
                kept = name in _KEPT
                name = name.replace("_error_", "_squared_error_") if kept else f"squared_{name}"
            found[name + suffix] = value
    return found if squared else found | _of_ranking(ranking.squared, squared=True)


def _is_told(value: Any) -> bool:
    return not math.isnan(getattr(value, "estimate", value))


def _row(name: str, of: str, value: Any) -> tuple:
    """Return the row of a number or an estimate."""
    number = float(getattr(value, "estimate", value))
    ends = (getattr(value, end, math.nan) for end in ("ci_low", "ci_high"))
    points = 100 * math.sqrt(max(number, 0.0)) if _SQUARED.fullmatch(name) else math.nan
    return name, of, number, *ends, points


def evaluate(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    draws: Draws = "functions",
    sample_weight: None = None,
    by: ArrayLike | None = None,
    kind_of_uncertainty: Kind = "variance",
    n_bins: int | None = None,
    confidence_level: float = 0.95,
    random_state: int = 0,
    **given: Unpack[Given],
) -> Evaluation | Slices:
    """Evaluate a second-order classifier: is it right, does it know how far, and where not?

    Parameters
    ----------
    y_true, hypotheses, **given
        As `predictions.as_predictions` takes and checks them: ``epistemic_uncertainty``,
        ``prediction``, ``n_positive``, ``n_labels``, ``label_counts``, ``groups``,
        ``class_names``, ``axes``, ``exchangeable``. ``prediction`` is what is judged in place of
        the mean of the hypotheses. Of an uncertainty of several classes, and of
        another kind than the variance, only the order is judged. Several labels per input are
        independent given the input: of other raters for each, or where the same ones label all
        inputs, of raters who agree on where to draw the line; else intervals are too narrow.
    draws : {"functions", "inputs"}, default "functions"
        What is drawn, as in `metrics.second_order_error`: functions, as networks, posterior draws
        and passes are, or other hypotheses at each input.
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
    ValueError, TypeError
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
        sample_weight=sample_weight,
        kind_of_uncertainty=check_kind(kind_of_uncertainty),
        **given,
    )
    for doubt in inputs.doubts:
        warnings.warn(doubt, UserWarning, stacklevel=2)
    settings = {
        "draws": draws,
        "n_bins": n_bins,
        "confidence_level": confidence_level,
        "random_state": random_state,
    }
    if by is not None:
        from epistemic_calibration.evaluation._slices import evaluate_by

        return evaluate_by(inputs, by, **settings)
    return evaluate_inputs(inputs, **settings)


def evaluate_inputs(
    inputs: Inputs,
    *,
    draws: Draws = "functions",
    n_bins: int | None,
    confidence_level: float,
    random_state: int,
) -> Evaluation:
    """Evaluate what `intake` has checked."""
    evaluated = _estimates.Evaluated.of(
        inputs,
        draws=draws,
        level=check_fraction(confidence_level, name="confidence_level"),
        random_state=random_state,
    )
    with warnings.catch_warnings():
        # Those of the estimates are in what is found.
        warnings.simplefilter("ignore", LabelCollectionWarning)
        found = _estimates.estimates(evaluated, inputs.class_names, n_bins)
    found["warnings"] = (*inputs.doubts, *found["warnings"])
    return Evaluation(
        n_samples=len(inputs.y_true),
        n_hypotheses=inputs.hypotheses.shape[1],
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
