"""The size of the uncertainty of the law that the members of a method are drawn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from epistemic_calibration.metrics._means import Estimate, summary_line, t_quantile
from epistemic_calibration.metrics._members import Replicates
from epistemic_calibration.metrics.corrected import CorrectedError

Draws = Literal["functions", "inputs"]


@dataclass(frozen=True, repr=False)
class LawError:
    """What would be found with other members of the same law, in place of these.

    Members that are functions err together at all inputs, so that no number of inputs makes up
    for few members. The intervals allow for other inputs, labels *and members*, and hold for the
    law that these are drawn from; p* is still the one that made the labels.

    Attributes
    ----------
    gap, share, slope, size_error : Estimate
        As those of `SecondOrderError`. ``size_error`` is less what the members that happened
        to be drawn add to it, so that it is smaller than there.
    """

    gap: Estimate
    share: Estimate
    slope: Estimate
    size_error: Estimate

    def __repr__(self) -> str:
        parts = (f"{name} {summary_line(value)}" for name, value in vars(self).items())
        return f"LawError({', '.join(parts)})"


def check_draws(draws: str) -> Draws:
    """Return ``draws``, or raise ValueError."""
    if draws not in get_args(Draws):
        raise ValueError(f"draws must be one of {get_args(Draws)}, got {draws!r}")
    return draws


def law_error(
    gap: Estimate,
    share: Estimate,
    slope: Estimate,
    size: CorrectedError,
    tasks: Sequence[Replicates | None],
) -> LawError | None:
    """Return the estimates with intervals for the law, or None where a task has no replicates.

    A jackknife over members gives their part of the variance, which is added to that of inputs.
    """
    if any(task is None for task in tasks) or len({len(task.error) for task in tasks}) > 1:
        return None
    error, uncertainty, size_without = (
        np.mean([getattr(task, name) for task in tasks], axis=0)
        for name in ("error", "uncertainty", "size")
    )
    numerator, denominator = np.mean([task.slope for task in tasks], axis=0)
    level, n = gap.confidence_level, len(error)
    t = float(t_quantile(level, n))
    with np.errstate(divide="ignore", invalid="ignore"):
        log_share = np.log(uncertainty / np.where(error > 0, error, np.nan))
        slopes = numerator / np.where(denominator > 0, denominator, np.nan)

    if share.estimate > 0 and share.ci_low > 0:
        half = t * _jackknife(log_share)
        logs = [math.log(x) for x in (share.estimate, share.ci_low, share.ci_high)]
        low = math.exp(logs[0] - math.hypot(logs[0] - logs[1], half))
        exponent = logs[0] + math.hypot(logs[2] - logs[0], half)
        high = math.exp(exponent) if exponent < 700 else math.inf
        scale = math.hypot(share.standard_error, share.estimate * half / t)
        share = Estimate(share.estimate, scale, low, high, level)
    else:
        share = Estimate(share.estimate, share.standard_error, 0.0, math.inf, level)
    bias = (n - 1) * float(size_without.mean() - np.mean([task.size_of_all for task in tasks]))
    return LawError(
        gap=_around(gap, gap.estimate, t * _jackknife(error - uncertainty), -math.inf),
        share=share,
        slope=_around(slope, slope.estimate, t * _jackknife(slopes), -math.inf),
        size_error=_around(size, size.estimate - bias, t * _jackknife(size_without), 0.0),
    )


def _jackknife(without: np.ndarray) -> float:
    """Return the standard error that members make; inf where it is not known."""
    n = len(without)
    if not np.isfinite(without).all():
        return math.inf
    return math.sqrt((n - 1) / n * float(np.sum((without - without.mean()) ** 2)))


def _around(
    value: Estimate | CorrectedError, estimate: float, half: float, least: float
) -> Estimate:
    """Return an interval as wide as that of ``value`` and ``half`` together."""
    level = value.confidence_level
    centre = max(value.estimate, least)
    below = math.hypot(centre - value.ci_low, half)
    above = math.hypot(value.ci_high - centre, half)
    scale = math.hypot(value.standard_error, half / 2)
    if math.isnan(estimate):
        return Estimate(math.nan, scale, least, math.inf, level)
    return Estimate(
        estimate, scale, max(estimate - below, least), max(estimate, least) + above, level
    )
