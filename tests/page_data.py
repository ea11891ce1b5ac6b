"""A run to make pages and figures of: two data sets, four methods, names that must stay text."""

import copy
import functools

import numpy as np
import pandas as pd

from epistemic_calibration.registry import load
from epistemic_calibration.report._diagnostics import diagnose
from epistemic_calibration.report.page.run import RunResults
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.scores import Scorer, rows_of_all_tasks, rows_of_methods

#: What a browser would run if it were not text.
SCRIPT = "<script>window.hacked = 1</script>"
IMAGE = '"><img src=x onerror="window.hacked=1">'
METHODS = {
    "random_forest": {"label": f"Forest {IMAGE}", "family": "active"},
    "laplace": {"label": SCRIPT, "family": "active"},
    "eknn": {"label": "EK-NN", "family": "illustrative"},
    "base_rate": {"label": "Base rate", "family": "control"},
}
#: Of the tables: a name that LaTeX must not take for its own.
TABLE_METHODS = {
    "mine": {"label": "50% R&D_net {x}", "family": "active"},
    "random_forest": {"label": "Random Forest", "family": "active"},
    "centroids": {"label": "Centroids", "family": "illustrative"},
    "base_rate": {"label": "Base rate", "family": "control"},
}
SETTINGS = {
    "n_bins": 10,
    "binning": "quantile",
    "ece_n_bins": 10,
    "corrected_n_bins": 10,
    "corrected_binning": "nested",
    "confidence_level": 0.95,
    "n_resamples": 99,
    "recalibration": False,
    "random_state": 0,
}


def together(values, dataset="cifar10"):
    """Scores of all tasks together, from the values of each method by their metrics."""
    rows = [
        (method, metric, value)
        for method, of_method in values.items()
        for metric, value in of_method.items()
    ]
    scores = pd.DataFrame(rows, columns=["method", "metric", "value"])
    return scores.assign(dataset=dataset, seed=0, scope="all_tasks", task=None)


def hypotheses_of(method, p, rng):
    logits = np.log(p / (1 - p))[:, None]
    if method == "base_rate":
        return np.full((len(p), 4), p.mean())
    bold, spread = {"random_forest": (1, 0.5), "laplace": (2, 0.3), "eknn": (2.5, 1)}[method]
    return 1 / (1 + np.exp(-bold * (logits + rng.normal(0, spread, (len(p), 12)))))


def dataset_results(name, tasks, *, several_labels, n=300, seed=0):
    """Scores and diagnostics as the workflow makes them."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(1, 2, (len(tasks), n))
    labels = (rng.random(truth.shape) < truth).astype(np.uint8)
    rows, compared = [], {}
    for method in METHODS:
        summaries, arrays = [], []
        for task, p, y in zip(tasks, truth, labels, strict=True):
            given = {"y_true": y, "hypotheses": hypotheses_of(method, p, rng)}
            if several_labels:
                given |= {"n_positive": rng.binomial(20, p), "n_labels": np.full(n, 20)}
            scorer = Scorer(given, SETTINGS)
            rows += [
                {"method": method, "task": task, **row} for row in scorer.rows({"r_hat_max": 1.25})
            ]
            summaries.append(scorer.summaries())
            arrays.append(scorer.compared())
        together = rows_of_all_tasks(summaries, SETTINGS)
        rows += [{"method": method, "task": None, **row} for row in together]
        compared[method] = {key: np.stack([of[key] for of in arrays]) for key in arrays[0]}
    bounds = rows_of_methods(list(labels), compared, SETTINGS)
    rows += [{"task": None, **row} for row in bounds]
    diagnostics = {
        method: diagnose(labels, arrays, tasks, confidence_level=0.95)
        for method, arrays in compared.items()
    }
    columns = ["method", "other", "p_holm", "p_holm_fixed"]
    pairs = pd.DataFrame([("random_forest", "laplace", 0.4, 0.04)], columns=columns)
    return DatasetResults(
        pd.DataFrame(rows).assign(dataset=name, seed=0),
        name,
        METHODS,
        tasks=tasks,
        diagnostics=diagnostics,
        differences=pairs,
        warnings=[f"Warning: {IMAGE} has not converged."],
    )


def run_results():
    return copy.deepcopy(_run_results())


@functools.cache
def _run_results():
    datasets = [
        dataset_results("pets", ["cat", IMAGE], several_labels=True),
        dataset_results(SCRIPT, [SCRIPT, "dog"], several_labels=False, seed=1),
    ]
    made = load("epistemic_calibration.report.tables", "by_eece").make
    return RunResults(
        datasets,
        tables={d.dataset: [made(d)] for d in datasets},
        texts={"Configuration": f"datasets: {{{SCRIPT}: }}\n"},
        facts={"Versions": "<b>python</b> 3.11"},
    )
