"""The figures of an encoder."""

import numpy as np
import pandas as pd
import pytest

from epistemic_calibration.report.autoencoder_figures import (
    loss_curve,
    loss_of_mean_image,
    reconstructions,
)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_the_loss_of_the_mean_image_is_the_variance_of_the_pixels(dtype):
    images = np.random.default_rng(0).integers(0, 256, size=(2500, 4, 4, 1)).astype(np.uint8)
    expected = (images / 255).var(axis=0).mean()
    images = images if dtype is np.uint8 else (images / 255).astype(dtype)
    assert loss_of_mean_image(images) == pytest.approx(expected, rel=1e-5)


def test_the_loss_curve_shows_the_mean_image():
    history = pd.DataFrame({"epoch": [1, 2], "loss": [0.03, 0.01]})
    (ax,) = loss_curve(history, 0.05).axes
    np.testing.assert_allclose(ax.lines[0].get_ydata(), history["loss"])
    assert list(ax.lines[1].get_ydata()) == [0.05, 0.05]
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 0.05


@pytest.mark.parametrize("channels", [1, 3])
def test_reconstructions_of_grey_and_colour_images(channels):
    images = np.random.default_rng(0).uniform(size=(2, 8, 8, channels))
    figure = reconstructions(images, images * 0.5, ["$x$", "a\nb"])
    figure.draw_without_rendering()
    assert [ax.get_title() for ax in figure.axes] == [r"\$x\$", "a b", "", ""]
    for ax, expected in zip(figure.axes[1::2], (images[1], images[1] / 2), strict=True):
        np.testing.assert_allclose(ax.images[0].get_array(), expected.squeeze())
