"""What each input says of the size of the uncertainty of one task."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._label_counts import (
    LabelMoments,
    check_inputs,
    squared_error,
)
from epistemic_calibration.metrics._members import (
    N_SPLITS,
    Replicates,
    canonical_members,
    finite_draws_factor,
    parts_of_draws,
    replicates,
    slope_of_draws,
)
from epistemic_calibration.metrics._validation import check_bins, check_positive_integer
from epistemic_calibration.metrics.binning import Binning, assign_bins, quantile_bins, row_moments
from epistemic_calibration.metrics.error_curve import Asked, asked_of
from epistemic_calibration.metrics.label_collection import LabelCollectionWarning, selection_fault
from epistemic_calibration.metrics.law_error import Draws, check_draws

#: Inputs in a bin of EU below which there are fewer bins: squared errors are skewed, and of too
#: few the mean and its variance are too small together.
_LEAST_INPUTS = 100


class Contributions(NamedTuple):
    """What each input says of the quantities of one task; most are of shape (n_samples,)."""

    kept: np.ndarray  # inputs with two labels or more, which the others are of
    error: np.ndarray
    uncertainty: np.ndarray
    noise: np.ndarray
    slope: tuple[np.ndarray, np.ndarray] | None  # numerator and denominator
    size: list[tuple[np.ndarray, np.ndarray, np.ndarray]]  # values, bins, inputs, of each split
    mean_error: np.ndarray
    bins: np.ndarray
    asked: Asked
    replicates: Replicates | None  # without some members, where these are functions


def contributions(
    labels: LabelMoments,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    exchangeable: bool = True,
    draws: Draws = "functions",
    n_bins: int = 50,
    binning: Binning = "nested",
    bins: ArrayLike | None = None,
    random_state: int = 0,
) -> Contributions:
    """Return what each input says; `label_moments` and the arguments of `second_order_error`."""
    n_bins = check_positive_integer(n_bins, name="n_bins")
    check_draws(draws)
    first, second, kept = labels
    rows, reported = check_inputs(hypotheses, kept, epistemic_uncertainty, exchangeable)
    if not kept.all():
        fault = selection_fault(kept, *row_moments(np.asarray(hypotheses)))
        if fault is not None:
            warnings.warn(fault, LabelCollectionWarning, stacklevel=3)
    given = None
    if bins is not None:
        of_all = check_bins(np.asarray(bins), n_samples=len(kept))
        given = np.unique(of_all[kept], return_inverse=True)[1]
    prediction, variance = row_moments(rows)
    error = squared_error(first, second, prediction)
    of_bins = given
    if of_bins is None:
        # Of fewer inputs than that, all would be alone.
        n_own = min(n_bins, max(1, len(rows) // 2))
        of_bins = assign_bins(rows, n_bins=n_own, binning=binning, random_state=random_state)
    n_bins = max(1, min(n_bins, len(first) // _LEAST_INPUTS))
    without = None
    if exchangeable and reported is None:
        members = canonical_members(rows)
        h = members.shape[1]
        uncertainty = variance * finite_draws_factor(h)
        asked = asked_of(first, second, members)
        slope = slope_of_draws(first, second, members)
        size = _size_of_draws(asked, error - uncertainty, given, n_bins, h)
        if draws == "functions":
            parts = parts_of_draws(h) if len(size) > 1 else np.ones((1, 1, h), dtype=bool)
            of_parts = [labels.reshape(-1, len(first)) for _, labels, _ in size]
            without = replicates(first, second, members, parts, of_parts)
    else:
        uncertainty = variance if reported is None else reported
        asked = asked_of(first, second, rows, uncertainty)
        centred = uncertainty - uncertainty.mean()
        slope = centred * (error - error.mean()), centred**2
        of_size = _quantiles(uncertainty, n_bins) if given is None else given
        size = [(error - uncertainty, of_size, asked.index)]
    noise, mean_error = first - second, first - prediction
    return Contributions(
        kept, error, uncertainty, noise, slope, size, mean_error, of_bins, asked, without
    )


def _quantiles(values: np.ndarray, n_bins: int) -> np.ndarray:
    return np.unique(quantile_bins(values, n_bins), return_inverse=True)[1]


def _size_of_draws(
    asked: Asked, gap: np.ndarray, given: np.ndarray | None, n_bins: int, n_hypotheses: int
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return values, bins and inputs of each split."""
    if given is not None or n_hypotheses < 4:
        labels = np.zeros(len(gap), dtype=np.intp) if given is None else given
        return [(gap, labels, np.arange(len(gap)))]
    columns = (asked.key, asked.error - asked.uncertainty, asked.index)
    return [
        (values, _quantiles(key, n_bins), index)
        for key, values, index in zip(*(np.split(x, N_SPLITS) for x in columns), strict=True)
    ]
