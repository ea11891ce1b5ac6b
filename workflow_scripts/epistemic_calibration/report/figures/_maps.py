"""Maps of methods: one metric against another on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from epistemic_calibration.report._metrics import metric_label
from epistemic_calibration.report.figures._axes import GREY, Methods, replicates
from epistemic_calibration.report.figures._labels import label_points
from epistemic_calibration.report.style import MethodStyle, method_styles, rc_params
from epistemic_calibration.report.tables._selection import dataset_scores, ordered_methods

# Values that the number of test points cannot tell from 0, floating-point dust among them.
_SMALLEST = 1e-5


def draw_maps(
    scores: pd.DataFrame,
    dataset: str,
    methods: Methods,
    x_metrics: Sequence[str],
    y_metric: str,
    width: float,
) -> Figure:
    """Draw a map per metric of ``x_metrics``; for the arguments see `calibration_maps.draw`."""
    chosen = dataset_scores(scores, dataset, methods)
    spreads = {
        metric: _spread(chosen, metric, methods) for metric in dict.fromkeys([*x_metrics, y_metric])
    }
    for metric in x_metrics:
        if not spreads[metric].index.intersection(spreads[y_metric].index).size:
            raise ValueError(
                f"no method of dataset={dataset!r} has both {metric!r} and {y_metric!r}; "
                f"metrics with scores: {sorted(chosen['metric'].unique())}"
            )
    x_scale = LogMargin(pd.concat([spreads[metric] for metric in x_metrics]))
    y_scale = LogMargin(spreads[y_metric])
    styles = method_styles(methods)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.92 * width / len(x_metrics) + 0.1))
        axes = figure.subplots(1, len(x_metrics), sharex=True, sharey=True, squeeze=False)[0]
        for ax, metric in zip(axes, x_metrics, strict=True):
            x, y = spreads[metric], spreads[y_metric]
            if metric == "eece":
                _draw_floor(ax, chosen, methods, x_scale)
            for method in [name for name in x.index if name in y.index]:
                draw_point(ax, x.loc[method], y.loc[method], x_scale, y_scale, styles[method])
            x_scale.apply(ax, "x")
            y_scale.apply(ax, "y")
            ax.set_xlabel(metric_label(metric))
        axes[0].set_ylabel(metric_label(y_metric))
        figure.suptitle(f"{dataset}: mean and range over {replicates(chosen)}", fontsize=8)
        figure.draw_without_rendering()
        for ax, metric in zip(axes, x_metrics, strict=True):
            names = [name for name in spreads[metric].index if name in spreads[y_metric].index]
            points = [
                (x_scale.place(spreads[metric].loc[n]), y_scale.place(spreads[y_metric].loc[n]))
                for n in names
            ]
            label_points(ax, points, [methods[name]["label"] for name in names])
    return figure


class LogMargin:
    """A logarithmic axis, with a margin for what is too small if there is any.

    Parameters
    ----------
    spread : DataFrame
        Columns mean, low and high.
    smallest : float
        What is below stands in the margin.
    include : float, optional
        A value that the axis must reach.
    """

    def __init__(
        self, spread: pd.DataFrame, *, smallest: float = _SMALLEST, include: float | None = None
    ) -> None:
        self.smallest = smallest
        above = spread[spread["mean"] >= smallest]
        low = np.fmax(above["low"], above["mean"] / 4).min() if len(above) else smallest
        high = spread["high"].max() if len(above) else 10 * smallest
        if include is not None:
            low, high = min(low, include), max(high, include)
        pad = max((high / low) ** 0.06, 1.3)
        self.low, self.high = low / pad, high * pad
        self.has_margin = bool((spread["mean"] < smallest).any())
        decades = np.log10(self.high / self.low)
        self.left = self.low / 10 ** (0.16 * decades) if self.has_margin else self.low

    def place(self, spread: pd.Series) -> float:
        """Return where the mean is drawn."""
        if spread["mean"] >= self.smallest:
            return spread["mean"]
        return float(np.sqrt(self.left * self.low))

    def whisker(self, spread: pd.Series) -> list[float]:
        """Return where the whisker is drawn."""
        return [max(spread["low"], self.left), max(spread["high"], self.place(spread))]

    def apply(self, ax: Axes, name: str) -> None:
        """Set scale and limits, and mark the margin."""
        getattr(ax, f"set_{name}scale")("log")
        getattr(ax, f"set_{name}lim")(self.left, self.high)
        if not self.has_margin:
            return
        span = {"color": "#EEEEEE", "lw": 0, "zorder": 0}
        text = {"fontsize": 7, "color": GREY, "ha": "center", "va": "center"}
        label = f"< 10$^{{{round(np.log10(self.smallest))}}}$"
        middle = float(np.sqrt(self.left * self.low))
        axis = getattr(ax, f"{name}axis")
        ticks = [t for t in axis.get_majorticklocs() if self.low <= t <= self.high]
        minor = [t for t in axis.get_minorticklocs() if self.low <= t <= self.high]
        axis.set_ticks(ticks)
        axis.set_ticks(minor, minor=True)
        if name == "x":
            ax.axvspan(self.left, self.low, **span)
            ax.text(middle, 0.97, label, transform=ax.get_xaxis_transform(), **text)
        else:
            ax.axhspan(self.left, self.low, **span)
            ax.text(0.93, middle, label, transform=ax.get_yaxis_transform(), **text)


def draw_point(
    ax: Axes,
    x: pd.Series,
    y: pd.Series,
    x_scale: LogMargin,
    y_scale: LogMargin,
    style: MethodStyle,
) -> None:
    """Draw a method's marker and its whiskers; each spread has mean, low and high."""
    at = x_scale.place(x), y_scale.place(y)
    whisker = {"color": style.color, "lw": 1, "alpha": 0.8, "zorder": 2}
    ax.plot(x_scale.whisker(x), [at[1], at[1]], **whisker)
    ax.plot([at[0], at[0]], y_scale.whisker(y), **whisker)
    line = style.line()
    if x["mean"] < x_scale.smallest or y["mean"] < y_scale.smallest:
        line |= {"markerfacecolor": "white", "markeredgecolor": style.color, "mew": 1.2}
        line.pop("markeredgewidth")
    ax.plot(*at, ls="none", zorder=3, **line)


def _draw_floor(ax: Axes, chosen: pd.DataFrame, methods: Methods, x_scale: LogMargin) -> None:
    floor = chosen.loc[chosen["metric"] == "eece_noise_floor"].groupby("method")["value"].mean()
    # A constant is in one bin, and almost without noise.
    floor = floor[[methods[name]["family"] != "control" for name in floor.index]]
    if floor.empty or not x_scale.low < floor.max() < x_scale.high:
        return
    ax.axvspan(floor.min(), floor.max(), color="#C8D6E8", lw=0.8, zorder=0)
    ax.text(
        floor.max(),
        0.99,
        " noise floor",
        transform=ax.get_xaxis_transform(),
        fontsize=7,
        color=GREY,
        va="top",
    )


def _spread(chosen: pd.DataFrame, metric: str, methods: Methods) -> pd.DataFrame:
    values = chosen[chosen["metric"] == metric].groupby("method")["value"]
    table = values.agg(mean="mean", low="min", high="max")
    return table.reindex([name for name in ordered_methods(methods) if name in table.index])
