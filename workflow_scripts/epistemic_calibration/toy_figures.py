"""Figures of the toy experiments: tables of `toy` in, matplotlib figures out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration.style import COLUMN_WIDTH, method_styles, rc_params

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The method of the paper's figure 5.
HIGHLIGHTED = "deep_ensemble"

_CLASS_COLORS = {0: "#CC6677", 1: "#4477AA"}
_CLASS_MARKERS = {0: "o", 1: "^"}
_CLASS_LABELS = {0: "negative", 1: "positive"}
_INK = "#222222"
_FAINT = "#888888"
# Below this value the axis of an error is linear, so that 0 has a place on it.
_LINEAR_BELOW = 1e-3
# All points between the least and the largest seed.
_RANGE = ("pi", 100)


def _styled(plot: Callable[..., Figure]) -> Callable[..., Figure]:
    @wraps(plot)
    def styled(*args: Any, **kwargs: Any) -> Figure:
        import matplotlib as mpl

        with mpl.rc_context(rc_params()):
            return plot(*args, **kwargs)

    return styled


def _axes(width: float, height: float, n_rows: int = 1, n_columns: int = 1, **options: Any):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **options)


def _seeds(table: pd.DataFrame) -> str:
    n_seeds = table["seed"].nunique()
    return f"{n_seeds} seed" + ("s" if n_seeds > 1 else "")


def _require(table: pd.DataFrame, *columns: str) -> None:
    missing = [column for column in columns if column not in table]
    if missing or table.empty:
        raise ValueError(
            f"table has {len(table)} rows and columns {list(table.columns)}; "
            f"it needs rows and the columns {list(columns)}"
        )


@_styled
def plot_calibration_plots(table: pd.DataFrame, *, label: str = "Random Forest") -> Figure:
    """Draw binned calibration curves, one panel a variant (figure 1a).

    Parameters
    ----------
    table : DataFrame
        Of `toy.calibration_plots`, seeds joined.
    label : str
        Name of the method.
    """
    _require(table, "variant", "seed", "bin", "predicted", "frequency", "ece")
    variants = list(dict.fromkeys(table["variant"]))
    n_columns = min(3 if len(variants) % 2 else 2, len(variants))
    n_rows = -(-len(variants) // n_columns)
    height = 0.45 + n_rows * (0.55 + 2.7 / n_columns)
    figure, axes = _axes(COLUMN_WIDTH, height, n_rows, n_columns, sharex=True, sharey=True)
    for ax, variant in zip(axes.flat, variants, strict=False):
        part = table[table["variant"] == variant]
        color = method_styles(part["method"]).popitem()[1].color
        ax.plot([0, 1], [0, 1], color=_INK, lw=0.8, ls="--", zorder=1)
        for _, curve in part.groupby("seed"):
            ax.plot(curve["predicted"], curve["frequency"], color=color, lw=0.6, alpha=0.35)
        ax.scatter(part["predicted"], part["frequency"], s=7, color=color, lw=0, alpha=0.8)
        ece = part.groupby("seed")["ece"].first()
        ax.set_title(f"{variant}\nECE {_mean_and_sd(ece)}", fontsize=7.5, linespacing=1.1)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
        ax.set_yticks([0, 0.5, 1], ["0", ".5", "1"])
    for ax in axes.flat[len(variants) :]:
        ax.set_axis_off()
    figure.supxlabel(f"Mean prediction in the bin ({label}, {_seeds(table)})", fontsize=8)
    figure.supylabel("Frequency of class 1", fontsize=8)
    return figure


@_styled
def plot_dataset(table: pd.DataFrame) -> Figure:
    """Draw a sample of the mixture with the line p(x) = 1/2 (figure 1b).

    Parameters
    ----------
    table : DataFrame
        Of `toy.dataset`.
    """
    _require(table, "x1", "x2", "y")
    figure, axes = _axes(COLUMN_WIDTH, 3.0)
    ax = axes[0, 0]
    for label, part in table.groupby("y"):
        ax.scatter(
            part["x1"],
            part["x2"],
            s=9,
            marker=_CLASS_MARKERS[label],
            color=_CLASS_COLORS[label],
            alpha=0.75,
            lw=0,
            label=f"{_CLASS_LABELS[label]} class",
        )
    limit = 1.05 * np.abs(table[["x1", "x2"]].to_numpy()).max()
    ax.plot([-limit, limit], [limit, -limit], color=_INK, lw=1, label="p(x) = 1/2")
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xlabel="x₁", ylabel="x₂")
    figure.legend(loc="outside upper center", ncols=3, handletextpad=0.3, columnspacing=1)
    return figure


@_styled
def plot_smooth_calibration(
    table: pd.DataFrame, *, labels: Mapping[str, str] | None = None
) -> Figure:
    """Draw the smooth calibration curve, one line a method (figure 1c).

    The dotted line is the curve of labels drawn from the predictions: what the kernel makes
    of perfect calibration.

    Parameters
    ----------
    table : DataFrame
        Of `toy.smooth_calibration`, methods and seeds joined.
    labels : mapping, optional
        Names of methods in the legend.
    """
    import seaborn as sns

    _require(table, "method", "seed", "predicted", "frequency", "frequency_if_calibrated")
    figure, axes = _axes(COLUMN_WIDTH, 3.4)
    ax = axes[0, 0]
    ax.plot([0, 1], [0, 1], color=_INK, lw=0.8, ls="--", label="diagonal")
    for method, style in method_styles(table["method"]).items():
        part = table[table["method"] == method]
        for _, curve in part.groupby("seed"):
            ax.plot(curve["predicted"], curve["frequency"], color=style.color, lw=0.5, alpha=0.4)
        sns.lineplot(
            part,
            x="predicted",
            y="frequency",
            errorbar=None,
            color=style.color,
            lw=2,
            label=_label(method, labels),
            ax=ax,
        )
        calibrated = part.groupby("predicted")["frequency_if_calibrated"].mean()
        ax.plot(calibrated, color=style.color, lw=1.2, ls=":", label="if it were calibrated")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set(xlabel=f"Prediction Δ(x), {_seeds(table)}", ylabel="Smoothed frequency of class 1")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center")
    ax.get_legend().remove()
    return figure


@_styled
def plot_uncertainty_maps(
    table: pd.DataFrame, *, labels: Mapping[str, str] | None = None
) -> Figure:
    """Draw EU(x) beside the expected squared error, one row a method (figures 2 and 6).

    Both panels of a row share one colour scale, linear in the square root, since the
    uncertainty is often far below the error; rows have scales of their own. The white line
    is p(x) = 1/2; white triangles are positive training points, dark circles negative.

    Parameters
    ----------
    table : DataFrame
        Of `toy.uncertainty_maps`, for one seed, methods joined.
    labels : mapping, optional
        Names of methods.

    Raises
    ------
    ValueError
        If the table has more than one seed.
    """
    import matplotlib.patheffects as effects
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import MaxNLocator

    quantities = {
        "epistemic_uncertainty": "EU(x)",
        "expected_squared_error": "E (P(Y=1|Π) − h)²",
    }
    _require(table, "method", "seed", "kind", "x1", "x2", "y", "p_true", *quantities)
    if table["seed"].nunique() > 1:
        raise ValueError(f"table must be of one seed, got {sorted(table['seed'].unique())}")
    methods = list(dict.fromkeys(table["method"]))
    height = 0.5 + 1.19 * len(methods)
    figure, axes = _axes(COLUMN_WIDTH, height, len(methods), 2, sharex=True, sharey=True)
    figure.set_layout_engine("compressed")
    for row, method in zip(axes, methods, strict=True):
        part = table[table["method"] == method]
        grid, training = part[part["kind"] == "grid"], part[part["kind"] == "training"]
        top = grid[list(quantities)].to_numpy().max()
        for ax, quantity in zip(row, quantities, strict=True):
            values = grid.pivot(index="x2", columns="x1", values=quantity)
            x1, x2 = values.columns.to_numpy(), values.index.to_numpy()
            norm = PowerNorm(0.5, vmin=0, vmax=top or 1)
            image = ax.pcolormesh(x1, x2, values, cmap="viridis", norm=norm, rasterized=True)
            p_true = grid.pivot(index="x2", columns="x1", values="p_true")
            line = ax.contour(x1, x2, p_true, levels=[0.5], colors="white", linewidths=0.9)
            line.set_path_effects([effects.withStroke(linewidth=2, foreground=_INK)])
            for label, points in training.groupby("y"):
                ax.scatter(
                    points["x1"],
                    points["x2"],
                    s=15,
                    marker=_CLASS_MARKERS[int(label)],
                    facecolor=_INK if label == 0 else "white",
                    edgecolor="white" if label == 0 else _INK,
                    lw=0.6,
                    zorder=3,
                )
            ax.set(aspect="equal", xticks=[-5, 0, 5], yticks=[-5, 0, 5])
            ax.grid(False)
        row[0].set_ylabel(f"{_label(method, labels)}\nx₂")
        bar = figure.colorbar(image, ax=row, fraction=0.05, pad=0.02, aspect=14)
        bar.ax.yaxis.set_major_locator(MaxNLocator(4))
    for ax, title in zip(axes[0], quantities.values(), strict=True):
        ax.set_title(title)
    for ax in axes[-1]:
        ax.set_xlabel("x₁")
    return figure


@_styled
def plot_eece_per_method(table: pd.DataFrame, *, labels: Mapping[str, str] | None = None) -> Figure:
    """Draw EECE and TECE of every method, least EECE on top (figure 3a).

    Parameters
    ----------
    table : DataFrame
        Of `toy.eece_per_method`, methods and seeds joined.
    labels : mapping, optional
        Names of methods.
    """
    _require(table, "method", "seed", "metric", "value")
    table = table[table["metric"].isin(["eece", "tece"])]
    means = table.groupby(["metric", "method"])["value"].mean()
    order = means["eece"].sort_values().index
    figure, axes = _axes(COLUMN_WIDTH, 0.75 + 0.27 * len(order))
    ax = axes[0, 0]
    styles = method_styles(table["method"])
    for row, method in enumerate(order):
        color = styles[method].color
        for metric, shift, face in (("eece", -0.14, color), ("tece", 0.14, "white")):
            chosen = (table["method"] == method) & (table["metric"] == metric)
            values = table.loc[chosen, "value"]
            height = np.full(len(values), row + shift)
            ax.plot([values.min(), values.max()], [row + shift] * 2, color=color, lw=1)
            ax.scatter(values, height, s=3, color=color, lw=0, alpha=0.6)
            ax.scatter(
                means[metric, method],
                row + shift,
                s=22,
                marker="o" if metric == "eece" else "D",
                facecolor=face,
                edgecolor=_INK if metric == "eece" else color,
                lw=0.5 if metric == "eece" else 1.1,
                zorder=3,
            )
    ax.set_yticks(range(len(order)), [_label(method, labels) for method in order])
    ax.set_ylim(len(order) - 0.5, -0.5)
    _scale_errors(ax, table["value"].max())
    ax.set_xlim(-0.1 * _LINEAR_BELOW, 1.5 * table["value"].max())
    ax.set_xlabel(f"Error (mean and range of {_seeds(table)})")
    for metric, marker, face in (("EECE", "o", _FAINT), ("TECE", "D", "white")):
        ax.scatter([], [], s=20, marker=marker, facecolor=face, edgecolor=_FAINT, label=metric)
    figure.legend(loc="outside upper right", ncols=2, handletextpad=0.2, columnspacing=1)
    return figure


@_styled
def plot_eece_vs_noise(table: pd.DataFrame, *, labels: Mapping[str, str] | None = None) -> Figure:
    """Draw EECE and TECE against input noise (figure 3b, left).

    Parameters
    ----------
    table : DataFrame
        Of `toy.eece_vs_noise`, methods and seeds joined.
    labels : mapping, optional
        Names of methods.
    """
    _require(table, "noise_level")
    return _plot_errors(
        table.assign(noise_level=100 * table["noise_level"]),
        "noise_level",
        "Training input values replaced by noise (%)",
        labels,
    )


@_styled
def plot_eece_vs_training_size(
    table: pd.DataFrame, *, labels: Mapping[str, str] | None = None
) -> Figure:
    """Draw EECE and TECE against the size of the training set (figure 3b, right).

    Parameters
    ----------
    table : DataFrame
        Of `toy.eece_vs_training_size`, methods and seeds joined.
    labels : mapping, optional
        Names of methods.
    """
    figure = _plot_errors(table, "n_train", "Training points", labels)
    ax = figure.axes[0]
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    return figure


def _plot_errors(
    table: pd.DataFrame, x: str, x_label: str, labels: Mapping[str, str] | None
) -> Figure:
    import seaborn as sns
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    _require(table, "method", "seed", "metric", "value", x)
    table = table[table["metric"].isin(["eece", "tece"])]
    figure, axes = _axes(COLUMN_WIDTH, 2.5)
    ax = axes[0, 0]
    for method, style in method_styles(table["method"]).items():
        for metric, dashes in (("eece", "-"), ("tece", "--")):
            part = table[(table["method"] == method) & (table["metric"] == metric)]
            if metric == "eece":
                ax.scatter(part[x], part["value"], s=5, color=style.color, lw=0, alpha=0.45)
            sns.lineplot(
                part,
                x=x,
                y="value",
                errorbar=_RANGE if metric == "eece" else None,
                err_kws={"alpha": 0.15, "lw": 0},
                color=style.color if metric == "eece" else _INK,
                ls=dashes,
                label=f"{_label(method, labels)}, {metric.upper()}",
                ax=ax,
            )
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set(xlabel=x_label, ylabel=f"Error (mean, range of {_seeds(table)})")
    ax.legend()
    return figure


@_styled
def plot_binning_study(table: pd.DataFrame, *, labels: Mapping[str, str] | None = None) -> Figure:
    """Draw |EECE − TECE| against the number of bins, one panel a method (figure 5).

    Thick lines are means over seeds, thin ones single seeds. The star is the number of bins
    with the least mean; the ticks on top are the best numbers of the single seeds, the longer
    the more of them. The deep ensemble, which the paper shows, comes first, and its mean is
    repeated as a grey dashed line in the other panels.

    Parameters
    ----------
    table : DataFrame
        Of `toy.binning_study`, methods and seeds joined.
    labels : mapping, optional
        Names of methods.
    """
    _require(table, "method", "seed", "metric", "value", "n_bins")
    table = table[table["metric"] == "absolute_difference"]
    styles = method_styles(table["method"])
    methods = sorted(styles, key=lambda method: method != HIGHLIGHTED)
    n_columns = min(2, len(methods))
    n_rows = -(-len(methods) // n_columns)
    figure, axes = _axes(
        COLUMN_WIDTH, 0.45 + 1.35 * n_rows, n_rows, n_columns, sharex=True, sharey=True
    )
    reference = table[table["method"] == HIGHLIGHTED].groupby("n_bins")["value"].mean()
    for ax, method in zip(axes.flat, methods, strict=False):
        part, color = table[table["method"] == method], styles[method].color
        if method != HIGHLIGHTED and len(reference):
            ax.plot(reference.index, reference, color=_FAINT, lw=0.9, ls="--")
        for _, curve in part.groupby("seed"):
            ax.plot(curve["n_bins"], curve["value"], color=color, lw=0.4, alpha=0.4)
        mean = part.groupby("n_bins")["value"].mean()
        best = mean.idxmin()
        ax.plot(mean.index, mean, color=color, lw=2.4 if method == HIGHLIGHTED else 1.6)
        ax.scatter(
            best, mean[best], s=60, marker="*", color=color, edgecolor=_INK, lw=0.6, zorder=4
        )
        _mark_best_of_seeds(ax, part, color)
        ax.set_title(
            f"{_label(method, labels)} (★ {best})",
            fontsize=6.5,
            fontweight="bold" if method == HIGHLIGHTED else "normal",
        )
        ax.set(xscale="log", yscale="log", xlabel="", ylabel="")
    for ax in axes.flat[len(methods) :]:
        ax.set_axis_off()
    dashed = f"; dashed: {_label(HIGHLIGHTED, labels)}" if len(reference) else ""
    figure.supxlabel(f"Number of bins\n(★ best mean of {_seeds(table)}{dashed})", fontsize=8)
    figure.supylabel("|EECE − TECE|", fontsize=8)
    return figure


def _mark_best_of_seeds(ax: Axes, part: pd.DataFrame, color: str) -> None:
    best = part.loc[part.groupby("seed")["value"].idxmin(), "n_bins"].value_counts()
    for n_bins, count in best.items():
        ax.plot(
            [n_bins, n_bins],
            [1 - 0.02 * count, 1],
            transform=ax.get_xaxis_transform(),
            color=color,
            lw=2.2,
            solid_capstyle="butt",
        )


def _scale_errors(ax: Axes, top: float) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ax.set_xscale("symlog", linthresh=_LINEAR_BELOW, linscale=0.4)
    powers = [10.0**k for k in range(-3, 1) if 10.0**k <= 2 * top]
    ax.xaxis.set_major_locator(FixedLocator([0, *powers]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())


def _label(method: str, labels: Mapping[str, str] | None) -> str:
    return (labels or {}).get(method, method.replace("_", " ").capitalize())


def _mean_and_sd(values: pd.Series) -> str:
    if len(values) == 1:
        return f"{values.iloc[0]:.3f}"
    return f"{values.mean():.3f}\n± {values.std():.3f}"
