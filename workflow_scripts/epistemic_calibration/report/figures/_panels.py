"""The three pictures of one method, each on axes of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from epistemic_calibration.report._results import DatasetResults
from epistemic_calibration.report.figures._axes import BLUE, GREY, INK, ORANGE, plain_ticks

_DIAGONAL = {"color": INK, "lw": 0.9, "ls": "--", "zorder": 1}


def reliability(ax: Axes, found: Mapping[str, Sequence[float]]) -> None:
    """Draw the frequency of label 1 against the prediction, above how many predictions there are.

    Parameters
    ----------
    found : mapping
        What `report._diagnostics.reliability` returns.
    """
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
    """Return the error of each method in bins of EU, in points, mean over seeds.

    Returns
    -------
    dict of str to DataFrame
        Columns ``uncertainty``, ``error`` (NaN where only bounds are known), ``low``, ``high``;
        empty where no method has a curve.
    """
    rows = results.scores
    rows = rows[(rows["dataset"] == results.name) & (rows["scope"] == "bin")]
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
    """Draw the error at one input against √EU, both in points, on axes of one length.

    Where only bounds are known, a bar reaches from one to the other: full where they leave no
    doubt that EU is too small or too large, hollow elsewhere.

    Parameters
    ----------
    curve : DataFrame
        Of `error_curves`.
    top : float, optional
        Where both axes end; by default where the curve does.
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
    """Draw errors among the inputs kept, by EU and by the prediction itself, against coverage.

    Parameters
    ----------
    found : mapping
        What `report._diagnostics.risk_coverage` returns.
    """
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
