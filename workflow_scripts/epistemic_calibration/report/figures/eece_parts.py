"""What EECE is made of, beside the corrected estimate of the error it stands for."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

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

# Where numbers stand beside the parts, in widths of the panel.
_COLUMNS = {"eece_calibration": 1.1, "eece_dispersion": 1.27, "eece": 1.44}


def draw(
    scores: pd.DataFrame, dataset: str, methods: Methods, *, width: float = FULL_WIDTH
) -> Figure:
    """Draw what EECE is made of, beside the corrected estimate of the error it stands for.

    Left, miscalibration Σ w g² and scatter Σ w W, with EECE as a tick; all three in print. EECE
    is Σ w |g² − W| and so lies between the difference of the two and their sum, unless a method
    reports another uncertainty than the variance of its hypotheses. Right, where
    ``scores`` has it, TECE without the plug-in's bias. Axes are linear below 0.001 and
    logarithmic above.

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
    >>> [text.get_text() for text in draw(scores, "pets", methods).axes[0].texts]
    ['Σwg²', 'ΣwW', 'EECE', '0.125', '0.375', '0.250']
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
        figure = Figure(figsize=(width, 1.05 + 0.21 * len(order)))
        axes = figure.subplots(
            1,
            1 + corrected,
            sharey=True,
            squeeze=False,
            width_ratios=[1.1, 1][: 1 + corrected],
        )[0]
        _draw_parts(axes[0], means, styles)
        label_rows(axes[0], order, methods)
        if corrected:
            _draw_corrected(axes[1], means, styles)
        mark = {"ls": "none", "mew": 1.1, "mec": GREY}
        handles = [
            Line2D([], [], marker="o", mfc=GREY, **mark, label="Σwg²: miscalibration of the mean"),
            Line2D([], [], marker="s", mfc="white", **mark, label="ΣwW: scatter within bins"),
            Line2D([], [], marker="|", ls="none", mec="#222222", ms=9, mew=1.4, label="EECE"),
        ]
        if corrected and set(limits) <= set(means):
            handles.append(Line2D([], [], color=GREY, lw=1.8, label="95 % interval of the mean"))
        if corrected and "tece_noise_floor" in means:
            label = "bias taken off (plug-in minus corrected)"
            handles.append(Line2D([], [], ls="none", marker="x", ms=4, mec=GREY, label=label))
        figure.legend(
            handles=handles,
            title=f"{drawable(dataset)}: means over {replicates(chosen)}",
            title_fontsize=8,
            loc="outside upper center",
            ncols=3,
            columnspacing=1.2,
            handlelength=1.4,
        )
    return figure


def _draw_parts(ax: Axes, means: pd.DataFrame, styles: Mapping[str, MethodStyle]) -> None:
    symlog(ax.xaxis)
    beside = {"transform": ax.get_yaxis_transform(), "fontsize": 7, "ha": "center"}
    for metric, x in _COLUMNS.items():
        heading = {"eece_calibration": "Σwg²", "eece_dispersion": "ΣwW"}.get(metric, "EECE")
        ax.text(x, len(means) - 0.4, heading, va="bottom", **beside)
    for row, (method, values) in zip(rows(means), means.iterrows(), strict=True):
        color = styles[method].color
        parts = values[["eece_calibration", "eece_dispersion"]]
        mark = {"ls": "none", "mec": color, "mew": 1.1, "ms": 4.5, "zorder": 3}
        ax.plot(parts, [row, row], color=color, lw=0.8, zorder=2)
        ax.plot(parts.iloc[1], row, marker="s", mfc="white", **mark)
        ax.plot(parts.iloc[0], row, marker="o", mfc=color, **mark | {"ms": 3.5})
        ax.plot(values["eece"], row, "|", color="#222222", ms=9, mew=1.4, zorder=4)
        for metric, x in _COLUMNS.items():
            ax.text(x, row, short(values[metric]), va="center", **beside)
    _finish(ax, means[list(_COLUMNS)].to_numpy())
    ax.set_xlabel("EECE and its parts")


def _draw_corrected(ax: Axes, means: pd.DataFrame, styles: Mapping[str, MethodStyle]) -> None:
    symlog(ax.xaxis)
    for row, (method, values) in zip(rows(means), means.iterrows(), strict=True):
        low, high = values.get("tece_corrected_low"), values.get("tece_corrected_high")
        if low is not None and high is not None:
            ax.plot([low, high], [row, row], color=styles[method].color, lw=1.8, zorder=2)
        floor = values.get("tece_noise_floor")
        if floor is not None:
            ax.plot(floor, row, "x", color=GREY, ms=4, mew=0.8, zorder=1)
        ax.plot(values["tece_corrected"], row, ls="none", **styles[method].line(), zorder=3)
    shown = ["tece_corrected", "tece_corrected_low", "tece_corrected_high", "tece_noise_floor"]
    _finish(ax, means.filter(shown).to_numpy())
    ax.set_xlabel("Corrected TECE")


def _finish(ax: Axes, values: np.ndarray) -> None:
    contain(ax.xaxis, [0.0, *values[np.isfinite(values)]])
    ax.axvline(0, color="#222222", lw=0.6, zorder=1)
    ax.tick_params(axis="y", length=0)
