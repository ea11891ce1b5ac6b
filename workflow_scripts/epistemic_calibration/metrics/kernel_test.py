"""A test of epistemic calibration without bins."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._sample import Sample, as_sample
from epistemic_calibration.metrics._validation import BLOCK_SIZE, check_positive_integer
from epistemic_calibration.metrics.binning import canonical_order
from epistemic_calibration.metrics.calibration_tests import HypothesisTest

Features = Literal["rows", "moments"]

#: Samples whose median distances are the units.
_N_FOR_SCALE = 1000


def kernel_calibration_test(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    features: Features = "rows",
    n_resamples: int = 999,
    max_samples: int = 5000,
    random_state: int = 0,
) -> HypothesisTest:
    """Test that the predictor is epistemically calibrated, E[Y | Π] = Δ, by a kernel.

    The statistic is the squared kernel calibration error (Widmann et al., 2019), the mean of
    e_i e_k k(Π_i, Π_k) over pairs of different samples, e = y − Δ. Its mean is 0 under the
    hypothesis, and above 0 wherever E[e | Π] is not 0. The kernel is (exp(−d) + exp(−4d))/2,
    d² = a²/median(a)² + b²/median(b)², where a and b are the distances of two predictive
    laws in mean and around the mean. Under the hypothesis labels are Bernoulli(Δ) given the
    predictions, so they are drawn anew, and the p-value
    (1 + #{drawn >= seen}) / (n_resamples + 1) is exact for any number of samples.

    Parameters
    ----------
    y_true, hypotheses
        As in :func:`corrected_epistemic_calibration_error`.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        Reported by the method, >= 0, for ``moments``; by default the variance of the hypotheses.
    features : {"rows", "moments"}, default "rows"
        - ``rows``: b is the Wasserstein-2 distance of the laws less their means, i.e. that
          of the sorted rows of h_j − Δ over √H: it sees spread and shape.
        - ``moments``: b is the difference of √EU: it sees the spread only, but better.
    n_resamples : int >= 1, default 999
    max_samples : int >= 2, default 5000
        Of more samples, so many are tested, evenly spaced in the order of their predictions: time
        grows with the square (5000 samples and 100 hypotheses take some ten seconds).
    random_state : int, default 0
        Seed of the labels drawn. It stands for samples in an order of their predictions, so that
        the order in which they are given does not matter.

    Returns
    -------
    HypothesisTest
        ``statistic`` is signed, and at most TECE on average; it depends on the kernel, and so
        does not measure the size of the error.

    Raises
    ------
    ValueError
        If labels are not 0 and 1, hypotheses are not in [0, 1], lengths differ, there are
        fewer than two samples, or ``features`` is unknown.

    Notes
    -----
    With d the plain distance of rows, b hardly counts beside a: at N = 1000, an error that goes
    with the spread is then found in a fifth of draws in place of nearly all. Of a and b,
    two scales find both smooth errors and those of few distinct rows.

    References
    ----------
    Widmann, Lindsten and Zachariah, 2019, "Calibration tests in multi-class classification: a
    unifying framework".

    Examples
    --------
    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> hypotheses = np.random.default_rng(0).beta(2, 2, (300, 5))
    >>> labels = np.arange(300) % 2
    >>> metrics.kernel_calibration_test(labels, np.full((300, 5), 0.5)).p_value
    1.0
    >>> metrics.kernel_calibration_test(np.ones(300), hypotheses).p_value
    0.001
    """
    sample = as_sample(y_true, hypotheses, epistemic_uncertainty)
    n_resamples = check_positive_integer(n_resamples, name="n_resamples")
    max_samples = check_positive_integer(max_samples, name="max_samples", minimum=2)
    if features not in get_args(Features):
        raise ValueError(f"features must be one of {get_args(Features)}, got {features!r}")
    if len(sample) < 2:
        raise ValueError("there must be two samples or more, got 1")
    # Equal predictions stand in the order of their labels, so that the subset is the same.
    by_label = np.argsort(sample.y, kind="stable")
    moments = (sample.mean[by_label], sample.uncertainty[by_label])
    order = by_label[canonical_order(sample.hypotheses[by_label], *moments)]
    kept = order[_evenly(len(order), max_samples)]
    mean = sample.mean[kept]
    if features == "rows":
        around = np.sort(sample.hypotheses[kept].astype(np.float64), axis=1) - mean[:, None]
        around /= np.sqrt(around.shape[1])
    else:
        around = np.sqrt(sample.uncertainty[kept])[:, None]
    some = _evenly(len(kept), _N_FOR_SCALE)
    parts = (mean[:, None], around)
    points = np.concatenate([part / _median_distance(part[some]) for part in parts], axis=1)
    drawn = np.random.default_rng(random_state).random((n_resamples, len(kept))) < mean
    errors = np.concatenate([sample.y[kept][None], drawn]) - mean
    squares = np.einsum("rn,rn->r", errors, errors)
    pairs = len(kept) * (len(kept) - 1.0)
    values = (_quadratic_form(points, errors) - squares) / pairs
    # Equal labels must count as equal although sums are rounded.
    tolerance = 1e-11 * squares[0] / pairs
    n_larger = int(np.count_nonzero(values[1:] >= values[0] - tolerance))
    return HypothesisTest(float(values[0]), (1 + n_larger) / (n_resamples + 1))


def _evenly(n: int, most: int) -> np.ndarray:
    """Return at most so many of n positions, from the first to the last."""
    return np.arange(n) if n <= most else (np.arange(most) * n) // most


def _median_distance(points: np.ndarray) -> float:
    from scipy.spatial.distance import pdist

    distances = pdist(points)
    # Equal predictions, of which forests have many, say nothing of the scale.
    distances = distances[distances > 1e-12]
    return float(np.median(distances)) if len(distances) else 1.0


def _quadratic_form(points: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return Σ_ik e_i e_k k(i, k) of every row of errors, a block of the kernel at a time."""
    from scipy.spatial.distance import cdist

    result = np.zeros(len(errors))
    step = max(1, BLOCK_SIZE // len(points))
    for start in range(0, len(points), step):
        block = slice(start, start + step)
        wide = np.exp(-cdist(points[block], points))
        kernel = (wide + np.square(np.square(wide))) / 2
        result += np.einsum("rb,rb->r", errors @ kernel.T, errors[:, block])
    return result
