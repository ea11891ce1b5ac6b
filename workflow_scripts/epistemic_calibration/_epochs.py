"""How long to train, so that small data sets are trained, too."""

from __future__ import annotations


def number_of_epochs(n_epochs: int, *, min_steps: int, n_samples: int, batch_size: int) -> int:
    """Return how many epochs make at least ``n_epochs`` and at least ``min_steps`` steps.

    An epoch of a small data set has few steps of the optimiser: five epochs of 1,000 images, 128
    in a batch, have 40, after which an autoencoder may be worse than the mean image.

    Parameters
    ----------
    n_epochs, min_steps, batch_size : int >= 1
    n_samples : int >= 1
        The last batch of an epoch is smaller where the sizes do not divide.

    Raises
    ------
    ValueError
        If one of them is below 1.

    Examples
    --------
    >>> number_of_epochs(5, min_steps=1000, n_samples=60_000, batch_size=128)
    5
    >>> number_of_epochs(5, min_steps=1000, n_samples=1000, batch_size=128)
    125
    """
    for name, value in (
        ("n_epochs", n_epochs),
        ("min_steps", min_steps),
        ("n_samples", n_samples),
        ("batch_size", batch_size),
    ):
        if value < 1:
            raise ValueError(f"{name}={value!r}; it must be an integer of at least 1")
    steps_per_epoch = -(-n_samples // batch_size)
    return max(n_epochs, -(-min_steps // steps_per_epoch))
