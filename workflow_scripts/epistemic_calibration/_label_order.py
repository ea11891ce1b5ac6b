"""Whether several labels per input belong to the inputs, and whether y_true is their majority."""

from __future__ import annotations

import numpy as np

# Standard errors that are beyond chance.
_BEYOND = 5.0
# Labels of a class that say something of it.
_LEAST = 5


def order_fault(counts: np.ndarray, y: np.ndarray) -> str:
    """Return why counts (n_samples, n_classes) are in another order than the labels, or nothing.

    If the label is one of the raters', the mean over inputs of the share of raters who say it is
    Σ_c E[p_c²], and no permutation of the columns has more, as Cov(p_c, p_d) is at most the mean
    of both variances. It is as much as raters agree with each other; counts of other inputs agree
    with the label by chance, and with each other as before.
    """
    from scipy.optimize import linear_sum_assignment

    total = counts.sum(axis=1)
    kept = (total >= 2) & (np.bincount(y)[y] >= _LEAST)
    counts, total, y = counts[kept], total[kept], y[kept]
    classes = np.unique(y)
    if len(y) < 30 or len(classes) < 2:
        return ""
    shares = counts.sum(axis=0) / total.sum()
    beyond = counts / total[:, None] - shares
    of_class = np.stack([beyond[y == c].sum(axis=0) for c in classes])
    best = np.arange(len(shares))
    best[classes] = linear_sum_assignment(of_class, maximize=True)[1]
    said = beyond[np.arange(len(y)), y]
    gain = beyond[np.arange(len(y)), best[y]] - said
    among = (counts * (counts - 1)).sum(axis=1) / (total * (total - 1)) - shares @ shares
    # Of each class as much, so that rare ones are heard.
    means, errors = np.array([_mean_and_error(said[y == c]) for c in classes]).T
    by_chance = means.sum() < 3 * np.sqrt(np.square(errors).sum())
    # The best of all orders that move so many classes is the largest of as many normal variables.
    n_orders = float(len(classes)) ** np.count_nonzero(best != np.arange(len(best)))
    permuted = _beyond_chance(gain, np.sqrt(_BEYOND**2 + 2 * np.log(n_orders)))
    if not permuted and not (by_chance and _beyond_chance(among - said)):
        return ""
    agree = 100 * np.mean(counts.argmax(axis=1) == y)
    than = "less than in" if permuted else "no more than by chance or in"
    return (
        f"the class that most people gave is the label of {agree:.0f} % of the inputs, {than} "
        f"another order: rows must be in the order of the labels, and columns in that of the "
        f"classes, of two the negative one first"
    )


def is_majority(counts: np.ndarray, y: np.ndarray) -> bool:
    """Return whether labels are what most raters said, and not what one of them did."""
    total, most = counts.sum(axis=1), counts.max(axis=1)
    told = (total >= 3) & (2 * most > total)
    counts, y = counts[told], y[told]
    agree = (counts.argmax(axis=1) == y).sum()
    by_one = (most[told] / total[told]).sum()
    return bool(agree >= 0.98 * len(y) and agree - by_one > 4 * np.sqrt(len(y) - by_one))


def _mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _beyond_chance(values: np.ndarray, errors: float = _BEYOND) -> bool:
    mean, error = _mean_and_error(values)
    return mean > errors * error > 0
