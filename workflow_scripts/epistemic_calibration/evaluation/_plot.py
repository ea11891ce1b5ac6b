"""The figure of an `Evaluation`: one panel for each question."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.metrics import SecondOrderCurve
from epistemic_calibration.metrics._interval import wilson_interval
from epistemic_calibration.metrics._label_counts import label_moments
from epistemic_calibration.metrics.binning import quantile_bins
from epistemic_calibration.metrics.error_curve import (
    Asked,
    asked_of_uncertainty,
    curve,
    halves_of_uncertainty,
)
from epistemic_calibration.metrics.ranking import errors_and_doubt, risk_coverage_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from epistemic_calibration.evaluation import Evaluation
    from epistemic_calibration.evaluation._estimates import Evaluated

COLOR, SECOND_COLOR = "#332288", "#117733"
#: A curve has no more points than a figure shows.
_MAX_POINTS = 1000


def draw(e: Evaluation, inputs: Evaluated, path: str | Path | None) -> Figure:
    """Draw the panels; without a path, into a figure that notebooks and windows show."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from epistemic_calibration.files import atomic_path
    from epistemic_calibration.report.style import FULL_WIDTH, rc_params

    with mpl.rc_context(rc_params()):
        if path is None:
            import matplotlib.pyplot as plt

        new = Figure if path is not None else plt.figure
        figure = new(figsize=(FULL_WIDTH, 0.4 * FULL_WIDTH))
        left, middle, right = figure.subplots(1, 3)
        _draw_reliability(left, e, inputs)
        told = e.reported_error is not None and e.n_samples > 1
        _draw_size(middle, size_curve(e, inputs) if told else None, seen=e.second_order is not None)
        _draw_kept(right, e, inputs)
        if path is not None:
            with atomic_path(path) as temporary:
                figure.savefig(temporary)
    return figure


def _draw_reliability(axes: Axes, e: Evaluation, inputs: Evaluated) -> None:
    sample = inputs.sample
    if e.n_classes > 2:
        y, mean = (sample.y == sample.top).astype(float), sample.mean.max(axis=1)
        labels = {"xlabel": "Probability of the predicted class", "ylabel": "Share that is right"}
    else:
        y, mean = sample.y, sample.mean
        labels = {"xlabel": "Mean of the hypotheses Δ", "ylabel": "Frequency of label 1"}
    predicted, frequency, low, high = reliability(
        y, mean, n_quantiles(len(y)), e.confidence_level, inputs.groups
    )
    axes.plot([0, 1], [0, 1], color="#999999", lw=0.8)
    axes.errorbar(
        predicted,
        frequency,
        yerr=[frequency - low, high - frequency],
        fmt="o",
        color=COLOR,
        elinewidth=1,
        clip_on=False,
    )
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title="Probabilities right?", **labels)


def _draw_size(axes: Axes, found: SecondOrderCurve | None, *, seen: bool) -> None:
    """Draw the error, or the range that it is known to lie in, against what is reported."""
    axes.set(
        title="Right size?",
        xlabel="Error that is reported, in points",
        ylabel=f"{'Error at one input' if seen else 'Range of the error'}, in points",
    )
    if found is None:
        axes.text(0.5, 0.5, "no uncertainty to judge", ha="center", transform=axes.transAxes)
        return
    said, error, low, high = (
        100 * np.sqrt(np.maximum(np.nan_to_num(values, nan=0.0, posinf=0.0), 0))
        for values in (found.uncertainty, found.error, found.ci_low, found.ci_high)
    )
    top = 1.05 * max(float(np.max([said, error, high])), 0.1)
    axes.plot([0, top], [0, top], color="#999999", lw=0.8)
    if seen:
        ends = [np.maximum(error - low, 0), np.maximum(high - error, 0)]
        axes.errorbar(said, error, yerr=ends, fmt="o", color=COLOR, elinewidth=1)
    else:
        axes.vlines(said, low, high, color=COLOR, lw=2)
    axes.set(xlim=(0, top), ylim=(0, top), aspect="equal")


def _draw_kept(axes: Axes, e: Evaluation, inputs: Evaluated) -> None:
    axes.set(
        title="Knows where it errs?",
        xlabel="Evaluated kept, in %",
        ylabel="Errors among them, in %",
    )
    axes.set_xlim(0, 100)
    axes.set_box_aspect(1)
    if e.ranking is None:
        axes.text(0.5, 0.5, "no uncertainty to judge", ha="center", transform=axes.transAxes)
        return
    wrong, doubt = errors_and_doubt(inputs.sample, inputs.prediction)
    orders = (
        ("by EU", inputs.ranking_key, COLOR, "-"),
        ("by 1 − max p", doubt, SECOND_COLOR, "--"),
    )
    for label, key, color, style in orders:
        coverage, kept = risk_coverage_curve(wrong, key)
        every = np.unique(np.linspace(0, len(kept) - 1, _MAX_POINTS).astype(int))
        axes.plot(100 * coverage[every], 100 * kept[every], style, color=color, label=label)
    axes.set_ylim(0, 100 * max(1.5 * float(wrong.mean()), 1e-3))
    axes.legend(frameon=False, loc="upper left")


def reliability(
    y: np.ndarray,
    mean: np.ndarray,
    n_bins: int,
    level: float,
    groups: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mean prediction, label frequency and Wilson's interval in quantiles of the mean.

    With groups, the interval is of as many labels as there are groups in the quantile.
    """
    bins = np.unique(quantile_bins(mean, n_bins), return_inverse=True)[1]
    n = np.bincount(bins)
    predicted, frequency = (np.bincount(bins, weights=v) / n for v in (mean, y))
    if groups is not None:
        n = np.bincount(np.unique(np.stack([bins, groups]), axis=1)[0])
    low, high = wilson_interval(frequency, n, level)
    return predicted, frequency, low, high


def size_curve(e: Evaluation, inputs: Evaluated) -> SecondOrderCurve:
    """Return the error in quantiles of EU, of all classes together.

    With one label per input ``error`` is the Brier score, and the error lies from ``ci_low``, what
    the mean residual of the inputs of a quantile shows, to ``ci_high``.
    """
    tasks, groups = inputs.tasks(), inputs.units
    if e.second_order is not None:
        n_labels = inputs.counts.sum(axis=1)
        kept, asked = np.flatnonzero(n_labels >= 2), []
        for task, positive in zip(tasks, inputs.counts.T[-len(tasks) :], strict=True):
            first, second, _ = label_moments(positive, n_labels)
            reported = None if task.reported is None else task.reported[kept]
            rows = task.hypotheses[kept]
            asked.append(asked_of_uncertainty(first, second, rows, reported, e.exchangeable))
        return curve(asked, groups[kept], n_quantiles(len(kept)), e.confidence_level)
    index, squares, residuals = np.arange(e.n_samples), [], []
    for task in tasks:
        key, compared = halves_of_uncertainty(
            task.hypotheses, epistemic_uncertainty=task.reported, exchangeable=e.exchangeable
        )
        squares.append(Asked(key, (task.y - task.mean) ** 2, compared, index))
        residuals.append(Asked(key, task.y - task.mean, compared, index))
    bins = n_quantiles(e.n_samples)
    upper, mean = (curve(a, groups, bins, e.confidence_level) for a in (squares, residuals))
    # Residuals may be negative; their intervals are symmetric.
    half = mean.ci_high - np.maximum(mean.error, 0)
    seen = np.maximum(np.abs(mean.error) - half, 0) ** 2
    return dataclasses.replace(upper, ci_low=np.minimum(np.nan_to_num(seen), upper.error))


def n_quantiles(n_samples: int) -> int:
    return min(10, max(1, n_samples // 20))
