"""Write the configuration as the run understood it, every default filled in."""

from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan):
    config = plan.config.model_dump(mode="json")
    for name, block in config["datasets"].items():
        block |= plan.encoding(name)._asdict()
    return Needs({"config": config})


def step(job):
    import yaml

    from epistemic_calibration.files import write_text

    write_text(job.outputs.config, yaml.safe_dump(job.settings.config, sort_keys=False))


STAGE = Stage(needs, step, outputs=("config",))
