"""Find the nearest training latents of every test latent."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    from epistemic_calibration.neighbors import nearest_neighbors
    from epistemic_calibration.provenance import read_npz, write_npz

    latents, _ = read_npz(
        args.latents, expected_fingerprint=spec["inputs"]["latents"], names=["x_train", "x_test"]
    )
    neighbors = nearest_neighbors(
        latents["x_train"], latents["x_test"], spec["settings"]["n_neighbors"]
    )
    write_npz(args.output, neighbors._asdict(), spec)


if __name__ == "__main__":
    run_step(__doc__, step, ("--latents", {"required": True}), ("--output", {"required": True}))
