"""Check the paper's statements on the results of the benchmark and the toy experiments."""

from dataclasses import dataclass

from epistemic_calibration.workflow.stage import Needs, Stage


@dataclass(frozen=True, kw_only=True)
class Settings:
    pass


def needs(plan):
    return Needs(
        Settings(),
        {
            "scores": [f for d in plan.config.benchmark for f in plan.score_fingerprints(d)],
            "toy": [
                plan.fingerprint("toy_figures", toy="toy", experiment=experiment)
                for experiment in plan.config.toy
            ],
        },
    )


def step(job):
    from pathlib import Path

    from epistemic_calibration.files import atomic_path, write_text
    from epistemic_calibration.paper.claims import claims, to_markdown
    from epistemic_calibration.workflow.result_files import read_tables
    from epistemic_calibration.workflow.warning_text import warning_notes

    scores = read_tables(job.inputs.scores)
    toy = {Path(path).stem: read_tables([path]) for path in job.inputs.toy}
    table = claims(scores[scores["scope"] == "task"], toy)
    with atomic_path(job.outputs.table) as path:
        table.to_csv(path, index=False)
    text = "\n\n".join([to_markdown(table).rstrip("\n"), *warning_notes(job.warnings)])
    write_text(job.outputs.text, f"{text}\n")


STAGE = Stage(Settings, needs, step, inputs=("scores*", "toy*"), outputs=("table", "text"))

if __name__ == "__main__":
    STAGE.run()
