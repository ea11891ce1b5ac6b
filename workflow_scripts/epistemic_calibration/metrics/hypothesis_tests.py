"""Tests of epistemic calibration, mean calibration and independence, and Holm's correction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._groups import GroupedBins, groups_of_samples
from epistemic_calibration.metrics._regression import folds, spline_basis
from epistemic_calibration.metrics._sample import Sample, as_sample
from epistemic_calibration.metrics._validation import (
    BLOCK_SIZE,
    check_positive_integer,
    check_probabilities,
)
from epistemic_calibration.metrics.binning import Binning, quantile_bins


@dataclass(frozen=True)
class HypothesisTest:
    """The result of a hypothesis test.

    Attributes
    ----------
    statistic : float
    p_value : float in [0, 1]
    """

    statistic: float
    p_value: float


def epistemic_calibration_test(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    n_bins: int = 50,
    binning: Binning = "nested",
    random_state: int = 0,
    bins: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_resamples: int = 999,
) -> HypothesisTest:
    """Test that the predictor is epistemically calibrated (paper, definition 3).

    The statistic is the corrected error over the bins; under the hypothesis the labels are
    Bernoulli(Δ) given the predictions, so they are drawn anew (Vaicenavicius et al., 2019;
    Widmann et al., 2019) and the p-value (1 + #{drawn >= seen}) / (n_resamples + 1) is
    exact for any number of samples and bins.

    Labels of a group may depend on each other, so they are not drawn: Σ(y − Δ) of the group
    in each bin keeps its size and gets a random sign, the same in all bins. This is exact where
    the law of these sums is symmetric, and else holds for many groups in each bin. Labels
    of samples that are alone in their group are drawn as without groups.

    Parameters
    ----------
    y_true, hypotheses, n_bins, binning, bins, groups
        As in :func:`corrected_epistemic_calibration_error`.
    random_state : int, default 0
        Seed of the bins, and of the labels or signs drawn.
    n_resamples : int >= 1, default 999

    Raises
    ------
    ValueError
        As there, or if ``n_resamples`` is not an integer >= 1.

    See Also
    --------
    corrected_epistemic_calibration_error : the size of the error.
    holm_correction : for several tests.

    References
    ----------
    Vaicenavicius et al., 2019, "Evaluating model calibration in classification"; Widmann et
    al., 2019, "Calibration tests in multi-class classification".

    Examples
    --------
    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> hypotheses = np.full((100, 2), 0.5)
    >>> metrics.epistemic_calibration_test(np.arange(100) % 2, hypotheses).p_value
    1.0
    >>> metrics.epistemic_calibration_test(np.ones(100), hypotheses).p_value
    0.001
    """
    sample = as_sample(y_true, hypotheses)
    labels = sample.bins(n_bins=n_bins, binning=binning, random_state=random_state, given=bins)
    return _calibration_test(sample, labels, groups, n_resamples, random_state)


def mean_calibration_test(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    n_bins: int = 10,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    n_resamples: int = 999,
) -> HypothesisTest:
    """Test that P(Y = 1 | Δ) = Δ, on quantile bins of Δ.

    As :func:`epistemic_calibration_test`, but the bins depend on the mean prediction only, and
    ``random_state`` is the seed of the labels or signs drawn.

    See Also
    --------
    epistemic_calibration_test : a test of all that the hypotheses say, not only of their mean.

    Examples
    --------
    Labels that follow the spread and not the mean go unnoticed.

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> hypotheses = np.repeat([[0.25, 0.75], [0.5, 0.5]], 100, axis=0)
    >>> metrics.mean_calibration_test(np.repeat([1, 0], 100), hypotheses).p_value
    1.0
    """
    sample = as_sample(y_true, hypotheses)
    n_bins = check_positive_integer(n_bins, name="n_bins")
    labels = np.unique(quantile_bins(sample.mean, n_bins), return_inverse=True)[1]
    return _calibration_test(sample, labels, groups, n_resamples, random_state)


def epistemic_independence_test(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    method: Literal["gcm", "score"] = "gcm",
    n_folds: int = 5,
    random_state: int = 0,
) -> HypothesisTest:
    """Test that EU says nothing about Y beyond the mean: Y ⊥ EU | Δ (paper, property 1).

    With x = s − q(Δ), s the square root of EU and q a spline regression, the statistic is
    Rᵀ C⁻¹ R where R = Σ ε·(x, x·(1 − 2Δ)) and C its covariance; the p-value is that of χ²
    with two degrees of freedom, or one where the two components are the same. The second
    component sees an error that pushes predictions towards, or away from, one half, which
    changes sign with Δ.

    Parameters
    ----------
    y_true, hypotheses
        As in :func:`corrected_epistemic_calibration_error`.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        Reported by the method, >= 0; the variance of the hypotheses by default.
    method : {"gcm", "score"}, default "gcm"
        - ``gcm``: generalised covariance measure (Shah & Peters, 2020). ε = y − m(Δ) and x
          are residuals of regressions fitted on the other folds, so the mean prediction
          need not be calibrated.
        - ``score``: ε = y − Δ with variance Δ(1 − Δ), which assumes mean calibration.
    n_folds : int >= 2, default 5
    random_state : int, default 0
        Seed of the folds.

    Returns
    -------
    HypothesisTest
        With statistic 0 and p-value 1 where EU is constant, or all labels are equal.

    Raises
    ------
    ValueError
        As there, or if ``method`` is unknown.

    See Also
    --------
    split_epistemic_calibration_error : the size of the dependence.

    References
    ----------
    Shah and Peters, 2020, "The hardness of conditional independence testing and the generalised
    covariance measure".

    Examples
    --------
    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> hypotheses = np.repeat([[0.25, 0.75], [0.5, 0.5]], 100, axis=0)
    >>> metrics.epistemic_independence_test(np.repeat([1, 0], 100), hypotheses).p_value < 1e-6
    True
    """
    from scipy.stats import chi2

    sample = as_sample(y_true, hypotheses, epistemic_uncertainty)
    if method not in get_args(Literal["gcm", "score"]):
        raise ValueError(f"method must be 'gcm' or 'score', got {method!r}")
    y, mean = sample.y, sample.mean
    spread = np.sqrt(sample.uncertainty)
    # What the regressions miss of both passes for dependence: no knot is spared.
    basis = spline_basis(mean, n_knots=10)
    x, residual = np.empty_like(spread), np.empty_like(spread)
    for train, test in folds(len(spread), n_folds, random_state):
        targets = np.stack([spread[train], y[train]], axis=1)
        coefficients = np.linalg.lstsq(basis[train], targets, rcond=1e-10)[0]
        fitted = basis[test] @ coefficients
        x[test] = spread[test] - fitted[:, 0]
        residual[test] = y[test] - fitted[:, 1]
    if min(x.std(), residual.std()) <= 1e-9:
        return HypothesisTest(0.0, 1.0)
    directions = np.stack([x, x * (1 - 2 * mean)], axis=1)
    if method == "score":
        residual = y - mean
        squares = mean * (1 - mean)
    else:
        products = directions * residual[:, None]
        squares = residual**2
    score = directions.T @ residual
    covariance = (directions * squares[:, None]).T @ directions
    if method == "gcm":
        covariance -= len(x) * np.outer(products.mean(axis=0), products.mean(axis=0))
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-10 * values[-1]
    if not kept.any():
        return HypothesisTest(0.0, 1.0)
    statistic = float(np.sum((vectors[:, kept].T @ score) ** 2 / values[kept]))
    return HypothesisTest(statistic, float(chi2.sf(statistic, np.count_nonzero(kept))))


def holm_correction(p_values: ArrayLike) -> np.ndarray:
    """Return p-values adjusted for multiple tests (Holm, 1979), in the order given.

    Rejecting where the adjusted value is at most α keeps the probability of any false
    rejection at most α, whatever the dependence of the tests.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,), values in [0, 1]

    Raises
    ------
    ValueError
        If ``p_values`` are not in [0, 1].

    References
    ----------
    Holm, 1979, "A simple sequentially rejective multiple test procedure".

    Examples
    --------
    >>> from epistemic_calibration import metrics
    >>> metrics.holm_correction([0.04, 0.01, 0.6])
    array([0.08, 0.03, 0.6 ])
    """
    p = check_probabilities(p_values, name="p_values")
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty_like(p)
    result[order] = np.minimum(adjusted, 1)
    return result


def _calibration_test(
    sample: Sample, labels: np.ndarray, groups: ArrayLike | None, n_resamples: int, seed: int
) -> HypothesisTest:
    n_resamples = check_positive_integer(n_resamples, name="n_resamples")
    of_samples = groups_of_samples(groups, len(sample))
    if of_samples is None:
        return _redraw_test(sample.y, sample.mean, labels, n_resamples, seed)
    return _flip_test(sample.y, sample.mean, labels, of_samples, n_resamples, seed)


def _flip_test(
    y: np.ndarray,
    mean: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    n_resamples: int,
    seed: int,
) -> HypothesisTest:
    b = GroupedBins(y, mean, labels, groups)
    size = np.bincount(groups)
    alone = (size == 1)[b.of_group]
    # Of groups of one sample; of others it is not used.
    of_group = np.bincount(groups, weights=mean) / size
    p = of_group[b.of_group]
    generator = np.random.default_rng(seed)
    weights = b.w / b.pairs
    seen = float(b.w @ b.squared_error)
    n_larger = 0
    step = max(1, BLOCK_SIZE // len(y))
    for start in range(0, n_resamples, step):
        shape = (min(step, n_resamples - start), len(size))
        uniform = generator.random(shape)[:, b.of_group]
        flipped = np.where(uniform < 0.5, b.sums, -b.sums)
        cells = np.where(alone, (uniform < p) - p, flipped)
        drawn = (b.of_bins(cells) ** 2 - b.of_bins(cells**2)) @ weights
        n_larger += int(np.count_nonzero(drawn >= seen - 1e-12 * abs(seen)))
    return HypothesisTest(seen, (1 + n_larger) / (n_resamples + 1))


def _redraw_test(
    y: np.ndarray, mean: np.ndarray, labels: np.ndarray, n_resamples: int, seed: int
) -> HypothesisTest:
    order = np.argsort(labels, kind="stable")
    order = order[np.bincount(labels)[labels[order]] > 1]
    if len(order) == 0:
        raise ValueError("every sample is alone in its bin: use fewer bins")
    y, mean, labels = y[order], mean[order], labels[order]
    starts = np.flatnonzero(np.diff(labels, prepend=-1))
    n = np.diff(starts, append=len(labels))
    divisor = len(labels) * (n - 1.0)

    def statistic(drawn: np.ndarray) -> np.ndarray:
        error = drawn - mean
        sums = np.add.reduceat(error, starts, axis=-1)
        np.square(error, out=error)
        return (sums**2 - np.add.reduceat(error, starts, axis=-1)) @ (1 / divisor)

    seen = float(statistic(y))
    generator = np.random.default_rng(seed)
    n_larger = 0
    step = max(1, BLOCK_SIZE // len(y))
    for start in range(0, n_resamples, step):
        shape = (min(step, n_resamples - start), len(y))
        drawn = statistic((generator.random(shape) < mean).astype(np.float64))
        # Equal labels must count as equal although sums are rounded.
        n_larger += int(np.count_nonzero(drawn >= seen - 1e-12 * abs(seen)))
    return HypothesisTest(seen, (1 + n_larger) / (n_resamples + 1))
