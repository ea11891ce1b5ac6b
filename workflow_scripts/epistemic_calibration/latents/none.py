"""No encoding: the pixels themselves, or features as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epistemic_calibration.latents._pixels import flat_pixels
from epistemic_calibration.latents.base import Encoder


@dataclass(kw_only=True, eq=False)
class Unencoded(Encoder):
    """Features as they are; of images the pixels in [0, 1], by row, by column, by channel."""

    takes_features: ClassVar[bool] = True

    def _fit(self, images: np.ndarray) -> None:
        pass

    def _encode(self, images: np.ndarray) -> np.ndarray:
        # A copy, since it may be a view of the images.
        return (images if images.ndim == 2 else flat_pixels(images)).copy()

    def _state(self) -> dict[str, np.ndarray]:
        return {}

    def _restore(self, state: dict[str, np.ndarray]) -> None:
        pass
