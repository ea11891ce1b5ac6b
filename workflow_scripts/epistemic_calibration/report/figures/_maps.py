"""Maps of methods: one metric against another on logarithmic axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from epistemic_calibration.report._metrics import metric_label
from epistemic_calibration.report._names import drawable, drawable_labels
from epistemic_calibration.report.figures._axes import GREY, Methods, replicates
from epistemic_calibration.report.figures._labels import Points, name_points
from epistemic_calibration.report.style import MethodStyle, method_styles, rc_params
from epistemic_calibration.report.tables._selection import (
    all_tasks_scores,
    dataset_scores,
    ordered_methods,
)

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
    together = all_tasks_scores(scores, dataset)
    metrics = list(dict.fromkeys([*x_metrics, y_metric]))
    spreads = {metric: _spread(chosen, together, metric, methods) for metric in metrics}
    for metric in x_metrics:
        if not spreads[metric].index.intersection(spreads[y_metric].index).size:
            raise ValueError(
                f"no method of dataset={dataset!r} has both {metric!r} and {y_metric!r}; "
                f"metrics with scores: {sorted(chosen['metric'].unique())}"
            )
    x_scale = LogMargin(pd.concat([spreads[metric] for metric in x_metrics]))
    y_scale = LogMargin(spreads[y_metric])
    styles, panels = method_styles(methods), []
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.92 * width / len(x_metrics) + 0.25))
        axes = figure.subplots(1, len(x_metrics), sharex=True, sharey=True, squeeze=False)[0]
        for ax, metric in zip(axes, x_metrics, strict=True):
            x, y = spreads[metric], spreads[y_metric]
            if metric == "eece":
                _draw_floor(ax, chosen, methods, x_scale)
            names = [name for name in x.index if name in y.index]
            markers = [
                draw_point(ax, x.loc[name], y.loc[name], x_scale, y_scale, styles[name])
                for name in names
            ]
            places = [(x_scale.place(x.loc[n]), y_scale.place(y.loc[n])) for n in names]
            panels.append(Points(ax, names, places, markers))
            x_scale.apply(ax, "x")
            y_scale.apply(ax, "y")
            ax.set_xlabel(metric_label(metric))
        axes[0].set_ylabel(metric_label(y_metric))
        figure.suptitle(
            f"{drawable(dataset)}: means over {replicates(chosen)}\n"
            f"whiskers: {_what_whiskers_are(metrics, spreads)}",
            fontsize=8,
        )
        name_points(figure, panels, drawable_labels(methods), styles)
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
        ends = spread[["mean", "low", "high"]].to_numpy(dtype=float)
        above = ends[ends >= smallest]
        low, high = (above.min(), above.max()) if above.size else (smallest, 10 * smallest)
        if include is not None:
            low, high = min(low, include), max(high, include)
        pad = max((high / low) ** 0.06, 1.3)
        self.low, self.high = low / pad, high * pad
        self.has_margin = bool((ends < smallest).any())
        decades = np.log10(self.high / self.low)
        self.left = self.low / 10 ** (0.16 * decades) if self.has_margin else self.low
        # Where all that is too small is drawn.
        self.middle = float(np.sqrt(self.left * self.low))

    def place(self, spread: pd.Series) -> float:
        """Return where the mean is drawn."""
        return self._at(spread["mean"])

    def whisker(self, spread: pd.Series) -> list[float]:
        """Return where the whisker is drawn, both ends within the axis."""
        return [self._at(spread["low"]), self._at(spread["high"])]

    def _at(self, value: float) -> float:
        return self.middle if value < self.smallest else float(value)

    def apply(self, ax: Axes, name: str) -> None:
        """Set scale and limits, and mark the margin."""
        getattr(ax, f"set_{name}scale")("log")
        getattr(ax, f"set_{name}lim")(self.left, self.high)
        if not self.has_margin:
            return
        span = {"color": "#EEEEEE", "lw": 0, "zorder": 0}
        text = {"fontsize": 7, "color": GREY, "ha": "center", "va": "center"}
        label = f"< 10$^{{{round(np.log10(self.smallest))}}}$"
        axis = getattr(ax, f"{name}axis")
        ticks = [t for t in axis.get_majorticklocs() if self.low <= t <= self.high]
        minor = [t for t in axis.get_minorticklocs() if self.low <= t <= self.high]
        axis.set_ticks(ticks)
        axis.set_ticks(minor, minor=True)
        if name == "x":
            ax.axvspan(self.left, self.low, **span)
            ax.text(self.middle, 0.97, label, transform=ax.get_xaxis_transform(), **text)
        else:
            ax.axhspan(self.left, self.low, **span)
            ax.text(0.93, self.middle, label, transform=ax.get_yaxis_transform(), **text)


def draw_point(
    ax: Axes,
    x: pd.Series,
    y: pd.Series,
    x_scale: LogMargin,
    y_scale: LogMargin,
    style: MethodStyle,
) -> Line2D:
    """Draw a method's whiskers and its marker; return that.

    Each spread has mean, low and high. Whiskers that end below the axis have arrows.
    """
    at = x_scale.place(x), y_scale.place(y)
    whisker = {"color": style.color, "lw": 0.9, "alpha": 0.75, "zorder": 2}
    for ends, scale, spread, arrow in (
        ((x_scale.whisker(x), [at[1]] * 2), x_scale, x, "<"),
        (([at[0]] * 2, y_scale.whisker(y)), y_scale, y, "v"),
    ):
        ax.plot(*ends, **whisker)
        if spread["low"] < scale.smallest <= spread["mean"]:
            ax.plot(ends[0][0], ends[1][0], ls="none", marker=arrow, ms=3, mew=0, **whisker)
    line = style.line()
    if x["mean"] < x_scale.smallest or y["mean"] < y_scale.smallest:
        line |= {"markerfacecolor": "white", "markeredgecolor": style.color, "mew": 1.2}
        line.pop("markeredgewidth")
    return ax.plot(*at, ls="none", zorder=3, **line)[0]


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


def _spread(
    chosen: pd.DataFrame, together: pd.DataFrame, metric: str, methods: Methods
) -> pd.DataFrame:
    """Return mean, low and high by method: an interval of the mean where there is one."""
    values = chosen[chosen["metric"] == metric].groupby("method")["value"]
    table = values.agg(mean="mean", low="min", high="max")
    limits = [f"{metric}_low", f"{metric}_high"]
    table.attrs["interval"] = set(limits) <= set(together)
    if table.attrs["interval"]:
        table[["low", "high"]] = together[limits].reindex(table.index)
    return table.reindex([name for name in ordered_methods(methods) if name in table.index])


def _what_whiskers_are(metrics: Sequence[str], spreads: Mapping[str, pd.DataFrame]) -> str:
    ranges = [m for m in metrics if not spreads[m].attrs["interval"]]
    intervals = [m for m in metrics if spreads[m].attrs["interval"]]
    kinds = ((ranges, "smallest to largest"), (intervals, "95 % interval of the mean"))
    found = [(", ".join(map(metric_label, names)), kind) for names, kind in kinds if names]
    if len(found) == 1:
        return found[0][1]
    return "; ".join(f"{names}: {kind}" for names, kind in found)
