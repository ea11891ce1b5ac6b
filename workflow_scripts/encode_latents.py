"""Encode all images of a data set with its trained autoencoder."""

from epistemic_calibration.cli import logger, run_step


def step(args, spec):
    from epistemic_calibration.autoencoder import (
        encode,
        load_weights,
        n_dead_units,
        scale_latents,
    )
    from epistemic_calibration.provenance import read_npz, read_provenance_json, write_npz

    settings, inputs = spec["settings"], spec["inputs"]
    images, _ = read_npz(args.images, expected_fingerprint=inputs["images"])
    model, metadata = load_weights(args.weights)
    read_provenance_json(args.weights, metadata.get("provenance"), inputs["autoencoder"])
    train = encode(model, images["x_train"], device=settings["device"])
    test = encode(model, images["x_test"], device=settings["device"])
    dead = n_dead_units(train)
    logger.info("%d of %d latent units are dead", dead, train.shape[1])
    train, test = scale_latents(train, test, settings["scaling"])
    arrays = {
        "x_train": train,
        "y_train": images["y_train"],
        "x_test": test,
        "y_test": images["y_test"],
        "class_names": images["class_names"],
    }
    write_npz(args.output, arrays, spec, n_dead_units=dead)


if __name__ == "__main__":
    run_step(
        __doc__,
        step,
        ("--images", {"required": True}),
        ("--weights", {"required": True}),
        ("--output", {"required": True}),
    )
