"""Groups of samples that are independent of each other, whatever happens within them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._bins import variance_of_one_class
from epistemic_calibration.metrics._sample import Sample
from epistemic_calibration.metrics.binning import coarse_bins, group_equal_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def check_groups(groups: ArrayLike | None, kept: np.ndarray) -> np.ndarray:
    """Return the group 0, 1, ... of every input kept, at least two."""
    if groups is None:
        labels = np.arange(np.count_nonzero(kept))
    else:
        groups = np.asarray(groups)
        if groups.shape != kept.shape:
            raise ValueError(
                f"groups must have shape ({len(kept)},), one for each input, got {groups.shape}"
            )
        if groups.dtype.kind == "f" and np.isnan(groups).any():
            raise ValueError("groups must not be NaN: inputs of unknown group would be one group")
        labels = np.unique(groups[kept], return_inverse=True)[1]
    if labels.max() < 1:
        raise ValueError("there must be two inputs, or groups of them, or more: got 1")
    return labels


def groups_of_samples(groups: ArrayLike | None, n_samples: int) -> np.ndarray | None:
    """Return the group 0, 1, ... of every sample, or None where each is a group of its own."""
    if groups is None:
        return None
    labels = check_groups(groups, np.ones(n_samples, dtype=bool))
    return labels if labels.max() + 1 < n_samples else None


def distinct_inputs(
    hypotheses: np.ndarray, groups: np.ndarray | None
) -> tuple[np.ndarray | slice, np.ndarray | slice]:
    """Return one sample of each row of hypotheses in a group, and of which each sample is a copy.

    Bins are made of these: copies would else be bins of their own, of one group.
    """
    if groups is None:
        return slice(None), slice(None)
    rows = group_equal_rows(hypotheses.reshape(len(hypotheses), -1))
    keys = groups * (rows.max() + 1) + rows
    return np.unique(keys, return_index=True, return_inverse=True)[1:]


def nested_bins_of_groups(
    sample: Sample, groups: np.ndarray, n_bins: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return coarse and fine ``nested`` bins of the `distinct_inputs`."""
    first, copy = distinct_inputs(sample.hypotheses, groups)
    once = Sample(sample.y[first], sample.hypotheses[first])
    fine = once.bins(n_bins=n_bins, binning="nested", random_state=seed)
    return coarse_bins(once.mean, n_bins)[copy], fine[copy]


def group_sums(
    values: np.ndarray | float, labels: np.ndarray, groups: np.ndarray, n_groups: int, n_bins: int
) -> csr_array:
    """Return the sum of values of every group in every bin, a sparse (n_groups, n_bins)."""
    from scipy.sparse import coo_array

    values = np.broadcast_to(np.asarray(values, dtype=np.float64), labels.shape)
    return coo_array((values, (groups, labels)), shape=(n_groups, n_bins)).tocsr()


def form_of_pairs(sums: csr_array, shares: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return SᵀS of sums S_gu, and variance and third cumulant of Σ_u shares_u Σ_{g≠h} S_gu S_hu.

    Those are of sums without an error, as estimated from them.
    """
    products = (sums.T @ sums).toarray()
    of_pairs = products**2 - (sums.power(2).T @ sums.power(2)).toarray()
    variance = max(float(2 * shares @ of_pairs @ shares), 0.0)
    scaled = products * shares
    return products, variance, 8 * float(np.sum((scaled @ scaled) * scaled.T))


class GroupedBins:
    """What the bins with two groups or more, ``used``, say about the error e = y − Δ.

    A cell is what a group has in a bin; without groups it is one sample, and all is as in `Bins`.
    """

    used: np.ndarray  # which bins have two groups or more
    dropped_mass: float  # fraction of samples in bins of one group
    n: np.ndarray  # number of samples, weight, number of ordered pairs of different groups
    w: np.ndarray
    pairs: np.ndarray
    error: np.ndarray  # mean of e
    squared_error: np.ndarray  # mean of e_i e_k over ordered pairs of different groups
    starts: np.ndarray  # first cell of every bin; cells are in the order of the bins
    of_bin: np.ndarray  # of every cell: bin, group, number of samples, and sum of e
    of_group: np.ndarray
    size: np.ndarray
    sums: np.ndarray
    #: Sum in every cell of e less the mean of its bin, scaled so that the sum of squares in a bin
    #: has the mean that it has around the true mean; where all labels of a bin are the same, at
    #: least what they may hide, as if those of a cell always were.
    residual: np.ndarray

    def __init__(
        self, y: np.ndarray, mean: np.ndarray, labels: np.ndarray, groups: np.ndarray
    ) -> None:
        n_groups = int(groups.max()) + 1
        keys, cell = np.unique(labels * n_groups + groups, return_inverse=True)
        of_bin, of_group = np.divmod(keys, n_groups)
        size = np.bincount(cell)
        inside = np.bincount(of_bin)
        self.used = inside > 1
        if not self.used.any():
            reason = "sample" if len(keys) == len(y) else "group"
            raise ValueError(f"every {reason} is alone in its bin: use fewer bins")
        count = np.bincount(labels)
        self.dropped_mass = float(count[~self.used].sum() / len(y))
        kept = self.used[of_bin]
        self.of_bin = (np.cumsum(self.used) - 1)[of_bin[kept]]
        self.of_group, self.size = of_group[kept], size[kept]
        self.sums = np.bincount(cell, weights=y - mean)[kept]
        self.starts = np.flatnonzero(np.diff(self.of_bin, prepend=-1))
        self.n, inside = count[self.used], inside[self.used]
        self.w = self.n / self.n.sum()
        self.pairs = self.n**2.0 - self.of_bins(self.size**2.0)
        total = self.of_bins(self.sums)
        self.error = total / self.n
        self.squared_error = (total**2 - self.of_bins(self.sums**2)) / self.pairs

        positives = np.bincount(labels, weights=y)[self.used]
        noise = np.bincount(labels, weights=mean * (1 - mean))[self.used] / self.n
        one_class = (positives == 0) | (positives == self.n)
        least = variance_of_one_class(noise, inside, one_class)
        residual = self.sums - self.size * self.error[self.of_bin]
        residual *= np.sqrt(inside / (inside - 1))[self.of_bin]
        least = self.size * np.sqrt(least)[self.of_bin]
        self.residual = np.copysign(np.maximum(np.abs(residual), least), residual)

    def of_bins(self, cells: np.ndarray) -> np.ndarray:
        """Return sums over the cells of every bin, along the last axis."""
        return np.add.reduceat(cells, self.starts, axis=-1)
