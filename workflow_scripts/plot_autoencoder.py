"""Draw the autoencoder's loss curve and the reconstruction of a few test images."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from pathlib import Path

    import numpy as np
    import pandas as pd

    from epistemic_calibration.autoencoder import load_weights, reconstruct
    from epistemic_calibration.data import ImageDataset
    from epistemic_calibration.figures import loss_curve, reconstructions, save_figure
    from epistemic_calibration.provenance import fingerprint, read_npz, read_provenance_json

    inputs = spec["inputs"]
    images, _ = read_npz(
        args.images,
        expected_fingerprint=inputs["images"],
        names=["x_test", "y_test", "class_names"],
    )
    model, metadata = load_weights(args.weights)
    read_provenance_json(args.weights, metadata.get("provenance"), inputs["autoencoder"])
    loss_stem, _, reconstruction_stem, _ = (Path(path).with_suffix("") for path in args.figures)
    save_figure(loss_curve(pd.read_csv(args.loss)), loss_stem, fingerprint(spec))
    shown = [np.flatnonzero(images["y_test"] == k)[0] for k in np.unique(images["y_test"])]
    originals = ImageDataset.pixels(images["x_test"][shown])
    names = [str(images["class_names"][k]) for k in images["y_test"][shown]]
    save_figure(
        reconstructions(originals, reconstruct(model, originals, device="cpu"), names),
        reconstruction_stem,
        fingerprint(spec),
    )


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--images", {"required": True}),
        ("--weights", {"required": True}),
        ("--loss", {"required": True}),
        (
            "--figures",
            {"required": True, "nargs": 4, "help": "loss .png .pdf, reconstructions .png .pdf"},
        ),
    )
