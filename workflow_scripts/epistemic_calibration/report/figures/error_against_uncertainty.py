"""Is the uncertainty of the right size? The error at one input against EU, a panel per method."""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure

from epistemic_calibration.report.figures import _panels
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.style import FULL_WIDTH

CAPTION = (
    "Error at one input, 100 · √E[(p* − Δ)²], against the root of the epistemic uncertainty (EU) "
    "that the method reports, in tenths by EU; all one-vs-all tasks together. On the dashed line "
    "EU has the right size, above it is too small. Dots are estimates from several labels per "
    "input, with 95 % intervals; with one label per input, bars reach from the lower bound to the "
    "upper one, hollow where the right size is possible."
)


def draw(results: DatasetResults, *, width: float = FULL_WIDTH) -> Figure:
    """Draw a panel for each of at most six methods, active ones first, on equal axes.

    Parameters and errors as of `_panels.panels`.
    """
    curves = _panels.chosen(results, _panels.error_curves(results))
    top = max(curve[["uncertainty", "high"]].max().max() for curve in curves.values())
    draw_one = partial(_panels.error_against_uncertainty, top=max(1.08 * top, 1.0))
    figure, axes = _panels.panels(results, curves, draw_one, width=width, height=1.8)
    first = next(iter(axes.values()))
    first.text(0.05, 0.95, "EU too small", va="top", transform=first.transAxes)
    return figure
