"""The range of each latent unit: scaling by the training set, and units that say nothing."""

from __future__ import annotations

from typing import Literal

import numpy as np


def n_dead_units(latents: np.ndarray) -> int:
    """Count the latent units whose value is the same for all of ``latents``.

    Parameters
    ----------
    latents : ndarray of shape (n_samples, latent_size)
        Of the training images.

    Examples
    --------
    >>> n_dead_units(np.array([[0.0, 1.0], [0.0, 2.0]]))
    1
    """
    return int(_is_dead(latents).sum())


def _is_dead(latents: np.ndarray) -> np.ndarray:
    # Not by the variance, which rounding can make positive for a constant.
    return latents.min(axis=0) == latents.max(axis=0)


def scale_latents(
    latents_train: np.ndarray,
    latents_test: np.ndarray,
    scaling: Literal["none", "standard", "minmax"],
) -> tuple[np.ndarray, np.ndarray]:
    """Scale latents by what the training set shows; dead units stay as they are.

    Parameters
    ----------
    latents_train, latents_test : ndarray of shape (n_samples, latent_size)
    scaling : "none", "standard" or "minmax"
        standard: each unit gets mean 0 and standard deviation 1 (ddof 0) on the training
        set; minmax: minimum 0 and maximum 1.

    Returns
    -------
    latents_train, latents_test : ndarray, float32

    Raises
    ------
    ValueError
        If ``scaling`` is none of the three, or the sets have different units.

    Examples
    --------
    >>> train, test = scale_latents(np.array([[0.0], [4.0]]), np.array([[1.0]]), "minmax")
    >>> train.ravel(), test.ravel()
    (array([0., 1.], dtype=float32), array([0.25], dtype=float32))
    """
    if latents_train.shape[1:] != latents_test.shape[1:]:
        raise ValueError(
            f"latents_train has shape {latents_train.shape} and latents_test "
            f"{latents_test.shape}; they must have the same units"
        )
    wide = latents_train.astype(np.float64)
    if scaling == "none":
        shift, scale = 0.0, 1.0
    elif scaling == "standard":
        shift, scale = wide.mean(axis=0), wide.std(axis=0)
    elif scaling == "minmax":
        shift, scale = wide.min(axis=0), np.ptp(wide, axis=0)
    else:
        raise ValueError(f"scaling={scaling!r}; it must be one of none, standard, minmax")
    dead = _is_dead(latents_train)
    shift, scale = np.where(dead, 0.0, shift), np.where(dead, 1.0, scale)
    return (
        ((wide - shift) / scale).astype(np.float32),
        ((latents_test.astype(np.float64) - shift) / scale).astype(np.float32),
    )
