"""How the estimates of a data set change with the numbers of bins and hypotheses."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from epistemic_calibration.report._metrics import metric_label
from epistemic_calibration.report._names import drawable_labels
from epistemic_calibration.report.results import ordered_methods
from epistemic_calibration.report.style import FULL_WIDTH, method_styles, rc_params

_VARIABLES = {"n_bins": "Number of bins", "n_hypotheses": "Number of hypotheses"}


def sensitivity(
    table: pd.DataFrame, dataset: str, methods: Mapping[str, Mapping[str, str]]
) -> Figure:
    """Draw how the estimates change with the number of bins and of hypotheses, as task means.

    Parameters
    ----------
    table : DataFrame
        Columns dataset, method, task, axis (``n_bins``, ``n_hypotheses``), axis_value, metric
        (such as ``eece``, ``tece_corrected``), value. The value axes are linear below 0.001.
    dataset : str
    methods : mapping
        Labels, as of `DatasetResults`.

    Raises
    ------
    ValueError
        If the table has no finite value of ``dataset``.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"axis_value": [10, 100], "value": [0.25, 0.125]}).assign(
    ...     dataset="pets", method="eknn", task="cat", axis="n_bins", metric="eece"
    ... )
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> (ax,) = sensitivity(table, "pets", methods).axes
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('Number of bins', 'EECE')
    """
    chosen = table[(table["dataset"] == dataset) & np.isfinite(table["value"].astype(float))]
    if chosen.empty:
        raise ValueError(f"dataset={dataset!r} has no finite value")
    styles, labels = method_styles(methods), drawable_labels(methods)
    shown = [name for name in ordered_methods(methods) if name in set(chosen["method"])]
    metrics, variables = list(chosen["metric"].unique()), list(chosen["axis"].unique())
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(FULL_WIDTH, 0.6 + 1.5 * len(metrics) + 0.17 * len(shown) / 3))
        grid = {"sharex": "col", "sharey": "row", "squeeze": False}
        axes = figure.subplots(len(metrics), len(variables), **grid)
        for (metric, variable), panel in chosen.groupby(["metric", "axis"], sort=False):
            ax = axes[metrics.index(metric), variables.index(variable)]
            for name in shown:
                means = panel[panel["method"] == name].groupby("axis_value")["value"].mean()
                look = styles[name].line() | {"ms": 3.5, "label": labels[name]}
                ax.plot(means.index, means, **look)
            ax.axhline(0, color="#222222", lw=0.6)
            ax.set_yscale("symlog", linthresh=1e-3, linscale=0.9)
            ticks = sorted(panel["axis_value"].unique())
            ax.set(xscale="log", xlabel=_VARIABLES.get(variable, variable))
            ax.set_xticks(ticks, [f"{value:g}" for value in ticks])
            ax.set_xticks([], minor=True)
            ax.set_ylabel(metric_label(metric))
            ax.label_outer()
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3)
    return figure
