"""Drawing a test set with the classes in their proportions."""

from __future__ import annotations

import numpy as np


def stratified_split(
    labels: np.ndarray, test_fraction: float, split_seed: int, *, key: str = "test_fraction"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the training and of the test set, each ascending.

    A ValueError names ``key`` if the sets cannot both have every class.
    """
    from sklearn.model_selection import train_test_split

    try:
        train, test = train_test_split(
            np.arange(len(labels)),
            test_size=float(test_fraction),
            stratify=labels,
            random_state=split_seed,
        )
    except ValueError as error:
        raise ValueError(f"datasets.<name>.{key}: {test_fraction!r}: {error}") from error
    return np.sort(train), np.sort(test)
