"""The figures of an encoder."""

import numpy as np
import pandas as pd
import pytest

from epistemic_calibration.report.autoencoder_figures import loss_curve, reconstructions


def test_loss_curve():
    history = pd.DataFrame({"epoch": [1, 2, 3], "loss": [0.03, 0.01, 0.009]})
    (ax,) = loss_curve(history).axes
    np.testing.assert_allclose(ax.lines[0].get_ydata(), history["loss"])
    assert ax.get_ylim()[0] == 0
    with pytest.raises(ValueError, match="epoch and loss"):
        loss_curve(history.rename(columns={"loss": "mse"}))


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


def test_reconstructions_refuse_other_shapes():
    with pytest.raises(ValueError, match="same shape"):
        reconstructions(np.zeros((2, 8, 8)), np.zeros((2, 8, 9)), ["cat", "dog"])
    with pytest.raises(ValueError, match="not grey or colour"):
        reconstructions(np.zeros((2, 64)), np.zeros((2, 64)), ["cat", "dog"])
