"""Corrected errors of several tasks that share their samples, and comparisons of methods."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._bins import Bins
from epistemic_calibration.metrics._interval import detectable, invert
from epistemic_calibration.metrics._validation import (
    BLOCK_SIZE,
    check_bins,
    check_fraction,
    check_labels,
    check_positive_integer,
    check_probabilities,
)
from epistemic_calibration.metrics.corrected import CorrectedError, corrected_over_bins


@dataclass(frozen=True)
class ErrorDifference:
    """The difference of two corrected errors on the same samples.

    Attributes
    ----------
    estimate : float
        First less second: negative where the first errs less.
    standard_error : float
    ci_low, ci_high : float
    p_value : float in [0, 1]
        Two-sided, of no difference; not adjusted for other comparisons.
    confidence_level : float
    """

    estimate: float
    standard_error: float
    ci_low: float
    ci_high: float
    p_value: float
    confidence_level: float


def mean_corrected_error(
    y_true: Sequence[ArrayLike],
    predictions: Sequence[ArrayLike],
    bins: Sequence[ArrayLike],
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 499,
    random_state: int = 0,
) -> CorrectedError:
    """Return the mean over tasks of the corrected error, where tasks share their samples.

    One-vs-all tasks have the same images, so their errors are not independent. The standard
    error is that of a wild bootstrap with the image as cluster: in every bin e is replaced
    by its shrunken mean plus ± its residual, the sign drawn once per image for all tasks.
    Drawing images with replacement would be wrong: repeated images look like error.

    Parameters
    ----------
    y_true, predictions, bins : sequences over tasks, of arrays of shape (n_samples,)
        Labels in {0, 1}, mean predictions Δ in [0, 1], and bins as returned by
        :func:`assign_bins`. Sample n of every task is the same image.
    confidence_level : float in (0, 1), default 0.95
    n_resamples : int >= 2, default 499
    random_state : int, default 0
        Seed of the signs.

    Returns
    -------
    CorrectedError
        ``plug_in``, ``noise_floor`` and ``dropped_mass`` are means over tasks, ``n_bins``
        is the sum over tasks.

    Raises
    ------
    ValueError
        If the tasks differ in their number of samples, or as in
        :func:`corrected_epistemic_calibration_error`.

    See Also
    --------
    compare_mean_corrected_errors : the same for differences of methods.

    Examples
    --------
    A task and its complement are one task: the standard error is that of either alone.

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> y, mean, bins = np.arange(100) % 2, np.full(100, 0.25), np.zeros(100, dtype=int)
    >>> alone = metrics.mean_corrected_error([y], [mean], [bins])
    >>> both = metrics.mean_corrected_error([y, 1 - y], [mean, 1 - mean], [bins, bins])
    >>> round(both.estimate, 4), round(both.standard_error / alone.standard_error, 4)
    (0.06, 1.0)
    """
    from scipy.stats import norm

    level = check_fraction(confidence_level, name="confidence_level")
    n_resamples = check_positive_integer(n_resamples, name="n_resamples", minimum=2)
    tasks = _check_tasks(y_true, predictions, bins)
    parts = [corrected_over_bins(*task, level) for task in tasks]
    estimate = float(np.mean([part.estimate for part in parts]))

    models = [_WildTask(*task) for task in tasks]
    centres = [(model.shrunken, 0.0) for model in models]
    n_samples = len(tasks[0][0])
    at_truth, at_zero = _wild_means(models, centres, n_samples, n_resamples, random_state)
    standard_error = float(at_truth.std(ddof=1))
    variance_at_zero = float(at_zero.var(ddof=1))
    truth = float(np.mean([model.truth for model in models]))
    slope = max(0.0, standard_error**2 - variance_at_zero) / truth if truth > 0 else 0.0
    z = norm.ppf(0.5 + level / 2)
    ci_low, ci_high = invert(estimate, variance_at_zero, slope, z)
    return CorrectedError(
        estimate=estimate,
        standard_error=standard_error,
        ci_low=ci_low,
        ci_high=ci_high,
        noise_floor=float(np.mean([part.noise_floor for part in parts])),
        minimum_detectable=detectable(variance_at_zero, slope, level),
        plug_in=float(np.mean([part.plug_in for part in parts])),
        dropped_mass=float(np.mean([part.dropped_mass for part in parts])),
        n_bins=sum(part.n_bins for part in parts),
        confidence_level=level,
    )


def compare_mean_corrected_errors(
    y_true: Sequence[ArrayLike],
    predictions: Mapping[str, Sequence[ArrayLike]],
    bins: Mapping[str, Sequence[ArrayLike]],
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 1999,
    random_state: int = 0,
) -> dict[tuple[str, str], ErrorDifference]:
    """Compare the mean corrected errors of methods on the same tasks and samples.

    The standard error of a difference is that of the same wild bootstrap as in
    :func:`mean_corrected_error`, with the same signs for all methods: what an image does to
    both cancels, so that methods can differ whose own intervals overlap.

    Parameters
    ----------
    y_true : sequence over tasks, of arrays of shape (n_samples,)
    predictions, bins : mapping from method to sequence over tasks
        As in :func:`mean_corrected_error`.
    confidence_level : float in (0, 1), default 0.95
    n_resamples : int >= 2, default 1999
    random_state : int, default 0
        Seed of the signs.

    Returns
    -------
    dict
        By pair of methods, in the order of ``predictions``. Intervals and p-values take
        the difference as normal.

    Raises
    ------
    ValueError
        If methods differ between ``predictions`` and ``bins``, or as in
        :func:`mean_corrected_error`.

    See Also
    --------
    holm_correction : for the p-values of all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> y, bins = np.arange(100) % 2, np.zeros(100, dtype=int)
    >>> means = {"good": [np.full(100, 0.5)], "bad": [np.full(100, 0.1)]}
    >>> pairs = metrics.compare_mean_corrected_errors([y], means, {"good": [bins], "bad": [bins]})
    >>> round(pairs["good", "bad"].estimate, 4), pairs["good", "bad"].p_value < 0.01
    (-0.16, True)
    """
    from scipy.stats import norm

    level = check_fraction(confidence_level, name="confidence_level")
    n_resamples = check_positive_integer(n_resamples, name="n_resamples", minimum=2)
    if list(predictions) != list(bins):
        raise ValueError(
            f"predictions and bins must have the same methods, got {list(predictions)} and "
            f"{list(bins)}"
        )
    estimates, replicates = {}, {}
    for method in predictions:
        tasks = _check_tasks(y_true, predictions[method], bins[method])
        models = [_WildTask(*task) for task in tasks]
        estimates[method] = np.mean([corrected_over_bins(*task, level).estimate for task in tasks])
        # Shrinking the errors of both would shrink their difference, in which the noise of the
        # labels cancels. Not to shrink them is cautious where neither errs.
        centres = [(model.bins.error,) for model in models]
        n_samples = len(tasks[0][0])
        (replicates[method],) = _wild_means(models, centres, n_samples, n_resamples, random_state)
    z = norm.ppf(0.5 + level / 2)
    differences = {}
    for first, second in itertools.combinations(predictions, 2):
        estimate = float(estimates[first] - estimates[second])
        standard_error = float((replicates[first] - replicates[second]).std(ddof=1))
        if standard_error > 0:
            p_value = 2 * norm.sf(abs(estimate) / standard_error)
        else:
            # Nothing is random, as between methods with the same predictions.
            p_value = float(estimate == 0)
        differences[first, second] = ErrorDifference(
            estimate=estimate,
            standard_error=standard_error,
            ci_low=float(estimate - z * standard_error),
            ci_high=float(estimate + z * standard_error),
            p_value=float(p_value),
            confidence_level=level,
        )
    return differences


def _check_tasks(
    y_true: Sequence[ArrayLike], predictions: Sequence[ArrayLike], bins: Sequence[ArrayLike]
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    if not len(y_true) == len(predictions) == len(bins) > 0:
        raise ValueError(
            "y_true, predictions and bins must have one array for each of the same tasks, got "
            f"{len(y_true)}, {len(predictions)} and {len(bins)}"
        )
    n_samples = len(y_true[0])
    tasks = []
    for labels, prediction, partition in zip(y_true, predictions, bins, strict=True):
        y = check_labels(labels)
        if len(y) != n_samples:
            raise ValueError(f"y_true has tasks of {n_samples} and of {len(y)} samples")
        p = check_probabilities(prediction, name="predictions", n_samples=n_samples)
        tasks.append((y, p, check_bins(partition, n_samples=n_samples)))
    return tasks


class _WildTask:
    """Wild bootstrap of the corrected error of one task."""

    def __init__(self, y: np.ndarray, mean: np.ndarray, labels: np.ndarray) -> None:
        bins = Bins(y, mean, labels)
        self.order = np.argsort(labels, kind="stable")
        self.order = self.order[bins.used[labels[self.order]]]
        ordered = labels[self.order]
        self.starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        position = np.repeat(np.arange(len(bins.n)), bins.n)
        error = (y - mean)[self.order]
        # Residuals around an estimated mean are too small by this factor.
        residual = (error - bins.error[position]) * np.sqrt(bins.n / (bins.n - 1))[position]
        least = np.sqrt(bins.least_variance)[position]
        self.residual = np.copysign(np.maximum(np.abs(residual), least), residual)
        self.residual_squares = np.add.reduceat(self.residual**2, self.starts)
        self.bins = bins
        self.shrunken = np.sign(bins.error) * np.sqrt(np.maximum(bins.squared_error, 0))
        self.truth = float(bins.w @ np.maximum(bins.squared_error, 0))

    def noise(self, signs: np.ndarray) -> np.ndarray:
        return np.add.reduceat(signs[:, self.order] * self.residual, self.starts, axis=1)

    def statistic(self, noise: np.ndarray, centre: np.ndarray | float) -> np.ndarray:
        b = self.bins
        # Σ_{i≠k} (c + ε_i)(c + ε_k) with ε² fixed by the random signs.
        pairs = b.pairs * np.square(centre) + 2 * (b.n - 1) * centre * noise
        return (pairs + noise**2 - self.residual_squares) @ (b.w / b.pairs)


def _wild_means(
    models: Sequence[_WildTask],
    centres: Sequence[Sequence[np.ndarray | float]],
    n_samples: int,
    n_resamples: int,
    random_state: int,
) -> np.ndarray:
    """Return resampled means over tasks, one row for each of the centres of a task.

    Centres are errors of a task's bins. The signs depend on the seed and the numbers of
    samples and resamples alone.
    """
    generator = np.random.default_rng(random_state)
    means = np.zeros((len(centres[0]), n_resamples))
    step = max(1, BLOCK_SIZE // n_samples)
    for start in range(0, n_resamples, step):
        block = slice(start, min(start + step, n_resamples))
        signs = generator.integers(0, 2, (block.stop - start, n_samples), dtype=np.int8)
        signs = 2.0 * signs - 1
        for model, of_task in zip(models, centres, strict=True):
            noise = model.noise(signs)
            for row, centre in zip(means, of_task, strict=True):
                row[block] += model.statistic(noise, centre) / len(models)
    return means
