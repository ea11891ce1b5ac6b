"""The contract of every encoder: an encoder of its own file is tested without being named."""

import dataclasses
import functools
import typing

import numpy as np
import pytest
from plain_networks import AUTOENCODER

from epistemic_calibration.data import Dataset
from epistemic_calibration.latents import available_encoders, load_encoder
from epistemic_calibration.latents.base import Encoder
from epistemic_calibration.latents.none import Unencoded
from epistemic_calibration.latents.pca import PrincipalComponents
from epistemic_calibration.parameters import BOUNDS

#: Parameters that keep the tests fast.
QUICK = {"autoencoder": AUTOENCODER}


def pictures(n=60, height=10, width=7, channels=1, seed=0):
    """Images of smooth random shapes, uint8, whose first column of pixels is constant."""
    rng = np.random.default_rng(seed)
    waves = np.sin(
        rng.uniform(0.2, 1, (n, 1, 1, channels)) * np.mgrid[:height, :width].sum(0)[..., None]
    )
    images = np.round(127.5 * (1 + waves)).astype(np.uint8)
    images[:, :, 0] = 77
    return images


@pytest.fixture(params=available_encoders())
def make(request):
    """A function that makes an encoder that is not fitted."""
    return functools.partial(load_encoder(request.param), **QUICK.get(request.param, {}))


@pytest.fixture
def fitted(make):
    return make().fit(pictures())


def test_the_class_says_its_name_and_describes_its_parameters(make):
    encoder = make()
    assert load_encoder(encoder.name()) is type(encoder)
    assert isinstance(encoder, Encoder)
    assert type(encoder).__doc__
    # Annotations are read where the configuration is checked.
    hints = typing.get_type_hints(type(encoder), include_extras=True)
    for field in dataclasses.fields(encoder):
        assert field.kw_only
        assert field.name in hints
        assert field.default is not dataclasses.MISSING
        if field.name != "random_state":
            assert field.metadata["description"]
            assert set(field.metadata) <= {"description", *BOUNDS}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_latents_are_one_finite_float32_row_an_image(make, channels, dtype):
    images = pictures(channels=channels)
    if dtype != np.uint8:
        images = images.astype(dtype) / dtype(255)
    encoder = make()
    assert encoder.fit(images) is encoder
    assert encoder.input_shape_ == (10, 7, channels)
    latents, fewer = encoder.encode(images), encoder.encode(images[:7])
    assert latents.ndim == 2
    assert len(latents) == 60
    assert fewer.shape == (7, latents.shape[1])
    assert encoder.encode(images[:0]).shape == (0, latents.shape[1])
    assert latents.dtype == np.float32
    assert np.isfinite(latents).all()
    # A row depends on its image alone.
    np.testing.assert_allclose(fewer, latents[:7], rtol=1e-4, atol=1e-5)


def test_pixels_and_their_bytes_have_the_same_latents(make):
    images = pictures()
    pixels = Dataset.pixels(images)
    assert np.array_equal(make().fit(images).encode(images), make().fit(pixels).encode(pixels))


def test_equal_seeds_give_equal_latents_whatever_the_global_generators(make):
    import torch

    images, new = pictures(), pictures(seed=1)
    latents = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
        latents.append(make(random_state=5).fit(images).encode(new))
        assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
        assert torch.equal(torch.get_rng_state(), before[1])
    assert np.array_equal(*latents)


def test_fitting_again_forgets_the_images_before(make):
    images = pictures()
    again = make().fit(pictures(height=8)).fit(images)
    assert np.array_equal(again.encode(images), make().fit(images).encode(images))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_images_are_not_changed(make, dtype):
    images = pictures() if dtype == np.uint8 else Dataset.pixels(pictures())
    copy = images.copy()
    # Read-only arrays come from memory maps.
    images.flags.writeable = False
    encoder = make().fit(images)
    latents = encoder.encode(images)
    assert not np.shares_memory(latents, images)
    latents += 1
    assert np.array_equal(images, copy)


@pytest.mark.filterwarnings("error")
def test_images_without_any_difference_have_finite_latents(make):
    images = np.full((20, 8, 8, 1), 100, dtype=np.uint8)
    latents = make().fit(images).encode(images)
    np.testing.assert_allclose(latents, np.tile(latents[0], (20, 1)), atol=1e-6)
    assert np.isfinite(latents).all()


def test_the_file_gives_the_encoder_back(fitted, tmp_path):
    path, images = tmp_path / "weights.safetensors", pictures(seed=1)
    fitted.save(path, {"made_by": "a test"})
    again = type(fitted).load(path)
    assert again.input_shape_ == fitted.input_shape_
    assert again.metadata_ == {"made_by": "a test"}
    parameters = dataclasses.asdict(fitted)
    if "device" in parameters:
        again.device = fitted.device
    assert dataclasses.asdict(again) == parameters
    assert np.array_equal(again.encode(images), fitted.encode(images))
    again.save(tmp_path / "again.safetensors", {"made_by": "a test"})
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()
    again.fit(images)


def test_history_has_a_row_an_epoch(make, tmp_path):
    encoder = make()
    assert list(encoder.history().columns) == ["epoch", "loss", "seconds"]
    assert len(encoder.history()) == 0
    history = encoder.fit(pictures()).history()
    assert list(history.columns) == ["epoch", "loss", "seconds"]
    assert len(history) == getattr(encoder, "n_epochs", 0)
    encoder.save(tmp_path / "weights.safetensors")
    assert len(type(encoder).load(tmp_path / "weights.safetensors").history()) == 0


def test_reconstructions_are_images(fitted):
    images = pictures(seed=1)
    if not fitted.reconstructs:
        with pytest.raises(NotImplementedError, match=f"'{fitted.name()}' does not reconstruct"):
            fitted.reconstruct(images)
        return
    again = fitted.reconstruct(images)
    assert again.shape == images.shape
    assert again.dtype == np.float32
    assert again.min() >= 0
    assert again.max() <= 1


@pytest.mark.fault
@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((3, 8, 8)), r"images has shape \(3, 8, 8\)"),
        (np.zeros((0, 8, 8, 1)), "images is empty"),
        (np.zeros((3, 8, 8, 1), dtype=int), "dtype int64; it must be uint8 or float"),
        (np.full((3, 8, 8, 1), -0.5), "values from -0.5 to -0.5"),
        (np.full((3, 8, 8, 1), np.nan), "values from nan to nan"),
    ],
)
def test_what_is_not_images_is_named(make, images, message):
    with pytest.raises(ValueError, match=message):
        make().fit(images)


@pytest.mark.fault
def test_images_of_another_shape_are_named(fitted):
    message = rf"\(10, 6, 1\); the encoder '{fitted.name()}' was fitted on \(10, 7, 1\)"
    with pytest.raises(ValueError, match=message):
        fitted.encode(pictures(width=6))


def test_an_encoder_that_is_not_fitted_says_so(make, tmp_path):
    encoder = make()
    with pytest.raises(RuntimeError, match=f"'{encoder.name()}' is not fitted; call fit first"):
        encoder.encode(pictures())
    with pytest.raises(RuntimeError, match="not fitted"):
        encoder.save(tmp_path / "weights.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault
@pytest.mark.parametrize("n_bytes", [0, 5, 50, -1])
def test_a_truncated_file_is_named(fitted, tmp_path, n_bytes):
    path = tmp_path / "weights.safetensors"
    fitted.save(path)
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(ValueError, match=r"weights\.safetensors cannot be read"):
        type(fitted).load(path)


@pytest.mark.fault
def test_the_file_of_another_encoder_is_refused(fitted, tmp_path):
    path = tmp_path / "weights.safetensors"
    fitted.save(path)
    other = PrincipalComponents if isinstance(fitted, Unencoded) else Unencoded
    message = f"holds the encoder '{fitted.name()}', not '{other.name()}'"
    with pytest.raises(ValueError, match=message):
        other.load(path)


@pytest.mark.fault
def test_latents_that_are_not_finite_are_an_error():
    class Infinite(Unencoded):
        def _encode(self, images):
            return np.full((len(images), 2), np.inf, dtype=np.float32)

    images = pictures()
    with pytest.raises(FloatingPointError, match="gives latents that are not finite"):
        Infinite().fit(images).encode(images)


def test_none_gives_the_pixels():
    images = pictures(channels=3)
    latents = Unencoded().fit(images[:5]).encode(images)
    assert np.array_equal(latents, (images / 255).astype(np.float32).reshape(60, 210))
    row = 3 * (7 * 2 + 4)
    assert np.array_equal(latents[:, row : row + 3], Dataset.pixels(images[:, 2, 4]))


@pytest.fixture
def correlated():
    """Features in [0, 1] whose covariance has well-separated eigenvalues."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    wide = rng.standard_normal((500, 40)) * 0.7 ** np.arange(40) @ basis
    wide = (wide - wide.min()) / np.ptp(wide)
    return wide.astype(np.float32).reshape(500, 5, 8, 1)


def test_pca_is_the_singular_value_decomposition(correlated):
    train, test = correlated[:400], correlated[400:]
    latents = PrincipalComponents(n_components=10).fit(train).encode(test)
    flat = train.reshape(400, 40).astype(np.float64)
    mean = flat.mean(axis=0)
    directions = np.linalg.svd(flat - mean)[2][:10]
    expected = (test.reshape(100, 40) - mean) @ directions.T
    # A direction has no sign.
    signs = np.sign((latents * expected).sum(axis=0))
    np.testing.assert_allclose(latents * signs, expected, atol=1e-6)


@pytest.mark.parametrize(("n_images", "kept"), [(20, 19), (60, 40)])
def test_pca_keeps_the_components_that_have_variance(correlated, n_images, kept):
    images = correlated[:n_images]
    assert PrincipalComponents().fit(images).encode(correlated).shape == (500, kept)


def test_pca_of_grey_images_in_colour_is_that_of_the_grey_ones():
    grey = pictures()
    latents = PrincipalComponents(n_components=64).fit(grey).encode(grey)
    # A constant column and equal channels are no components, only the rounding would be.
    assert latents.shape[1] < 60
    colour = np.repeat(grey, 3, axis=3)
    wider = PrincipalComponents(n_components=64).fit(colour).encode(colour)
    assert wider.shape == latents.shape
    np.testing.assert_allclose(np.abs(wider), np.sqrt(3) * np.abs(latents), atol=1e-5)


@pytest.mark.fault
@pytest.mark.parametrize("n_components", [0, 2.5, True])
def test_pca_names_a_wrong_number_of_components(n_components):
    with pytest.raises(ValueError, match=f"n_components={n_components}; it must be an integer"):
        PrincipalComponents(n_components=n_components).fit(pictures())


def test_features_are_taken_as_they_are_where_the_encoder_takes_them(tmp_path):
    x = 1e9 + np.arange(12.0).reshape(4, 3)
    encoder = Unencoded().fit(x)
    encoder.save(tmp_path / "weights.safetensors")
    latents = Unencoded.load(tmp_path / "weights.safetensors").encode(x)
    # In their own precision: float32 would not tell them apart.
    assert latents.dtype == np.float64
    assert np.array_equal(latents, x)
    assert not np.shares_memory(latents, x)
    with pytest.raises(ValueError, match=r"shape \(2,\); .* was fitted on \(3,\) \(n_features,\)"):
        encoder.encode(x[:, :2])
    with pytest.raises(ValueError, match="features have values that are NaN or infinite"):
        encoder.encode(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="dtype int64; they must be"):
        encoder.fit(np.ones((2, 3), int))
    with pytest.raises(ValueError, match=r"images has shape \(4, 3\)"):
        PrincipalComponents().fit(x)
