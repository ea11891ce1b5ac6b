"""Fitting a method on one-vs-all tasks, and the files of hypotheses."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epistemic_calibration.methods import Predictions, load_method
from epistemic_calibration.neighbors import Neighbors
from epistemic_calibration.provenance import read_npz, write_npz
from epistemic_calibration.seeds import derive_seed

logger = logging.getLogger("epistemic_calibration")


class MethodError(RuntimeError):
    """A method returned something that is not a set of hypotheses."""


def fit_tasks(
    spec: Mapping[str, Any],
    *,
    latents_path: str | Path,
    neighbors_path: str | Path | None,
    output_paths: Sequence[str | Path],
) -> None:
    """Fit a method on one-vs-all tasks and write one file of hypotheses for each.

    Parameters
    ----------
    spec : mapping
        Spec of a ``hypotheses`` job.
    latents_path, neighbors_path : path
        Files of the stages before; neighbours only where the method uses them.
    output_paths : sequence of path
        ``TASK.npz`` of each task to fit, TASK being the path-safe name of a class.

    Raises
    ------
    StaleResultError
        If an input is broken or was made under other settings.
    MethodError
        If the method returns a wrong shape, NaN, or values outside [0, 1].
    """
    from epistemic_calibration.data import task_name

    settings, inputs = spec["settings"], spec["inputs"]
    latents, _ = read_npz(latents_path, expected_fingerprint=inputs["latents"])
    neighbors = None
    if "neighbors" in inputs:
        arrays, _ = read_npz(neighbors_path, expected_fingerprint=inputs["neighbors"])
        neighbors = Neighbors(**arrays)

    positive_class = {task_name(str(name)): k for k, name in enumerate(latents["class_names"])}
    tasks = {Path(path).stem: Path(path) for path in output_paths}
    classes = [positive_class[task] for task in tasks]
    labels = np.stack([latents["y_train"] == k for k in classes], axis=1).astype(np.uint8)
    results = load_method(settings["implementation"]).fit_predict_tasks(
        latents["x_train"],
        labels,
        latents["x_test"],
        parameters=settings["parameters"],
        random_states=[
            derive_seed(settings["seed"], settings["dataset"], settings["method"], task)
            for task in tasks
        ],
        neighbors=neighbors,
    )
    started = time.perf_counter()
    for (task, path), k, predictions in zip(tasks.items(), classes, results, strict=True):
        arrays = check_predictions(predictions, n_samples=len(latents["x_test"]), task=task)
        arrays["y_true"] = (latents["y_test"] == k).astype(np.uint8)
        write_npz(path, arrays, spec, task=task, diagnostics=predictions.diagnostics)
        logger.info("task %s ready after %.1f s", task, time.perf_counter() - started)


def check_predictions(
    predictions: Predictions, *, n_samples: int, task: str
) -> dict[str, np.ndarray]:
    """Return the arrays of a file of hypotheses, or raise MethodError where they are wrong."""
    arrays = {"hypotheses": np.asarray(predictions.hypotheses)}
    for name in ("epistemic_uncertainty", "prediction"):
        value = getattr(predictions, name)
        if value is not None:
            arrays[name] = np.asarray(value)
    for name, array in arrays.items():
        n_dimensions = 2 if name == "hypotheses" else 1
        if array.ndim != n_dimensions or len(array) != n_samples or array.size == 0:
            wanted = f"({n_samples}, n_hypotheses)" if n_dimensions == 2 else f"({n_samples},)"
            raise MethodError(f"task {task}: {name} has shape {array.shape}, expected {wanted}")
        if not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
            raise MethodError(f"task {task}: {name} has dtype {array.dtype}, expected numbers")
        if not np.isfinite(array).all():
            raise MethodError(
                f"task {task}: {name} has {np.count_nonzero(~np.isfinite(array))} values that are "
                f"NaN or infinite, of {array.size}"
            )
        low, high = array.min(), array.max()
        if name == "epistemic_uncertainty" and low < 0:
            raise MethodError(f"task {task}: {name} goes down to {low}, expected values >= 0")
        if name != "epistemic_uncertainty" and (low < 0 or high > 1):
            raise MethodError(
                f"task {task}: {name} lies in [{low}, {high}], expected values in [0, 1]"
            )
    return {name: array.astype(np.float32) for name, array in arrays.items()}
