"""The network behind the autoencoder: its layers, its training, its use."""

from __future__ import annotations

import logging
import math
import time
from typing import Literal

import numpy as np
import torch
from torch import nn

from epistemic_calibration.device import resolve_device
from epistemic_calibration.latents.base import check_positive_integer
from epistemic_calibration.seeds import derive_seed

logger = logging.getLogger("epistemic_calibration")

#: Images evaluated at once.
_BATCH_SIZE = 1000


class ConvolutionalAutoencoder(nn.Module):
    """Two convolutions and a linear layer down to the latent, and the mirror image back.

    Encoder: Conv2d to 16 channels, Conv2d to 32, each kernel 3, stride 2, padding 1;
    Linear to the latent; ReLU after each. Decoder: Linear, ConvTranspose2d to 16 channels
    and back to the image's, ReLU between and a sigmoid at the end. On 28x28x1 and 32x32x3
    images these are the paper's layers (1568 and 2048 values between the convolutions and
    the linear layers). Images of any size (height, width, channels) come back exactly, by the
    output padding of the decoder.
    """

    def __init__(
        self, image_shape: tuple[int, int, int], latent_size: int | Literal["auto"] = "auto"
    ) -> None:
        super().__init__()
        height, width, channels = image_shape
        if latent_size == "auto":
            latent_size = default_latent_size(image_shape)
        self.image_shape = (int(height), int(width), int(channels))
        self.latent_size = int(latent_size)

        size = (height, width)
        half, quarter = _halved(size), _halved(_halved(size))
        flat = 32 * math.prod(quarter)
        self.encoder = nn.Sequential(
            nn.Conv2d(channels, 16, 3, stride=2, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(inplace=True),
            nn.Flatten(),
            nn.Linear(flat, latent_size),
            nn.ReLU(inplace=True),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent_size, flat),
            nn.ReLU(inplace=True),
            nn.Unflatten(1, (32, *quarter)),
            nn.ConvTranspose2d(
                32, 16, 3, stride=2, padding=1, output_padding=_output_padding(half)
            ),
            nn.ReLU(inplace=True),
            nn.ConvTranspose2d(
                16, channels, 3, stride=2, padding=1, output_padding=_output_padding(size)
            ),
            nn.Sigmoid(),
        )
        # On a CPU the convolutions are up to three times faster with channels last.
        self.to(memory_format=torch.channels_last)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Reconstruct images of shape (n, channels, height, width), values in [0, 1]."""
        return self.decoder(self.encoder(images))


def _halved(size: tuple[int, int]) -> tuple[int, int]:
    return ((size[0] + 1) // 2, (size[1] + 1) // 2)


def _output_padding(size: tuple[int, int]) -> tuple[int, int]:
    # A transposed convolution of stride 2 makes 2n - 1 pixels from n; an even size needs one more.
    return (1 - size[0] % 2, 1 - size[1] % 2)


def default_latent_size(image_shape: tuple[int, int, int]) -> int:
    """Return the latent size that ``latent_size: auto`` stands for.

    The largest power of two that is at most a twelfth of the number of pixel values,
    within 32 ... 1024. This gives the paper's sizes, 64 for 28x28x1 and 256 for 32x32x3.

    Examples
    --------
    >>> shapes = [(28, 28, 1), (32, 32, 3), (8, 8, 1), (1, 1, 1), (256, 256, 3)]
    >>> [default_latent_size(shape) for shape in shapes]
    [64, 256, 32, 32, 1024]
    """
    twelfth = math.prod(image_shape) // 12
    return min(max(2 ** (max(twelfth, 1).bit_length() - 1), 32), 1024)


def train(
    images: np.ndarray,
    *,
    latent_size: int | Literal["auto"],
    n_epochs: int,
    batch_size: int,
    learning_rate: float,
    random_state: int,
    device: Literal["auto", "cpu", "cuda"],
) -> tuple[ConvolutionalAutoencoder, list[tuple[int, float, float]]]:
    """Train a network with Adam on the mean squared error (paper, appendix B.1.2).

    ``images`` are checked ones, at least one. On a CPU equal seeds give equal weights for the same
    number of threads; the global generators are left as they were. Returns the network, and of
    each epoch its number, from 1, the mean loss per pixel value, and the seconds since the start.
    """
    check_positive_integer("batch_size", batch_size)
    if latent_size != "auto":
        check_positive_integer("latent_size", latent_size, or_else="'auto' or ")
    if not 0 < learning_rate < math.inf:
        raise ValueError(f"learning_rate={learning_rate!r}; it must be a number above 0")
    target = resolve_device(device)

    data = _tensor(images)
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would seed the GPUs' global generators too.
        torch.default_generator.manual_seed(derive_seed(random_state, "weights"))
        network = ConvolutionalAutoencoder(tuple(data.shape[1:]), latent_size)
    network = network.to(target).train()
    order = torch.Generator().manual_seed(derive_seed(random_state, "order"))
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate, fused=True)

    logger.info(
        "autoencoder: %d images of %s, latent size %d, %d epochs on %s",
        len(data),
        "x".join(map(str, data.shape[1:])),
        network.latent_size,
        n_epochs,
        target,
    )
    data = data.to(target)
    started = time.perf_counter()
    rows = []
    with torch.backends.cudnn.flags(deterministic=True, benchmark=False):
        for epoch in range(1, n_epochs + 1):
            total = torch.zeros((), dtype=torch.float64, device=target)
            for chosen in torch.randperm(len(data), generator=order).split(batch_size):
                batch = _network_input(data[chosen.to(target)])
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(network(batch), batch)
                loss.backward()
                optimizer.step()
                total += loss.detach() * len(chosen)
            rows.append((epoch, total.item() / len(data), time.perf_counter() - started))
            logger.info("epoch %d/%d: loss %.5f (%.1f s)", epoch, n_epochs, *rows[-1][1:])
            if not math.isfinite(rows[-1][1]):
                raise FloatingPointError(
                    f"the autoencoder's loss is {rows[-1][1]} after epoch {epoch}; try a "
                    f"learning_rate below {learning_rate}"
                )
    _warn_of_no_use(data, rows[-1][1])
    return network.eval(), rows


def _warn_of_no_use(data: torch.Tensor, loss: float) -> None:
    # Where most pixels are dark, training can stay at one image for all inputs.
    variance = _network_input(data[:10_000]).var(dim=0, correction=0).mean().item()
    if loss >= variance:
        logger.warning(
            "the autoencoder is no better (loss %.5f) than the mean image (%.5f): its latents "
            "say nothing of the images; change n_epochs, learning_rate or latent_size",
            loss,
            variance,
        )


@torch.inference_mode()
def in_batches(module: nn.Module, images: np.ndarray, device: str) -> np.ndarray:
    """Return what a network or its encoder makes of checked images, float32."""
    target = resolve_device(device)
    module.to(target).eval()
    batches = _tensor(images).split(_BATCH_SIZE)
    return torch.cat([module(_network_input(b.to(target))).cpu() for b in batches]).numpy()


def _tensor(images: np.ndarray) -> torch.Tensor:
    # torch shares the memory, and warns where that is read-only.
    return torch.from_numpy(np.require(images, requirements=["C", "W"]))


def _network_input(images: torch.Tensor) -> torch.Tensor:
    # The pixels stay as they lie in memory: images are stored with channels last.
    images = images.permute(0, 3, 1, 2)
    return images if images.is_floating_point() else images.float().div_(255)
