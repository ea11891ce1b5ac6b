"""No encoding: the pixels themselves, or features that are not of images at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epistemic_calibration.latents._pixels import flat_pixels
from epistemic_calibration.latents.base import Encoder


@dataclass(kw_only=True, eq=False)
class Pixels(Encoder):
    """The pixel values in [0, 1], one feature each: by row, by column, by channel."""

    def _fit(self, images: np.ndarray) -> None:
        pass

    def _encode(self, images: np.ndarray) -> np.ndarray:
        # A copy, since it may be a view of the images.
        return flat_pixels(images).copy()

    def _state(self) -> dict[str, np.ndarray]:
        return {}

    def _restore(self, state: dict[str, np.ndarray]) -> None:
        pass
