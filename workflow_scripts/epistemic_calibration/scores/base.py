"""What the families of scores share: a metric's description, a row, and what is scored.

A family is one file of this folder. It has ``METRICS``, the descriptions of its metrics, and
``rows(inputs)``, which yields a `Row` for each of them; `scores` lists the families, and says
which have estimates of all tasks of a data set, or of all methods, together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from epistemic_calibration.metrics import (
    CorrectedError,
    Estimate,
    Sample,
    finite_draws_factor,
)

#: Ranges of metrics.
ANY, SHARE, POSITIVE, DIFFERENCE = (-math.inf, math.inf), (0, 1), (0, math.inf), (-1, 1)


@dataclass(frozen=True)
class Metric:
    """What a metric is called, and how it is read.

    Parameters
    ----------
    name : str
        In the column ``metric`` of the scores. That of a p-value begins with ``p_``; its test may
        draw labels, so that it is 1/(n_resamples + 1) at least.
    label : str
        In tables and figures. That of a p-value names the hypothesis tested.
    digits : int, default 4
        Decimals in tables.
    range : tuple of float
        Smallest and largest value that is possible.
    short_label : str, optional
        Label where space is scarce; by default the label.
    """

    name: str
    label: str
    digits: int = 4
    range: tuple[float, float] = ANY
    short_label: str = ""

    def __post_init__(self) -> None:
        if not self.short_label:
            object.__setattr__(self, "short_label", self.label)

    @property
    def is_p_value(self) -> bool:
        return self.name.startswith("p_")


def limits_of(metric: Metric, range: tuple[float, float] = ANY, what: str = "") -> list[Metric]:
    """Return the descriptions of both limits of the interval of a metric."""
    return [
        Metric(f"{metric.name}_{end}", f"{metric.label}, {side} limit{what}", metric.digits, range)
        for end, side in (("low", "lower"), ("high", "upper"))
    ]


class Row(NamedTuple):
    """A score, and the bins behind it if there are any; ``bin`` if it is of one of them."""

    metric: str
    value: float
    binning: str | None = None
    n_bins: int | None = None
    bin: int | None = None


def interval_rows(name: str, value: Estimate | CorrectedError, *bins: Any) -> Iterator[Row]:
    """Yield an estimate and the limits of its interval."""
    yield Row(name, value.estimate, *bins)
    yield Row(f"{name}_low", value.ci_low, *bins)
    yield Row(f"{name}_high", value.ci_high, *bins)


def curve_rows(curves: Mapping[str, np.ndarray]) -> Iterator[Row]:
    """Yield the values of curves in quantiles, by the names of the curves."""
    for name, values in curves.items():
        for number, value in enumerate(values):
            yield Row(name, value, "quantile", len(values), number)


@dataclass(frozen=True)
class Inputs:
    """What the families score; all arrays are of shape (n_samples,)."""

    sample: Sample  # with the uncertainty that the method reports
    prediction: np.ndarray  # the method's own, or the mean of the hypotheses
    corrected_bins: np.ndarray
    settings: Mapping[str, Any]  # the ``scores`` block of the configuration
    #: Several labels per input: how many of how many are positive.
    n_positive: np.ndarray | None = None
    n_labels: np.ndarray | None = None
    #: The class of each input, of which the label says whether it is the task's.
    classes: np.ndarray | None = None
    exchangeable: bool = True  # whether the hypotheses are draws
    #: What a family has worked out and needs again, by a name of its own.
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def factor(self) -> float:
        """By which the uncertainty is multiplied to be the squared error that is reported."""
        n_hypotheses = self.sample.hypotheses.shape[1]
        draws = self.exchangeable and self.sample.reported is None and n_hypotheses > 1
        return finite_draws_factor(n_hypotheses) if draws else 1.0
