"""Errors among the inputs kept, against how many are kept, a panel per method."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.figure import Figure

from epistemic_calibration.report._names import drawable_labels
from epistemic_calibration.report._results import DatasetResults
from epistemic_calibration.report.figures import _panels
from epistemic_calibration.report.figures._axes import diagnosed, panels
from epistemic_calibration.report.style import FULL_WIDTH, rc_params

CAPTION = (
    "Errors among the inputs that are kept when those of largest EU are set aside (solid; the "
    "dot is at 90 %), and when those of largest 1 − max p are (dashed); inputs of equal order "
    "count by their mean. Dotted: errors among all inputs. All one-vs-all tasks together."
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
    >>> found = {"coverage": [0.5, 0.9, 1.0]}
    >>> found |= {"uncertainty": [0.0, 0.1, 0.2], "prediction": [0.0, 0.05, 0.2]}
    >>> methods = {"mine": {"label": "Mine", "family": "active"}}
    >>> scores = pd.DataFrame(
    ...     [("mine", "tece_corrected", 0.01)], columns=["method", "metric", "value"]
    ... ).assign(dataset="pets", seed=0, scope="all_tasks", task=None)
    >>> results = DatasetResults(
    ...     "pets", scores, methods, diagnostics={"mine": {"risk_coverage": found}}
    ... )
    >>> draw(results).axes[0].get_title()
    'Mine'
    """
    names, labels = diagnosed(results, "risk_coverage"), drawable_labels(results.methods)
    with mpl.rc_context(rc_params()):
        figure, axes = panels(names, width, 1.6, sharex=True, sharey=True)
        tops = []
        for ax, name in zip(axes, names, strict=True):
            _panels.risk_coverage(ax, results.diagnostics[name]["risk_coverage"])
            tops.append(ax.get_ylim()[1])
            ax.set_title(labels[name])
            ax.label_outer()
            if name != names[0]:
                ax.get_legend().remove()
        axes[0].set_ylim(0, max(tops))
    return figure
