"""How files of predictions of the same inputs answer the three questions, beside each other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration._estimates import LEAST_SAMPLES, Inputs, numbers_of_bins, units_of
from epistemic_calibration._evaluation_text import (
    decimals,
    in_points,
    inputs_of,
    number,
    p_value,
    sentences,
    shown,
    width,
)
from epistemic_calibration.evaluation import Evaluation, evaluate, plain
from epistemic_calibration.metrics import ErrorDifference, Estimate
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._clusters import mean_of_groups
from epistemic_calibration.metrics._groups import check_groups
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
        """Return a row for each predictor, and one for each difference."""
        head = ["", "Brier", "Calibration error", "Share", "Slope", "Errors", "at 90 %"]
        rows = [head]
        for name, e in self.evaluations.items():
            rows.append([name, number(e.brier.estimate), in_points(e.tece), *_size(e), *_kept(e)])
        # What is too wide for the terminal is the name.
        rest = sum(2 + max(len(row[k]) for row in rows) for k in range(1, len(head)))
        widest = max(8, min(max(len(row[0]) for row in rows), width() - rest))
        return [
            "".join(
                [
                    f"{_cut(row[0], widest):<{widest}}",
                    *(
                        "  " + cell.ljust(max(len(row[k]) for row in rows))
                        for k, cell in enumerate(row[1:], start=1)
                    ),
                ]
            )
            for row in rows
        ]


def _cut(name: str, length: int) -> str:
    return name if len(name) <= length else "…" + name[len(name) - length + 1 :]


def _size(e: Evaluation) -> list[str]:
    if e.second_order is not None:
        share, slope = e.second_order.share.estimate, e.second_order.slope.estimate
        return [
            "—" if math.isnan(share) else f"{100 * share:,.0f} %",
            "—" if math.isnan(slope) else f"{slope:.1f}".replace("-", "−"),
        ]
    if e.share_bounds is None:
        return ["—", "—"]
    low, high = e.share_bounds
    top = "" if math.isinf(high) else f"–{100 * high:,.0f}"
    return [f"{100 * low:,.0f}{top} %" if top else f"≥ {100 * low:,.0f} %", "—"]


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
        first, second = (a, b) if brier.estimate < 0 else (b, a)
        apart = shown(brier)
        but = "but" if better == second else "and"
        text += f"; {but} {first} has the lower Brier score (difference {apart})"
    if kept is not None and not kept.ci_low <= 0 <= kept.ci_high:
        fewer = a if kept.estimate < 0 else b
        apart = shown(kept, 100.0)
        text += f"; {fewer} keeps fewer errors at 90 % (difference {apart} %)"
    return text + "."


def compare(
    predictors: Mapping[str, Mapping[str, np.ndarray]],
    *,
    n_bins: int | None = None,
    confidence_level: float = 0.95,
    random_state: int = 0,
) -> Comparison:
    """Compare two predictors or more of the same inputs.

    Parameters
    ----------
    predictors : mapping from name to mapping
        Two or more, each as `read_predictions` returns them.
    n_bins, confidence_level, random_state
        As in `evaluate`.

    Raises
    ------
    ValueError
        If they have other labels, classes or groups, or fewer than 11 inputs, or groups of them.
    """
    n = _same_inputs(predictors)
    _same_classes(predictors)
    groups = _same_groups(predictors)
    units = units_of(groups, n)[1]
    if units < LEAST_SAMPLES:
        what = "inputs" if groups is None else "groups"
        raise ValueError(f"a comparison takes {LEAST_SAMPLES} {what} or more, got {units}")
    bins = numbers_of_bins(n_bins, units)[0]
    evaluations = {
        name: _evaluated(p, groups, n_bins, confidence_level, random_state)
        for name, p in predictors.items()
    }
    tasks = {name: _tasks(e._inputs) for name, e in evaluations.items()}
    differences = metrics.compare_mean_corrected_errors(
        [task.y for task in next(iter(tasks.values()))],
        {name: [task.mean for task in of_predictor] for name, of_predictor in tasks.items()},
        {
            name: [
                task.bins(n_bins=bins, binning="nested", random_state=random_state)
                for task in of_predictor
            ]
            for name, of_predictor in tasks.items()
        },
        random_state=random_state,
        confidence_level=confidence_level,
        groups=groups,
    )
    pairs = {}
    for a, b in combinations(evaluations, 2):
        first, second = evaluations[a]._inputs, evaluations[b]._inputs
        clusters = check_groups(groups, np.ones(n, dtype=bool))
        kept = None
        if evaluations[a].ranking is not None and evaluations[b].ranking is not None:
            kept = _difference_kept(first, second, clusters, confidence_level)
        brier = _losses(first) - _losses(second)
        pairs[a, b] = Pair(
            calibration=differences[a, b],
            brier=mean_of_groups(brier, clusters, confidence_level),
            kept_error_90=kept,
        )
    return Comparison(evaluations, pairs)


def _evaluated(
    predictor: Mapping[str, np.ndarray], groups: np.ndarray | None, n_bins: int | None, *settings
) -> Evaluation:
    level, random_state = settings
    arrays = {k: v for k, v in predictor.items() if k not in ("y_true", "hypotheses", "groups")}
    axes = {"axes": "nhc"} if predictor["hypotheses"].ndim == 3 else {}
    return evaluate(
        predictor["y_true"],
        predictor["hypotheses"],
        **arrays,
        **axes,
        groups=groups,
        n_bins=n_bins,
        confidence_level=level,
        random_state=random_state,
    )


def _losses(inputs: Inputs) -> np.ndarray:
    """Return the squared loss of every input, a sum over three classes or more."""
    if isinstance(inputs.sample, ClassSample):
        return np.square(inputs.sample.error()).sum(axis=1)
    return (inputs.sample.y - inputs.prediction) ** 2


def _difference_kept(first: Inputs, second: Inputs, groups: np.ndarray, level: float) -> Estimate:
    parts = [(errors_and_doubt(i.sample, i.prediction)[0], i.ranking_key) for i in (first, second)]
    return difference_kept(*parts, groups, level)


def _same_inputs(predictors: Mapping[str, Mapping[str, np.ndarray]]) -> int:
    """Return the number of inputs."""
    (first, a), *others = predictors.items()
    n = len(a["y_true"])
    for name, b in others:
        if len(b["y_true"]) != n:
            raise ValueError(
                f"{first} has {n} inputs and {name} has {len(b['y_true'])}: they must be the same"
            )
    return n


def _same_classes(predictors: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    (first, a), *others = predictors.items()

    def number_of(p: Mapping[str, np.ndarray]) -> int:
        return p["hypotheses"].shape[2] if p["hypotheses"].ndim == 3 else 2

    for name, b in others:
        if number_of(a) != number_of(b):
            raise ValueError(f"{first} has {number_of(a)} classes and {name} has {number_of(b)}")
        names = [list(map(str, p["class_names"])) for p in (a, b) if "class_names" in p]
        if len(names) == 2 and names[0] != names[1]:
            raise ValueError(
                f"the classes of {first} are {names[0][:5]} and those of {name} {names[1][:5]}: "
                f"they must be the same in the same order"
            )
        if differ := np.count_nonzero(a["y_true"] != b["y_true"]):
            raise ValueError(
                f"{first} and {name} differ in {differ} of {len(a['y_true'])} labels: they must "
                f"have the same inputs in the same order"
            )


def _same_groups(predictors: Mapping[str, Mapping[str, np.ndarray]]) -> np.ndarray | None:
    """Return the groups that some or all have."""
    named = [(name, p["groups"]) for name, p in predictors.items() if "groups" in p]
    if not named:
        return None
    (first, groups), *others = named
    for name, labels in others:
        # Both are numbered in the order of their values, which may differ.
        together = len(np.unique(np.stack([groups, labels]), axis=1).T)
        if any(len(np.unique(one)) != together for one in (groups, labels)):
            raise ValueError(f"{first} and {name} differ in which inputs are of one group")
    return groups


def _tasks(inputs: Inputs) -> list[metrics.Sample]:
    """Return the task, or one for each class against all others."""
    sample = inputs.sample
    if not isinstance(sample, ClassSample):
        return [sample]
    return [
        metrics.Sample((sample.y == c).astype(np.uint8), sample.hypotheses[:, :, c])
        for c in range(sample.n_classes)
    ]
