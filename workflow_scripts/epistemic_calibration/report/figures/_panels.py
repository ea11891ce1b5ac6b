"""The three pictures of one method, each on axes of its own, and figures of panels of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from epistemic_calibration.report._names import drawable_labels
from epistemic_calibration.report.figures._axes import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    plain_ticks,
    ranked,
)
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.style import rc_params

#: Panels of methods that one figure holds.
MAX_PANELS = 6
_DIAGONAL = {"color": INK, "lw": 0.9, "ls": "--", "zorder": 1}


def panels(
    results: DatasetResults,
    found: Mapping[str, Any],
    draw: Callable[[Axes, Any], None],
    *,
    width: float,
    height: float,
) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with a panel for each of at most six methods, and the axes by method.

    ``found`` is what is drawn of each method, of which `chosen` are shown; ``draw`` gets axes and
    what is found of a method; ``width`` is the figure's, ``height`` that of one row, in inches.
    A ValueError says that nothing is found of any method.
    """
    found, labels = chosen(results, found), drawable_labels(results.methods)
    names = list(found)
    columns = min(len(names), 3 if width > 4 else 2)
    n_rows = math.ceil(len(names) / columns)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, height * n_rows))
        axes = figure.subplots(n_rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
        for ax in axes[len(names) :]:
            ax.remove()
        shown = dict(zip(names, axes, strict=False))
        for name, ax in shown.items():
            draw(ax, found[name])
            ax.set_title(labels[name])
            ax.label_outer()
    return figure, shown


def chosen(results: DatasetResults, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is found of at most six methods, of active ones if any; ValueError if none."""
    names = [name for name in ranked(results) if found.get(name) is not None]
    if not names:
        raise ValueError(f"dataset={results.dataset!r} has nothing of any method to draw here")
    active = [name for name in names if results.methods[name]["family"] == "active"]
    return {name: found[name] for name in (active or names)[:MAX_PANELS]}


def diagnosed(results: DatasetResults, kind: str) -> dict[str, Any]:
    """Return what the diagnostics of each method have of a kind."""
    return {name: of_method.get(kind) for name, of_method in results.diagnostics.items()}


def reliability(ax: Axes, found: Mapping[str, Sequence[float]]) -> None:
    """Draw what `_diagnostics.reliability` returns, above how many predictions there are."""
    predicted, frequency, low, high, n = (
        np.asarray(found[name], dtype=float)
        for name in ("predicted", "frequency", "low", "high", "n")
    )
    ax.plot([0, 1], [0, 1], **_DIAGONAL)
    ax.vlines(predicted, low, high, color=BLUE, lw=1.2)
    ax.plot(predicted, frequency, "o", color=BLUE, ms=3.5, clip_on=False, zorder=3)
    # A fifth of the panel is the histogram's.
    bottom = -0.3
    edges = np.minimum((10 * predicted).astype(int), 9) / 10
    heights = 0.22 * np.sqrt(n / n.max())
    bars = {"color": GREY, "lw": 0, "align": "edge", "zorder": 2}
    ax.bar(edges + 0.01, heights, 0.08, bottom=bottom, **bars)
    ax.set(xlim=(0, 1), ylim=(bottom, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    ax.axhline(-0.04, color=GREY, lw=0.6)
    ax.set(xlabel="Prediction Δ", ylabel="Frequency of label 1")
    plain_ticks(ax.xaxis)
    plain_ticks(ax.yaxis)


def error_curves(results: DatasetResults) -> dict[str, pd.DataFrame]:
    """Return the error of each method that has a curve in bins of EU, in points, mean over seeds.

    Columns ``uncertainty``, ``error`` (NaN where only bounds are known), ``low``, ``high``.
    """
    rows = results.rows[results.rows["scope"] == "bin"]
    found = {}
    for prefix, ends in (
        ("curve", ("error_low", "error_high")),
        ("bounds_curve", ("at_least", "at_most")),
    ):
        names = {f"{prefix}_uncertainty": "uncertainty", f"{prefix}_error": "error"}
        names |= {f"{prefix}_{end}": side for end, side in zip(ends, ("low", "high"), strict=True)}
        chosen = rows[rows["metric"].isin(names)]
        for method, of_method in chosen.groupby("method"):
            curve = of_method.pivot_table(index="bin", columns="metric", values="value")
            curve = curve.rename(columns=names).reindex(columns=list(names.values()))
            known = np.isfinite(curve[["uncertainty", "low", "high"]]).all(axis=1)
            if known.any():
                found.setdefault(method, 100 * np.sqrt(curve[known].clip(lower=0)))
    return found


def error_against_uncertainty(ax: Axes, curve: pd.DataFrame, top: float | None = None) -> None:
    """Draw the error at one input, of `error_curves`, against √EU, both in points.

    Both axes end at ``top``, by default where the curve does. Where only bounds are known, a bar
    reaches from one to the other: full where they leave no doubt that EU is too small or too large,
    hollow elsewhere.
    """
    x, low, high = (curve[name].to_numpy() for name in ("uncertainty", "low", "high"))
    top = top or max(1.08 * float(max(x.max(), high.max())), 1.0)
    ax.plot([0, top], [0, top], **_DIAGONAL)
    if curve["error"].notna().any():
        ax.vlines(x, low, high, color=BLUE, lw=1.2)
        ax.plot(x, curve["error"], "o", color=BLUE, ms=3.5, zorder=3)
    else:
        wrong = (low > x) | (high < x)
        width = 0.018 * top
        for chosen, color, face in ((wrong, ORANGE, ORANGE), (~wrong, GREY, "white")):
            bars = {"edgecolor": color, "facecolor": face, "linewidth": 0.9, "zorder": 2}
            ax.bar(x[chosen], (high - low)[chosen], width, bottom=low[chosen], **bars)
    ax.set(xlim=(0, top), ylim=(0, top), aspect="equal")
    step = 10.0 ** math.floor(math.log10(top))
    step = step / 2 if top < 2 * step else step if top < 5 * step else 2 * step
    ticks = np.arange(0, top, step)
    ax.set(xticks=ticks, yticks=ticks)
    plain_ticks(ax.xaxis)
    plain_ticks(ax.yaxis)
    ax.set(xlabel="√EU, points", ylabel="Error at one input, points")


def risk_coverage(ax: Axes, found: Mapping[str, Any]) -> None:
    """Draw what `_diagnostics.risk_coverage` returns: errors among the inputs kept."""
    coverage = 100 * np.asarray(found["coverage"])
    by_eu, by_prediction = (100 * np.asarray(found[k]) for k in ("uncertainty", "prediction"))
    ax.axhline(by_eu[-1], color=GREY, lw=0.8, ls=":")
    ax.plot(coverage, by_prediction, color=ORANGE, lw=1.4, ls="--", label="by 1 − max p")
    ax.plot(coverage, by_eu, color=BLUE, lw=1.6, label="by EU")
    at_90 = int(np.argmin(np.abs(coverage - 90)))
    ax.plot(coverage[at_90], by_eu[at_90], "o", color=BLUE, ms=4, zorder=3)
    top = max(by_eu.max(), by_prediction.max(), 1e-3)
    ax.set(xlim=(0, 100), ylim=(0, 1.12 * top), xticks=[0, 50, 90])
    plain_ticks(ax.yaxis)
    ax.set(xlabel="Inputs kept, %", ylabel="Errors among them, %")
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], labels[::-1], loc="upper left", handlelength=1.8)
