"""Measure how EECE and the corrected error move with the numbers of bins and hypotheses."""

from epistemic_calibration.workflow.stage import Needs, Stage, logger


def needs(plan, dataset, seed, method):
    block = plan.config.sensitivity
    settings = {
        "tasks": list(plan.tasks(dataset))[: block.n_tasks],
        "scores": plan.config.datasets[dataset].scores.model_dump(),
        "n_bins": list(block.n_bins),
        "n_hypotheses": list(block.n_hypotheses),
    }
    return Needs(
        settings,
        {
            "hypotheses": plan.hypotheses_of(dataset=dataset, seed=seed, method=method),
            "labels": plan.made_by("images", dataset=dataset),
        },
    )


def step(job):
    import pandas as pd

    from epistemic_calibration.files import atomic_path
    from epistemic_calibration.result_files import read_tasks

    rows = []
    for task, arrays, _ in read_tasks(job.inputs, job.settings.tasks):
        rows += [{"task": task, **row} for row in measure(arrays, job.settings)]
        logger.info("task %s measured", task)
    with atomic_path(job.outputs.table) as path:
        pd.DataFrame(rows).assign(**job.where).to_csv(path, index=False)


def measure(arrays, settings):
    """Yield the estimates of a task with other numbers of bins, then of hypotheses.

    Where the number of hypotheses varies, they are a random subset of the method's, and the
    bins are as many as in the benchmark; where the number of bins varies, all are used.
    Numbers beyond what there is are left out.
    """
    import numpy as np

    from epistemic_calibration import metrics

    y_true, hypotheses = arrays["y_true"], arrays["hypotheses"]
    reported, scores = arrays.get("epistemic_uncertainty"), settings.scores
    n_samples, n_hypotheses = hypotheses.shape
    seed = scores["random_state"]
    order = np.random.default_rng(seed).permutation(n_hypotheses)

    cases = [("n_bins", m, hypotheses, m, m) for m in settings.n_bins if m < n_samples]
    for h in settings.n_hypotheses:
        if h <= n_hypotheses:
            chosen = hypotheses[:, order[:h]]
            bins = (scores["n_bins"], scores["corrected_n_bins"])
            cases.append(("n_hypotheses", h, chosen, *bins))
    for axis, value, rows, n_bins, corrected_n_bins in cases:
        eece = metrics.expected_epistemic_calibration_error(
            y_true,
            rows,
            epistemic_uncertainty=reported,
            n_bins=n_bins,
            binning=scores["binning"],
            random_state=seed,
        )
        corrected = metrics.corrected_epistemic_calibration_error(
            y_true,
            rows,
            n_bins=corrected_n_bins,
            binning=scores["corrected_binning"],
            random_state=seed,
            adaptive=False,
        )
        common = {"axis": axis, "axis_value": value}
        yield {**common, "metric": "eece", "value": eece}
        yield {**common, "metric": "tece_corrected", "value": corrected.estimate}


STAGE = Stage(needs, step, inputs=("hypotheses", "labels"), outputs=("table",))
