"""Figure 3b, right: EECE and TECE against the size of the training set."""

from __future__ import annotations

from typing import Annotated, Any

from epistemic_calibration.paper.toy import base


def measure(
    toy: base.Toy,
    training_sizes: Annotated[
        tuple[Annotated[int, {"ge": 2}], ...],
        {"min_length": 1, "description": "numbers of training points"},
    ] = (10, 20, 30, 50, 70, 100, 200, 300, 500, 700, 1000),
    n_test: base.TestSetSize = 40_000,
    n_bins: base.NumberOfBins = 100,
    binning: base.BinningName = "kmeans",
) -> list[dict[str, Any]]:
    """Return EECE and TECE for each size of the training set, which is drawn anew."""
    rows = []
    for n_train in training_sizes:
        toy.draw(n_train, n_test)
        rows += toy.errors(n_bins, binning)
    return rows


def plot(table: base.DataFrame, canvas: base.Canvas) -> base.Figure:
    """Draw EECE and TECE against the number of training points, on a logarithmic axis."""
    figure = canvas.errors_against(table, "n_train", "Training points")
    figure.axes[0].set_xscale("log")
    figure.axes[0].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    return figure


EXPERIMENT = base.Experiment(measure, plot)
