"""Data sets with other encoders than the autoencoder, through the whole workflow."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def encoded(finished, tmp_path_factory):
    """A finished project, and data sets of the same images with the other encoders."""
    project = finished.copy(tmp_path_factory.mktemp("encoded") / "work")

    def add(config):
        digits = config["datasets"]["digits"]
        kept = {key: value for key, value in digits.items() if key != "autoencoder"}
        for name, block in (
            ("pixels", {"latents": {"encoder": "none"}}),
            ("components", {"latents": {"encoder": "pca"}, "pca": {"n_components": 5}}),
        ):
            config["datasets"][name] = {**kept, **block, "tasks_per_job": 3}

    project.configure(add)
    project.run("pixels", "components")
    return project


@pytest.mark.parametrize(("name", "n_features"), [("pixels", 64), ("components", 5)])
def test_methods_are_fitted_on_what_the_encoder_gives(encoded, name, n_features):
    folder = encoded.folder / "results"
    with np.load(folder / name / "seed0" / "latents.npz") as latents:
        assert latents["x_train"].shape == (300, n_features)
        assert latents["x_test"].shape == (200, n_features)
    table = (folder / "tables" / f"{name}_summary.md").read_text()
    for method in ("Random Forest", "EK-NN", "MC-Dropout"):
        assert method in table
    # Nothing to draw where nothing is trained.
    assert not list((folder / "figures" / name).glob("*_seed0.png"))
    assert (folder / "figures" / name / "calibration_map.png").is_file()


def test_pixels_are_the_images_themselves(encoded):
    folder = encoded.folder / "results" / "pixels"
    with np.load(folder / "images.npz") as images, np.load(folder / "seed0/latents.npz") as latents:
        np.testing.assert_array_equal(latents["x_test"], images["x_test"].reshape(200, -1))


def test_a_parameter_of_an_encoder_reruns_its_data_set_alone(encoded):
    encoded.configure(lambda c: c["datasets"]["components"]["pca"].update(n_components=6))
    planned = encoded.planned("digits", "pixels", "components")
    assert "Training the encoder of components, seed 0" in planned
    fits = [m for m in planned if m.startswith(("Fitting", "Encoding", "Training"))]
    assert all("components" in message for message in fits)
