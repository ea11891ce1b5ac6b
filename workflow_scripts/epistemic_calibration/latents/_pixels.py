"""Pixels as the features of encoders that know nothing of rows and columns."""

from __future__ import annotations

import math

import numpy as np

from epistemic_calibration.data.base import Dataset


def flat_pixels(images: np.ndarray) -> np.ndarray:
    """Return the pixel values of each image, by row, by column, by channel.

    Parameters
    ----------
    images : ndarray of shape (n_samples, height, width, channels)
        uint8, or float32 in [0, 1].

    Returns
    -------
    ndarray of shape (n_samples, height * width * channels), float32 in [0, 1]
        Of floating-point images it may be a view.

    Examples
    --------
    >>> flat_pixels(np.full((2, 1, 3, 1), 255, dtype=np.uint8))
    array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    return Dataset.pixels(images).reshape(len(images), math.prod(images.shape[1:]))
