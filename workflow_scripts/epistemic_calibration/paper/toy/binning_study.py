"""Figure 5: how far EECE is from TECE, by the number of bins."""

from __future__ import annotations

from typing import Annotated, Any

from epistemic_calibration.paper.toy import base


def measure(
    toy: base.Toy,
    bin_numbers: Annotated[
        tuple[Annotated[int, {"ge": 1}], ...],
        {"min_length": 1, "description": "numbers of bins of the EECE"},
    ] = (10, 20, 50, 100, 200, 300, 400, 600),
    n_train: base.TrainingSetSize = 20,
    n_test: base.TestSetSize = 10_000,
    binning: base.BinningName = "kmeans",
) -> list[dict[str, Any]]:
    """Return TECE, which has no bins, EECE and |EECE − TECE| for each number of bins."""
    toy.draw(n_train, n_test)
    found, rows = toy.fit_predict(), []
    tece = toy.tece(found)
    for n_bins in bin_numbers:
        eece = toy.eece(found, n_bins, binning).eece
        values = {"tece": tece, "eece": eece, "absolute_difference": abs(eece - tece)}
        rows += toy.rows(values, found, n_bins, binning)
    return rows


def plot(table: base.DataFrame, canvas: base.Canvas) -> base.Figure:
    """Draw |EECE − TECE| against the number of bins: means over seeds, and where they are least."""
    table = canvas.named(table[table["metric"] == "absolute_difference"])
    figure, axes = canvas.axes(2.8)
    ax, colors = axes[0, 0], canvas.palette(table)
    lines = {"x": "n_bins", "y": "value", "hue": "Method", "palette": colors, "ax": ax}
    canvas.sns.lineplot(table, errorbar=canvas.range, err_kws={"alpha": 0.1, "lw": 0}, **lines)
    for method, mean in table.groupby(["Method", "n_bins"])["value"].mean().groupby("Method"):
        best = mean.idxmin()[1]
        look = {"color": colors[method], "edgecolor": canvas.ink, "lw": 0.6, "zorder": 4}
        ax.scatter(best, mean.min(), s=75, marker="*", **look)
    canvas.log_values(ax)
    ax.set(xscale="log", xlabel="Number of bins (★ least mean)")
    ax.set_ylabel(f"|EECE − TECE| (mean and range: {canvas.seeds(table)})")
    canvas.sns.move_legend(ax, "lower center", bbox_to_anchor=(0.5, 1), ncols=2, title=None)
    return figure


EXPERIMENT = base.Experiment(measure, plot)
