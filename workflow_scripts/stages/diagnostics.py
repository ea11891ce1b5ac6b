"""What the page of a run shows of each method besides its scores, in a small file."""

from dataclasses import dataclass

from epistemic_calibration.workflow.stage import Needs, Stage


@dataclass(frozen=True, kw_only=True)
class Settings:
    tasks: list[str]
    confidence_level: float


def needs(plan, dataset, seed):
    images = plan.made_by("images", dataset=dataset)
    compared = plan.scores_of(dataset, [int(seed)])
    return Needs(
        Settings(
            tasks=list(plan.tasks(dataset)),
            confidence_level=plan.config.datasets[dataset].scores.confidence_level,
        ),
        {"compared": compared, "labels": images, "images": images},
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
    inputs, _ = read_npz(job.inputs.images, ["x_test"])
    of_inputs, _ = read_npz(job.inputs.labels, ["y_test", "class_names", "test_rows"])
    methods = {}
    for path in sorted(job.inputs.compared):
        compared, _ = read_npz(path, ["mean_prediction", "bins", "uncertainty"])
        found = diagnose(
            y_true, compared, settings.tasks, confidence_level=settings.confidence_level
        )
        for carrier in found["top_bins"]:
            for shown in carrier["inputs"]:
                shown |= seen(inputs["x_test"], of_inputs, shown["row"])
        methods[Path(path).stem] = found
    result = {**job.where, "methods": methods}
    text = json.dumps(result, separators=(",", ":"), allow_nan=False)
    write_text(job.outputs.diagnostics, text + "\n")


def seen(x_test, of_inputs, row):
    """Return what a reader sees of a test input: an image or values, its class, its row."""
    from epistemic_calibration.report.page.thumbnails import first_values, thumbnail

    values = x_test[row]
    picture = {"image": thumbnail(values)} if values.ndim == 3 else {"values": first_values(values)}
    name = str(of_inputs["class_names"][of_inputs["y_test"][row]])
    return {**picture, "class": name, "row": int(of_inputs["test_rows"][row])}


STAGE = Stage(
    Settings, needs, step, inputs=("compared*", "labels", "images"), outputs=("diagnostics",)
)

if __name__ == "__main__":
    STAGE.run()
