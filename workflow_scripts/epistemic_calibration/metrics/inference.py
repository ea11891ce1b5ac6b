"""Estimates of the true epistemic calibration error, their uncertainty, and tests.

Throughout, e = y − Δ, and TECE = E[(P(Y = 1 | Π) − Δ)²] = E[(E[e | Π])²], which is what
proposition 1 of the paper leaves of its definition where EU is the variance.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._validation import (
    BLOCK_SIZE,
    check_bins,
    check_fraction,
    check_hypotheses,
    check_labels,
    check_positive_integer,
    check_probabilities,
    check_uncertainty,
    row_blocks,
)
from epistemic_calibration.metrics.binning import (
    Binning,
    assign_bins,
    coarse_bins,
    nested_bins,
    quantile_bins,
    row_moments,
)

#: Probability with which ``minimum_detectable`` is found.
POWER = 0.8


@dataclass(frozen=True)
class CorrectedError:
    """A bias-corrected estimate of TECE or of a part of it.

    Attributes
    ----------
    estimate : float
        Signed: where the truth is 0 it is centred at 0, so it may fall below.
    standard_error : float
    ci_low, ci_high : float
        Confidence interval, within [0, inf).
    noise_floor : float
        What the uncorrected estimate would be on average for a calibrated predictor.
    minimum_detectable : float
        Smallest value, spread evenly over the samples, that a one-sided test at level
        1 − confidence_level finds with probability 0.8.
    plug_in : float
        The uncorrected estimate over the same bins.
    dropped_mass : float
        Fraction of samples that are alone in their bin, which say nothing and are left out.
    n_bins : int
        Bins used.
    confidence_level : float
    """

    estimate: float
    standard_error: float
    ci_low: float
    ci_high: float
    noise_floor: float
    minimum_detectable: float
    plug_in: float
    dropped_mass: float
    n_bins: int
    confidence_level: float


@dataclass(frozen=True)
class ErrorSplit:
    """TECE as mean miscalibration plus epistemic dependence (paper, property 1).

    Attributes
    ----------
    total : CorrectedError
        E[(P(Y = 1 | Π) − Δ)²]
    mean_miscalibration : CorrectedError
        E[(P(Y = 1 | Δ) − Δ)²]
    epistemic_dependence : CorrectedError
        E[Var(P(Y = 1 | Π) | Δ)]: what spread and shape say about Y beyond the mean.
    """

    total: CorrectedError
    mean_miscalibration: CorrectedError
    epistemic_dependence: CorrectedError


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


@dataclass(frozen=True)
class LowerBound:
    """A cross-fitted lower bound of TECE.

    Attributes
    ----------
    estimate : float
        Signed. Its mean is TECE less the mean squared error of the regression.
    standard_error : float
    ci_low : float
        One-sided lower confidence limit of TECE, at least 0.
    confidence_level : float
    """

    estimate: float
    standard_error: float
    ci_low: float
    confidence_level: float


@dataclass(frozen=True)
class TestResult:
    """A hypothesis test.

    Attributes
    ----------
    statistic : float
    p_value : float in [0, 1]
    """

    #: Not a test case, whatever pytest makes of the name.
    __test__ = False

    statistic: float
    p_value: float


def corrected_epistemic_calibration_error(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    n_bins: int = 50,
    binning: Binning = "nested",
    random_state: int = 0,
    bins: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> CorrectedError:
    """Return a bias-corrected estimate of TECE with its uncertainty.

    In a bin of n samples g² − s²/n = [(Σe)² − Σe²] / (n(n−1)) has mean (E[e | bin])²
    whatever n is, where the plug-in g² is too large by s²/n (Kumar et al., 2019, "Verified
    uncertainty calibration"). The weighted mean over bins estimates E[(E[e | bin])²], which
    is at most the TECE of the samples that are not dropped: bins can only hide error.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), labels in {0, 1}
    hypotheses : array-like of shape (n_samples, n_hypotheses), values in [0, 1]
    n_bins, binning, random_state
        As in :func:`assign_bins`. The default bins find errors of the mean and errors that
        go with spread or shape of the row.
    bins : array-like of int, shape (n_samples,), optional
        Bins made before; they must not depend on ``y_true``. Then the three arguments
        above are not used.
    confidence_level : float in (0, 1), default 0.95

    Raises
    ------
    ValueError
        If labels are not 0 and 1, hypotheses are not in [0, 1], lengths differ, the binning
        is unknown, or every sample is alone in its bin.
    """
    data = _Sample(y_true, hypotheses)
    level = check_fraction(confidence_level, name="confidence_level")
    labels = data.bins(n_bins, binning, random_state, bins)
    return _corrected(data.y, data.prediction, labels, level)


def split_epistemic_calibration_error(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    n_bins: int = 50,
    random_state: int = 0,
    confidence_level: float = 0.95,
    bins: ArrayLike | None = None,
) -> ErrorSplit:
    """Return bias-corrected estimates of TECE and of its two parts.

    Over ``nested`` bins (see :func:`assign_bins`), the corrected error of the fine bins is
    the total, that of the coarse bins, which know the mean only, is mean miscalibration;
    the dependence is their difference.

    Parameters and errors as in :func:`corrected_epistemic_calibration_error`; ``bins``, where
    given, are those of ``binning="nested"`` with the same ``n_bins``.

    Raises
    ------
    ValueError
        If ``bins`` has samples of two coarse bins in one.
    """
    data = _Sample(y_true, hypotheses)
    level = check_fraction(confidence_level, name="confidence_level")
    n_bins = check_positive_integer(n_bins, name="n_bins")
    if bins is None:
        coarse, fine = nested_bins(data.hypotheses, n_bins=n_bins, random_state=random_state)
    else:
        coarse, fine = coarse_bins(data.prediction, n_bins), check_bins(bins, n_samples=len(data.y))
        if len(np.unique(np.stack([coarse, fine]), axis=1).T) != len(np.unique(fine)):
            raise ValueError(f"bins are not nested in those of the row mean for n_bins={n_bins}")
    total = _corrected(data.y, data.prediction, fine, level)
    mean = _corrected(data.y, data.prediction, coarse, level)
    dependence = _difference(data.y, data.prediction, coarse, fine, total, mean)
    return ErrorSplit(total, mean, dependence)


def cross_fitted_lower_bound(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    n_folds: int = 5,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> LowerBound:
    """Return a lower bound of TECE that needs no bins.

    The mean of e² − (e − ĝ)², with ĝ a regression of e on the row of hypotheses fitted on
    the other folds (Perez-Lebel et al., 2023, "Beyond calibration"): its mean is
    TECE − E[(ĝ − E[e | Π])²]. ĝ is a ridge regression on splines of the logit of Δ, alone and
    times spread, squared spread and skewness of the row.

    Parameters
    ----------
    y_true, hypotheses, confidence_level
        As in :func:`corrected_epistemic_calibration_error`.
    n_folds : int >= 2, default 5
    random_state : int, default 0
        Seed of the folds.

    Raises
    ------
    ValueError
        As there, or if there are fewer samples than folds, or fewer than 2 folds.
    """
    from scipy.stats import norm
    from sklearn.linear_model import RidgeCV

    data = _Sample(y_true, hypotheses)
    level = check_fraction(confidence_level, name="confidence_level")
    error = data.y - data.prediction
    features = _row_features(data)
    fitted = np.empty_like(error)
    for train, test in _folds(len(error), n_folds, random_state):
        model = RidgeCV(alphas=np.logspace(-2, 4, 19), fit_intercept=False)
        fitted[test] = model.fit(features[train], error[train]).predict(features[test])
    gains = fitted * (2 * error - fitted)
    estimate = float(gains.mean())
    variance = gains.var(ddof=1)
    if data.y.min() == data.y.max():
        noise = _hidden_variance(data.prediction * (1 - data.prediction), len(gains))
        variance = max(variance, np.mean(4 * fitted**2 * noise))
    standard_error = float(np.sqrt(variance / len(gains)))
    return LowerBound(
        estimate=estimate,
        standard_error=standard_error,
        ci_low=max(0.0, float(estimate - norm.ppf(level) * standard_error)),
        confidence_level=level,
    )


def epistemic_calibration_test(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    n_bins: int = 50,
    binning: Binning = "nested",
    random_state: int = 0,
    bins: ArrayLike | None = None,
    n_resamples: int = 999,
) -> TestResult:
    """Test that the predictor is epistemically calibrated (paper, definition 3).

    The statistic is the corrected error over the bins; under the hypothesis the labels are
    Bernoulli(Δ) given the predictions, so they are drawn anew (Vaicenavicius et al., 2019;
    Widmann et al., 2019) and the p-value (1 + #{drawn >= seen}) / (n_resamples + 1) is
    exact for any number of samples and bins.

    Parameters
    ----------
    y_true, hypotheses, n_bins, binning, bins
        As in :func:`corrected_epistemic_calibration_error`.
    random_state : int, default 0
        Seed of the bins and of the labels drawn.
    n_resamples : int >= 1, default 999

    Raises
    ------
    ValueError
        As there, or if ``n_resamples`` is not an integer >= 1.
    """
    data = _Sample(y_true, hypotheses)
    labels = data.bins(n_bins, binning, random_state, bins)
    return _redraw_test(data.y, data.prediction, labels, n_resamples, random_state)


def mean_calibration_test(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    n_bins: int = 10,
    random_state: int = 0,
    n_resamples: int = 999,
) -> TestResult:
    """Test that P(Y = 1 | Δ) = Δ, on quantile bins of Δ.

    As :func:`epistemic_calibration_test`, but the bins know the mean prediction only, and
    ``random_state`` is the seed of the labels drawn.
    """
    data = _Sample(y_true, hypotheses)
    n_bins = check_positive_integer(n_bins, name="n_bins")
    labels = np.unique(quantile_bins(data.prediction, n_bins), return_inverse=True)[1]
    return _redraw_test(data.y, data.prediction, labels, n_resamples, random_state)


def epistemic_independence_test(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    method: Literal["gcm", "score"] = "gcm",
    n_folds: int = 5,
    random_state: int = 0,
) -> TestResult:
    """Test that EU says nothing about Y beyond the mean: Y ⊥ EU | Δ (paper, property 1).

    With x = s − q(Δ), s the square root of EU and q a spline regression, the statistic is
    Rᵀ C⁻¹ R where R = Σ ε·(x, x·(1 − 2Δ)) and C its covariance; the p-value is that of χ²
    with two degrees of freedom, or one where the two components are the same. The second
    component sees an error that pushes predictions towards, or away from, one half, which
    changes sign with Δ.

    Parameters
    ----------
    y_true, hypotheses
        As in :func:`corrected_epistemic_calibration_error`.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        Reported by the method, >= 0; the variance of the hypotheses by default.
    method : {"gcm", "score"}, default "gcm"
        - ``gcm``: generalised covariance measure (Shah & Peters, 2020). ε = y − m(Δ) and x
          are residuals of regressions fitted on the other folds, so the mean prediction
          need not be calibrated.
        - ``score``: ε = y − Δ with variance Δ(1 − Δ), which assumes mean calibration.
    n_folds : int >= 2, default 5
    random_state : int, default 0
        Seed of the folds.

    Returns
    -------
    TestResult
        With statistic 0 and p-value 1 where EU is constant, or all labels are equal.

    Raises
    ------
    ValueError
        As there, or if ``method`` is unknown.
    """
    from scipy.stats import chi2

    data = _Sample(y_true, hypotheses)
    if method not in get_args(Literal["gcm", "score"]):
        raise ValueError(f"method must be 'gcm' or 'score', got {method!r}")
    uncertainty = (
        data.variance
        if epistemic_uncertainty is None
        else check_uncertainty(epistemic_uncertainty, n_samples=len(data.y))
    )
    spread = np.sqrt(uncertainty)
    # What the regressions miss of both passes for dependence: no knot is spared.
    basis = _spline_basis(data.prediction, n_knots=10)
    x, residual = np.empty_like(spread), np.empty_like(spread)
    for train, test in _folds(len(spread), n_folds, random_state):
        targets = np.stack([spread[train], data.y[train]], axis=1)
        coefficients = np.linalg.lstsq(basis[train], targets, rcond=1e-10)[0]
        fitted = basis[test] @ coefficients
        x[test] = spread[test] - fitted[:, 0]
        residual[test] = data.y[test] - fitted[:, 1]
    if min(x.std(), residual.std()) <= 1e-9:
        return TestResult(0.0, 1.0)
    directions = np.stack([x, x * (1 - 2 * data.prediction)], axis=1)
    if method == "score":
        residual = data.y - data.prediction
        squares = data.prediction * (1 - data.prediction)
    else:
        products = directions * residual[:, None]
        squares = residual**2
    score = directions.T @ residual
    covariance = (directions * squares[:, None]).T @ directions
    if method == "gcm":
        covariance -= len(x) * np.outer(products.mean(axis=0), products.mean(axis=0))
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-10 * values[-1]
    if not kept.any():
        return TestResult(0.0, 1.0)
    statistic = float(np.sum((vectors[:, kept].T @ score) ** 2 / values[kept]))
    return TestResult(statistic, float(chi2.sf(statistic, np.count_nonzero(kept))))


def holm_correction(p_values: ArrayLike) -> np.ndarray:
    """Return p-values adjusted for multiple tests (Holm, 1979), in the order given.

    Rejecting where the adjusted value is at most α keeps the probability of any false
    rejection at most α, whatever the dependence of the tests.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,), values in [0, 1]

    Raises
    ------
    ValueError
        If ``p_values`` are not in [0, 1].
    """
    p = check_probabilities(p_values, name="p_values")
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty_like(p)
    result[order] = np.minimum(adjusted, 1)
    return result


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
    by its shrunken mean plus ± its residual, the sign drawn once an image for all tasks.
    Drawing images with replacement would be wrong: repeated images look like error.

    Parameters
    ----------
    y_true, predictions, bins : sequences over tasks, of arrays of shape (n_samples,)
        Labels in {0, 1}, mean predictions Δ in [0, 1], and bins as of
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
    """
    from scipy.stats import norm

    level = check_fraction(confidence_level, name="confidence_level")
    n_resamples = check_positive_integer(n_resamples, name="n_resamples", minimum=2)
    tasks = _check_tasks(y_true, predictions, bins)
    parts = [_corrected(*task, level) for task in tasks]
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
    ci_low, ci_high = _invert(estimate, variance_at_zero, slope, z)
    return CorrectedError(
        estimate=estimate,
        standard_error=standard_error,
        ci_low=ci_low,
        ci_high=ci_high,
        noise_floor=float(np.mean([part.noise_floor for part in parts])),
        minimum_detectable=_detectable(variance_at_zero, slope, level),
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
        estimates[method] = np.mean([_corrected(*task, level).estimate for task in tasks])
        # Shrinking the errors of both would shrink their difference, in which the noise of the
        # labels cancels. Not to shrink them is cautious where neither errs.
        centres = [(model.bins.g,) for model in models]
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


class _Sample:
    """Checked arguments."""

    def __init__(self, y_true: ArrayLike, hypotheses: ArrayLike) -> None:
        self.y = check_labels(y_true)
        self.hypotheses = check_hypotheses(hypotheses, n_samples=len(self.y))
        prediction, self.variance = row_moments(self.hypotheses)
        # The mean of numbers in [0, 1] may leave it by rounding.
        self.prediction = np.clip(prediction, 0, 1)

    def bins(
        self, n_bins: int, binning: Binning, random_state: int, bins: ArrayLike | None
    ) -> np.ndarray:
        if bins is not None:
            return check_bins(bins, n_samples=len(self.y))
        return assign_bins(
            self.hypotheses, n_bins=n_bins, binning=binning, random_state=random_state
        )


def _hidden_variance(noise: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """Return the variance of labels of which n are all the same, and so do not show it.

    It is that of Bernoulli(Δ), or of the largest frequency at which as many labels are the
    same with a probability of 5 % ("rule of three"), whichever is smaller.
    """
    frequency = np.minimum(1 - 0.05 ** (1 / n), 0.5)
    return np.minimum(noise, frequency * (1 - frequency))


class _Bins:
    """Sums over bins of two samples or more."""

    def __init__(self, y: np.ndarray, prediction: np.ndarray, labels: np.ndarray) -> None:
        count = np.bincount(labels)
        used = count > 1
        if not used.any():
            raise ValueError("every sample is alone in its bin: use fewer bins")
        self.used = used
        self.dropped_mass = float(count[~used].sum() / len(y))
        self.n = count[used]
        self.w = self.n / self.n.sum()
        self.pairs = self.n * (self.n - 1.0)
        error, noise = y - prediction, prediction * (1 - prediction)
        sums, squares, self.noise, self.noise_squared = (
            np.bincount(labels, weights=values)[used]
            for values in (error, error**2, noise, noise**2)
        )
        self.g = sums / self.n
        self.G = (sums**2 - squares) / self.pairs
        positives = np.bincount(labels, weights=y)[used]
        one_class = (positives == 0) | (positives == self.n)
        self.least_variance = np.where(one_class, _hidden_variance(self.noise / self.n, self.n), 0)
        variance = (squares - sums**2 / self.n) / (self.n - 1)
        self.s2 = np.maximum(variance, self.least_variance)


def _corrected(
    y: np.ndarray, prediction: np.ndarray, labels: np.ndarray, level: float
) -> CorrectedError:
    b = _Bins(y, prediction, labels)
    return _summary(
        estimate=float(b.w @ b.G),
        plug_in=float(b.w @ b.g**2),
        noise_floor=float(b.w @ (b.noise / b.n**2)),
        variance_at_zero=float(b.w**2 @ (2 * b.s2**2 / b.pairs)),
        # Exact for labels that are Bernoulli(Δ).
        calibrated_variance=float((b.w / b.pairs) ** 2 @ (2 * (b.noise**2 - b.noise_squared))),
        # As if the error were spread evenly.
        calibrated_slope=float(4 * b.noise.sum() / b.n.sum() ** 2),
        slope=_slope(b.w, b.G, 4 * b.w * b.s2 / b.n),
        dropped_mass=b.dropped_mass,
        n_bins=len(b.n),
        level=level,
    )


def _difference(
    y: np.ndarray,
    prediction: np.ndarray,
    coarse: np.ndarray,
    fine: np.ndarray,
    total: CorrectedError,
    mean: CorrectedError,
) -> CorrectedError:
    """Return the corrected error of fine bins less that of the coarse bins they are part of.

    It is the quadratic form Σ_{i≠k} a_ik e_i e_k, where a_ik = 1/(N(n_f − 1)) for pairs in
    a fine bin less 1/(N(n_c − 1)) for pairs in a coarse bin.
    """
    labels = np.unique(coarse, return_inverse=True)[1]
    c, f = _Bins(y, prediction, labels), _Bins(y, prediction, fine)
    n_samples = int(c.n.sum())
    parent = np.empty(len(f.used), dtype=np.intp)
    parent[fine] = labels
    # Coarse bins of two samples or more have fine bins of two or more (see nested_bins).
    parent = (np.cumsum(c.used) - 1)[parent[f.used]]
    in_fine = 1 / (n_samples * (f.n - 1.0))
    in_coarse = 1 / (n_samples * (c.n - 1.0))

    def pair_variance(per_fine: np.ndarray, per_coarse: np.ndarray) -> float:
        change = (in_fine - in_coarse[parent]) ** 2 - in_coarse[parent] ** 2
        return float(2 * (change @ per_fine + in_coarse**2 @ per_coarse))

    def ordered_pairs(sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
        return sums**2 - squares

    fine_noise, n_coarse = f.n * f.s2, len(c.n)
    coarse_noise = np.bincount(parent, weights=fine_noise, minlength=n_coarse)
    variance_at_zero = pair_variance(
        ordered_pairs(fine_noise, f.n * f.s2**2),
        ordered_pairs(coarse_noise, np.bincount(parent, weights=f.n * f.s2**2, minlength=n_coarse)),
    )
    calibrated_variance = pair_variance(
        ordered_pairs(f.noise, f.noise_squared), ordered_pairs(c.noise, c.noise_squared)
    )
    share = f.n / c.n[parent]
    noise_of_difference = f.s2 / f.n * (1 - 2 * share) + (coarse_noise / c.n**2)[parent]
    deviation = (f.g - c.g[parent]) ** 2 - noise_of_difference
    return _summary(
        estimate=total.estimate - mean.estimate,
        plug_in=total.plug_in - mean.plug_in,
        noise_floor=total.noise_floor - mean.noise_floor,
        variance_at_zero=variance_at_zero,
        calibrated_variance=calibrated_variance,
        calibrated_slope=float(4 * f.noise.sum() / n_samples**2),
        slope=_slope(f.w, deviation, 4 * f.s2 / n_samples),
        dropped_mass=total.dropped_mass,
        n_bins=total.n_bins,
        level=total.confidence_level,
    )


def _slope(weights: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> float:
    """Return by how much the variance grows with the error, as the error lies in the bins."""
    mass = weights * np.maximum(squares, 0)
    if mass.sum() == 0:
        mass = weights
    return float(mass @ slopes / mass.sum())


def _summary(
    *,
    estimate: float,
    plug_in: float,
    noise_floor: float,
    variance_at_zero: float,
    calibrated_variance: float,
    calibrated_slope: float,
    slope: float,
    dropped_mass: float,
    n_bins: int,
    level: float,
) -> CorrectedError:
    from scipy.stats import norm

    ci_low, ci_high = _invert(estimate, variance_at_zero, slope, norm.ppf(0.5 + level / 2))
    return CorrectedError(
        estimate=estimate,
        standard_error=float(np.sqrt(variance_at_zero + slope * max(estimate, 0.0))),
        ci_low=ci_low,
        ci_high=ci_high,
        noise_floor=noise_floor,
        minimum_detectable=_detectable(calibrated_variance, calibrated_slope, level),
        plug_in=plug_in,
        dropped_mass=dropped_mass,
        n_bins=n_bins,
        confidence_level=level,
    )


def _invert(
    estimate: float, variance_at_zero: float, slope: float, z: float
) -> tuple[float, float]:
    """Return the ends of {t >= 0 : |estimate − t| <= z·sqrt(variance_at_zero + slope·t)}."""

    def ends(value: float) -> tuple[float, float]:
        middle = value + slope * z**2 / 2
        half = np.sqrt(max(middle**2 - value**2 + z**2 * variance_at_zero, 0.0))
        return float(middle - half), float(middle + half)

    # An estimate below 0 must not pass for more certain than one of 0.
    return max(0.0, ends(estimate)[0]), ends(max(estimate, 0.0))[1]


def _detectable(variance_at_zero: float, slope: float, level: float) -> float:
    """Return t = z_level·sqrt(variance_at_zero) + z_power·sqrt(variance_at_zero + slope·t)."""
    from scipy.stats import norm

    critical = norm.ppf(level) * np.sqrt(variance_at_zero)
    z = norm.ppf(POWER)
    middle = critical + slope * z**2 / 2
    return float(middle + np.sqrt(middle**2 - critical**2 + z**2 * variance_at_zero))


def _redraw_test(
    y: np.ndarray, prediction: np.ndarray, labels: np.ndarray, n_resamples: int, seed: int
) -> TestResult:
    n_resamples = check_positive_integer(n_resamples, name="n_resamples")
    order = np.argsort(labels, kind="stable")
    order = order[np.bincount(labels)[labels[order]] > 1]
    if len(order) == 0:
        raise ValueError("every sample is alone in its bin: use fewer bins")
    y, prediction, labels = y[order], prediction[order], labels[order]
    starts = np.flatnonzero(np.diff(labels, prepend=-1))
    n = np.diff(starts, append=len(labels))
    divisor = len(labels) * (n - 1.0)

    def statistic(drawn: np.ndarray) -> np.ndarray:
        error = drawn - prediction
        sums = np.add.reduceat(error, starts, axis=-1)
        np.square(error, out=error)
        return (sums**2 - np.add.reduceat(error, starts, axis=-1)) @ (1 / divisor)

    seen = float(statistic(y))
    generator = np.random.default_rng(seed)
    n_larger = 0
    step = max(1, BLOCK_SIZE // len(y))
    for start in range(0, n_resamples, step):
        shape = (min(step, n_resamples - start), len(y))
        drawn = statistic((generator.random(shape) < prediction).astype(np.float64))
        # Equal labels must count as equal although sums are rounded.
        n_larger += int(np.count_nonzero(drawn >= seen - 1e-12 * abs(seen)))
    return TestResult(seen, (1 + n_larger) / (n_resamples + 1))


class _WildTask:
    """Wild bootstrap of the corrected error of one task."""

    def __init__(self, y: np.ndarray, prediction: np.ndarray, labels: np.ndarray) -> None:
        bins = _Bins(y, prediction, labels)
        self.order = np.argsort(labels, kind="stable")
        self.order = self.order[bins.used[labels[self.order]]]
        ordered = labels[self.order]
        self.starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        position = np.repeat(np.arange(len(bins.n)), bins.n)
        error = (y - prediction)[self.order]
        # Residuals around an estimated mean are too small by this factor.
        residual = (error - bins.g[position]) * np.sqrt(bins.n / (bins.n - 1))[position]
        least = np.sqrt(bins.least_variance)[position]
        self.residual = np.copysign(np.maximum(np.abs(residual), least), residual)
        self.residual_squares = np.add.reduceat(self.residual**2, self.starts)
        self.bins = bins
        self.shrunken = np.sign(bins.g) * np.sqrt(np.maximum(bins.G, 0))
        self.truth = float(bins.w @ np.maximum(bins.G, 0))

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


def _folds(n_samples: int, n_folds: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import KFold

    n_folds = check_positive_integer(n_folds, name="n_folds")
    if not 2 <= n_folds <= n_samples:
        raise ValueError(
            f"n_folds must lie between 2 and the number of samples, {n_samples}, got {n_folds}"
        )
    folds = KFold(n_folds, shuffle=True, random_state=seed)
    return list(folds.split(np.empty((n_samples, 0))))


def _spline_basis(prediction: np.ndarray, *, n_knots: int) -> np.ndarray:
    """Return cubic splines of the logit of the predictions; they sum to 1 at each sample.

    Their knots are quantiles weighted by Δ(1 − Δ): where most predictions are nearly certain,
    those that are not need them, for there the labels vary.
    """
    from scipy.special import logit
    from sklearn.preprocessing import SplineTransformer

    prediction = np.clip(prediction, 1e-4, 1 - 1e-4)
    position = logit(prediction)
    knots = np.quantile(
        position,
        np.linspace(0, 1, n_knots),
        weights=prediction * (1 - prediction),
        method="inverted_cdf",
    )
    knots = np.unique(knots.round(6))
    if len(knots) < 2:
        return np.ones((len(prediction), 1))
    spline = SplineTransformer(knots=knots[:, None], extrapolation="constant")
    return spline.fit_transform(position[:, None])


def _row_features(data: _Sample) -> np.ndarray:
    spread = np.sqrt(data.variance)
    # The largest spread that the mean allows is sqrt(Δ(1 − Δ)).
    largest = np.sqrt(data.prediction * (1 - data.prediction))
    relative = np.divide(spread, largest, out=np.zeros_like(spread), where=largest > 0)
    deviation = relative.std()
    scaled = (relative - relative.mean()) / deviation if deviation > 1e-9 else 0 * relative
    cubes = _third_moment(data.hypotheses, data.prediction)
    skewness = np.divide(cubes, spread**3, out=np.zeros_like(cubes), where=spread > 1e-9)
    # Fewer coefficients, a tighter bound.
    basis = _spline_basis(data.prediction, n_knots=6)
    shapes = (np.ones_like(scaled), scaled, scaled**2 - 1, np.clip(skewness, -3, 3))
    return np.concatenate([basis * shape[:, None] for shape in shapes], axis=1)


def _third_moment(hypotheses: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    moment = np.empty(len(prediction))
    for block in row_blocks(hypotheses):
        rows = hypotheses[block].astype(np.float64) - prediction[block, None]
        moment[block] = np.mean(rows**3, axis=1)
    return moment
