"""Recalibration of second-order predictions on held-out data."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._validation import (
    check_hypotheses,
    check_labels,
    row_blocks,
)


class SecondOrderRecalibrator:
    """Shifts the logits of the hypotheses by a function of their mean and spread.

    With f the logits of a row, m their mean and s their standard deviation (ddof 0),

        f' = scale·m + shift + spread·s + interaction·m·s + (f − m),

    the four numbers minimise the log loss of the mean of sigmoid(f'), with a standard
    normal prior around no change that matters only where classes are separable. ``scale``
    and ``shift`` are Platt scaling of the mean; ``spread`` and ``interaction`` use what the
    epistemic uncertainty says about the label, so that afterwards it says less.

    The dispersion f − m is kept as it is: with one label per input, the labels determine
    the mean of the recalibrated hypotheses only, never their dispersion around it.

    Parameters
    ----------
    clip : float in (0, 0.5), default 1e-4
        Hypotheses are clipped to [clip, 1 - clip], where their logits are finite.

    Attributes
    ----------
    scale_, shift_, spread_, interaction_ : float
        1, 0, 0, 0 is no change.

    References
    ----------
    Platt, 1999, "Probabilistic outputs for support vector machines"; Guo et al., 2017, "On
    calibration of modern neural networks".

    Examples
    --------
    Hypotheses that are too confident: the label frequencies are 0.3 and 0.7.

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> hypotheses = np.repeat([[0.1, 0.1], [0.9, 0.9]], 1000, axis=0)
    >>> y_true = np.repeat([0, 1, 0, 1], [700, 300, 300, 700])
    >>> recalibrator = metrics.SecondOrderRecalibrator().fit(y_true, hypotheses)
    >>> recalibrator.transform([[0.1, 0.1], [0.9, 0.9]]).mean(axis=1).round(2)
    array([0.3, 0.7])
    """

    def __init__(self, *, clip: float = 1e-4) -> None:
        if not 0 < clip < 0.5:
            raise ValueError(f"clip must lie between 0 and 0.5, both excluded, got {clip!r}")
        self.clip = clip

    def fit(self, y_true: ArrayLike, hypotheses: ArrayLike) -> Self:
        """Fit on data that neither trained the predictor nor will evaluate it.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,), labels in {0, 1}, both present
        hypotheses : array-like of shape (n_samples, n_hypotheses), values in [0, 1]

        Raises
        ------
        ValueError
            If labels are not 0 and 1, one is missing, or hypotheses are not in [0, 1].
        RuntimeError
            If the optimiser fails.
        """
        from scipy.optimize import minimize
        from scipy.special import expit

        y = check_labels(y_true)
        hypotheses = check_hypotheses(hypotheses, n_samples=len(y))
        if y.min() == y.max():
            raise ValueError(f"y_true must have both classes, got only {int(y[0])}")
        logits = self._logits(hypotheses)
        design = self._design(logits)
        start = np.array([1.0, 0.0, 0.0, 0.0])

        def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            change = design @ parameters - design[:, 0]
            probability, slope = np.empty(len(y)), np.empty(len(y))
            for block in row_blocks(logits):
                p = expit(logits[block] + change[block, None])
                probability[block] = p.mean(axis=1)
                slope[block] = (p * (1 - p)).mean(axis=1)
            probability = np.clip(probability, 1e-15, 1 - 1e-15)
            likelihood = np.where(y == 1, np.log(probability), np.log1p(-probability)).sum()
            pull = parameters - start
            by_probability = (probability - y) / (probability * (1 - probability))
            gradient = design.T @ (by_probability * slope) + pull
            return (pull @ pull / 2 - likelihood) / len(y), gradient / len(y)

        result = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-6})
        # BFGS reports status 2 where rounding stops it at the optimum.
        if not result.success and np.abs(result.jac).max() > 1e-4:
            raise RuntimeError(f"recalibration did not converge: {result.message}")
        self.scale_, self.shift_, self.spread_, self.interaction_ = map(float, result.x)
        return self

    def transform(self, hypotheses: ArrayLike) -> np.ndarray:
        """Return recalibrated hypotheses in float64, of the shape given.

        Raises
        ------
        ValueError
            If hypotheses are not in [0, 1].
        AttributeError
            If ``fit`` was not called.
        """
        from scipy.special import expit

        parameters = (self.scale_, self.shift_, self.spread_, self.interaction_)
        logits = self._logits(check_hypotheses(hypotheses))
        design = self._design(logits)
        change = design @ np.array(parameters) - design[:, 0]
        return expit(logits + change[:, None])

    def _logits(self, hypotheses: np.ndarray) -> np.ndarray:
        from scipy.special import logit

        return logit(np.clip(hypotheses.astype(np.float64), self.clip, 1 - self.clip))

    @staticmethod
    def _design(logits: np.ndarray) -> np.ndarray:
        mean, spread = logits.mean(axis=1), logits.std(axis=1)
        return np.stack([mean, np.ones_like(mean), spread, mean * spread], axis=1)
