"""Do label counts belong to the inputs that they are given for?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._groups import check_groups
from epistemic_calibration.metrics._label_counts import check_counts
from epistemic_calibration.metrics._means import Estimate, mean_of_groups
from epistemic_calibration.metrics._validation import (
    check_fraction,
    check_probabilities,
)


def within_label_correlation(
    y_true: ArrayLike,
    prediction: ArrayLike,
    n_positive: ArrayLike,
    n_labels: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Return the rank correlation of prediction and label frequency among inputs of one label.

    A prediction that knows anything of P(Y = 1 | x) beyond the label is higher where more people
    gave the positive label: the correlation is above 0. Counts that were shuffled among the
    inputs of a label give 0. The second-order error hardly sees that where most of what people
    disagree on depends on the label alone. So an interval that holds 0 asks whether the counts
    are in the order of the inputs, or the prediction knows nothing of the disagreement.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of any kind: 0 and 1, or, in a one-vs-all task, better the class itself.
    prediction : array-like of shape (n_samples,)
        Mean prediction, in [0, 1].
    n_positive : array-like of int, shape (n_samples,)
        Positive labels of each input.
    n_labels : array-like of int, shape (n_samples,), or int
        Labels of each input; those without any are left out.
    groups : array-like of shape (n_samples,), optional
        Clusters of inputs, as in :func:`second_order_error`.
    confidence_level : float in (0, 1), default 0.95

    Returns
    -------
    Estimate
        Spearman's correlation, ranks taken within each label. 0 where the prediction or the
        frequency is constant within the labels.

    Raises ValueError if predictions are not in [0, 1], counts not integers with
    0 <= n_positive <= n_labels, lengths differ, or fewer than two groups are left.

    Examples
    --------
    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 1, 1000)
    >>> y, counts = rng.random(1000) < p, rng.binomial(10, p)
    >>> metrics.within_label_correlation(y, p, counts, 10).ci_low > 0.8
    True
    >>> shuffled = counts.copy()
    >>> for label in (0, 1):
    ...     shuffled[y == label] = rng.permutation(counts[y == label])
    >>> result = metrics.within_label_correlation(y, p, shuffled, 10)
    >>> result.ci_low < 0 < result.ci_high
    True
    """
    values, kept = within_label_products(y_true, prediction, n_positive, n_labels)
    return mean_within_label_correlation([values], kept, groups, confidence_level)


def within_label_products(
    y_true: ArrayLike, prediction: ArrayLike, n_positive: ArrayLike, n_labels: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Return what each input adds to the correlation, and which inputs have labels."""
    from scipy.stats import rankdata

    positive, labels = check_counts(n_positive, n_labels)
    y = np.asarray(y_true)
    if y.ndim != 1:
        raise ValueError(f"y_true must have shape (n_samples,), got {y.shape}")
    prediction = check_probabilities(prediction, name="prediction", n_samples=len(y))
    if len(positive) != len(y):
        raise ValueError(f"n_positive has {len(positive)} samples, y_true has {len(y)}")
    kept = labels > 0
    y, prediction = y[kept], prediction[kept]
    frequency = positive[kept] / labels[kept]
    ranks = np.zeros((2, len(y)))
    for label in np.unique(y):
        inside = y == label
        for row, values in zip(ranks, (prediction, frequency), strict=True):
            of_label = rankdata(values[inside])
            row[inside] = (of_label - of_label.mean()) / len(of_label)
    scale = np.sqrt(np.prod(np.mean(ranks**2, axis=1)))
    return (ranks[0] * ranks[1] / scale if scale > 0 else np.zeros(len(y))), kept


def mean_within_label_correlation(
    products: Sequence[np.ndarray],
    kept: np.ndarray,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> Estimate:
    """Return the mean over tasks that share their inputs of what `within_label_products` gives."""
    level = check_fraction(confidence_level, name="confidence_level")
    return mean_of_groups(np.mean(products, axis=0), check_groups(groups, kept), level)
