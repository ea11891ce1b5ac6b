"""Growing classification trees on ranks.

The rules are those of scikit-learn's ``RandomForestClassifier``: at each node features are drawn
until ``max_features`` have been looked at and one of them varies, and the split with the least
weighted Gini impurity is taken, halfway between two values. Scikit-learn sorts a feature's values
at every node; here each value is replaced by its rank once, for all trees and tasks, and a node
counts the labels of each rank, which takes a few operations a sample and finds the same split.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np

#: Three counts share one integer, of so many bits each: samples, their weights, and those of
#: positive samples. One addition then moves all.
_BITS = 21
MAX_SAMPLES = 2**_BITS - 1
_LEAF = -1


def compiled(function: Callable) -> Callable:
    """Return the function compiled, and kept beside Python's bytecode for later processes.

    Division by zero follows IEEE 754, as in NumPy: a check would keep loops from being vectorised.
    """
    try:
        return numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        # Neither the package's folder nor the user's cache can be written to.
        return numba.njit(error_model="numpy")(function)


class Ranks(NamedTuple):
    """The features of a training set by rank.

    Attributes
    ----------
    codes : ndarray of shape (n_features, n_samples), unsigned integers
        Rank of each value among the distinct ones of its feature, from 0.
    values : list of ndarray
        The distinct values of each feature, ascending.
    """

    codes: np.ndarray
    values: list[np.ndarray]


class Tree(NamedTuple):
    """A binary tree, node by node from the root.

    Attributes
    ----------
    feature : ndarray of shape (n_nodes,), int32
        Feature that a node splits on; -1 for a leaf.
    threshold : ndarray of shape (n_nodes,), float64
        Samples with at most this value go left.
    left : ndarray of shape (n_nodes,), int32
        Left child; the right one follows it.
    positive_fraction : ndarray of shape (n_nodes,), float64
        Of the training samples that reached the node, as often as they were drawn.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    positive_fraction: np.ndarray


def ranks(X: np.ndarray) -> Ranks:
    """Return the ranks of the columns of ``X`` (n_samples, n_features), which has no NaN."""
    distinct = [np.unique(column, return_inverse=True) for column in np.ascontiguousarray(X.T)]
    values = [column for column, _ in distinct]
    # The fewer bytes, the more of a feature stays in the cache.
    dtype = np.min_scalar_type(max(map(len, values)) - 1)
    return Ranks(np.array([codes for _, codes in distinct], dtype=dtype), values)


def grow_tree(
    features: Ranks,
    y: np.ndarray,
    *,
    max_features: int,
    min_samples_leaf: int,
    max_depth: int | None,
    rng: np.random.Generator,
    bootstrap: bool = True,
) -> Tree:
    """Grow one tree.

    Parameters
    ----------
    features : Ranks
        Of the training set.
    y : ndarray of shape (n_samples,)
        Labels in {0, 1}.
    max_features : int
        Features looked at for a split, at least; constant ones count, but a split is sought
        until one varies.
    min_samples_leaf : int
        Distinct training samples of a leaf, at least.
    max_depth : int or None
        None for no limit.
    rng : numpy.random.Generator
    bootstrap : bool, default True
        Whether to draw as many samples as there are, with replacement, or to take all.

    Returns
    -------
    Tree

    Raises
    ------
    ValueError
        For more than 2,097,151 samples.
    """
    n_samples = len(y)
    if n_samples > MAX_SAMPLES:
        raise ValueError(f"{n_samples:,} training samples; a tree takes {MAX_SAMPLES:,} at most")
    if bootstrap:
        drawn = rng.integers(n_samples, size=n_samples)
        weights = np.bincount(drawn, minlength=n_samples)
    else:
        weights = np.ones(n_samples, dtype=np.int64)
    feature, lower, upper, left, positive_fraction = _grow(
        features.codes,
        max(map(len, features.values)),
        np.asarray(y, dtype=np.int64),
        weights,
        np.flatnonzero(weights).astype(np.int32),
        max_features,
        min_samples_leaf,
        n_samples if max_depth is None else max_depth,
        rng,
    )
    threshold = np.full(len(feature), np.nan)
    for node in np.flatnonzero(feature != _LEAF):
        values = features.values[feature[node]]
        # In float64 the middle of two float32 values is neither.
        threshold[node] = (float(values[lower[node]]) + float(values[upper[node]])) / 2
    return Tree(feature, threshold, left, positive_fraction)


def positive_fractions(tree: Tree, X: np.ndarray) -> np.ndarray:
    """Return the positive fraction in the leaf of each row of ``X``, shape (n_samples,)."""
    return _positive_fractions(*tree, X)


@compiled
def _grow(codes, n_codes, y, weights, samples, max_features, min_samples_leaf, max_depth, rng):
    n = len(samples)
    counts = np.empty(n, np.int64)
    for k in range(n):
        w = weights[samples[k]]
        counts[k] = 1 + (w << _BITS) + ((w * y[samples[k]]) << (2 * _BITS))
    of_code = np.zeros(n_codes, np.int64)
    # One bit for each code that is there, since most nodes have few.
    there = np.zeros((n_codes + 63) // 64, np.uint64)
    order = np.arange(len(codes))
    other_samples = np.empty(n, np.int32)
    other_counts = np.empty(n, np.int64)

    capacity = 2 * max(1, n // min_samples_leaf) - 1
    feature = np.full(capacity, _LEAF, np.int32)
    lower = np.zeros(capacity, np.int32)
    upper = np.zeros(capacity, np.int32)
    left = np.full(capacity, _LEAF, np.int32)
    positive_fraction = np.empty(capacity)
    begins = np.zeros(capacity, np.int32)
    ends = np.zeros(capacity, np.int32)
    depths = np.zeros(capacity, np.int32)
    ends[0] = n
    n_nodes = 1
    for node in range(capacity):
        if node == n_nodes:
            break
        begin, end = begins[node], ends[node]
        total = counts[begin:end].sum()
        weight, positive = (total >> _BITS) & MAX_SAMPLES, total >> (2 * _BITS)
        positive_fraction[node] = positive / weight
        pure = positive == 0 or positive == weight
        if pure or end - begin < 2 * min_samples_leaf or depths[node] >= max_depth:
            continue
        feature[node], lower[node], upper[node] = _best_split(
            codes,
            samples[begin:end],
            counts[begin:end],
            total,
            of_code,
            there,
            order,
            max_features,
            min_samples_leaf,
            rng,
        )
        if feature[node] == _LEAF:
            continue

        column = codes[feature[node]]
        middle = begin + _divide(
            samples[begin:end], counts[begin:end], column, lower[node], other_samples, other_counts
        )
        left[node] = n_nodes
        begins[n_nodes], ends[n_nodes] = begin, middle
        begins[n_nodes + 1], ends[n_nodes + 1] = middle, end
        depths[n_nodes] = depths[n_nodes + 1] = depths[node] + 1
        n_nodes += 2
    nodes = slice(0, n_nodes)
    return feature[nodes], lower[nodes], upper[nodes], left[nodes], positive_fraction[nodes]


@compiled
def _divide(samples, counts, column, last_left, other_samples, other_counts):
    """Put the samples whose code is at most ``last_left`` first; return how many they are."""
    # All stay in their order, in which memory is read fastest.
    n_left, n_right = 0, 0
    for k in range(len(samples)):
        if column[samples[k]] <= last_left:
            samples[n_left], counts[n_left] = samples[k], counts[k]
            n_left += 1
        else:
            other_samples[n_right], other_counts[n_right] = samples[k], counts[k]
            n_right += 1
    samples[n_left:], counts[n_left:] = other_samples[:n_right], other_counts[:n_right]
    return n_left


@compiled
def _best_split(
    codes, samples, counts, total, of_code, there, order, max_features, min_samples_leaf, rng
):
    """Return the feature, or -1, and the codes on either side; leave 0 in of_code and there."""
    n, weight, positive = len(samples), (total >> _BITS) & MAX_SAMPLES, total >> (2 * _BITS)
    best, best_feature, best_lower, best_upper = -1.0, _LEAF, 0, 0
    n_left_to_draw, n_visited, varies = len(order), 0, False
    while n_left_to_draw > 0 and (n_visited < max_features or not varies):
        drawn = int(rng.random() * n_left_to_draw)
        n_left_to_draw -= 1
        n_visited += 1
        order[drawn], order[n_left_to_draw] = order[n_left_to_draw], order[drawn]
        column = codes[order[n_left_to_draw]]
        for k in range(n):
            code = column[samples[k]]
            of_code[code] += counts[k]
            there[code >> 6] |= np.uint64(1) << np.uint64(code & 63)
        before, previous = np.int64(0), -1
        for word in range(len(there)):
            bits = there[word]
            there[word] = 0
            while bits != 0:
                lowest = bits & (~bits + np.uint64(1))
                bits ^= lowest
                # As a float, a power of two has its logarithm in the exponent, plus 1023.
                code = (word << 6) + (np.float64(lowest).view(np.int64) >> 52) - 1023
                if previous >= 0:
                    varies = True
                    n_below = before & MAX_SAMPLES
                    if n_below >= min_samples_leaf and n - n_below >= min_samples_leaf:
                        w, p = (before >> _BITS) & MAX_SAMPLES, before >> (2 * _BITS)
                        rest, p_rest = weight - w, positive - p
                        # Largest where the weighted Gini impurity is least.
                        purity = (p * p + (w - p) * (w - p)) / w + (
                            p_rest * p_rest + (rest - p_rest) * (rest - p_rest)
                        ) / rest
                        if purity > best:
                            best, best_feature = purity, order[n_left_to_draw]
                            best_lower, best_upper = previous, code
                before += of_code[code]
                of_code[code] = 0
                previous = code
    return best_feature, best_lower, best_upper


@compiled
def _positive_fractions(feature, threshold, left, positive_fraction, X):
    fractions = np.empty(len(X))
    for i in range(len(X)):
        node = 0
        while feature[node] != _LEAF:
            goes_right = X[i, feature[node]] > threshold[node]
            node = left[node] + (1 if goes_right else 0)
        fractions[i] = positive_fraction[node]
    return fractions
