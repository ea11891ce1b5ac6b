"""Is the epistemic uncertainty of the right size? Answers from several labels per input.

Input n has n_labels[n] = k labels, independent given x, of which n_positive[n] = s are positive;
p* = P(Y = 1 | x) is unknown, Δ is the mean of the hypotheses at x and EU their variance (ddof 0).
For any c that does not depend on the labels,

    s(s − 1)/(k(k − 1)) − 2c·s/k + c²        has mean (p* − c)²,

so that at c = Δ, where it is called q below, it shows without bias how large the squared error of
a method is, which one label per input cannot. A method is calibrated of second order if p*, given
the hypotheses at x, is distributed as they are (Johnson et al., 2024; Ahdritz et al., 2025;
Ciosek et al., 2026, arXiv 2605.07808); then E[(p* − Δ)²] is what EU says.

**H draws are not the law.** Where the hypotheses are H independent draws from the law that a
method means (posterior samples, dropout passes, networks), calibration makes p* one more draw,
and E[(p* − Δ)²] = c_H·E[EU] with c_H = (H + 1)/(H − 1): Δ misses the mean of the law, and EU is
smaller than its variance. Without the factor, a right EU looks 9 % too small at H = 20. Nor may the
same draws choose the inputs and be judged on them: an EU that is large by chance would seem
too large. So whatever is asked of inputs *of a given EU* is asked of one half of the draws after
choosing by the other half, for several ways to halve them. Where the hypotheses *are* the law
(``exchangeable=False``), or a method reports an EU of its own, c_H = 1 and no halves are needed.

**Functions err together.** Networks, posterior draws and passes are functions of x, and so is p*:
one draw of a law of functions, not an independent one at each input. What these members say of
this p*: the estimates, with intervals over inputs and labels. What other members of the same law
would say of it: `law`, with intervals over members, too. Whether p* may be one more function of
the law: only a test (:func:`second_order_test`), since there is but one p*.

**How labels are collected** matters more than any formula. k must not depend on the labels
themselves (:func:`counts_of_first_labels` takes the first two), and the labels of an input must be
independent given x, of people drawn anew for each input. If the same five people label everything,
p* is the law of these five people: no interval says how far it is from that of others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._contributions import Contributions, contributions
from epistemic_calibration.metrics._groups import check_groups
from epistemic_calibration.metrics._label_counts import LabelMoments, label_moments
from epistemic_calibration.metrics._means import (
    Estimate,
    mean_of_groups,
    ratio_of_means,
    shifted,
    squares_of_means,
    summary_line,
)
from epistemic_calibration.metrics._validation import (
    check_fraction,
    check_probabilities,
    check_tasks,
)
from epistemic_calibration.metrics.binning import Binning
from epistemic_calibration.metrics.corrected import CorrectedError
from epistemic_calibration.metrics.law_error import Draws, LawError, law_error


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
    law : LawError or None
        Intervals that allow for other members of the same law, where the hypotheses are three
        or more draws that are functions. The others are of these members.
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
    law: LawError | None = None

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        lines = [
            f"  {name:<17} {summary_line(value)}"
            for name, value in values.items()
            if isinstance(value, (Estimate, CorrectedError))
        ]
        lines.append(f"  {'n_samples':<17} {self.n_samples}, {self.dropped_mass:.3g} dropped")
        if self.law is not None:
            lines.append(f"  {'law':<17} {self.law!r}")
        return "\n".join(["SecondOrderError(", *lines, ")"])


def second_order_error(
    n_positive: ArrayLike,
    n_labels: ArrayLike,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    exchangeable: bool = True,
    draws: Draws = "functions",
    n_bins: int = 50,
    binning: Binning = "nested",
    bins: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> SecondOrderError:
    """Return how large the error of a method is, and how much of it the method reports.

    The inputs are the sample: intervals are about other inputs and labels of the same kind,
    with the same hypotheses and the same p*. Those of ``law`` are about other members of the same
    law, too. Training again is in neither.

    Parameters
    ----------
    n_positive : array-like of int, shape (n_samples,)
        Positive labels s of each input, 0 <= s <= k.
    n_labels : array-like of int, shape (n_samples,), or int
        Labels k of each input; inputs with fewer than two are dropped (``dropped_mass``). It
        must not depend on the labels, which must be of people drawn anew for each input, or of
        as many ``groups`` of inputs as people took turns.
    hypotheses : array-like of shape (n_samples, n_hypotheses)
        h_j(x_n) in [0, 1]; two or more of them unless EU is reported.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        Reported by the method, >= 0, taken as it is (c_H = 1); by default the variance of the
        hypotheses (ddof 0), which is not to be given here: it would lack c_H.
    exchangeable : bool, default True
        The hypotheses are draws from the law that the method means (posterior samples,
        passes, networks) of which p* is one more: c_H = (H + 1)/(H − 1). If False they are that
        law, p* one of them: c_H = 1. Where p* is their centre, neither holds.
    draws : {"functions", "inputs"}, default "functions"
        What is drawn: functions, as members of ensembles, posterior draws, and passes with one
        mask for all inputs are; or other hypotheses at each input, independent of those at
        other inputs. The default claims less, and holds for both. With "inputs" the intervals
        over inputs are those of the law, and ``law`` is None.
    n_bins : int, default 50
        Bins of EU for ``size_error``, and of the hypotheses for ``calibration_error`` and
        ``variance_in_bins``. Equal values share a bin.
    binning : str, default "nested"
        Of the hypotheses, as in :func:`assign_bins`.
    bins : array-like of int, shape (n_samples,), optional
        Bins for all three, which must not depend on labels. For draws, nor should they depend
        on these draws: bins of their own EU make a right EU seem wrong.
    groups : array-like of shape (n_samples,), optional
        Groups of inputs that are not independent, such as those which the same people
        labelled, or copies of an image. By default every input is one of its own.
    random_state : int, default 0
        Seed of K-means.
    confidence_level : float in (0, 1), default 0.95

    Raises
    ------
    ValueError
        If counts are not integers with 0 <= s <= k, hypotheses are not in [0, 1], lengths
        differ, fewer than two groups of inputs with two labels or more are left, or there is
        one hypothesis and no reported EU.

    Warns
    -----
    LabelCollectionWarning
        If labels seem to have been collected by a rule that looks at them, or inputs with two
        labels are unlike the others.
    UserWarning
        If every hypothesis is given several times: copies are no draws.

    See Also
    --------
    mean_second_order_error : of several tasks that share their inputs.
    second_order_curve : the error against EU.
    second_order_test : a test that p* is distributed as the hypotheses are.
    counts_of_first_labels : what stays right where more labels were asked for by a rule.
    bounds_from_one_label : what can be said of one label per input.
    true_second_order_error : where p* is known.

    Notes
    -----
    Over bins, v = q − c_H·EU is averaged, never EU or the hypotheses one by one, and a square is
    the mean of v_i·v_k over pairs of different groups (Kumar et al., 2019).

    ``slope`` is cov(V_A, q_B − V_B/H_B)/cov(V_A, V_B), V_A and V_B the variances (ddof 1) of two
    halves of the draws, with every product averaged over all ways to halve them (a U-statistic,
    in closed form). Least squares on EU, which is noisy, would find .8 for 1 at H = 20.
    ``size_error`` is a mean over five ways, which neither a seed nor the order of inputs chooses.

    The variance over members is that of a jackknife which leaves out one of them at a time, or
    one block of twenty.

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
        label_moments(n_positive, n_labels),
        hypotheses,
        epistemic_uncertainty=epistemic_uncertainty,
        exchangeable=exchangeable,
        draws=draws,
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
    bins: Sequence[ArrayLike] | None = None,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
    **options: Any,
) -> SecondOrderError:
    """Return means over tasks of the second-order error, where tasks share their inputs.

    One-vs-all tasks have the same images, and an image that is hard in one is hard in others.
    What an input contributes is therefore summed over tasks before its variance is taken.

    Parameters
    ----------
    n_positive, hypotheses, epistemic_uncertainty, bins
        One array a task, each as in :func:`second_order_error`; sample n of every task is
        the same input.
    n_labels, groups, confidence_level, **options
        As there, for all tasks: exchangeable, draws, n_bins, binning, random_state.

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
    given = {
        "hypotheses": hypotheses,
        "epistemic_uncertainty": epistemic_uncertainty,
        "bins": bins,
    }
    n_tasks = check_tasks(n_positive=n_positive, **given)
    tasks = [
        contributions(
            label_moments(n_positive[t], n_labels),
            **{name: values[t] for name, values in given.items() if values is not None},
            **options,
        )
        for t in range(n_tasks)
    ]
    return summarize(tasks, groups=groups, confidence_level=confidence_level)


def true_second_order_error(
    p_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
    **options: Any,
) -> SecondOrderError:
    """Return the second-order error where p* is known, as of a toy distribution.

    As :func:`second_order_error` with infinitely many labels: ``reducible``, ``uncertainty``,
    ``gap``, ``share`` and ``aleatoric`` are exact for these inputs, and what is left in the
    intervals is which inputs were drawn.

    Parameters
    ----------
    p_true : array-like of shape (n_samples,)
        P(Y = 1 | x_n) in [0, 1].
    hypotheses, groups, confidence_level, **options
        As in :func:`second_order_error`: epistemic_uncertainty, exchangeable, draws, n_bins,
        binning, bins, random_state.

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
    labels = LabelMoments(p, p**2, np.ones(len(p), dtype=bool))
    of_task = contributions(labels, hypotheses, **options)
    return summarize([of_task], groups=groups, confidence_level=confidence_level)


# --- Estimates and intervals


def summarize(
    tasks: Sequence[Contributions],
    *,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> SecondOrderError:
    """Return means over tasks that share their inputs, checked."""
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
    calibration = squares_of_means([(task.mean_error, task.bins, groups) for task in tasks], level)
    # In expectation the squares of the bins' means, which are taken off here, are the corrected
    # ones.
    in_bins = np.mean([_around_bins(task) for task in tasks], axis=0)
    variance = mean_of_groups(in_bins, groups, level, least=0.0)
    parts = [(values, bins, groups[index]) for t in tasks for values, bins, index in t.size]
    size = squares_of_means(parts, level)
    size = dataclasses.replace(size, n_bins=size.n_bins * len(tasks) // len(parts))
    gap = mean_of_groups(error - uncertainty, groups, level)
    share = ratio_of_means(uncertainty, error, groups, level, least=0.0)
    return SecondOrderError(
        reducible=mean_of_groups(error, groups, level, least=0.0),
        uncertainty=mean_of_groups(uncertainty, groups, level, least=0.0),
        gap=gap,
        share=share,
        slope=slope,
        size_error=size,
        calibration_error=calibration,
        variance_in_bins=shifted(variance, calibration.plug_in - calibration.estimate),
        aleatoric=mean_of_groups(mean("noise"), groups, level, least=0.0),
        dropped_mass=float(1 - kept.mean()),
        n_samples=len(error),
        law=law_error(gap, share, slope, size, [task.replicates for task in tasks]),
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
