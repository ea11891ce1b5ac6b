"""How the estimates of a data set change with the numbers of bins and hypotheses."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from epistemic_calibration.report._metrics import metric_label
from epistemic_calibration.report._names import drawable, drawable_labels
from epistemic_calibration.report.results import ordered_methods
from epistemic_calibration.report.style import FULL_WIDTH, method_styles, rc_params

# Bands of more methods hide each other.
_METHODS_WITH_BANDS = 6

_VARIABLES = {"n_bins": "Number of bins", "n_hypotheses": "Number of hypotheses"}


def sensitivity(
    table: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    width: float = FULL_WIDTH,
) -> Figure:
    """Draw how the estimates change with the number of bins and of hypotheses.

    Lines are means over tasks (and whatever else is repeated). Of up to six methods, bands reach
    from the smallest to the largest value; more of them hide each other. The value axes are
    linear below 0.001.

    Parameters
    ----------
    table : DataFrame
        Columns dataset, method, task, axis (such as ``n_bins``, ``n_hypotheses``),
        axis_value, metric (such as ``eece``, ``tece_corrected``), value.
    dataset : str
    methods : mapping
        Labels, as in `dataset_scores`.
    width : float
        In inches.

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
        known = sorted(table["dataset"].unique())
        raise ValueError(f"dataset={dataset!r} has no finite value; the table has {known}")
    styles = method_styles(methods)
    shown = [name for name in ordered_methods(methods) if name in set(chosen["method"])]
    labels, with_bands = drawable_labels(methods), len(shown) <= _METHODS_WITH_BANDS
    metrics, variables = list(chosen["metric"].unique()), list(chosen["axis"].unique())
    n_columns = max(2, int(width / 1.5))
    legend_rows = -(-len(shown) // n_columns)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(width, 0.6 + 1.5 * len(metrics) + 0.17 * legend_rows))
        axes = figure.subplots(
            len(metrics), len(variables), sharex="col", sharey="row", squeeze=False
        )
        for row in axes:
            row[0].set_yscale("symlog", linthresh=1e-3, linscale=0.9)
            row[0].yaxis.set_minor_locator(mpl.ticker.NullLocator())
        for (metric, variable), panel in chosen.groupby(["metric", "axis"], sort=False):
            ax = axes[metrics.index(metric), variables.index(variable)]
            for method in shown:
                lines = panel[panel["method"] == method].groupby("axis_value")["value"]
                mean = lines.mean()
                ax.plot(mean.index, mean, **styles[method].line() | {"ms": 3.5})
                if with_bands:
                    ends, color = (lines.min(), lines.max()), styles[method].color
                    ax.fill_between(mean.index, *ends, color=color, alpha=0.12, lw=0)
        for i, metric in enumerate(metrics):
            axes[i, 0].set_ylabel(metric_label(metric))
            for ax in axes[i]:
                ax.axhline(0, color="#222222", lw=0.6)
            if (chosen.loc[chosen["metric"] == metric, "value"] >= 0).all():
                axes[i, 0].set_ylim(bottom=0)
        for j, variable in enumerate(variables):
            axes[-1, j].set_xlabel(_VARIABLES.get(variable, variable))
            axes[-1, j].set_xscale("log")
            values = sorted(chosen.loc[chosen["axis"] == variable, "axis_value"].unique())
            axes[-1, j].set_xticks(values, [f"{value:g}" for value in values])
            axes[-1, j].set_xticks([], minor=True)
        figure.suptitle(
            f"{drawable(dataset)}: mean{' and range' if with_bands else ''} over tasks", fontsize=8
        )
        figure.legend(
            handles=[
                Line2D([], [], **styles[name].line() | {"ms": 4}, label=labels[name])
                for name in shown
            ],
            loc="outside lower center",
            ncols=n_columns,
        )
    return figure
