"""Is the epistemic uncertainty of the right size? Answers from several labels per input.

Input n has n_labels[n] = k labels, independent given x, of which n_positive[n] = s are positive;
p* = P(Y = 1 | x) is unknown, Δ is the mean of the hypotheses at x and EU their variance (ddof 0).
For any c that does not depend on the labels,

    s(s − 1)/(k(k − 1)) − 2c·s/k + c²        has mean (p* − c)²,

so that at c = Δ, where it is called q below, it shows without bias how large the squared error of
a method is, which one label per input cannot. A method is calibrated of second order if p*, given
the hypotheses at x, is distributed as they are (Johnson et al., 2024; Ahdritz et al., 2025;
Ciosek et al., 2026); then E[(p* − Δ)²] is what EU says.

**H draws are not the law.** Where the hypotheses are H independent draws from the law that a
method means (posterior samples, dropout passes, networks), calibration makes p* one more draw,
and E[(p* − Δ)²] = c_H·E[EU] with c_H = (H + 1)/(H − 1): Δ misses the mean of the law, and EU is
smaller than its variance. Without the factor, a right EU looks 9 % too small at H = 20. Nor may the
same draws choose the inputs and be judged on them: an EU that is large by chance would seem
too large. So whatever is asked of inputs *of a given EU* is asked of one half of the draws after
choosing by the other half. Where the hypotheses *are* the law (``exchangeable=False``), or a
method reports an EU of its own, c_H = 1 and no halves are needed.

References
----------
Johnson et al. 2024, arXiv 2402.08733 · Ahdritz et al. 2025, arXiv 2412.18808 · Ciosek et al.
2026, arXiv 2605.07808
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._clusters import (
    Estimate,
    mean_of_groups,
    ratio_of_means,
    shifted,
    squares_of_means,
    summary_line,
    t_quantile,
)
from epistemic_calibration.metrics._groups import check_groups, group_sums
from epistemic_calibration.metrics._validation import (
    check_bins,
    check_fraction,
    check_hypotheses,
    check_positive_integer,
    check_probabilities,
    check_uncertainty,
    row_blocks,
)
from epistemic_calibration.metrics.binning import Binning, assign_bins, quantile_bins, row_moments
from epistemic_calibration.metrics.corrected import CorrectedError
from epistemic_calibration.metrics.hypothesis_tests import HypothesisTest

#: Inputs in a bin of EU below which there are fewer bins: squared errors are skewed, and of too
#: few the mean and its variance are too small together.
_LEAST_INPUTS = 100


@dataclass(frozen=True, repr=False)
class SecondOrderError:
    """How large the error of a method is, and how much of it the method reports.

    Every quantity but ``share`` and ``slope`` is in squared units of probability: 0.01 is a
    root mean square of ten points.

    Attributes
    ----------
    reducible : Estimate
        E[(p* − Δ)²], the part of the Brier score that knowing p* would remove; the rest of it
        is ``aleatoric``.
    uncertainty : Estimate
        c_H·E[EU], what the method says that ``reducible`` is.
    gap : Estimate
        reducible − uncertainty, signed: above 0 the method is too sure of itself.
    share : Estimate
        uncertainty / reducible, how much of its error a method reports: 1 where it is right.
        The interval is Fieller's; its end is inf where the reducible error may be 0, and the
        estimate is NaN where that of the reducible error is not above 0.
    slope : Estimate
        Slope of the squared error on EU over inputs: 1 where it is right, 0 where EU knows
        nothing of where the method errs. NaN if EU does not vary, or for 2 or 3 draws.
    size_error : CorrectedError
        Σ w (E[(p* − Δ)² − c_H·EU | bin])² over bins of EU, corrected for noise; at least gap².
        In units of probability to the fourth power. It also sees an EU that is right on
        average but large on the wrong inputs.
    calibration_error : CorrectedError
        E[(E[p* − Δ | bin])²] over bins of the hypotheses: the corrected TECE, from all labels.
    variance_in_bins : Estimate
        E[Var(p* − Δ | bin)] over the same bins, an upper limit of E[Var(p* | Π)], which no
        method that has only these hypotheses can lower, and which EU should be.
        reducible = calibration_error + variance_in_bins where no sample is alone in its bin.
    aleatoric : Estimate
        E[p*(1 − p*)], the noise of the labels.
    dropped_mass : float
        Share of inputs with fewer than two labels, which are left out of everything above.
    n_samples : int
        Inputs used.
    """

    reducible: Estimate
    uncertainty: Estimate
    gap: Estimate
    share: Estimate
    slope: Estimate
    size_error: CorrectedError
    calibration_error: CorrectedError
    variance_in_bins: Estimate
    aleatoric: Estimate
    dropped_mass: float
    n_samples: int

    def __repr__(self) -> str:
        lines = [
            f"  {name:<17} {summary_line(getattr(self, name))}"
            for name in self.__dataclass_fields__
            if name not in ("dropped_mass", "n_samples")
        ]
        lines.append(f"  {'n_samples':<17} {self.n_samples}, {self.dropped_mass:.3g} dropped")
        return "\n".join(["SecondOrderError(", *lines, ")"])


@dataclass(frozen=True, repr=False)
class SecondOrderCurve:
    """Squared error against epistemic uncertainty; every array has shape (n_bins,).

    Attributes
    ----------
    uncertainty : ndarray
        Mean of c_H·EU in each bin, ascending with the quantiles of EU.
    error : ndarray
        Mean squared error E[(p* − Δ)² | bin], on the diagonal where EU is right.
    standard_error, ci_low, ci_high : ndarray
        Of ``error``; the interval is cut at 0.
    weight : ndarray
        Share of the inputs.
    confidence_level : float
    """

    uncertainty: np.ndarray
    error: np.ndarray
    standard_error: np.ndarray
    ci_low: np.ndarray
    ci_high: np.ndarray
    weight: np.ndarray
    confidence_level: float

    def __repr__(self) -> str:
        rows = zip(
            self.uncertainty, self.error, self.ci_low, self.ci_high, self.weight, strict=True
        )
        lines = [
            f"  uncertainty {u:.4g}: error {e:.4g} [{low:.4g}, {high:.4g}], weight {w:.3g}"
            for u, e, low, high, w in rows
        ]
        return "\n".join(["SecondOrderCurve(", *lines, ")"])


def second_order_error(
    n_positive: ArrayLike,
    n_labels: ArrayLike,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    exchangeable: bool = True,
    n_bins: int = 50,
    binning: Binning = "nested",
    bins: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> SecondOrderError:
    """Return how large the error of a method is, and how much of it the method reports.

    The inputs are the sample: intervals are about other inputs and labels of the same kind,
    with the same hypotheses; training again is not in them.

    Parameters
    ----------
    n_positive : array-like of int, shape (n_samples,)
        Positive labels s of each input, 0 <= s <= k.
    n_labels : array-like of int, shape (n_samples,), or int
        Labels k of each input; inputs with fewer than two are dropped (``dropped_mass``).
    hypotheses : array-like of shape (n_samples, n_hypotheses)
        h_j(x_n) in [0, 1]; two or more of them unless EU is reported.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        Reported by the method, >= 0, taken as it is (c_H = 1); by default the variance of the
        hypotheses.
    exchangeable : bool, default True
        The hypotheses are draws from the law that the method means (posterior samples,
        passes, networks): c_H = (H + 1)/(H − 1). If False they are that law: c_H = 1.
    n_bins : int, default 50
        Bins of EU for ``size_error``, and of the hypotheses for ``calibration_error`` and
        ``variance_in_bins``. Equal values share a bin.
    binning : str, default "nested"
        Of the hypotheses, as in :func:`assign_bins`.
    bins : array-like of int, shape (n_samples,), optional
        Bins for all three, which must not depend on labels. For draws, nor should they depend
        on these draws: bins of their own EU make a right EU seem wrong.
    groups : array-like of shape (n_samples,), optional
        Clusters of inputs that are not independent, such as those which the same people
        labelled, or copies of an image. By default every input is one of its own.
    random_state : int, default 0
        Seed of the halves of the draws, and of K-means.
    confidence_level : float in (0, 1), default 0.95

    Raises
    ------
    ValueError
        If counts are not integers with 0 <= s <= k, hypotheses are not in [0, 1], lengths
        differ, fewer than two groups of inputs with two labels or more are left, or there is
        one hypothesis and no reported EU.

    See Also
    --------
    mean_second_order_error : of several tasks that share their inputs.
    second_order_curve : the error against EU.
    second_order_test : an exact test that p* is distributed as the hypotheses are.
    bounds_from_one_label : what can be said of one label per input.
    true_second_order_error : where p* is known.

    Notes
    -----
    Over bins, v = q − c_H·EU is averaged, never EU or the hypotheses one by one, and a square is
    the mean of v_i·v_k over pairs of different groups (Kumar et al., 2019).

    ``slope`` is cov(V_A, q_B − V_B/H_B)/cov(V_A, V_B), V_A and V_B the variances (ddof 1) of two
    halves of the draws, with every product averaged over all ways to halve them (a U-statistic,
    in closed form). Least squares on EU, which is noisy, would find .8 for 1 at H = 20.

    Intervals of means allow for their skewness (Hall, 1992), those of ``share`` and ``slope``
    are Fieller's (1954). Where the probabilities of the rarer class add up to little, they are
    too narrow: that of ``slope`` below about 100, those of ``size_error`` and ``gap`` below
    about 30.

    References
    ----------
    Johnson, Tarlow, Duvenaud and Maddison, 2024, "Experts don't cheat: learning what you don't
    know by predicting pairs", arXiv 2402.08733.
    Ahdritz, Gollakota, Gopalan, Peale and Wieder, 2025, "Provable uncertainty decomposition via
    higher-order calibration", arXiv 2412.18808.
    Kumar, Liang and Ma, 2019, "Verified uncertainty calibration".
    Fieller, 1954, "Some problems in interval estimation".
    Hall, 1992, "On the removal of skewness by transformation".

    Examples
    --------
    Ten labels for each of 4000 inputs; the hypotheses vary as p* does, then half as much:

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.uniform(0.2, 0.8, 4000)
    >>> p, *rows = (np.clip(mean + rng.normal(0, 0.1, 4000), 0, 1) for _ in range(21))
    >>> n_positive, rows = rng.binomial(10, p), np.stack(rows, axis=1)
    >>> right = metrics.second_order_error(n_positive, 10, rows)
    >>> right.gap.ci_low < 0 < right.gap.ci_high
    True
    >>> half = mean[:, None] + (rows - mean[:, None]) / np.sqrt(2)
    >>> metrics.second_order_error(n_positive, 10, half).share
    Estimate(0.479 ± 0.0315 [0.4222, 0.5471])
    """
    of_task = contributions(
        n_positive,
        n_labels,
        hypotheses,
        epistemic_uncertainty=epistemic_uncertainty,
        exchangeable=exchangeable,
        n_bins=n_bins,
        binning=binning,
        bins=bins,
        random_state=random_state,
    )
    return summarize([of_task], groups=groups, confidence_level=confidence_level)


def mean_second_order_error(
    n_positive: Sequence[ArrayLike],
    n_labels: ArrayLike,
    hypotheses: Sequence[ArrayLike],
    *,
    epistemic_uncertainty: Sequence[ArrayLike] | None = None,
    exchangeable: bool = True,
    n_bins: int = 50,
    binning: Binning = "nested",
    bins: Sequence[ArrayLike] | None = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> SecondOrderError:
    """Return means over tasks of the second-order error, where tasks share their inputs.

    One-vs-all tasks have the same images, and an image that is hard in one is hard in others.
    What an input contributes is therefore summed over tasks before its variance is taken.

    Parameters
    ----------
    n_positive, hypotheses, epistemic_uncertainty, bins
        One array a task, each as in :func:`second_order_error`; sample n of every task is
        the same input.
    n_labels, exchangeable, n_bins, binning, groups, random_state, confidence_level
        As there, for all tasks.

    Returns
    -------
    SecondOrderError
        ``share`` and ``slope`` are ratios of means over tasks, everything else is a mean;
        ``n_bins`` is a sum.

    Raises
    ------
    ValueError
        As there, or if the numbers of arrays or their lengths differ.

    Examples
    --------
    Three classes, five labels for each of 500 inputs, and twenty hypotheses:

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 500)
    >>> counts = rng.multinomial(5, p)
    >>> rows = np.clip(p[:, :, None] + rng.normal(0, 0.1, (500, 3, 20)), 0, 1)
    >>> result = metrics.mean_second_order_error(counts.T, 5, rows.transpose(1, 0, 2))
    >>> result.n_samples, result.share.estimate > 1
    (500, True)
    """
    n_tasks = len(n_positive)
    of_tasks = {"hypotheses": hypotheses, "epistemic_uncertainty": epistemic_uncertainty}
    for name, values in (of_tasks | {"bins": bins}).items():
        if values is not None and len(values) != n_tasks:
            raise ValueError(f"{name} has {len(values)} tasks, n_positive has {n_tasks}")
    if n_tasks == 0:
        raise ValueError("n_positive must have one array for each task, got none")
    tasks = [
        contributions(
            n_positive[t],
            n_labels,
            hypotheses[t],
            epistemic_uncertainty=None
            if epistemic_uncertainty is None
            else epistemic_uncertainty[t],
            exchangeable=exchangeable,
            n_bins=n_bins,
            binning=binning,
            bins=None if bins is None else bins[t],
            random_state=random_state,
        )
        for t in range(n_tasks)
    ]
    return summarize(tasks, groups=groups, confidence_level=confidence_level)


def true_second_order_error(
    p_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    exchangeable: bool = True,
    n_bins: int = 50,
    binning: Binning = "nested",
    bins: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> SecondOrderError:
    """Return the second-order error where p* is known, as of a toy distribution.

    As :func:`second_order_error` with infinitely many labels: ``reducible``, ``uncertainty``,
    ``gap``, ``share`` and ``aleatoric`` are exact for these inputs, and what is left in the
    intervals is which inputs were drawn.

    Parameters
    ----------
    p_true : array-like of shape (n_samples,)
        P(Y = 1 | x_n) in [0, 1].
    hypotheses, epistemic_uncertainty, exchangeable, n_bins, binning, bins, groups, \
random_state, confidence_level
        As in :func:`second_order_error`.

    Raises
    ------
    ValueError
        As there, or if ``p_true`` is not in [0, 1].

    Examples
    --------
    >>> from epistemic_calibration import metrics
    >>> hypotheses = [[0.1, 0.3], [0.5, 0.9]]
    >>> result = metrics.true_second_order_error([0.2, 0.6], hypotheses, exchangeable=False)
    >>> round(result.reducible.estimate, 6), round(result.uncertainty.estimate, 6)
    (0.005, 0.025)
    """
    p = check_probabilities(p_true, name="p_true")
    of_task = _contributions(
        p,
        p**2,
        np.ones(len(p), dtype=bool),
        hypotheses,
        epistemic_uncertainty,
        exchangeable,
        n_bins,
        binning,
        bins,
        random_state,
    )
    return summarize([of_task], groups=groups, confidence_level=confidence_level)


def second_order_curve(
    n_positive: ArrayLike,
    n_labels: ArrayLike,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    exchangeable: bool = True,
    n_bins: int = 10,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> SecondOrderCurve:
    """Return the squared error against EU in quantiles of EU.

    On the diagonal EU is right; where it rises, EU ranks the inputs by the error made there.

    Parameters
    ----------
    n_positive, n_labels, hypotheses, epistemic_uncertainty, exchangeable, groups, random_state, \
confidence_level
        As in :func:`second_order_error`. For four draws or more, the bins are of the EU of
        one half of them and what is averaged is of the other half, and the reverse.
    n_bins : int, default 10

    Raises
    ------
    ValueError
        As there.

    Examples
    --------
    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> rng = np.random.default_rng(0)
    >>> spread = rng.choice([0.05, 0.15], 4000)
    >>> p, *rows = (np.clip(0.5 + rng.normal(0, spread), 0, 1) for _ in range(21))
    >>> n_positive, rows = rng.binomial(10, p), np.stack(rows, axis=1)
    >>> metrics.second_order_curve(n_positive, 10, rows, n_bins=2)
    SecondOrderCurve(
      uncertainty 0.003131: error 0.00225 [0.0004882, 0.004012], weight 0.5
      uncertainty 0.02322: error 0.02181 [0.01913, 0.02448], weight 0.5
    )
    """
    first, second, kept = label_moments(n_positive, n_labels)
    rows = _check_rows(hypotheses, kept)
    reported = _check_reported(epistemic_uncertainty, kept)
    _check_enough(rows, reported, exchangeable)
    asked = asked_of_uncertainty(first, second, rows, reported, exchangeable, random_state)
    return curve([asked], check_groups(groups, kept), n_bins, confidence_level)


def second_order_test(
    n_positive: ArrayLike,
    n_labels: ArrayLike,
    hypotheses: ArrayLike,
    *,
    exchangeable: bool = True,
    n_bins: int = 10,
    n_resamples: int = 999,
    random_state: int = 0,
) -> HypothesisTest:
    """Test that p* is distributed as the hypotheses are; exact for any N, k and H.

    Under the hypothesis the labels of an input are k draws with the probability of one of its
    hypotheses, taken at random; so they are drawn anew, and the p-value is
    (1 + #{drawn >= seen}) / (n_resamples + 1). Where the hypotheses are draws themselves, p*
    is one more of them rather than one of them: one half gives Δ and EU, the others are
    exchangeable with p*, and what is drawn at random for each input is which one of {p*, the
    others} its labels are of. The statistic is Σ (Σ v)²/Σ Var(v) over bins of EU, where v is q
    less its mean under the hypothesis: it sees wrong sizes of EU, overall or by EU.

    Parameters
    ----------
    n_positive, n_labels, hypotheses, exchangeable
        As in :func:`second_order_error`; two hypotheses or more. Inputs, and labels given
        an input, must be independent: there are no ``groups``.
    n_bins : int, default 10
        Quantiles of EU; 1 tests the mean size alone, and is the best at that.
    n_resamples : int >= 1, default 999
    random_state : int, default 0
        Seed of the halves and of what is drawn.

    Raises
    ------
    ValueError
        As there.

    Examples
    --------
    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> rng = np.random.default_rng(0)
    >>> p, *rows = rng.beta(2, 2, (21, 500))
    >>> n_positive, rows = rng.binomial(3, p), np.stack(rows, axis=1)
    >>> metrics.second_order_test(n_positive, 3, rows).p_value > 0.05
    True
    >>> metrics.second_order_test(n_positive, 3, 0.5 + (rows - 0.5) / 2).p_value
    0.001
    """
    n_bins = check_positive_integer(n_bins, name="n_bins")
    n_resamples = check_positive_integer(n_resamples, name="n_resamples")
    n_positive, n_labels = check_counts(n_positive, n_labels)
    kept = _with_two_labels(n_labels)
    rows = _check_rows(hypotheses, kept).astype(np.float64)
    s, k = n_positive[kept], n_labels[kept]
    if rows.shape[1] < 2:
        raise ValueError("hypotheses must be two or more, got 1")
    generator = np.random.default_rng(random_state)
    if exchangeable:
        rows = _shuffled(rows, generator)
        n_first = (rows.shape[1] + 1) // 2
        rows, others = rows[:, :n_first], rows[:, n_first:]
        counts = np.concatenate([s[:, None], generator.binomial(k[:, None], others)], axis=1)
    prediction, variance = row_moments(rows)
    if exchangeable:
        pool = _squared_error(*_moments(counts, k[:, None]), prediction[:, None])
        pool -= pool.mean(axis=1, keepdims=True)
        seen, spread = pool[:, 0], np.mean(pool**2, axis=1)
    else:
        seen = _squared_error(*_moments(s, k), prediction) - variance
        spread = _variance_of_squared_error(rows, k)
    labels = np.unique(quantile_bins(variance, n_bins), return_inverse=True)[1]
    scale = np.bincount(labels, weights=spread)
    with np.errstate(divide="ignore"):
        scale = np.where(scale > 1e-18 * len(s), 1 / scale, 0)
    of_seen = float(np.bincount(labels, weights=seen) ** 2 @ scale)

    # Numbers of all hypotheses fit in it: what is drawn of it takes fewer random bits.
    numbers = np.min_scalar_type(rows.shape[1])

    def draw(n: int) -> np.ndarray:
        if exchangeable:
            return pool[n, generator.integers(0, pool.shape[1], n_resamples, dtype=numbers)]
        chosen = generator.integers(0, rows.shape[1], n_resamples, dtype=numbers)
        counts = generator.binomial(k[n], rows[n, chosen])
        return _squared_error(*_moments(counts, k[n]), prediction[n]) - variance[n]

    # Input by input: what is drawn from is then in the processor's cache.
    sums = np.zeros((len(scale), n_resamples))
    for n, label in enumerate(labels):
        sums[label] += draw(n)
    # Equal draws must count as equal although sums are rounded.
    n_larger = int(np.count_nonzero(scale @ sums**2 >= of_seen - 1e-9 * abs(of_seen)))
    return HypothesisTest(of_seen, (1 + n_larger) / (n_resamples + 1))


def finite_draws_factor(n_hypotheses: int) -> float:
    """Return c_H = (H + 1)/(H − 1), by which EU of H draws is smaller than E[(p* − Δ)²].

    V the variance of the law: the mean of H draws misses that of the law by V/H, so that
    E[(p* − Δ)²] = (1 + 1/H)·V, and E[EU] = (1 − 1/H)·V (ddof 0).

    Examples
    --------
    >>> round(finite_draws_factor(20), 3)
    1.105
    """
    return (n_hypotheses + 1) / (n_hypotheses - 1)


# --- Arguments


def check_counts(n_positive: ArrayLike, n_labels: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return both as int64 of shape (n_samples,), checked."""
    positive, labels = np.asarray(n_positive), np.asarray(n_labels)
    if positive.ndim != 1 or positive.size == 0:
        raise ValueError(
            f"n_positive must have shape (n_samples,) and samples, got {positive.shape}"
        )
    if labels.ndim == 0:
        labels = np.full(len(positive), labels)
    if labels.shape != positive.shape:
        raise ValueError(
            f"n_labels has shape {labels.shape}, n_positive has {positive.shape}: "
            "there must be one number for each input, or one for all"
        )
    for name, values in (("n_positive", positive), ("n_labels", labels)):
        if values.dtype.kind not in "uif":
            raise ValueError(f"{name} must be integers >= 0, got dtype {values.dtype}")
        # NaN is unequal to itself, and infinity to nothing that is an integer.
        wrong = ~((values >= 0) & (np.floor(values) == values) & np.isfinite(values))
        if wrong.any():
            raise ValueError(f"{name} must be integers >= 0, got {np.unique(values[wrong])[:5]}")
    positive, labels = positive.astype(np.int64), labels.astype(np.int64)
    above = positive > labels
    if above.any():
        n = int(above.argmax())
        raise ValueError(
            f"n_positive must be at most n_labels, got {positive[n]} of {labels[n]} labels for "
            f"sample {n} and {np.count_nonzero(above) - 1} more"
        )
    return positive, labels


def label_moments(
    n_positive: ArrayLike, n_labels: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return unbiased estimates of p* and p*² for the inputs kept, and which these are."""
    positive, labels = check_counts(n_positive, n_labels)
    kept = _with_two_labels(labels)
    return *_moments(positive[kept], labels[kept]), kept


def _with_two_labels(labels: np.ndarray) -> np.ndarray:
    kept = labels >= 2
    if not kept.any():
        raise ValueError("no input has two labels or more: one label says nothing of the size")
    return kept


def _moments(positive: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return positive / labels, positive * (positive - 1.0) / (labels * (labels - 1.0))


def _squared_error(first: np.ndarray, second: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return an unbiased estimate of (p* − centre)²."""
    # In this order it is not below 0 where p* itself is given, up to the last bit.
    return (first - centre) ** 2 + (second - first**2)


def _check_rows(hypotheses: ArrayLike, kept: np.ndarray) -> np.ndarray:
    rows = check_hypotheses(hypotheses, n_samples=len(kept))
    return rows if kept.all() else rows[kept]


def _check_reported(uncertainty: ArrayLike | None, kept: np.ndarray) -> np.ndarray | None:
    if uncertainty is None:
        return None
    return check_uncertainty(uncertainty, n_samples=len(kept))[kept]


def _check_enough(rows: np.ndarray, reported: np.ndarray | None, exchangeable: bool) -> None:
    if reported is None and exchangeable and rows.shape[1] < 2:
        raise ValueError("hypotheses must be two or more for a variance, got 1")


# --- What each input says


class Asked(NamedTuple):
    """What is asked of inputs by their EU: one row an input, or several, from parts of it."""

    key: np.ndarray  # EU to choose by
    error: np.ndarray
    uncertainty: np.ndarray
    index: np.ndarray  # of the input


def halves_of_uncertainty(
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    exchangeable: bool = True,
    random_state: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return EU to choose inputs by, and EU to compare with the error made on those chosen.

    Parameters
    ----------
    hypotheses, epistemic_uncertainty, exchangeable, random_state
        As in :func:`second_order_error`.

    Returns
    -------
    chosen_by, compared : ndarray of shape (n_samples,)
        For four draws or more the EU of two halves of them, the second as large as the squared
        error of the mean of all draws is if they are right. Otherwise EU, twice.
    """
    kept = np.ones(len(hypotheses), dtype=bool)
    rows, reported = _check_rows(hypotheses, kept), _check_reported(epistemic_uncertainty, kept)
    _check_enough(rows, reported, exchangeable)
    nothing = np.zeros(len(rows))
    asked = asked_of_uncertainty(nothing, nothing, rows, reported, exchangeable, random_state)
    return asked.key[: len(rows)], asked.uncertainty[: len(rows)]


class Contributions(NamedTuple):
    """What each input says of the quantities of one task; most are of shape (n_samples,)."""

    kept: np.ndarray  # inputs with two labels or more, which the others are of
    error: np.ndarray
    uncertainty: np.ndarray
    noise: np.ndarray
    slope: tuple[np.ndarray, np.ndarray] | None  # numerator and denominator
    size: tuple[np.ndarray, np.ndarray, np.ndarray]  # values, bins, inputs
    mean_error: np.ndarray
    bins: np.ndarray
    asked: Asked


def contributions(
    n_positive: ArrayLike,
    n_labels: ArrayLike,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    exchangeable: bool = True,
    n_bins: int = 50,
    binning: Binning = "nested",
    bins: ArrayLike | None = None,
    random_state: int = 0,
) -> Contributions:
    """Return what each input says; the arguments are those of `second_order_error`.

    For those who have many tasks, whose hypotheses need not be kept together:
    `mean_second_order_error` is `summarize` of the contributions of its tasks.
    """
    return _contributions(
        *label_moments(n_positive, n_labels),
        hypotheses,
        epistemic_uncertainty,
        exchangeable,
        n_bins,
        binning,
        bins,
        random_state,
    )


def _contributions(
    first: np.ndarray,
    second: np.ndarray,
    kept: np.ndarray,
    hypotheses: ArrayLike,
    epistemic_uncertainty: ArrayLike | None,
    exchangeable: bool,
    n_bins: int,
    binning: Binning,
    bins: ArrayLike | None,
    random_state: int,
) -> Contributions:
    n_bins = check_positive_integer(n_bins, name="n_bins")
    rows = _check_rows(hypotheses, kept)
    reported = _check_reported(epistemic_uncertainty, kept)
    _check_enough(rows, reported, exchangeable)
    prediction, variance = row_moments(rows)
    error = _squared_error(first, second, prediction)
    draws = exchangeable and reported is None
    if reported is None:
        uncertainty = variance * (finite_draws_factor(rows.shape[1]) if draws else 1.0)
    else:
        uncertainty = reported
    index = np.arange(len(first))
    asked = asked_of_uncertainty(first, second, rows, reported, exchangeable, random_state)
    if bins is not None:
        labels = check_bins(np.asarray(bins), n_samples=len(kept))[kept]
        labels = np.unique(labels, return_inverse=True)[1]
        size = error - uncertainty, labels, index
    else:
        labels = assign_bins(
            rows,
            # Of fewer inputs than that, all would be alone.
            n_bins=min(n_bins, max(1, len(rows) // 2)),
            binning=binning,
            random_state=random_state,
        )
        n_bins = max(1, min(n_bins, len(first) // _LEAST_INPUTS))
        of_size = np.unique(quantile_bins(asked.key, n_bins), return_inverse=True)[1]
        size = asked.error - asked.uncertainty, of_size, asked.index
    return Contributions(
        kept=kept,
        error=error,
        uncertainty=uncertainty,
        noise=first - second,
        slope=_slope_of_draws(first, second, rows)
        if draws
        else _slope_of_reported(error, uncertainty),
        size=size,
        mean_error=first - prediction,
        bins=labels,
        asked=asked,
    )


def asked_of_uncertainty(
    first: np.ndarray,
    second: np.ndarray,
    rows: np.ndarray,
    reported: np.ndarray | None,
    exchangeable: bool,
    random_state: int,
) -> Asked:
    index = np.arange(len(first))
    n_hypotheses = rows.shape[1]
    if reported is not None or not exchangeable:
        prediction, variance = row_moments(rows)
        uncertainty = variance if reported is None else reported
        return Asked(uncertainty, _squared_error(first, second, prediction), uncertainty, index)
    if n_hypotheses < 4:
        # No two halves that have variances: all inputs are asked at once.
        prediction, variance = row_moments(rows)
        return Asked(
            np.zeros(len(first)),
            _squared_error(first, second, prediction),
            variance * finite_draws_factor(n_hypotheses),
            index,
        )
    generator = np.random.default_rng(random_state)
    n_first = (n_hypotheses + 1) // 2
    mean, variance = np.empty((2, len(rows))), np.empty((2, len(rows)))
    for block in row_blocks(rows):
        shuffled = _shuffled(rows[block], generator)
        for half, part in enumerate((shuffled[:, :n_first], shuffled[:, n_first:])):
            mean[half, block] = part.mean(axis=1)
            variance[half, block] = part.var(axis=1, ddof=1)
    # (p* − mean of the law)², and then as if all draws had been averaged.
    sizes = np.array([[n_first], [n_hypotheses - n_first]])
    error = _squared_error(first, second, mean) - variance / sizes + variance / n_hypotheses
    uncertainty = variance * (1 + 1 / n_hypotheses)
    return Asked(
        np.concatenate([variance[1], variance[0]]),
        error.ravel(),
        uncertainty.ravel(),
        np.concatenate([index, index]),
    )


def _shuffled(rows: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return every row in random order, whatever the order that it had.

    It is sorted first, from the side of its mean, so that neither the numbering of hypotheses
    nor which class is called positive changes the result.
    """
    rows = np.sort(rows, axis=1).astype(np.float64)
    flipped = rows.mean(axis=1) > 0.5
    rows[flipped] = rows[flipped, ::-1]
    return generator.permuted(rows, axis=1, out=rows)


def _slope_of_reported(error: np.ndarray, uncertainty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centred = uncertainty - uncertainty.mean()
    return centred * (error - error.mean()), centred**2


def _slope_of_draws(
    first: np.ndarray, second: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return contributions to cov(V_A, q_B − V_B/H_B) and cov(V_A, V_B), over all halves.

    The first is the mean over inputs of D_ab·E_jk, over distinct draws a, b, j, k, less that
    product of the means over inputs, where D_ab = (h_a − h_b)²/2 and
    E_jk = m_2 − m_1(h_j + h_k) + h_j h_k, with m_1 and m_2 the estimates of p* and p*². In the
    second E is D. Draws that are functions are shared by inputs, so they have to be distinct in
    the product of means, too.
    """
    n, h = rows.shape
    if h < 4:
        return None
    prediction, _ = row_moments(rows)
    error, mean_error = _squared_error(first, second, prediction), first - prediction
    powers = np.empty((3, n))
    gram, cross = np.zeros((h, h)), np.zeros(h)
    for block in row_blocks(rows):
        centred = rows[block].astype(np.float64) - prediction[block, None]
        square = centred**2
        powers[0, block] = square.sum(axis=1)
        powers[1, block] = np.einsum("nj,nj->n", square, centred)
        powers[2, block] = np.einsum("nj,nj->n", square, square)
        gram += centred.T @ centred / n
        cross += mean_error[block] @ centred / n
    squares, cubes, fourths = powers
    variance = squares / (h - 1)
    # Means over distinct a, b, j, k for a row with sum 0.
    times_product = (2 * fourths / (h - 1) - squares * variance) / ((h - 2) * (h - 3))
    times_square = (squares**2 / h - fourths / (h - 1)) / (h - 2)
    numerator = error * variance + times_product
    numerator += 2 * mean_error * cubes / ((h - 1) * (h - 2))
    denominator = times_square - times_product
    diagonal = np.diag(gram)
    half_squares = (diagonal[:, None] + diagonal) / 2 - gram
    products = error.mean() - (cross[:, None] + cross) + gram
    np.fill_diagonal(products, 0)

    def of_distinct(other: np.ndarray) -> float:
        total = half_squares.sum() * other.sum() + 2 * np.sum(half_squares * other)
        total -= 4 * half_squares.sum(axis=0) @ other.sum(axis=0)
        return float(total / (h * (h - 1) * (h - 2) * (h - 3)))

    rest = error - variance / h
    mean_variance, mean_rest = variance.mean(), rest.mean()
    # Their means are the two covariances; the variable parts are the influence of inputs.
    numerator -= (variance - mean_variance) * mean_rest + (rest - mean_rest) * mean_variance
    denominator -= 2 * (variance - mean_variance) * mean_variance
    return numerator - of_distinct(products), denominator - of_distinct(half_squares)


def _variance_of_squared_error(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the variance of q where p* is one of the hypotheses at random."""
    prediction, _ = row_moments(rows)
    k = labels[:, None]
    squares, noise = (rows - prediction[:, None]) ** 2, rows * (1 - rows)
    of_labels = 4 * squares * noise / k + 2 * noise**2 / (k * (k - 1.0))
    return of_labels.mean(axis=1) + squares.var(axis=1)


# --- Estimates and intervals


def summarize(
    tasks: Sequence[Contributions],
    *,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> SecondOrderError:
    """Return means over tasks that share their inputs.

    Raises
    ------
    ValueError
        If the tasks do not have the same inputs, or fewer than two groups of them are left.
    """
    level = check_fraction(confidence_level, name="confidence_level")
    kept = tasks[0].kept
    if any(not np.array_equal(task.kept, kept) for task in tasks):
        raise ValueError("n_positive must have as many samples in every task")
    groups = check_groups(groups, kept)

    def mean(name: str) -> np.ndarray:
        return np.mean([getattr(task, name) for task in tasks], axis=0)

    error, uncertainty = mean("error"), mean("uncertainty")
    slope = Estimate(math.nan, math.nan, -math.inf, math.inf, level)
    if all(task.slope is not None for task in tasks):
        numerator, denominator = np.mean([task.slope for task in tasks], axis=0)
        # A constant EU varies by rounding, as does one of 0.
        if denominator.mean() > max(1e-28, 1e-20 * uncertainty.mean() ** 2):
            slope = ratio_of_means(numerator, denominator, groups, level)
    in_bins = np.mean([_around_bins(task) for task in tasks], axis=0)
    calibration = squares_of_means([(task.mean_error, task.bins, groups) for task in tasks], level)
    # In expectation the squares of the bins' means, which in_bins has taken off, are the
    # corrected ones.
    variance = mean_of_groups(in_bins, groups, level, least=0.0)
    return SecondOrderError(
        reducible=mean_of_groups(error, groups, level, least=0.0),
        uncertainty=mean_of_groups(uncertainty, groups, level, least=0.0),
        gap=mean_of_groups(error - uncertainty, groups, level),
        share=ratio_of_means(uncertainty, error, groups, level, least=0.0),
        slope=slope,
        size_error=squares_of_means(
            [(values, bins, groups[index]) for values, bins, index in (t.size for t in tasks)],
            level,
        ),
        calibration_error=calibration,
        variance_in_bins=shifted(variance, calibration.plug_in - calibration.estimate),
        aleatoric=mean_of_groups(mean("noise"), groups, level, least=0.0),
        dropped_mass=float(1 - kept.mean()),
        n_samples=len(error),
    )


def _around_bins(task: Contributions) -> np.ndarray:
    """Return contributions to Σ w (E[q | bin] − ḡ²), ḡ the mean of p* − Δ seen in the bin."""
    count = np.bincount(task.bins)
    mean_error = (np.bincount(task.bins, weights=task.mean_error) / count)[task.bins]
    around = task.error - 2 * mean_error * task.mean_error + mean_error**2
    # A sample alone in its bin is its own mean.
    used = (count > 1)[task.bins]
    if used.all() or not used.any():
        return around
    mean = around[used].mean()
    return mean + np.where(used, around - mean, 0) / used.mean()


def curve(
    asked: Sequence[Asked], groups: np.ndarray, n_bins: int, confidence_level: float
) -> SecondOrderCurve:
    """Return the squared error in quantiles of the EU of all tasks together."""
    level = check_fraction(confidence_level, name="confidence_level")
    n_bins = check_positive_integer(n_bins, name="n_bins")
    key, errors, uncertainties, index = map(np.concatenate, zip(*asked, strict=True))
    labels = np.unique(quantile_bins(key, n_bins), return_inverse=True)[1]
    count = np.bincount(labels).astype(float)
    uncertainty, error = (
        np.bincount(labels, weights=values) / count for values in (uncertainties, errors)
    )
    n_groups, of_row = groups.max() + 1, groups[index]
    sums = group_sums(errors - error[labels], labels, of_row, n_groups, len(count))
    n_inside = (group_sums(1.0, labels, of_row, n_groups, len(count)) > 0).sum(axis=0)
    n_inside = np.asarray(n_inside).ravel()
    variance = np.asarray(sums.power(2).sum(axis=0)).ravel() / count**2
    with np.errstate(divide="ignore", invalid="ignore"):
        standard_error = np.sqrt(variance * (n_inside / (n_inside - 1)))
    half = t_quantile(level, np.maximum(n_inside, 2)) * standard_error
    return SecondOrderCurve(
        uncertainty=uncertainty,
        error=error,
        standard_error=standard_error,
        ci_low=np.maximum(error - half, 0),
        ci_high=np.maximum(error, 0) + half,
        weight=count / len(labels),
        confidence_level=level,
    )
