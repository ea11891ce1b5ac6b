"""Figure 3b, right: EECE and TECE against the size of the training set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from epistemic_calibration.paper.toy._data import ExperimentData
from epistemic_calibration.paper.toy._scoring import BinningName, NumberOfBins, score, tidy
from epistemic_calibration.paper.toy.base import Experiment, TestSetSize

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from epistemic_calibration.paper.toy_drawing import Canvas


def run(
    method: str = "random_forest",
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    training_sizes: Annotated[
        tuple[Annotated[int, {"ge": 2}], ...],
        {"min_length": 1, "description": "numbers of training points"},
    ] = (10, 20, 30, 50, 70, 100, 200, 300, 500, 700, 1000),
    n_test: TestSetSize = 40_000,
    n_bins: NumberOfBins = 100,
    binning: BinningName = "kmeans",
) -> pd.DataFrame:
    """Return EECE and TECE for each size of the training set.

    Each size has its own training set.

    Returns
    -------
    DataFrame with columns method, seed, n_train, metric, value, n_bins, n_hypotheses, \
binning, n_test
        Metrics: eece, tece.
    """
    rows = []
    for n_train in training_sizes:
        data = ExperimentData("eece_vs_training_size", seed, n_train, n_test)
        predictions = data.fit_predict(method, implementation, parameters)
        scores = score(data, predictions, n_bins=n_bins, binning=binning)
        rows += [{"n_train": n_train, **row} for row in scores]
    return tidy(rows, method=method, seed=seed, n_test=n_test)


def plot(table: pd.DataFrame, canvas: Canvas) -> Figure:
    """Draw EECE and TECE against the number of training points, on a logarithmic axis."""
    figure = canvas.errors_against(table, "n_train", "Training points")
    ax = figure.axes[0]
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    return figure


EXPERIMENT = Experiment(run, plot)
