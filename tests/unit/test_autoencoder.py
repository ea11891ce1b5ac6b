"""The autoencoder: sizes, training, files of weights."""

import numpy as np
import pytest
import torch
from plain_networks import AUTOENCODER as OPTIONS

from epistemic_calibration.latents._convolutional import ConvolutionalAutoencoder
from epistemic_calibration.latents.autoencoder import Autoencoder
from epistemic_calibration.seeds import derive_seed


def blobs(n, height=12, width=12, channels=1, seed=0):
    """Images of one bright spot, uint8."""
    rng = np.random.default_rng(seed)
    center = rng.uniform(0.2, 0.8, (2, n, 1, 1)) * np.array([height, width]).reshape(2, 1, 1, 1)
    rows, columns = np.mgrid[:height, :width]
    squared = (rows - center[0]) ** 2 + (columns - center[1]) ** 2
    images = np.round(255 * np.exp(-squared / 6)).astype(np.uint8)
    return np.repeat(images[..., None], channels, axis=3)


@pytest.mark.parametrize(
    ("shape", "latent_size", "flat"),
    [((28, 28, 1), 64, 1568), ((32, 32, 3), 256, 2048)],
)
def test_the_paper_s_layers(shape, latent_size, flat):
    model = ConvolutionalAutoencoder(shape)
    channels = shape[2]
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters() if "weight" in name}
    assert shapes == {
        "encoder.0.weight": (16, channels, 3, 3),
        "encoder.2.weight": (32, 16, 3, 3),
        "encoder.5.weight": (latent_size, flat),
        "decoder.0.weight": (flat, latent_size),
        "decoder.3.weight": (32, 16, 3, 3),
        "decoder.5.weight": (16, channels, 3, 3),
    }
    strides = [m.stride for m in model.modules() if hasattr(m, "stride")]
    assert strides == [(2, 2)] * 4


@pytest.mark.parametrize(
    "shape",
    [(28, 28, 1), (32, 32, 3), (7, 7, 1), (9, 14, 1), (5, 4, 3), (1, 2, 1)],
)
def test_images_come_back_in_their_shape(shape):
    images = np.random.default_rng(0).random((3, *shape))
    encoder = Autoencoder(n_epochs=1, min_steps=1, latent_size=5, device="cpu").fit(images)
    latents = encoder.encode(images)
    again = encoder.reconstruct(images)
    assert latents.shape == (3, 5)
    assert again.shape == images.shape
    assert latents.dtype == again.dtype == np.float32
    assert latents.min() >= 0
    assert again.min() >= 0
    assert again.max() <= 1


def test_the_loss_falls_below_that_of_the_mean_image():
    images = blobs(300)
    longer = {"latent_size": 32, "n_epochs": 15, "batch_size": 16, "learning_rate": 3e-3}
    encoder = Autoencoder(**{**OPTIONS, **longer}).fit(images)
    history = encoder.history()
    assert list(history["epoch"]) == list(range(1, 16))
    assert (np.diff(history["seconds"]) > 0).all()
    pixels = images / 255
    variance = pixels.var(axis=0).mean()
    assert history["loss"].iloc[-1] < 0.5 * variance < history["loss"].iloc[0]
    error = np.mean((encoder.reconstruct(images) - pixels) ** 2)
    # The last epoch's mean is taken while the weights still improve.
    assert error == pytest.approx(history["loss"].iloc[-1], rel=0.3)


def test_training_is_that_of_a_plain_loop():
    images = blobs(50, channels=3)
    options = {**OPTIONS, "batch_size": 16, "learning_rate": 1e-3}
    history = Autoencoder(random_state=5, **options).fit(images).history()

    torch_images = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous() / 255
    state = torch.get_rng_state()
    torch.manual_seed(derive_seed(5, "weights"))
    layers = ConvolutionalAutoencoder((12, 12, 3), 8).to(memory_format=torch.contiguous_format)
    torch.set_rng_state(state)
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3, foreach=False)
    generator = torch.Generator().manual_seed(derive_seed(5, "order"))
    for loss in history["loss"]:
        total = 0.0
        order = torch.randperm(50, generator=generator)
        for start in range(0, 50, 16):
            batch = torch_images[order[start : start + 16]]
            optimizer.zero_grad()
            error = ((layers(batch) - batch) ** 2).mean()
            error.backward()
            optimizer.step()
            total += error.item() * len(batch)
        assert loss == pytest.approx(total / 50, rel=1e-4)


def test_latents_that_say_nothing_are_warned_of(caplog):
    Autoencoder(**{**OPTIONS, "n_epochs": 1}).fit(blobs(100))
    assert "no better" in caplog.text
    assert "than the mean image" in caplog.text


@pytest.mark.fault
def test_a_loss_that_is_not_finite_is_an_error():
    with pytest.raises(FloatingPointError, match="loss is nan after epoch 1; try a learning_rate"):
        Autoencoder(**{**OPTIONS, "learning_rate": 1e38}).fit(blobs(100))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_epochs": 0}, "n_epochs=0"),
        ({"latent_size": "large"}, "latent_size='large'"),
        ({"learning_rate": 0}, "learning_rate=0"),
        ({"device": "tpu"}, "device='tpu'; it must be one of auto, cpu, cuda"),
    ],
)
def test_wrong_arguments_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        Autoencoder(**{**OPTIONS, **changes}).fit(blobs(10))


def test_latent_size_auto_comes_back_from_the_file(tmp_path):
    images = blobs(40, 28, 28)
    encoder = Autoencoder(n_epochs=1, min_steps=1, device="cpu").fit(images)
    encoder.save(tmp_path / "weights.safetensors")
    again = Autoencoder.load(tmp_path / "weights.safetensors")
    assert again.latent_size == "auto"
    assert again.encode(images).shape == (40, 64)
