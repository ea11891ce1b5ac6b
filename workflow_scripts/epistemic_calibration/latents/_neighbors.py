"""Nearest training neighbours of the test points, found once for every task and method."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class Neighbors(NamedTuple):
    """The nearest training points of each query point, nearest first.

    Attributes
    ----------
    distances : ndarray of shape (n_samples, n_neighbors), float64
        Euclidean distances, ascending along each row.
    indices : ndarray of shape (n_samples, n_neighbors), int64
        Rows of the training matrix.
    """

    distances: np.ndarray
    indices: np.ndarray

    def nearest(self, n_neighbors: int) -> Neighbors:
        """Return the first ``n_neighbors`` columns.

        Raises
        ------
        ValueError
            If fewer neighbours are stored than are asked for.
        """
        stored = self.indices.shape[1]
        if n_neighbors > stored:
            raise ValueError(
                f"n_neighbors={n_neighbors}, but only {stored} neighbours of each point are "
                f"stored; raise the config key latents.n_neighbors"
            )
        return Neighbors(self.distances[:, :n_neighbors], self.indices[:, :n_neighbors])


def nearest_neighbors(X_train, X, n_neighbors: int) -> Neighbors:
    """Find the Euclidean nearest neighbours of ``X`` in ``X_train`` by exhaustive search.

    Parameters
    ----------
    X_train : array of shape (n_train, n_features)
    X : array of shape (n_samples, n_features)
    n_neighbors : int
        At least 1; where the training set is smaller, all its points are returned.

    Returns
    -------
    Neighbors

    Examples
    --------
    >>> nearest_neighbors([[0.0], [3.0], [5.0]], [[4.5]], 2)
    Neighbors(distances=array([[0.5, 1.5]]), indices=array([[2, 1]]))
    """
    from sklearn.neighbors import NearestNeighbors

    n_neighbors = min(n_neighbors, len(X_train))
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(X_train)
    distances, indices = search.kneighbors(X)
    return Neighbors(distances, indices)
