"""What figures and pages show of each method besides its scores, in a small file."""

from epistemic_calibration.workflow.stage import Needs, Stage


def needs(plan, dataset, seed):
    images = plan.made_by("images", dataset=dataset)
    compared = plan.scores_of(dataset, [int(seed)])
    return Needs(
        {
            "tasks": list(plan.tasks(dataset)),
            "confidence_level": plan.config.datasets[dataset].scores.confidence_level,
        },
        {"compared": compared, "labels": images},
    )


def step(job):
    """Write reliability, risk against coverage, and the bins that carry the error."""
    import json
    from pathlib import Path

    import numpy as np

    from epistemic_calibration.files import read_npz, write_text
    from epistemic_calibration.report._diagnostics import diagnose
    from epistemic_calibration.result_files import read_labels

    settings, labels = job.settings, read_labels(job.inputs.labels)
    y_true = np.stack([labels[task] for task in settings.tasks])
    methods = {}
    for path in sorted(job.inputs.compared):
        compared, _ = read_npz(path, ["mean_prediction", "bins", "uncertainty"])
        methods[Path(path).stem] = diagnose(
            y_true, compared, settings.tasks, confidence_level=settings.confidence_level
        )
    result = {**job.where, "methods": methods}
    text = json.dumps(result, separators=(",", ":"), allow_nan=False)
    write_text(job.outputs.diagnostics, text + "\n")


STAGE = Stage(needs, step, inputs=("compared*", "labels"), outputs=("diagnostics",))
