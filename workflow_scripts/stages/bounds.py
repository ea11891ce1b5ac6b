"""Bound the error of every method of a data set from one label per input, beside the best."""

from epistemic_calibration.registry import registered_files
from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, dataset, seed):
    compared = plan.scores_of(dataset, [int(seed)])
    return Needs(
        {
            "tasks": list(plan.tasks(dataset)),
            "scores": plan.config.datasets[dataset].scores.model_dump(),
        },
        {"compared": compared, "labels": plan.made_by("images", dataset=dataset)},
        sources=registered_files("epistemic_calibration.scores"),
    )


def step(job):
    from pathlib import Path

    import pandas as pd

    from epistemic_calibration.files import atomic_path, read_npz
    from epistemic_calibration.result_files import SCORE_COLUMNS, read_labels
    from epistemic_calibration.scores import rows_of_methods

    settings, labels = job.settings, read_labels(job.inputs.labels)
    compared = {Path(path).stem: read_npz(path)[0] for path in sorted(job.inputs.compared)}
    rows = rows_of_methods([labels[task] for task in settings.tasks], compared, settings.scores)
    table = pd.DataFrame(rows).assign(task=None, **job.where)
    with atomic_path(job.outputs.bounds) as path:
        table.to_csv(path, index=False, columns=list(SCORE_COLUMNS))


STAGE = Stage(needs, step, inputs=("compared*", "labels"), outputs=("bounds",))
