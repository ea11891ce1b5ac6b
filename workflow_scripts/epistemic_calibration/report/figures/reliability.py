"""Reliability diagrams of a data set, a panel per method."""

from __future__ import annotations

from matplotlib.figure import Figure

from epistemic_calibration.report._answers import answers
from epistemic_calibration.report.figures import _panels
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.style import FULL_WIDTH

CAPTION = (
    "Frequency of label 1 in ten bins of the prediction, with 95 % intervals; all one-vs-all "
    "tasks together. On the dashed line the probabilities are right. The bars below show, on a "
    "scale of roots, how many predictions a bin has; the number is the calibration error (root of "
    "the corrected TECE), which also sees what these bins average away."
)


def draw(results: DatasetResults, *, width: float = FULL_WIDTH) -> Figure:
    """Draw a panel for each of at most six methods, active ones first.

    Parameters and errors as of `_panels.panels`.
    """
    found, off = _panels.diagnosed(results, "reliability"), answers(results)["points"]
    figure, axes = _panels.panels(results, found, _panels.reliability, width=width, height=1.75)
    for name, ax in axes.items():
        ax.text(0.04, 0.97, f"{off[name]:.1f} points", va="top", transform=ax.transAxes)
    return figure
