"""Reliability diagrams of a data set, a panel per method."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.figure import Figure

from epistemic_calibration.report._answers import answers
from epistemic_calibration.report._names import drawable_labels
from epistemic_calibration.report._results import DatasetResults
from epistemic_calibration.report.figures import _panels
from epistemic_calibration.report.figures._axes import diagnosed, panels
from epistemic_calibration.report.style import FULL_WIDTH, rc_params

CAPTION = (
    "Frequency of label 1 in ten bins of the prediction, with 95 % intervals; all one-vs-all "
    "tasks together. On the dashed line the probabilities are right. The bars below show, on a "
    "scale of roots, how many predictions a bin has; the number is the calibration error (root of "
    "the corrected TECE), which also sees what these bins average away."
)


def draw(results: DatasetResults, *, width: float = FULL_WIDTH) -> Figure:
    """Draw a panel for each of at most six methods, active ones first.

    Parameters
    ----------
    results : DatasetResults
        With diagnostics.
    width : float
        In inches.

    Raises
    ------
    ValueError
        If there are no diagnostics.

    Examples
    --------
    >>> import pandas as pd
    >>> bins = {"predicted": [0.2], "frequency": [0.3], "low": [0.1], "high": [0.5], "n": [9]}
    >>> scores = pd.DataFrame(
    ...     [("mine", "tece_corrected", 0.01)], columns=["method", "metric", "value"]
    ... ).assign(dataset="pets", seed=0, scope="all_tasks", task=None)
    >>> methods = {"mine": {"label": "Mine", "family": "active"}}
    >>> results = DatasetResults(
    ...     "pets", scores, methods, diagnostics={"mine": {"reliability": bins}}
    ... )
    >>> draw(results).axes[0].get_title()
    'Mine'
    """
    names, labels = diagnosed(results, "reliability"), drawable_labels(results.methods)
    off = answers(results)["points"]
    with mpl.rc_context(rc_params()):
        figure, axes = panels(names, width, 1.75, sharex=True, sharey=True)
        for ax, name in zip(axes, names, strict=True):
            _panels.reliability(ax, results.diagnostics[name]["reliability"])
            ax.set_title(labels[name])
            ax.label_outer()
            ax.text(0.04, 0.97, f"{off[name]:.1f} points", va="top", transform=ax.transAxes)
    return figure
