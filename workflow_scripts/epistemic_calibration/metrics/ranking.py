"""Does the epistemic uncertainty (EU) tell where a predictor errs? One label per input tells.

Abstaining, and choosing what to label, use the order of EU and not its size. Keep the inputs of
least EU: how many errors are among them, and are there fewer than if one had kept those whose
prediction is the surest? Everything here is an average of errors with weights that depend on the
rank of an input; inputs of equal EU share the mean of their weights, so that the order of rows
does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._groups import check_groups
from epistemic_calibration.metrics._label_counts import label_moments, squared_error
from epistemic_calibration.metrics._means import Estimate, mean_of_groups, summary_line
from epistemic_calibration.metrics._sample import Sample
from epistemic_calibration.metrics._validation import (
    check_fraction,
    check_probabilities,
    check_uncertainty,
    row_blocks,
)

Kind = Literal["variance", "mutual_information", "expected_entropy"]

#: Shares of the inputs that are kept.
COVERAGES = (0.9, 0.8, 0.5)
_KEPT = tuple(f"kept_error_{round(100 * coverage)}" for coverage in COVERAGES)


@dataclass(frozen=True)
class RankedErrors:
    """Errors by one order of the inputs, or the difference of two orders.

    Attributes
    ----------
    kept_error_90, kept_error_80, kept_error_50 : Estimate
        Mean error of the 90, 80 and 50 % of the inputs that come first.
    aurc, augrc : Estimate
        Area under the risk–coverage curve, the mean of the error among the first k inputs over
        k, and under the generalised one (Traub et al., 2024), the mean over coverages of the
        errors kept as a share of all inputs. Only differences have intervals.
    auroc_of_errors : Estimate
        Probability that an error comes after what is right, ½ where the order knows nothing. NaN
        where nothing or everything is wrong, and for squared errors.
    """

    kept_error_90: Estimate
    kept_error_80: Estimate
    kept_error_50: Estimate
    aurc: Estimate
    augrc: Estimate
    auroc_of_errors: Estimate


@dataclass(frozen=True, repr=False)
class ErrorRanking:
    """Whether EU tells where a predictor errs, beside its own doubt.

    Attributes
    ----------
    error : Estimate
        Share of the inputs whose label is not the predicted one; of ``squared`` E[(p* − Δ)²].
    by_uncertainty, by_prediction : RankedErrors
        With the inputs of least EU first, and with those of largest predicted probability.
    difference : RankedErrors
        The first less the second: errors kept are fewer by EU where it is below 0.
    n_samples : int
    squared : ErrorRanking or None
        The same of the squared error E[(p* − Δ)²], where there are several labels per input; of
        several classes a mean over them.
    """

    error: Estimate
    by_uncertainty: RankedErrors
    by_prediction: RankedErrors
    difference: RankedErrors
    n_samples: int
    squared: ErrorRanking | None = None

    def __repr__(self) -> str:
        lines = [f"  error            {summary_line(self.error)}, {self.n_samples} inputs"]
        orders = self.by_uncertainty, self.by_prediction, self.difference
        for name in (f.name for f in fields(RankedErrors)):
            eu, doubt, apart = (getattr(order, name) for order in orders)
            values = f"{eu.estimate:.3g}, {doubt.estimate:.3g} by prediction"
            lines.append(f"  {name:<16} {values}; difference {summary_line(apart)}")
        if self.squared is not None:
            lines.append(f"  squared {self.squared!r}".replace("\n", "\n  "))
        return "\n".join(["ErrorRanking(", *lines, ")"])


def error_ranking(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    prediction: ArrayLike | None = None,
    epistemic_uncertainty: ArrayLike | None = None,
    kind_of_uncertainty: Kind = "variance",
    n_positive: ArrayLike | None = None,
    n_labels: ArrayLike | None = None,
    label_counts: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> ErrorRanking:
    """Return how well the order of EU, and that of the prediction, tell errors.

    Tasks that share their inputs are pooled: concatenate them, and let ``groups`` be the inputs.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels 0 and 1, or 0, ..., n_classes − 1.
    hypotheses : array-like of shape (n_samples, n_hypotheses[, n_classes])
        h_j(x_n) in [0, 1]; of several classes they add up to 1.
    prediction : array-like of shape (n_samples[, n_classes]), optional
        What is wrong or right, and whose 1 − max p is the other order; by default the mean of
        the hypotheses.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        Of whatever kind and unit, >= 0, larger where less is known; by default of the hypotheses.
    kind_of_uncertainty : {"variance", "mutual_information", "expected_entropy"}
        What is computed from the hypotheses: their variance, of several classes its sum over
        classes; the entropy of their mean less their mean entropy, in nats; or the mean entropy.
    n_positive, n_labels : array-like of int, shape (n_samples,), optional
        Several labels per input; they give ``squared``.
    label_counts : array-like of int, shape (n_samples, n_classes), optional
        The same of several classes.
    groups : array-like of shape (n_samples,), optional
        Equal for inputs that are not independent of each other.
    confidence_level : float in (0, 1), default 0.95

    Raises
    ------
    ValueError
        If labels are not classes, hypotheses are not probabilities, lengths differ, the kind is
        unknown, or there are fewer than two inputs, or groups of them.

    Notes
    -----
    AURC and AUGRC are trapezoids over the coverages 1/N, 2/N, ..., 1, divided by 1 − 1/N.

    Intervals are of other inputs of the same kind. Errors kept: Clopper and Pearson's with the
    number of inputs that has the variance seen (Korn and Graubard, 1998), and for a difference
    the normal one with two further errors (Bonett and Price, 2012). The areas: Student's t, with
    as many degrees of freedom as errors, or as their contributions have (Satterthwaite). With few
    errors the intervals of errors kept hold more often than they say.

    References
    ----------
    Geifman and El-Yaniv, 2017, "Selective classification for deep neural networks".
    Traub et al., 2024, "Overcoming common flaws in the evaluation of selective classification
    systems", arXiv 2407.01032.
    Hanley and McNeil, 1982, "The meaning and use of the area under a receiver operating
    characteristic (ROC) curve".
    DeLong, DeLong and Clarke-Pearson, 1988, "Comparing the areas under two or more correlated
    receiver operating characteristic curves".
    Korn and Graubard, 1998, "Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data".
    Bonett and Price, 2012, "Adjusted Wald confidence interval for a difference of binomial
    proportions based on paired data".

    Examples
    --------
    Ten inputs; the two errors are among the three whose hypotheses disagree most:

    >>> from epistemic_calibration import metrics
    >>> rows = [[0.9, 0.9]] * 7 + [[0.5, 0.9]] + [[0.4, 1.0]] * 2
    >>> ranking = metrics.error_ranking([1] * 8 + [0] * 2, rows)
    >>> ranking.error.estimate, ranking.by_uncertainty.kept_error_80.estimate
    (0.2, 0.0)
    >>> ranking.by_uncertainty.auroc_of_errors.estimate
    1.0
    """
    level = check_fraction(confidence_level, name="confidence_level")
    if np.ndim(hypotheses) == 3:
        sample: Sample | ClassSample = ClassSample(y_true, hypotheses)
    else:
        sample = Sample(y_true, hypotheses)
    n = len(sample.y)
    counts = None
    if label_counts is not None:
        counts = np.asarray(label_counts)
    elif n_positive is not None and n_labels is not None:
        positive = np.asarray(n_positive)
        counts = np.stack([np.broadcast_to(n_labels, positive.shape) - positive, positive], axis=1)
    if counts is not None and counts.shape != (n, 2 if sample.mean.ndim == 1 else sample.n_classes):
        raise ValueError(f"there must be counts of each class of {n} inputs, got {counts.shape}")
    uncertainty = (
        uncertainty_of(sample.hypotheses, kind_of_uncertainty)
        if epistemic_uncertainty is None
        else check_uncertainty(epistemic_uncertainty, n_samples=n)
    )
    return rank_sample(
        sample, uncertainty, prediction, counts=counts, groups=groups, confidence_level=level
    )


def rank_sample(
    sample: Sample | ClassSample,
    uncertainty: np.ndarray,
    prediction: ArrayLike | None = None,
    *,
    counts: np.ndarray | None = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> ErrorRanking:
    """Return the `error_ranking` of a checked sample, with counts of all its classes."""
    wrong, doubt = errors_and_doubt(sample, prediction)
    labels = check_groups(groups, np.ones(len(wrong), dtype=bool))
    squared = None
    if counts is not None:
        # Unbiased estimates of (p* − Δ)², a mean over classes.
        means = sample.mean.reshape(len(counts), -1)
        errors = []
        for of_class, centre in zip(counts.T[-means.shape[1] :], means.T, strict=True):
            first, second, kept = label_moments(of_class, counts.sum(axis=1))
            errors.append(squared_error(first, second, centre[kept]))
        error = np.mean(errors, axis=0)
        if len(np.unique(labels[kept])) > 1:
            squared = rank_errors(
                error, uncertainty[kept], doubt[kept], labels[kept], confidence_level
            )
    return rank_errors(wrong, uncertainty, doubt, labels, confidence_level, squared=squared)


def errors_and_doubt(
    sample: Sample | ClassSample, prediction: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return which predictions are wrong, as floats, and 1 − max p of each."""
    if isinstance(sample, ClassSample):
        if prediction is None:
            p, top = sample.mean, sample.top
        else:
            p = ClassSample(None, np.asarray(prediction)[:, None, :]).mean
            top = np.round(p, 12).argmax(axis=1)
        if len(p) != len(sample.y):
            raise ValueError(f"prediction has {len(p)} samples, y_true has {len(sample.y)}")
        return (top != sample.y).astype(np.float64), 1 - p.max(axis=1)
    p = sample.mean
    if prediction is not None:
        p = check_probabilities(prediction, name="prediction", n_samples=len(sample.y))
    return ((p > 0.5) != (sample.y == 1)).astype(np.float64), np.minimum(p, 1 - p)


def check_kind(kind: Kind) -> Kind:
    """Return the kind of an uncertainty, or raise ValueError where there is no such kind."""
    if kind not in get_args(Kind):
        raise ValueError(f"kind_of_uncertainty must be one of {get_args(Kind)}, got {kind!r}")
    return kind


def uncertainty_of(hypotheses: np.ndarray, kind: Kind) -> np.ndarray:
    """Return EU of a kind of hypotheses that are checked, shape (n_samples,)."""
    from scipy.special import entr

    check_kind(kind)
    of_classes = hypotheses.ndim == 3
    found = np.empty(len(hypotheses))
    for block in row_blocks(hypotheses.reshape(len(hypotheses), -1)):
        rows = hypotheses[block].astype(np.float64)
        if kind == "variance":
            found[block] = rows.var(axis=1).sum(axis=-1) if of_classes else rows.var(axis=1)
            continue
        if not of_classes:
            rows = np.stack([1 - rows, rows], axis=2)
        mean_entropy = entr(rows).sum(axis=2).mean(axis=1)
        total = entr(rows.mean(axis=1)).sum(axis=1)
        found[block] = mean_entropy if kind == "expected_entropy" else total - mean_entropy
    return np.maximum(found, 0)


def risk_coverage_curve(
    error: np.ndarray, uncertainty: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return coverages k/N and the mean error of the k inputs of least uncertainty."""
    order = _Order(uncertainty)
    k = np.arange(1, len(error) + 1)
    return k / len(error), np.cumsum(order.means(error)[order.of_rank]) / k


class _Order:
    """Inputs by a key, the least first; those of equal keys are one tie."""

    def __init__(self, key: np.ndarray) -> None:
        # 0.3 and 1 - 0.7 are the same doubt.
        mantissa, exponent = np.frexp(key)
        rounded = np.ldexp(np.round(mantissa * 2.0**40), exponent - 40)
        _, self.tie, self.count = np.unique(rounded, return_inverse=True, return_counts=True)
        self.starts = np.cumsum(self.count) - self.count
        self.of_rank = np.repeat(np.arange(len(self.count)), self.count)

    def means(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of values of inputs over each tie."""
        return np.bincount(self.tie, weights=values) / self.count

    def spread(self, of_ranks: np.ndarray) -> np.ndarray:
        """Return for each input the mean over its tie of what is of ranks, on the last axis."""
        return (np.add.reduceat(of_ranks, self.starts, axis=-1) / self.count)[..., self.tie]


def _weights(n: int) -> np.ndarray:
    """Return the weights of ranks 1 to n: of errors kept, AURC and AUGRC, whose mean is each."""
    k = np.arange(1, n + 1.0)
    first = 0.5 * (k == 1)
    kept = [np.clip(c * n - (k - 1), 0, 1) / c for c in COVERAGES]
    if n == 1:
        return np.stack([*kept, [math.nan], [math.nan]])
    aurc = n / (n - 1) * (np.cumsum(1 / k[::-1])[::-1] - first - 1 / (2 * n))
    return np.stack([*kept, aurc, (n - k + 0.5 - first) / (n - 1)])


def _contributions(
    error: np.ndarray, order: _Order, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what each input adds to each average, itself and as a rank of others, and weights.

    One more input moves all that come after it by a rank, so that their weights fall. The error
    at a rank, which a threshold meets only once, is the mean of the √N ranks to both sides.
    """
    n = len(error)
    own = order.spread(weights)
    sums = np.concatenate([[0.0], np.cumsum(order.means(error)[order.of_rank])])
    k, width = np.arange(1, n), math.ceil(math.sqrt(n))
    low, high = np.maximum(k - width, 0), np.minimum(k + width, n)
    falls = np.zeros_like(weights)
    falls[:, :-1] = (sums[high] - sums[low]) / (high - low) * np.diff(weights, axis=1)
    after = order.spread(np.cumsum(falls[:, ::-1], axis=1)[:, ::-1])
    return error * own + after - after.mean(axis=1, keepdims=True), own


def rank_errors(
    error: np.ndarray,
    uncertainty: np.ndarray,
    doubt: np.ndarray,
    groups: np.ndarray,
    level: float,
    *,
    squared: ErrorRanking | None = None,
) -> ErrorRanking:
    """Return the ranking of errors, 0 and 1 or estimates of squared ones, by two orders."""
    groups = np.unique(groups, return_inverse=True)[1]
    weights = _weights(len(error))
    orders = [_Order(uncertainty), _Order(doubt)]
    (by_eu, own_eu), (by_doubt, own_doubt) = (
        _contributions(error, order, weights) for order in orders
    )
    if bool(np.isin(error, (0.0, 1.0)).all()):
        summary: Any = _Rare(error, groups, level)
    else:
        summary = _Means(groups, level)
    apart = by_eu - by_doubt
    return ErrorRanking(
        error=summary.kept(error, 1.0),
        by_uncertainty=_ranked(summary, orders[0], by_eu),
        by_prediction=_ranked(summary, orders[1], by_doubt),
        difference=RankedErrors(
            *(summary.kept_difference(apart[i], c) for i, c in enumerate(COVERAGES)),
            *(summary.area_difference(apart[i], (own_eu - own_doubt)[i]) for i in (-2, -1)),
            summary.auroc_difference(orders, [by_eu[-1], by_doubt[-1]]),
        ),
        n_samples=len(error),
        squared=squared,
    )


def difference_kept(
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    groups: np.ndarray,
    level: float,
) -> Estimate:
    """Return how many errors more one predictor keeps at 90 % than another, of the same inputs.

    Each has errors, 0 and 1, and what orders the inputs.
    """
    weights = _weights(len(groups))[:1]
    a, b = (_contributions(error, _Order(key), weights)[0][0] for error, key in (first, second))
    wrong = np.maximum(first[0], second[0])
    return _Rare(wrong, groups, level).kept_difference(a - b, COVERAGES[0])


def _ranked(summary: Any, order: _Order, values: np.ndarray) -> RankedErrors:
    areas = [_mean(values[i]) for i in (-2, -1)]
    return RankedErrors(
        *(summary.kept(values[i], c) for i, c in enumerate(COVERAGES)),
        *(Estimate(a, math.nan, math.nan, math.nan, summary.level) for a in areas),
        summary.auroc(order, values[-1]),
    )


def _mean(values: np.ndarray) -> float:
    # What is 0 must not be 1e-17.
    value = float(values.mean())
    return value if abs(value) > 1e-13 else 0.0


class _Means:
    """Estimates and intervals of squared errors, of which each input has some."""

    def __init__(self, groups: np.ndarray, level: float) -> None:
        self.groups, self.level = groups, level

    def kept(self, values: np.ndarray, coverage: float) -> Estimate:
        return mean_of_groups(values, self.groups, self.level, least=0.0)

    def kept_difference(self, values: np.ndarray, coverage: float) -> Estimate:
        return mean_of_groups(values, self.groups, self.level)

    def area_difference(self, values: np.ndarray, weights: np.ndarray) -> Estimate:
        return mean_of_groups(values, self.groups, self.level)

    def auroc(self, *_: Any) -> Estimate:
        return Estimate(math.nan, math.nan, math.nan, math.nan, self.level)

    auroc_difference = auroc


class _Rare:
    """Estimates and intervals of errors of 0 and 1, which may be few."""

    def __init__(self, error: np.ndarray, groups: np.ndarray, level: float) -> None:
        self.error, self.groups, self.level = error, groups, level
        self.n_groups = int(groups.max()) + 1
        #: Groups with an error.
        self.n_wrong = len(np.unique(groups[error > 0]))

    def _sums(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.groups, weights=values - values.mean()) / len(values)

    def _t(self, freedom: float) -> float:
        from scipy.stats import t

        return float(t.ppf(0.5 + self.level / 2, freedom))

    def kept(self, values: np.ndarray, coverage: float) -> Estimate:
        """Return a mean error with Clopper and Pearson's interval of the effective number."""
        from scipy.stats import beta

        rate = min(max(_mean(values), 0.0), 1.0)
        sums = self._sums(values)
        variance = float(sums @ sums) * self.n_groups / (self.n_groups - 1)
        n = coverage * len(values)
        if 0 < rate < 1 and variance > 0:
            n = min(n, rate * (1 - rate) / variance)
        else:
            n = min(n, coverage * self.n_groups)
        wrong, tail = rate * n, (1 - self.level) / 2
        low = float(beta.ppf(tail, wrong, n - wrong + 1)) if rate > 0 else 0.0
        high = float(beta.ppf(1 - tail, wrong + 1, n - wrong)) if rate < 1 else 1.0
        return Estimate(rate, math.sqrt(variance), low, high, self.level)

    def kept_difference(self, values: np.ndarray, coverage: float) -> Estimate:
        """Return a difference whose variance has two further errors, kept by one order only."""
        sums = self._sums(values)
        variance = float(sums @ sums) * self.n_groups / (self.n_groups - 1)
        typical = float((sums**4).sum() / (sums @ sums)) if variance > 0 else 0.0
        one = 1 / (coverage * len(values)) ** 2
        half = self._t(self.n_groups - 1) * math.sqrt(variance + 2 * max(typical, one))
        return self._within(_mean(values), math.sqrt(variance), half)

    def area_difference(self, values: np.ndarray, weights: np.ndarray) -> Estimate:
        """Return a difference of areas; ``weights`` is how far an error would move it."""
        sums = self._sums(values)
        if self.n_wrong < 2:
            one = float(np.mean(weights**2)) / len(values) ** 2
            variance = float(sums @ sums)
            half = self._t(self.n_groups - 1) * math.sqrt(variance + 2 * one)
            return self._within(_mean(values), math.sqrt(variance), half)
        variance, half = self._student(sums, least_freedom=False)
        return self._within(_mean(values), math.sqrt(variance), half)

    def auroc(self, order: _Order, of_augrc: np.ndarray) -> Estimate:
        """Return AUROC, with the interval on the scale of its logit."""
        if not self.error.any() or self.error.all():
            return Estimate(math.nan, math.nan, 0.0, 1.0, self.level)
        value, moved = self._auroc(order, of_augrc)
        if self.n_wrong < 2:
            return Estimate(value, math.nan, 0.0, 1.0, self.level)
        # As if two more errors were spread as Hanley and McNeil have it: of few errors all may have
        # the same uncertainty, which says little of others.
        spread = value * (1 - value) ** 2 / (2 - value) / self.n_wrong
        variance, half = self._student(self._sums(moved), least_freedom=True, spread=spread)
        edge = 0.5 / len(moved)
        inside = min(max(value, edge), 1 - edge)
        logit, half = math.log(inside / (1 - inside)), half / (inside * (1 - inside))
        low, high = (1 / (1 + math.exp(min(-logit + s * half, 700))) for s in (1, -1))
        return Estimate(value, math.sqrt(variance), min(low, value), max(high, value), self.level)

    def auroc_difference(self, orders: list[_Order], of_augrc: list[np.ndarray]) -> Estimate:
        if not self.error.any() or self.error.all():
            return Estimate(math.nan, math.nan, -1.0, 1.0, self.level)
        (a, moved_a), (b, moved_b) = map(self._auroc, orders, of_augrc)
        if self.n_wrong < 2:
            return Estimate(a - b, math.nan, -1.0, 1.0, self.level)
        variance, half = self._student(self._sums(moved_a - moved_b), least_freedom=True)
        return self._within(a - b, math.sqrt(variance), half)

    def _auroc(self, order: _Order, of_augrc: np.ndarray) -> tuple[float, np.ndarray]:
        """Return AUROC, and how each input moves it: it is a function of AUGRC.

        With a share r of errors, the AUGRC of many inputs is r²/2 + (1 − AUROC)·r(1 − r).
        """
        from sklearn.metrics import roc_auc_score

        value, rate = float(roc_auc_score(self.error, order.tie)), float(self.error.mean())
        of_rate = rate + (1 - value) * (1 - 2 * rate)
        moved = (self.error - rate) * of_rate - (of_augrc - of_augrc.mean())
        return value, moved / (rate * (1 - rate))

    def _student(
        self, sums: np.ndarray, *, least_freedom: bool, spread: float = 0.0
    ) -> tuple[float, float]:
        """Return variance and half width, of two groups with errors or more."""
        m, variance = self.n_wrong, float(sums @ sums)
        freedom = m - 1.0
        if variance > 0:
            freedom = max(variance**2 / float((sums**4).sum()) - 1, 1.0)
            freedom = min(freedom, m - 1) if least_freedom else freedom
        variance *= m / (m - 1)
        if spread > 0:
            variance = (m * variance + 2 * spread) / (m + 2)
        return variance, self._t(freedom) * math.sqrt(variance)

    def _within(self, value: float, standard_error: float, half: float) -> Estimate:
        low, high = max(value - half, -1.0), min(value + half, 1.0)
        return Estimate(value, standard_error, low, high, self.level)
