"""The expected epistemic calibration error, what it is made of, and the truth behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._sample import Sample, as_sample
from epistemic_calibration.metrics._validation import (
    check_hypotheses,
    check_probabilities,
    check_uncertainty,
    row_blocks,
)
from epistemic_calibration.metrics.binning import Binning, group_equal_rows, row_moments


@dataclass(frozen=True)
class BinStatistics:
    """What happens in each bin; every array has shape (n_bins,)."""

    count: np.ndarray  # number of samples |B_m|
    accuracy: np.ndarray  # acc_m, frequency of the positive class
    confidence: np.ndarray  # mean prediction, the mean of conf_{j,m} over hypotheses
    trust: np.ndarray  # mean epistemic uncertainty, reported or variance
    variance: np.ndarray  # mean variance of the hypotheses
    calibration: np.ndarray  # g_m², g_m = acc_m − confidence_m
    dispersion: np.ndarray  # W_m, mean over hypotheses of the variance in the bin of h_j − Δ
    gap: np.ndarray  # (1/H) Σ_j (acc_m − conf_{j,m})² − trust_m, signed


@dataclass(frozen=True)
class EECEParts:
    """EECE and its parts, in total and in each bin.

    In every bin gap = calibration − dispersion + (variance − trust), and EECE is the
    weighted mean of |gap|.
    """

    eece: float  # equation 9 of the paper
    calibration: float  # Σ w_m g_m²: error of the mean prediction, noise of the labels included
    #: Σ w_m W_m: scatter of the hypotheses around their mean that the bins average away. It says
    #: nothing about labels.
    dispersion: float
    reporting: float  # Σ w_m (variance_m − trust_m): 0 unless the method reports its own
    #: What ``calibration`` would be on average for a calibrated method: Σ_m mean_m(Δ(1 − Δ))/N.
    noise_floor: float
    bins: BinStatistics


def expected_epistemic_calibration_error(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    n_bins: int = 100,
    binning: Binning = "kmeans",
    random_state: int = 0,
    bins: ArrayLike | None = None,
) -> float:
    """Return the expected epistemic calibration error, EECE (paper, equation 9).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), labels in {0, 1}
        Or a `Sample`, which takes the place of the hypotheses and of the reported uncertainty
        as well.
    hypotheses : array-like of shape (n_samples, n_hypotheses)
        h_j(x_n), estimates of P(Y = 1 | x_n) in [0, 1].
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        What the method reports, >= 0; by default the variance of the hypotheses (ddof 0).
    n_bins, binning, random_state
        As in :func:`assign_bins`. With ``sorted_kmeans`` and ``nested`` the hypotheses are
        sorted at each input, i.e. conf_j is that of the j-th smallest: like the bins, EECE
        then depends on the predictive law only, not on how its hypotheses are numbered.
    bins : array-like of int, shape (n_samples,), optional
        Bins made before by :func:`assign_bins`. Then ``n_bins`` and ``random_state`` are
        not used, and ``binning`` determines only whether the hypotheses are sorted.

    Returns
    -------
    float
        Σ_m |B_m|/N · |(1/H) Σ_j (acc_m − conf_{j,m})² − trust_m|.

    Raises
    ------
    ValueError
        If labels are not 0 and 1, hypotheses are not in [0, 1], lengths differ, or the
        binning is unknown.

    References
    ----------
    Hoarau, arXiv 2606.10777, equation 9.

    Examples
    --------
    In one bin the frequency is 1/2, the two hypotheses are 0.25 and 0.75 on average, and their
    variance is 0.0625: EECE = |0.0625 - 0.0625|.

    >>> from epistemic_calibration import metrics
    >>> hypotheses = [[0.25, 0.75], [0.25, 0.75]]
    >>> metrics.expected_epistemic_calibration_error([0, 1], hypotheses, n_bins=1)
    0.0
    >>> metrics.expected_epistemic_calibration_error([1, 1], hypotheses, n_bins=1)
    0.25
    """
    return decompose_eece(
        y_true,
        hypotheses,
        epistemic_uncertainty=epistemic_uncertainty,
        n_bins=n_bins,
        binning=binning,
        random_state=random_state,
        bins=bins,
    ).eece


def decompose_eece(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    n_bins: int = 100,
    binning: Binning = "kmeans",
    random_state: int = 0,
    bins: ArrayLike | None = None,
) -> EECEParts:
    """Return EECE with the parts that it is made of.

    With e = y − Δ and d_j = h_j − Δ, in every bin, exactly,

        (1/H) Σ_j (acc − conf_j)² − trust = g² − W + (variance − trust),

    g the mean of e and W the mean over j of the variance of d_j (both in the bin, ddof 0).

    Parameters and errors as in :func:`expected_epistemic_calibration_error`.

    Examples
    --------
    All labels are 1, so the mean of 1/2 misses their frequency by 1/2 (g² = 1/4), but EECE is
    smaller: W, the scatter of the hypotheses that the bin averages away, cancels part of g².

    >>> from epistemic_calibration import metrics
    >>> parts = metrics.decompose_eece([1, 1, 1], [[0, 1], [0.5, 0.5], [1, 0]], n_bins=1)
    >>> parts.calibration, round(parts.dispersion, 4), round(parts.eece, 4)
    (0.25, 0.1667, 0.0833)
    """
    sample = as_sample(y_true, hypotheses, epistemic_uncertainty)
    if binning not in get_args(Binning):
        raise ValueError(f"binning must be one of {get_args(Binning)}, got {binning!r}")
    labels = sample.bins(n_bins=n_bins, binning=binning, random_state=random_state, given=bins)
    y, mean, hypotheses = sample.y, sample.mean, sample.hypotheses
    n_hypotheses = hypotheses.shape[1]
    in_order = binning in ("sorted_kmeans", "nested")
    count, order = np.bincount(labels), np.argsort(labels, kind="stable")

    def in_bins(values: np.ndarray) -> np.ndarray:
        return np.bincount(labels, weights=values) / count

    # Means in the bins of h_j, and of d_j = h_j − Δ, which are then 0 where d_j is.
    confidences, centres = np.zeros((2, len(count), n_hypotheses))
    for index, rows in _blocks(hypotheses, order, in_order):
        of_bin = labels[index]
        starts = np.flatnonzero(np.diff(of_bin, prepend=-1))
        confidences[of_bin[starts]] += np.add.reduceat(rows, starts, axis=0)
        rows -= mean[index, None]
        centres[of_bin[starts]] += np.add.reduceat(rows, starts, axis=0)
    confidences /= count[:, None]
    centres /= count[:, None]
    squares = np.empty(len(y))
    for index, rows in _blocks(hypotheses, order, in_order):
        rows -= mean[index, None]
        rows -= centres[labels[index]]
        squares[index] = np.einsum("nj,nj->n", rows, rows)

    gaps = in_bins(y)[:, None] - confidences
    statistics = BinStatistics(
        count=count,
        accuracy=in_bins(y),
        confidence=in_bins(mean),
        trust=in_bins(sample.uncertainty),
        variance=in_bins(sample.variance),
        calibration=in_bins(y - mean) ** 2,
        dispersion=in_bins(squares) / n_hypotheses,
        gap=np.einsum("mj,mj->m", gaps, gaps) / n_hypotheses - in_bins(sample.uncertainty),
    )

    weights = count / len(y)
    return EECEParts(
        eece=float(weights @ np.abs(statistics.gap)),
        calibration=float(weights @ statistics.calibration),
        dispersion=float(weights @ statistics.dispersion),
        reporting=float(weights @ (statistics.variance - statistics.trust)),
        noise_floor=float(in_bins(mean * (1 - mean)).sum() / len(y)),
        bins=statistics,
    )


def true_epistemic_calibration_error(
    p_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
) -> float:
    """Return the true epistemic calibration error, TECE, where P(Y = 1 | x) is known.

    The mean over samples of |(1/H) Σ_j (r(x) − h_j(x))² − EU(x)|, where r = P(Y = 1 | Π(X)) is the
    mean of ``p_true`` over the samples with the same row of hypotheses: a forest is constant on
    cells and is not at fault for what varies inside one. Rows in float64 that agree to 12
    decimals are the same. Where EU is the variance of the hypotheses this is the mean of (r − Δ)².

    Parameters
    ----------
    p_true : array-like of shape (n_samples,)
        P(Y = 1 | x_n) in [0, 1], e.g. of a toy distribution.
    hypotheses, epistemic_uncertainty
        As in :func:`expected_epistemic_calibration_error`.

    References
    ----------
    Hoarau, arXiv 2606.10777, proposition 1 (EU the variance).

    Examples
    --------
    >>> from epistemic_calibration import metrics
    >>> metrics.true_epistemic_calibration_error([0.25, 0.75], [[0.25, 0.75], [0.5, 1.0]])
    0.03125
    """
    p_true = check_probabilities(p_true, name="p_true")
    hypotheses = check_hypotheses(hypotheses, n_samples=len(p_true))
    prediction, variance = row_moments(hypotheses)
    uncertainty = (
        variance
        if epistemic_uncertainty is None
        else check_uncertainty(epistemic_uncertainty, n_samples=len(p_true))
    )
    # 0.1 + 0.2 and 0.3 are one prediction. Not so in 32 bits, which have no 12 digits.
    rounded = np.round(hypotheses, 12) if hypotheses.dtype == np.float64 else hypotheses
    rows = group_equal_rows(rounded)
    p_true = (np.bincount(rows, weights=p_true) / np.bincount(rows))[rows]
    return float(np.mean(np.abs((p_true - prediction) ** 2 + (variance - uncertainty))))


def _blocks(
    hypotheses: np.ndarray, order: np.ndarray, in_order: bool
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield indices and rows in float64 of samples in the order of their bins."""
    for block in row_blocks(hypotheses):
        rows = hypotheses[order[block]]
        if in_order:
            rows.sort(axis=1)
        yield order[block], rows.astype(np.float64)
