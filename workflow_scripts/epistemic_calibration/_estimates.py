"""The numbers of an `Evaluation`, of two classes and of several, and what weakens them."""

from __future__ import annotations

import dataclasses
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration.metrics import CorrectedError, EECEParts, Estimate, Sample
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._classwise import worst_class
from epistemic_calibration.metrics._groups import distinct_inputs, nested_bins_of_groups
from epistemic_calibration.metrics._label_counts import label_moments
from epistemic_calibration.metrics._means import mean_of_groups, ratio_of_means
from epistemic_calibration.metrics._validation import check_positive_integer
from epistemic_calibration.metrics.controls import control_estimates
from epistemic_calibration.metrics.label_collection import selection_fault, stopping_fault
from epistemic_calibration.metrics.law_test import can_reject
from epistemic_calibration.metrics.ranking import Kind, rank_sample, uncertainty_of

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

    Attributes
    ----------
    sample : Sample or ClassSample
    prediction : ndarray of shape (n_samples[, n_classes])
        The predictor's own, or the mean of the hypotheses.
    counts : ndarray of int, shape (n_samples, n_classes), or None
        Labels of each class that an input has.
    groups : ndarray of int, shape (n_samples,), or None
        Groups 0, 1, ....
    ranked_by : ndarray of shape (n_samples,), or None
        Uncertainty of another kind than the variance.
    """

    sample: Any
    prediction: np.ndarray
    counts: np.ndarray | None
    groups: np.ndarray | None
    exchangeable: bool
    kind: Kind
    ranked_by: np.ndarray | None
    level: float
    random_state: int

    @property
    def has_own_prediction(self) -> bool:
        """Whether what is judged is not the mean of the hypotheses."""
        return self.prediction is not self.sample.mean

    @property
    def clusters(self) -> np.ndarray:
        return np.arange(len(self.sample.y)) if self.groups is None else self.groups

    @property
    def n_distinct(self) -> int:
        """Number of inputs, of which copies in a group are one: bins are of them."""
        first, _ = distinct_inputs(self.sample.hypotheses, self.groups)
        return len(np.arange(len(self.sample.y))[first])

    @property
    def are_draws(self) -> bool:
        """Whether EU is of draws, so that it is smaller than the error of their mean."""
        return self.exchangeable and getattr(self.sample, "reported", None) is None

    @property
    def factor(self) -> float:
        """c_H."""
        h = self.sample.hypotheses.shape[1]
        return metrics.finite_draws_factor(h) if self.are_draws and h > 1 else 1.0

    @property
    def reports(self) -> bool:
        """Whether there is an uncertainty whose size can be judged."""
        several = self.sample.hypotheses.shape[1] > 1
        return several or getattr(self.sample, "reported", None) is not None

    @property
    def ranking_key(self) -> np.ndarray:
        """The uncertainty that orders the inputs."""
        if self.ranked_by is not None:
            return self.ranked_by
        if self.kind == "variance" and isinstance(self.sample, Sample):
            return self.sample.uncertainty
        return uncertainty_of(self.sample.hypotheses, self.kind)

    @property
    def enough_labels(self) -> bool:
        if self.counts is None or not self.reports:
            return False
        kept = self.counts.sum(axis=1) >= 2
        return len(np.unique(self.clusters[kept])) >= LEAST_SAMPLES


def two_classes(inputs: Evaluated, n_bins: int | None) -> dict[str, Any]:
    """Return the attributes of an `Evaluation` of labels 0 and 1."""
    sample, own, groups, level = inputs.sample, inputs.prediction, inputs.groups, inputs.level
    n_groups, n_units = units_of(groups, len(sample))
    bins = numbers_of_bins(n_bins, inputs.n_distinct)
    seed = {"random_state": inputs.random_state}
    found: dict[str, Any] = {"tests": {}}
    judged = sample
    if inputs.has_own_prediction:
        judged = Sample(
            sample.y,
            sample.hypotheses,
            epistemic_uncertainty=sample.reported,
            prediction=own,
        )
    if n_units >= LEAST_SAMPLES:
        split = metrics.split_epistemic_calibration_error(
            judged, n_bins=bins[0], confidence_level=level, groups=groups, **seed
        )
        n_mean_bins = min(10, max(1, inputs.n_distinct // 10))
        found |= {
            "tece": split.total,
            "mean_miscalibration": split.mean_miscalibration,
            "epistemic_dependence": split.epistemic_dependence,
            "eece": metrics.decompose_eece(sample, n_bins=bins[1], **seed),
            "tests": {
                "epistemic_calibration": metrics.epistemic_calibration_test(
                    judged, n_bins=bins[0], groups=groups, **seed
                ),
                "mean_calibration": metrics.mean_calibration_test(
                    judged, n_bins=n_mean_bins, groups=groups, **seed
                ),
            },
        }
        if inputs.reports and groups is None:
            found["tests"]["epistemic_independence"] = metrics.epistemic_independence_test(
                judged, **seed
            )
    if inputs.enough_labels:
        counts = inputs.counts[:, 1], inputs.counts.sum(axis=1)
        said = {"exchangeable": inputs.exchangeable}
        n_hypotheses = sample.hypotheses.shape[1]
        with warnings.catch_warnings():
            # Among the warnings below.
            warnings.simplefilter("ignore", metrics.LabelCollectionWarning)
            found["second_order"] = metrics.second_order_error(
                *counts,
                sample.hypotheses,
                epistemic_uncertainty=sample.reported,
                n_bins=bins[0],
                confidence_level=level,
                groups=groups,
                **said,
                **seed,
            )
            if sample.reported is None and groups is None and can_reject(n_hypotheses, **said):
                found["tests"]["second_order"] = metrics.second_order_test(
                    *counts, sample.hypotheses, **said, **seed
                )
    found |= _of_uncertainty(
        inputs, (sample.y - sample.mean) ** 2, inputs.factor * sample.uncertainty, found
    )
    return found | {
        "n_groups": n_groups,
        "class_shares": (float(1 - sample.y.mean()), float(sample.y.mean())),
        "accuracy": accuracy_of((own > 0.5) == (sample.y == 1), level, groups),
        "confidence": float(np.maximum(own, 1 - own).mean()),
        "brier": mean_of((sample.y - own) ** 2, level, groups, most=1.0),
        "ece": metrics.expected_calibration_error(sample.y, own, n_bins=ECE_N_BINS),
        "n_bins": bins[0],
        "eece_n_bins": bins[1],
        "warnings": tuple(_warnings(inputs, found) + _warnings_of_two(inputs, found)),
    }


def several_classes(inputs: Evaluated, names: list[str], n_bins: int | None) -> dict[str, Any]:
    """Return the attributes of an `Evaluation` of three classes or more."""
    sample, groups, level = inputs.sample, inputs.groups, inputs.level
    n, _, n_classes = sample.hypotheses.shape
    n_groups, n_units = units_of(groups, n)
    bins, _ = numbers_of_bins(n_bins, inputs.n_distinct)
    options = {"confidence_level": level, "random_state": inputs.random_state, "groups": groups}
    found: dict[str, Any] = {"tests": {}}
    if n_units >= LEAST_SAMPLES:
        found |= _calibration_of_classes(sample, names, bins, options)
    if inputs.enough_labels:
        with warnings.catch_warnings():
            # Among the warnings below.
            warnings.simplefilter("ignore", metrics.LabelCollectionWarning)
            second = metrics.classwise_second_order_error(
                inputs.counts,
                sample.hypotheses,
                exchangeable=inputs.exchangeable,
                n_bins=bins,
                **options,
            )
        found["second_order"] = second.mean
        found["second_order_of_classes"] = dict(zip(names, second.classes, strict=True))
    brier = np.square(sample.error()).sum(axis=1)
    said = inputs.factor * sample.variance.mean(axis=1)
    found |= _of_uncertainty(inputs, brier / n_classes, said, found)
    shares = np.bincount(sample.y, minlength=n_classes) / n
    predicted = np.take_along_axis(sample.mean, sample.top[:, None], axis=1)
    return found | {
        "n_groups": n_groups,
        "class_shares": tuple(shares.tolist()),
        "accuracy": accuracy_of(sample.top == sample.y, level, groups),
        "confidence": float(predicted.mean()),
        "brier": mean_of(brier, level, groups, most=2.0),
        "n_bins": bins,
        "warnings": tuple(_warnings(inputs, found) + _warnings_of_classes(inputs, names)),
    }


def _calibration_of_classes(
    sample: ClassSample, names: list[str], bins: int, options: dict[str, Any]
) -> dict[str, Any]:
    y, rows, groups, seed = sample.y, sample.hypotheses, options["groups"], options["random_state"]
    of_inputs = {"groups": groups, "random_state": seed}
    each = metrics.classwise_epistemic_calibration_error(y, rows, n_bins=bins, **options)
    top = metrics.top_label_epistemic_calibration_error(y, rows, n_bins=bins, **options)
    task = metrics.top_label_task(y, rows, n_bins=bins, **of_inputs)
    joint = metrics.canonical_epistemic_calibration_error(y, rows, n_bins=bins, **options)
    joint = _at_least(_at_least(joint, top), each.mean, len(names))
    k = int(np.argmax([of_class.estimate for of_class in each.classes]))
    of_worst = Sample((y == k).astype(int), rows[:, :, k])
    if groups is None:
        nested = of_worst.bins(n_bins=bins, binning="nested", random_state=seed)
    else:
        nested = nested_bins_of_groups(of_worst, groups, bins, seed)[1]
    level = options["confidence_level"]
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
                y, rows, n_bins=bins, **of_inputs
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


def _of_uncertainty(
    inputs: Evaluated, brier: np.ndarray, said: np.ndarray, found: dict[str, Any]
) -> dict[str, Any]:
    """Return what is reported, what one label bounds, the controls, and the ranking."""
    sample, level, groups = inputs.sample, inputs.level, inputs.groups
    result: dict[str, Any] = {
        "reducible_at_most": mean_of(brier, level, groups, most=2 / max(2, _n_classes(sample))),
    }
    n_units = units_of(groups, len(brier))[1]
    if inputs.reports:
        reported = result["reported_error"] = mean_of(said, level, groups)
        if n_units >= LEAST_SAMPLES:
            least = ratio_of_means(said, brier, inputs.clusters, level, least=0.0).ci_low
            # TECE is of another predictor than that whose error is bounded.
            at_least = 0.0 if inputs.has_own_prediction else found["tece"].ci_low
            most = reported.ci_high / at_least if at_least > 0 else math.inf
            result["share_bounds"] = (least, most)
    if n_units >= 2 and (inputs.reports or inputs.ranked_by is not None):
        result["ranking"] = rank_sample(
            sample,
            inputs.ranking_key,
            inputs.prediction,
            counts=inputs.counts if inputs.enough_labels else None,
            groups=groups,
            confidence_level=level,
        )
    if inputs.enough_labels:
        result["controls"] = _controls(inputs)
    return result


def _n_classes(sample: Sample | ClassSample) -> int:
    return sample.n_classes if isinstance(sample, ClassSample) else 2


def _controls(inputs: Evaluated) -> dict[str, dict[str, Estimate]]:
    sample, counts = inputs.sample, inputs.counts
    if isinstance(sample, ClassSample):
        tasks = list(zip(counts.T, sample.mean.T, sample.variance.T, strict=True))
    else:
        tasks = [(counts[:, 1], sample.mean, sample.uncertainty)]
    errors, said, means = [], [], []
    for positive, mean, uncertainty in tasks:
        first, second, kept = label_moments(positive, counts.sum(axis=1))
        errors.append((first - mean[kept]) ** 2 + (second - first**2))
        said.append(inputs.factor * uncertainty[kept])
        means.append(mean[kept])
    groups = np.unique(inputs.clusters[kept], return_inverse=True)[1]
    return control_estimates(
        errors,
        said,
        means,
        groups,
        random_state=inputs.random_state,
        confidence_level=inputs.level,
    )


# --- Numbers that both share


def units_of(groups: np.ndarray | None, n_samples: int) -> tuple[int | None, int]:
    """Return the number of groups 0, 1, ..., if any, and of independent units: them, or inputs."""
    if groups is None:
        return None, n_samples
    n_groups = int(groups.max()) + 1
    return n_groups, n_groups


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


def mean_of(
    values: np.ndarray, level: float, groups: np.ndarray | None = None, *, most: float = math.inf
) -> Estimate:
    """Return the mean of values in [0, most]; of one group the interval is all that can be."""
    groups = np.arange(len(values)) if groups is None else groups
    if groups.max() < 1:
        return Estimate(float(values.mean()), math.nan, 0.0, most, level)
    found = mean_of_groups(values, groups, level, least=0.0)
    return dataclasses.replace(found, ci_high=min(found.ci_high, most))


def accuracy_of(right: np.ndarray, level: float, groups: np.ndarray | None = None) -> Estimate:
    """Return the share of predictions that are right, with Wilson's interval, or that of groups."""
    from scipy.stats import binomtest

    if groups is not None:
        # Of groups that are all right, one more may be wrong.
        n_groups = int(groups.max()) + 1
        if not 0 < right.mean() < 1:
            found = accuracy_of(np.full(n_groups, bool(right[0])), level)
            return dataclasses.replace(found, standard_error=0.0)
        return mean_of(right.astype(np.float64), level, groups, most=1.0)
    value = float(right.mean())
    interval = binomtest(int(right.sum()), len(right)).proportion_ci(level, method="wilson")
    standard_error = math.sqrt(value * (1 - value) / len(right))
    return Estimate(value, standard_error, float(interval.low), float(interval.high), level)


# --- Warnings


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
    sample, n = inputs.sample, len(inputs.sample)
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


def _warnings_of_classes(inputs: Evaluated, names: list[str]) -> list[str]:
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
