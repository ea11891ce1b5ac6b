"""Recalibration of second-order predictions on held-out data."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._label_counts import (
    check_counts,
    moments,
    squared_error,
    with_two_labels,
)
from epistemic_calibration.metrics._members import finite_draws_factor
from epistemic_calibration.metrics._regression import folds
from epistemic_calibration.metrics._validation import check_hypotheses, check_labels, row_blocks
from epistemic_calibration.metrics.binning import canonical_order, row_moments

_NO_CHANGE = (1.0, 0.0, 0.0, 0.0)

#: What hypotheses of exactly 0, or 1 less it, count as, unless others are nearer to them.
_CLIP = 1e-4
#: Inputs with a positive label, and with a negative one, of which fewer change nothing.
_MIN_COUNT = 10

#: Standard errors by which the loss of the folds must fall. With none, one in ten calibrated
#: predictors is changed; with one, every second fit to 1000 samples that would help is missed.
_LEAST_GAIN = 0.5

#: Beyond which no dispersion is tried: logits that differ by 0.01 would then differ by 10.
_MAX_DISPERSION = 1024.0


class SecondOrderRecalibrator:
    """Shifts the logits of the hypotheses by a function of their mean and spread.

    With f the logits of a row, m their mean and s their standard deviation (ddof 0),

        f' = scale·m + shift + spread·s + interaction·m·s + (f − m),

    the four numbers minimise the log loss of the mean of sigmoid(f'), with a standard
    normal prior around no change that matters only where classes are separable. ``scale``
    and ``shift`` are Platt scaling of the mean; ``spread`` and ``interaction`` use what the
    epistemic uncertainty says about the label, so that afterwards it says less. They may
    reverse the order of two inputs whose means are close.

    Where inputs have several labels each (`fit_counts`), there is one more number:

        f'' = f' + c + (τ − 1)(f − m),

    where c keeps the mean probability of the row what it is, and τ (``dispersion_``) makes
    the method report the squared error that its mean has: c_H·mean EU = mean q, in the terms
    of :func:`second_order_error`. With one label per input τ stays 1: such labels determine
    the mean of the recalibrated hypotheses, never their dispersion.

    Fitting four numbers costs about 2/N nats of log loss where the predictor is calibrated
    already, so nothing is changed unless there is evidence that it helps: 10 inputs or more with a
    label of either class; for the mean, a log loss of five folds that is lower by more than half
    the standard error of the difference; for the dispersion, squared error and EU that differ by
    more than one standard error.

    Hypotheses of exactly 0 or 1, whose logits are infinite, count as 1e-4 and 1 − 1e-4, or as the
    most extreme of the others seen in fitting where that is closer to 0 or 1; so does what is
    more extreme than any of those.

    Attributes
    ----------
    scale_, shift_, spread_, interaction_ : float
        1, 0, 0, 0 is no change.
    dispersion_ : float
        τ >= 0, and 1 where it is not fitted.
    changed_ : bool
        Whether `transform` changes anything.

    Notes
    -----
    As τ grows, a row is spread without moving its mean (in the convex order), so its variance
    grows and one τ at most is right; and the log loss of the mean is the same for every τ. A
    squared error that is estimated to be smaller than its standard error counts as that, since
    zero is not evidence of certainty.

    The likelihoods of labels or counts are no way to choose τ. That of one label per input, as in
    JUCAL (Heiss et al., 2026), says nothing of the size of the error (Ahdritz et al., 2025); that
    of counts, as a mixture of the hypotheses, chooses a τ too large, by a tenth with 20 draws.

    References
    ----------
    Platt, 1999, "Probabilistic outputs for support vector machines"; Guo et al., 2017, "On
    calibration of modern neural networks".
    Heiss et al., 2026, "JUCAL: jointly calibrating aleatoric and epistemic uncertainty in
    classification tasks", arXiv 2602.20153.
    Ahdritz et al., 2025, "Provable uncertainty decomposition via higher-order calibration",
    arXiv 2412.18808.

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

    With few labels nothing is changed:

    >>> metrics.SecondOrderRecalibrator().fit(y_true[::200], hypotheses[::200]).changed_
    False
    """

    def fit(self, y_true: ArrayLike, hypotheses: ArrayLike) -> Self:
        """Fit on data that neither trained the predictor nor will evaluate it.

        ``y_true`` are labels in {0, 1} of shape (n_samples,), ``hypotheses`` values in [0, 1] of
        shape (n_samples, n_hypotheses). Raises ValueError for others; RuntimeError if the optimiser
        fails.
        """
        y = check_labels(y_true)
        hypotheses = check_hypotheses(hypotheses, n_samples=len(y))
        self._fit_mean(y, np.ones_like(y), hypotheses)
        return self

    def fit_counts(
        self,
        n_positive: ArrayLike,
        n_labels: ArrayLike,
        hypotheses: ArrayLike,
        *,
        exchangeable: bool = True,
    ) -> Self:
        """Fit on inputs with several labels each, which determine the dispersion as well.

        Parameters
        ----------
        n_positive : array-like of int, shape (n_samples,)
            Positive labels s of each input, 0 <= s <= k.
        n_labels : array-like of int, shape (n_samples,), or int
            Labels k of each input. Those with one label count for the mean only.
        hypotheses : array-like of shape (n_samples, n_hypotheses), values in [0, 1]
        exchangeable : bool, default True
            The hypotheses are draws from the law that the method means, as in
            :func:`second_order_error`. If False they are that law.

        Errors as in `fit`, and if counts are not integers with 0 <= s <= k or no input has two
        labels. Warns (RuntimeWarning) if the error is larger than any dispersion can say.

        Examples
        --------
        The logits of p* vary twice as much as those of the hypotheses:

        >>> import numpy as np
        >>> from scipy.special import expit
        >>> from epistemic_calibration import metrics
        >>> rng = np.random.default_rng(0)
        >>> centre = rng.normal(0, 1, 2000)
        >>> p = expit(centre + rng.normal(0, 1, 2000))
        >>> hypotheses = expit(centre[:, None] + rng.normal(0, 0.5, (2000, 20)))
        >>> recalibrator = metrics.SecondOrderRecalibrator()
        >>> recalibrator.fit_counts(rng.binomial(10, p), 10, hypotheses).dispersion_.__round__(1)
        1.9
        """
        positive, labels = check_counts(n_positive, n_labels)
        hypotheses = check_hypotheses(hypotheses, n_samples=len(positive))
        with_two_labels(labels)
        labelled = labels > 0
        positive, labels, hypotheses = positive[labelled], labels[labelled], hypotheses[labelled]
        self._fit_mean(positive.astype(float), labels.astype(float), hypotheses)
        if not _too_few(positive, labels):
            kept = labels >= 2
            self._fit_dispersion(positive[kept], labels[kept], hypotheses[kept], exchangeable)
        return self

    def transform(self, hypotheses: ArrayLike) -> np.ndarray:
        """Return recalibrated hypotheses in float64, of the shape given."""
        from scipy.special import expit

        hypotheses = check_hypotheses(hypotheses)
        if not self.changed_:
            return hypotheses.astype(np.float64)
        result = np.empty(hypotheses.shape)
        for block in row_blocks(hypotheses):
            logits = self._with_mean_changed(hypotheses[block])
            if self.dispersion_ != 1:
                logits = _spread(logits, self.dispersion_)
            result[block] = expit(logits)
        return result

    def _fit_mean(self, positive: np.ndarray, labels: np.ndarray, hypotheses: np.ndarray) -> None:
        from scipy.special import logit

        with np.errstate(divide="ignore"):
            logits = logit(hypotheses.astype(np.float64))
        finite = logits[np.isfinite(logits)]
        low, high = logit(_CLIP), -logit(_CLIP)
        self._limits = (min(finite.min(initial=low), low), max(finite.max(initial=high), high))
        np.clip(logits, *self._limits, out=logits)
        self.dispersion_ = 1.0
        parameters = np.array(_NO_CHANGE)
        if not _too_few(positive, labels):
            fitted = _fit(positive, labels, logits)
            if _is_better(fitted, positive, labels, logits, hypotheses):
                parameters = fitted
        self.scale_, self.shift_, self.spread_, self.interaction_ = map(float, parameters)
        self.changed_ = tuple(parameters) != _NO_CHANGE

    def _with_mean_changed(self, hypotheses: np.ndarray) -> np.ndarray:
        from scipy.special import logit

        parameters = (self.scale_, self.shift_, self.spread_, self.interaction_)
        with np.errstate(divide="ignore"):
            logits = np.clip(logit(hypotheses.astype(np.float64)), *self._limits)
        return logits + _change(logits, np.array(parameters))[:, None]

    def _fit_dispersion(
        self, positive: np.ndarray, labels: np.ndarray, hypotheses: np.ndarray, exchangeable: bool
    ) -> None:
        from scipy.optimize import brentq
        from scipy.special import expit

        n_hypotheses = hypotheses.shape[1]
        if n_hypotheses < 2:
            return
        logits = self._with_mean_changed(hypotheses)
        prediction, variance = row_moments(expit(logits))
        error = squared_error(*moments(positive, labels), prediction)
        factor = finite_draws_factor(n_hypotheses) if exchangeable else 1.0
        gap = error - factor * variance
        root_n = np.sqrt(len(error))
        # Rows without spread stay without, whatever multiplies it.
        if variance.mean() < 1e-20 or abs(gap.mean()) <= gap.std(ddof=1) / root_n:
            return
        target = max(error.mean(), error.std(ddof=1) / root_n) / factor

        def excess(dispersion: float) -> float:
            total = 0.0
            for block in row_blocks(logits):
                rows = expit(_spread(logits[block], dispersion))
                total += row_moments(rows)[1].sum()
            return total / len(logits) - target

        high = 1.0
        while excess(high) < 0:
            if high >= _MAX_DISPERSION:
                warnings.warn(
                    f"no dispersion of these hypotheses is as large as their error, "
                    f"{target * factor:.3g}: dispersion_ is {high:g}, the largest tried",
                    RuntimeWarning,
                    stacklevel=3,
                )
                break
            high *= 2
        else:
            high = brentq(excess, 0.0, high, xtol=1e-4)
        self.dispersion_ = float(high)
        self.changed_ = True


def _too_few(positive: np.ndarray, labels: np.ndarray) -> bool:
    return min(np.count_nonzero(positive), np.count_nonzero(positive < labels)) < _MIN_COUNT


def _is_better(
    fitted: np.ndarray,
    positive: np.ndarray,
    labels: np.ndarray,
    logits: np.ndarray,
    hypotheses: np.ndarray,
) -> bool:
    mean, variance = row_moments(hypotheses)
    # Of equal rows, those with the same counts are the same input.
    by_counts = np.lexsort((positive, labels))
    moments_in_order = mean[by_counts], variance[by_counts]
    order = by_counts[canonical_order(hypotheses[by_counts], *moments_in_order)]
    gain = -_log_likelihood(positive, labels, mean)
    for train, test in folds(len(labels), 0, order=order):
        parameters = _fit(positive[train], labels[train], logits[train], start=fitted)
        after, _ = _mean_and_slope(logits[test], _change(logits[test], parameters))
        gain[test] += _log_likelihood(positive[test], labels[test], after)
    return bool(gain.mean() > _LEAST_GAIN * gain.std(ddof=1) / np.sqrt(len(gain)))


def _design(logits: np.ndarray) -> np.ndarray:
    mean, spread = logits.mean(axis=1), logits.std(axis=1)
    return np.stack([mean, np.ones_like(mean), spread, mean * spread], axis=1)


def _change(logits: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    return _design(logits) @ (parameters - _NO_CHANGE)


def _log_likelihood(positive: np.ndarray, labels: np.ndarray, p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return positive * np.log(p) + (labels - positive) * np.log1p(-p)


def _mean_and_slope(logits: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of sigmoid(logits + change) of each row, and its derivative."""
    from scipy.special import expit

    mean, slope = np.empty((2, len(logits)))
    for block in row_blocks(logits):
        p = expit(logits[block] + change[block, None])
        mean[block] = p.mean(axis=1)
        slope[block] = mean[block] - np.einsum("nj,nj->n", p, p) / logits.shape[1]
    return np.clip(mean, 1e-15, 1 - 1e-15), slope


def _fit(
    positive: np.ndarray,
    labels: np.ndarray,
    logits: np.ndarray,
    *,
    start: np.ndarray | None = None,
) -> np.ndarray:
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import minimize

    design = _design(logits)
    first = np.array(_NO_CHANGE) if start is None else start
    n_labels = labels.sum()
    # In units of the standard errors, roughly, few steps are needed, whatever the logits are.
    p, slope = _mean_and_slope(logits, design @ (first - _NO_CHANGE))
    information = (design * (labels * slope**2 / (p * (1 - p)))[:, None]).T @ design
    factor = cholesky((information + np.eye(4)) / n_labels)

    def loss(scaled: np.ndarray) -> tuple[float, np.ndarray]:
        pull = first + solve_triangular(factor, scaled) - _NO_CHANGE
        p, slope = _mean_and_slope(logits, design @ pull)
        likelihood = _log_likelihood(positive, labels, p).sum()
        gradient = design.T @ ((labels * p - positive) / (p * (1 - p)) * slope) + pull
        gradient = solve_triangular(factor, gradient / n_labels, trans="T")
        return (pull @ pull / 2 - likelihood) / n_labels, gradient

    result = minimize(loss, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-6})
    # BFGS reports status 2 where rounding stops it at the optimum.
    if not result.success and np.abs(result.jac).max() > 1e-4:
        raise RuntimeError(f"recalibration did not converge: {result.message}")
    return first + solve_triangular(factor, result.x)


def _spread(logits: np.ndarray, factor: float) -> np.ndarray:
    """Multiply the dispersion of each row, and shift it so that its mean sigmoid is kept."""
    from scipy.optimize.elementwise import find_root
    from scipy.special import expit

    centre = logits.mean(axis=1)
    # Of the smaller of the two probabilities, which has more digits.
    sign = np.where(centre > 0, -1.0, 1.0)
    target = expit(sign[:, None] * logits).mean(axis=1)
    deviation = factor * sign[:, None] * (logits - centre[:, None])
    middle = np.log(target) - np.log1p(-target)

    def relative_error(shift: np.ndarray, row: np.ndarray) -> np.ndarray:
        return expit(shift[:, None] + deviation[row]).mean(axis=1) / target[row] - 1

    bracket = (middle - deviation.max(axis=1) - 1e-9, middle - deviation.min(axis=1) + 1e-9)
    rows = np.arange(len(logits))
    found = find_root(relative_error, bracket, args=(rows,), tolerances={"xatol": 1e-10})
    if not found.success.all():
        raise RuntimeError("the mean of a row cannot be kept")
    return sign[:, None] * (found.x[:, None] + deviation)
