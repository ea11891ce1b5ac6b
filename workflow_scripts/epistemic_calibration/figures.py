"""Figures of the benchmark: calibration bars and map, parts of EECE, sensitivity, autoencoder.

Every function returns a `matplotlib.figure.Figure` that `save_figure` writes. Figures do
not go through pyplot: no global state, no display.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from epistemic_calibration.provenance import FINGERPRINT_KEY, atomic_path
from epistemic_calibration.style import (
    COLUMN_WIDTH,
    FULL_WIDTH,
    MethodStyle,
    method_styles,
    metric_label,
    rc_params,
)
from epistemic_calibration.tables import all_tasks_scores, dataset_scores, ordered_methods

__all__ = [
    "calibration_bars",
    "calibration_map",
    "calibration_maps",
    "eece_parts",
    "loss_curve",
    "reconstructions",
    "save_figure",
    "sensitivity",
]

Methods = Mapping[str, Mapping[str, str]]

_GREY = "#555555"


def save_figure(figure: Figure, stem: str | Path, fingerprint: str) -> list[Path]:
    """Write ``STEM.png`` (200 dpi) and ``STEM.pdf`` (fonts embedded); return their paths.

    The files hold neither time nor version, but the fingerprint: the same figure of the same
    results gives the same bytes.
    """
    metadata = {
        ".png": {"Software": None, FINGERPRINT_KEY: fingerprint},
        ".pdf": {"Creator": None, "Producer": None, "CreationDate": None}
        | {"Keywords": f"{FINGERPRINT_KEY}: {fingerprint}"},
    }
    paths = [Path(f"{stem}{suffix}") for suffix in metadata]
    with mpl.rc_context(rc_params()):
        for path in paths:
            with atomic_path(path) as temporary:
                figure.savefig(temporary, metadata=metadata[path.suffix])
    return paths


def calibration_bars(
    scores: pd.DataFrame,
    dataset: str,
    methods: Methods,
    *,
    metrics: Sequence[str] = ("ece", "eece"),
    width: float = COLUMN_WIDTH,
) -> Figure:
    """Draw metrics as bars, a panel a metric, a row a method (figure 4a of the paper).

    Axes are linear and start at 0, since a bar's length is its value; the mean is printed
    beside each bar, since the best methods are a hundredth of the worst.

    Parameters
    ----------
    scores, dataset, methods
        As in `tables.dataset_scores`. Rows are ordered by the last metric, best on top; a
        method without scores keeps its row, at the bottom.
    metrics : sequence of str
    width : float
        In inches.
    """
    chosen = dataset_scores(scores, dataset, methods)
    styles = method_styles(methods)
    order = _order_by(chosen, metrics[-1], methods)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.75 + 0.2 * len(order)))
        axes = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
        for ax, metric in zip(axes, metrics, strict=True):
            table = chosen[chosen["metric"] == metric]
            _draw_bars(ax, table, order, styles)
            ax.set_xlabel(metric_label(metric))
        _label_rows(axes[0], order, methods)
        figure.suptitle(f"{dataset}: mean ± sd over {_replicates(chosen)}; dots: tasks", fontsize=8)
    return figure


def _draw_bars(
    ax: Axes, table: pd.DataFrame, order: Sequence[str], styles: Mapping[str, MethodStyle]
) -> None:
    widest = table["value"].max() if len(table) else 0.0
    for row, method in zip(_rows(order), order, strict=True):
        values = table[table["method"] == method]
        if values.empty:
            ax.text(0, row, " no scores", va="center", fontsize=7, color=_GREY)
            continue
        mean, sd = values["value"].mean(), values["value"].std(ddof=1)
        tasks = values.groupby("task")["value"].mean()
        ax.barh(row, mean, height=0.72, color=styles[method].color, lw=0)
        if np.isfinite(sd):
            ax.errorbar(mean, row, xerr=sd, color="#222222", lw=0.8, capsize=2, zorder=3)
        ax.plot(tasks, np.full(len(tasks), row), ".", color="#222222", ms=2, mew=0, alpha=0.6)
        right = max(mean + np.nan_to_num(sd), tasks.max(), 0.0)
        ax.text(right + 0.04 * widest, row, _short(mean), va="center", fontsize=7)
    ax.set_xlim(min(0.0, table["value"].min() if len(table) else 0.0), 1.5 * widest or 1.0)
    ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)


def calibration_map(
    scores: pd.DataFrame,
    dataset: str,
    methods: Methods,
    *,
    x_metric: str = "eece",
    y_metric: str = "ece",
    width: float = COLUMN_WIDTH,
) -> Figure:
    """Draw one point a method on logarithmic axes, best bottom left (figure 4b of the paper).

    Points are means over tasks and seeds, whiskers reach from the smallest to the largest
    value. What is below 1e-5, negative or zero, has no place on the axes: such a point is
    hollow and stands in a grey margin, and such a whisker runs out of the axes. The blue
    band is what label noise alone makes of EECE, where ``scores`` has ``eece_noise_floor``.

    Parameters
    ----------
    scores, dataset, methods
        As in `tables.dataset_scores`.
    x_metric : str
        ``eece``, or ``tece_corrected`` for the estimate without the plug-in's bias.
    y_metric : str
    width : float
        In inches.

    Raises
    ------
    ValueError
        If no method has both metrics.
    """
    return _maps(scores, dataset, methods, [x_metric], y_metric, width)


def calibration_maps(
    scores: pd.DataFrame,
    dataset: str,
    methods: Methods,
    *,
    x_metrics: Sequence[str] = ("eece", "tece_corrected"),
    y_metric: str = "ece",
    width: float = FULL_WIDTH,
) -> Figure:
    """Draw `calibration_map` for several metrics side by side, with shared axes."""
    return _maps(scores, dataset, methods, x_metrics, y_metric, width)


def eece_parts(
    scores: pd.DataFrame, dataset: str, methods: Methods, *, width: float = FULL_WIDTH
) -> Figure:
    """Draw what EECE is made of, beside the corrected estimate of the error it stands for.

    Left, the shares of miscalibration Σ w g² and of scatter Σ w W in their sum, with both
    and EECE in print. Right, where ``scores`` has it, TECE without the plug-in's bias.

    Parameters
    ----------
    scores, dataset, methods
        As in `tables.dataset_scores`. Rows are ordered by EECE, best on top.
    width : float
        In inches.

    Raises
    ------
    ValueError
        If there are no scores of the parts.
    """
    chosen = dataset_scores(scores, dataset, methods)
    order = _order_by(chosen, "eece", methods)
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
        _label_rows(axes[0], order, methods)
        if corrected:
            _draw_corrected(axes[1], means, styles)
        handles = [
            Patch(color=_GREY, lw=0, label="g²: miscalibration of the mean"),
            Patch(**_scatter_bar(_GREY), label="W: scatter within bins"),
        ]
        if corrected and {"tece_corrected_low", "tece_corrected_high"} <= set(means):
            handles.append(Line2D([], [], color=_GREY, lw=1.8, label="interval of the mean"))
        if corrected and "tece_noise_floor" in means:
            handles.append(
                Line2D(
                    [], [], color=_GREY, ls="none", marker="|", ms=8, label="its noise, uncorrected"
                )
            )
        figure.legend(
            handles=handles,
            title=f"{dataset}: means over {_replicates(chosen)}",
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
    for row, (method, values) in zip(_rows(means), means.iterrows(), strict=True):
        color = styles[method].color
        calibration, dispersion = values["eece_calibration"], values["eece_dispersion"]
        total = calibration + dispersion
        if total > 0:
            share = calibration / total
            ax.barh(row, share, height=0.72, color=color, lw=0)
            ax.barh(row, 1 - share, left=share, height=0.72, **_scatter_bar(color))
        for metric, x in columns.items():
            ax.text(x, row, _short(values[metric]), ha="center", va="center", fontsize=7)
    ax.set_xlim(0, 1.85)
    ax.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    ax.set_xlabel("Share of the parts of EECE = Σw|g² − W|", loc="left")
    ax.grid(visible=False)
    ax.spines["bottom"].set_bounds(0, 1)


def _scatter_bar(color: str) -> dict[str, Any]:
    return {"facecolor": mpl.colors.to_rgba(color, 0.25), "edgecolor": color, "hatch": "/////"}


def _draw_corrected(ax: Axes, means: pd.DataFrame, styles: Mapping[str, MethodStyle]) -> None:
    _symlog(ax.xaxis)
    for row, (method, values) in zip(_rows(means), means.iterrows(), strict=True):
        x = values["tece_corrected"]
        low, high = values.get("tece_corrected_low"), values.get("tece_corrected_high")
        if low is not None and high is not None:
            ax.plot([low, high], [row, row], color=styles[method].color, lw=1.8, zorder=2)
        floor = values.get("tece_noise_floor")
        if floor is not None:
            ax.plot(floor, row, "|", color=_GREY, ms=8, mew=0.8, zorder=1)
        ax.plot(x, row, ls="none", **styles[method].line(), zorder=3)
    ax.axvline(0, color="#222222", lw=0.6)
    ax.set_xlabel("Corrected TECE")
    ax.tick_params(axis="y", length=0)


def sensitivity(
    table: pd.DataFrame, dataset: str, methods: Methods, *, width: float = FULL_WIDTH
) -> Figure:
    """Draw how the estimates move with the number of bins and of hypotheses.

    Lines are means over tasks (and whatever else is repeated), bands reach from the
    smallest to the largest value. The value axes are linear below 0.001.

    Parameters
    ----------
    table : DataFrame
        Columns dataset, method, task, axis (such as ``n_bins``, ``n_hypotheses``),
        axis_value, metric (such as ``eece``, ``tece_corrected``), value.
    dataset : str
    methods : mapping
        Labels, as in `tables.dataset_scores`.
    width : float
        In inches.

    Raises
    ------
    ValueError
        If the table has no finite value of ``dataset``.
    """
    chosen = table[(table["dataset"] == dataset) & np.isfinite(table["value"].astype(float))]
    if chosen.empty:
        known = sorted(table["dataset"].unique())
        raise ValueError(f"dataset={dataset!r} has no finite value; the table has {known}")
    styles = method_styles(methods)
    shown = [name for name in ordered_methods(methods) if name in set(chosen["method"])]
    metrics, variables = list(chosen["metric"].unique()), list(chosen["axis"].unique())
    n_columns = max(2, int(width / 1.5))
    legend_rows = -(-len(shown) // n_columns)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.6 + 1.5 * len(metrics) + 0.17 * legend_rows))
        axes = figure.subplots(
            len(metrics), len(variables), sharex="col", sharey="row", squeeze=False
        )
        for row in axes:
            _symlog(row[0].yaxis)
        for (metric, variable), panel in chosen.groupby(["metric", "axis"], sort=False):
            ax = axes[metrics.index(metric), variables.index(variable)]
            for method in shown:
                lines = panel[panel["method"] == method].groupby("axis_value")["value"]
                mean = lines.mean()
                ax.plot(mean.index, mean, **styles[method].line() | {"ms": 3.5})
                ax.fill_between(
                    mean.index,
                    lines.min(),
                    lines.max(),
                    color=styles[method].color,
                    alpha=0.12,
                    lw=0,
                )
        for i, metric in enumerate(metrics):
            axes[i, 0].set_ylabel(metric_label(metric))
            for ax in axes[i]:
                ax.axhline(0, color="#222222", lw=0.6)
            if (chosen.loc[chosen["metric"] == metric, "value"] >= 0).all():
                axes[i, 0].set_ylim(bottom=0)
        for j, variable in enumerate(variables):
            axes[-1, j].set_xlabel(_VARIABLES.get(variable, variable))
            axes[-1, j].set_xscale("log")
            values = sorted(chosen.loc[chosen["axis"] == variable, "axis_value"].unique())
            axes[-1, j].set_xticks(values, [f"{value:g}" for value in values])
            axes[-1, j].set_xticks([], minor=True)
        figure.suptitle(f"{dataset}: mean and range over tasks", fontsize=8)
        figure.legend(
            handles=[
                Line2D([], [], **styles[name].line() | {"ms": 4}, label=methods[name]["label"])
                for name in shown
            ],
            loc="outside lower center",
            ncols=n_columns,
        )
    return figure


_VARIABLES = {"n_bins": "Number of bins", "n_hypotheses": "Number of hypotheses"}


def loss_curve(history: pd.DataFrame, *, width: float = COLUMN_WIDTH) -> Figure:
    """Draw the autoencoder's loss against the epoch.

    Parameters
    ----------
    history : DataFrame
        Columns ``epoch`` and ``loss``, the mean squared error.
    width : float
        In inches.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    if not {"epoch", "loss"} <= set(history):
        raise ValueError(f"history must have columns epoch and loss; has {list(history)}")
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.62 * width))
        ax = figure.subplots()
        ax.plot(history["epoch"], history["loss"], color="#332288", marker="o", ms=3.5)
        ax.set_ylim(bottom=0)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        ax.set_xlabel("Epoch")
        ax.set_ylabel("Mean squared error")
    return figure


def reconstructions(
    originals: np.ndarray,
    reconstructed: np.ndarray,
    class_names: Sequence[str],
    *,
    width: float = FULL_WIDTH,
) -> Figure:
    """Draw images above their reconstructions.

    Parameters
    ----------
    originals, reconstructed : ndarray of shape (n, height, width), (n, c, height, width) or
            (n, height, width, c), c 1 or 3
        Pixels in [0, 1]; others are clipped.
    class_names : sequence of str, length n
    width : float
        In inches.

    Raises
    ------
    ValueError
        If shapes differ or are none of the above.
    """
    originals, reconstructed = np.asarray(originals), np.asarray(reconstructed)
    if originals.shape != reconstructed.shape or len(class_names) != len(originals):
        raise ValueError(
            f"originals {originals.shape}, reconstructed {reconstructed.shape} and class_names "
            f"({len(class_names)}) must have the same shape and length"
        )
    rows = [_channels_last(originals), _channels_last(reconstructed)]
    n = len(originals)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 2 * (width - 0.2) / n + 0.2), layout="compressed")
        figure.get_layout_engine().set(h_pad=0.01, w_pad=0.01, hspace=0.02, wspace=0.02)
        axes = figure.subplots(2, n, squeeze=False)
        for row, images in zip(axes, rows, strict=True):
            for ax, image in zip(row, images, strict=True):
                ax.imshow(np.clip(image, 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="none")
                ax.set(xticks=[], yticks=[])
                ax.grid(visible=False)
                ax.spines[:].set_visible(False)
        for ax, name in zip(axes[0], class_names, strict=True):
            ax.set_title(name, fontsize=7.5, pad=2)
        axes[0, 0].set_ylabel("image", fontsize=7.5)
        axes[1, 0].set_ylabel("decoded", fontsize=7.5)
    return figure


def _channels_last(images: np.ndarray) -> np.ndarray:
    if images.ndim == 4 and images.shape[1] in (1, 3):
        images = np.moveaxis(images, 1, -1)
    if images.ndim == 4 and images.shape[-1] == 1:
        images = images[..., 0]
    if images.ndim == 3 or (images.ndim == 4 and images.shape[-1] == 3):
        return images
    raise ValueError(f"originals has shape {images.shape}: not grey or colour images")


# Values that the number of test points cannot tell from 0, floating-point dust among them.
_SMALLEST = 1e-5


def _maps(
    scores: pd.DataFrame,
    dataset: str,
    methods: Methods,
    x_metrics: Sequence[str],
    y_metric: str,
    width: float,
) -> Figure:
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
    x_scale = _LogMargin(pd.concat([spreads[metric] for metric in x_metrics]))
    y_scale = _LogMargin(spreads[y_metric])
    styles = method_styles(methods)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.92 * width / len(x_metrics) + 0.1))
        axes = figure.subplots(1, len(x_metrics), sharex=True, sharey=True, squeeze=False)[0]
        for ax, metric in zip(axes, x_metrics, strict=True):
            x, y = spreads[metric], spreads[y_metric]
            if metric == "eece":
                _draw_floor(ax, chosen, methods, x_scale)
            for method in [name for name in x.index if name in y.index]:
                _draw_point(ax, x.loc[method], y.loc[method], x_scale, y_scale, styles[method])
            x_scale.apply(ax, "x")
            y_scale.apply(ax, "y")
            ax.set_xlabel(metric_label(metric))
        axes[0].set_ylabel(metric_label(y_metric))
        figure.suptitle(f"{dataset}: mean and range over {_replicates(chosen)}", fontsize=8)
        figure.draw_without_rendering()
        for ax, metric in zip(axes, x_metrics, strict=True):
            names = [name for name in spreads[metric].index if name in spreads[y_metric].index]
            points = [
                (x_scale.place(spreads[metric].loc[n]), y_scale.place(spreads[y_metric].loc[n]))
                for n in names
            ]
            _label_points(ax, points, [methods[name]["label"] for name in names])
    return figure


class _LogMargin:
    """A logarithmic axis, with a margin for what is below `_SMALLEST` if there is any.

    Parameters
    ----------
    spread : DataFrame
        Columns mean, low and high.
    """

    def __init__(self, spread: pd.DataFrame) -> None:
        above = spread[spread["mean"] >= _SMALLEST]
        low = np.fmax(above["low"], above["mean"] / 4).min() if len(above) else _SMALLEST
        high = spread["high"].max() if len(above) else 10 * _SMALLEST
        pad = max((high / low) ** 0.06, 1.3)
        self.low, self.high = low / pad, high * pad
        self.has_margin = bool((spread["mean"] < _SMALLEST).any())
        decades = np.log10(self.high / self.low)
        self.left = self.low / 10 ** (0.16 * decades) if self.has_margin else self.low

    def place(self, spread: pd.Series) -> float:
        """Return where the mean is drawn."""
        if spread["mean"] >= _SMALLEST:
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
        text = {"fontsize": 7, "color": _GREY, "ha": "center", "va": "center"}
        label = f"< 10$^{{{round(np.log10(_SMALLEST))}}}$"
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


def _draw_point(
    ax: Axes,
    x: pd.Series,
    y: pd.Series,
    x_scale: _LogMargin,
    y_scale: _LogMargin,
    style: MethodStyle,
) -> None:
    at = x_scale.place(x), y_scale.place(y)
    whisker = {"color": style.color, "lw": 1, "alpha": 0.8, "zorder": 2}
    ax.plot(x_scale.whisker(x), [at[1], at[1]], **whisker)
    ax.plot([at[0], at[0]], y_scale.whisker(y), **whisker)
    line = style.line()
    if min(x["mean"], y["mean"]) < _SMALLEST:
        line |= {"markerfacecolor": "white", "markeredgecolor": style.color, "mew": 1.2}
        line.pop("markeredgewidth")
    ax.plot(*at, ls="none", zorder=3, **line)


def _draw_floor(ax: Axes, chosen: pd.DataFrame, methods: Methods, x_scale: _LogMargin) -> None:
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
        color=_GREY,
        va="top",
    )


def _label_points(ax: Axes, points: Sequence[tuple[float, float]], labels: Sequence[str]) -> None:
    """Write a label beside each point, where it covers no marker, label or edge.

    Each label takes the cheapest of rings of places around its point, in turn, until none
    moves; of the results of starting at each label, the cheapest is drawn.
    """
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    per_point = ax.figure.dpi / 72
    at = ax.transData.transform(np.asarray(points, dtype=float).reshape(-1, 2))
    markers = np.hstack([at - 3.2 * per_point, at + 3.2 * per_point])
    lines = [line.get_window_extent(renderer).padded(0.8 * per_point) for line in ax.lines]
    whiskers = np.array([box.extents for box in lines])
    others = [text.get_window_extent(renderer).extents for text in ax.texts]
    others = np.array(others).reshape(-1, 4)
    sizes = []
    for label in labels:
        text = ax.text(0.5, 0.5, label, fontsize=7, transform=ax.transAxes)
        sizes.append(text.get_window_extent(renderer).size)
        text.remove()

    radii, angles = np.meshgrid([5, 9, 15, 23, 32], np.deg2rad(np.arange(0, 360, 30)))
    radii, angles = radii.ravel(), angles.ravel()
    direction = np.column_stack([np.cos(angles), np.sin(angles)])

    def places(i: int) -> np.ndarray:
        # The ring touches the label's nearest edge, not its middle.
        low = at[i] + radii[:, None] * per_point * direction + (direction - 1) / 2 * sizes[i]
        return np.hstack([low, low + sizes[i]])

    candidates = [places(i) for i in range(len(labels))]
    strange = [_nearer_to_others(boxes, at, i) for i, boxes in enumerate(candidates)]

    def costs(i: int, chosen: Sequence[int]) -> np.ndarray:
        rest = [candidates[j][chosen[j]] for j in range(len(labels)) if j != i]
        blockers = np.vstack([np.delete(markers, i, axis=0), others, *rest])
        area = sizes[i].prod()
        hidden = _overlap(candidates[i], blockers).sum(axis=1) / area
        outside = 1 - _overlap(candidates[i], ax.bbox.extents[None])[:, 0] / area
        crossed = _overlap(candidates[i], whiskers).sum(axis=1) / area
        return 60 * (hidden + outside) + 9 * crossed + 6 * strange[i] + radii / 12

    def descend(start: int) -> tuple[float, list[int]]:
        chosen = [0] * len(labels)
        for _ in range(10):
            before = list(chosen)
            for i in np.roll(np.arange(len(labels)), start):
                chosen[i] = int(np.argmin(costs(i, chosen)))
            if chosen == before:
                break
        return sum(costs(i, chosen)[place] for i, place in enumerate(chosen)), chosen

    _, chosen = min(descend(start) for start in range(len(labels)))
    for i, label in enumerate(labels):
        box = candidates[i][chosen[i]]
        leader = {"arrowstyle": "-", "lw": 0.4, "color": _GREY, "shrinkA": 0}
        ax.annotate(
            label,
            points[i],
            xytext=((box[:2] + box[2:]) / 2 - at[i]) / per_point,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7,
            zorder=4,
            bbox={"facecolor": "white", "alpha": 0.7, "lw": 0, "pad": 0.3},
            arrowprops=leader if radii[chosen[i]] > 10 or strange[i][chosen[i]] else None,
        )


def _nearer_to_others(boxes: np.ndarray, at: np.ndarray, own: int) -> np.ndarray:
    """Return which boxes are nearer to another point than to their own."""
    gap = np.maximum(boxes[:, None, :2] - at, at - boxes[:, None, 2:]).clip(min=0)
    distance = np.hypot(gap[..., 0], gap[..., 1])
    others = np.delete(distance, own, axis=1)
    return (others < distance[:, [own]]).any(axis=1)


def _overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the common area of each box of ``a`` and each of ``b``: x0, y0, x1, y1."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    return np.clip(high - low, 0, None).prod(axis=2)


def _spread(chosen: pd.DataFrame, metric: str, methods: Methods) -> pd.DataFrame:
    values = chosen[chosen["metric"] == metric].groupby("method")["value"]
    table = values.agg(mean="mean", low="min", high="max")
    return table.reindex([name for name in ordered_methods(methods) if name in table.index])


def _order_by(chosen: pd.DataFrame, metric: str, methods: Methods) -> list[str]:
    means = chosen[chosen["metric"] == metric].groupby("method")["value"].mean()
    ordered = means.reindex(ordered_methods(methods))
    return list(ordered.sort_values(kind="stable", na_position="last").index)


def _rows(table: Sequence[Any] | pd.DataFrame) -> np.ndarray:
    return np.arange(len(table))[::-1]


def _label_rows(ax: Axes, order: Sequence[str], methods: Methods) -> None:
    ax.set_yticks(_rows(order), [methods[method]["label"] for method in order])
    ax.set_ylim(-0.6, len(order) - 0.4)
    ax.tick_params(axis="y", length=0)


def _symlog(axis: Any) -> None:
    set_scale = getattr(axis.axes, f"set_{axis.axis_name}scale")
    set_scale("symlog", linthresh=1e-3, linscale=0.6)
    axis.set_minor_locator(mpl.ticker.NullLocator())


def _replicates(chosen: pd.DataFrame) -> str:
    n_tasks, n_seeds = chosen["task"].nunique(), chosen["seed"].nunique()
    return f"{n_tasks} task{'s' if n_tasks > 1 else ''}, {n_seeds} seed{'s' if n_seeds > 1 else ''}"


def _short(value: float) -> str:
    if not np.isfinite(value):
        return "—"
    return f"{value:.3f}" if abs(value) >= 0.1 else f"{round(value, 4) + 0.0:.4f}"
