"""Errors of every class against all others, and their means."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._classes import ClassSample, check_class_hypotheses
from epistemic_calibration.metrics._contributions import contributions
from epistemic_calibration.metrics._groups import distinct_inputs, groups_of_samples
from epistemic_calibration.metrics._interval import interval
from epistemic_calibration.metrics._label_counts import label_moments
from epistemic_calibration.metrics.binning import assign_bins
from epistemic_calibration.metrics.corrected import (
    CorrectedError,
    corrected_epistemic_calibration_error,
    corrected_over_bins,
    form_of,
)
from epistemic_calibration.metrics.law_error import Draws
from epistemic_calibration.metrics.over_tasks import mean_corrected_error
from epistemic_calibration.metrics.second_order import SecondOrderError, summarize

Result = TypeVar("Result", CorrectedError, SecondOrderError)


@dataclass(frozen=True)
class Classwise(Generic[Result]):
    """A result for every class against all others, and for their mean."""

    mean: Result  # its interval allows for classes having the same inputs
    classes: tuple[Result, ...]


def classwise_epistemic_calibration_error(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    n_bins: int = 50,
    random_state: int = 0,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 499,
) -> Classwise[CorrectedError]:
    """Return corrected estimates of the TECE of every class against all others.

    Parameters
    ----------
    y_true : array-like of int, shape (n_samples,)
        Classes 0, ..., n_classes − 1.
    hypotheses : array-like of shape (n_samples, n_hypotheses, n_classes)
        Probabilities of the classes, which add up to 1 within 1e-3 and are normalised.
    n_bins, random_state
        Of each class, as in :func:`assign_bins`; the seed is also that of the mean's interval.
    groups, confidence_level
        As in :func:`corrected_epistemic_calibration_error`.
    n_resamples : int >= 2, default 499
        As in :func:`mean_corrected_error`.

    Returns
    -------
    Classwise of CorrectedError
        The mean over classes, not their sum: for two classes, the error of either.

    Raises
    ------
    ValueError
        If labels are not these classes, hypotheses do not have this shape, are not in [0, 1], or
        do not add up to 1 over the last axis, lengths differ, or as in
        :func:`corrected_epistemic_calibration_error`.

    References
    ----------
    Kull et al., 2019, "Beyond temperature scaling: obtaining well-calibrated multiclass
    probabilities with Dirichlet calibration", arXiv 1910.12656 (class-wise calibration).

    Examples
    --------
    The first class is predicted rightly; 0.125 of the other two should change places.

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> labels = np.repeat([0, 1, 2], [400, 100, 300])
    >>> hypotheses = np.full((800, 5, 3), [0.5, 0.25, 0.25])
    >>> error = metrics.classwise_epistemic_calibration_error(labels, hypotheses)
    >>> [round(of_class.estimate, 3) for of_class in error.classes]
    [-0.0, 0.015, 0.015]
    >>> error.mean.ci_low < 2 * 0.125**2 / 3 < error.mean.ci_high
    True
    """
    sample = ClassSample(y_true, hypotheses)
    of_samples = groups_of_samples(groups, len(sample.y))
    first, copy = distinct_inputs(sample.hypotheses, of_samples)
    options = {"n_bins": n_bins, "binning": "nested", "random_state": random_state}
    partitions = [
        assign_bins(sample.hypotheses[first, :, c], **options)[copy]
        for c in range(sample.n_classes)
    ]
    labels = [(sample.y == c).astype(np.intp) for c in range(sample.n_classes)]
    return Classwise(
        mean=mean_corrected_error(
            labels,
            list(sample.mean.T),
            partitions,
            groups=groups,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            random_state=random_state,
        ),
        classes=tuple(
            corrected_epistemic_calibration_error(
                labels[c],
                sample.hypotheses[:, :, c],
                bins=partitions[c],
                groups=groups,
                confidence_level=confidence_level,
            )
            for c in range(sample.n_classes)
        ),
    )


def worst_class(
    y: np.ndarray,
    mean: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray | None,
    level: float,
    n_classes: int,
) -> CorrectedError:
    """Return the error over checked bins of the class that has the largest of ``n_classes``.

    The interval allows for that (Bonferroni). So far out, the estimate is not normal: without
    groups, the lower end has its skewness, and at least its variance, where predictions are right.
    """
    level = 1 - (1 - level) / n_classes
    found = corrected_over_bins(y, mean, labels, level, groups)
    if groups is not None or found.ci_low == 0:
        return found
    form = form_of(y, mean, labels, None)
    at_zero, (variance, third_cumulant, *_) = form.variance_at_zero, form.calibrated
    slope = (found.standard_error**2 - at_zero) / found.estimate
    low, _ = interval(found.estimate, max(variance, at_zero), slope, level, third_cumulant)
    return dataclasses.replace(found, ci_low=min(low, found.ci_low))


def classwise_second_order_error(
    n_labels: ArrayLike,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    exchangeable: bool = True,
    draws: Draws = "functions",
    n_bins: int = 50,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> Classwise[SecondOrderError]:
    """Return the second-order error of every class against all others, from counts of labels.

    Parameters
    ----------
    n_labels : array-like of int, shape (n_samples, n_classes)
        Labels of each class that an input has; inputs with fewer than two are dropped.
    hypotheses : array-like of shape (n_samples, n_hypotheses, n_classes)
        As in :func:`classwise_epistemic_calibration_error`.
    epistemic_uncertainty : array-like of shape (n_samples, n_classes), optional
        Reported by the method for each class.
    exchangeable, draws, n_bins, groups, random_state, confidence_level
        As in :func:`second_order_error`.

    Returns
    -------
    Classwise of SecondOrderError
        In the mean, ``share`` and ``slope`` are ratios of means over classes.

    Raises
    ------
    ValueError
        If ``n_labels`` are not integers >= 0 of this shape, there are not as many uncertainties
        as classes, or as in :func:`second_order_error` and
        :func:`classwise_epistemic_calibration_error`.

    Examples
    --------
    Three classes, five labels for each of 500 inputs, hypotheses distributed as the truth is:

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> rng = np.random.default_rng(0)
    >>> p, *rows = rng.dirichlet([2, 2, 2], (21, 500))
    >>> hypotheses = np.stack(rows, axis=1)
    >>> result = metrics.classwise_second_order_error(rng.multinomial(5, p), hypotheses)
    >>> len(result.classes), result.mean.gap.ci_low < 0 < result.mean.gap.ci_high
    (3, True)
    """
    rows = check_class_hypotheses(hypotheses)
    n_samples, _, n_classes = rows.shape
    counts = np.asarray(n_labels)
    if counts.shape != (n_samples, n_classes):
        raise ValueError(
            "n_labels must have shape (n_samples, n_classes) as hypotheses have, "
            f"({n_samples}, {n_classes}), got {counts.shape}"
        )
    uncertainty: Sequence[np.ndarray | None] = [None] * n_classes
    if epistemic_uncertainty is not None:
        reported = np.asarray(epistemic_uncertainty)
        if reported.shape != (n_samples, n_classes):
            raise ValueError(
                f"epistemic_uncertainty must have shape ({n_samples}, {n_classes}), one for each "
                f"class, got {reported.shape}"
            )
        uncertainty = list(reported.T)
    tasks = [
        contributions(
            label_moments(counts[:, c], counts.sum(axis=1)),
            rows[:, :, c],
            epistemic_uncertainty=uncertainty[c],
            exchangeable=exchangeable,
            draws=draws,
            n_bins=n_bins,
            random_state=random_state,
        )
        for c in range(n_classes)
    ]
    of_classes = (
        summarize([task], groups=groups, confidence_level=confidence_level) for task in tasks
    )
    return Classwise(
        mean=summarize(tasks, groups=groups, confidence_level=confidence_level),
        classes=tuple(of_classes),
    )
