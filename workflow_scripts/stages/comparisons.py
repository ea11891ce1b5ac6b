"""Compare the methods of a data set with each other by the corrected error."""

from epistemic_calibration.registry import registered_files
from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, dataset):
    scores = plan.config.datasets[dataset].scores
    made = plan.scores_of(dataset)
    settings = {
        "methods": plan.methods_shown(plan.methods(dataset)),
        "tasks": list(plan.tasks(dataset)),
        "one_encoder": plan.has_one_encoder(dataset),
        "confidence_level": scores.confidence_level,
        "random_state": scores.random_state,
    }
    inputs = {
        "scores": made,
        "compared": made,
        "labels": plan.made_by("images", dataset=dataset),
    }
    return Needs(settings, inputs, sources=registered_files("epistemic_calibration.scores"))


def step(job):
    from pathlib import Path

    from epistemic_calibration.files import read_npz, write_text
    from epistemic_calibration.report.comparisons import compare_methods, comparisons_table
    from epistemic_calibration.report.results import DatasetResults
    from epistemic_calibration.report.warning_text import warning_notes
    from epistemic_calibration.result_files import read_labels, read_tables

    settings, labels = job.settings, read_labels(job.inputs.labels)
    predictions, bins = ({name: [] for name in settings.methods} for _ in range(2))
    for path in sorted(job.inputs.compared):
        arrays, _ = read_npz(path)
        predictions[Path(path).stem].append(arrays["mean_prediction"])
        bins[Path(path).stem].append(arrays["bins"])
    differences = compare_methods(
        [labels[task] for task in settings.tasks],
        predictions,
        bins,
        confidence_level=settings.confidence_level,
        random_state=settings.random_state,
    )
    results = DatasetResults(
        read_tables(job.inputs.scores),
        job.where["dataset"],
        settings.methods,
        differences=differences,
        one_encoder=settings.one_encoder,
    )
    table = comparisons_table(results)
    labels = {name: method["label"] for name, method in settings.methods.items()}
    notes = warning_notes(job.warnings, labels)
    contents = table.with_notes(*notes).contents(f"{job.where['dataset']}_comparisons")
    for path in job.outputs.tables:
        write_text(path, contents[Path(path).suffix])


STAGE = Stage(needs, step, inputs=("scores*", "compared*", "labels"), outputs=("tables*",))
