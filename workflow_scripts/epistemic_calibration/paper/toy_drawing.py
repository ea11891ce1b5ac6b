"""Figures of the toy experiments: what they share, and the function that draws them.

How each is drawn is the function ``plot`` of its file in ``paper/toy/``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from epistemic_calibration.report._names import drawable
from epistemic_calibration.report.style import (
    COLUMN_WIDTH,
    MethodStyle,
    method_styles,
    rc_params,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from epistemic_calibration.paper.toy import Experiment

# All points between the least and the largest seed.
_RANGE = ("pi", 100)

# Of fewer seeds, a band would look like more than it is.
_SEEDS_OF_A_BAND = 5


def draw(
    experiment: Experiment, table: pd.DataFrame, labels: Mapping[str, str] | None = None
) -> Figure:
    """Return the figure of a toy experiment.

    Parameters
    ----------
    experiment : Experiment
        From `epistemic_calibration.paper.toy.load_experiment`.
    table : DataFrame
        What its ``run`` returned, joined over methods and seeds.
    labels : mapping of str to str, optional
        Names of methods in the figure; others are made of the names in the table.

    Raises
    ------
    ValueError
        If the table is empty or lacks a column that the figure needs.
    """
    import matplotlib as mpl

    with mpl.rc_context(rc_params()):
        return experiment.plot(table, Canvas(labels))


class Canvas:
    """What an experiment draws with: axes, colours, names of methods.

    Parameters
    ----------
    labels : mapping of str to str, optional
        As in `draw`.
    """

    #: Colours of lines and outlines, and of what is less important.
    ink = "#222222"
    faint = "#888888"
    #: Colours and markers of the negative and of the positive class.
    class_colors = ("#CC6677", "#4477AA")
    class_markers = ("o", "^")

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        self._labels = labels or {}

    def axes(
        self, height: float, n_rows: int = 1, n_columns: int = 1, **options: Any
    ) -> tuple[Figure, np.ndarray]:
        """Return a figure of one column's width and its axes, shape (n_rows, n_columns).

        Parameters
        ----------
        height : float
            In inches.
        n_rows, n_columns : int
        **options
            As of ``Figure.subplots``.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(COLUMN_WIDTH, height), layout="constrained")
        return figure, figure.subplots(n_rows, n_columns, squeeze=False, **options)

    def styles(self, methods: Iterable[str]) -> dict[str, MethodStyle]:
        """Return the styles of methods by name; see `report.style.method_styles`."""
        return method_styles(methods)

    def label(self, method: str) -> str:
        """Return what a method is called in the figure."""
        return drawable(self._labels.get(method, method.replace("_", " ").capitalize()))

    def panel_name(self, name: str) -> str:
        """Return a name from the configuration as text that matplotlib draws as it is."""
        return drawable(name)

    def handle(self, label: str, **options: Any) -> Line2D:
        """Return an entry of a legend; ``options`` are those of ``Line2D``."""
        from matplotlib.lines import Line2D

        return Line2D([], [], label=label, **options)

    def seeds(self, table: pd.DataFrame) -> str:
        """Return how many seeds a table has, in words such as ``10 seeds``."""
        n_seeds = table["seed"].nunique()
        return f"{n_seeds} seed" + ("s" if n_seeds > 1 else "")

    def require(self, table: pd.DataFrame, *columns: str) -> None:
        """Raise ValueError if a table is empty or lacks one of the columns."""
        missing = [column for column in columns if column not in table]
        if missing or table.empty:
            raise ValueError(
                f"table has {len(table)} rows and columns {list(table.columns)}; "
                f"it needs rows and the columns {list(columns)}"
            )

    def errors_against(self, table: pd.DataFrame, x: str, x_label: str) -> Figure:
        """Draw EECE and TECE of each method against a column of the table.

        Lines are means over seeds, points single seeds, filled of the EECE and hollow of the
        TECE. From five seeds on, bands are their range.
        """
        import seaborn as sns
        from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

        self.require(table, "method", "seed", "metric", "value", x)
        table = table[table["metric"].isin(["eece", "tece"])]
        figure, axes = self.axes(2.5)
        ax = axes[0, 0]
        with_bands = table["seed"].nunique() >= _SEEDS_OF_A_BAND
        for method, style in self.styles(table["method"]).items():
            for metric, dashes in (("eece", "-"), ("tece", "--")):
                part = table[(table["method"] == method) & (table["metric"] == metric)]
                color = style.color if metric == "eece" else self.ink
                face = color if metric == "eece" else "white"
                ax.scatter(
                    part[x], part["value"], s=7, facecolor=face, edgecolor=color, lw=0.5, zorder=3
                )
                sns.lineplot(
                    part,
                    x=x,
                    y="value",
                    errorbar=_RANGE if with_bands else None,
                    err_kws={"alpha": 0.15, "lw": 0},
                    color=color,
                    ls=dashes,
                    label=f"{self.label(method)}, {metric.upper()}",
                    ax=ax,
                )
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(NullLocator())
        what = "mean, points and range" if with_bands else "mean and points"
        ax.set(xlabel=x_label, ylabel=f"Error ({what}: {self.seeds(table)})")
        ax.legend()
        return figure
