"""The numbers of a page, from tidy scores: each with its interval, and as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report.tables._selection import ordered_methods

if TYPE_CHECKING:
    import pandas as pd

    from epistemic_calibration.scoring import Metric

#: What all tasks of a data set have together.
ALL_TASKS = "all tasks"
#: The share of the error that is reported, estimated or between bounds.
SHARE = "reported_share"
TECE = "tece_corrected"


@dataclass(frozen=True)
class Number:
    """A score with what is known of its precision.

    Attributes
    ----------
    value : float
        NaN where only bounds are known.
    low, high : float
        NaN where there is no interval; ``high`` may be infinite.
    kind : str
        What low and high are: ``interval``, ``bounds``, ``sd`` (one standard deviation over
        tasks to each side), or nothing.
    digits : int
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    kind: str = ""
    digits: int = 4

    @property
    def shown(self) -> float:
        """Where it is drawn: the value, or the geometric middle of its bounds."""
        if not math.isnan(self.value):
            return self.value
        if math.isfinite(self.high):
            return math.sqrt(max(self.low, self.high / 100) * self.high)
        return self.low

    @property
    def text(self) -> str:
        """The number in words, such as ``0.0012 [0.0009, 0.0015]``."""
        low, high = (decimals(end, self.digits) for end in (self.low, self.high))
        if self.kind == "bounds":
            return f"{low} to {high}" if math.isfinite(self.high) else f"{low} or more"
        value = decimals(self.value, self.digits)
        if self.kind == "interval":
            return f"{value} [{low}, {high}]"
        if self.kind == "sd":
            return f"{value} ± {decimals(self.value - self.low, self.digits)}"
        return value


def decimals(value: float, digits: int) -> str:
    """Return a number as text, with more decimals where it would be 0 otherwise.

    Examples
    --------
    >>> decimals(0.12345, 3), decimals(0.00001234, 4), decimals(float("inf"), 2)
    ('0.123', '1.2e-05', '∞')
    """
    if not math.isfinite(value):
        return "—" if math.isnan(value) else "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}"
    if value != 0 and float(text) == 0:
        text = f"{value:.1e}"
    return text.replace("-", "−") if value < 0 else text


def shown_metrics(scores: pd.DataFrame) -> list[Metric]:
    """Return the metrics that a page shows of some scores: those that describe a method."""
    from epistemic_calibration.scoring import METRICS

    found = set(scores["metric"])
    if "reported_share_at_least" in found:
        found.add(SHARE)
    return [
        metric
        for metric in METRICS.values()
        if metric.name in found
        and metric.kind == "score"
        and not metric.name.endswith(("_low", "_high"))
    ]


def numbers(
    scores: pd.DataFrame, dataset: str, methods: Sequence[str], tasks: Sequence[str]
) -> dict[tuple[str, str, str], Number]:
    """Return every number that a page shows of a data set, by task, method and metric.

    Parameters
    ----------
    scores : DataFrame
        Tidy, as written by the workflow.
    dataset : str
    methods, tasks : sequence of str

    Returns
    -------
    dict
        Of each task, and of `ALL_TASKS`: what is estimated of all tasks together where that is
        scored, and the mean over tasks elsewhere; means over seeds.
    """
    chosen = scores[(scores["dataset"] == dataset) & scores["method"].isin(methods)]
    by_task = _means(chosen[chosen["scope"] == "task"], ["task", "method", "metric"])
    together = _means(chosen[chosen["scope"] == "all_tasks"], ["method", "metric"])
    spread = (
        chosen[chosen["scope"] == "task"]
        .groupby(["method", "metric"])["value"]
        .agg(["mean", "std", "count"])
        .to_dict("index")
    )
    found = {}
    for metric in shown_metrics(chosen):
        for method in methods:
            number = _together(together, spread, method, metric)
            if number is not None:
                found[ALL_TASKS, method, metric.name] = number
            for task in tasks:
                key = (task, method, metric.name)
                if key in by_task and math.isfinite(by_task[key]):
                    ends = [by_task.get((task, method, f"{metric.name}_{e}")) for e in _ENDS]
                    found[key] = _number(by_task[key], ends, metric.digits)
    return found


_ENDS = ("low", "high")


def _means(rows: pd.DataFrame, key: list[str]) -> dict:
    return rows.groupby(key)["value"].mean().to_dict()


def _number(value: float, ends: Sequence[float | None], digits: int) -> Number:
    if any(end is None or math.isnan(end) for end in ends):
        return Number(value, digits=digits)
    return Number(value, *ends, "interval", digits)


def _together(together: dict, spread: dict, method: str, metric: Metric) -> Number | None:
    value = together.get((method, metric.name))
    if value is not None and math.isfinite(value):
        ends = [together.get((method, f"{metric.name}_{end}")) for end in _ENDS]
        return _number(value, ends, metric.digits)
    bounds = [together.get((method, f"{metric.name}_at_{end}")) for end in ("least", "most")]
    if None not in bounds and not math.isnan(bounds[0]):
        high = math.inf if math.isnan(bounds[1]) else bounds[1]
        return Number(math.nan, bounds[0], high, "bounds", metric.digits)
    over_tasks = spread.get((method, metric.name))
    if over_tasks is None or not math.isfinite(over_tasks["mean"]):
        return None
    mean, sd = over_tasks["mean"], over_tasks["std"]
    if over_tasks["count"] < 2 or not math.isfinite(sd):
        return Number(mean, digits=metric.digits)
    return Number(mean, mean - sd, mean + sd, "sd", metric.digits)


def labels_of(methods: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return what readers see of each method, in the order of tables; no two are the same.

    Examples
    --------
    >>> labels_of({"a": {"label": "A"}, "b": {"label": "A"}, "laplace": {"label": "Laplace"}})
    {'laplace': 'Laplace', 'a': 'A (a)', 'b': 'A (b)'}
    """
    names = ordered_methods(methods)
    shown = [methods[name]["label"] for name in names]
    return {
        name: label if shown.count(label) == 1 else f"{label} ({name})"
        for name, label in zip(names, shown, strict=True)
    }


def curves(scores: pd.DataFrame, dataset: str) -> Iterator[dict]:
    """Yield the error of each method in bins of EU: an estimate, or bounds.

    Yields
    ------
    dict
        ``method``, ``uncertainty``, ``error`` (None where only bounds are known), ``low`` and
        ``high``.
    """
    rows = scores[(scores["dataset"] == dataset) & (scores["scope"] == "bin")]
    found = rows.pivot_table(index=["method", "bin"], columns="metric", values="value")
    estimated = "curve_error" in found
    names = (
        ("curve_uncertainty", "curve_error_low", "curve_error_high")
        if estimated
        else ("bounds_curve_uncertainty", "bounds_curve_at_least", "bounds_curve_at_most")
    )
    if not set(names) <= set(found):
        return
    for (method, _), row in found.iterrows():
        uncertainty, low, high = (float(row[name]) for name in names)
        if np.isfinite([uncertainty, low, high]).all():
            error = float(row["curve_error"]) if estimated else None
            yield {
                "method": method,
                "uncertainty": uncertainty,
                "error": error,
                "low": low,
                "high": high,
            }


def numbers_of_parts(
    data: str, label: str, calibration: float, noise: float, dispersion: float, eece: float
) -> Iterator[dict]:
    """Yield the rows of a bar of the parts of EECE.

    Parameters
    ----------
    data, label : str
        What the bar is of, and what it is called.
    calibration, noise, dispersion, eece : float
        Σ w g², what the noise of the labels alone would make of it, Σ w W, and EECE.
    """
    noise = min(noise, calibration)
    parts = {"error": calibration - noise, "noise": noise, "dispersion": dispersion}
    for order, (part, value) in enumerate(parts.items()):
        yield {
            "data": data,
            "method": label,
            "part": part,
            "order": order,
            "value": short(value),
            "total": short(sum(parts.values())),
            "eece": short(eece),
        }


def short(value: float) -> float | int | None:
    """Return a number in four digits, or None where it is not finite.

    Examples
    --------
    >>> short(0.123456), short(12), short(math.nan)
    (0.1235, 12, None)
    """
    if isinstance(value, (int, np.integer)):
        return int(value)
    return float(f"{value:.4g}") if np.isfinite(value) else None
