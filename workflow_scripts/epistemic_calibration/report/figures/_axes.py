"""What the figures of scores share: rows of methods, axes, numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from epistemic_calibration.report.tables._selection import ordered_methods

#: What readers see of methods, by name: label and family.
Methods = Mapping[str, Mapping[str, str]]

GREY = "#555555"


def order_by(chosen: pd.DataFrame, metric: str, methods: Methods) -> list[str]:
    """Return the methods by increasing mean of a metric, those without one last."""
    means = chosen[chosen["metric"] == metric].groupby("method")["value"].mean()
    ordered = means.reindex(ordered_methods(methods))
    return list(ordered.sort_values(kind="stable", na_position="last").index)


def rows(table: Sequence[Any] | pd.DataFrame) -> np.ndarray:
    """Return the vertical positions of rows, the first on top."""
    return np.arange(len(table))[::-1]


def label_rows(ax: Axes, order: Sequence[str], methods: Methods) -> None:
    """Write the methods' labels beside their rows."""
    ax.set_yticks(rows(order), [methods[method]["label"] for method in order])
    ax.set_ylim(-0.6, len(order) - 0.4)
    ax.tick_params(axis="y", length=0)


def symlog(axis: Any) -> None:
    """Make an axis linear below 0.001 and logarithmic above."""
    set_scale = getattr(axis.axes, f"set_{axis.axis_name}scale")
    set_scale("symlog", linthresh=1e-3, linscale=0.6)
    axis.set_minor_locator(mpl.ticker.NullLocator())


def replicates(chosen: pd.DataFrame) -> str:
    """Return what a mean is over, in words such as ``10 tasks, 1 seed``."""
    n_tasks, n_seeds = chosen["task"].nunique(), chosen["seed"].nunique()
    return f"{n_tasks} task{'s' if n_tasks > 1 else ''}, {n_seeds} seed{'s' if n_seeds > 1 else ''}"


def short(value: float) -> str:
    """Return a number with few decimals, or the sign for a missing one.

    Examples
    --------
    >>> short(0.25), short(0.00012), short(float("nan"))
    ('0.250', '0.0001', '—')
    """
    if not np.isfinite(value):
        return "—"
    return f"{value:.3f}" if abs(value) >= 0.1 else f"{round(value, 4) + 0.0:.4f}"
