"""The error of each method in quantiles of its epistemic uncertainty."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from epistemic_calibration.report._names import drawable, drawable_labels
from epistemic_calibration.report.figures._axes import GREY, Methods
from epistemic_calibration.report.style import FULL_WIDTH, method_styles, rc_params
from epistemic_calibration.report.tables._selection import ordered_methods

_PER_ROW = 4
# What is smaller stands at the edge.
_SMALLEST = 1e-5
_ESTIMATED = ("curve_uncertainty", "curve_error", "curve_error_low", "curve_error_high")
_BOUNDED = ("bounds_curve_uncertainty", "bounds_curve_at_least", "bounds_curve_at_most")


def draw(
    scores: pd.DataFrame, dataset: str, methods: Methods, *, width: float = FULL_WIDTH
) -> Figure:
    """Draw a panel per method: squared error against epistemic uncertainty, in tenths by it.

    On the diagonal the uncertainty is right, above it the method is too sure of itself. Where
    there are several labels per image, points are estimates with confidence intervals; where
    there is one, bars hold the error. The other methods are thin lines. Inputs of all tasks are
    pooled. What is below 1e-5 stands at the edge.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    width : float
        In inches.

    Raises
    ------
    ValueError
        If no method has a curve.

    Examples
    --------
    >>> import pandas as pd
    >>> values = dict(curve_uncertainty=0.01, curve_error=0.02)
    >>> values |= dict(curve_error_low=0.01, curve_error_high=0.03)
    >>> scores = pd.DataFrame({"metric": values.keys(), "value": values.values()}).assign(
    ...     dataset="pets", seed=0, method="eknn", scope="bin", task=None, bin=0
    ... )
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> draw(scores, "pets", methods).axes[0].get_title()
    'EK-NN'
    """
    rows = scores[(scores["dataset"] == dataset) & (scores["scope"] == "bin")]
    estimated = _ESTIMATED[1] in set(rows["metric"])
    columns = _ESTIMATED if estimated else _BOUNDED
    if not set(columns) <= set(rows["metric"]):
        raise ValueError(f"no method of dataset={dataset!r} has {columns[0]}")
    curves = rows.pivot_table(index=["method", "bin"], columns="metric", values="value")
    found = set(curves.index.get_level_values("method"))
    names = [name for name in ordered_methods(methods) if name in found]
    curves = curves[list(columns)].clip(lower=_SMALLEST)
    top = float(curves.max().max()) * 1.5
    styles, labels = method_styles(methods), drawable_labels(methods)
    n_rows = math.ceil(len(names) / _PER_ROW)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 1.62 * n_rows + 0.5))
        axes = figure.subplots(n_rows, _PER_ROW, sharex=True, sharey=True, squeeze=False).ravel()
        for ax in axes[len(names) :]:
            ax.set_visible(False)
        for ax, name in zip(axes, names, strict=False):
            ax.set(xscale="log", yscale="log", xlim=(_SMALLEST * 0.7, top))
            ax.set_ylim(_SMALLEST * 0.7, top)
            ax.plot([_SMALLEST, top], [_SMALLEST, top], color=GREY, lw=0.8, ls="--", zorder=1)
            for other in names:
                if other != name and estimated:
                    curve = curves.loc[other]
                    ax.plot(curve[columns[0]], curve[columns[1]], color="#CCCCCC", lw=0.6, zorder=0)
            _draw_curve(ax, curves.loc[name].to_numpy(), styles[name].line(), estimated)
            ax.set_title(labels[name])
            # The panels below the last row have no axis of their own.
            ax.tick_params(labelbottom=True)
        figure.supxlabel("Squared error that the uncertainty reports, in tenths by it", fontsize=8)
        figure.supylabel("Squared error made, E[(p* − Δ)²]", fontsize=8)
        what = "estimates, 95 % intervals" if estimated else "bars hold the error (one label each)"
        figure.suptitle(f"{drawable(dataset)}: all tasks; {what}; dashed: right size", fontsize=8)
    return figure


def _draw_curve(ax: Axes, curve: np.ndarray, line: dict, estimated: bool) -> None:
    low, high = curve[:, -2], curve[:, -1]
    whiskers = {"color": line["color"], "lw": 1.2 if estimated else 3, "zorder": 2}
    ax.vlines(curve[:, 0], low, high, **whiskers)
    if estimated:
        ax.plot(curve[:, 0], curve[:, 1], zorder=3, ms=3.5, **line)
