"""What EECE is made of, a row per method."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from epistemic_calibration.report._names import drawable_labels
from epistemic_calibration.report.figures._axes import BLUE, GREY, INK, from_zero, ranked
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.style import FULL_WIDTH, rc_params

CAPTION = (
    "What EECE = Σ w |g² − W| is made of: g², the squared miss of the mean in the bins (dot), of "
    "which the noise of the labels alone would make as much as the cross; W, the scatter of the "
    "hypotheses within bins, which involves no labels (square); upright: EECE. Means over tasks, "
    "in squared units of probability."
)
_PARTS = ("eece", "eece_calibration", "eece_dispersion")


def draw(results: DatasetResults, *, width: float = FULL_WIDTH) -> Figure:
    """Draw miscalibration Σ w g² and scatter Σ w W with EECE, in the order of all figures.

    Raises
    ------
    ValueError
        If there are no scores of the parts.
    """
    chosen = results.of_tasks
    means = chosen.pivot_table(index="method", columns="metric", values="value")
    if not set(_PARTS) <= set(means):
        raise ValueError(f"scores must have the metrics {list(_PARTS)}; has {list(means)}")
    order, labels = ranked(results), drawable_labels(results.methods)
    means = means.reindex(order)
    rows = -np.arange(len(order))
    marks = [
        ("eece_calibration", "o", {"color": BLUE, "ms": 4.5}, "g²: miss of the mean"),
        ("eece_noise_floor", "x", {"color": INK, "ms": 4}, "g² by label noise alone"),
        ("eece_dispersion", "s", {"mfc": "white", "mec": GREY, "ms": 4.5}, "W: scatter"),
        ("eece", "|", {"color": INK, "ms": 9, "mew": 1.4}, "EECE"),
    ]
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.85 + 0.19 * len(order)))
        ax = figure.subplots()
        ax.hlines(rows, means["eece_calibration"], means["eece_dispersion"], color=GREY, lw=0.7)
        for name, marker, style, label in marks:
            if name in means:
                at = {"ls": "none", "clip_on": False, "label": label}
                ax.plot(means[name], rows, marker=marker, **style, **at)
        from_zero(ax, means.filter([name for name, *_ in marks]), least=1e-3)
        ax.set_yticks(rows, [labels[name] for name in order])
        ax.set_ylim(-len(order) + 0.4, 0.6)
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False, axis="y")
        ax.set_xlabel("EECE and its parts, squared probability")
        figure.legend(loc="outside upper center", ncols=4 if width > 4 else 2, handletextpad=0.4)
    return figure
