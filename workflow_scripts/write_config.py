"""Write the configuration as the run understood it, every default filled in."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    import yaml

    from epistemic_calibration.provenance import atomic_path

    with atomic_path(args.output) as path:
        path.write_text(yaml.safe_dump(spec["settings"]["config"], sort_keys=False))


if __name__ == "__main__":
    run_step(__doc__, step, ("--output", {"required": True}))
