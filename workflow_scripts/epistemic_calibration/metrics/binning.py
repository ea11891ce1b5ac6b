"""Partitions of the joint prediction space [0, 1]^H."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._validation import (
    check_hypotheses,
    check_positive_integer,
    row_blocks,
)

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Binning = Literal["kmeans", "sorted_kmeans", "nested", "quantile", "grid"]

#: Rows on which K-means places its centres; more rows are assigned to these centres.
MAX_KMEANS_ROWS = 20_000
#: Rows that are assigned at once: a multiple of those that scikit-learn multiplies at once.
_BLOCK_ROWS = 1 << 14

#: A mean that at least so many samples share, and this fraction of all, is a coarse bin.
MIN_REPEATS, MIN_REPEATED_FRACTION = 10, 1 / 500


def assign_bins(
    hypotheses: ArrayLike,
    *,
    n_bins: int = 100,
    binning: Binning = "kmeans",
    random_state: int = 0,
) -> np.ndarray:
    """Return the bin of every sample; bins are built from the hypotheses, never from labels.

    Parameters
    ----------
    hypotheses : array-like of shape (n_samples, n_hypotheses)
        h_j(x_n) in [0, 1].
    n_bins : int, default 100
        Number of bins aimed at: fewer where there are fewer samples, or fewer distinct
        rows. For ``grid``, the number of intervals on every axis.
    binning : {"kmeans", "sorted_kmeans", "nested", "quantile", "grid"}, default "kmeans"
        - ``kmeans``: K-means on the rows (paper, appendix B.2), one run of scikit-learn's
          k-means++. Above 20 000 rows the centres come from a random 20 000 of them.
        - ``sorted_kmeans``: K-means on the sorted rows. The squared distance of sorted rows
          is H times the squared Wasserstein-2 distance of the predictive laws, so the bins
          do not depend on how the hypotheses are numbered at each input.
        - ``nested``: coarse bins of the row mean Δ, and within each K-means on the sorted rows
          minus their mean, i.e. on spread and shape, in cbrt(n_bins) clusters. Coarse bins
          hold the same sum of sqrt(Δ(1 − Δ)), for where predictions are nearly certain there
          is little to see. A mean that at least 10 samples share, and one in 500, is a coarse
          bin of its own; with many such means there are more than ``n_bins`` bins.
        - ``quantile``: quantiles of the row mean, and within each those of the row's
          standard deviation, as many of one as of the other.
        - ``grid``: cells of a Cartesian product of intervals; only cells with samples exist.
    random_state : int, default 0
        Seed of K-means. It takes samples in an order of their rows, so that bins do not
        depend on the order of the samples.

    Returns
    -------
    ndarray of int, shape (n_samples,)
        Labels 0, 1, ..., each of them used.

    Raises
    ------
    ValueError
        If ``hypotheses`` are not in [0, 1], ``n_bins`` is not an integer >= 1, or
        ``binning`` is unknown.

    References
    ----------
    Hoarau, arXiv 2606.10777, appendix B.2 (``kmeans``).

    Examples
    --------
    Only some partitions see that the first two rows are the same hypotheses in another order.

    >>> from epistemic_calibration import metrics
    >>> hypotheses = [[0.1, 0.5], [0.5, 0.1], [0.9, 0.9]]
    >>> len(set(metrics.assign_bins(hypotheses)))
    3
    >>> len(set(metrics.assign_bins(hypotheses, binning="sorted_kmeans")))
    2
    """
    rows = Rows(check_hypotheses(hypotheses))
    return rows.assigned(n_bins=n_bins, binning=binning, random_state=random_state)


class Rows:
    """Checked hypotheses, with moments and order of their rows, which are made only once."""

    def __init__(self, hypotheses: np.ndarray) -> None:
        self.hypotheses = hypotheses

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        return row_moments(self.hypotheses)

    @property
    def mean(self) -> np.ndarray:
        # In [0, 1] without clipping: rounding is monotone, and the mean of ones is exactly 1.
        return self._moments[0]

    @property
    def variance(self) -> np.ndarray:
        return self._moments[1]

    @cached_property
    def order(self) -> np.ndarray:
        """Their canonical order, as `canonical_order` returns it of exchangeable hypotheses."""
        order = canonical_order(self.hypotheses, *self._moments)
        order.setflags(write=False)
        return order

    def assigned(self, *, n_bins: int, binning: Binning, random_state: int) -> np.ndarray:
        """Return `assign_bins`."""
        n_bins = check_positive_integer(n_bins, name="n_bins")
        if binning in ("kmeans", "sorted_kmeans"):
            in_order = binning == "sorted_kmeans"
            samples = self.order
            if not in_order:
                samples = canonical_order(self.hypotheses, *self._moments, exchangeable=False)

            def rows_of(samples: np.ndarray) -> np.ndarray:
                return _rows(self.hypotheses, samples, in_order=in_order)

            labels = np.empty(len(samples), dtype=np.intp)
            labels[samples] = _kmeans(rows_of, samples, n_bins, random_state)
        elif binning == "nested":
            options = {"n_bins": n_bins, "random_state": random_state}
            labels = nested_bins(self.hypotheses, self.mean, self.order, **options)[1]
        elif binning == "quantile":
            n_per_axis = max(1, round(np.sqrt(n_bins)))
            labels = n_per_axis * quantile_bins(self.mean, n_per_axis)
            for k in np.unique(labels):
                inside = labels == k
                labels[inside] += quantile_bins(np.sqrt(self.variance[inside]), n_per_axis)
        elif binning == "grid":
            labels = group_equal_rows(equal_width_bins(self.hypotheses, n_bins))
        else:
            raise ValueError(f"binning must be one of {get_args(Binning)}, got {binning!r}")
        return np.unique(labels, return_inverse=True)[1]


def group_equal_rows(rows: np.ndarray) -> np.ndarray:
    """Return a label for every row, shape (n_rows,): equal rows have equal labels."""
    # Adding 0 turns -0.0 into 0.0, which is equal but has other bytes.
    rows = np.ascontiguousarray(rows + np.zeros((), dtype=rows.dtype))
    as_bytes = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))
    return np.unique(as_bytes.ravel(), return_inverse=True)[1]


def row_moments(hypotheses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and population variance (ddof 0) of every row in float64."""
    mean, variance = np.empty(len(hypotheses)), np.empty(len(hypotheses))
    for block in row_blocks(hypotheses):
        rows = hypotheses[block].astype(np.float64)
        mean[block] = rows.mean(axis=1)
        rows -= mean[block, None]
        variance[block] = np.einsum("nj,nj->n", rows, rows) / rows.shape[1]
    return mean, variance


def quantile_bins(values: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the quantile bin in 0, ..., n_bins - 1 of every value; ties share a bin."""
    from scipy.stats import rankdata

    # Rounding keeps ties together that differ by the order of a sum.
    rank = rankdata(np.round(values, 12), method="average") - 0.5
    return np.floor(rank * n_bins / len(values)).astype(np.intp)


def equal_width_bins(values: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the bin of every value among [0, 1/M), ..., [1 − 1/M, 1], M = ``n_bins``."""
    # Not np.linspace, which has 3/10 a little above 0.3.
    inner_edges = (np.arange(1, n_bins) / n_bins).astype(np.result_type(values, np.float32))
    if inner_edges.dtype == np.float64:
        # 1 − 0.9 is a little below 0.1, and belongs with it.
        inner_edges, values = np.round(inner_edges, 12), np.round(values, 12)
    return np.searchsorted(inner_edges, values, side="right")


def canonical_order(
    hypotheses: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    *,
    exchangeable: bool = True,
) -> np.ndarray:
    """Return an order of the samples that does not depend on the one they are given in.

    It is also the same for 1 − h; rows are compared as sets if ``exchangeable``. K-means and folds
    follow it, for their seeds stand for positions.
    """
    flipped = _most_are_high(mean)
    # In float32, where the order of a sum does not show; ties are broken by what follows.
    keys = (variance.astype(np.float32), (1 - mean if flipped else mean).astype(np.float32))
    order = np.lexsort(keys)
    first, second = order[:-1], order[1:]
    tied = np.all([key[first] == key[second] for key in keys], axis=0)
    if not tied.any():
        return order
    among = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
    rows = hypotheses[order[among]].astype(np.float64)
    rows = 1 - rows if flipped else rows
    rows = np.sort(rows, axis=1) if exchangeable else rows[:, np.argsort(hypotheses.mean(axis=0))]
    runs = np.cumsum(np.append(True, ~tied))[among]
    order[among] = order[among][np.lexsort((group_equal_rows(rows), runs))]
    return order


def _most_are_high(mean: np.ndarray) -> bool:
    # Rounded, since the sum depends on the order of the samples.
    return bool(np.round(mean.mean() - 0.5, 12) > 0)


def repeated_means(mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a label for every mean, increasing with it, and which labels repeat often."""
    # Rounding keeps ties together that differ by the order of a sum.
    _, labels, counts = np.unique(np.round(mean, 12), return_inverse=True, return_counts=True)
    return labels, counts >= max(MIN_REPEATS, MIN_REPEATED_FRACTION * len(mean))


def coarse_bins(mean: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the coarse bins, of the row mean, that `nested_bins` divides (see `assign_bins`)."""
    if _most_are_high(mean):
        mean = 1 - mean
    n_shapes = _n_shapes(n_bins)
    labels, repeats = repeated_means(mean)
    own = repeats[labels]
    shared = np.flatnonzero(~own)
    coarse = labels + n_bins
    if len(shared) > 0:
        least = 2 * n_shapes
        n_shared = max(1, min(n_bins // n_shapes, len(shared) // least))
        coarse[shared] = _bins_of_equal_mass(labels[shared], mean[shared], n_shared, least)
    if len(shared) == 1 and own.any():
        coarse[shared] = coarse[own][np.abs(mean[own] - mean[shared]).argmin()]
    return np.unique(coarse, return_inverse=True)[1]


def _bins_of_equal_mass(
    labels: np.ndarray, mean: np.ndarray, n_bins: int, least: int
) -> np.ndarray:
    """Return bins of equal sums of sqrt(Δ(1 − Δ)) and ``least`` samples; equal labels share one."""
    # Predictions of exactly 0 or 1 have no mass but must have a place.
    mass = np.bincount(labels, weights=np.sqrt(mean * (1 - mean)) + 1e-12)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    # The middle of the last may be rounded to 1.
    bins = np.minimum(np.floor(middle * n_bins), n_bins - 1).astype(np.intp)[labels]
    counts = np.bincount(bins, minlength=n_bins)
    merged = np.arange(n_bins)
    kept = np.flatnonzero(counts).tolist()
    counts = counts.tolist()
    while len(kept) > 1:
        i = min(range(len(kept)), key=lambda i: counts[kept[i]])
        if counts[kept[i]] >= least:
            break
        beside = [k for k in (i - 1, i + 1) if 0 <= k < len(kept)]
        other = min(beside, key=lambda k: counts[kept[k]])
        counts[kept[other]] += counts[kept[i]]
        merged[merged == kept[i]] = kept[other]
        del kept[i]
    return merged[bins]


def _n_shapes(n_bins: int) -> int:
    return int(np.cbrt(n_bins) + 1e-9)


def nested_bins(
    hypotheses: np.ndarray,
    mean: np.ndarray,
    order: np.ndarray,
    *,
    n_bins: int,
    random_state: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return coarse bins of the row means and, within them, fine bins of two samples or more."""
    n_shapes = _n_shapes(n_bins)
    coarse = coarse_bins(mean, n_bins)
    fine = np.empty(len(mean), dtype=np.intp)
    # Stable: each coarse bin keeps the canonical order.
    order = order[np.argsort(coarse[order], kind="stable")]

    def shapes_of(samples: np.ndarray) -> np.ndarray:
        rows = _rows(hypotheses, samples, in_order=True)
        rows -= mean[samples, None]
        # Constant rows that differ by the rounding of their mean are one shape.
        return np.round(rows, 12, out=rows)

    for inside in np.split(order, np.flatnonzero(np.diff(coarse[order])) + 1):
        labels = _kmeans(shapes_of, inside, n_shapes, random_state)
        if (np.bincount(labels) == 1).any():
            labels = merge_singletons(shapes_of(inside), labels)
        fine[inside] = coarse[inside] * n_shapes + labels
    return coarse, fine


def _rows(hypotheses: np.ndarray, samples: np.ndarray, *, in_order: bool) -> np.ndarray:
    """Return a copy, in float64, of the rows of some samples, each in ascending order if asked."""
    rows = hypotheses[samples]
    if in_order:
        # In the type that they have, of which sorting is faster than of float64.
        rows.sort(axis=1)
    return rows.astype(np.float64, copy=False)


def merge_singletons(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return bins in which those of one row have joined the nearest other, if there is one."""
    alone = np.flatnonzero(np.bincount(labels)[labels] == 1)
    if len(alone) == 0:
        return labels
    others = np.unique(np.delete(labels, alone))
    if len(others) == 0:
        return np.zeros_like(labels)
    centres = np.stack([rows[labels == m].mean(axis=0) for m in others])
    merged = labels.copy()
    for n in alone:
        merged[n] = others[((rows[n] - centres) ** 2).sum(axis=1).argmin()]
    return merged


def _kmeans(
    rows_of: Callable[[np.ndarray], np.ndarray],
    samples: np.ndarray,
    n_bins: int,
    random_state: int,
) -> np.ndarray:
    """Return the bin of every one of ``samples``, whose rows ``rows_of`` returns in float64."""
    from sklearn import config_context
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    few = len(samples) <= MAX_KMEANS_ROWS
    # As a rule a few rows show that more than so many differ.
    if group_equal_rows(rows_of(samples[: 2 * n_bins])).max() < n_bins:
        groups = group_equal_rows(rows_of(samples))
        if groups.max() < n_bins:
            return groups
    placing = samples
    if not few:
        generator = np.random.default_rng(random_state)
        placing = samples[generator.choice(len(samples), MAX_KMEANS_ROWS, replace=False)]
    rows = rows_of(placing)
    # Checks of a call take as long as K-means of a few hundred rows, and all has been checked.
    checked = config_context(assume_finite=True, skip_parameter_validation=True)
    # Several threads add up the centres in an order that changes from run to run.
    with checked, _threads().limit(limits=1), warnings.catch_warnings():
        # Rows that differ by rounding only give fewer clusters than asked for: no fault here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Elkan's way to the same centres takes less time than Lloyd's if there are many rows.
        model = KMeans(
            n_bins,
            init="k-means++",
            n_init=1,
            algorithm="lloyd" if few or n_bins == 1 else "elkan",
            random_state=random_state,
        ).fit(rows)
        if few:
            return model.labels_
        starts = range(0, len(samples), _BLOCK_ROWS)
        return np.concatenate(
            [model.predict(rows_of(samples[i : i + _BLOCK_ROWS])) for i in starts]
        )


@cache
def _threads() -> ThreadpoolController:
    """Return the thread pools of the libraries loaded, whose search is slow."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
