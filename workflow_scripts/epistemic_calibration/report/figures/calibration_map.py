"""The calibration map of the paper: EECE against ECE, one point per method."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from epistemic_calibration.report.figures._axes import Methods
from epistemic_calibration.report.figures._maps import draw_maps
from epistemic_calibration.report.style import COLUMN_WIDTH


def draw(
    scores: pd.DataFrame,
    dataset: str,
    methods: Methods,
    *,
    x_metric: str = "eece",
    y_metric: str = "ece",
    width: float = COLUMN_WIDTH,
) -> Figure:
    """Draw one point per method on logarithmic axes, best bottom left (figure 4b of the paper).

    Points are means over tasks and seeds, whiskers reach from the smallest to the largest
    value. What is below 1e-5, negative or zero, has no place on the axes: such a point is
    hollow and stands in a grey margin, and such a whisker runs out of the axes. The blue
    band is what label noise alone makes of EECE, where ``scores`` has ``eece_noise_floor``.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    x_metric : str
        ``eece``, or ``tece_corrected`` for the estimate without the plug-in's bias.
    y_metric : str
    width : float
        In inches.

    Raises
    ------
    ValueError
        If no method has both metrics.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame(
    ...     [("cat", "ece", 0.25), ("cat", "eece", 0.125)], columns=["task", "metric", "value"]
    ... ).assign(dataset="pets", seed=0, method="eknn", scope="task")
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> figure = draw(scores, "pets", methods)
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
    ('EECE', 'ECE')
    """
    return draw_maps(scores, dataset, methods, [x_metric], y_metric, width)
