"""Errors among the inputs kept, against how many are kept, a panel per method."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from epistemic_calibration.report.figures import _panels
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.style import FULL_WIDTH

CAPTION = (
    "Errors among the inputs that are kept when those of largest EU are set aside (solid; the "
    "dot is at 90 %), and when those of largest 1 − max p are (dashed); inputs of equal order "
    "count by their mean. Dotted: errors among all inputs. All one-vs-all tasks together."
)


def draw(results: DatasetResults, *, width: float = FULL_WIDTH) -> Figure:
    """Draw a panel for each of at most six methods, active ones first.

    Parameters and errors as of `_panels.panels`.
    """
    found = _panels.chosen(results, _panels.diagnosed(results, "risk_coverage"))
    figure, axes = _panels.panels(results, found, _panels.risk_coverage, width=width, height=1.6)
    first, *others = axes.values()
    for ax in others:
        ax.get_legend().remove()
    errors = [f[name] for f in found.values() for name in ("uncertainty", "prediction")]
    first.set_ylim(0, max(112 * np.max(errors), 1e-3))
    return figure
