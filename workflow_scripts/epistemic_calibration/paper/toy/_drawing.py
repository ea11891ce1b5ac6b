"""Figures of the toy experiments: what they share, and the function that draws them.

How each is drawn is the function ``plot`` of its file in ``paper/toy/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from epistemic_calibration.report._names import drawable
from epistemic_calibration.report.style import COLUMN_WIDTH, method_styles, rc_params

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from epistemic_calibration.paper.toy import Experiment


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
    """
    import matplotlib as mpl

    with mpl.rc_context(rc_params()):
        return experiment.plot(table, Canvas(labels or {}))


class Canvas:
    """What an experiment draws with: axes, colours, names of methods."""

    #: Colours of lines and outlines, and of what is less important.
    ink = "#222222"
    faint = "#888888"
    #: Colours and markers of the negative and of the positive class.
    class_colors = ("#CC6677", "#4477AA")
    class_markers = ("o", "^")
    #: Error bars of seaborn: from the least seed to the largest.
    range = ("pi", 100)

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels

    @property
    def sns(self) -> Any:
        """The module seaborn, which the environments that fit the methods lack."""
        import seaborn

        return seaborn

    def axes(
        self, height: float, n_rows: int = 1, n_columns: int = 1, **options: Any
    ) -> tuple[Figure, np.ndarray]:
        """Return a figure of one column's width, so many inches high, and its axes.

        Of shape (n_rows, n_columns); ``options`` are those of ``Figure.subplots``.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(COLUMN_WIDTH, height), layout="constrained")
        return figure, figure.subplots(n_rows, n_columns, squeeze=False, **options)

    def label(self, method: str) -> str:
        """Return what a method is called in the figure."""
        return drawable(self._labels.get(method, method.replace("_", " ").capitalize()))

    def panel_name(self, name: str) -> str:
        """Return a name from the configuration as text that matplotlib draws as it is."""
        return drawable(name)

    def named(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table with the labels of its methods in a column ``Method``."""
        return table.assign(Method=table["method"].map(self.label))

    def errors(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of EECE and TECE, `named`, with EECE or TECE in a column ``Error``."""
        table = table[table["metric"].isin(["eece", "tece"])]
        return self.named(table).assign(Error=table["metric"].str.upper())

    def palette(self, table: pd.DataFrame) -> dict[str, str]:
        """Return the colour of each ``Method`` of a table."""
        styles = method_styles(table["method"])
        return {self.label(method): style.color for method, style in styles.items()}

    def seeds(self, table: pd.DataFrame) -> str:
        """Return how many seeds a table has, in words such as ``10 seeds``."""
        n_seeds = table["seed"].nunique()
        return f"{n_seeds} seed" + ("s" if n_seeds > 1 else "")

    def log_values(self, ax: Axes) -> None:
        """Make the upright axis logarithmic, with plain numbers at 1, 2 and 5."""
        from matplotlib.ticker import LogLocator, NullLocator

        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.yaxis.set_minor_locator(NullLocator())

    def errors_against(self, table: pd.DataFrame, x: str, x_label: str) -> Figure:
        """Draw EECE and TECE of each method against a column: means and range over seeds."""
        table = self.errors(table)
        figure, axes = self.axes(2.5)
        ax = axes[0, 0]
        self.sns.lineplot(
            table,
            x=x,
            y="value",
            hue="Method",
            style="Error",
            style_order=["EECE", "TECE"],
            palette=self.palette(table),
            markers=["o", "D"],
            errorbar=self.range,
            err_kws={"alpha": 0.15, "lw": 0},
            ax=ax,
        )
        self.log_values(ax)
        ax.set(xlabel=x_label, ylabel=f"Error (mean and range: {self.seeds(table)})")
        return figure
