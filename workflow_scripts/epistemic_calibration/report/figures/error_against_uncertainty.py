"""Is the uncertainty of the right size? The error at one input against EU, a panel per method."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.figure import Figure

from epistemic_calibration.report._names import drawable_labels
from epistemic_calibration.report._results import DatasetResults
from epistemic_calibration.report.figures import _panels
from epistemic_calibration.report.figures._axes import MAX_PANELS, panels, ranked
from epistemic_calibration.report.style import FULL_WIDTH, rc_params

CAPTION = (
    "Error at one input, 100 · √E[(p* − Δ)²], against the root of the epistemic uncertainty (EU) "
    "that the method reports, in tenths by EU; all one-vs-all tasks together. On the dashed line "
    "EU has the right size, above it is too small. Dots are estimates from several labels per "
    "input, with 95 % intervals; with one label per input, bars reach from the lower bound to the "
    "upper one, hollow where the right size is possible."
)


def draw(results: DatasetResults, *, width: float = FULL_WIDTH) -> Figure:
    """Draw a panel for each of at most six methods, active ones first, on equal axes.

    Parameters
    ----------
    results : DatasetResults
    width : float
        In inches.

    Raises
    ------
    ValueError
        If no method has a curve.

    Examples
    --------
    >>> import pandas as pd
    >>> values = dict(curve_uncertainty=0.01, curve_error=0.02)
    >>> values |= dict(curve_error_low=0.01, curve_error_high=0.03)
    >>> scores = pd.DataFrame({"metric": values.keys(), "value": values.values()}).assign(
    ...     dataset="pets", seed=0, method="eknn", scope="bin", task=None, bin=0
    ... )
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> draw(DatasetResults("pets", scores, methods)).axes[0].get_title()
    'EK-NN'
    """
    curves = _panels.error_curves(results)
    names = [name for name in ranked(results) if name in curves]
    if not names:
        raise ValueError(f"no method of dataset={results.name!r} has a curve of error against EU")
    active = [name for name in names if results.methods[name]["family"] == "active"]
    names = (active or names)[:MAX_PANELS]
    top = max(float(curves[name][["uncertainty", "high"]].max().max()) for name in names)
    labels = drawable_labels(results.methods)
    with mpl.rc_context(rc_params()):
        figure, axes = panels(names, width, 1.8, sharex=True, sharey=True)
        for ax, name in zip(axes, names, strict=True):
            _panels.error_against_uncertainty(ax, curves[name], max(1.08 * top, 1.0))
            ax.set_title(labels[name])
            ax.label_outer()
        axes[0].text(0.05, 0.95, "EU too small", va="top", transform=axes[0].transAxes)
    return figure
