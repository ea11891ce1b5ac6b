"""One checked sample for all metrics: labels, hypotheses, their moments and bins."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._validation import (
    check_bins,
    check_hypotheses,
    check_labels,
    check_probabilities,
    check_uncertainty,
)
from epistemic_calibration.metrics.binning import Binning, Rows, row_moments


class Sample(Rows):
    """Labels and hypotheses, checked once, with the moments and bins that metrics share.

    Any metric of labels and hypotheses takes a `Sample` in place of both. Where several are
    computed, the checks, the moments of the rows and the bins are then made only once.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), labels in {0, 1}
    hypotheses : array-like of shape (n_samples, n_hypotheses)
        h_j(x_n), estimates of P(Y = 1 | x_n) in [0, 1].
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        What the method reports, >= 0.
    prediction : array-like of shape (n_samples,), optional
        What is judged in place of the mean of the hypotheses, in [0, 1].

    Attributes
    ----------
    y, mean, variance, uncertainty : ndarray of float64, shape (n_samples,)
        Labels; Δ, the mean of each row, or the prediction given; population variance (ddof 0) of
        each row; the epistemic uncertainty that the method reports, else the variance.
    hypotheses : ndarray of shape (n_samples, n_hypotheses)
        As given, dtype kept.
    reported : ndarray of float64, shape (n_samples,), or None
        The epistemic uncertainty, if the method reports it.

    Raises
    ------
    ValueError
        If labels are not 0 and 1, hypotheses or prediction are not in [0, 1], the uncertainty is
        not finite and >= 0, or lengths differ.

    Examples
    --------
    >>> from epistemic_calibration import metrics
    >>> sample = metrics.Sample([0, 1, 1], [[0.25, 0.75], [0.5, 1.0], [0.5, 0.5]])
    >>> sample.mean
    array([0.5 , 0.75, 0.5 ])
    >>> sample.variance
    array([0.0625, 0.0625, 0.    ])
    >>> round(metrics.expected_epistemic_calibration_error(sample, n_bins=1), 6)
    0.006944
    >>> metrics.accuracy(sample.y, sample.mean)
    0.6666666666666666
    """

    def __init__(
        self,
        y_true: ArrayLike,
        hypotheses: ArrayLike,
        *,
        epistemic_uncertainty: ArrayLike | None = None,
        prediction: ArrayLike | None = None,
    ) -> None:
        self.y = check_labels(y_true)
        super().__init__(check_hypotheses(hypotheses, n_samples=len(self.y)))
        self.reported = (
            None
            if epistemic_uncertainty is None
            else check_uncertainty(epistemic_uncertainty, n_samples=len(self.y))
        )
        self._prediction = None
        if prediction is not None:
            self._prediction = check_probabilities(
                prediction, name="prediction", n_samples=len(self.y)
            )
        self._bins: dict[tuple[int, str, int], np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = row_moments(self.hypotheses)
        return mean if self._prediction is None else self._prediction, variance

    @property
    def uncertainty(self) -> np.ndarray:
        return self.variance if self.reported is None else self.reported

    def bins(
        self,
        *,
        n_bins: int,
        binning: Binning,
        random_state: int = 0,
        given: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the bins of :func:`assign_bins`, which are made only once.

        Bins that are ``given``, integers of shape (n_samples,), are checked and returned instead.
        """
        if given is not None:
            return check_bins(given, n_samples=len(self))
        key = (n_bins, binning, random_state)
        if key not in self._bins:
            self._bins[key] = self.assigned(
                n_bins=n_bins, binning=binning, random_state=random_state
            )
            self._bins[key].setflags(write=False)
        return self._bins[key]


def as_sample(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None,
    epistemic_uncertainty: ArrayLike | None = None,
) -> Sample:
    """Return the `Sample` of a metric's arguments, or the one that they are."""
    if isinstance(y_true, Sample):
        if hypotheses is not None or epistemic_uncertainty is not None:
            raise ValueError(
                "a Sample has its own hypotheses and epistemic uncertainty, so they cannot be "
                "given beside it"
            )
        return y_true
    if hypotheses is None:
        raise ValueError("hypotheses must be given, unless y_true is a Sample")
    return Sample(y_true, hypotheses, epistemic_uncertainty=epistemic_uncertainty)
