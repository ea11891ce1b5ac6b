"""Epistemic calibration of several classes: of the predicted one, and of all jointly.

Labels are 0, ..., n_classes − 1 and hypotheses (n_samples, n_hypotheses, n_classes); Δ is their
mean, a vector for each input. Canonical calibration implies that of the predicted class and
of each class; neither implies the other or canonical calibration (Vaicenavicius et al., 2019).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._canonical import (
    canonical_flip_test,
    canonical_over_bins,
    canonical_redraw_test,
)
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._groups import distinct_inputs, groups_of_samples
from epistemic_calibration.metrics._resolution import refined
from epistemic_calibration.metrics._sample import Sample
from epistemic_calibration.metrics._validation import (
    check_bins,
    check_fraction,
    check_positive_integer,
)
from epistemic_calibration.metrics._within_bins import NO_GAIN, gain_of_classes
from epistemic_calibration.metrics.binning import Binning, assign_bins
from epistemic_calibration.metrics.calibration_tests import HypothesisTest
from epistemic_calibration.metrics.class_binning import class_bins
from epistemic_calibration.metrics.corrected import (
    CorrectedError,
    corrected_epistemic_calibration_error,
    corrected_of_choice,
)


class TopLabelTask(NamedTuple):
    """Whether the predicted class is right, as a binary task; one entry for each sample."""

    y_true: np.ndarray  # 1 where the label is the predicted class
    hypotheses: np.ndarray  # probability of the predicted class, (n_samples, n_hypotheses)
    predicted: np.ndarray  # the class of largest Δ, the lowest of several
    bins: np.ndarray  # within the predicted classes


def top_label_task(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    n_bins: int = 50,
    binning: Binning = "nested",
    random_state: int = 0,
    bins: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> TopLabelTask:
    """Return whether the predicted class is right, as a task of which binary metrics can be had.

    Parameters
    ----------
    y_true, hypotheses
        As in :func:`classwise_epistemic_calibration_error`.
    n_bins, binning, random_state
        As in :func:`assign_bins`. Every predicted class has ``n_bins``, as far as there are 20 of
        its inputs for each, or else 8, which tell spreads apart, as far as there are 10; and
        no less than its share of ``n_bins`` in all.
    bins : array-like of int, shape (n_samples,), optional
        Bins made before, which must not depend on labels; they are divided by predicted class.
    groups : array-like of shape (n_samples,), optional
        As in :func:`corrected_epistemic_calibration_error`: bins are made of what is not a copy.

    References
    ----------
    Gupta and Ramdas, 2021, "Top-label calibration and multiclass-to-binary reductions",
    arXiv 2107.08353.

    Examples
    --------
    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> hypotheses = np.repeat([[[0.5, 0.25, 0.25]], [[0.25, 0.25, 0.5]]], 100, axis=0)
    >>> task = metrics.top_label_task(np.repeat([0, 2], 100), hypotheses)
    >>> task.predicted[[0, 199]], task.bins[[0, 199]], task.y_true[[0, 199]]
    (array([0, 2]), array([0, 1]), array([1, 1]))
    >>> metrics.epistemic_calibration_test(task.y_true, task.hypotheses, bins=task.bins).p_value
    0.001
    """
    sample = ClassSample(y_true, hypotheses)
    n_samples, predicted = len(sample.y), sample.top
    rows = np.take_along_axis(sample.hypotheses, predicted[:, None, None], axis=2)[:, :, 0]
    n_bins = check_positive_integer(n_bins, name="n_bins")
    if bins is None:
        first, copy = distinct_inputs(sample.hypotheses, groups_of_samples(groups, n_samples))
        of_class = np.bincount(predicted[first])
        share = np.round(n_bins * of_class / of_class.sum()).astype(int)
        most = np.maximum(np.minimum(n_bins, of_class // 20), np.minimum(8, of_class // 10))
        share = np.maximum(np.maximum(share, np.minimum(n_bins, most)), 1)
        inputs, of_input = rows[first], predicted[first]
        labels = np.empty(len(inputs), dtype=np.intp)
        for c in np.unique(of_input):
            inside = of_input == c
            labels[inside] = assign_bins(
                inputs[inside], n_bins=int(share[c]), binning=binning, random_state=random_state
            )
        labels = labels[copy]
    else:
        labels = check_bins(bins, n_samples=n_samples)
    labels = np.unique(predicted * (labels.max() + 1) + labels, return_inverse=True)[1]
    return TopLabelTask((sample.y == predicted).astype(np.intp), rows, predicted, labels)


def top_label_epistemic_calibration_error(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    n_bins: int = 50,
    binning: Binning = "nested",
    random_state: int = 0,
    bins: ArrayLike | None = None,
    adaptive: bool = True,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> CorrectedError:
    """Return a corrected estimate of the TECE of the predicted class, given which it is.

    With k the class of largest Δ, it estimates E[(P(Y = k | Π) − Δ_k)²] over bins within every
    predicted class, so that classes predicted with too much confidence do not make up for
    others predicted with too little.

    Parameters as in :func:`top_label_task` and :func:`corrected_epistemic_calibration_error`,
    errors as in :func:`classwise_epistemic_calibration_error`. With ``adaptive``, ``nested`` bins
    may also give way to those of all predicted classes together.

    Examples
    --------
    Class 0 is right more often than 0.6, class 1 less often by as much.

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> hypotheses = np.repeat([[[0.6, 0.2, 0.2]], [[0.2, 0.6, 0.2]]], 1000, axis=0)
    >>> labels = np.repeat([0, 1, 1, 2], [800, 200, 400, 600])
    >>> error = metrics.top_label_epistemic_calibration_error(labels, hypotheses)
    >>> error.ci_low < 0.2**2 < error.ci_high, error.n_bins
    (True, 2)
    """
    task = top_label_task(
        y_true,
        hypotheses,
        n_bins=n_bins,
        binning=binning,
        random_state=random_state,
        bins=bins,
        groups=groups,
    )
    level = check_fraction(confidence_level, name="confidence_level")
    if adaptive and bins is None and groups is None and binning == "nested":
        sample = Sample(task.y_true, task.hypotheses)
        together = sample.bins(n_bins=n_bins, binning="nested", random_state=random_state)
        others = [(task.predicted, together)]
        _, labels, n_looked_at = refined(sample, task.predicted, task.bins, others)
        return corrected_of_choice(sample, labels, level, n_looked_at)
    return corrected_epistemic_calibration_error(
        task.y_true,
        task.hypotheses,
        bins=task.bins,
        groups=groups,
        confidence_level=confidence_level,
    )


def canonical_epistemic_calibration_error(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    n_bins: int = 50,
    random_state: int = 0,
    bins: ArrayLike | None = None,
    adaptive: bool = True,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> CorrectedError:
    """Return a corrected estimate of the canonical TECE, E‖E[e | Π]‖² with e = onehot(y) − Δ.

    In a bin, (‖Σe‖² − Σ‖e‖²)/(n(n−1)) has mean ‖E[e | bin]‖² whatever n is. Its variance, of a
    U-statistic, is 4gᵀΣg/n + 2tr(Σ²)/(n(n−1)), g the mean and Σ the covariance of e in the bin.
    As of one class, bins can hide error but not invent it.

    Bins in a space of many classes are wide. What they hide is E‖δ‖², with δ the deviation of
    E[e | Π] from its mean in the bin; of that, the mean of g·(2e − g) is a lower bound for any g
    of mean 0 in each bin that was fitted on other samples (Perez-Lebel et al., 2023). It is added,
    with g a boosted ridge regression, of 5 folds: temperature and boldness by spread, a bias and
    a slope of each class (vector scaling), and mixing of classes. Where there is nothing to find,
    g is 0.

    Parameters
    ----------
    y_true, hypotheses
        As in :func:`classwise_epistemic_calibration_error`.
    n_bins, random_state
        As in :func:`assign_class_bins`.
    adaptive : bool, default True
        Whether to add what the regression sees within bins, unless these are given.
    bins, groups, confidence_level
        As in :func:`corrected_epistemic_calibration_error`.

    Returns
    -------
    CorrectedError
        A sum over classes: for two, and bins that are given, everything is twice what
        :func:`corrected_epistemic_calibration_error` has for either over the same bins;
        ``minimum_detectable`` is about that, and of errors of the predicted class.

    Raises
    ------
    ValueError
        As in :func:`classwise_epistemic_calibration_error`, if every sample, or group, is alone
        in its bin, or, with ``groups``, if bins times classes are more than 6,000.

    References
    ----------
    Vaicenavicius et al., 2019, "Evaluating model calibration in classification" (canonical
    calibration); Kumar, Liang and Ma, 2019, "Verified uncertainty calibration" (correction);
    Perez-Lebel, Le Morvan and Varoquaux, 2023, "Beyond calibration" (within bins).

    Examples
    --------
    The first class is predicted rightly; 0.125 of the other two should change places.

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> labels = np.repeat([0, 1, 2], [400, 100, 300])
    >>> hypotheses = np.full((800, 5, 3), [0.5, 0.25, 0.25])
    >>> error = metrics.canonical_epistemic_calibration_error(labels, hypotheses)
    >>> error.plug_in
    0.03125
    >>> error.ci_low < 2 * 0.125**2 < error.ci_high
    True
    """
    sample = ClassSample(y_true, hypotheses)
    level = check_fraction(confidence_level, name="confidence_level")
    of_samples = groups_of_samples(groups, len(sample.y))
    labels = class_bins(sample, n_bins, random_state, given=bins, groups=of_samples)
    gain = NO_GAIN
    if adaptive and bins is None:
        gain = gain_of_classes(sample, labels, of_samples, random_state)
    return canonical_over_bins(sample, labels, level, of_samples, gain)


def canonical_epistemic_calibration_test(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    n_bins: int = 50,
    random_state: int = 0,
    bins: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_resamples: int = 999,
) -> HypothesisTest:
    """Test that P(Y | Π) = Δ, for all classes jointly.

    The statistic is the corrected canonical error; labels are drawn anew from Categorical(Δ), so
    that the p-value is exact for any number of samples, classes and bins. With ``groups``, signs
    are drawn instead as in :func:`epistemic_calibration_test`, one for all bins and classes.

    Parameters as in :func:`canonical_epistemic_calibration_error` and
    :func:`epistemic_calibration_test`, errors as in both. Fewer bins find errors of the mean in
    fewer samples.

    References
    ----------
    Vaicenavicius et al., 2019, "Evaluating model calibration in classification"; Widmann et
    al., 2019, "Calibration tests in multi-class classification".

    Examples
    --------
    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> hypotheses = np.full((90, 2, 3), 1 / 3)
    >>> metrics.canonical_epistemic_calibration_test(np.arange(90) % 3, hypotheses).p_value
    1.0
    >>> metrics.canonical_epistemic_calibration_test(np.zeros(90), hypotheses).p_value
    0.001
    """
    sample = ClassSample(y_true, hypotheses)
    n_resamples = check_positive_integer(n_resamples, name="n_resamples")
    of_samples = groups_of_samples(groups, len(sample.y))
    labels = class_bins(sample, n_bins, random_state, given=bins, groups=of_samples)
    if of_samples is not None:
        return canonical_flip_test(sample, labels, of_samples, n_resamples, random_state)
    return canonical_redraw_test(sample, labels, n_resamples, random_state)
