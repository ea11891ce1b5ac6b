"""The calibration map beside the same map with the corrected TECE in place of EECE."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from epistemic_calibration.report.figures._axes import Methods
from epistemic_calibration.report.figures._maps import draw_maps
from epistemic_calibration.report.style import FULL_WIDTH


def draw(
    scores: pd.DataFrame,
    dataset: str,
    methods: Methods,
    *,
    x_metrics: Sequence[str] = ("eece", "tece_corrected"),
    y_metric: str = "ece",
    width: float = FULL_WIDTH,
) -> Figure:
    """Draw the calibration map for several metrics side by side, with shared axes.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    x_metrics : sequence of str
        One panel each.
    y_metric : str
    width : float
        In inches.

    Raises
    ------
    ValueError
        If no method has both the metric of a panel and ``y_metric``.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame(
    ...     [("ece", 0.25), ("eece", 0.125), ("tece_corrected", 0.0625)],
    ...     columns=["metric", "value"],
    ... ).assign(dataset="pets", seed=0, method="eknn", scope="task", task="cat")
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> [ax.get_xlabel() for ax in draw(scores, "pets", methods).axes]
    ['EECE', 'Corrected TECE']
    """
    return draw_maps(scores, dataset, methods, x_metrics, y_metric, width)
