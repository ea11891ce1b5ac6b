"""A convolutional autoencoder, trained on the images (paper, appendix B.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from epistemic_calibration._epochs import number_of_epochs
from epistemic_calibration.latents.base import Encoder
from epistemic_calibration.parameters import parameter


@dataclass(kw_only=True, eq=False)
class Autoencoder(Encoder):
    """Two convolutions and a linear layer down to the latent, trained with the mirror image back.

    Latents are at least 0. A unit can be *dead*: 0 for every image.
    """

    reconstructs: ClassVar[bool] = True

    n_epochs: int = parameter(5, ge=1, description="passes over the training images, at least")
    min_steps: int = parameter(
        1000,
        ge=1,
        description="steps of the optimiser, at least: passes are added where images are few",
    )
    learning_rate: float = parameter(0.001, gt=0, description="step size of Adam")
    batch_size: int = parameter(128, ge=1, description="images per step")
    latent_size: int | Literal["auto"] = parameter(
        "auto",
        ge=1,
        description="number of latent units; auto is the largest power of two that is at most a "
        "twelfth of the number of pixel values, within 32 ... 1024",
    )
    device: Literal["auto", "cpu", "cuda"] = parameter(
        "auto", description="where the network runs; auto is cuda where there is one"
    )

    def _fit(self, images: np.ndarray) -> None:
        from epistemic_calibration.latents._convolutional import train

        self.network_, self._history = train(
            images,
            latent_size=self.latent_size,
            n_epochs=number_of_epochs(
                self.n_epochs,
                min_steps=self.min_steps,
                n_samples=len(images),
                batch_size=self.batch_size,
            ),
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            random_state=self.random_state,
            device=self.device,
        )

    def _encode(self, images: np.ndarray) -> np.ndarray:
        from epistemic_calibration.latents._convolutional import in_batches

        return in_batches(self.network_.encoder, images, self.device)

    def _reconstruct(self, images: np.ndarray) -> np.ndarray:
        from epistemic_calibration.latents._convolutional import in_batches

        again = in_batches(self.network_, images, self.device)
        return np.ascontiguousarray(again.transpose(0, 2, 3, 1))

    def _state(self) -> dict[str, np.ndarray]:
        return {name: value.cpu().numpy() for name, value in self.network_.state_dict().items()}

    def _restore(self, state: dict[str, np.ndarray]) -> None:
        import torch

        from epistemic_calibration.latents._convolutional import ConvolutionalAutoencoder

        # Initial weights are drawn, only to be overwritten.
        with torch.random.fork_rng(devices=[]):
            network = ConvolutionalAutoencoder(self.input_shape_, self.latent_size)
        network.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
        self.network_ = network.eval()
