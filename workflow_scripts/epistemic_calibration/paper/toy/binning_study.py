"""Figure 5: how far EECE is from TECE, by the number of bins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from epistemic_calibration.paper.toy._data import ExperimentData
from epistemic_calibration.paper.toy._scoring import BinningName, score, tece, tidy
from epistemic_calibration.paper.toy.base import Experiment, TestSetSize, TrainingSetSize

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from epistemic_calibration.paper.toy_drawing import Canvas

#: The method of the paper's figure 5.
HIGHLIGHTED = "deep_ensemble"


def run(
    method: str = "deep_ensemble",
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    bin_numbers: Annotated[
        tuple[Annotated[int, {"ge": 1}], ...],
        {"min_length": 1, "description": "numbers of bins of the EECE"},
    ] = (10, 20, 50, 100, 200, 300, 400, 600),
    n_train: TrainingSetSize = 20,
    n_test: TestSetSize = 10_000,
    binning: BinningName = "kmeans",
) -> pd.DataFrame:
    """Return EECE, TECE and |EECE − TECE| for each number of bins.

    The paper has 20 training and 10,000 test points.

    Returns
    -------
    DataFrame with columns method, seed, metric, value, n_bins, n_hypotheses, binning, \
n_train, n_test
        Metrics, each for every number of bins: eece, tece (which has no bins and is the
        same on all rows of a seed) and absolute_difference, |EECE − TECE|.
    """
    data = ExperimentData("binning_study", seed, n_train, n_test)
    predictions = data.fit_predict(method, implementation, parameters)
    truth, rows = tece(data, predictions), []
    for n_bins in bin_numbers:
        scores = score(data, predictions, n_bins=n_bins, binning=binning, known_tece=truth)
        eece = next(row["value"] for row in scores if row["metric"] == "eece")
        difference = {**scores[0], "metric": "absolute_difference", "value": abs(eece - truth)}
        rows += [*scores, difference]
    return tidy(rows, method=method, seed=seed, n_train=n_train, n_test=n_test)


def plot(table: pd.DataFrame, canvas: Canvas) -> Figure:
    """Draw |EECE − TECE| against the number of bins, one panel per method.

    Thick lines with markers are means over seeds, thin ones single seeds. The star is the number
    of bins with the least mean, also in the title; the ticks at the top are the best numbers for
    single seeds, longer where more seeds agree. The deep ensemble, which the paper shows, comes
    first, and its mean is repeated as a grey dashed line in the other panels.
    """
    canvas.require(table, "method", "seed", "metric", "value", "n_bins")
    table = table[table["metric"] == "absolute_difference"]
    styles = canvas.styles(table["method"])
    methods = sorted(styles, key=lambda method: method != HIGHLIGHTED)
    n_columns = min(2, len(methods))
    n_rows = -(-len(methods) // n_columns)
    figure, axes = canvas.axes(1.0 + 1.35 * n_rows, n_rows, n_columns, sharex=True, sharey=True)
    reference = table[table["method"] == HIGHLIGHTED].groupby("n_bins")["value"].mean()
    for ax, method in zip(axes.flat, methods, strict=False):
        part, color = table[table["method"] == method], styles[method].color
        if method != HIGHLIGHTED and len(reference):
            ax.plot(reference.index, reference, color=canvas.faint, lw=0.9, ls="--")
        for _, curve in part.groupby("seed"):
            ax.plot(curve["n_bins"], curve["value"], color=color, lw=0.4, alpha=0.4)
        mean = part.groupby("n_bins")["value"].mean()
        best = mean.idxmin()
        ax.plot(mean.index, mean, lw=1.6, ms=3.5, **styles[method].line() | {"markeredgewidth": 0})
        ax.scatter(
            best, mean[best], s=75, marker="*", color=color, edgecolor=canvas.ink, lw=0.6, zorder=4
        )
        _mark_best_of_seeds(ax, part, color)
        ax.set_title(f"{canvas.label(method)} (★ {best})", fontsize=7)
        ax.set(xscale="log", yscale="log", xlabel="", ylabel="")
    for ax in axes[-1]:
        ax.set_xlabel("Number of bins")
    for ax in axes.flat[len(methods) :]:
        ax.set_axis_off()
    figure.supylabel("|EECE − TECE|", fontsize=8)
    line, seeds = {"color": canvas.faint}, canvas.seeds(table)
    handles = [
        canvas.handle(f"mean of {seeds}", marker="o", ms=3.5, lw=1.6, **line),
        canvas.handle("single seeds", lw=0.5, **line),
        canvas.handle("number of bins with the least mean", ls="none", marker="*", ms=8, **line),
        canvas.handle(
            "best of single seeds (longer: more)", ls="none", marker="|", mew=2.2, **line
        ),
    ]
    if len(reference) and len(methods) > 1:
        handles.append(
            canvas.handle(f"mean of {canvas.label(HIGHLIGHTED)}", lw=0.9, ls="--", **line)
        )
    figure.legend(handles=handles, loc="outside lower center", ncols=1, fontsize=7)
    return figure


def _mark_best_of_seeds(ax: Axes, part: pd.DataFrame, color: str) -> None:
    best = part.loc[part.groupby("seed")["value"].idxmin(), "n_bins"].value_counts()
    for n_bins, count in best.items():
        ax.plot(
            [n_bins, n_bins],
            [1 - 0.02 * count, 1],
            transform=ax.get_xaxis_transform(),
            color=color,
            lw=2.2,
            solid_capstyle="butt",
        )


EXPERIMENT = Experiment(run, plot)
