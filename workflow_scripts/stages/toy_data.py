"""Run one toy experiment with one method, for every seed."""

from dataclasses import dataclass
from typing import Any

from epistemic_calibration.workflow.stage import Needs, Stage, logger


@dataclass(frozen=True, kw_only=True)
class Settings:
    seeds: list[int]
    arguments: dict[str, Any]


def needs(plan, experiment, method):
    from epistemic_calibration.paper.toy import load_experiment
    from epistemic_calibration.registry import module_path

    block = plan.config.toy[experiment]
    entry = plan.entries.get(method)
    arguments = load_experiment(experiment).arguments(
        block["arguments"], method, entry and entry.model_dump()
    )
    sources = [module_path("epistemic_calibration.paper.toy", experiment)]
    if entry:
        sources += plan.method_sources(method)
    return Needs(Settings(seeds=block["seeds"], arguments=arguments), sources=sources)


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


STAGE = Stage(Settings, needs, step, outputs=("table",))

if __name__ == "__main__":
    STAGE.run()
