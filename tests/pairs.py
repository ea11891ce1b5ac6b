"""Corrected errors by their definition: products of errors, pair by pair."""

import itertools

import numpy as np


def mean_over_pairs(errors, bins, groups=None):
    """Mean of e_i · e_k over ordered pairs of different groups in a bin, weighted by its size.

    ``errors`` (n_samples,) or, of several classes, (n_samples, n_classes). Bins without such a
    pair are left out; without ``groups``, each sample is one.
    """
    groups = np.arange(len(errors)) if groups is None else groups
    means, sizes = [], []
    for m in np.unique(bins):
        inside = np.flatnonzero(bins == m)
        pairs = [(i, k) for i, k in itertools.permutations(inside, 2) if groups[i] != groups[k]]
        if pairs:
            means.append(np.mean([np.dot(errors[i], errors[k]) for i, k in pairs]))
            sizes.append(len(inside))
    return np.average(means, weights=sizes)
