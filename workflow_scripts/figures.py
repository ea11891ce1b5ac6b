"""Draw the figures of a data set from the scores of its methods."""

from dataclasses import dataclass

from epistemic_calibration.workflow.stage import Needs, Stage


@dataclass(frozen=True, kw_only=True)
class Settings:
    methods: dict[str, dict[str, str]]


def needs(plan, dataset):
    from epistemic_calibration.registry import registered_files

    packages = ("epistemic_calibration.report.figures", "epistemic_calibration.scoring")
    return Needs(
        Settings(methods=plan.methods_shown(plan.methods(dataset))),
        {"scores": plan.table_inputs_of(dataset)},
        sources=[path for package in packages for path in registered_files(package)],
    )


def step(job):
    from pathlib import Path

    from epistemic_calibration.registry import load
    from epistemic_calibration.report._saving import save_figure
    from epistemic_calibration.result_files import read_tables

    scores = read_tables(job.inputs.scores)
    for stem in dict.fromkeys(Path(path).with_suffix("") for path in job.outputs.figures):
        module = load("epistemic_calibration.report.figures", stem.name)
        save_figure(module.draw(scores, job.where["dataset"], job.settings.methods), stem)


STAGE = Stage(Settings, needs, step, inputs=("scores*",), outputs=("figures*",))

if __name__ == "__main__":
    STAGE.run()
