"""How files of predictions of the same inputs answer the three questions, beside each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration.evaluation import Evaluation, plain
from epistemic_calibration.evaluation._estimates import LEAST_SAMPLES
from epistemic_calibration.evaluation._text import (
    decimals,
    in_points,
    inputs_of,
    number,
    p_value,
    sentences,
    shown,
    width,
)
from epistemic_calibration.metrics import ErrorDifference, Estimate
from epistemic_calibration.metrics._means import mean_of_groups
from epistemic_calibration.metrics.ranking import difference_kept, errors_and_doubt


@dataclass(frozen=True)
class Pair:
    """Differences of two predictors, the first less the second.

    Attributes
    ----------
    calibration : ErrorDifference
        Of the corrected TECE; of three classes or more of its mean over them.
    brier : Estimate
        Of the Brier score of the prediction, a sum over classes.
    kept_error_90 : Estimate or None
        Of the errors among the 90 % of least uncertainty, each predictor's own errors.
    """

    calibration: ErrorDifference
    brier: Estimate
    kept_error_90: Estimate | None


@dataclass(frozen=True, repr=False)
class Comparison:
    """What predictors of the same inputs say, and how they differ.

    Attributes
    ----------
    evaluations : dict of str to Evaluation
        By name, in the order given.
    pairs : dict of (str, str) to Pair
        Every two of them, in that order.
    """

    evaluations: dict[str, Evaluation]
    pairs: dict[tuple[str, str], Pair]

    @property
    def judgement(self) -> list[str]:
        """A sentence for each pair: which is better calibrated, has the lower Brier score, and
        keeps fewer errors. P-values are adjusted for the number of pairs (Holm)."""
        p_values = [pair.calibration.p_value for pair in self.pairs.values()]
        adjusted = metrics.holm_correction(p_values)
        return [
            _sentence(a, b, pair, p, self._any())
            for ((a, b), pair), p in zip(self.pairs.items(), adjusted, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return {
            "evaluations": {name: e.to_dict() for name, e in self.evaluations.items()},
            "pairs": [
                {"first": a, "second": b, **plain(pair)} for (a, b), pair in self.pairs.items()
            ],
            "judgement": self.judgement,
        }

    def _any(self) -> Evaluation:
        return next(iter(self.evaluations.values()))

    def __repr__(self) -> str:
        e = self._any()
        level = f"{100 * e.confidence_level:g} % intervals"
        lines = [f"Comparison of {len(self.evaluations)} predictors of {inputs_of(e)}; {level}", ""]
        for sentence in self.judgement:
            lines += sentences(sentence)
        lines += ["", *self._table(), ""]
        of_each = " and class" if e.n_classes > 2 else ""
        lines += [f"Settings: {e.n_bins} nested bins each{of_each}, random_state {e.random_state}"]
        return "\n".join(line.rstrip() for line in lines)

    def _table(self) -> list[str]:
        """Return a row for each predictor."""
        rows = [["", "Brier", "Calibration error", "Share", "Slope", "Errors", "at 90 %"]]
        for name, e in self.evaluations.items():
            rows.append([name, number(e.brier.estimate), in_points(e.tece), *_size(e), *_kept(e)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        # What is too wide for the terminal is the name.
        widths[0] = max(8, min(widths[0], width() - sum(2 + w for w in widths[1:])))
        return [
            "  ".join(_cut(c, w).ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows
        ]


def _cut(name: str, length: int) -> str:
    return name if len(name) <= length else "…" + name[len(name) - length + 1 :]


def _size(e: Evaluation) -> list[str]:
    if e.second_order is not None:
        share, slope = e.second_order.share.estimate, e.second_order.slope.estimate
        shares = "—" if math.isnan(share) else f"{100 * share:,.0f} %"
        return [shares, "—" if math.isnan(slope) else f"{slope:.1f}".replace("-", "−")]
    if e.share_bounds is None:
        return ["—", "—"]
    low, high = (f"{100 * bound:,.0f}" for bound in e.share_bounds)
    return [f"≥ {low} %" if math.isinf(e.share_bounds[1]) else f"{low}–{high} %", "—"]


def _kept(e: Evaluation) -> list[str]:
    if e.ranking is None:
        return [f"{100 * (1 - e.accuracy.estimate):.1f} %", "—"]
    kept = e.ranking.by_uncertainty.kept_error_90
    digits = min(decimals(100 * kept.ci_low, 100 * kept.ci_high), 2)
    return [f"{100 * v.estimate:.{digits}f} %" for v in (e.ranking.error, kept)]


def _sentence(a: str, b: str, pair: Pair, p_adjusted: float, e: Evaluation) -> str:
    d, brier, kept = pair.calibration, pair.brier, pair.kept_error_90
    p = f"p {p_value(p_adjusted, '=')}"
    better = worse = None
    if p_adjusted > 1 - e.confidence_level:
        text = f"Which of {a} and {b} is better calibrated cannot be told ({p})"
    else:
        better, worse = (a, b) if d.estimate < 0 else (b, a)
        classes = ", on average over classes" if e.n_classes > 2 else ""
        text = f"{better} is better calibrated than {worse}{classes} ({p})"
    if brier.ci_low <= 0 <= brier.ci_high:
        text += "; their Brier scores do not differ beyond chance"
    else:
        first = a if brier.estimate < 0 else b
        apart = shown(brier)
        but = "and" if better == first else "but"
        text += f"; {but} {first} has the lower Brier score (difference {apart})"
    if kept is not None and not kept.ci_low <= 0 <= kept.ci_high:
        fewer = a if kept.estimate < 0 else b
        apart = shown(kept, 100.0)
        text += f"; {fewer} keeps fewer errors at 90 % (difference {apart} %)"
    return text + "."


def compare(evaluations: Mapping[str, Evaluation]) -> Comparison:
    """Compare two predictors or more of the same inputs.

    Parameters
    ----------
    evaluations : mapping from name to Evaluation
        Two or more, with the same settings.

    Raises
    ------
    ValueError
        If they have other labels, classes or groups, or fewer than 11 inputs, or groups of them.
    """
    (first, a), *others = evaluations.items()
    for name, b in others:
        _check_alike(first, a, name, b)
    if a.tece is None:
        what = "inputs" if a.n_groups is None else "groups"
        got = a.n_samples if a.n_groups is None else a.n_groups
        raise ValueError(f"a comparison takes {LEAST_SAMPLES} {what} or more, got {got}")
    groups, level, seed = a._inputs.groups, a.confidence_level, a.random_state
    n_bins = min(e.n_bins for e in evaluations.values())
    tasks = {name: e._inputs.tasks() for name, e in evaluations.items()}
    differences = metrics.compare_mean_corrected_errors(
        [task.y for task in tasks[first]],
        {name: [task.mean for task in of_it] for name, of_it in tasks.items()},
        {
            name: [a._inputs.nested_bins(task, n_bins) for task in of_it]
            for name, of_it in tasks.items()
        },
        random_state=seed,
        confidence_level=level,
        groups=groups,
    )
    pairs = {}
    for pair in combinations(evaluations, 2):
        both = [evaluations[name] for name in pair]
        pairs[pair] = Pair(
            calibration=differences[pair],
            brier=mean_of_groups(np.subtract(*map(_losses, both)), a._inputs.units, level),
            kept_error_90=_kept_difference(*both),
        )
    return Comparison(dict(evaluations), pairs)


def _kept_difference(a: Evaluation, b: Evaluation) -> Estimate | None:
    if a.ranking is None or b.ranking is None:
        return None
    ranked = [
        (errors_and_doubt(i.sample, i.prediction)[0], i.ranking_key) for i in (a._inputs, b._inputs)
    ]
    return difference_kept(*ranked, a._inputs.units, a.confidence_level)


def _losses(e: Evaluation) -> np.ndarray:
    """Return the squared loss of every input, a sum over three classes or more."""
    sample = e._inputs.sample
    if e._inputs.several:
        return np.square(sample.error()).sum(axis=1)
    return (sample.y - e._inputs.prediction) ** 2


def _check_alike(first: str, a: Evaluation, name: str, b: Evaluation) -> None:
    for what, n in (("inputs", "n_samples"), ("classes", "n_classes")):
        of_a, of_b = getattr(a, n), getattr(b, n)
        if of_a != of_b:
            raise ValueError(f"{first} has {of_a} {what} and {name} has {of_b}")
    if a.class_names and b.class_names and a.class_names != b.class_names:
        raise ValueError(
            f"the classes of {first} are {list(a.class_names[:5])} and those of {name} "
            f"{list(b.class_names[:5])}: they must be the same in the same order"
        )
    if differ := np.count_nonzero(a._inputs.sample.y != b._inputs.sample.y):
        raise ValueError(
            f"{first} and {name} differ in {differ} of {a.n_samples} labels: they must have the "
            f"same inputs in the same order"
        )
    # Both are numbered in the order of their values, which may differ.
    both = np.stack([a._inputs.units, b._inputs.units])
    together = len(np.unique(both, axis=1).T)
    if any(len(np.unique(labels)) != together for labels in both):
        raise ValueError(f"{first} and {name} differ in which inputs are of one group")
