"""Make the tables of a data set from the scores of its methods."""

from dataclasses import dataclass

from epistemic_calibration.workflow.stage import Needs, Stage


@dataclass(frozen=True, kw_only=True)
class Settings:
    methods: dict[str, dict[str, str]]
    tasks: list[str]
    seeds: list[int]
    n_resamples: int


def settings_of(plan, dataset):
    return Settings(
        methods=plan.methods_shown(plan.methods(dataset)),
        tasks=list(plan.tasks(dataset)),
        seeds=list(plan.config.seeds),
        n_resamples=plan.score_settings(dataset)["n_resamples"],
    )


def sources():
    from epistemic_calibration.registry import registered_files

    packages = ("epistemic_calibration.report.tables", "epistemic_calibration.scoring")
    return [path for package in packages for path in registered_files(package)]


def needs(plan, dataset):
    scores = plan.table_fingerprints(dataset)
    return Needs(settings_of(plan, dataset), {"scores": scores}, sources=sources())


def step(job):
    import dataclasses
    from pathlib import Path

    from epistemic_calibration.files import write_text
    from epistemic_calibration.registry import available, load
    from epistemic_calibration.workflow.result_files import read_tables

    scores, dataset = read_tables(job.inputs.scores), job.where["dataset"]
    settings = {f.name: getattr(job.settings, f.name) for f in dataclasses.fields(job.settings)}
    methods, folder = settings.pop("methods"), Path(job.outputs.tables[0]).parent
    for name in available("epistemic_calibration.report.tables"):
        module = load("epistemic_calibration.report.tables", name)
        table = module.make(scores, dataset, methods, **settings)
        for suffix, content in table.contents().items():
            write_text(folder / f"{dataset}{module.SUFFIX}{suffix}", content)


STAGE = Stage(Settings, needs, step, inputs=("scores*",), outputs=("tables*",))

if __name__ == "__main__":
    STAGE.run()
