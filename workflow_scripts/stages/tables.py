"""Make the tables of a data set from the scores of its methods."""

from epistemic_calibration.registry import available, load, registered_files
from epistemic_calibration.workflow.stage import Needs, Stage, logger


def needs(plan, dataset):
    settings = {
        "methods": plan.methods_shown(plan.methods(dataset)),
        "tasks": list(plan.tasks(dataset)),
        "task_labels": plan.task_labels(dataset),
        "seeds": {name: plan.seeds(dataset, name) for name in plan.methods(dataset)},
        "one_encoder": plan.has_one_encoder(dataset),
        "n_resamples": plan.score_settings(dataset)["n_resamples"],
    }
    inputs = {
        "scores": plan.table_inputs_of(dataset),
        "comparisons": plan.made_by("comparisons", dataset=dataset),
    }
    packages = ("epistemic_calibration.report.tables", "epistemic_calibration.scores")
    return Needs(settings, inputs, sources=registered_files(*packages))


def step(job):
    """Write every table, the scores in tidy form, and what the jobs before have warned of."""
    from pathlib import Path

    import pandas as pd

    from epistemic_calibration.files import write_text
    from epistemic_calibration.report._doubts import doubts
    from epistemic_calibration.report.results import DatasetResults
    from epistemic_calibration.report.warning_text import unlike, warning_notes
    from epistemic_calibration.result_files import read_tables
    from epistemic_calibration.workflow.job_warnings import merged

    scores, dataset = read_tables(job.inputs.scores), job.where["dataset"]
    settings = dict(vars(job.settings))
    methods, folder = settings.pop("methods"), Path(job.outputs.tables[0]).parent
    task_labels = settings.pop("task_labels")
    differences = read_tables([job.inputs.comparisons])
    results = DatasetResults(scores, dataset, methods, differences=differences, **settings)
    for doubt in doubts(results, task_labels):
        # Into the receipts, as what the jobs before have warned of.
        logger.warning("%s", doubt)
    if different := unlike(job.made_with):
        logger.warning("%s", different)
    found = merged([job.warnings, job.warned()])
    labels = {name: method["label"] for name, method in methods.items()}
    notes = warning_notes(found, labels)
    for name in available("epistemic_calibration.report.tables"):
        module = load("epistemic_calibration.report.tables", name)
        table = module.make(results)
        stem = f"{dataset}{module.SUFFIX}"
        table = table.with_task_labels(task_labels).with_notes(*notes)
        for suffix, content in table.contents(stem).items():
            write_text(folder / f"{stem}{suffix}", content)
    write_text(folder / f"{dataset}_scores.csv", scores.to_csv(index=False, lineterminator="\n"))
    columns = ["stage", "seed", "method", "count", "text"]
    rows = [{**warning, **warning["where"]} for warning in found]
    warned = pd.DataFrame(rows, columns=columns)
    write_text(folder / f"{dataset}_warnings.csv", warned.to_csv(index=False, lineterminator="\n"))


STAGE = Stage(needs, step, inputs=("scores*", "comparisons"), outputs=("tables*",))
