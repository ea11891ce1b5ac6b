"""Hypotheses as draws of a law: their order, halves of them, and estimates without some of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from epistemic_calibration.metrics._label_counts import squared_error
from epistemic_calibration.metrics._validation import row_blocks
from epistemic_calibration.metrics.binning import row_moments

#: Ways to halve the members, whose results are averaged.
N_SPLITS = 5
#: Blocks of members that the jackknife leaves out, one after another.
MAX_BLOCKS = 20


def finite_draws_factor(n_hypotheses: int) -> float:
    """Return c_H = (H + 1)/(H − 1), by which EU of H draws is smaller than E[(p* − Δ)²].

    V the variance of the law: the mean of H draws misses that of the law by V/H, so that
    E[(p* − Δ)²] = (1 + 1/H)·V, and E[EU] = (1 − 1/H)·V (ddof 0). It holds where p* is one
    more draw; not where it is one of the H, nor where it is the centre of the law.

    Examples
    --------
    >>> round(finite_draws_factor(20), 3)
    1.105
    """
    return (n_hypotheses + 1) / (n_hypotheses - 1)


def canonical_members(rows: np.ndarray) -> np.ndarray:
    """Return the members, each once, in an order that depends on their numbering no more.

    Where all are given equally often, as in an ensemble that was written twice, copies say nothing
    new of the law.
    """
    n_samples, n_hypotheses = rows.shape
    few = np.unique(rows[:64], axis=1, return_inverse=True)[1].ravel()
    if few.max() < n_hypotheses - 1:
        _, first, counts = np.unique(rows, axis=1, return_index=True, return_counts=True)
        if 1 < len(first) < n_hypotheses and np.all(counts == counts[0]):
            warnings.warn(
                f"each hypothesis is given {counts[0]} times: as draws there are {len(first)}",
                UserWarning,
                stacklevel=4,
            )
            rows = rows[:, np.sort(first)]
    square, cube, lean = np.zeros(rows.shape[1]), np.zeros(rows.shape[1]), 0.0
    for block in row_blocks(rows):
        centred = rows[block].astype(np.float64)
        lean += (centred - 0.5).sum() / n_samples
        centred -= centred.mean(axis=1, keepdims=True)
        square += np.einsum("nj,nj->j", centred, centred) / n_samples
        cube += np.einsum("nj,nj,nj->j", centred, centred, centred) / n_samples
    # In float32, where the order of a sum does not show. The same for 1 − h.
    cube = -cube if lean > 0 else cube
    return rows[:, np.lexsort((cube.astype(np.float32), square.astype(np.float32)))]


def parts_of_draws(n_hypotheses: int) -> np.ndarray:
    """Return which members are in both halves, shape (N_SPLITS, 2, n_hypotheses)."""
    generator = np.random.default_rng(0)
    first = np.zeros((N_SPLITS, n_hypotheses), dtype=bool)
    for half in first:
        half[generator.permutation(n_hypotheses)[: (n_hypotheses + 1) // 2]] = True
    return np.stack([first, ~first], axis=1)


def moments_of_parts(rows: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance (ddof 1) of the members in each part, shape (n_parts, n)."""
    size = parts.sum(axis=1)[:, None]
    mean, variance = np.empty((2, len(parts), len(rows)))
    for block in row_blocks(rows):
        centred = rows[block].astype(np.float64)
        centre = centred.mean(axis=1)
        centred -= centre[:, None]
        shift = parts.astype(np.float64) @ centred.T / size
        squares = parts.astype(np.float64) @ np.square(centred).T
        mean[:, block] = centre + shift
        variance[:, block] = np.maximum(squares - size * shift**2, 0) / (size - 1)
    return mean, variance


def slope_of_draws(
    first: np.ndarray, second: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return contributions to cov(V_A, q_B − V_B/H_B) and cov(V_A, V_B), over all halves.

    The first is the mean over inputs of D_ab·E_jk, over distinct draws a, b, j, k, less that
    product of the means over inputs, where D_ab = (h_a − h_b)²/2 and
    E_jk = m_2 − m_1(h_j + h_k) + h_j h_k, with m_1 and m_2 the estimates of p* and p*². In the
    second E is D. Draws that are functions are shared by inputs, so they have to be distinct in
    the product of means, too.
    """
    n, h = rows.shape
    if h < 4:
        return None
    prediction, _ = row_moments(rows)
    error, mean_error = squared_error(first, second, prediction), first - prediction
    powers = np.empty((3, n))
    gram, cross = np.zeros((h, h)), np.zeros(h)
    for block in row_blocks(rows):
        centred = rows[block].astype(np.float64) - prediction[block, None]
        square = centred**2
        powers[0, block] = square.sum(axis=1)
        powers[1, block] = np.einsum("nj,nj->n", square, centred)
        powers[2, block] = np.einsum("nj,nj->n", square, square)
        gram += centred.T @ centred / n
        cross += mean_error[block] @ centred / n
    numerator, denominator = _slope_terms(error, mean_error, *powers, h)
    of_error, of_variance = _products_of_means(error.mean(), cross, gram)
    variance = powers[0] / (h - 1)
    rest = error - variance / h
    mean_variance, mean_rest = variance.mean(), rest.mean()
    # Their means are the two covariances; the variable parts are the influence of inputs.
    numerator -= (variance - mean_variance) * mean_rest + (rest - mean_rest) * mean_variance
    denominator -= 2 * (variance - mean_variance) * mean_variance
    return numerator - of_error, denominator - of_variance


def _slope_terms(
    error: np.ndarray,
    mean_error: np.ndarray,
    squares: np.ndarray,
    cubes: np.ndarray,
    fourths: np.ndarray,
    h: int | np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return means over distinct a, b, j, k for h draws of which these are sums of powers."""
    variance = squares / (h - 1)
    times_product = (2 * fourths / (h - 1) - squares * variance) / ((h - 2) * (h - 3))
    times_square = (squares**2 / h - fourths / (h - 1)) / (h - 2)
    numerator = error * variance + times_product
    numerator = numerator + 2 * mean_error * cubes / ((h - 1) * (h - 2))
    return numerator, times_square - times_product


def _products_of_means(error: float, cross: np.ndarray, gram: np.ndarray) -> tuple[float, float]:
    h = len(gram)
    diagonal = np.diag(gram)
    half_squares = (diagonal[:, None] + diagonal) / 2 - gram
    products = error - (cross[:, None] + cross) + gram
    np.fill_diagonal(products, 0)

    def of_distinct(other: np.ndarray) -> float:
        total = half_squares.sum() * other.sum() + 2 * np.sum(half_squares * other)
        total -= 4 * half_squares.sum(axis=0) @ other.sum(axis=0)
        return float(total / (h * (h - 1) * (h - 2) * (h - 3)))

    return of_distinct(products), of_distinct(half_squares)


class Replicates(NamedTuple):
    """Means over inputs of what all but one block of members give, shape (n_blocks,)."""

    error: np.ndarray
    uncertainty: np.ndarray
    slope: tuple[np.ndarray, np.ndarray]  # numerator and denominator
    size: np.ndarray
    size_of_all: float


def replicates(
    first: np.ndarray,
    second: np.ndarray,
    rows: np.ndarray,
    parts: np.ndarray,
    bins: Sequence[np.ndarray],
) -> Replicates | None:
    """Return the estimates without one block of members after another, or None of fewer than 3.

    ``parts``, of shape (n_splits, n_parts, n_hypotheses), are the members whose mean and variance
    are compared in the ``bins`` of a split, each of shape (n_parts, n).
    """
    n, h = rows.shape
    if h < 3:
        return None
    of_block = (np.arange(h) % min(h, MAX_BLOCKS))[:, None] == np.arange(min(h, MAX_BLOCKS))
    left = h - of_block.sum(axis=0)
    with_slope = left.min() >= 4
    prediction, _ = row_moments(rows)
    sums = np.zeros((4, len(left)))
    gram, cross = np.zeros((h, h)), np.zeros(h)
    for block in row_blocks(rows):
        centred = rows[block].astype(np.float64) - prediction[block, None]
        error = squared_error(first[block], second[block], prediction[block])[:, None]
        mean_error = (first - prediction)[block, None]
        gram += centred.T @ centred / n
        cross += mean_error[:, 0] @ centred / n
        powers = [centred**power @ of_block for power in (1, 2, 3, 4)]
        shift = -powers[0] / left
        p2, p3, p4 = (
            (centred**power).sum(axis=1, keepdims=True) - powers[power - 1] for power in (2, 3, 4)
        )
        squares = p2 - left * shift**2
        without = error - 2 * mean_error * shift + shift**2
        sums[0] += without.sum(axis=0) / n
        sums[1] += (squares * (1 + 1 / left) / (left - 1)).sum(axis=0) / n
        if with_slope:
            cubes = p3 - 3 * shift * p2 + 2 * left * shift**3
            fourths = p4 - 4 * shift * p3 + 6 * shift**2 * p2 - 3 * left * shift**4
            terms = _slope_terms(without, mean_error - shift, squares, cubes, fourths, left)
            sums[2:] += np.stack(terms).sum(axis=1) / n
    slope = np.full((2, len(left)), np.nan)
    if with_slope:
        slope = sums[2:] - np.transpose(
            [
                _products_of_means(sums[0, b], *_without(cross, gram, of_block[:, b]))
                for b in range(len(left))
            ]
        )
    of_splits = [
        _size_without(first, second, rows, *split, of_block)
        for split in zip(parts, bins, strict=True)
    ]
    size = np.mean(of_splits, axis=0)
    return Replicates(sums[0], sums[1], (slope[0], slope[1]), size[:-1], float(size[-1]))


def _without(cross: np.ndarray, gram: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `cross` and `gram` of the others, less their own mean."""
    n_left = np.count_nonzero(~out)
    shift = -gram[:, out].sum(axis=1) / n_left
    square = gram[np.ix_(out, out)].sum() / n_left**2
    of_error = -cross[out].sum() / n_left
    gram = gram - shift[:, None] - shift + square
    return (cross - of_error - shift + square)[~out], gram[np.ix_(~out, ~out)]


def _size_without(
    first: np.ndarray,
    second: np.ndarray,
    rows: np.ndarray,
    masks: np.ndarray,
    bins: np.ndarray,
    of_block: np.ndarray,
) -> np.ndarray:
    """Return Σ w (E[v | bin])², v = q − V(1 + 1/n), of a split without each block, and of all.

    A square is the mean over pairs of different rows, of all parts of the split.
    """
    out = np.pad(of_block.T, [(0, 1), (0, 0)])
    inside = masks[:, None] & ~out
    left = inside.sum(axis=2, keepdims=True)
    n = np.bincount(bins.ravel())
    used = n > 1
    if left.min() < 2 or not used.any():
        return np.full(len(out), np.nan)
    sums, squares = np.zeros((2, len(out), len(n)))
    for members, n_members, labels in zip(inside, left, bins, strict=True):
        mean, variance = moments_of_parts(rows, members)
        values = squared_error(first, second, mean) - variance * (1 + 1 / n_members)
        for i, v in enumerate(values):
            sums[i] += np.bincount(labels, v, len(n))
            squares[i] += np.bincount(labels, v**2, len(n))
    of_pairs = (sums**2 - squares)[:, used] / (n[used] - 1)
    return of_pairs.sum(axis=1) / n[used].sum()
