"""Train the autoencoder of a data set on its training images."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from epistemic_calibration.autoencoder import save_weights, train_autoencoder
    from epistemic_calibration.provenance import (
        atomic_path,
        canonical_json,
        provenance_record,
        read_npz,
    )
    from epistemic_calibration.seeds import derive_seed

    settings = spec["settings"]
    images, _ = read_npz(
        args.images, expected_fingerprint=spec["inputs"]["images"], names=["x_train"]
    )
    model, history = train_autoencoder(
        images["x_train"],
        random_state=derive_seed(settings["seed"], settings["dataset"], "autoencoder"),
        **{
            key: settings[key]
            for key in ("latent_size", "n_epochs", "batch_size", "learning_rate", "device")
        },
    )
    with atomic_path(args.loss) as path:
        history.to_csv(path, index=False)
    with atomic_path(args.weights) as path:
        save_weights(model, path, {"provenance": canonical_json(provenance_record(spec))})


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--images", {"required": True}),
        ("--weights", {"required": True}),
        ("--loss", {"required": True}),
    )
