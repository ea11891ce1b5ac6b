"""Tests of epistemic calibration, mean calibration and independence, and Holm's correction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._groups import (
    GroupedBins,
    groups_of_samples,
    nested_bins_of_groups,
)
from epistemic_calibration.metrics._regression import less_block_means, neighbours, spline_basis
from epistemic_calibration.metrics._sample import Sample, as_sample
from epistemic_calibration.metrics._validation import (
    BLOCK_SIZE,
    check_positive_integer,
    check_probabilities,
)
from epistemic_calibration.metrics.binning import Binning, canonical_order, quantile_bins

#: Samples, and labels of the rarer class, from which on the statistic of
#: `epistemic_independence_test` is compared with χ².
MIN_SAMPLES, MIN_OF_CLASS = 1000, 20
#: Samples of nearly the same mean that are compared with each other.
BLOCK = 10


@dataclass(frozen=True)
class HypothesisTest:
    """The result of a hypothesis test: a statistic, and a p-value in [0, 1]."""

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

    Parameters and errors as in :func:`corrected_epistemic_calibration_error`. ``random_state`` is
    the seed of the bins, and of the labels or signs drawn; ``n_resamples`` an integer >= 1.

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
    of_samples = groups_of_samples(groups, len(sample))
    if of_samples is not None and bins is None and binning == "nested":
        bins = nested_bins_of_groups(sample, of_samples, n_bins, random_state)[1]
    labels = sample.bins(n_bins=n_bins, binning=binning, random_state=random_state, given=bins)
    return _calibration_test(sample, labels, of_samples, n_resamples, random_state)


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
    of_samples = groups_of_samples(groups, len(sample))
    return _calibration_test(sample, labels, of_samples, n_resamples, random_state)


def epistemic_independence_test(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    random_state: int = 0,
    n_resamples: int = 999,
) -> HypothesisTest:
    """Test that EU says nothing about Y beyond the mean: Y ⊥ EU | Δ (paper, property 1).

    It is the generalised covariance measure (Shah & Peters, 2020), for which the mean prediction
    need not be calibrated. With x the residual of s, the square root of EU, given Δ and ε that of
    the label, the statistic is Rᵀ C⁻¹ R where R = Σ ε·(x, x·(1 − 2Δ)) and C estimates its
    covariance. The second component sees an error that pushes predictions towards, or away from,
    one half, which changes sign with Δ.

    Residuals are those of a regression on splines of logit Δ and on indicators of blocks: of
    all samples with the same Δ where it repeats (10 times, and in 1 of 500 samples), of about
    10 samples of nearly the same Δ elsewhere. What jumps at a few Δ is thus hardly taken for
    dependence, and p is 1 where Δ determines EU, as it does with few distinct rows.

    The p-value is that of χ² with two degrees of freedom, or one where the two components are
    the same. It is not to be trusted with fewer than 1000 samples or fewer than 20 labels of
    either class; there, the statistic is compared with ``n_resamples`` of x permuted within blocks
    (Kim et al., 2022), so that p is at least 1/(n_resamples + 1).

    Parameters
    ----------
    y_true, hypotheses
        As in :func:`corrected_epistemic_calibration_error`.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        Reported by the method, >= 0; the variance of the hypotheses by default.
    random_state : int, default 0
        Seed of what is permuted.
    n_resamples : int >= 1, default 999

    Returns
    -------
    HypothesisTest
        With statistic 0 and p-value 1 where EU is a function of Δ, or all labels are equal.

    Raises
    ------
    ValueError
        As there, or if ``n_resamples`` is not an integer >= 1.

    References
    ----------
    Shah and Peters, 2020, "The hardness of conditional independence testing and the generalised
    covariance measure"; Kim, Neykov, Balakrishnan and Wasserman, 2022, "Local permutation tests
    for conditional independence".

    Examples
    --------
    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> hypotheses = np.repeat([[0.25, 0.75], [0.5, 0.5]], 100, axis=0)
    >>> metrics.epistemic_independence_test(np.repeat([1, 0], 100), hypotheses).p_value
    0.001
    """
    from scipy.stats import chi2

    sample = as_sample(y_true, hypotheses, epistemic_uncertainty)
    n_resamples = check_positive_integer(n_resamples, name="n_resamples")
    order = sample.order
    if sample.reported is not None:
        order = canonical_order(sample.hypotheses, sample.mean, sample.reported)
    y, mean, spread = (v[order] for v in (sample.y, sample.mean, np.sqrt(sample.uncertainty)))
    large = len(y) >= MIN_SAMPLES
    blocks = neighbours(mean, size=BLOCK)
    # What the regression misses of both passes for dependence: no knot is spared if it need not.
    basis = less_block_means(spline_basis(mean, n_knots=10 if large else 4), blocks)
    targets = less_block_means(np.stack([spread, y], axis=1), blocks)
    targets -= basis @ np.linalg.lstsq(basis, targets, rcond=1e-6)[0]
    x, residual = targets.T
    if min(x.std(), residual.std()) <= 1e-9:
        return HypothesisTest(0.0, 1.0)
    # Less their mean, n residuals have 1 − 1/n of their variance.
    count = np.bincount(blocks)[blocks]
    squares = residual**2 * count / np.maximum(count - 1, 1)
    centre = 1 - 2 * mean
    seen, rank = _score_statistic(x, residual, squares, centre)
    if rank == 0:
        return HypothesisTest(0.0, 1.0)
    if large and min(y.sum(), len(y) - y.sum()) >= MIN_OF_CLASS:
        # A statistic may be so large that its p-value underflows.
        p_value = float(max(chi2.sf(seen, rank), np.finfo(np.float64).tiny))
        return HypothesisTest(float(seen), p_value)
    by_block = np.argsort(blocks, kind="stable")

    def statistic(uniform: np.ndarray) -> np.ndarray:
        # One permutation for each row, which keeps every sample in its block.
        permuted = np.empty_like(uniform)
        permuted[:, by_block] = x[np.argsort(uniform + blocks, axis=1)]
        return _score_statistic(permuted, residual, squares, centre)[0]

    seen = float(seen)
    return among(statistic, seen, seen * (1 - 1e-9), len(y), len(y), n_resamples, random_state)


def _score_statistic(
    x: np.ndarray, residual: np.ndarray, squares: np.ndarray, centre: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return Rᵀ C⁺ R with R = Σ ε·(x, x·centre) and C = Σ ε²·(...), and the rank of C.

    Of ``x`` there may be many, one a row.
    """
    product = x * residual
    score = np.stack([product.sum(axis=-1), product @ centre], axis=-1)
    terms = x**2 @ (squares[:, None] * centre[:, None] ** np.arange(3))
    covariance = np.stack([terms[..., :2], terms[..., 1:]], axis=-2)
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-10 * values[..., -1:]
    along = np.einsum("...ji,...j->...i", vectors, score)
    parts = np.divide(along**2, values, out=np.zeros_like(along), where=kept)
    return parts.sum(axis=-1), kept.sum(axis=-1)


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


def among(
    statistic: Callable[[np.ndarray], np.ndarray],
    seen: float,
    least: float,
    n_columns: int,
    n_samples: int,
    n_resamples: int,
    seed: int,
) -> HypothesisTest:
    """Return the p-value of what is seen among statistics of rows of uniform numbers."""
    generator = np.random.default_rng(seed)
    n_larger, step = 0, max(1, BLOCK_SIZE // n_samples)
    for start in range(0, n_resamples, step):
        uniform = generator.random((min(step, n_resamples - start), n_columns))
        n_larger += int(np.count_nonzero(statistic(uniform) >= least))
    return HypothesisTest(seen, (1 + n_larger) / (n_resamples + 1))


def _calibration_test(
    sample: Sample, labels: np.ndarray, groups: np.ndarray | None, n_resamples: int, seed: int
) -> HypothesisTest:
    """Return the test over bins by labels drawn anew, or by random signs of groups."""
    n_resamples = check_positive_integer(n_resamples, name="n_resamples")
    if groups is None:
        return _redraw_test(sample.y, sample.mean, labels, n_resamples, seed)
    b = GroupedBins(sample.y, sample.mean, labels, groups)
    size = np.bincount(groups)
    alone = (size == 1)[b.of_group]
    # Of groups of one sample; of others it is not used.
    p = (np.bincount(groups, weights=sample.mean) / size)[b.of_group]
    seen = float(b.w @ b.squared_error)

    def statistic(uniform: np.ndarray) -> np.ndarray:
        uniform = uniform[:, b.of_group]
        flipped = np.where(uniform < 0.5, b.sums, -b.sums)
        cells = np.where(alone, (uniform < p) - p, flipped)
        return (b.of_bins(cells) ** 2 - b.of_bins(cells**2)) @ (b.w / b.pairs)

    least = seen - 1e-12 * abs(seen)
    return among(statistic, seen, least, len(size), len(labels), n_resamples, seed)


def _redraw_test(
    y: np.ndarray, mean: np.ndarray, labels: np.ndarray, n_resamples: int, seed: int
) -> HypothesisTest:
    # In the order of bins and means, so that draws do not depend on that of the samples.
    order = np.lexsort((mean, labels))
    order = order[np.bincount(labels)[labels[order]] > 1]
    if len(order) == 0:
        raise ValueError("every sample is alone in its bin: use fewer bins")
    y, mean, labels = y[order], mean[order], labels[order]
    starts = np.flatnonzero(np.diff(labels, prepend=-1))
    n = np.diff(starts, append=len(order))
    shares = 1 / (len(order) * (n - 1.0))

    def statistic(drawn: np.ndarray) -> np.ndarray:
        error = drawn - mean
        of_pairs = np.add.reduceat(error, starts, axis=1) ** 2
        of_pairs -= np.add.reduceat(np.square(error, out=error), starts, axis=1)
        # Not a product of BLAS, whose sums depend on the number of threads and of rows.
        return np.einsum("rb,b->r", of_pairs, shares)

    seen = float(statistic(y[None])[0])
    # Equal labels must count as equal although sums are rounded, and terms cancel.
    least = seen - 1e-12 * max(abs(seen), float(n.max()))
    size = len(order)
    return among(lambda u: statistic(u < mean), seen, least, size, size, n_resamples, seed)
