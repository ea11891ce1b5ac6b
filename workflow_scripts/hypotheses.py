"""Fit one method on some one-vs-all tasks and write the hypotheses of each."""

from dataclasses import dataclass
from typing import Any

from epistemic_calibration.workflow.stage import Needs, Stage, logger


@dataclass(frozen=True, kw_only=True)
class Settings:
    implementation: str
    parameters: dict[str, Any]


def needs(plan, dataset, seed, method):
    entry = plan.entries[method]
    inputs = {"latents": plan.fingerprint("latents", dataset=dataset, seed=seed), "neighbors": []}
    if entry.uses_neighbors:
        inputs["neighbors"] = [plan.fingerprint("neighbors", dataset=dataset, seed=seed)]
    return Needs(
        Settings(implementation=entry.implementation, parameters=entry.parameters),
        inputs,
        sources=plan.method_sources(method),
    )


def step(job):
    from epistemic_calibration.latents._neighbors import Neighbors
    from epistemic_calibration.workflow.provenance import read_npz

    latents, _ = read_npz(job.inputs.latents)
    neighbors = None
    for path in job.inputs.neighbors:
        neighbors = Neighbors(**read_npz(path)[0])
    fit_tasks(job, latents, neighbors)


def fit_tasks(job, latents, neighbors):
    """Fit the tasks that the names of the output files say, and write each when it is ready."""
    import time
    from pathlib import Path

    import numpy as np

    from epistemic_calibration.data.base import task_names
    from epistemic_calibration.methods import user_file
    from epistemic_calibration.methods._tasks import load_told, predict_tasks
    from epistemic_calibration.methods.base import check_predictions
    from epistemic_calibration.seeds import derive_seed
    from epistemic_calibration.workflow.provenance import write_npz

    positive_class = {
        task: k for k, task in enumerate(task_names([str(name) for name in latents["class_names"]]))
    }
    tasks = {Path(path).stem: path for path in job.outputs.hypotheses}
    classes = [positive_class[task] for task in tasks]
    labels = np.stack([latents["y_train"] == k for k in classes], axis=1).astype(np.uint8)
    where = (int(job.where["seed"]), job.where["dataset"], job.where["method"])
    fitted = predict_tasks(
        load_told(job.settings.implementation),
        latents["x_train"],
        labels,
        latents["x_test"],
        parameters=job.settings.parameters,
        random_states=[derive_seed(*where, task) for task in tasks],
        neighbors=neighbors,
        path=user_file(job.settings.implementation),
    )
    started = time.perf_counter()
    for (task, path), k, predictions in zip(tasks.items(), classes, fitted, strict=True):
        arrays = check_predictions(predictions, n_samples=len(latents["x_test"]), task=task)
        # Labels beside the hypotheses, for those who open this file alone.
        arrays["y_true"] = (latents["y_test"] == k).astype(np.uint8)
        write_npz(path, arrays, job.spec, task=task, diagnostics=predictions.diagnostics)
        job.finish(path)
        logger.info("task %s ready after %.1f s", task, time.perf_counter() - started)


STAGE = Stage(
    Settings,
    needs,
    step,
    inputs=("latents", "neighbors*"),
    outputs=("hypotheses*",),
    one_by_one=True,
)

if __name__ == "__main__":
    STAGE.run()
