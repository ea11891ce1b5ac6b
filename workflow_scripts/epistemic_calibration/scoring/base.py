"""What the families of scores share: a metric's description, a row, and what is scored.

A family is one file of this folder. It has ``METRICS``, the descriptions of its metrics, and
``rows(inputs)``, which yields a `Row` for each of them. A family with estimates of all tasks of
a data set together has ``summary(inputs)``, which returns what it must know of a task, or None, and
``rows_of_all_tasks(summaries, settings)`` as well. A family with estimates that compare each
method with all others has ``rows_of_methods(y_true, compared, settings)``, which yields pairs of a
method and a `Row`. Families come in the order of their ``ORDER``; those without one are last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from epistemic_calibration.metrics import Sample


@dataclass(frozen=True)
class Metric:
    """What a metric is called, how it is read, and which tables show it.

    Parameters
    ----------
    name : str
        In the column ``metric`` of the scores.
    label : str
        In tables and figures. That of a p-value names the hypothesis tested.
    digits : int
        Decimals in tables.
    better : {"lower", "higher", None}
        Which values are better; None where neither is.
    range : tuple of float
        Smallest and largest value that is possible.
    tables : mapping from str to int
        Tables that show the metric, each with the metric's place there: ``paper``,
        ``summary``, ``by_eece``, ``drivers`` or ``comparisons``. No two metrics of a table
        have the same place.
    of_all_tasks : bool, default False
        Whether it is also estimated of all tasks of a data set together.
    kind : {"score", "p_value", "diagnostic"}, default "score"
        A diagnostic describes an estimate, such as its noise floor, and not the method.
    short_label : str, optional
        Label where space is scarce; by default the label.
    resampled : bool, default False
        Whether it is the p-value of a test that may draw labels, and is then 1/(n_resamples + 1)
        at least.

    Examples
    --------
    >>> metric = Metric("brier", "Brier score", 3, "lower", (0, 1), {"summary": 2})
    >>> "summary" in metric.tables
    True
    >>> metric.short_label
    'Brier score'
    """

    name: str
    label: str
    digits: int
    better: Literal["lower", "higher"] | None
    range: tuple[float, float] = (-math.inf, math.inf)
    tables: Mapping[str, int] = field(default_factory=dict, hash=False)
    of_all_tasks: bool = False
    kind: Literal["score", "p_value", "diagnostic"] = "score"
    short_label: str = ""
    resampled: bool = False

    def __post_init__(self) -> None:
        if not self.short_label:
            object.__setattr__(self, "short_label", self.label)


class Row(NamedTuple):
    """A score, and the bins behind it if there are any; ``bin`` if it is of one of them."""

    metric: str
    value: float
    binning: str | None = None
    n_bins: int | None = None
    bin: int | None = None


@dataclass(frozen=True)
class Inputs:
    """What the families score.

    Attributes
    ----------
    sample : Sample
        Labels and hypotheses, with the uncertainty that the method reports.
    prediction : ndarray of shape (n_samples,)
        The method's own prediction, or the mean of the hypotheses.
    corrected_bins : ndarray of int, shape (n_samples,)
        Bins of the corrected error.
    settings : mapping
        The ``scores`` block of the configuration.
    n_positive, n_labels : ndarray of int, shape (n_samples,), or None
        Several labels per input: how many of how many are positive.
    classes : ndarray of shape (n_samples,), or None
        The class of each input, of which the label says whether it is the task's.
    exchangeable : bool
        Whether the hypotheses are draws, as in `metrics.second_order_error`.
    """

    sample: Sample
    prediction: np.ndarray
    corrected_bins: np.ndarray
    settings: Mapping[str, Any]
    n_positive: np.ndarray | None = None
    n_labels: np.ndarray | None = None
    classes: np.ndarray | None = None
    exchangeable: bool = True
    #: What a family has worked out and needs again, by a name of its own.
    kept: dict[str, Any] = field(default_factory=dict)
