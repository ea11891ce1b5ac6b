"""ECE and EECE of every method as bars, with their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from epistemic_calibration.report._metrics import metric_label
from epistemic_calibration.report.figures._axes import (
    GREY,
    Methods,
    label_rows,
    order_by,
    replicates,
    rows,
    short,
)
from epistemic_calibration.report.style import COLUMN_WIDTH, MethodStyle, method_styles, rc_params
from epistemic_calibration.report.tables._selection import dataset_scores


def draw(
    scores: pd.DataFrame,
    dataset: str,
    methods: Methods,
    *,
    metrics: Sequence[str] = ("ece", "eece"),
    width: float = COLUMN_WIDTH,
) -> Figure:
    """Draw metrics as bars, one panel per metric, one row per method (figure 4a of the paper).

    Axes are linear and start at 0, since a bar's length is its value; the mean is printed
    beside each bar, since the best methods are a hundredth of the worst.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`. Rows are ordered by the last metric, best on top; a
        method without scores keeps its row, at the bottom.
    metrics : sequence of str
    width : float
        In inches.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame(
    ...     [("cat", "ece", 0.25), ("cat", "eece", 0.125)], columns=["task", "metric", "value"]
    ... ).assign(dataset="pets", seed=0, method="eknn", scope="task")
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> [ax.get_xlabel() for ax in draw(scores, "pets", methods).axes]
    ['ECE', 'EECE']
    """
    chosen = dataset_scores(scores, dataset, methods)
    styles = method_styles(methods)
    order = order_by(chosen, metrics[-1], methods)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.75 + 0.2 * len(order)))
        axes = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
        for ax, metric in zip(axes, metrics, strict=True):
            table = chosen[chosen["metric"] == metric]
            _draw_bars(ax, table, order, styles)
            ax.set_xlabel(metric_label(metric))
        label_rows(axes[0], order, methods)
        figure.suptitle(f"{dataset}: mean ± sd over {replicates(chosen)}; dots: tasks", fontsize=8)
    return figure


def _draw_bars(
    ax: Axes, table: pd.DataFrame, order: Sequence[str], styles: Mapping[str, MethodStyle]
) -> None:
    widest = table["value"].max() if len(table) else 0.0
    for row, method in zip(rows(order), order, strict=True):
        values = table[table["method"] == method]
        if values.empty:
            ax.text(0, row, " no scores", va="center", fontsize=7, color=GREY)
            continue
        mean, sd = values["value"].mean(), values["value"].std(ddof=1)
        tasks = values.groupby("task")["value"].mean()
        ax.barh(row, mean, height=0.72, color=styles[method].color, lw=0)
        if np.isfinite(sd):
            ax.errorbar(mean, row, xerr=sd, color="#222222", lw=0.8, capsize=2, zorder=3)
        ax.plot(tasks, np.full(len(tasks), row), ".", color="#222222", ms=2, mew=0, alpha=0.6)
        right = max(mean + np.nan_to_num(sd), tasks.max(), 0.0)
        ax.text(right + 0.04 * widest, row, short(mean), va="center", fontsize=7)
    ax.set_xlim(min(0.0, table["value"].min() if len(table) else 0.0), 1.5 * widest or 1.0)
    ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
