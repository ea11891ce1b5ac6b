"""Inputs as a page shows them: small images, or the first values of a row."""

from __future__ import annotations

import io
from base64 import b64encode

import numpy as np

#: Largest side of a thumbnail in pixels; smaller images stay as they are.
MAX_SIZE = 64
#: Values shown of an input that is no image.
N_VALUES = 6


def thumbnail(image: np.ndarray) -> str:
    """Return an image as a data: URI: a PNG, or a WebP, which is smaller, if it has colours.

    Parameters
    ----------
    image : ndarray of shape (height, width, channels)
        uint8, or floating point in [0, 1]; one or three channels.

    Examples
    --------
    >>> thumbnail(np.zeros((8, 8, 1), np.uint8))[:22]
    'data:image/png;base64,'
    """
    from PIL import Image

    if image.dtype != np.uint8:
        image = np.round(255 * image).astype(np.uint8)
    picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    picture.thumbnail((MAX_SIZE, MAX_SIZE))
    file = io.BytesIO()
    kind = "webp" if picture.mode == "RGB" else "png"
    picture.save(file, kind, **({"quality": 75} if kind == "webp" else {"optimize": True}))
    return f"data:image/{kind};base64,{b64encode(file.getvalue()).decode('ascii')}"


def first_values(features: np.ndarray) -> str:
    """Return the first values of a row of features as text.

    Examples
    --------
    >>> first_values(np.arange(8) / 4)
    '0, 0.25, 0.5, 0.75, 1, 1.25, …'
    """
    shown = ", ".join(f"{value:.3g}" for value in features[:N_VALUES])
    return shown + (", …" if len(features) > N_VALUES else "")
