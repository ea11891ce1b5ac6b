"""Corrected errors of methods on tasks that share their samples, and comparisons of methods.

Samples, and trainings where there are several of a method, are random: each training meets the
same samples. Tasks are fixed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._groups import GroupedBins, groups_of_samples
from epistemic_calibration.metrics._interval import invert, smallest_detectable
from epistemic_calibration.metrics._trainings import Spread, over_trainings, trainings_needed
from epistemic_calibration.metrics._validation import (
    BLOCK_SIZE,
    check_bins,
    check_fraction,
    check_labels_of_tasks,
    check_positive_integer,
    check_probabilities,
    check_tasks,
)
from epistemic_calibration.metrics.corrected import CorrectedError, form_of


@dataclass(frozen=True)
class ErrorDifference:
    """The difference of two corrected errors on the same samples, first less second."""

    estimate: float
    standard_error: float
    ci_low: float
    ci_high: float
    p_value: float  # two-sided, of no difference; not adjusted for other comparisons
    confidence_level: float
    p_value_fixed: float  # the same of these trainings, whatever others would give
    #: Of the t distribution; None where it is the normal: one training of each, or all alike.
    degrees_of_freedom: float | None = None
    #: So many trainings of either would show a difference of this size with a probability of 80 %,
    #: at a level divided by the number of pairs compared. None where more than 100 would be needed
    #: (more samples help), and where there is one training of each.
    trainings_needed: int | None = None


def mean_corrected_error(
    y_true: Sequence[ArrayLike],
    predictions: Sequence[ArrayLike],
    bins: Sequence[ArrayLike],
    *,
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 499,
    random_state: int = 0,
) -> CorrectedError:
    """Return the mean over tasks of the corrected error, where tasks share their samples.

    One-vs-all tasks have the same images, so their errors are not independent. The standard
    error is that of a wild bootstrap with the image as cluster: in every bin e is replaced
    by its shrunken mean plus ± its residual, the sign drawn once per image for all tasks.
    Drawing images with replacement would be wrong: repeated images look like error.

    Of several trainings of a method the mean stands for the error to be expected of a further
    one. Its variance is that of the bootstrap, with the same signs for all trainings, and what
    the estimates of trainings vary beyond it; intervals are of a t distribution. One training is
    fixed: nothing shows what another one would give.

    Parameters
    ----------
    y_true : sequence over tasks, of arrays of shape (n_samples,)
        Labels in {0, 1}. Sample n of every task is the same image.
    predictions, bins : array-like of shape ([n_trainings,] n_tasks, n_samples)
        Mean predictions Δ in [0, 1], and bins as returned by :func:`assign_bins`.
    groups : array-like of shape (n_samples,), optional
        As in :func:`corrected_epistemic_calibration_error`, the same in all tasks. The signs are
        then those of groups, each of its sum of residuals in a bin.
    confidence_level : float in (0, 1), default 0.95
    n_resamples : int >= 2, default 499
    random_state : int, default 0
        Seed of the signs.

    Returns
    -------
    CorrectedError
        ``plug_in``, ``noise_floor`` and ``dropped_mass`` are means over tasks and trainings,
        ``n_bins`` is their sum. ``minimum_detectable`` is of these trainings: that of as many
        independent tasks as would have the variance found.

    Raises
    ------
    ValueError
        If the tasks differ in their number of samples, or as in
        :func:`corrected_epistemic_calibration_error`.

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

    Of three trainings that differ, the interval is of those to come.

    >>> runs = [[np.full(100, p)] for p in (0.2, 0.25, 0.3)]
    >>> several = metrics.mean_corrected_error([y], runs, [[bins]] * 3)
    >>> several.standard_error > alone.standard_error
    True
    """
    from scipy.stats import t as t_distribution

    level = check_fraction(confidence_level, name="confidence_level")
    n_resamples = check_positive_integer(n_resamples, name="n_resamples", minimum=2)
    runs = _check_trainings(y_true, predictions, bins)
    tasks = list(itertools.chain.from_iterable(runs))
    n_samples = len(tasks[0][0])
    groups = groups_of_samples(groups, n_samples)
    forms = [form_of(*task, groups) for task in tasks]
    parts = [form.corrected(level) for form in forms]
    estimates = np.reshape([part.estimate for part in parts], (len(runs), -1)).mean(axis=1)
    estimate = float(estimates.mean())

    models = [_WildTask(*task, groups) for task in tasks]
    centres = [(model.shrunken, 0.0) for model in models]
    at_truth, at_zero = _wild_estimates(models, centres, n_samples, n_resamples, random_state)
    noise = at_truth.mean(axis=0).var(ddof=1)
    variance_at_zero = float(at_zero.mean(axis=0).var(ddof=1))
    truth = float(np.mean([model.truth for model in models]))
    slope = max(0.0, noise - variance_at_zero) / truth if truth > 0 else 0.0
    spread = []
    n_runs = len(runs)
    if n_runs > 1:
        of_runs = _variance_of_noise(at_truth.reshape(n_runs, -1, n_resamples).mean(axis=1))
        spread = [Spread(estimates.var(ddof=1), of_runs, 1 / n_runs, n_runs - 1)]
    variance, degrees_of_freedom = over_trainings(noise, spread)
    ci_low, ci_high = invert(
        estimate,
        variance_at_zero + variance - noise,
        slope,
        t_distribution.ppf(0.5 + level / 2, degrees_of_freedom),
    )
    n_independent = len(tasks)
    if variance_at_zero > 0:
        n_independent = float(at_zero.var(axis=1, ddof=1).mean()) / variance_at_zero
    return CorrectedError(
        estimate=estimate,
        standard_error=float(np.sqrt(variance)),
        ci_low=ci_low,
        ci_high=ci_high,
        noise_floor=float(np.mean([part.noise_floor for part in parts])),
        minimum_detectable=smallest_detectable(
            [form.calibrated for form in forms], level, n_independent
        ),
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
    groups: ArrayLike | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1999,
    random_state: int = 0,
) -> dict[tuple[str, str], ErrorDifference]:
    """Compare the mean corrected errors of methods on the same tasks and samples.

    The standard error of a difference is from the same wild bootstrap as in
    :func:`mean_corrected_error`, with the same signs for all methods: what an image does to
    both cancels, so that methods can differ whose own intervals overlap. What is compared is
    the error that the bins of each method show. The variance is that of resamples around the
    errors seen, which have the noise of the labels too, less twice that around no error.

    Methods of which there are several trainings are compared, not their trainings: the variance
    over trainings of each is added, and p-values are of a t distribution with the degrees of
    freedom of Welch and Satterthwaite.

    Parameters
    ----------
    y_true : sequence over tasks, of arrays of shape (n_samples,)
    predictions, bins : mapping from method to array-like, ([n_trainings,] n_tasks, n_samples)
        The methods may have different numbers of trainings, which are taken as independent of
        those of other methods; where they share what makes them err alike, such as an encoder,
        p-values are too large. Where one method has a single training, its variance over
        trainings is taken to be that of the other; where both have, trainings are fixed.
    groups, confidence_level, n_resamples, random_state
        As in :func:`mean_corrected_error`.

    Returns
    -------
    dict
        By pair of methods, in the order of ``predictions``.

    Errors as in :func:`mean_corrected_error`, and if methods differ between ``predictions`` and
    ``bins``.

    References
    ----------
    Satterthwaite, 1946, "An approximate distribution of estimates of variance components",
    Biometrics Bulletin 2(6).

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
    level = check_fraction(confidence_level, name="confidence_level")
    n_resamples = check_positive_integer(n_resamples, name="n_resamples", minimum=2)
    if list(predictions) != list(bins):
        raise ValueError(
            f"predictions and bins must have the same methods, got {list(predictions)} and "
            f"{list(bins)}"
        )
    found = {}
    for method in predictions:
        runs = _check_trainings(y_true, predictions[method], bins[method])
        n_samples = len(runs[0][0][0])
        of_samples = groups_of_samples(groups, n_samples)
        models = [_WildTask(*task, of_samples) for run in runs for task in run]
        estimates = np.reshape([m.bins.w @ m.bins.squared_error for m in models], (len(runs), -1))
        # Shrinking the errors of both would shrink their difference, in which the noise of the
        # labels cancels.
        centres = [(model.bins.error, 0.0) for model in models]
        wild = _wild_estimates(models, centres, n_samples, n_resamples, random_state)
        wild = wild.reshape(2, len(runs), -1, n_resamples).mean(axis=2)
        found[method] = _Method(estimates.mean(axis=1), *wild.mean(axis=1), *wild)
    pairs = list(itertools.combinations(predictions, 2))
    return {
        (first, second): _difference(found[first], found[second], level, n_pairs=len(pairs))
        for first, second in pairs
    }


class _Method(NamedTuple):
    """Estimates of trainings; resamples of their mean and of each, around its errors and 0."""

    estimates: np.ndarray
    at_error: np.ndarray
    at_zero: np.ndarray
    each_at_error: np.ndarray
    each_at_zero: np.ndarray

    def spread(self, n_alone: int = 0) -> Spread:
        """Return what so many trainings of another method, alone of it, have in common with it."""
        n = len(self.estimates)
        noise = _less_noise(*map(_variance_of_noise, (self.each_at_error, self.each_at_zero)))
        return Spread(self.estimates.var(ddof=1), noise, 1 / n + n_alone, n - 1)


def _difference(first: _Method, second: _Method, level: float, *, n_pairs: int) -> ErrorDifference:
    from scipy.stats import t as t_distribution

    estimate = float(first.estimates.mean() - second.estimates.mean())
    noise = _less_noise(
        (first.at_error - second.at_error).var(ddof=1),
        (first.at_zero - second.at_zero).var(ddof=1),
    )
    several = [method for method in (first, second) if len(method.estimates) > 1]
    spread = [method.spread(n_alone=2 - len(several)) for method in several]
    variance, degrees_of_freedom = over_trainings(noise, spread)

    def p_value(variance: float, degrees_of_freedom: float) -> float:
        if variance == 0:
            # Nothing is random, as between methods with the same predictions.
            return float(estimate == 0)
        z = abs(estimate) / np.sqrt(variance)
        return float(2 * t_distribution.sf(z, degrees_of_freedom))

    half = t_distribution.ppf(0.5 + level / 2, degrees_of_freedom) * np.sqrt(variance)
    return ErrorDifference(
        estimate=estimate,
        standard_error=float(np.sqrt(variance)),
        ci_low=float(estimate - half),
        ci_high=float(estimate + half),
        p_value=p_value(variance, degrees_of_freedom),
        confidence_level=level,
        p_value_fixed=p_value(noise, np.inf),
        degrees_of_freedom=float(degrees_of_freedom) if np.isfinite(degrees_of_freedom) else None,
        trainings_needed=trainings_needed(estimate, noise, spread, 1 - (1 - level) / n_pairs),
    )


def _less_noise(at_error: float, at_zero: float) -> float:
    """Return the variance of a difference from those of resamples around the errors g and 0.

    The difference is εᵀAε + 2bᵀε + constant in the noise ε of the labels, A = Σ ± A_t with
    zeros on its diagonal, and its variance is 4 bᵀVb + 2 tr(AVAV), with V = Cov(ε). Resamples
    around 0 have variance 2 tr(AVAV). Those around g have that, and 4 ĉᵀVĉ where ĉ = b + Aε,
    for g has the noise of the bin's mean: on average 4 bᵀVb + 4 tr(AVAV). So twice the variance
    around 0 is too much; what is left cannot be less than it once.
    """
    return max(at_error - 2 * at_zero, at_zero)


def _variance_of_noise(resamples: np.ndarray) -> float:
    """Return the variance over trainings, the first axis, that the noise of the labels makes."""
    return float((resamples - resamples.mean(axis=1, keepdims=True)).var(axis=0, ddof=1).mean())


_Task = tuple[np.ndarray, np.ndarray, np.ndarray]


def _check_trainings(
    y_true: Sequence[ArrayLike],
    predictions: Sequence[ArrayLike],
    bins: Sequence[ArrayLike],
) -> list[list[_Task]]:
    """Return labels, predictions and bins of every task of every training."""
    if len(predictions) and len(predictions[0]) and np.ndim(predictions[0][0]) == 0:
        return [_check_tasks(y_true, predictions, bins)]
    if len(predictions) != len(bins):
        raise ValueError(
            f"predictions and bins must have the same trainings, got {len(predictions)} and "
            f"{len(bins)}"
        )
    return [_check_tasks(y_true, *run) for run in zip(predictions, bins, strict=True)]


def _check_tasks(
    y_true: Sequence[ArrayLike], predictions: Sequence[ArrayLike], bins: Sequence[ArrayLike]
) -> list[_Task]:
    check_tasks(y_true=y_true, predictions=predictions, bins=bins)
    tasks = []
    labels = check_labels_of_tasks(y_true)
    for y, prediction, partition in zip(labels, predictions, bins, strict=True):
        p = check_probabilities(prediction, name="predictions", n_samples=len(y))
        tasks.append((y, p, check_bins(partition, n_samples=len(y))))
    return tasks


class _WildTask:
    """Wild bootstrap of the corrected error of one task."""

    def __init__(
        self, y: np.ndarray, mean: np.ndarray, labels: np.ndarray, groups: np.ndarray | None
    ) -> None:
        b = GroupedBins(y, mean, labels, np.arange(len(y)) if groups is None else groups)
        self.bins = b
        self.residual_squares = b.of_bins(b.residual**2)
        # How many samples are in other groups than those of the cell.
        self.others = (b.n[b.of_bin] - b.size).astype(np.float64)
        self.alone = bool((b.size == 1).all())
        self.shrunken = np.sign(b.error) * np.sqrt(np.maximum(b.squared_error, 0))
        squares = np.maximum(b.squared_error, 0)
        self.truth = float(b.w @ squares)
        # What the samples of a bin add to the mean beyond others, if they are more than expected.
        self.of_sampling = b.size * (squares - self.truth)[b.of_bin] / b.n.sum()

    def statistics(
        self, signs: np.ndarray, centres: Sequence[np.ndarray | float]
    ) -> list[np.ndarray]:
        """Return the estimate under signs of the groups, for every centre."""
        b = self.bins
        cells = np.take(signs, b.of_group, axis=1)
        sampling = cells @ self.of_sampling
        cells = cells * b.residual
        noise = b.of_bins(cells)
        linear = (b.n - 1) * noise if self.alone else b.of_bins(cells * self.others)
        # Σ (c + ε_i)(c + ε_k) over groups i ≠ k, with ε² fixed by the random signs.
        quadratic = noise**2 - self.residual_squares
        return [
            (b.pairs * np.square(c) + 2 * c * linear + quadratic) @ (b.w / b.pairs)
            + (sampling if np.any(c) else 0)
            for c in centres
        ]


def _wild_estimates(
    models: Sequence[_WildTask],
    centres: Sequence[Sequence[np.ndarray | float]],
    n_samples: int,
    n_resamples: int,
    random_state: int,
) -> np.ndarray:
    """Return resampled estimates, of shape (n_centres, n_tasks, n_resamples).

    Centres are errors of a task's bins. The signs depend on the seed, the numbers of
    samples and resamples, and the groups alone.
    """
    generator = np.random.default_rng(random_state)
    estimates = np.empty((len(centres[0]), len(models), n_resamples))
    step = max(1, BLOCK_SIZE // n_samples)
    for start in range(0, n_resamples, step):
        block = slice(start, min(start + step, n_resamples))
        n_rows = block.stop - start
        n_bits = n_rows * n_samples
        octets = np.frombuffer(generator.bytes(-(-n_bits // 8)), dtype=np.uint8)
        bits = np.unpackbits(octets, count=n_bits).view(np.int8)
        # In bytes: they are gathered anew for every task.
        signs = (2 * bits - 1).reshape(n_rows, n_samples)
        for t, (model, of_task) in enumerate(zip(models, centres, strict=True)):
            estimates[:, t, block] = model.statistics(signs, of_task)
    return estimates
