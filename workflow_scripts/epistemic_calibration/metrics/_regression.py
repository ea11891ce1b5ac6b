"""Folds, spline features, blocks and coefficients of cross-fitted regressions."""

from __future__ import annotations

import numpy as np

from epistemic_calibration.metrics._validation import row_blocks
from epistemic_calibration.metrics.binning import repeated_means

N_FOLDS = 5


def folds(
    n_samples: int, seed: int, *, order: np.ndarray | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return (training, test) indices of folds; the seed stands for positions in ``order``."""
    from sklearn.model_selection import KFold

    if n_samples < N_FOLDS:
        raise ValueError(f"{N_FOLDS} folds take as many samples, or groups, got {n_samples}")
    splitter = KFold(N_FOLDS, shuffle=True, random_state=seed)
    order = np.arange(n_samples) if order is None else order
    return [(order[a], order[b]) for a, b in splitter.split(np.empty((n_samples, 0)))]


def spline_basis(mean: np.ndarray, *, n_knots: int) -> np.ndarray:
    """Return cubic splines of the logit of the row means; they sum to 1 at each sample.

    Their knots are quantiles weighted by Δ(1 − Δ): where most means are nearly certain,
    those that are not need them, for there the labels vary.
    """
    from scipy.special import logit
    from sklearn.preprocessing import SplineTransformer

    mean = np.clip(mean, 1e-4, 1 - 1e-4)
    position = logit(mean)
    knots = np.quantile(
        position,
        np.linspace(0, 1, n_knots),
        weights=mean * (1 - mean),
        method="inverted_cdf",
    )
    knots = np.unique(knots.round(6))
    if len(knots) < 2:
        return np.ones((len(mean), 1))
    spline = SplineTransformer(knots=knots[:, None], extrapolation="constant")
    return spline.fit_transform(position[:, None])


def neighbours(mean: np.ndarray, *, size: int) -> np.ndarray:
    """Return blocks of samples of nearly the same mean, which must be in its order.

    A mean that repeats often is a block of its own; of the others, about ``size`` are one.
    """
    labels, repeats = repeated_means(mean)
    alone = ~repeats[labels]
    n_alone = np.count_nonzero(alone)
    n_blocks = max(1, round(n_alone / size))
    blocks = labels + n_blocks
    blocks[alone] = np.arange(n_alone) * n_blocks // max(n_alone, 1)
    return np.unique(blocks, return_inverse=True)[1]


def less_block_means(values: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return columns less their means in each block."""
    order = np.argsort(blocks, kind="stable")
    starts = np.flatnonzero(np.diff(blocks[order], prepend=-1))
    means = np.add.reduceat(values[order], starts, axis=0) / np.bincount(blocks)[:, None]
    return values - means[blocks]


def ridge_coefficients(
    X: np.ndarray, y: np.ndarray, alphas: np.ndarray, *, held_out: slice = slice(0, 0)
) -> np.ndarray:
    """Return coefficients of the ridge regression of least leave-one-out error, no intercept."""
    # scikit-learn's RidgeCV multiplies all of X anew for each alpha.
    parts = [
        (X[kept], y[kept]) for kept in (slice(0, held_out.start), slice(held_out.stop, len(X)))
    ]
    values, vectors = np.linalg.eigh(sum(X.T @ X for X, _ in parts))
    target = vectors.T @ sum(X.T @ y for X, y in parts)
    inverse = 1 / (values[:, None] + alphas)
    squared_error = np.zeros(len(alphas))
    for X, y in parts:
        for block in row_blocks(X):
            along = X[block] @ vectors
            residual = y[block, None] - along @ (inverse * target[:, None])
            residual /= 1 - np.square(along) @ inverse
            squared_error += np.square(residual, out=residual).sum(axis=0)
    return vectors @ (inverse[:, squared_error.argmin()] * target)
