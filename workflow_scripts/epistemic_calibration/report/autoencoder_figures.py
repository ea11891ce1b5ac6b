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

    ``images`` are of shape (n_samples, ...): pixels in [0, 1], or uint8.

    Examples
    --------
    >>> loss_of_mean_image(np.array([[[0.0]], [[1.0]]]))
    0.25
    """
    scale = 255 if images.dtype == np.uint8 else 1
    # Pixel by pixel: in double precision all at once take eight times their memory.
    columns = images.reshape(len(images), -1).T
    return float(np.mean([np.var(column / scale) for column in columns]))


def loss_curve(history: pd.DataFrame, mean_image: float) -> Figure:
    """Draw the autoencoder's loss against the epoch, beside that of the mean image.

    An autoencoder that is no better than the mean image has learnt nothing of the images.
    ``history`` has the columns ``epoch`` and ``loss``, the mean squared error.

    Examples
    --------
    >>> import pandas as pd
    >>> (ax,) = loss_curve(pd.DataFrame({"epoch": [1, 2], "loss": [0.03, 0.01]}), 0.05).axes
    >>> ax.get_ylabel()
    'Mean squared error'
    """
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(COLUMN_WIDTH, 0.62 * COLUMN_WIDTH))
        ax = figure.subplots()
        line = {"color": "#332288", "marker": "o", "ms": 3.5, "label": "autoencoder"}
        ax.plot(history["epoch"], history["loss"], **line)
        ax.axhline(mean_image, color="#555555", lw=1, ls="--", label="mean image")
        figure.legend(loc="outside upper right", ncols=2)
        # Room for the line above.
        ax.set_ylim(0, 1.08 * max(history["loss"].max(), mean_image) or None)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        ax.set(xlabel="Epoch", ylabel="Mean squared error")
    return figure


def reconstructions(
    originals: np.ndarray, reconstructed: np.ndarray, class_names: Sequence[str]
) -> Figure:
    """Draw images above their reconstructions.

    Both are of shape (n, height, width, c), where c is 1 or 3: pixels in [0, 1], others are
    clipped. ``class_names`` are those of the n images.

    Examples
    --------
    >>> images = np.zeros((2, 8, 8, 1))
    >>> [ax.get_title() for ax in reconstructions(images, images, ["cat", "dog"]).axes]
    ['cat', 'dog', '', '']
    """
    n = len(originals)
    with mpl.rc_context(rc_params()):
        size = (FULL_WIDTH, 2 * (FULL_WIDTH - 0.2) / n + 0.2)
        figure = Figure(figsize=size, layout="compressed")
        figure.get_layout_engine().set(h_pad=0.01, w_pad=0.01, hspace=0.02, wspace=0.02)
        axes = figure.subplots(2, n, squeeze=False)
        for ax, image in zip(axes.flat, [*originals, *reconstructed], strict=True):
            ax.imshow(np.clip(image, 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="none")
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        for ax, name in zip(axes[0], class_names, strict=True):
            ax.set_title(drawable(name), fontsize=7.5, pad=2)
        for ax, name in zip(axes[:, 0], ("image", "decoded"), strict=True):
            ax.set_ylabel(name, fontsize=7.5)
    return figure
