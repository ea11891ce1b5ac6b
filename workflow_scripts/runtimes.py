"""Make the table of a data set's run times and memory from the benchmark files of its jobs."""

from dataclasses import dataclass

from epistemic_calibration.workflow.stage import Needs, Stage

#: What the table shows, from images to scores.
STAGES = ("images", "encoder", "latents", "neighbors", "hypotheses", "scores")


@dataclass(frozen=True, kw_only=True)
class Settings:
    methods: dict[str, dict[str, str]]
    seeds: list[int]


def needs(plan, dataset):
    methods = plan.methods_shown(plan.methods(dataset))
    settings = Settings(methods=methods, seeds=list(plan.config.seeds))
    return Needs(settings, {"scores": plan.score_fingerprints(dataset)})


def step(job):
    from pathlib import Path

    from epistemic_calibration.files import write_text
    from epistemic_calibration.report.runtimes import read_runtimes, runtime_table

    settings = job.settings
    table = runtime_table(
        read_runtimes(job.inputs.benchmarks, settings.methods, STAGES),
        job.where["dataset"],
        settings.methods,
        stages=STAGES,
        seeds=settings.seeds,
    )
    contents = table.contents(f"{job.where['dataset']}_runtimes")
    for path in job.outputs.tables:
        write_text(path, contents[Path(path).suffix])


STAGE = Stage(
    Settings, needs, step, inputs=("scores*",), outputs=("tables*",), unchecked=("benchmarks",)
)

if __name__ == "__main__":
    STAGE.run()
