"""The figure of a `ClassEvaluation`: the predicted class, each class, and the uncertainty."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration._evaluation_plot import (
    COLOR,
    draw_reliability,
    draw_size,
    figure_of,
    n_quantiles,
    reliability,
)
from epistemic_calibration.metrics._label_counts import label_moments
from epistemic_calibration.metrics.error_curve import (
    Asked,
    asked_of_uncertainty,
    curve,
    halves_of_uncertainty,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from epistemic_calibration._class_evaluation import ClassEvaluation, ClassInputs
    from epistemic_calibration.metrics import SecondOrderCurve

#: Of more classes, those with the largest errors are shown.
_MAX_CLASSES = 20


def draw(e: ClassEvaluation, inputs: ClassInputs, path: str | Path | None) -> Figure:
    """Draw the three panels."""
    sample = inputs.sample

    def panels(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        predicted = np.take_along_axis(sample.mean, sample.top[:, None], axis=1)[:, 0]
        found = reliability(
            (sample.y == sample.top).astype(float),
            predicted,
            n_quantiles(e.n_samples),
            e.confidence_level,
            inputs.groups,
        )
        labels = {"xlabel": "Its probability Δ", "ylabel": "Share that is right"}
        draw_reliability(left, found, title="The predicted class", **labels)
        _classes(middle, e)
        sizes = None
        if e.reported_error is not None and e.n_samples > 1:
            sizes = size_curve(e, inputs)
        draw_size(right, sizes, seen=e.second_order is not None, title="Right size?")
        right.locator_params(axis="x", nbins=3)

    return figure_of(panels, path, height=0.4)


def _classes(axes: Axes, e: ClassEvaluation) -> None:
    from epistemic_calibration.report._names import drawable

    axes.set(title="Each class", xlabel="Corrected TECE, in points")
    if e.classwise is None:
        axes.text(0.5, 0.5, "too few inputs", ha="center", transform=axes.transAxes)
        return
    errors = e.classwise.classes
    order = np.argsort([error.estimate for error in errors], kind="stable")[-_MAX_CLASSES:]
    value, low, high = (
        100 * np.sqrt(np.maximum([getattr(errors[c], name) for c in order], 0))
        for name in ("estimate", "ci_low", "ci_high")
    )
    place = np.arange(len(order))
    ends = [np.maximum(value - low, 0), np.maximum(high - value, 0)]
    axes.errorbar(value, place, xerr=ends, fmt="o", color=COLOR, elinewidth=1)
    axes.set_yticks(place, [drawable(e.class_names[c][:12]) for c in order])
    axes.set_xlim(left=0)


def size_curve(e: ClassEvaluation, inputs: ClassInputs) -> SecondOrderCurve:
    """Return the error of all classes, or what bounds it, in quantiles of their EU."""
    sample, counts = inputs.sample, inputs.counts
    kept, index = np.arange(e.n_samples), np.arange(e.n_samples)
    asked = []
    for c in range(sample.n_classes):
        rows = sample.hypotheses[:, :, c]
        if e.second_order is not None:
            first, second, is_kept = label_moments(counts[:, c], counts.sum(axis=1))
            kept = np.flatnonzero(is_kept)
            asked.append(asked_of_uncertainty(first, second, rows[kept], None, e.exchangeable))
        else:
            key, compared = halves_of_uncertainty(rows, exchangeable=e.exchangeable)
            error = ((sample.y == c) - sample.mean[:, c]) ** 2
            asked.append(Asked(key, error, compared, index))
    groups = index if inputs.groups is None else inputs.groups
    return curve(asked, groups[kept], n_quantiles(len(kept)), e.confidence_level)
