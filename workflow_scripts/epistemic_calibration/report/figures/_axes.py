"""What figures share: colours, rows of methods, axes."""

from __future__ import annotations

import functools

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from epistemic_calibration.report._answers import FAMILIES
from epistemic_calibration.report.results import DatasetResults

INK, GREY = "#000000", "#555555"
BLUE, ORANGE = "#1f4fa8", "#b3541e"


def ranked(results: DatasetResults) -> list[str]:
    """Return the methods in the order of all figures: by the corrected TECE, controls last."""
    names, scores = results.order, results.together
    errors = scores.get("tece_corrected", pd.Series(np.inf, index=names)).fillna(np.inf)
    families = [FAMILIES.index(results.methods[name]["family"]) for name in names]
    return [names[k] for k in np.lexsort((errors, families))]


def plain_ticks(axis: mpl.axis.Axis) -> None:
    """Write the numbers of an axis without powers and needless digits."""
    text = functools.partial(np.format_float_positional, precision=6, unique=True, trim="-")
    axis.set_major_formatter(lambda value, _: text(value).replace("-", "−"))


def from_zero(ax: Axes, values: np.ndarray | pd.DataFrame, least: float) -> None:
    """Begin the horizontal axis at 0; it is of square roots where some values are far off."""
    found = np.asarray(values, dtype=float)
    top = max(np.nanmax(found), least)
    if top > 4 * np.nanmedian(found):
        roots = (lambda x: np.sqrt(np.maximum(x, 0)), np.square)
        ax.set_xscale("function", functions=roots)
        steps = np.array([1, 2, 5]) * 10.0 ** np.arange(-3, 4)[:, None]
        # What lies this near to its neighbour would be written over it.
        ticks = [0.0]
        for step in steps.ravel():
            if step <= 1.05 * top and np.sqrt(step / top) > np.sqrt(ticks[-1] / top) + 0.17:
                ticks.append(step)
        ax.set_xticks(ticks)
    ax.set_xlim(0, 1.06 * top)
    plain_ticks(ax.xaxis)
