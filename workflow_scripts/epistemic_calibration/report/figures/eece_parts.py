"""What EECE is made of, beside the corrected estimate of the error it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epistemic_calibration.report.figures._axes import (
    GREY,
    Methods,
    label_rows,
    order_by,
    replicates,
    rows,
    short,
    symlog,
)
from epistemic_calibration.report.style import FULL_WIDTH, MethodStyle, method_styles, rc_params
from epistemic_calibration.report.tables._selection import all_tasks_scores, dataset_scores


def draw(
    scores: pd.DataFrame, dataset: str, methods: Methods, *, width: float = FULL_WIDTH
) -> Figure:
    """Draw what EECE is made of, beside the corrected estimate of the error it stands for.

    Left, the shares of miscalibration Σ w g² and of scatter Σ w W in their sum, with both
    and EECE in print. Right, where ``scores`` has it, TECE without the plug-in's bias.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`. Rows are ordered by EECE, best on top.
    width : float
        In inches.

    Raises
    ------
    ValueError
        If there are no scores of the parts.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame(
    ...     [("eece", 0.25), ("eece_calibration", 0.125), ("eece_dispersion", 0.375)],
    ...     columns=["metric", "value"],
    ... ).assign(dataset="pets", seed=0, method="eknn", scope="task", task="cat")
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> [float(bar.get_width()) for bar in draw(scores, "pets", methods).axes[0].patches]
    [0.25, 0.75]
    """
    chosen = dataset_scores(scores, dataset, methods)
    order = order_by(chosen, "eece", methods)
    means = chosen.pivot_table(index="method", columns="metric", values="value")
    needed = ["eece", "eece_calibration", "eece_dispersion"]
    if not set(needed) <= set(means):
        raise ValueError(f"scores must have the metrics {needed}; has {list(means)}")
    means = means.reindex(order)
    styles = method_styles(methods)
    corrected = "tece_corrected" in means
    # The interval of a mean over tasks is not the mean of the tasks' intervals.
    limits = ["tece_corrected_low", "tece_corrected_high"]
    means = means.drop(columns=limits, errors="ignore")
    means = means.join(all_tasks_scores(scores, dataset).filter(limits))
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.95 + 0.21 * len(order)))
        axes = figure.subplots(
            1,
            1 + corrected,
            sharey=True,
            squeeze=False,
            width_ratios=[1.7, 1][: 1 + corrected],
        )[0]
        _draw_parts(axes[0], means, styles)
        label_rows(axes[0], order, methods)
        if corrected:
            _draw_corrected(axes[1], means, styles)
        handles = [
            Patch(color=GREY, lw=0, label="g²: miscalibration of the mean"),
            Patch(**_scatter_bar(GREY), label="W: scatter within bins"),
        ]
        if corrected and {"tece_corrected_low", "tece_corrected_high"} <= set(means):
            handles.append(Line2D([], [], color=GREY, lw=1.8, label="interval of the mean"))
        if corrected and "tece_noise_floor" in means:
            handles.append(
                Line2D(
                    [], [], color=GREY, ls="none", marker="|", ms=8, label="its noise, uncorrected"
                )
            )
        figure.legend(
            handles=handles,
            title=f"{dataset}: means over {replicates(chosen)}",
            title_fontsize=8,
            loc="outside upper center",
            ncols=4,
            columnspacing=1.2,
            handlelength=1.4,
        )
    return figure


def _draw_parts(ax: Axes, means: pd.DataFrame, styles: Mapping[str, MethodStyle]) -> None:
    columns = {"eece_calibration": 1.17, "eece_dispersion": 1.44, "eece": 1.71}
    top = len(means) - 0.3
    for metric, x in columns.items():
        heading = {"eece_calibration": "Σwg²", "eece_dispersion": "ΣwW"}.get(metric, "EECE")
        ax.text(x, top, heading, ha="center", va="bottom", fontsize=7)
    for row, (method, values) in zip(rows(means), means.iterrows(), strict=True):
        color = styles[method].color
        calibration, dispersion = values["eece_calibration"], values["eece_dispersion"]
        total = calibration + dispersion
        if total > 0:
            share = calibration / total
            ax.barh(row, share, height=0.72, color=color, lw=0)
            ax.barh(row, 1 - share, left=share, height=0.72, **_scatter_bar(color))
        for metric, x in columns.items():
            ax.text(x, row, short(values[metric]), ha="center", va="center", fontsize=7)
    ax.set_xlim(0, 1.85)
    ax.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    ax.set_xlabel("Share of the parts of EECE = Σw|g² − W|", loc="left")
    ax.grid(visible=False)
    ax.spines["bottom"].set_bounds(0, 1)


def _scatter_bar(color: str) -> dict[str, Any]:
    return {"facecolor": mpl.colors.to_rgba(color, 0.25), "edgecolor": color, "hatch": "/////"}


def _draw_corrected(ax: Axes, means: pd.DataFrame, styles: Mapping[str, MethodStyle]) -> None:
    symlog(ax.xaxis)
    for row, (method, values) in zip(rows(means), means.iterrows(), strict=True):
        x = values["tece_corrected"]
        low, high = values.get("tece_corrected_low"), values.get("tece_corrected_high")
        if low is not None and high is not None:
            ax.plot([low, high], [row, row], color=styles[method].color, lw=1.8, zorder=2)
        floor = values.get("tece_noise_floor")
        if floor is not None:
            ax.plot(floor, row, "|", color=GREY, ms=8, mew=0.8, zorder=1)
        ax.plot(x, row, ls="none", **styles[method].line(), zorder=3)
    ax.axvline(0, color="#222222", lw=0.6)
    ax.set_xlabel("Corrected TECE")
    ax.tick_params(axis="y", length=0)
