"""A lower bound of TECE from a cross-fitted regression, without bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._groups import groups_of_samples
from epistemic_calibration.metrics._regression import folds, ridge_coefficients, spline_basis
from epistemic_calibration.metrics._sample import Sample, as_sample
from epistemic_calibration.metrics._validation import check_fraction, row_blocks


@dataclass(frozen=True)
class LowerBound:
    """A cross-fitted lower bound of TECE."""

    estimate: float  # signed: its mean is TECE less the mean squared error of the regression
    standard_error: float
    ci_low: float  # one-sided lower confidence limit of TECE, at least 0
    confidence_level: float


def cross_fitted_lower_bound(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> LowerBound:
    """Return a lower bound of TECE that needs no bins.

    The mean of e² − (e − ĝ)², with ĝ a regression of e on the row of hypotheses fitted on
    the other folds (Perez-Lebel et al., 2023): its mean is
    TECE − E[(ĝ − E[e | Π])²]. ĝ is a ridge regression on splines of the logit of Δ, alone and
    times spread, squared spread and skewness of the row.

    It is blind to what these features do not follow, such as steps of Δ or whether a row has one
    mode or two. Where both its ``ci_low`` and that of the corrected error are above 0, the error
    does not hinge on bins; where the bound is 0, that says nothing.

    The variance of the mean is at least that of calibrated labels, 4 ĝ² Δ(1 − Δ) on average:
    a few positives do not show how they vary.

    Parameters
    ----------
    y_true, hypotheses, confidence_level
        As in :func:`corrected_epistemic_calibration_error`.
    groups : array-like of shape (n_samples,), optional
        As there, five or more: the five folds are of whole groups. The variance is robust to
        dependence within them; a calibrated one is that of labels as correlated within groups as
        the errors are.
    random_state : int, default 0
        Seed of the folds.

    References
    ----------
    Perez-Lebel, Le Morvan and Varoquaux, 2023, "Beyond calibration: estimating the grouping
    loss of modern neural networks".

    Examples
    --------
    Predictions of 0.25 where the label frequency is 1/2: TECE is (1/2 - 1/4)².

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> labels = np.arange(400) % 2
    >>> bound = metrics.cross_fitted_lower_bound(labels, np.full((400, 3), 0.25))
    >>> 0.03 < bound.ci_low < bound.estimate < 0.0625
    True
    """
    from scipy.stats import norm

    sample = as_sample(y_true, hypotheses)
    level = check_fraction(confidence_level, name="confidence_level")
    error = sample.y - sample.mean
    groups = groups_of_samples(groups, len(sample))
    tests = _folds_of_groups(sample, groups, random_state)
    # Fold after fold, so that none has to be copied.
    order = np.concatenate(tests)
    features, ends = _row_features(sample, order), np.cumsum([len(test) for test in tests])
    fitted, alphas = np.empty_like(error), np.logspace(-2, 4, 19)
    for test, end in zip(tests, ends.tolist(), strict=True):
        held_out = slice(end - len(test), end)
        coefficients = ridge_coefficients(features, error[order], alphas, held_out=held_out)
        fitted[test] = features[held_out] @ coefficients
    gains = fitted * (2 * error - fitted)
    estimate = float(gains.mean())
    deviation = 2 * fitted * np.sqrt(sample.mean * (1 - sample.mean))
    if groups is None:
        variance = max(gains.var(ddof=1), np.mean(deviation**2))
    else:
        variance = max(
            _variance_of_groups(gains, groups), _calibrated_variance(deviation, error, groups)
        )
    standard_error = float(np.sqrt(variance / len(gains)))
    return LowerBound(
        estimate=estimate,
        standard_error=standard_error,
        ci_low=max(0.0, float(estimate - norm.ppf(level) * standard_error)),
        confidence_level=level,
    )


def _folds_of_groups(sample: Sample, groups: np.ndarray | None, seed: int) -> list[np.ndarray]:
    """Return the samples of each fold."""
    if groups is None:
        # So that the order of samples does not change the folds.
        return [test for _, test in folds(len(sample), seed, order=sample.order)]
    n_groups = int(groups.max()) + 1
    return [np.flatnonzero(np.isin(groups, test)) for _, test in folds(n_groups, seed)]


def _variance_of_groups(values: np.ndarray, groups: np.ndarray) -> float:
    """Return the variance of the mean times the number of samples, robust to dependence."""
    sums = np.bincount(groups, weights=values - values.mean())
    return float(sums @ sums) / len(values) * len(sums) / (len(sums) - 1)


def _calibrated_variance(deviation: np.ndarray, error: np.ndarray, groups: np.ndarray) -> float:
    """Return the same for values of these standard deviations, with one correlation in groups.

    Rare positives do not show it in the values: it is that of the errors, 1 for copies.
    """
    sizes = np.bincount(groups)
    squares = np.bincount(groups, weights=error**2)
    pairs = np.bincount(groups, weights=error) ** 2 - squares
    largest = float((sizes - 1) @ squares)
    correlation = min(max(float(pairs.sum()) / largest, 0.0), 1.0) if largest > 0 else 1.0
    together = np.bincount(groups, weights=deviation)
    alone = float(deviation @ deviation)
    return (alone + correlation * (float(together @ together) - alone)) / len(error)


def _row_features(sample: Sample, order: np.ndarray) -> np.ndarray:
    """Return the features of the samples in some order."""
    spread = np.sqrt(sample.variance)
    # The largest spread that the mean allows is sqrt(Δ(1 − Δ)).
    largest = np.sqrt(sample.mean * (1 - sample.mean))
    relative = np.divide(spread, largest, out=np.zeros_like(spread), where=largest > 0)
    deviation = relative.std()
    scaled = (relative - relative.mean()) / deviation if deviation > 1e-9 else 0 * relative
    cubes = np.empty_like(spread)
    for block in row_blocks(sample.hypotheses):
        rows = sample.hypotheses[block].astype(np.float64) - sample.mean[block, None]
        cubes[block] = np.einsum("nj,nj->n", rows * rows, rows) / rows.shape[1]
    skewness = np.divide(cubes, spread**3, out=np.zeros_like(cubes), where=spread > 1e-9)
    # Fewer coefficients, a tighter bound.
    basis = spline_basis(sample.mean, n_knots=6)
    shapes = np.stack(
        [np.ones_like(scaled), scaled, scaled**2 - 1, np.clip(skewness, -3, 3)], axis=1
    )
    return (shapes[order, :, None] * basis[order, None, :]).reshape(len(basis), -1)
