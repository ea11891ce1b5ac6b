"""What the figures of scores share: rows of methods, axes, numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis

from epistemic_calibration.report._names import drawable_labels
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
    labels = drawable_labels(methods)
    ax.set_yticks(rows(order), [labels[method] for method in order])
    ax.set_ylim(-0.6, len(order) - 0.4)
    ax.tick_params(axis="y", length=0)


# Below this, the axes of errors are linear.
_LINEAR_BELOW = 1e-3


def symlog(axis: Axis) -> None:
    """Make an axis linear below 0.001 and logarithmic above."""
    set_scale = getattr(axis.axes, f"set_{axis.axis_name}scale")
    set_scale("symlog", linthresh=_LINEAR_BELOW, linscale=0.9)
    axis.set_minor_locator(mpl.ticker.NullLocator())


def contain(axis: Axis, values: Sequence[float]) -> None:
    """Set the limits of such an axis so that values and the markers on them are within it.

    There are ticks at 0 and at powers of ten, of both signs where needed.
    """
    transform = axis.get_transform()
    at = transform.transform(np.asarray(values, dtype=float))
    pad = 0.05 * max(np.ptp(at), 1e-3)
    inverse = transform.inverted().transform
    low, high = (float(end) for end in inverse(np.array([at.min() - pad, at.max() + pad])))
    getattr(axis.axes, f"set_{axis.axis_name}lim")(low, high)
    powers = [10.0**k for k in range(-3, 4)]
    ticks = [t for t in (*(-p for p in reversed(powers)), 0.0, *powers) if low <= t <= high]
    axis.set_ticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])


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
