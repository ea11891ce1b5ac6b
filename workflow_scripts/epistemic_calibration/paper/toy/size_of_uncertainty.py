"""Is the uncertainty of the right size? What the methods report of their error (ours)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from epistemic_calibration.paper.toy._data import ExperimentData
from epistemic_calibration.paper.toy._mixture import true_probability
from epistemic_calibration.paper.toy._scoring import tece, tidy
from epistemic_calibration.paper.toy.base import Experiment, TestSetSize, TrainingSetSize
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from epistemic_calibration.metrics import SecondOrderError
    from epistemic_calibration.paper.toy_drawing import Canvas

# Squared errors and variances below this are rounding: p*² − 2p*Δ + Δ² has no more digits.
_ROUNDING = 1e-15

# Below this the axis of the TECE ends: between smaller errors there is nothing to choose.
_LEAST_TECE = 1e-3

_MOST_TICKS = 6

# What is drawn of an estimate.
_INTERVAL = ("reported_share", "reported_share_low", "reported_share_high")


def run(
    method: str,
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    n_labels: Annotated[
        tuple[Annotated[int, {"ge": 2}], ...],
        {"min_length": 1, "description": "numbers of labels drawn for each test point"},
    ] = (2, 10),
    n_train: TrainingSetSize = 50,
    n_test: TestSetSize = 10_000,
) -> pd.DataFrame:
    """Return the error of a method and how much of it is reported, from p* and from labels.

    Labels are drawn with p* = P(Y = 1 | x), the same ones for all methods.

    Returns
    -------
    DataFrame with columns method, seed, metric, value, n_labels, n_hypotheses, n_train, n_test
        ``n_labels`` is 0 where p* itself is used. The metrics are attributes of
        `epistemic_calibration.metrics.SecondOrderError`: reducible_error, reported_share
        (``share``), second_order_gap (``gap``), size_error, slope and calibration_error. From
        labels there are also the limits of 95 % intervals, reducible_error_low and _high and
        reported_share_low and _high; from p* also tece, as in `eece_per_method`.

    Notes
    -----
    Of an error of 0 that is reported as more, the share is infinite; reported as 0, as by the
    oracle, it is NaN. So it is where an estimate of the error is not above 0.
    """
    from epistemic_calibration import metrics

    data = ExperimentData("size_of_uncertainty", seed, n_train, n_test)
    predictions = data.fit_predict(method, implementation, parameters)
    p = true_probability(data.X_test)
    options = {
        "epistemic_uncertainty": predictions.epistemic_uncertainty,
        "exchangeable": predictions.exchangeable,
        "random_state": derive_seed(*data.key, "bins"),
    }
    exact = metrics.true_second_order_error(p, predictions.hypotheses, **options)
    values = {0: {"tece": tece(data, predictions), **_values(exact)}}
    for k in n_labels:
        rng = np.random.default_rng(derive_seed(*data.key, "labels", k))
        found = metrics.second_order_error(rng.binomial(k, p), k, predictions.hypotheses, **options)
        values[k] = {**_values(found), **_limits(found)}
    n_hypotheses = predictions.hypotheses.shape[1]
    rows = [
        {"metric": metric, "value": float(value), "n_labels": k, "n_hypotheses": n_hypotheses}
        for k, of_labels in values.items()
        for metric, value in of_labels.items()
    ]
    return tidy(rows, method=method, seed=seed, n_train=n_train, n_test=n_test)


def _values(found: SecondOrderError) -> dict[str, float]:
    error, share = found.reducible.estimate, found.share.estimate
    reports = found.uncertainty.estimate > _ROUNDING
    if abs(error) <= _ROUNDING:
        error, share = 0.0, math.inf if reports else math.nan
    elif error > 0 and not reports:
        share = 0.0
    return {
        "reducible_error": error,
        "reported_share": share,
        "second_order_gap": found.gap.estimate,
        "size_error": found.size_error.estimate,
        "slope": found.slope.estimate,
        "calibration_error": found.calibration_error.estimate,
    }


def _limits(found: SecondOrderError) -> dict[str, float]:
    low, high = found.share.ci_low, found.share.ci_high
    if found.uncertainty.estimate <= _ROUNDING:
        low, high = 0.0, high if math.isinf(high) else 0.0
    return {
        "reducible_error_low": found.reducible.ci_low,
        "reducible_error_high": found.reducible.ci_high,
        "reported_share_low": low,
        "reported_share_high": high,
    }


def plot(table: pd.DataFrame, canvas: Canvas) -> Figure:
    """Draw the share of its error that each method reports, alone and against its TECE.

    Large markers are medians over seeds, dots single seeds, thin lines their range; bars reach
    from the median lower limit of the estimates to the median upper one. Shares of 0 and
    infinity, and a TECE below 0.001, are on the edges.
    """
    canvas.require(table, "method", "seed", "metric", "value", "n_labels")
    n_labels = int(table.loc[table["n_labels"] > 0, "n_labels"].min())
    exact, estimated = (
        table[table["n_labels"] == k].set_index(["method", "seed", "metric"])["value"].unstack()
        for k in (0, n_labels)
    )
    # On axes of logarithms, what is 0 lies on the edge.
    edges = _edges([exact["reported_share"], *estimated[list(_INTERVAL)].T.values], 0.5, 2.0)
    errors = _edges([exact["tece"].clip(lower=_LEAST_TECE)], 0.01, 0.01)
    truth = exact.groupby("method").median()
    estimates = estimated.groupby("method")[list(_INTERVAL)].median().clip(*edges)
    order = truth["reported_share"].sort_values(kind="stable").index
    heights = 0.26 * len(order), 1.5
    figure, axes = canvas.axes(1.2 + sum(heights), 2, 1, height_ratios=heights)
    shares, plane = axes[:, 0]
    for row, (method, style) in enumerate(canvas.styles(order).items()):
        median = truth.loc[method, "reported_share"]
        if math.isnan(median):
            _say(shares, (1, row), "no error, and none reported", canvas)
            continue
        at_edge = {0: ("0", 8), math.inf: ("∞", -8)}
        if median in at_edge:
            text, offset = at_edge[median]
            _say(shares, (np.clip(median, *edges), row - 0.17), text, canvas, offset)
        share = exact.loc[method, "reported_share"].clip(*edges)
        tece = exact.loc[method, "tece"].clip(*errors)
        marker = {"marker": style.marker, "s": 26, "zorder": 3, "clip_on": False}
        filled = marker | {"color": style.color, "edgecolor": canvas.ink, "lw": 0.5}
        dots = {"s": 4, "color": style.color, "lw": 0, "alpha": 0.6, "clip_on": False}
        shares.plot([share.min(), share.max()], [row - 0.17] * 2, color=style.color, lw=0.6)
        shares.scatter(share, np.full(len(share), row - 0.17), **dots)
        shares.scatter(share.median(), row - 0.17, **filled)
        middle, low, high = estimates.loc[method]
        shares.plot([low, high], [row + 0.2] * 2, color=style.color, lw=1.4)
        shares.scatter(middle, row + 0.2, **marker, facecolor="white", edgecolor=style.color)
        plane.scatter(tece, share, **dots)
        plane.scatter(tece.median(), share.median(), **filled)
    shares.set_yticks(range(len(order)), [canvas.label(method) for method in order])
    shares.set_ylim(len(order) - 0.5, -0.6)
    shares.set(xscale="log", xlim=edges)
    plane.set(xscale="log", yscale="log", xlim=errors, ylim=edges)
    for axis, ends in ((shares.xaxis, edges), (plane.yaxis, edges), (plane.xaxis, errors)):
        _plain_numbers(axis, *ends)
    shares.axvline(1, color=canvas.ink, lw=0.8, zorder=1)
    plane.axhline(1, color=canvas.ink, lw=0.8, zorder=1)
    shares.set_xlabel(
        "Share of the error that is reported\n(too sure of itself < 1 < too cautious)"
    )
    plane.set(xlabel=f"TECE (median and {canvas.seeds(table)})", ylabel="Share reported")
    for label, face in (("from p*", canvas.faint), (f"from {n_labels} labels, 95 %", "white")):
        shares.scatter([], [], s=20, facecolor=face, edgecolor=canvas.faint, label=label)
    figure.legend(loc="outside upper right", ncols=2, handletextpad=0.2, columnspacing=1)
    return figure


def _edges(parts: Sequence[np.ndarray], low: float, high: float) -> tuple[float, float]:
    """Return ends of an axis from ``low`` to ``high``, or beyond where there are values."""
    values = np.concatenate(parts)
    values = values[np.isfinite(values) & (values > _ROUNDING)]
    return 0.8 * values.min(initial=low), 1.25 * values.max(initial=high)


def _say(
    ax: Axes, point: tuple[float, float], text: str, canvas: Canvas, offset: float = 0
) -> None:
    ax.annotate(
        text,
        point,
        xytext=(offset, 0),
        textcoords="offset points",
        color=canvas.faint,
        ha="center",
        va="center",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )


def _plain_numbers(axis: Axis, low: float, high: float) -> None:
    """Put as many round numbers on an axis of logarithms as there is room for."""
    from matplotlib.ticker import NullLocator

    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = [digit * 10.0**decade for decade in decades for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= _MOST_TICKS:
            break
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_minor_locator(NullLocator())


EXPERIMENT = Experiment(run, plot, controls=("oracle",))
