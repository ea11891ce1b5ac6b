"""Bring predictions made elsewhere into the benchmark, one file per one-vs-all task."""

from dataclasses import dataclass

from epistemic_calibration.workflow.stage import Needs, Stage, logger


@dataclass(frozen=True, kw_only=True)
class Settings:
    digests: dict[str, str]


def needs(plan, dataset, seed, method):
    from epistemic_calibration.workflow.provenance import file_digest

    digests = {}
    for task, path in plan.prediction_files(dataset, seed, method).items():
        if not path.is_file():
            raise ValueError(f"methods.{method}.predictions: no such file: {path}")
        digests[task] = file_digest(path)
    images = plan.fingerprint("images", dataset=dataset)
    return Needs(Settings(digests=digests), {"labels": images})


def step(job):
    from pathlib import Path

    import numpy as np

    from epistemic_calibration.predictions import PredictionsError, read_predictions
    from epistemic_calibration.workflow.provenance import file_digest, write_npz
    from epistemic_calibration.workflow.result_files import read_labels

    labels = read_labels(job.inputs.labels)
    for given, output in zip(job.inputs.predictions, job.outputs.hypotheses, strict=True):
        task = Path(output).stem
        if file_digest(given) != job.settings.digests[task]:
            raise PredictionsError(f"{given} has changed since the run began. Run again")
        arrays = read_predictions(given)
        for name in ("n_positive", "n_labels"):
            if arrays.pop(name, None) is not None:
                logger.warning(
                    "%s: %s is not used: give label_counts of the data set, for all methods",
                    given,
                    name,
                )
        expected = labels[task]
        if len(arrays["y_true"]) != len(expected):
            raise PredictionsError(
                f"{given} has {len(arrays['y_true'])} samples, but the test set of "
                f"{job.where['dataset']} has {len(expected)}"
            )
        if different := np.count_nonzero(arrays["y_true"] != expected):
            raise PredictionsError(
                f"{given}: y_true differs from the labels of task {task} in {different} of "
                f"{len(expected)} places: the samples must be those of the test set, in its order"
            )
        write_npz(output, arrays, job.spec, task=task, diagnostics={})


STAGE = Stage(
    Settings, needs, step, inputs=("labels",), outputs=("hypotheses*",), unchecked=("predictions*",)
)

if __name__ == "__main__":
    STAGE.run()
