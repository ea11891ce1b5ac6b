"""Check the paper's statements on the results of the benchmark and the toy experiments."""

from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan):
    scores, toy = {}, {}
    for dataset in plan.config.benchmark:
        scores |= plan.scores_of(dataset)
    for experiment in plan.config.toy:
        toy |= plan.made_by("toy_figures", experiment=experiment)
    return Needs({}, {"scores": scores, "toy": toy})


def step(job):
    from pathlib import Path

    from epistemic_calibration.files import atomic_path, write_text
    from epistemic_calibration.paper.claims import claims, to_markdown
    from epistemic_calibration.report.warning_text import warning_notes
    from epistemic_calibration.result_files import read_tables

    scores = read_tables(job.inputs.scores)
    toy = {Path(path).stem: read_tables([path]) for path in job.inputs.toy}
    table = claims(scores[scores["scope"] == "task"], toy)
    with atomic_path(job.outputs.table) as path:
        table.to_csv(path, index=False)
    text = "\n\n".join([to_markdown(table).rstrip("\n"), *warning_notes(job.warnings)])
    write_text(job.outputs.text, f"{text}\n")


STAGE = Stage(needs, step, inputs=("scores*", "toy*"), outputs=("table", "text"))
