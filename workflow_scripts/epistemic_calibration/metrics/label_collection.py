"""Were labels collected independently of what they say? Counts of the first ones, which always are.

An estimate from s of k labels takes k labels that are independent given the input, k chosen
without looking at them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._validation import check_positive_integer

#: P-value, after Bonferroni, below which counts are no mixture of binomials, or inputs with two
#: labels not like the others.
_ALPHA = 1e-3

_HOW = (
    "ask for the same number of labels of every input, or choose it by the input alone, never by "
    "its labels; where their order is known, `counts_of_first_labels` takes the first two of each"
)


class LabelCollectionWarning(UserWarning):
    """The labels seem to have been collected by a rule that makes estimates from them wrong."""


def counts_of_first_labels(labels: ArrayLike, n_first: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return how many of the first labels of each input are positive, and how many there are.

    Whatever rule asked for more labels, the first two were given by any input that has them: with
    two labels for every input, estimates from them are right. Inputs with fewer than ``n_first``
    labels count as having none.

    Parameters
    ----------
    labels : array-like of shape (n_samples, n_labels), values 0, 1 or NaN
        In the order in which they were given, NaN where there is none.
    n_first : int >= 2, default 2

    Returns
    -------
    n_positive, n_labels : ndarray of int, shape (n_samples,)

    Raises
    ------
    ValueError
        If labels are not 0, 1 or NaN, a label follows a missing one, or ``n_first`` is not an
        integer >= 2 with as many columns.

    Examples
    --------
    >>> from epistemic_calibration import metrics
    >>> nan = float("nan")
    >>> labels = [[1, 1, nan], [0, 1, 1], [0, nan, nan]]
    >>> n_positive, n_labels = metrics.counts_of_first_labels(labels)
    >>> n_positive.tolist(), n_labels.tolist()
    ([2, 1, 0], [2, 2, 0])
    """
    n_first = check_positive_integer(n_first, name="n_first", minimum=2)
    given = np.asarray(labels, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] < n_first:
        raise ValueError(
            f"labels must have shape (n_samples, n_labels) with {n_first} columns or more, "
            f"got {given.shape}"
        )
    there = ~np.isnan(given)
    wrong = there & (given != 0) & (given != 1)
    if wrong.any():
        raise ValueError(f"labels must be 0, 1 or NaN, got {np.unique(given[wrong])[:5]}")
    late = (there[:, 1:] & ~there[:, :-1]).any(axis=1)
    if late.any():
        raise ValueError(
            "labels must stand in the order in which they were given, the missing ones last: "
            f"sample {int(late.argmax())} has one after a missing one"
        )
    enough = there[:, n_first - 1]
    positive = np.where(enough, np.nansum(given[:, :n_first], axis=1), 0)
    return positive.astype(np.int64), n_first * enough


def stopping_fault(positive: np.ndarray, labels: np.ndarray) -> str | None:
    """Return what is wrong where labels were asked for until they agreed, or did not.

    If labels are independent given an input, and their number does not depend on them, then among
    inputs with k labels P(s)/C(k, s) = E[p^s (1 − p)^(k − s)] is log-convex in s, whatever the
    law of p. "More where the first two differ" leaves no s = 0 beside s = 1; "until three agree"
    leaves s = 2 and 3 of 5 only.
    """
    found = [(1.0, 0, 0)]
    n_tests = 0
    for k in np.unique(labels[labels >= 2]).tolist():
        counts = np.bincount(positive[labels == k], minlength=k + 1)
        middle = np.arange(1, k)[counts[1:-1] > 0].tolist()
        p_values = {s: _p_of_too_many(counts, k, s) for s in middle}
        if k >= 5 and {1, k - 1} <= p_values.keys():
            # Both ends are missing where more labels were asked for when the first ones differed.
            both = max(p_values[1] * p_values[k - 1], 1e-300)
            found.append((both * (1 - math.log(both)), k, 1))
            n_tests += 1
        n_tests += len(middle)
        found += [(p, k, s) for s, p in p_values.items()]
    p, k, s = min(found)
    if p * n_tests > _ALPHA or n_tests == 0:
        return None
    n_k = int(np.count_nonzero(labels == k))
    return (
        f"labels cannot be independent, or their number depends on them: {s} of {k} labels are "
        f"positive in {np.count_nonzero(positive[labels == k] == s):,} of {n_k:,} inputs with {k} "
        f"labels, more than any p* can make beside so few of {s - 1} or {s + 1}. Estimates from "
        f"such counts are wrong: {_HOW}"
    )


def _p_of_too_many(counts: np.ndarray, k: int, s: int) -> float:
    """Return the exact one-sided p-value of the count of s beside those of s − 1 and s + 1.

    Where P(s)/C(k, s) is as small as it may be beside its neighbours, the three counts given their
    total and the difference of the outer two have a law without parameters, as the genotypes of
    Hardy and Weinberg have.
    """
    from scipy.special import gammaln, logsumexp

    before, at, after = counts[s - 1 : s + 2].tolist()
    total, difference = before + at + after, after - before
    most = total - abs(difference)
    middle = np.arange(most % 2, most + 1, 2)
    lower = (total - middle - difference) // 2
    cells = np.stack([lower, middle, lower + difference])
    ways = np.array([s - 1, s, s + 1])
    weights = gammaln(k + 1) - gammaln(ways + 1) - gammaln(k - ways + 1)
    log_p = weights @ cells - gammaln(cells + 1).sum(axis=0)
    return float(np.exp(logsumexp(log_p[middle >= at]) - logsumexp(log_p)))


def selection_fault(kept: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> str | None:
    """Return what is wrong where inputs with two labels or more are not like the others."""
    from scipy.stats import mannwhitneyu

    if min(kept.sum(), (~kept).sum()) < 20:
        return None
    clear = mean * (1 - mean)
    for values, what in ((clear, "nearer to 0 or 1"), (variance, "more alike")):
        values = np.round(values, 12)
        test = mannwhitneyu(values[kept], values[~kept])
        if test.pvalue < _ALPHA:
            more = test.statistic > kept.sum() * (~kept).sum() / 2
            where = "fewer than two labels" if more else "two labels or more"
            return (
                f"hypotheses are {what} where inputs have {where}: what is estimated is of inputs "
                f"like the {kept.sum():,} with two labels or more, not of all {len(kept):,}. To "
                f"judge all, {_HOW}"
            )
    return None
