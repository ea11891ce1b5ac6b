"""Run one toy experiment with one method, for every seed."""

from epistemic_calibration.registry import module_path
from epistemic_calibration.workflow.stage import Needs, Stage, logger


def needs(plan, experiment, method):
    from epistemic_calibration.paper.toy import load_experiment

    block = plan.config.toy[experiment]
    entry = plan.entries.get(method)
    arguments = load_experiment(experiment).arguments(
        block["arguments"], method, entry and entry.model_dump()
    )
    sources = [module_path("epistemic_calibration.paper.toy", experiment)]
    if entry:
        sources += plan.method_sources(method)
    return Needs({"seeds": block["seeds"], "arguments": arguments}, sources=sources)


def step(job):
    import pandas as pd

    from epistemic_calibration.files import atomic_path
    from epistemic_calibration.paper.toy import load_experiment

    tables = []
    for seed in job.settings.seeds:
        run = load_experiment(job.where["experiment"]).run
        tables.append(run(seed=seed, **job.settings.arguments))
        logger.info("seed %d done", seed)
    with atomic_path(job.outputs.table) as path:
        pd.concat(tables, ignore_index=True).to_csv(path, index=False)


STAGE = Stage(needs, step, outputs=("table",))
