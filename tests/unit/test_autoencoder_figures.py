"""The figures of an encoder."""

import numpy as np
import pandas as pd
import pytest

from epistemic_calibration.report.autoencoder_figures import (
    loss_curve,
    loss_of_mean_image,
    reconstructions,
)


def test_loss_curve():
    history = pd.DataFrame({"epoch": [1, 2, 3], "loss": [0.03, 0.01, 0.009]})
    (ax,) = loss_curve(history).axes
    np.testing.assert_allclose(ax.lines[0].get_ydata(), history["loss"])
    assert ax.get_ylim()[0] == 0
    with pytest.raises(ValueError, match="epoch and loss"):
        loss_curve(history.rename(columns={"loss": "mse"}))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_the_loss_of_the_mean_image_is_the_variance_of_the_pixels(dtype):
    images = np.random.default_rng(0).integers(0, 256, size=(2500, 4, 4, 1)).astype(np.uint8)
    expected = (images / 255).var(axis=0).mean()
    images = images if dtype is np.uint8 else (images / 255).astype(dtype)
    assert loss_of_mean_image(images) == pytest.approx(expected, rel=1e-5)


def test_the_loss_curve_shows_the_mean_image():
    figure = loss_curve(pd.DataFrame({"epoch": [1, 2], "loss": [0.03, 0.01]}), mean_image=0.05)
    (ax,) = figure.axes
    assert list(ax.lines[1].get_ydata()) == [0.05, 0.05]
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 0.05
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["autoencoder", "mean image"]


def test_class_names_are_drawn_as_they_are():
    figure = reconstructions(np.zeros((3, 8, 8)), np.zeros((3, 8, 8)), ["$x$", "a\nb", "$"])
    figure.draw_without_rendering()
    assert [ax.get_title() for ax in figure.axes[:3]] == [r"\$x\$", "a b", r"\$"]


@pytest.mark.parametrize(
    "shape", [(2, 8, 8), (2, 1, 8, 8), (2, 8, 8, 1), (2, 3, 8, 8), (2, 8, 8, 3)]
)
def test_reconstructions_of_grey_and_colour_images(shape):
    images = np.random.default_rng(0).uniform(size=shape)
    figure = reconstructions(images, images * 0.5, ["cat", "dog"])
    figure.draw_without_rendering()
    assert [ax.get_title() for ax in figure.axes] == ["cat", "dog", "", ""]
    shown = figure.axes[1].images[0].get_array()
    assert shown.shape == ((8, 8, 3) if 3 in shape else (8, 8))
    second = images[1]
    expected = second.transpose(1, 2, 0) if shape[1] == 3 else second.reshape(shown.shape)
    np.testing.assert_allclose(shown, expected)


@pytest.mark.fault
def test_reconstructions_refuse_other_shapes():
    with pytest.raises(ValueError, match="same shape"):
        reconstructions(np.zeros((2, 8, 8)), np.zeros((2, 8, 9)), ["cat", "dog"])
    with pytest.raises(ValueError, match="not grey or colour"):
        reconstructions(np.zeros((2, 64)), np.zeros((2, 64)), ["cat", "dog"])
