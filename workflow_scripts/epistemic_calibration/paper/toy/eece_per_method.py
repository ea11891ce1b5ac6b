"""Figure 3a: EECE and TECE of every method, and of the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration.paper.toy._data import ExperimentData
from epistemic_calibration.paper.toy._scoring import BinningName, NumberOfBins, score, tidy
from epistemic_calibration.paper.toy.base import Experiment, TestSetSize, TrainingSetSize

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from epistemic_calibration.paper.toy_drawing import Canvas

# Below this value the axis of an error is linear, so that it can show 0.
_LINEAR_BELOW = 1e-3


def run(
    method: str,
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    n_train: TrainingSetSize = 50,
    n_test: TestSetSize = 40_000,
    n_bins: NumberOfBins = 100,
    binning: BinningName = "kmeans",
) -> pd.DataFrame:
    """Return EECE, its parts, and the truth behind it.

    The paper has 50 training and 40,000 test points.

    Returns
    -------
    DataFrame with columns method, seed, metric, value, n_bins, n_hypotheses, binning, \
n_train, n_test
        Metrics: accuracy, ece, eece, eece_calibration, eece_dispersion, tece,
        tece_corrected (of the mean prediction, from the labels alone),
        mean_epistemic_uncertainty.

    Notes
    -----
    TECE takes P(Y = 1 | Π(x)) as the mean of p over the test points with the same hypotheses.
    Methods that draw hypotheses anew at every input have no two such points, even where their
    Π is not injective; their TECE then uses p(x) itself and is, if anything, too large.
    """
    data = ExperimentData("eece_per_method", seed, n_train, n_test)
    predictions = data.fit_predict(method, implementation, parameters)
    rows = score(data, predictions, n_bins=n_bins, binning=binning, all_metrics=True)
    return tidy(rows, method=method, seed=seed, n_train=n_train, n_test=n_test)


def plot(table: pd.DataFrame, canvas: Canvas) -> Figure:
    """Draw EECE and TECE of every method, least EECE on top."""
    canvas.require(table, "method", "seed", "metric", "value")
    table = table[table["metric"].isin(["eece", "tece"])]
    means = table.groupby(["metric", "method"])["value"].mean()
    order = means["eece"].sort_values().index
    figure, axes = canvas.axes(0.75 + 0.27 * len(order))
    ax = axes[0, 0]
    styles = canvas.styles(table["method"])
    for row, method in enumerate(order):
        color = styles[method].color
        for metric, shift, face in (("eece", -0.14, color), ("tece", 0.14, "white")):
            chosen = (table["method"] == method) & (table["metric"] == metric)
            values = table.loc[chosen, "value"]
            height = np.full(len(values), row + shift)
            ax.plot([values.min(), values.max()], [row + shift] * 2, color=color, lw=1)
            ax.scatter(values, height, s=3, color=color, lw=0, alpha=0.6)
            ax.scatter(
                means[metric, method],
                row + shift,
                s=22,
                marker="o" if metric == "eece" else "D",
                facecolor=face,
                edgecolor=canvas.ink if metric == "eece" else color,
                lw=0.5 if metric == "eece" else 1.1,
                zorder=3,
            )
    ax.set_yticks(range(len(order)), [canvas.label(method) for method in order])
    ax.set_ylim(len(order) - 0.5, -0.5)
    _scale_errors(ax, table["value"].max())
    ax.set_xlim(-0.1 * _LINEAR_BELOW, 1.5 * table["value"].max())
    ax.set_xlabel(f"Error (mean and range of {canvas.seeds(table)})")
    for metric, marker, face in (("EECE", "o", canvas.faint), ("TECE", "D", "white")):
        ax.scatter(
            [], [], s=20, marker=marker, facecolor=face, edgecolor=canvas.faint, label=metric
        )
    figure.legend(loc="outside upper right", ncols=2, handletextpad=0.2, columnspacing=1)
    return figure


def _scale_errors(ax: Axes, top: float) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ax.set_xscale("symlog", linthresh=_LINEAR_BELOW, linscale=0.4)
    powers = [10.0**k for k in range(-3, 1) if 10.0**k <= 2 * top]
    ax.xaxis.set_major_locator(FixedLocator([0, *powers]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())


EXPERIMENT = Experiment(run, plot, controls=("oracle",))
