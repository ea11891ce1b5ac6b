"""What figures share: colours, rows of methods, panels of methods."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from epistemic_calibration.report._answers import FAMILIES
from epistemic_calibration.report._results import DatasetResults
from epistemic_calibration.report.tables._selection import all_tasks_scores, ordered_methods

INK, GREY = "#000000", "#555555"
BLUE, ORANGE = "#1f4fa8", "#b3541e"
#: Panels of methods that one figure holds.
MAX_PANELS = 6


def ranked(results: DatasetResults) -> list[str]:
    """Return the methods in the order of all figures: by the corrected TECE, controls last."""
    names = ordered_methods(results.methods)
    scores = all_tasks_scores(results.scores, results.name).reindex(names)
    errors = scores.get("tece_corrected", scores.iloc[:, :0].sum(axis=1))
    families = [FAMILIES.index(results.methods[name]["family"]) for name in names]
    order = np.lexsort((errors.fillna(np.inf), families))
    return [names[k] for k in order]


def diagnosed(results: DatasetResults, kind: str, limit: int = MAX_PANELS) -> list[str]:
    """Return the first methods whose diagnostics have a kind, the active ones where there are any.

    Raises
    ------
    ValueError
        If there are none.
    """
    names = [name for name in ranked(results) if results.diagnostics.get(name, {}).get(kind)]
    if not names:
        raise ValueError(f"diagnostics of dataset={results.name!r} have no {kind!r} of any method")
    active = [name for name in names if results.methods[name]["family"] == "active"]
    return (active or names)[:limit]


def panels(
    names: Sequence[str], width: float, height: float, **subplots
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each name, two or three in a row; ``height`` in inches."""
    columns = min(len(names), 3 if width > 4 else 2)
    n_rows = math.ceil(len(names) / columns)
    figure = Figure(figsize=(width, height * n_rows))
    axes = figure.subplots(n_rows, columns, squeeze=False, **subplots).ravel()
    for ax in axes[len(names) :]:
        ax.remove()
    return figure, list(axes[: len(names)])


def plain_ticks(axis: mpl.axis.Axis) -> None:
    """Write the numbers of an axis without powers and needless digits."""
    text = functools.partial(np.format_float_positional, precision=6, unique=True, trim="-")
    axis.set_major_formatter(lambda value, _: text(value).replace("-", "−"))


def from_zero(ax: Axes, values: np.ndarray | pd.DataFrame, least: float) -> None:
    """Let the horizontal axis begin at 0 and hold all values.

    Where the largest are far from the others, the axis is of square roots.
    """
    found = np.asarray(values, dtype=float)
    top = max(np.nanmax(found), least)
    if top > 4 * np.nanmedian(found):
        ax.set_xscale("function", functions=(_root, np.square))
        steps = np.array([1, 2, 5]) * 10.0 ** np.arange(-3, 4)[:, None]
        # What lies this near to its neighbour would be written over it.
        ticks = [0.0]
        for step in steps.ravel():
            if step <= 1.05 * top and np.sqrt(step / top) > np.sqrt(ticks[-1] / top) + 0.17:
                ticks.append(step)
        ax.set_xticks(ticks)
    ax.set_xlim(0, 1.06 * top)
    plain_ticks(ax.xaxis)


def _root(values: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(values, 0))
