"""Draw an encoder's loss curve and its reconstruction of a few test images."""

from epistemic_calibration.registry import module_path
from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, dataset, seed):
    encoder = plan.encoding(dataset).encoder
    trained = plan.made_by("encoder", dataset=dataset, seed=seed)
    images = plan.made_by("images", dataset=dataset)
    return Needs(
        {"encoder": encoder},
        {"images": images, "labels": images, "weights": trained, "loss": trained},
        sources=[module_path("epistemic_calibration.latents", encoder)],
    )


def step(job):
    import numpy as np
    import pandas as pd

    from epistemic_calibration.data import Dataset
    from epistemic_calibration.files import read_npz
    from epistemic_calibration.latents import load_encoder
    from epistemic_calibration.report._saving import save_figure
    from epistemic_calibration.report.autoencoder_figures import (
        loss_curve,
        loss_of_mean_image,
        reconstructions,
    )

    images, _ = read_npz(job.inputs.images, ["x_train", "x_test"])
    labels, _ = read_npz(job.inputs.labels, ["y_test", "class_names"])
    encoder = load_encoder(job.settings.encoder).load(job.inputs.weights)
    encoder.device = "cpu"
    loss, _, drawn, _ = job.outputs.figures
    mean_image = loss_of_mean_image(images["x_train"])
    figure = loss_curve(pd.read_csv(job.inputs.loss), mean_image)
    save_figure(figure, loss.removesuffix(".png"))
    y_test = labels["y_test"]
    shown = [np.flatnonzero(y_test == k)[0] for k in np.unique(y_test)]
    originals = Dataset.pixels(images["x_test"][shown])
    names = [str(labels["class_names"][k]) for k in y_test[shown]]
    figure = reconstructions(originals, encoder.reconstruct(originals), names)
    save_figure(figure, drawn.removesuffix(".png"))


STAGE = Stage(needs, step, inputs=("images", "labels", "weights", "loss"), outputs=("figures*",))
