"""The convolutional autoencoder that turns images into latents (paper, appendix B.1.2)."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import nn

from epistemic_calibration.device import resolve_device
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("epistemic_calibration")


class Autoencoder(nn.Module):
    """Two convolutions and a linear layer down to the latent, and the mirror image back.

    Encoder: Conv2d to 16 channels, Conv2d to 32, each kernel 3, stride 2, padding 1;
    Linear to the latent; ReLU after each. Decoder: Linear, ConvTranspose2d to 16 channels
    and back to the image's, ReLU between and a sigmoid at the end. On 28x28x1 and 32x32x3
    images these are the paper's layers (1568 and 2048 values between the convolutions and
    the linear layers).

    Parameters
    ----------
    image_shape : (height, width, channels)
        Any size: the output padding of the decoder is what brings it back exactly.
    latent_size : int or "auto"
        See `default_latent_size`.
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
    within 32 ... 1024. This gives the paper's sizes, 64 for 28x28x1 and 256 for 32x32x3;
    8x8x1 gets 32.
    """
    twelfth = math.prod(image_shape) // 12
    return min(max(2 ** (max(twelfth, 1).bit_length() - 1), 32), 1024)


def train_autoencoder(
    images: np.ndarray,
    *,
    latent_size: int | Literal["auto"] = "auto",
    n_epochs: int = 5,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    random_state: int,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> tuple[Autoencoder, pd.DataFrame]:
    """Train the autoencoder with Adam on the mean squared error (paper, appendix B.1.2).

    Parameters
    ----------
    images : ndarray of shape (n_samples, height, width, channels)
        uint8, or floating point in [0, 1].
    latent_size : int or "auto"
        See `default_latent_size`.
    n_epochs, batch_size : int
        At least 1.
    learning_rate : float
        Step of Adam, above 0.
    random_state : int
        Seeds the initial weights and the order of the images; the global generators are
        left as they were. On a CPU equal seeds give equal weights for the same number of
        threads.
    device : "auto", "cpu" or "cuda"
        auto: cuda where there is one.

    Returns
    -------
    model : Autoencoder
    history : DataFrame
        One row an epoch: ``epoch`` (from 1), ``loss`` (mean over the epoch's batches,
        per pixel value), ``seconds`` since the start.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    FloatingPointError
        If the loss is not finite at the end of an epoch.
    """
    import pandas as pd

    data = _checked_images(images)
    if len(data) == 0:
        raise ValueError("images is empty; at least one image is needed")
    for name, value in (("n_epochs", n_epochs), ("batch_size", batch_size)):
        if not _is_integer(value) or value < 1:
            raise ValueError(f"{name}={value!r}; it must be an integer of at least 1")
    if latent_size != "auto" and (not _is_integer(latent_size) or latent_size < 1):
        raise ValueError(
            f"latent_size={latent_size!r}; it must be 'auto' or an integer of at least 1"
        )
    if not 0 < learning_rate < math.inf:
        raise ValueError(f"learning_rate={learning_rate!r}; it must be a number above 0")
    target = resolve_device(device)

    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which would seed the GPUs' global generators too.
        torch.default_generator.manual_seed(derive_seed(random_state, "weights"))
        model = Autoencoder(tuple(data.shape[1:]), latent_size)
    model = model.to(target).train()
    order = torch.Generator().manual_seed(derive_seed(random_state, "order"))
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True)

    logger.info(
        "autoencoder: %d images of %s, latent size %d, %d epochs on %s",
        len(data),
        "x".join(map(str, data.shape[1:])),
        model.latent_size,
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
                loss = nn.functional.mse_loss(model(batch), batch)
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
    # Where most pixels are dark, training can stay at one image for all inputs.
    variance = _network_input(data[:10_000]).var(dim=0, correction=0).mean().item()
    if rows[-1][1] >= variance:
        logger.warning(
            "the autoencoder is no better (loss %.5f) than the mean image (%.5f): its latents "
            "say nothing of the images; change n_epochs, learning_rate or latent_size",
            rows[-1][1],
            variance,
        )
    return model.eval(), pd.DataFrame(rows, columns=["epoch", "loss", "seconds"])


@torch.inference_mode()
def encode(
    model: Autoencoder,
    images: np.ndarray,
    *,
    batch_size: int = 1000,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> np.ndarray:
    """Return the latents of images, float32 (n_samples, latent_size), at least 0.

    Parameters
    ----------
    model : Autoencoder
        Moved to ``device``.
    images : ndarray of shape (n_samples, height, width, channels)
        uint8, or floating point in [0, 1].
    batch_size : int
        Images in memory at once.
    device : "auto", "cpu" or "cuda"

    Raises
    ------
    ValueError
        If the images are not of the shape that the model was trained on.
    FloatingPointError
        If a latent is not finite.
    """
    latents = np.empty((len(images), model.latent_size), dtype=np.float32)
    for rows, batch in _batches(model, images, batch_size, device):
        latents[rows] = model.encoder(batch).cpu().numpy()
    if not np.isfinite(latents).all():
        raise FloatingPointError("the autoencoder gives latents that are not finite")
    return latents


@torch.inference_mode()
def reconstruct(
    model: Autoencoder,
    images: np.ndarray,
    *,
    batch_size: int = 1000,
    device: Literal["auto", "cpu", "cuda"] = "auto",
) -> np.ndarray:
    """Return the reconstruction of images: their shape, float32 in [0, 1].

    Parameters and errors are those of `encode`.
    """
    result = np.empty(np.shape(images), dtype=np.float32)
    for rows, batch in _batches(model, images, batch_size, device):
        result[rows] = model(batch).permute(0, 2, 3, 1).cpu().numpy()
    return result


def _batches(
    model: Autoencoder, images: np.ndarray, batch_size: int, device: str
) -> Iterator[tuple[slice, torch.Tensor]]:
    data = _checked_images(images)
    if tuple(data.shape[1:]) != model.image_shape:
        raise ValueError(
            f"images have shape {tuple(data.shape[1:])}; the autoencoder was trained on "
            f"{model.image_shape} (height, width, channels)"
        )
    target = resolve_device(device)
    model.to(target).eval()
    for start in range(0, len(data), batch_size):
        rows = slice(start, start + batch_size)
        yield rows, _network_input(data[rows].to(target))


def save_weights(
    model: Autoencoder, path: str | Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Write the weights, the architecture and ``metadata`` to a safetensors file.

    Equal models and metadata make equal files, byte for byte.

    Parameters
    ----------
    model : Autoencoder
    path : path
    metadata : mapping of str to str, optional
        Must not have the key ``architecture``.
    """
    from safetensors.torch import save_file

    metadata = dict(metadata or {})
    if "architecture" in metadata:
        raise ValueError("metadata has the key 'architecture', which save_weights writes itself")
    architecture = {"image_shape": model.image_shape, "latent_size": model.latent_size}
    record = json.dumps({**metadata, "architecture": architecture}, sort_keys=True)
    tensors = {name: value.cpu().contiguous() for name, value in model.state_dict().items()}
    # One entry: safetensors writes several in random order.
    save_file(tensors, str(path), metadata={"autoencoder": record})


def load_weights(path: str | Path) -> tuple[Autoencoder, dict[str, Any]]:
    """Read what `save_weights` wrote.

    Returns
    -------
    model : Autoencoder
        On the CPU.
    metadata : dict
        As given to `save_weights`, and ``architecture``.

    Raises
    ------
    ValueError
        If the file is truncated, or is not one that `save_weights` wrote.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = json.loads((file.metadata() or {})["autoencoder"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        architecture = metadata["architecture"]
        with torch.random.fork_rng(devices=[]):
            model = Autoencoder(tuple(architecture["image_shape"]), architecture["latent_size"])
        model.load_state_dict(tensors)
    except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}): it is truncated or does not hold an autoencoder "
            f"of this project"
        ) from error
    return model.eval(), metadata


def n_dead_units(latents: np.ndarray) -> int:
    """Count the latent units whose value is the same for all of ``latents``.

    Parameters
    ----------
    latents : ndarray of shape (n_samples, latent_size)
        Of the training images.
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


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _checked_images(images: np.ndarray) -> torch.Tensor:
    images = np.asarray(images)
    if images.ndim != 4:
        raise ValueError(
            f"images has shape {images.shape}; it must be (n_samples, height, width, channels)"
        )
    if images.dtype != np.uint8:
        if images.dtype.kind != "f":
            raise ValueError(f"images has dtype {images.dtype}; it must be uint8 or float")
        images = images.astype(np.float32, copy=False)
        if images.size and not (images.min() >= 0 and images.max() <= 1):
            raise ValueError(
                f"images has values from {images.min()} to {images.max()}; floating-point "
                f"pixels must lie in [0, 1]"
            )
    # torch shares the memory, and warns where that is read-only.
    return torch.from_numpy(np.require(images, requirements=["C", "W"]))


def _network_input(images: torch.Tensor) -> torch.Tensor:
    # The pixels stay as they lie in memory: images are stored with channels last.
    images = images.permute(0, 3, 1, 2)
    return images if images.is_floating_point() else images.float().div_(255)
