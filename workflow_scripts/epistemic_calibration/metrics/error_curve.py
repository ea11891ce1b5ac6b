"""The squared error of a method against the epistemic uncertainty that it reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._groups import check_groups, group_sums
from epistemic_calibration.metrics._label_counts import (
    check_inputs,
    label_moments,
    squared_error,
)
from epistemic_calibration.metrics._means import t_quantile
from epistemic_calibration.metrics._members import (
    canonical_members,
    finite_draws_factor,
    moments_of_parts,
    parts_of_draws,
)
from epistemic_calibration.metrics._validation import check_fraction, check_positive_integer
from epistemic_calibration.metrics.binning import quantile_bins, row_moments


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


def second_order_curve(
    n_positive: ArrayLike,
    n_labels: ArrayLike,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    exchangeable: bool = True,
    n_bins: int = 10,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> SecondOrderCurve:
    """Return the squared error against EU in quantiles of EU.

    On the diagonal EU is right; where it rises, EU ranks the inputs by the error made there.

    Parameters
    ----------
    n_positive, n_labels, hypotheses, epistemic_uncertainty, exchangeable, groups, \
confidence_level
        As in :func:`second_order_error`. For four draws or more, the bins are of the EU of
        one half of them and what is averaged is of the other half, and the reverse, for
        several ways to halve them.
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
      uncertainty 0.003093: error 0.002503 [0.0007426, 0.004263], weight 0.5
      uncertainty 0.02332: error 0.0215 [0.01885, 0.02415], weight 0.5
    )
    """
    first, second, kept = label_moments(n_positive, n_labels)
    rows, reported = check_inputs(hypotheses, kept, epistemic_uncertainty, exchangeable)
    asked = asked_of_uncertainty(first, second, rows, reported, exchangeable)
    return curve([asked], check_groups(groups, kept), n_bins, confidence_level)


def halves_of_uncertainty(
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    exchangeable: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Return EU to choose inputs by, and EU to compare with the error made on those chosen.

    For four draws or more these are of two halves of them, the second as large as the squared
    error of the mean of all draws is if they are right; otherwise both are EU.
    """
    n = len(hypotheses)
    rows, reported = check_inputs(
        hypotheses, np.ones(n, dtype=bool), epistemic_uncertainty, exchangeable
    )
    asked = asked_of_uncertainty(np.zeros(n), np.zeros(n), rows, reported, exchangeable)
    return asked.key[:n], asked.uncertainty[:n]


class Asked(NamedTuple):
    """What is asked of inputs by their EU: one row an input, or several, from parts of it."""

    key: np.ndarray  # EU to choose by
    error: np.ndarray
    uncertainty: np.ndarray
    index: np.ndarray  # of the input


def asked_of_uncertainty(
    first: np.ndarray,
    second: np.ndarray,
    rows: np.ndarray,
    reported: np.ndarray | None,
    exchangeable: bool,
) -> Asked:
    if reported is not None:
        return asked_of(first, second, rows, reported)
    if exchangeable:
        return asked_of(first, second, canonical_members(rows))
    return asked_of(first, second, rows, row_moments(rows)[1])


def asked_of(
    first: np.ndarray, second: np.ndarray, rows: np.ndarray, uncertainty: np.ndarray | None = None
) -> Asked:
    """Return what is asked of inputs of a given uncertainty, or by halves of draws in turn."""
    n, h = rows.shape
    index = np.arange(n)
    if uncertainty is not None or h < 4:
        prediction, variance = row_moments(rows)
        error = squared_error(first, second, prediction)
        if uncertainty is not None:
            return Asked(uncertainty, error, uncertainty, index)
        # No two halves that have variances: all inputs are asked at once.
        return Asked(np.zeros(n), error, variance * finite_draws_factor(h), index)
    parts = parts_of_draws(h).reshape(-1, h)
    mean, variance = moments_of_parts(rows, parts)
    # (p* − mean of the law)², and then as if all draws had been averaged.
    error = squared_error(first, second, mean) - variance / parts.sum(axis=1)[:, None]
    error += variance / h
    key = variance.reshape(-1, 2, n)[:, ::-1].ravel()
    return Asked(key, error.ravel(), (variance * (1 + 1 / h)).ravel(), np.tile(index, len(parts)))


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
