"""The autoencoder: sizes, training, files of weights, scaling of latents."""

import logging

import numpy as np
import pytest
import torch

from epistemic_calibration.autoencoder import (
    Autoencoder,
    default_latent_size,
    encode,
    load_weights,
    n_dead_units,
    reconstruct,
    save_weights,
    scale_latents,
    train_autoencoder,
)
from epistemic_calibration.seeds import derive_seed

OPTIONS = {"n_epochs": 2, "batch_size": 32, "latent_size": 8, "device": "cpu"}


def blobs(n, height=12, width=12, channels=1, seed=0):
    """Images of one bright spot, uint8."""
    rng = np.random.default_rng(seed)
    center = rng.uniform(0.2, 0.8, (2, n, 1, 1)) * np.array([height, width]).reshape(2, 1, 1, 1)
    rows, columns = np.mgrid[:height, :width]
    squared = (rows - center[0]) ** 2 + (columns - center[1]) ** 2
    images = np.round(255 * np.exp(-squared / 6)).astype(np.uint8)
    return np.repeat(images[..., None], channels, axis=3)


@pytest.fixture(scope="module")
def trained():
    images = blobs(300)
    model, history = train_autoencoder(
        images,
        random_state=0,
        latent_size=32,
        n_epochs=15,
        batch_size=16,
        learning_rate=3e-3,
        device="cpu",
    )
    return model, history, images


@pytest.mark.parametrize(
    ("shape", "latent_size", "flat"),
    [((28, 28, 1), 64, 1568), ((32, 32, 3), 256, 2048)],
)
def test_the_paper_s_layers(shape, latent_size, flat):
    model = Autoencoder(shape)
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
    ("shape", "latent_size"),
    [
        ((28, 28, 1), 64),
        ((32, 32, 3), 256),
        ((8, 8, 1), 32),
        ((64, 64, 3), 1024),
        ((256, 256, 3), 1024),
        ((1, 1, 1), 32),
    ],
)
def test_default_latent_size(shape, latent_size):
    assert default_latent_size(shape) == latent_size


@pytest.mark.parametrize(
    "shape",
    [(28, 28, 1), (32, 32, 3), (8, 8, 1), (7, 7, 1), (30, 30, 3), (9, 14, 1), (5, 4, 3), (1, 2, 1)],
)
def test_images_come_back_in_their_shape(shape):
    model = Autoencoder(shape, 5)
    images = np.random.default_rng(0).random((3, *shape))
    latents = encode(model, images, device="cpu")
    again = reconstruct(model, images, device="cpu")
    assert latents.shape == (3, 5)
    assert again.shape == images.shape
    assert latents.dtype == again.dtype == np.float32
    assert latents.min() >= 0
    assert again.min() >= 0
    assert again.max() <= 1


def test_the_loss_falls_below_that_of_the_mean_image(trained):
    model, history, images = trained
    assert list(history["epoch"]) == list(range(1, 16))
    assert (np.diff(history["seconds"]) > 0).all()
    pixels = images / 255
    variance = pixels.var(axis=0).mean()
    assert history["loss"].iloc[-1] < 0.5 * variance < history["loss"].iloc[0]
    error = np.mean((reconstruct(model, images, device="cpu") - pixels) ** 2)
    # The last epoch's mean is taken while the weights still improve.
    assert error == pytest.approx(history["loss"].iloc[-1], rel=0.3)


def test_training_is_that_of_a_plain_loop():
    images = blobs(50, channels=3)
    options = {**OPTIONS, "batch_size": 16, "learning_rate": 1e-3}
    _, history = train_autoencoder(images, random_state=5, **options)

    torch_images = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous() / 255
    state = torch.get_rng_state()
    torch.manual_seed(derive_seed(5, "weights"))
    layers = Autoencoder((12, 12, 3), 8).to(memory_format=torch.contiguous_format)
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
    train_autoencoder(blobs(100), random_state=0, **{**OPTIONS, "n_epochs": 1})
    assert "no better" in caplog.text
    assert "than the mean image" in caplog.text


def test_equal_seeds_give_equal_weights_and_leave_the_global_generators_alone():
    images = blobs(100)
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    one, history = train_autoencoder(images, random_state=3, **OPTIONS)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    torch.manual_seed(2)
    two, again = train_autoencoder(images, random_state=3, **OPTIONS)
    other, _ = train_autoencoder(images, random_state=4, **OPTIONS)
    for name, value in one.state_dict().items():
        assert torch.equal(value, two.state_dict()[name])
    assert not torch.equal(one.encoder[0].weight, other.encoder[0].weight)
    assert list(history["loss"]) == list(again["loss"])


def test_floating_point_and_read_only_images_give_the_same_as_uint8():
    images = blobs(64)
    pixels = (images.astype(np.float32) / np.float32(255))[::-1].copy()[::-1]
    pixels.flags.writeable = False
    one, _ = train_autoencoder(images, random_state=0, **OPTIONS)
    two, _ = train_autoencoder(pixels, random_state=0, **OPTIONS)
    assert np.array_equal(
        encode(one, images, device="cpu"), encode(two, pixels.astype(np.float64), device="cpu")
    )


def test_encoding_does_not_depend_on_the_batches(trained):
    model, _, images = trained
    whole = encode(model, images, device="cpu")
    parts = encode(model, images, batch_size=7, device="cpu")
    np.testing.assert_allclose(parts, whole, rtol=1e-4, atol=1e-5)


def test_progress_is_logged(caplog):
    with caplog.at_level(logging.INFO, logger="epistemic_calibration"):
        train_autoencoder(blobs(40), random_state=0, **OPTIONS)
    text = caplog.text
    assert "40 images of 12x12x1, latent size 8" in text
    assert "epoch 1/2: loss" in text
    assert "epoch 2/2: loss" in text


def test_a_loss_that_is_not_finite_is_an_error():
    with pytest.raises(FloatingPointError, match="loss is nan after epoch 1; try a learning_rate"):
        train_autoencoder(blobs(100), random_state=0, **{**OPTIONS, "learning_rate": 1e38})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": np.zeros((3, 8, 8))}, r"images has shape \(3, 8, 8\)"),
        ({"images": np.zeros((0, 8, 8, 1))}, "images is empty"),
        ({"images": np.zeros((3, 8, 8, 1), dtype=int)}, "dtype int64; it must be uint8 or float"),
        ({"images": np.full((3, 8, 8, 1), 1.5)}, "values from 1.5 to 1.5"),
        ({"images": np.full((3, 8, 8, 1), np.nan)}, "values from nan to nan"),
        ({"n_epochs": 0}, "n_epochs=0"),
        ({"batch_size": 1.5}, "batch_size=1.5"),
        ({"latent_size": "large"}, "latent_size='large'"),
        ({"learning_rate": 0}, "learning_rate=0"),
        ({"device": "tpu"}, "device='tpu'; it must be one of auto, cpu, cuda"),
    ],
)
def test_wrong_arguments_are_named(changes, message):
    arguments = {"images": blobs(10), "random_state": 0, **OPTIONS, **changes}
    with pytest.raises(ValueError, match=message):
        train_autoencoder(arguments.pop("images"), **arguments)


def test_images_of_another_shape_are_refused(trained):
    model, *_ = trained
    with pytest.raises(ValueError, match=r"\(9, 9, 1\); the autoencoder was trained on \(12, 12"):
        encode(model, blobs(3, 9, 9), device="cpu")


def test_weights_come_back_from_their_file(trained, tmp_path):
    model, _, images = trained
    path = tmp_path / "weights.safetensors"
    save_weights(model, path, {"provenance": '{"seed": 0}'})
    state = torch.get_rng_state()
    again, metadata = load_weights(path)
    assert torch.equal(torch.get_rng_state(), state)
    assert metadata["provenance"] == '{"seed": 0}'
    assert metadata["architecture"] == {"image_shape": [12, 12, 1], "latent_size": 32}
    assert np.array_equal(encode(again, images, device="cpu"), encode(model, images, device="cpu"))
    assert np.array_equal(
        reconstruct(again, images, device="cpu"), reconstruct(model, images, device="cpu")
    )
    other = tmp_path / "again.safetensors"
    save_weights(again, other, {"provenance": '{"seed": 0}'})
    assert other.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("n_bytes", [0, 5, 200, -1])
def test_a_truncated_file_of_weights_is_named(trained, tmp_path, n_bytes):
    path = tmp_path / "weights.safetensors"
    save_weights(trained[0], path)
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(ValueError, match=r"weights\.safetensors cannot be read"):
        load_weights(path)


def test_a_file_of_other_weights_is_refused(tmp_path):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(2)}, str(tmp_path / "other.safetensors"))
    with pytest.raises(ValueError, match=r"other\.safetensors cannot be read"):
        load_weights(tmp_path / "other.safetensors")


def test_scaling_leaves_dead_units_as_they_are():
    rng = np.random.default_rng(0)
    train = rng.gamma(2, 3, (50, 5)).astype(np.float32)
    test = rng.gamma(2, 3, (20, 5)).astype(np.float32)
    # The mean of this constant is not exact: its computed variance is positive.
    train[:, 1], train[:, 3] = 0, np.float32(0.1)
    assert n_dead_units(train) == 2
    alive = [0, 2, 4]

    same = scale_latents(train, test, "none")
    assert np.array_equal(same[0], train)
    assert np.array_equal(same[1], test)

    standard = scale_latents(train, test, "standard")
    np.testing.assert_allclose(standard[0][:, alive].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(standard[0][:, alive].std(axis=0), 1, rtol=1e-6)
    minmax = scale_latents(train, test, "minmax")
    assert np.array_equal(minmax[0][:, alive].min(axis=0), np.zeros(3))
    assert np.array_equal(minmax[0][:, alive].max(axis=0), np.ones(3))
    for scaled in (standard, minmax):
        assert np.array_equal(scaled[0][:, [1, 3]], train[:, [1, 3]])
        assert np.array_equal(scaled[1][:, [1, 3]], test[:, [1, 3]])
        assert scaled[0].dtype == scaled[1].dtype == np.float32
        # The test set is moved by what the training set says.
        slope = (scaled[0][0] - scaled[0][1])[alive] / (train[0] - train[1])[alive]
        expected = scaled[0][0, alive] + slope * (test[0] - train[0])[alive]
        np.testing.assert_allclose(scaled[1][0, alive], expected, rtol=1e-4, atol=1e-5)


def test_scaling_names_wrong_arguments():
    with pytest.raises(ValueError, match="scaling='robust'; it must be one of none, standard"):
        scale_latents(np.ones((2, 2)), np.ones((2, 2)), "robust")
    with pytest.raises(ValueError, match="the same units"):
        scale_latents(np.ones((2, 2)), np.ones((2, 3)), "none")
