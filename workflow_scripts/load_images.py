"""Read a data set's images and labels into one file."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from pathlib import Path

    import numpy as np

    from epistemic_calibration.data import load_images
    from epistemic_calibration.provenance import write_npz

    images = load_images(spec["settings"]["source"], Path(args.data_dir))
    arrays = {name: getattr(images, name) for name in ("x_train", "y_train", "x_test", "y_test")}
    write_npz(args.output, {**arrays, "class_names": np.array(images.class_names)}, spec)


if __name__ == "__main__":
    run_step(__doc__, step, ("--data-dir", {"required": True}), ("--output", {"required": True}))
