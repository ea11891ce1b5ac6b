"""The numbers of an `Evaluation`, of two classes and of several, and what weakens them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration.metrics import CorrectedError, EECEParts, Estimate, Sample
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._classwise import worst_class
from epistemic_calibration.metrics._groups import distinct_inputs, nested_bins_of_groups
from epistemic_calibration.metrics._interval import wilson_interval
from epistemic_calibration.metrics._label_counts import label_moments, squared_error
from epistemic_calibration.metrics._means import mean_of_groups, ratio_of_means
from epistemic_calibration.metrics._validation import check_positive_integer
from epistemic_calibration.metrics.controls import control_estimates
from epistemic_calibration.metrics.label_collection import selection_fault, stopping_fault
from epistemic_calibration.metrics.law_error import Draws
from epistemic_calibration.metrics.law_test import can_reject
from epistemic_calibration.metrics.ranking import Kind, rank_sample, uncertainty_of

if TYPE_CHECKING:
    from epistemic_calibration.predictions._intake import Inputs

#: With fewer inputs nothing is said of calibration.
LEAST_SAMPLES = 11

#: Of labels that `metrics.LabelCollectionWarning` is about.
FOLLOWING_LABELS = (
    "Labels depend on each other, or their number on what they say: distrust what is said of size."
)

#: Bins of equal width of the ECE.
ECE_N_BINS = 10


@dataclass(frozen=True)
class Evaluated:
    """What is evaluated, and how.

    ``prediction`` (n_samples[, n_classes]) is the predictor's own, or the mean of the hypotheses;
    ``counts`` (n_samples, n_classes) are labels of each class, ``groups`` (n_samples,) are 0, 1,
    ..., and ``ranked_by`` (n_samples,) is an uncertainty of another kind than the variance.
    """

    sample: Sample | ClassSample
    prediction: np.ndarray
    counts: np.ndarray | None
    groups: np.ndarray | None
    exchangeable: bool
    kind: Kind
    ranked_by: np.ndarray | None
    draws: Draws
    level: float
    random_state: int

    @classmethod
    def of(cls, inputs: Inputs, **settings: Any) -> Evaluated:
        y, hypotheses, given = inputs.y_true, inputs.hypotheses, inputs.epistemic_uncertainty
        sized = hypotheses.ndim == 2 and inputs.kind_of_uncertainty == "variance"
        if hypotheses.ndim == 3:
            sample = ClassSample(y, hypotheses)
        else:
            sample = Sample(y, hypotheses, epistemic_uncertainty=given if sized else None)
        return cls(
            sample,
            sample.mean if inputs.prediction is None else inputs.prediction.astype(np.float64),
            inputs.label_counts,
            inputs.groups,
            inputs.exchangeable,
            inputs.kind_of_uncertainty,
            None if sized else given,
            **settings,
        )

    @property
    def several(self) -> bool:
        """Whether there are three classes or more."""
        return isinstance(self.sample, ClassSample)

    @property
    def reported(self) -> np.ndarray | None:
        """The model's own variance."""
        return getattr(self.sample, "reported", None)

    @property
    def has_own_prediction(self) -> bool:
        """Whether what is judged is not the mean of the hypotheses."""
        return self.prediction is not self.sample.mean

    @property
    def units(self) -> np.ndarray:
        return np.arange(len(self.sample.y)) if self.groups is None else self.groups

    @property
    def n_units(self) -> int:
        """Number of what is independent of each other: groups, or inputs."""
        return int(self.units.max()) + 1

    @property
    def n_distinct(self) -> int:
        """Number of inputs, of which copies in a group are one: bins are of them."""
        first, _ = distinct_inputs(self.sample.hypotheses, self.groups)
        return len(np.arange(len(self.sample.y))[first])

    @property
    def are_draws(self) -> bool:
        """Whether EU is of draws, so that it is smaller than the error of their mean."""
        return self.exchangeable and self.reported is None

    @property
    def factor(self) -> float:
        """c_H."""
        h = self.sample.hypotheses.shape[1]
        return metrics.finite_draws_factor(h) if self.are_draws and h > 1 else 1.0

    @property
    def reports(self) -> bool:
        """Whether there is an uncertainty whose size can be judged."""
        return self.sample.hypotheses.shape[1] > 1 or self.reported is not None

    @property
    def ranking_key(self) -> np.ndarray:
        """The uncertainty that orders the inputs."""
        if self.ranked_by is not None:
            return self.ranked_by
        if self.kind == "variance" and not self.several:
            return self.sample.uncertainty
        return uncertainty_of(self.sample.hypotheses, self.kind)

    @property
    def enough_labels(self) -> bool:
        if self.counts is None or not self.reports:
            return False
        kept = self.counts.sum(axis=1) >= 2
        return len(np.unique(self.units[kept])) >= LEAST_SAMPLES

    def tasks(self) -> list[Sample]:
        """Return the task, or one for each class against all others."""
        if not self.several:
            return [self.sample]
        sample = self.sample
        return [
            Sample((sample.y == c).astype(np.uint8), sample.hypotheses[:, :, c])
            for c in range(sample.n_classes)
        ]

    def counts_of_tasks(self) -> list[np.ndarray]:
        """Return the positive labels of each task."""
        return list(self.counts.T) if self.several else [self.counts[:, 1]]

    def nested_bins(self, task: Sample, n_bins: int) -> np.ndarray:
        if self.groups is None:
            return task.bins(n_bins=n_bins, binning="nested", random_state=self.random_state)
        return nested_bins_of_groups(task, self.groups, n_bins, self.random_state)[1]


def estimates(
    inputs: Evaluated, names: tuple[str, ...] | None, n_bins: int | None
) -> dict[str, Any]:
    """Return the attributes of an `Evaluation`."""
    sample, own, groups, level = inputs.sample, inputs.prediction, inputs.groups, inputs.level
    bins, eece_bins = numbers_of_bins(n_bins, inputs.n_distinct)
    found: dict[str, Any] = {"tests": {}, "n_bins": bins}
    if inputs.n_units >= LEAST_SAMPLES:
        if inputs.several:
            found |= _calibration_of_classes(inputs, names, bins)
        else:
            found |= _calibration(inputs, bins, eece_bins)
    if inputs.enough_labels:
        found |= _second_order(inputs, names, bins, found["tests"])
    if inputs.several:
        losses = np.square(sample.error()).sum(axis=1)
        found |= _of_uncertainty(inputs, losses / len(names), sample.variance.mean(axis=1), found)
        shares = np.bincount(sample.y, minlength=len(names)) / len(sample.y)
        right, confidence = sample.top == sample.y, np.take_along_axis(own, sample.top[:, None], 1)
        warned = _warnings_of_classes(inputs, names)
    else:
        found |= _of_uncertainty(inputs, (sample.y - sample.mean) ** 2, sample.uncertainty, found)
        losses, shares = (sample.y - own) ** 2, np.array([1 - sample.y.mean(), sample.y.mean()])
        right, confidence = (own > 0.5) == (sample.y == 1), np.maximum(own, 1 - own)
        found["ece"] = metrics.expected_calibration_error(sample.y, own, n_bins=ECE_N_BINS)
        found["eece_n_bins"] = eece_bins
        warned = _warnings_of_two(inputs, found)
    return found | {
        "n_groups": None if groups is None else inputs.n_units,
        "class_shares": tuple(shares.tolist()),
        "accuracy": _accuracy(right, level, groups),
        "confidence": float(confidence.mean()),
        "brier": _mean(losses, level, groups, most=2.0 if inputs.several else 1.0),
        "warnings": tuple(_warnings(inputs, found) + warned),
    }


def _calibration(inputs: Evaluated, n_bins: int, eece_n_bins: int) -> dict[str, Any]:
    sample, groups, judged = inputs.sample, inputs.groups, inputs.sample
    seed = {"random_state": inputs.random_state}
    if inputs.has_own_prediction:
        judged = Sample(
            sample.y,
            sample.hypotheses,
            epistemic_uncertainty=sample.reported,
            prediction=inputs.prediction,
        )
    split = metrics.split_epistemic_calibration_error(
        judged, n_bins=n_bins, confidence_level=inputs.level, groups=groups, **seed
    )
    n_mean_bins = min(10, max(1, inputs.n_distinct // 10))
    options = {"groups": groups, **seed}
    tests = {
        "epistemic_calibration": metrics.epistemic_calibration_test(
            judged, n_bins=n_bins, **options
        ),
        "mean_calibration": metrics.mean_calibration_test(judged, n_bins=n_mean_bins, **options),
    }
    if inputs.reports and groups is None:
        tests["epistemic_independence"] = metrics.epistemic_independence_test(judged, **seed)
    return {
        "tece": split.total,
        "mean_miscalibration": split.mean_miscalibration,
        "epistemic_dependence": split.epistemic_dependence,
        "eece": metrics.decompose_eece(sample, n_bins=eece_n_bins, **seed),
        "tests": tests,
    }


def _calibration_of_classes(
    inputs: Evaluated, names: tuple[str, ...], n_bins: int
) -> dict[str, Any]:
    y, rows, groups, level = (
        inputs.sample.y,
        inputs.sample.hypotheses,
        inputs.groups,
        inputs.level,
    )
    of_inputs = {"groups": groups, "random_state": inputs.random_state}
    options = {"n_bins": n_bins, "confidence_level": level, **of_inputs}
    each = metrics.classwise_epistemic_calibration_error(y, rows, **options)
    top = metrics.top_label_epistemic_calibration_error(y, rows, **options)
    task = metrics.top_label_task(y, rows, n_bins=n_bins, **of_inputs)
    joint = metrics.canonical_epistemic_calibration_error(y, rows, **options)
    joint = _at_least(_at_least(joint, top), each.mean, len(names))
    k = int(np.argmax([of_class.estimate for of_class in each.classes]))
    of_worst = inputs.tasks()[k]
    nested = inputs.nested_bins(of_worst, n_bins)
    return {
        "tece": each.mean,
        "tece_of_classes": dict(zip(names, each.classes, strict=True)),
        "top_label": top,
        "canonical": joint,
        "worst_class": names[k],
        "worst": worst_class(of_worst.y, of_worst.mean, nested, groups, level, len(names)),
        "tests": {
            "top_label_calibration": metrics.epistemic_calibration_test(
                task.y_true, task.hypotheses, bins=task.bins, **of_inputs
            ),
            "canonical_calibration": metrics.canonical_epistemic_calibration_test(
                y, rows, n_bins=n_bins, **of_inputs
            ),
        },
    }


def _at_least(joint: CorrectedError, part: CorrectedError, times: int = 1) -> CorrectedError:
    """Return the joint error, no less than a part of it that is surely above 0."""
    if part.ci_low == 0:
        return joint
    ends = {
        name: max(getattr(joint, name), times * getattr(part, name))
        for name in ("estimate", "ci_low", "ci_high")
    }
    return dataclasses.replace(joint, **ends)


def _second_order(
    inputs: Evaluated,
    names: tuple[str, ...] | None,
    n_bins: int,
    tests: dict[str, metrics.HypothesisTest],
) -> dict[str, Any]:
    """Return what several labels say of the size, and add its test."""
    sample, counts = inputs.sample, inputs.counts
    law = {"exchangeable": inputs.exchangeable, "draws": inputs.draws}
    seed = {"random_state": inputs.random_state}
    options = {"n_bins": n_bins, "confidence_level": inputs.level, "groups": inputs.groups}
    options |= law | seed
    if inputs.several:
        second = metrics.classwise_second_order_error(counts, sample.hypotheses, **options)
        of_classes = dict(zip(names, second.classes, strict=True))
        return {"second_order": second.mean, "second_order_of_classes": of_classes}
    given = counts[:, 1], counts.sum(axis=1), sample.hypotheses
    second = metrics.second_order_error(*given, epistemic_uncertainty=sample.reported, **options)
    testable = can_reject(sample.hypotheses.shape[1], **law)
    if sample.reported is None and inputs.groups is None and testable:
        tests["second_order"] = metrics.second_order_test(*given, **law, **seed)
    return {"second_order": second}


def _of_uncertainty(
    inputs: Evaluated, losses: np.ndarray, uncertainty: np.ndarray, found: dict[str, Any]
) -> dict[str, Any]:
    """Return what is reported, what one label bounds, the controls, and the ranking."""
    level, groups, said = inputs.level, inputs.groups, inputs.factor * uncertainty
    most = 2 / (inputs.sample.n_classes if inputs.several else 2)
    result: dict[str, Any] = {"reducible_at_most": _mean(losses, level, groups, most=most)}
    if inputs.reports:
        reported = result["reported_error"] = _mean(said, level, groups)
        if inputs.n_units >= LEAST_SAMPLES:
            least = ratio_of_means(said, losses, inputs.units, level, least=0.0).ci_low
            # TECE is of another predictor than that whose error is bounded.
            at_least = 0.0 if inputs.has_own_prediction else found["tece"].ci_low
            most = reported.ci_high / at_least if at_least > 0 else math.inf
            result["share_bounds"] = (least, most)
    if inputs.n_units >= 2 and (inputs.reports or inputs.ranked_by is not None):
        result["ranking"] = rank_sample(
            inputs.sample,
            inputs.ranking_key,
            inputs.prediction,
            counts=inputs.counts if inputs.enough_labels else None,
            groups=groups,
            confidence_level=level,
        )
    if inputs.enough_labels:
        result["controls"] = _controls(inputs)
    return result


def _controls(inputs: Evaluated) -> dict[str, dict[str, Estimate]]:
    """Return share and slope of uncertainties that know nothing."""
    errors, said, means = [], [], []
    variances = inputs.sample.variance.T if inputs.several else [inputs.sample.uncertainty]
    for task, variance, positive in zip(
        inputs.tasks(), variances, inputs.counts_of_tasks(), strict=True
    ):
        first, second, kept = label_moments(positive, inputs.counts.sum(axis=1))
        mean = task.mean[kept]
        errors.append(squared_error(first, second, mean))
        said.append(inputs.factor * variance[kept])
        means.append(mean)
    return control_estimates(
        errors,
        said,
        means,
        np.unique(inputs.units[kept], return_inverse=True)[1],
        random_state=inputs.random_state,
        confidence_level=inputs.level,
    )


def numbers_of_bins(n_bins: int | None, n_samples: int) -> tuple[int, int]:
    """Return the bins of the corrected TECE, by default one for 20 inputs, and those of EECE.

    Raises
    ------
    ValueError
        If ``n_bins`` is not an integer >= 1, or bins would have fewer than two of the inputs.

    Examples
    --------
    >>> [numbers_of_bins(None, n) for n in (15, 300, 10_000)]
    [(1, 1), (15, 30), (50, 100)]
    """
    if n_bins is None:
        return min(50, max(1, n_samples // 20)), min(100, max(1, n_samples // 10))
    n_bins = check_positive_integer(n_bins, name="n_bins")
    if n_bins > max(1, n_samples // 2):
        raise ValueError(
            f"n_bins must be at most {max(1, n_samples // 2)}, two inputs in each bin, for "
            f"{n_samples} inputs; got {n_bins}"
        )
    return n_bins, 2 * n_bins


def _mean(
    values: np.ndarray, level: float, groups: np.ndarray | None, *, most: float = math.inf
) -> Estimate:
    """Return the mean of values in [0, most]; of one group the interval is all that can be."""
    groups = np.arange(len(values)) if groups is None else groups
    if groups.max() < 1:
        return Estimate(float(values.mean()), math.nan, 0.0, most, level)
    found = mean_of_groups(values, groups, level, least=0.0)
    return dataclasses.replace(found, ci_high=min(found.ci_high, most))


def _accuracy(right: np.ndarray, level: float, groups: np.ndarray | None) -> Estimate:
    """Return the share of predictions that are right, with Wilson's interval, or that of groups."""
    value, n = float(right.mean()), len(right)
    if groups is not None and 0 < value < 1:
        return _mean(right.astype(np.float64), level, groups, most=1.0)
    if groups is not None:
        # Of groups that are all right, one more may be wrong.
        n = int(groups.max()) + 1
    low, high = wilson_interval(value, n, level)
    return Estimate(value, math.sqrt(value * (1 - value) / n), float(low), float(high), level)


def _warnings(inputs: Evaluated, found: dict[str, Any]) -> list[str]:
    said = []
    rows, counts = inputs.sample.hypotheses, inputs.counts
    shares = {
        name: control["share"].estimate for name, control in found.get("controls", {}).items()
    }
    if 2 / 3 < shares.get("product", math.nan) < 3 / 2:
        slope = found["controls"]["product"]["slope"].estimate
        said.append(
            f"Whoever reports Δ(1 − Δ), and knows nothing but Δ, has a share of "
            f"{100 * shares['product']:.0f} % and a slope of {slope:.1f} here: a share near 100 % "
            f"says little; look at the slope, and at the errors kept."
        )
    if counts is not None:
        n, n_kept = len(counts), int(np.count_nonzero(counts.sum(axis=1) >= 2))
        if "second_order" not in found and rows.shape[1] > 1:
            said.append(
                f"Only {n_kept} inputs have two labels or more; the size of the uncertainty takes "
                f"{LEAST_SAMPLES}."
            )
        elif n_kept < n:
            said.append(f"{n - n_kept:,} inputs with fewer than two labels say nothing of size.")
        if any(stopping_fault(of_class, counts.sum(axis=1)) is not None for of_class in counts.T):
            said.append(FOLLOWING_LABELS)
    return said


def _warnings_of_two(inputs: Evaluated, found: dict[str, Any]) -> list[str]:
    said = []
    sample, n = inputs.sample, len(inputs.sample.y)
    if inputs.groups is not None:
        said.append(
            "EECE and its noise do not allow for the groups, and tests that cannot are left out."
        )
    n_rare = int(min(sample.y.sum(), n - sample.y.sum()))
    rare = int(sample.y.sum() <= n / 2)
    if n_rare == 0:
        said.append(
            f"All labels are {1 - rare}: how often they would be {rare} is not in the data."
        )
    elif n_rare < 30 and n >= LEAST_SAMPLES:
        said.append(f"Only {n_rare} inputs have the label {rare}: all intervals are rough.")
    if inputs.counts is not None:
        kept = inputs.counts.sum(axis=1) >= 2
        if selection_fault(kept, sample.mean, sample.variance) is not None:
            said.append("Inputs with fewer than two labels are unlike those that are judged.")
    eece: EECEParts | None = found.get("eece")
    if eece is not None:
        n_bins = len(eece.bins.count)
        if n_bins > n / 5 and sample.variance.mean() > 0:
            said.append(
                f"EECE has {n_bins:,} bins for {n:,} inputs: its W is near 0 by construction, "
                f"and it is noise."
            )
    return said


def _warnings_of_classes(inputs: Evaluated, names: tuple[str, ...]) -> list[str]:
    said = []
    of_class = np.bincount(inputs.sample.y, minlength=len(names))
    absent = [names[c] for c in np.flatnonzero(of_class == 0)]
    rare = [names[c] for c in np.flatnonzero((of_class > 0) & (of_class < 30))]
    if absent:
        said.append(f"No input has the label {_few(absent)}.")
    if rare and len(inputs.sample.y) >= LEAST_SAMPLES:
        said.append(f"Fewer than 30 inputs have the label {_few(rare)}: its interval is rough.")
    return said


def _few(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return shown if len(names) <= 4 else f"{shown} or {len(names) - 4} others"
