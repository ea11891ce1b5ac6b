"""ECE, EECE and corrected TECE of every method on logarithmic axes, with their tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from epistemic_calibration.report._metrics import metric_label
from epistemic_calibration.report._names import drawable
from epistemic_calibration.report.figures._axes import (
    GREY,
    Methods,
    contain,
    label_rows,
    order_by,
    replicates,
    rows,
    short,
    symlog,
)
from epistemic_calibration.report.style import FULL_WIDTH, MethodStyle, method_styles, rc_params
from epistemic_calibration.report.tables._selection import all_tasks_scores, dataset_scores

# Tasks are drawn this much below the middle of a row, their mean above.
_BELOW, _ABOVE = 0.26, 0.12


def draw(
    scores: pd.DataFrame,
    dataset: str,
    methods: Methods,
    *,
    metrics: Sequence[str] = ("ece", "eece", "tece_corrected"),
    width: float = FULL_WIDTH,
) -> Figure:
    """Draw metrics, one panel per metric, one row per method (figure 4a of the paper, and more).

    A marker is the mean, printed beside the panel; dots are tasks, joined by a thin line. The
    bar is the confidence interval of the mean, of metrics that have one. Axes are linear below
    0.001 and logarithmic above, since the best methods are a hundredth of the worst.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`. Rows are ordered by the last metric, best on top; a
        method without scores keeps its row, at the bottom.
    metrics : sequence of str
        Those that no method has scores of have no panel.
    width : float
        In inches.

    Raises
    ------
    ValueError
        If there are no scores of any of the metrics.

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
    together = all_tasks_scores(scores, dataset)
    shown = [metric for metric in metrics if metric in set(chosen["metric"])]
    if not shown:
        raise ValueError(
            f"dataset={dataset!r} has no scores of {', '.join(metrics)}; metrics with scores: "
            f"{sorted(chosen['metric'].unique())}"
        )
    styles = method_styles(methods)
    order = order_by(chosen, shown[-1], methods)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.95 + 0.23 * len(order)))
        axes = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
        with_interval = False
        for ax, metric in zip(axes, shown, strict=True):
            limits = [f"{metric}_low", f"{metric}_high"]
            intervals = together[limits] if set(limits) <= set(together) else None
            with_interval |= intervals is not None
            _draw_panel(ax, chosen[chosen["metric"] == metric], order, styles, intervals)
            ax.set_xlabel(metric_label(metric))
        label_rows(axes[0], order, methods)
        dot = {"color": GREY, "markeredgecolor": "#222222", "mew": 0.3}
        handles = [
            Line2D([], [], ls="none", marker="o", ms=5, **dot, label="mean, in print"),
            Line2D([], [], lw=0.6, marker="o", ms=2.8, **dot, label="tasks"),
        ]
        if with_interval:
            handles.append(Line2D([], [], color=GREY, lw=2, label="95 % interval of the mean"))
        figure.legend(
            handles=handles,
            title=f"{drawable(dataset)}: means over {replicates(chosen)}",
            title_fontsize=8,
            loc="outside upper center",
            ncols=len(handles),
            columnspacing=1.2,
        )
    return figure


def _draw_panel(
    ax: Axes,
    table: pd.DataFrame,
    order: Sequence[str],
    styles: Mapping[str, MethodStyle],
    intervals: pd.DataFrame | None,
) -> None:
    symlog(ax.xaxis)
    ends = [0.0]
    for row, method in zip(rows(order), order, strict=True):
        values = table[table["method"] == method]
        beside = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 7}
        if values.empty:
            ax.text(0.03, row, "no scores", color=GREY, **beside)
            continue
        mean = values["value"].mean()
        tasks = values.groupby("task")["value"].mean().to_numpy()
        line = styles[method].line()
        ends += [mean, *tasks]
        ax.plot(
            [tasks.min(), tasks.max()], [row - _BELOW] * 2, color=line["color"], lw=0.6, zorder=2
        )
        dots = {"marker": "o", "ms": 2.8, "mew": 0.3, "mec": "#222222", "color": line["color"]}
        ax.plot(tasks, np.full(len(tasks), row - _BELOW), ls="none", zorder=3, **dots)
        if intervals is not None and method in intervals.index:
            interval = intervals.loc[method].to_numpy(dtype=float)
            ends += list(interval[np.isfinite(interval)])
            ax.plot(interval, [row + _ABOVE] * 2, color=line["color"], lw=2, zorder=2)
        ax.plot(mean, row + _ABOVE, ls="none", zorder=4, **line)
        ax.text(1.03, row, short(mean), **beside)
    contain(ax.xaxis, ends)
    ax.axvline(0, color="#222222", lw=0.6, zorder=1)
    ax.tick_params(axis="y", length=0)
