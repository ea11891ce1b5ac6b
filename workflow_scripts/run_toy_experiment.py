"""Run one toy experiment with one method, for every seed."""

from epistemic_calibration.cli import logger, run_step


def step(args, spec):
    import pandas as pd

    from epistemic_calibration import toy
    from epistemic_calibration.provenance import atomic_path, fingerprint

    settings = spec["settings"]
    tables = []
    for seed in settings["seeds"]:
        experiment = getattr(toy, settings["experiment"])
        tables.append(experiment(seed=seed, **settings["arguments"]))
        logger.info("seed %d done", seed)
    with atomic_path(args.output) as path:
        table = pd.concat(tables, ignore_index=True).assign(fingerprint=fingerprint(spec))
        table.to_csv(path, index=False)


if __name__ == "__main__":
    run_step(__doc__, step, ("--output", {"required": True}))
