"""The map of the two questions: is the mean right, and is the uncertainty of the right size?"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from epistemic_calibration.report._metrics import metric_label
from epistemic_calibration.report._names import drawable, drawable_labels
from epistemic_calibration.report.figures._axes import GREY, Methods
from epistemic_calibration.report.figures._labels import Points, name_points
from epistemic_calibration.report.figures._maps import LogMargin, draw_point
from epistemic_calibration.report.style import COLUMN_WIDTH, method_styles, rc_params
from epistemic_calibration.report.tables._selection import all_tasks_scores, ordered_methods

# A whisker without end is drawn to this many times the largest share that is finite.
_BEYOND = 3.0


def draw(
    scores: pd.DataFrame,
    dataset: str,
    methods: Methods,
    *,
    x_metric: str = "tece_corrected",
    width: float = COLUMN_WIDTH,
) -> Figure:
    """Draw corrected TECE across and the share of the error that is reported up, on log axes.

    A method whose mean and uncertainty can both be trusted stands left, on the line at 1; below
    the line it is too sure of itself, above too cautious. Points are means over tasks, whiskers
    confidence intervals. Where there is one label per image, the share is known between bounds:
    a bar, with the method's marker in its middle.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    x_metric : str
    width : float
        In inches.

    Raises
    ------
    ValueError
        If no method has both.

    Examples
    --------
    >>> import pandas as pd
    >>> values = {
    ...     f"{name}{end}": value
    ...     for name, value in (("tece_corrected", 0.01), ("reported_share", 0.5))
    ...     for end in ("", "_low", "_high")
    ... }
    >>> scores = pd.DataFrame({"metric": values.keys(), "value": values.values()}).assign(
    ...     dataset="pets", seed=0, method="eknn", scope="all_tasks", task=None
    ... )
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> draw(scores, "pets", methods).axes[0].get_xlabel()
    'Corrected TECE'
    """
    together = all_tasks_scores(scores, dataset).reindex(ordered_methods(methods))
    bounded = "reported_share" not in together
    needed = [x_metric, "reported_share_at_least" if bounded else "reported_share"]
    if not set(needed) <= set(together) or not together[needed].notna().all(axis=1).any():
        raise ValueError(f"no method of dataset={dataset!r} has both {needed[0]} and {needed[1]}")
    x = _spread(together, x_metric, ("low", "high"))
    y = _shares(together, bounded)
    names = [name for name in together.index if np.isfinite([*x.loc[name], *y.loc[name]]).all()]
    x, y = x.loc[names], y.loc[names]
    x_scale, y_scale = LogMargin(x), LogMargin(y, smallest=1e-3, include=1.0)
    styles = method_styles(methods)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.98 * width))
        ax = figure.subplots()
        x_scale.apply(ax, "x")
        y_scale.apply(ax, "y")
        ax.axhline(1, color=GREY, lw=1, ls="--", zorder=1)
        ax.set_xlabel(metric_label(x_metric))
        ax.set_ylabel(metric_label("reported_share"))
        markers = [
            draw_point(ax, x.loc[method], y.loc[method], x_scale, y_scale, styles[method])
            for method in names
        ]
        for side, word in ((1.06, "too cautious"), (1 / 1.06, "too sure of itself")):
            ax.text(
                0.01,
                side,
                word,
                transform=ax.get_yaxis_transform(),
                fontsize=7,
                color=GREY,
                va="bottom" if side > 1 else "top",
            )
        what = "bars hold the share" if bounded else "whiskers: 95 % intervals"
        figure.suptitle(f"{drawable(dataset)}: means over tasks; {what}", fontsize=8)
        places = [(x_scale.place(x.loc[n]), y_scale.place(y.loc[n])) for n in names]
        points = Points(ax, names, places, markers)
        name_points(figure, [points], drawable_labels(methods), styles)
    return figure


def _spread(together: pd.DataFrame, metric: str, ends: tuple[str, str]) -> pd.DataFrame:
    low, high = (together[f"{metric}_{end}"] for end in ends)
    return pd.DataFrame({"mean": together[metric], "low": low, "high": high})


def _shares(together: pd.DataFrame, bounded: bool) -> pd.DataFrame:
    if bounded:
        low, high = (together[f"reported_share_at_{end}"] for end in ("least", "most"))
        shares = pd.DataFrame({"mean": np.nan, "low": low, "high": high})
    else:
        shares = _spread(together, "reported_share", ("low", "high"))
    finite = shares.to_numpy()[np.isfinite(shares.to_numpy())]
    top = _BEYOND * max(1.0, finite.max(initial=0))
    shares["high"] = shares["high"].replace(np.inf, top)
    if bounded:
        shares["mean"] = np.sqrt(shares["low"].clip(lower=1e-6) * shares["high"])
    return shares
