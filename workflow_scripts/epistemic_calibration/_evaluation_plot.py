"""The figure of an `Evaluation`: is the mean right, and is the uncertainty of the right size?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.metrics import SecondOrderCurve, second_order_curve
from epistemic_calibration.metrics.binning import quantile_bins
from epistemic_calibration.metrics.error_curve import Asked, curve, halves_of_uncertainty

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from epistemic_calibration.evaluation import Evaluation, _Inputs

COLOR = "#332288"


def draw(e: Evaluation, inputs: _Inputs, path: str | Path | None) -> Figure:
    """Draw both panels; without a path, into a figure that notebooks and windows show."""

    def panels(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        y, mean = inputs.sample.y, inputs.sample.mean
        draw_reliability(
            left, reliability(y, mean, n_quantiles(len(y)), e.confidence_level, inputs.groups)
        )
        curve = None
        if e.reported_error is not None and e.n_samples > 1:
            curve = size_curve(e, inputs)
        draw_size(right, curve, seen=e.second_order is not None)

    return figure_of(panels, path, height=0.48)


def figure_of(
    panels: Callable[[Figure], None], path: str | Path | None, *, height: float
) -> Figure:
    """Return a figure of the full width, ``height`` times as high, and save it if there is a path.

    Without one, it is a figure that notebooks and windows show.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from epistemic_calibration.files import atomic_path
    from epistemic_calibration.report.style import FULL_WIDTH, rc_params

    size = {"figsize": (FULL_WIDTH, height * FULL_WIDTH)}
    with mpl.rc_context(rc_params()):
        if path is None:
            import matplotlib.pyplot as plt

            figure = plt.figure(**size)
        else:
            figure = Figure(**size)
        panels(figure)
        if path is not None:
            with atomic_path(path) as temporary:
                figure.savefig(temporary)
    return figure


def draw_reliability(
    axes: Axes,
    found: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    *,
    title: str = "Is the mean right?",
    xlabel: str = "Mean of the hypotheses Δ",
    ylabel: str = "Frequency of label 1",
) -> None:
    """Draw what `reliability` returns."""
    predicted, frequency, low, high = found
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
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1),
        aspect="equal",
        title=title,
        xlabel=xlabel,
        ylabel=ylabel,
    )


def draw_size(
    axes: Axes,
    found: SecondOrderCurve | None,
    *,
    seen: bool,
    title: str = "Is the uncertainty of the right size?",
) -> None:
    """Draw the error, or its upper bound where it is not seen, against what is reported."""
    axes.set(
        title=title,
        xlabel="Squared error that is reported",
        ylabel="Squared error of the mean" if seen else "Squared error, at most (Brier score)",
    )
    axes.locator_params(axis="x", nbins=5)
    if found is None:
        axes.text(0.5, 0.5, "no uncertainty to judge", ha="center", transform=axes.transAxes)
        return
    top = 1.05 * max(float(found.ci_high[np.isfinite(found.ci_high)].max(initial=0.0)), 1e-6)
    right = 1.1 * max(float(found.uncertainty.max()), 1e-6)
    axes.plot([0, max(top, right)], [0, max(top, right)], color="#999999", lw=0.8)
    low, high = (np.nan_to_num(ends, nan=0.0) for ends in (found.ci_low, found.ci_high))
    error = np.maximum(found.error, 0)
    axes.errorbar(
        found.uncertainty,
        error,
        yerr=[np.maximum(error - low, 0), np.maximum(high - error, 0)],
        fmt="o" if seen else "v",
        color=COLOR,
        elinewidth=1,
    )
    axes.set(xlim=(0, right), ylim=(0, max(top, 1.05 * float(error.max()))))


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


def wilson_interval(
    frequency: np.ndarray | float, n: np.ndarray | float, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's interval of frequencies among n, which need not be whole.

    Examples
    --------
    >>> low, high = wilson_interval(0.5, 100, 0.95)
    >>> round(float(low), 3), round(float(high), 3)
    (0.404, 0.596)
    """
    from scipy.stats import norm

    z2 = norm.ppf(0.5 + level / 2) ** 2
    centre = (frequency + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (frequency * (1 - frequency) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return np.minimum(centre - half, frequency), np.maximum(centre + half, frequency)


def size_curve(e: Evaluation, inputs: _Inputs) -> SecondOrderCurve:
    """Return the error, or the Brier score that bounds it, in quantiles of EU."""
    sample, options = inputs.sample, {"exchangeable": e.exchangeable}
    options["epistemic_uncertainty"] = sample.reported
    if e.second_order is not None:
        return second_order_curve(
            inputs.n_positive,
            inputs.n_labels,
            sample.hypotheses,
            groups=inputs.groups,
            n_bins=n_quantiles(e.second_order.n_samples),
            confidence_level=e.confidence_level,
            **options,
        )
    chosen_by, compared = halves_of_uncertainty(sample.hypotheses, **options)
    index = np.arange(len(sample))
    asked = Asked(chosen_by, (sample.y - sample.mean) ** 2, compared, index)
    groups = index if inputs.groups is None else inputs.groups
    return curve([asked], groups, n_quantiles(len(sample)), e.confidence_level)


def n_quantiles(n_samples: int) -> int:
    return min(10, max(1, n_samples // 20))
