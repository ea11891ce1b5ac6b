"""Score the hypotheses of one method on every task of a data set."""

from epistemic_calibration.registry import registered_files
from epistemic_calibration.workflow.stage import Needs, Stage, logger


def needs(plan, dataset, seed, method):
    from epistemic_calibration.data import has_label_counts

    counts = {}
    if plan.of_source(has_label_counts, dataset):
        counts = plan.made_by("label_counts", dataset=dataset)
    return Needs(
        {"tasks": list(plan.tasks(dataset)), "scores": plan.score_settings(dataset)},
        {
            "hypotheses": plan.hypotheses_of(dataset=dataset, seed=seed, method=method),
            "labels": plan.made_by("images", dataset=dataset),
            "label_counts": counts,
        },
        sources=registered_files("epistemic_calibration.scores"),
    )


def step(job):
    """Write a row per task and score, and rows that all tasks have together.

    What is needed of each input to compare methods goes to a file beside them: the arrays of
    `Scorer.compared`, each of shape (n_tasks, n_samples).
    """
    import numpy as np
    import pandas as pd

    from epistemic_calibration.files import atomic_path, write_npz
    from epistemic_calibration.result_files import SCORE_COLUMNS, read_tasks
    from epistemic_calibration.scores import Scorer, rows_of_all_tasks

    settings = job.settings
    rows, summaries, compared = [], [], []
    for task, arrays, diagnostics in read_tasks(job.inputs, settings.tasks):
        scorer = Scorer(arrays, settings.scores)
        rows += [{"task": task, **row} for row in scorer.rows(diagnostics)]
        summaries.append(scorer.summaries())
        compared.append(scorer.compared())
        logger.info("task %s scored", task)
    rows += rows_of_all_tasks(summaries, settings.scores)
    arrays = {name: np.stack([of_task[name] for of_task in compared]) for name in compared[0]}
    write_npz(job.outputs.compared, arrays, tasks=settings.tasks)
    table = pd.DataFrame(rows).assign(**job.where)
    with atomic_path(job.outputs.scores) as path:
        table.to_csv(path, index=False, columns=list(SCORE_COLUMNS))


STAGE = Stage(
    needs, step, inputs=("hypotheses", "labels", "label_counts*"), outputs=("scores", "compared")
)
