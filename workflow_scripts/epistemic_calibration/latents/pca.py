"""Principal components of the pixels."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

import numpy as np

from epistemic_calibration.latents._pixels import flat_pixels
from epistemic_calibration.latents.base import Encoder, check_positive_integer
from epistemic_calibration.parameters import parameter

logger = logging.getLogger("epistemic_calibration")

#: Images in memory as floating-point numbers at once when they are encoded.
_BATCH_SIZE = 1000

#: Standard deviation of a latent below which it is rounding: what float32 resolves of a pixel.
_SMALLEST_DEVIATION = 1e-7


@dataclass(kw_only=True, eq=False)
class PrincipalComponents(Encoder):
    """Projections of the pixels in [0, 1], less their mean, on their principal components.

    The components are those of the training images, the one of the largest variance first.
    Latents are not scaled to equal variance.

    References
    ----------
    N. Halko, P.-G. Martinsson and J. A. Tropp, "Finding structure with randomness", SIAM
    Review 53 (2011), 217-288: the solver.
    """

    n_components: int = parameter(
        64,
        ge=1,
        description="number of principal components; where fewer have any variance on the "
        "training images, those are kept",
    )

    def _fit(self, images: np.ndarray) -> None:
        from sklearn.decomposition import PCA

        check_positive_integer("n_components", self.n_components)
        # In double precision, where a component without variance shows.
        pixels = flat_pixels(images).astype(np.float64)
        # The solver by name: "auto" chooses by the shape of the data, and by the version. The
        # randomized one is the only one whose cost suits both few and many pixels.
        pca = PCA(
            n_components=min(self.n_components, *pixels.shape),
            svd_solver="randomized",
            iterated_power=7,
            random_state=self.random_state,
            copy=False,
        )
        # Of equal images, or a single one, the variance is 0 / 0.
        with np.errstate(invalid="ignore", divide="ignore"):
            pca.fit(pixels)
        n_kept = max(1, np.count_nonzero(pca.explained_variance_ > _SMALLEST_DEVIATION**2))
        self.mean_, self.components_ = pca.mean_, pca.components_[:n_kept]
        logger.info(
            "pca: %d principal components hold %.1f %% of the variance of %d images",
            n_kept,
            100 * pca.explained_variance_ratio_[:n_kept].sum(),
            len(images),
        )

    def _encode(self, images: np.ndarray) -> np.ndarray:
        latents = np.empty((len(images), len(self.components_)), dtype=np.float32)
        for start in range(0, len(images), _BATCH_SIZE):
            rows = slice(start, start + _BATCH_SIZE)
            latents[rows] = (flat_pixels(images[rows]) - self.mean_) @ self.components_.T
        return latents

    def _state(self) -> dict[str, np.ndarray]:
        return {"mean": self.mean_, "components": self.components_}

    def _restore(self, state: dict[str, np.ndarray]) -> None:
        mean, components = state["mean"], state["components"]
        n_pixels = math.prod(self.input_shape_)
        if mean.shape != (n_pixels,) or components.shape[1:] != (n_pixels,):
            raise ValueError(f"shapes {mean.shape} and {components.shape} for {n_pixels} pixels")
        self.mean_, self.components_ = mean, components
