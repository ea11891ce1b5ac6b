"""Cumulants of the corrected canonical error, which say what it can detect."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from epistemic_calibration.metrics._interval import Cumulants
from epistemic_calibration.metrics._validation import BLOCK_SIZE

#: Products of three probabilities for the skewness of the labels of a bin; with more of them its
#: samples, which are many, are taken to have the law of their mean.
_MAX_PRODUCTS = 2 * 10**7


def canonical_cumulants(mean: np.ndarray, labels: np.ndarray) -> Cumulants:
    """Return the cumulants of Σ w/(n(n − 1)) Σ_{i≠k} e_i·e_k over bins of two samples or more.

    Exact at t = 0, for labels that are Categorical(Δ). At t > 0 the probability of the predicted
    class is too large, and those of the others, in proportion, too small; the squared distance is
    t for every sample, and the samples of a bin err in one direction.
    """
    order = np.argsort(labels, kind="stable")
    bins = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    bins = [index for index in bins if len(index) > 1]
    n_samples = sum(map(len, bins))

    def at(t: float) -> tuple[float, float]:
        p, direction = less_certain(mean, t)
        variance = third = 0.0
        for index in bins:
            n = len(index)
            of_bin = _of_bin(p[index], direction[index], (n - 1) * np.sqrt(t))
            variance += of_bin[0] / (n_samples * (n - 1)) ** 2
            third += of_bin[1] / (n_samples * (n - 1)) ** 3
        return max(variance, 0.0), third

    return at


def less_certain(mean: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Return laws at the distance √t of Δ, away from the predicted class, and the directions."""
    n_classes = mean.shape[1]
    top = mean.argmax(axis=1)[:, None]
    largest = np.take_along_axis(mean, top, axis=1)
    others = 1 - largest
    # Where the others have nothing they gain alike.
    direction = np.full(mean.shape, 1 / (n_classes - 1))
    np.divide(mean, others, out=direction, where=others > 1e-9)
    np.put_along_axis(direction, top, -1.0, axis=1)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    step = -np.sqrt(t) * np.take_along_axis(direction, top, axis=1)
    scale = np.divide(np.minimum(step, largest), step, out=np.ones_like(step), where=step > 0)
    return np.clip(mean + np.sqrt(t) * scale * direction, 0, 1), direction


def label_variance(mean: np.ndarray) -> Callable[[float], np.ndarray]:
    """Return the trace of the covariance of labels of the laws of `less_certain`, by t."""
    return lambda t: 1 - np.square(less_certain(mean, t)[0]).sum(axis=1)


def _of_bin(p: np.ndarray, direction: np.ndarray, size: float) -> tuple[float, float]:
    """Return variance and third cumulant of Σ_{i≠k} ε_i·ε_k + 2·size·Σ u_i·ε_i.

    ε_i = onehot(Y_i) − p_i are of labels of the laws p, and u_i are the directions.
    """
    p2, norm2 = p**2, np.einsum("nc,nc->n", p, p)
    cubes = np.einsum("nc,nc->n", p2, p)
    fourth = np.einsum("nc,nc->n", p2, p2)
    gram, once = p.T @ p, p2.T @ p
    total = np.diag(p.sum(axis=0)) - gram
    own = norm2 - 2 * cubes + norm2**2
    variance = 2 * (np.vdot(total, total) - own.sum())

    # Σ tr(Σ_i Σ_k Σ_l) over distinct samples, Σ_i the covariances.
    squares = np.diag(p2.sum(axis=0)) - once - once.T + (p * norm2[:, None]).T @ p
    own = cubes - 3 * fourth + 3 * norm2 * cubes - norm2**3
    distinct = np.vdot(total @ total, total) - 3 * np.vdot(squares, total) + 2 * own.sum()
    third = 8 * distinct + 4 * _cubes_of_products(p, gram, once)
    if size == 0:
        return float(variance), float(third)

    slope = 2 * size
    around = direction - np.einsum("nc,nc->n", p, direction)[:, None]
    # Covariances of ε_i with u_i·ε_i.
    along = p * around
    of_samples = np.einsum("nc,nc->n", along, direction)
    variance += slope**2 * of_samples.sum()
    sums = along.sum(axis=0)
    third += 6 * slope**2 * (sums @ sums - np.sum(along**2))
    # E[(ε_i·ε_k)² u_i·ε_i] is the product of the covariance of ε_k and diag(c) − c pᵀ − p cᵀ.
    products = along.T @ p
    mixed = np.diag(sums) - products - products.T
    once = np.einsum("nc,nc->n", along, p)
    own = once - 3 * np.einsum("nc,nc->n", along, p2) + 2 * once * norm2
    third += 12 * slope * (np.vdot(mixed, total) - own.sum())
    third += slope**3 * np.einsum("nc,nc,nc->", along, around, around)
    return float(variance), float(third)


def _cubes_of_products(p: np.ndarray, gram: np.ndarray, once: np.ndarray) -> float:
    """Return Σ_{i≠k} E[(ε_i·ε_k)³], given pᵀp and (p²)ᵀp.

    Of labels of the laws p and q it is
    s − 3p·q² − 3p²·q + 2p·q³ + 2p³·q + 3s² + 6p²·q² − 6s(p·q²) − 6s(p²·q) + 4s³, s = p·q.
    """
    n, n_classes = p.shape
    if n * n_classes * min(n, n_classes**2) > _MAX_PRODUCTS:
        return n * (n - 1) * float(_cube_of_product(p.mean(axis=0, keepdims=True))[0])
    p2 = p**2
    a, a2, a3 = p.sum(axis=0), p2.sum(axis=0), np.einsum("nc,nc->c", p2, p)
    pairs = a @ a - 6 * a @ a2 + 4 * a @ a3 + 3 * np.vdot(gram, gram) + 6 * a2 @ a2
    pairs += 4 * _sum_of_cubes(p) - 12 * np.vdot(gram, once)
    return float(pairs - _cube_of_product(p).sum())


def _cube_of_product(p: np.ndarray) -> np.ndarray:
    """Return E[(ε·ε')³] of two labels of each law."""
    p2 = p**2
    s = p2.sum(axis=1)
    # Not p**3, for which NumPy takes as long as for any power.
    cubes, fourth = (np.einsum("nc,nc->n", p2, other) for other in (p, p2))
    return s - 6 * cubes + 10 * fourth + 3 * s**2 - 12 * s * cubes + 4 * s**3


def _sum_of_cubes(p: np.ndarray) -> float:
    """Return Σ_ik (p_i·p_k)³."""
    n, n_classes = p.shape
    if n <= n_classes**2:
        products = (p[i : i + 512] @ p.T for i in range(0, n, 512))
        return float(sum(np.vdot(s * s, s) for s in products))
    tensor = np.zeros((n_classes**2, n_classes))
    step = max(1, BLOCK_SIZE // n_classes**2)
    for start in range(0, n, step):
        rows = p[start : start + step]
        tensor += (rows[:, :, None] * rows[:, None]).reshape(len(rows), -1).T @ rows
    return float(np.vdot(tensor, tensor))
