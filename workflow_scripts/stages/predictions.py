"""Bring predictions made elsewhere into the benchmark: a file per task, or one of all classes."""

from epistemic_calibration.workflow.stage import Needs, Stage, logger


def needs(plan, dataset, seed, method):
    from epistemic_calibration.files import file_digest

    digests, of_files = {}, {}
    for task, path in plan.prediction_files(dataset, seed, method).items():
        if not path.is_file():
            raise ValueError(f"methods.{method}.predictions: no such file: {path}")
        if path not in of_files:
            of_files[path] = file_digest(path)
        digests[task] = of_files[path]
    images = plan.made_by("images", dataset=dataset)
    return Needs({"digests": digests}, {"labels": images})


def step(job):
    from pathlib import Path

    import numpy as np

    from epistemic_calibration.files import file_digest, read_npz, write_npz
    from epistemic_calibration.predictions import PredictionsError, read_predictions
    from epistemic_calibration.result_files import read_labels

    labels = read_labels(job.inputs.labels)
    of_all, _ = read_npz(job.inputs.labels, ["y_test", "class_names"])
    dataset, read = job.where["dataset"], {}
    for given, task in zip(job.inputs.predictions, job.settings.digests, strict=True):
        # One file of all classes is given once for each of its tasks.
        if given not in read:
            read = {given: (file_digest(given), _without_extras(given, read_predictions(given)))}
        digest, arrays = read[given]
        if digest != job.settings.digests[task]:
            raise PredictionsError(f"{given} has changed since the run began. Run again")
        expected = labels[task]
        if len(arrays["y_true"]) != len(expected):
            raise PredictionsError(
                f"{given} has {len(arrays['y_true'])} samples, but the test set of "
                f"{dataset} has {len(expected)}"
            )
        what = f"task {task}"
        # A file of one task may have two classes, it and the rest, on an axis of their own.
        of_task = arrays["hypotheses"].ndim == 2 and (
            len(of_all["class_names"]) > 2 or np.array_equal(arrays["y_true"], expected)
        )
        if of_task:
            arrays = {name: array for name, array in arrays.items() if name != "class_names"}
        elif "class_names" in arrays:
            arrays = _one_against_all(given, arrays, of_all, task, dataset)
            what = f"{dataset}, class {task},"
        if different := np.count_nonzero(arrays["y_true"] != expected):
            raise PredictionsError(
                f"{given}: y_true differs from the labels of {what} in {different} of "
                f"{len(expected)} places: the samples must be those of the test set, in its order"
            )
        path = Path(job.outputs.hypotheses, f"{task}.npz")
        floats = {n: a.astype(np.float32) for n, a in arrays.items() if a.dtype.kind == "f"}
        write_npz(path, arrays | floats, task=task, diagnostics={})


def _without_extras(given, arrays):
    """Return arrays less what a data set says of itself, for all methods."""
    for name in ("n_positive", "n_labels", "label_counts", "groups"):
        if arrays.pop(name, None) is not None:
            logger.warning("%s: %s is not used: a data set says it, for all methods", given, name)
    return arrays


def _one_against_all(given, arrays, of_all, task, dataset):
    """Return the hypotheses of one class from those of all classes of a data set."""
    import numpy as np

    from epistemic_calibration.data.base import task_names
    from epistemic_calibration.predictions import PredictionsError

    wanted = [str(name) for name in of_all["class_names"]]
    named = [str(name) for name in arrays["class_names"]]
    if len(named) != len(wanted):
        raise PredictionsError(
            f"{given} has {len(named)} classes, but {dataset} has {len(wanted)}: {wanted[:10]}"
        )
    # Without names of its own, its classes are numbered as those of the data set.
    numbered = named == [str(k) for k in range(len(named))]
    if set(named) != set(wanted) and not numbered:
        strange = [name for name in named if name not in wanted]
        raise PredictionsError(
            f"{given}: class_names has {strange[:5]}, but the classes of {dataset} are "
            f"{wanted[:10]}"
        )
    position = task_names(wanted).index(task)
    k = named.index(wanted[position]) if set(named) == set(wanted) else position
    rest = {name: arrays[name] for name in ("exchangeable",) if name in arrays}
    hypotheses = arrays["hypotheses"]
    if hypotheses.ndim == 2:
        # Two classes were read as one task, of the second.
        hypotheses = hypotheses if k == 1 else 1 - hypotheses
        for name in ("prediction", "epistemic_uncertainty"):
            if name in arrays:
                of_class = arrays[name]
                rest[name] = 1 - of_class if name == "prediction" and k == 0 else of_class
    else:
        hypotheses = np.ascontiguousarray(hypotheses[:, :, k])
    return {
        "hypotheses": hypotheses,
        "y_true": (arrays["y_true"] == k).astype(np.uint8),
        **rest,
    }


STAGE = Stage(needs, step, inputs=("labels",), outputs=("hypotheses",), unchecked=("predictions*",))
