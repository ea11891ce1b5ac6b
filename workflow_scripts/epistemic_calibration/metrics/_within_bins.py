"""What bins hide: a cross-fitted regression of errors within them.

With δ the deviation of E[e | Π] from its mean in the bin, TECE is what the bins see plus E‖δ‖²,
of which E[g·(2e − g)] is a lower bound for any g of mean 0 in the bins that was fitted on other
samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics.binning import group_equal_rows

_N_FOLDS = 5
#: Samples below which there is nothing to fit.
_LEAST = 100
_ALPHAS = np.logspace(-3, 6, 28)
#: Knots of the piecewise linear functions of spread.
_KNOTS = np.linspace(0, 1, 6)


class Gain(NamedTuple):
    """A lower bound of the error within bins, and its variance."""

    estimate: float
    variance: float


#: Where nothing is looked for within the bins.
NO_GAIN = Gain(0.0, 0.0)


def gain_of_classes(
    sample: ClassSample, labels: np.ndarray, groups: np.ndarray | None, seed: int
) -> Gain:
    """Return what a boosted regression of all classes on Δ and spread sees within bins."""
    # However classes are numbered.
    rows = np.concatenate([np.sort(sample.mean, axis=1), np.sort(sample.variance, axis=1)], axis=1)
    folds = _folds(rows, groups, seed)
    if len(folds) < _LEAST or folds.max() < _N_FOLDS - 1:
        return NO_GAIN
    error, fitted = sample.error(), np.zeros_like(sample.mean)
    stages = _stages(sample)
    for k in range(_N_FOLDS):
        train = folds != k
        n_units = np.count_nonzero(train) if groups is None else len(np.unique(groups[train]))
        fitted[~train] = _boosted(stages, error, train, n_units)

    cells = np.unique(labels * _N_FOLDS + folds, return_inverse=True)[1]
    count = np.bincount(cells)
    for column in fitted.T:
        column -= (np.bincount(cells, weights=column) / count)[cells]
    gains = np.einsum("nc,nc->n", fitted, 2 * error - fitted)
    sums, noise = gains - gains.mean(), 0.0
    if groups is None:
        # At least that of calibrated labels, which a few may not show.
        along = np.einsum("nc,nc->n", fitted, sample.mean)
        noise = 4 * float(np.sum(fitted**2 * sample.mean) - along @ along)
    else:
        sums = np.bincount(groups, weights=sums)
    squares = float(sums @ sums) * len(sums) / (len(sums) - 1)
    return Gain(float(gains.mean()), max(squares, noise) / len(labels) ** 2)


def _folds(rows: np.ndarray, groups: np.ndarray | None, seed: int) -> np.ndarray:
    """Return folds of whole groups and of equal rows, whatever the order of the samples."""
    # Rounding keeps together what differs by the order of a sum.
    units = group_equal_rows(np.round(rows, 10))
    if groups is not None:
        first = np.full(groups.max() + 1, len(units))
        np.minimum.at(first, groups, units)
        units = np.unique(first, return_inverse=True)[1][groups]
    order = np.random.default_rng(seed).permutation(units.max() + 1)
    return order[units] % _N_FOLDS


class _Stage(NamedTuple):
    """A linear model of errors by its normal equations, so that no matrix of features is kept."""

    gram: Callable[[np.ndarray], np.ndarray]
    products: Callable[[np.ndarray, np.ndarray], np.ndarray]
    predict: Callable[[np.ndarray, np.ndarray], np.ndarray]


def _boosted(
    stages: list[_Stage], error: np.ndarray, in_training: np.ndarray, n_units: int
) -> np.ndarray:
    """Return predictions of the other errors, each stage fitted to what those before it leave."""
    train, test = np.flatnonzero(in_training), np.flatnonzero(~in_training)
    residual = error[train]
    fitted = np.zeros((len(test), error.shape[1]))
    for stage in stages:
        coefficients = _ridge(
            stage.gram(train),
            stage.products(train, residual),
            np.vdot(residual, residual),
            n_units,
        )
        if coefficients is not None:
            residual = residual - stage.predict(train, coefficients)
            fitted += stage.predict(test, coefficients)
    return fitted


def _ridge(
    gram: np.ndarray, products: np.ndarray, total: float, n_samples: int
) -> np.ndarray | None:
    """Return the coefficients of least generalised cross-validation error, None for no model."""
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0)
    if values[-1] <= 0:
        return None
    target = vectors.T @ products
    squares = np.square(target).reshape(len(values), -1).sum(axis=1)
    inverse = 1 / (values[:, None] + _ALPHAS * values.max())
    explained = squares @ (2 * inverse - values[:, None] * inverse**2)
    freedom = values @ inverse
    scores = (total - explained) / (1 - np.minimum(freedom / n_samples, 0.9)) ** 2
    best = int(scores.argmin())
    # Less than what a coefficient or two gain by chance.
    if n_samples * (total - scores[best]) < 4 * total:
        return None
    return vectors @ (inverse[:, best] * target.T).T


def _stages(sample: ClassSample) -> list[_Stage]:
    """Return temperature and boldness by spread; a bias and a slope of each class; and mixing."""
    from scipy.stats import rankdata

    mean, n_samples = sample.mean, len(sample.mean)
    log = np.log(np.maximum(mean, 1e-6))
    largest = np.maximum(1 - np.square(mean).sum(axis=1), 1e-9)
    spread = np.sqrt(sample.variance.sum(axis=1) / largest)
    rank = (rankdata(np.round(spread, 12)) - 0.5) / n_samples
    hats = np.maximum(0, 1 - np.abs(rank[:, None] - _KNOTS) * (len(_KNOTS) - 1))
    relative = (2 * rank - 1)[:, None]

    centred = log - (mean * log).sum(axis=1, keepdims=True)
    tangent, square = mean * centred, mean * centred**2
    towards = -mean
    towards[np.arange(n_samples), sample.top] += 1
    top = np.take_along_axis(mean, sample.top[:, None], axis=1)
    shapes = (tangent, square - mean * square.sum(axis=1, keepdims=True), top * towards)
    shared = np.stack([_scaled(shape * hat[:, None]) for shape in shapes for hat in hats.T], axis=2)
    mixing = np.concatenate(
        [mean, mean * relative, mean * np.sign(relative), np.sqrt(sample.variance)], axis=1
    )
    weights = [mean, mean * log, mean * relative, mean * log * relative]
    return [_shared(shared), _of_classes(mean, weights), _mixing(mixing)]


def _scaled(values: np.ndarray) -> np.ndarray:
    size = np.sqrt(np.mean(values**2))
    return values / size if size > 0 else values


def _shared(features: np.ndarray) -> _Stage:
    """Return a stage with the same coefficients for all classes."""

    def gram(rows: np.ndarray) -> np.ndarray:
        flat = features[rows].reshape(-1, features.shape[2])
        return flat.T @ flat

    def products(rows: np.ndarray, residual: np.ndarray) -> np.ndarray:
        return features[rows].reshape(-1, features.shape[2]).T @ residual.ravel()

    return _Stage(gram, products, lambda rows, found: features[rows] @ found)


def _of_classes(mean: np.ndarray, weights: list[np.ndarray]) -> _Stage:
    """Return a stage of vector scaling: Δ_c (w_c − Σ_a Δ_a w_a) with the coefficients in w.

    ``weights`` are Δ_a times what a coefficient of class a multiplies.
    """
    norm = np.square(mean).sum(axis=1, keepdims=True)

    def gram(rows: np.ndarray) -> np.ndarray:
        p = np.concatenate([w[rows] for w in weights], axis=1)
        q = np.concatenate([w[rows] * mean[rows] for w in weights], axis=1)
        result = p.T @ (norm[rows] * p) - q.T @ p - p.T @ q
        n_classes = mean.shape[1]
        for k, first in enumerate(weights):
            for m, second in enumerate(weights):
                block = result[k * n_classes :, m * n_classes :]
                own = np.arange(n_classes)
                block[own, own] += np.einsum("nc,nc->c", first[rows], second[rows])
        return result

    def products(rows: np.ndarray, residual: np.ndarray) -> np.ndarray:
        around = residual - np.sum(mean[rows] * residual, axis=1, keepdims=True)
        return np.concatenate([np.einsum("nc,nc->c", w[rows], around) for w in weights])

    def predict(rows: np.ndarray, found: np.ndarray) -> np.ndarray:
        parts = np.split(found, len(weights))
        direction = sum(w[rows] * part for w, part in zip(weights, parts, strict=True))
        return direction - mean[rows] * direction.sum(axis=1, keepdims=True)

    return _Stage(gram, products, predict)


def _mixing(features: np.ndarray) -> _Stage:
    """Return a stage that regresses the error of each class on Δ and the spread of all."""

    def gram(rows: np.ndarray) -> np.ndarray:
        return features[rows].T @ features[rows]

    return _Stage(
        gram,
        lambda rows, residual: features[rows].T @ residual,
        lambda rows, found: features[rows] @ found,
    )
