"""Sums over bins of the error of several classes, e = onehot(y) − Δ."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from epistemic_calibration.metrics._bins import hidden_variance
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._groups import GroupedBins, form_of_pairs, group_sums
from epistemic_calibration.metrics._interval import Calibrated, smallest_detectable
from epistemic_calibration.metrics._within_bins import NO_GAIN, Gain
from epistemic_calibration.metrics.calibration_tests import HypothesisTest, among
from epistemic_calibration.metrics.corrected import CorrectedError, result_of_form

#: Bins times classes whose products of pairs are kept in memory.
_MAX_CELLS = 6000


class _Bin(NamedTuple):
    """What a bin of two samples or more says; Σ is the covariance of its errors."""

    n: int
    squared_error: float  # mean of e_i·e_k over ordered pairs
    plug_in: float  # ‖mean e‖²
    noise: float  # tr(T), T the sum of diag(Δ_i) − Δ_i Δ_iᵀ
    noise_of_pairs: float  # tr(T²) less the same of every sample
    noise_cubed: float  # about tr(T³) of three different samples
    pair_variance: float  # tr(Σ²)
    variance_in_error: float  # gᵀΣg, g the mean of e
    variance_in_noise: float  # tr(Σ²)/tr(Σ), the same for unit vectors g that lie as the noise


def canonical_over_bins(
    sample: ClassSample,
    labels: np.ndarray,
    level: float,
    groups: np.ndarray | None = None,
    gain: Gain = NO_GAIN,
) -> CorrectedError:
    """Return the corrected canonical error of checked bins and groups, and what is seen in them."""
    if groups is not None:
        return _over_groups(sample, labels, groups, level, gain)
    order = np.argsort(labels, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    members = [index for index in members if len(index) > 1]
    error, mean, y = sample.error(), sample.mean, sample.y
    n_one_class = sum(len(index) for index in members if (y[index] == y[index[0]]).all())
    parts = [_of_bin(error[index], mean[index], y[index], n_one_class) for index in members]
    if not parts:
        raise ValueError("every sample is alone in its bin: use fewer bins")
    b = _Bin(*(np.array(column) for column in zip(*parts, strict=True)))
    w, pairs, n_samples = b.n / b.n.sum(), b.n * (b.n - 1.0), int(b.n.sum())
    share = w / pairs
    estimate = float(w @ b.squared_error)
    variance_at_zero = float(w**2 @ (2 * b.pair_variance / pairs))
    # By how much the variance grows with the error, as the error lies in the bins and classes.
    mass = float(w @ np.maximum(b.squared_error, 0))
    directions = b.variance_in_error / mass if mass > 0 else b.variance_in_noise
    slope = float(4 * (w**2 / b.n) @ directions)
    return result_of_form(
        estimate=estimate + gain.estimate,
        plug_in=float(w @ b.plug_in),
        noise_floor=float(w @ (b.noise / b.n**2)),
        variance_at_zero=variance_at_zero + gain.variance,
        minimum_detectable=_detectable(
            sample,
            labels,
            level,
            2 * float(share**2 @ b.noise_of_pairs),
            8 * float(share**3 @ b.noise_cubed),
            # As variance_in_noise, but of Σ = T/n.
            float(4 * (w**2 / pairs) @ (b.noise_of_pairs / np.maximum(b.noise, 1e-300))),
        ),
        slope=slope,
        dropped_mass=1 - n_samples / len(labels),
        n_bins=len(parts),
        level=level,
    )


def _detectable(sample: ClassSample, labels: np.ndarray, level: float, *cumulants: float) -> float:
    """Return `smallest_detectable` of errors of √(t/2) in the predicted class and in the others."""
    variance, third, slope = cumulants
    top = sample.mean.max(axis=1)
    half = Calibrated(variance / 4, third / 8, slope / 2, top, labels)
    return 2 * smallest_detectable([half], level)


def _of_bin(error: np.ndarray, mean: np.ndarray, y: np.ndarray, n_one_class: int) -> _Bin:
    n = len(error)
    sums = error.sum(axis=0)
    squared_error = float((sums @ sums - np.einsum("nc,nc->", error, error)) / (n * (n - 1)))
    g = sums / n

    total = np.diag(mean.sum(axis=0)) - mean.T @ mean

    norm, cubes = np.einsum("nc,nc->n", mean, mean), np.sum(mean**3)
    own = float(norm.sum() - 2 * cubes + norm @ norm)

    residual = error - g
    seen = residual.T @ residual / (n - 1)
    used = _at_least_hidden(seen, total / n, y, n_one_class)
    trace = float(np.trace(used))
    square = float(np.vdot(used, used))
    # tr(S²) is larger than tr(Σ²), by the more the more classes there are. For two classes this
    # takes nothing off.
    pair_variance = square - (trace**2 - square) / (n - 1)
    # g gᵀ − S/n has mean E[e]E[e]ᵀ; its trace is squared_error.
    variance_in_error = max(float(g @ used @ g - np.vdot(used, seen) / n), 0.0)
    return _Bin(
        n=n,
        squared_error=squared_error,
        plug_in=float(g @ g),
        noise=float(np.trace(total)),
        noise_of_pairs=float(np.vdot(total, total)) - own,
        noise_cubed=float(np.vdot(total @ total, total)) * (n - 1) * (n - 2) / n**2,
        pair_variance=max(pair_variance, 0.0),
        variance_in_error=variance_in_error,
        variance_in_noise=max(pair_variance, 0.0) / trace if trace > 0 else 0.0,
    )


def _at_least_hidden(
    seen: np.ndarray, noise: np.ndarray, y: np.ndarray, n_one_class: int
) -> np.ndarray:
    """Return the covariance seen, or one that labels all the same may hide if it is larger.

    ``n_one_class`` is the number of samples of all such bins together.
    """
    if (y != y[0]).any():
        return seen
    variance = noise[y[0], y[0]]
    if variance <= 0:
        return seen
    together = hidden_variance(np.array(np.inf), n_one_class)
    hidden = noise * (max(hidden_variance(variance, len(y)), together) / variance)
    return hidden if np.trace(hidden) > np.trace(seen) else seen


def _tasks(sample: ClassSample, labels: np.ndarray, groups: np.ndarray) -> list[GroupedBins]:
    return [
        GroupedBins((sample.y == c).astype(np.float64), sample.mean[:, c], labels, groups)
        for c in range(sample.n_classes)
    ]


def _over_groups(
    sample: ClassSample, labels: np.ndarray, groups: np.ndarray, level: float, gain: Gain
) -> CorrectedError:
    """Return the sum over classes of the errors from pairs of different groups.

    A group may have samples in several bins, and its errors of the classes depend on each other:
    every bin and class is a column of one form.
    """
    from scipy.sparse import hstack

    n_groups, n_bins = int(groups.max()) + 1, len(np.unique(labels))
    if n_bins * sample.n_classes > _MAX_CELLS:
        raise ValueError(
            f"groups of {sample.n_classes} classes take at most {_MAX_CELLS // sample.n_classes} "
            f"bins, got {n_bins}"
        )
    classes = _tasks(sample, labels, groups)
    b, n_classes = classes[0], sample.n_classes
    shares = b.w / b.pairs
    cells = b.of_bin, b.of_group, n_groups, len(b.n)
    # Column c·n_bins + u is of class c in bin u.
    residuals = hstack([group_sums(task.residual, *cells) for task in classes], format="csr")
    factor = 2 * shares[b.of_bin] * (b.n[b.of_bin] - b.size)
    influence = hstack(
        [group_sums(factor * task.residual, *cells) for task in classes], format="csr"
    )
    products, variance_at_zero, third_cumulant = form_of_pairs(
        residuals, np.tile(shares, n_classes)
    )

    def of_bins(matrix: np.ndarray) -> np.ndarray:
        blocks = matrix.reshape(n_classes, len(b.n), n_classes, len(b.n))
        return np.einsum("cudu->ucd", blocks)

    noise, added = of_bins(products), of_bins((influence.T @ influence).toarray())
    traces = np.einsum("ucc->u", noise)
    along = np.einsum("ucd,ucd->u", noise, added)
    even = float(np.divide(along, traces, out=np.zeros_like(along), where=traces > 0).sum())

    squares = np.array([task.squared_error for task in classes])
    error = np.array([task.error for task in classes])
    seen = np.maximum(squares, 0)
    mass, slope = float(np.sum(seen @ b.w)), even
    if mass > 0:
        slope = float(np.sum((influence @ (np.sign(error) * np.sqrt(seen)).ravel()) ** 2)) / mass
    return result_of_form(
        estimate=float(np.sum(squares @ b.w)) + gain.estimate,
        plug_in=float(np.sum(error**2 @ b.w)),
        noise_floor=float(b.w @ (traces / b.n**2)),
        variance_at_zero=variance_at_zero + gain.variance,
        minimum_detectable=_detectable(
            sample, labels, level, variance_at_zero, third_cumulant, even
        ),
        slope=slope,
        third_cumulant=third_cumulant,
        dropped_mass=b.dropped_mass,
        n_bins=len(b.n),
        level=level,
    )


def canonical_flip_test(
    sample: ClassSample, labels: np.ndarray, groups: np.ndarray, n_resamples: int, seed: int
) -> HypothesisTest:
    """Return the test of `canonical_over_bins` with groups.

    Labels of samples that are alone in their group are drawn from Categorical(Δ); of other
    groups, the errors of all bins and classes get a random sign.
    """
    classes = _tasks(sample, labels, groups)
    b = classes[0]
    sums = np.stack([task.sums for task in classes], axis=1)
    size = np.bincount(groups)
    alone = np.flatnonzero((size == 1)[b.of_group])
    row_of_group = np.empty(len(size), dtype=np.intp)
    row_of_group[groups] = np.arange(len(groups))
    mean = sample.mean[row_of_group[b.of_group[alone]]]
    upper = np.cumsum(mean, axis=1)[:, :-1]
    weights = b.w / b.pairs

    def of_cells(cells: np.ndarray) -> float:
        total = np.add.reduceat(cells, b.starts, axis=0)
        own = np.add.reduceat(np.einsum("kc,kc->k", cells, cells), b.starts)
        return float((np.einsum("uc,uc->u", total, total) - own) @ weights)

    def statistic(uniform: np.ndarray) -> float:
        uniform = uniform[b.of_group]
        drawn = np.where(uniform < 0.5, 1.0, -1.0)[:, None] * sums
        drawn[alone] = -mean
        drawn[alone, (uniform[alone, None] > upper).sum(axis=1)] += 1
        return of_cells(drawn)

    seen = of_cells(sums)
    least = seen - 1e-12 * abs(seen)
    rows, columns = len(labels), len(size)
    return among(_of_each(statistic), seen, least, columns, rows, n_resamples, seed)


def canonical_redraw_test(
    sample: ClassSample, labels: np.ndarray, n_resamples: int, seed: int
) -> HypothesisTest:
    """Return the test of `canonical_over_bins`, labels drawn anew from Categorical(Δ)."""
    order = np.argsort(labels, kind="stable")
    order = order[np.bincount(labels)[labels[order]] > 1]
    if len(order) == 0:
        raise ValueError("every sample is alone in its bin: use fewer bins")
    position = np.unique(labels[order], return_inverse=True)[1]
    mean, y = sample.mean[order], sample.y[order]
    n_samples, n_classes = mean.shape
    n = np.bincount(position)
    divisor = n_samples * (n - 1.0)
    expected = np.stack([np.bincount(position, weights=column) for column in mean.T], axis=1)
    # ‖e‖² for the class k: ‖Δ‖² + 1 − 2Δ_k.
    squares = (np.einsum("nc,nc->n", mean, mean)[:, None] + 1 - 2 * mean) / divisor[position, None]
    cell, row = position * n_classes, np.arange(n_samples)

    def of_labels(drawn: np.ndarray) -> float:
        counts = np.bincount(cell + drawn, minlength=expected.size).reshape(expected.shape)
        sums = counts - expected
        of_bins = np.einsum("mc,mc->m", sums, sums)
        return float(of_bins @ (1 / divisor) - squares[row, drawn].sum())

    seen = of_labels(y)
    # P(Y >= c) for c >= 1; two classes then are drawn as in the test of one.
    at_least = np.cumsum(mean[:, :0:-1], axis=1)[:, ::-1]
    # Equal labels must count as equal although sums are rounded, and terms cancel.
    least = seen - 1e-12 * max(abs(seen), float(squares[row, y].sum()))

    def statistic(uniform: np.ndarray) -> float:
        return of_labels((uniform[:, None] < at_least).sum(axis=1))

    return among(_of_each(statistic), seen, least, n_samples, n_samples, n_resamples, seed)


def _of_each(statistic: Callable[[np.ndarray], float]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda sets: np.array([*map(statistic, sets)])
