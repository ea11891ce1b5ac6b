"""Draw the figures of a data set from the scores of its methods, each with its caption."""

from epistemic_calibration.registry import load, registered_files
from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, dataset):
    inputs = {
        "scores": plan.table_inputs_of(dataset),
        "comparisons": plan.made_by("comparisons", dataset=dataset),
        "diagnostics": plan.made_by("diagnostics", dataset=dataset, seed=plan.seeds(dataset)[0]),
    }
    return Needs(
        {
            "methods": plan.methods_shown(plan.methods(dataset)),
            "confidence_level": plan.config.datasets[dataset].scores.confidence_level,
        },
        inputs,
        sources=registered_files(
            "epistemic_calibration.report.figures", "epistemic_calibration.scores"
        ),
    )


def step(job):
    import json
    from pathlib import Path

    from epistemic_calibration.report._saving import save_figure
    from epistemic_calibration.report.results import DatasetResults
    from epistemic_calibration.report.style import COLUMN_WIDTH, FULL_WIDTH
    from epistemic_calibration.result_files import read_tables

    results = DatasetResults(
        read_tables(job.inputs.scores),
        job.where["dataset"],
        job.settings.methods,
        differences=read_tables([job.inputs.comparisons]),
        diagnostics=json.loads(Path(job.inputs.diagnostics).read_text("utf-8"))["methods"],
        confidence_level=job.settings.confidence_level,
    )
    for stem in dict.fromkeys(Path(path).with_suffix("") for path in job.outputs.figures):
        name = stem.name.removesuffix("_narrow")
        module = load("epistemic_calibration.report.figures", name)
        width = FULL_WIDTH if name == stem.name else COLUMN_WIDTH
        caption = f"{results.title}. {module.CAPTION}" if name == stem.name else None
        save_figure(module.draw(results, width=width), stem, caption=caption)


STAGE = Stage(needs, step, inputs=("scores*", "comparisons", "diagnostics"), outputs=("figures*",))
