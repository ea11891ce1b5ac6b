"""Fit one method on some one-vs-all tasks and write the hypotheses of each."""

from epistemic_calibration.workflow.stage import Needs, Stage, logger


def needs(plan, dataset, seed, method):
    entry = plan.entries[method]
    encoded = {"dataset": dataset, "seed": plan.encoder_seed(dataset, seed)}
    inputs = {"latents": plan.made_by("latents", **encoded), "neighbors": {}}
    if entry.uses_neighbors:
        inputs["neighbors"] = plan.made_by("neighbors", **encoded)
    return Needs(
        {
            "implementation": entry.implementation,
            "parameters": entry.parameters,
            "tasks": list(plan.tasks(dataset)),
        },
        inputs,
        sources=plan.method_sources(method),
    )


def step(job):
    from epistemic_calibration.files import read_npz
    from epistemic_calibration.latents._neighbors import Neighbors

    latents, _ = read_npz(job.inputs.latents)
    neighbors = None
    for path in job.inputs.neighbors:
        neighbors = Neighbors(**read_npz(path)[0])
    fit_tasks(job, latents, neighbors)


def fit_tasks(job, latents, neighbors):
    """Fit all tasks, and move their files to their place when the last is written.

    Those that an earlier job has written before it failed are not fitted again.
    """
    import shutil
    import time
    from pathlib import Path

    import numpy as np

    from epistemic_calibration.data.base import task_names
    from epistemic_calibration.files import write_npz
    from epistemic_calibration.methods import user_file
    from epistemic_calibration.methods._tasks import load_told, predict_tasks
    from epistemic_calibration.methods.base import check_predictions
    from epistemic_calibration.seeds import derive_seed

    positive_class = {
        task: k for k, task in enumerate(task_names([str(name) for name in latents["class_names"]]))
    }
    paths = {task: job.work_folder / f"{task}.npz" for task in job.settings.tasks}
    tasks = {task: path for task, path in paths.items() if not path.is_file()}
    if len(tasks) < len(paths):
        logger.info("finished before: %s", ", ".join(sorted({*paths} - {*tasks})))
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
        write_npz(path, arrays, task=task, diagnostics=predictions.diagnostics)
        logger.info("task %s ready after %.1f s", task, time.perf_counter() - started)
    folder = Path(job.outputs.hypotheses)
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths.values():
        shutil.move(path, folder / path.name)
    job.work_folder.rmdir()


STAGE = Stage(needs, step, inputs=("latents", "neighbors*"), outputs=("hypotheses",), threads=True)
