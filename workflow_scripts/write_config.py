"""Write the configuration as the run understood it, every default filled in."""

from epistemic_calibration.cli import run_step


def step(args, spec):
    import yaml

    from epistemic_calibration.provenance import atomic_path, fingerprint

    with atomic_path(args.output) as path:
        text = yaml.safe_dump(spec["settings"]["config"], sort_keys=False)
        path.write_text(f"# fingerprint: {fingerprint(spec)}\n{text}", encoding="utf-8")


if __name__ == "__main__":
    run_step(__doc__, step, ("--output", {"required": True}))
