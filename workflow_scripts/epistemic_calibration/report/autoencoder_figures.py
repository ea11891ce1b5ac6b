"""Figures of an encoder that reconstructs images: its loss and its reconstructions."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from epistemic_calibration.report._names import drawable
from epistemic_calibration.report.style import COLUMN_WIDTH, FULL_WIDTH, rc_params


def loss_of_mean_image(images: np.ndarray) -> float:
    """Return the mean squared error of reconstructing every image by the mean of all.

    Parameters
    ----------
    images : ndarray of shape (n_samples, ...)
        Pixels in [0, 1], or uint8.

    Examples
    --------
    >>> loss_of_mean_image(np.array([[[0.0]], [[1.0]]]))
    0.25
    """
    scale = 255 if images.dtype == np.uint8 else 1
    total, squares = np.zeros(images.shape[1:]), np.zeros(images.shape[1:])
    # In blocks: in double precision all images at once take eight times their memory.
    for start in range(0, len(images), 1000):
        block = images[start : start + 1000] / scale
        total += block.sum(axis=0, dtype=float)
        squares += (block.astype(float) ** 2).sum(axis=0)
    return float((squares / len(images) - (total / len(images)) ** 2).mean())


def loss_curve(
    history: pd.DataFrame, *, mean_image: float | None = None, width: float = COLUMN_WIDTH
) -> Figure:
    """Draw the autoencoder's loss against the epoch, beside that of the mean image.

    An autoencoder that is no better than the mean image has learnt nothing of the images.

    Parameters
    ----------
    history : DataFrame
        Columns ``epoch`` and ``loss``, the mean squared error.
    mean_image : float, optional
        As returned by `loss_of_mean_image`.
    width : float
        In inches.

    Raises
    ------
    ValueError
        If a column is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> (ax,) = loss_curve(pd.DataFrame({"epoch": [1, 2], "loss": [0.03, 0.01]})).axes
    >>> ax.get_ylabel()
    'Mean squared error'
    """
    if not {"epoch", "loss"} <= set(history):
        raise ValueError(f"history must have columns epoch and loss; has {list(history)}")
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.62 * width))
        ax = figure.subplots()
        ax.plot(
            history["epoch"],
            history["loss"],
            color="#332288",
            marker="o",
            ms=3.5,
            label="autoencoder",
        )
        if mean_image is not None:
            ax.axhline(mean_image, color="#555555", lw=1, ls="--", label="mean image")
            figure.legend(loc="outside upper right", ncols=2)
        # Room for the line above.
        ax.set_ylim(0, 1.08 * max(history["loss"].max(), mean_image or 0) or None)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        ax.set_xlabel("Epoch")
        ax.set_ylabel("Mean squared error")
    return figure


def reconstructions(
    originals: np.ndarray,
    reconstructed: np.ndarray,
    class_names: Sequence[str],
    *,
    width: float = FULL_WIDTH,
) -> Figure:
    """Draw images above their reconstructions.

    Parameters
    ----------
    originals, reconstructed : ndarray
        Pixels in [0, 1], others are clipped; of shape (n, height, width), (n, c, height, width)
        or (n, height, width, c), where c is 1 or 3.
    class_names : sequence of str, length n
    width : float
        In inches.

    Raises
    ------
    ValueError
        If shapes differ or are none of the above.

    Examples
    --------
    >>> images = np.zeros((2, 8, 8))
    >>> [ax.get_title() for ax in reconstructions(images, images, ["cat", "dog"]).axes]
    ['cat', 'dog', '', '']
    """
    originals, reconstructed = np.asarray(originals), np.asarray(reconstructed)
    if originals.shape != reconstructed.shape or len(class_names) != len(originals):
        raise ValueError(
            f"originals {originals.shape}, reconstructed {reconstructed.shape} and class_names "
            f"({len(class_names)}) must have the same shape and length"
        )
    rows = [_channels_last(originals), _channels_last(reconstructed)]
    n = len(originals)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 2 * (width - 0.2) / n + 0.2), layout="compressed")
        figure.get_layout_engine().set(h_pad=0.01, w_pad=0.01, hspace=0.02, wspace=0.02)
        axes = figure.subplots(2, n, squeeze=False)
        for row, images in zip(axes, rows, strict=True):
            for ax, image in zip(row, images, strict=True):
                ax.imshow(np.clip(image, 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="none")
                ax.set(xticks=[], yticks=[])
                ax.grid(visible=False)
                ax.spines[:].set_visible(False)
        for ax, name in zip(axes[0], class_names, strict=True):
            ax.set_title(drawable(name), fontsize=7.5, pad=2)
        axes[0, 0].set_ylabel("image", fontsize=7.5)
        axes[1, 0].set_ylabel("decoded", fontsize=7.5)
    return figure


def _channels_last(images: np.ndarray) -> np.ndarray:
    if images.ndim == 4 and images.shape[1] in (1, 3):
        images = np.moveaxis(images, 1, -1)
    if images.ndim == 4 and images.shape[-1] == 1:
        images = images[..., 0]
    if images.ndim == 3 or (images.ndim == 4 and images.shape[-1] == 3):
        return images
    raise ValueError(f"originals has shape {images.shape}: not grey or colour images")
