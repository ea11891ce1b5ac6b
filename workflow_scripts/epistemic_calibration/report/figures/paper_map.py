"""The paper's map: ECE against EECE, a point per method."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.figure import Figure

from epistemic_calibration.report._names import drawable_labels
from epistemic_calibration.report.figures._axes import plain_ticks, ranked
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.style import COLUMN_WIDTH, method_styles, rc_params

CAPTION = (
    "The paper's map: ECE (in probability) against EECE (in squared units of it) on logarithmic "
    "axes; markers are means over tasks, whiskers reach from the smallest task to the largest. "
    "Values below 0.00001 stand at the edge. Both are smallest at the lower left."
)
_SMALLEST = 1e-5


def draw(results: DatasetResults, *, width: float = COLUMN_WIDTH) -> Figure:
    """Draw ECE against EECE.

    Raises
    ------
    ValueError
        If no method has both.
    """
    chosen = results.of_tasks
    spread = chosen.groupby(["metric", "method"])["value"].agg(["mean", "min", "max"])
    spread = spread.clip(lower=_SMALLEST)
    found = [set(spread.loc[m].index) if m in spread.index else set() for m in ("eece", "ece")]
    names = [name for name in ranked(results) if all(name in of for of in found)]
    if not names:
        raise ValueError(f"no method of dataset={results.dataset!r} has both eece and ece")
    styles, labels = method_styles(results.methods), drawable_labels(results.methods)
    x, y = spread.loc["eece"], spread.loc["ece"]
    with mpl.rc_context(rc_params()):
        # Room for the names, which would touch among the points.
        n_rows = -(-len(names) // (2 if width < 4 else 4))
        figure = Figure(figsize=(width, 0.75 * min(width, 4) + 0.16 * n_rows))
        ax = figure.subplots()
        for name in names:
            color = styles[name].color
            ax.hlines(y["mean"][name], x["min"][name], x["max"][name], color=color, lw=0.9)
            ax.vlines(x["mean"][name], y["min"][name], y["max"][name], color=color, lw=0.9)
            at = x["mean"][name], y["mean"][name]
            line = {"ls": "none", "label": labels[name], "clip_on": False, "zorder": 3}
            ax.plot(*at, **styles[name].line(), **line)
        ax.set(xscale="log", yscale="log", xlabel="EECE, squared probability", ylabel="ECE")
        plain_ticks(ax.xaxis)
        plain_ticks(ax.yaxis)
        figure.legend(loc="outside lower center", ncols=2 if width < 4 else 4, handlelength=1)
    return figure
