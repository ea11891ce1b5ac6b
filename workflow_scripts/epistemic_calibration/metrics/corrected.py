"""The corrected error: TECE estimated without the noise of the labels, its parts, a lower bound.

Throughout, e = y − Δ, and TECE = E[(P(Y = 1 | Π) − Δ)²] = E[(E[e | Π])²], which is what
proposition 1 of the paper leaves of its definition where EU is the variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._bins import Bins, hidden_variance
from epistemic_calibration.metrics._interval import detectable, invert
from epistemic_calibration.metrics._regression import folds, spline_basis
from epistemic_calibration.metrics._sample import Sample, as_sample
from epistemic_calibration.metrics._validation import (
    check_fraction,
    check_positive_integer,
    row_blocks,
)
from epistemic_calibration.metrics.binning import Binning, canonical_order, coarse_bins


@dataclass(frozen=True)
class CorrectedError:
    """A bias-corrected estimate of TECE, or of a part of it, as far as the bins see it.

    Bins see at most TECE, so ``ci_low`` is a lower limit of TECE, but ``ci_high`` is an upper
    limit only of what these bins see. A part, as far as it is seen, may be more than it is.

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
        1 − confidence_level finds with probability 0.8; 0 where all predictions are 0 or 1,
        which a single label can contradict.
    plug_in : float
        The uncorrected estimate over the same bins.
    dropped_mass : float
        Fraction of samples that are alone in their bin; they carry no information and are left
        out.
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
        E[Var(P(Y = 1 | Π) | Δ)]: what spread and shape reveal about Y beyond the mean, where
        "beyond" is beyond the coarse bins: an error of the mean that varies in a coarse bin
        passes for dependence as far as spread and shape vary with it.
    """

    total: CorrectedError
    mean_miscalibration: CorrectedError
    epistemic_dependence: CorrectedError


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


def corrected_epistemic_calibration_error(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    n_bins: int = 50,
    binning: Binning = "nested",
    random_state: int = 0,
    bins: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> CorrectedError:
    """Return a bias-corrected estimate of TECE, as far as bins see it, with its uncertainty.

    In a bin of n samples g² − s²/n = [(Σe)² − Σe²] / (n(n−1)) has mean (E[e | bin])²
    whatever n is, whereas the plug-in g² is too large by s²/n (Kumar et al., 2019). The
    weighted mean over bins estimates E[(E[e | bin])²], which is at most the TECE of the samples
    that are not dropped: bins can only hide error. So ``ci_low`` is a limit of TECE, and
    ``ci_high`` one of what these bins see; no data give an upper limit of an error that
    changes its sign among alike predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), labels in {0, 1}
        Or a `Sample`, which takes the place of the hypotheses as well.
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

    See Also
    --------
    split_epistemic_calibration_error : the same estimate in two parts.
    mean_corrected_error : of several tasks that share their samples.

    References
    ----------
    Kumar, Liang and Ma, 2019, "Verified uncertainty calibration".

    Examples
    --------
    The plug-in estimate of four fair coins with three heads is (3/4 - 1/2)² = 1/16, and the
    noise of the labels accounts for all of it.

    >>> from epistemic_calibration import metrics
    >>> hypotheses = [[0.5, 0.5]] * 4
    >>> error = metrics.corrected_epistemic_calibration_error([1, 0, 1, 1], hypotheses)
    >>> error.plug_in, error.noise_floor, error.estimate
    (0.0625, 0.0625, 0.0)
    """
    sample = as_sample(y_true, hypotheses)
    level = check_fraction(confidence_level, name="confidence_level")
    labels = sample.bins(n_bins=n_bins, binning=binning, random_state=random_state, given=bins)
    return corrected_over_bins(sample.y, sample.mean, labels, level)


def split_epistemic_calibration_error(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    n_bins: int = 50,
    random_state: int = 0,
    confidence_level: float = 0.95,
    bins: ArrayLike | None = None,
) -> ErrorSplit:
    """Return bias-corrected estimates of TECE and of its two parts.

    Over ``nested`` bins (see :func:`assign_bins`), the corrected error of the fine bins is
    the total, that of the coarse bins, which depend on the mean only, is mean miscalibration;
    the dependence is their difference. It is 0 where Δ determines the row and repeats, as with
    few distinct rows. Elsewhere it is dependence at the resolution of the coarse bins: 1 to
    4 % of a smooth error of the mean passes for it, more where the error and EU jump together.

    Parameters and errors as in :func:`corrected_epistemic_calibration_error`; ``bins``, where
    given, are those of ``binning="nested"`` with the same ``n_bins``.

    Raises
    ------
    ValueError
        If ``bins`` has samples of two coarse bins in one.

    See Also
    --------
    epistemic_calibration_test, mean_calibration_test, epistemic_independence_test : tests that
        the total, the first and the second part are 0.

    References
    ----------
    Hoarau, arXiv 2606.10777, property 1.

    Examples
    --------
    Where the hypotheses disagree, the label is always 1; elsewhere it is always 0. The mean is
    calibrated, and all of the error is in what the disagreement reveals.

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> hypotheses = np.repeat([[0.25, 0.75], [0.5, 0.5]], 100, axis=0)
    >>> split = metrics.split_epistemic_calibration_error(np.repeat([1, 0], 100), hypotheses)
    >>> split.total.estimate
    0.25
    >>> round(split.mean_miscalibration.estimate, 3), round(split.epistemic_dependence.estimate, 3)
    (-0.001, 0.251)
    """
    sample = as_sample(y_true, hypotheses)
    level = check_fraction(confidence_level, name="confidence_level")
    n_bins = check_positive_integer(n_bins, name="n_bins")
    fine = sample.bins(n_bins=n_bins, binning="nested", random_state=random_state, given=bins)
    coarse = coarse_bins(sample.mean, n_bins)
    if len(np.unique(np.stack([coarse, fine]), axis=1).T) != len(np.unique(fine)):
        raise ValueError(f"bins are not nested in those of the row mean for n_bins={n_bins}")
    total = corrected_over_bins(sample.y, sample.mean, fine, level)
    of_mean = corrected_over_bins(sample.y, sample.mean, coarse, level)
    dependence = _difference(sample.y, sample.mean, coarse, fine, total, of_mean)
    return ErrorSplit(total, of_mean, dependence)


def cross_fitted_lower_bound(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    n_folds: int = 5,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> LowerBound:
    """Return a lower bound of TECE that needs no bins.

    The mean of e² − (e − ĝ)², with ĝ a regression of e on the row of hypotheses fitted on
    the other folds (Perez-Lebel et al., 2023): its mean is
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

    See Also
    --------
    corrected_epistemic_calibration_error : an estimate over bins.

    References
    ----------
    Perez-Lebel, Le Morvan and Varoquaux, 2023, "Beyond calibration: estimating the grouping
    loss of modern neural networks".

    Examples
    --------
    Predictions of 0.25 where the label frequency is 1/2: TECE is (1/2 - 1/4)².

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> labels = np.arange(400) % 2
    >>> bound = metrics.cross_fitted_lower_bound(labels, np.full((400, 3), 0.25))
    >>> 0.03 < bound.ci_low < bound.estimate < 0.0625
    True
    """
    from scipy.stats import norm
    from sklearn.linear_model import RidgeCV

    sample = as_sample(y_true, hypotheses)
    level = check_fraction(confidence_level, name="confidence_level")
    error = sample.y - sample.mean
    features = _row_features(sample)
    fitted = np.empty_like(error)
    order = canonical_order(sample.hypotheses, sample.mean, sample.variance)
    for train, test in folds(len(error), n_folds, random_state, order=order):
        model = RidgeCV(alphas=np.logspace(-2, 4, 19), fit_intercept=False)
        fitted[test] = model.fit(features[train], error[train]).predict(features[test])
    gains = fitted * (2 * error - fitted)
    estimate = float(gains.mean())
    variance = gains.var(ddof=1)
    if sample.y.min() == sample.y.max():
        noise = hidden_variance(sample.mean * (1 - sample.mean), len(gains))
        variance = max(variance, np.mean(4 * fitted**2 * noise))
    standard_error = float(np.sqrt(variance / len(gains)))
    return LowerBound(
        estimate=estimate,
        standard_error=standard_error,
        ci_low=max(0.0, float(estimate - norm.ppf(level) * standard_error)),
        confidence_level=level,
    )


def corrected_over_bins(
    y: np.ndarray, mean: np.ndarray, labels: np.ndarray, level: float
) -> CorrectedError:
    """Return the corrected error of checked labels, means and bins (see `Bins`)."""
    b = Bins(y, mean, labels)
    return _summary(
        estimate=float(b.w @ b.squared_error),
        plug_in=float(b.w @ b.error**2),
        noise_floor=float(b.w @ (b.noise / b.n**2)),
        variance_at_zero=float(b.w**2 @ (2 * b.s2**2 / b.pairs)),
        # Exact for labels that are Bernoulli(Δ).
        calibrated_variance=float((b.w / b.pairs) ** 2 @ (2 * (b.noise**2 - b.noise_squared))),
        # As if the error were spread evenly.
        calibrated_slope=float(4 * b.noise.sum() / b.n.sum() ** 2),
        slope=_slope(b.w, b.squared_error, 4 * b.w * b.s2 / b.n),
        dropped_mass=b.dropped_mass,
        n_bins=len(b.n),
        level=level,
    )


def _difference(
    y: np.ndarray,
    mean: np.ndarray,
    coarse: np.ndarray,
    fine: np.ndarray,
    total: CorrectedError,
    of_mean: CorrectedError,
) -> CorrectedError:
    """Return the corrected error of fine bins less that of the coarse bins they are part of.

    It is the quadratic form Σ_{i≠k} a_ik e_i e_k, where a_ik = 1/(N(n_f − 1)) for pairs in
    a fine bin less 1/(N(n_c − 1)) for pairs in a coarse bin.
    """
    labels = np.unique(coarse, return_inverse=True)[1]
    c, f = Bins(y, mean, labels), Bins(y, mean, fine)
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
    deviation = (f.error - c.error[parent]) ** 2 - noise_of_difference
    return _summary(
        estimate=total.estimate - of_mean.estimate,
        plug_in=total.plug_in - of_mean.plug_in,
        noise_floor=total.noise_floor - of_mean.noise_floor,
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

    ci_low, ci_high = invert(estimate, variance_at_zero, slope, norm.ppf(0.5 + level / 2))
    return CorrectedError(
        estimate=estimate,
        standard_error=float(np.sqrt(variance_at_zero + slope * max(estimate, 0.0))),
        ci_low=ci_low,
        ci_high=ci_high,
        noise_floor=noise_floor,
        minimum_detectable=detectable(calibrated_variance, calibrated_slope, level),
        plug_in=plug_in,
        dropped_mass=dropped_mass,
        n_bins=n_bins,
        confidence_level=level,
    )


def _row_features(sample: Sample) -> np.ndarray:
    spread = np.sqrt(sample.variance)
    # The largest spread that the mean allows is sqrt(Δ(1 − Δ)).
    largest = np.sqrt(sample.mean * (1 - sample.mean))
    relative = np.divide(spread, largest, out=np.zeros_like(spread), where=largest > 0)
    deviation = relative.std()
    scaled = (relative - relative.mean()) / deviation if deviation > 1e-9 else 0 * relative
    cubes = _third_moment(sample.hypotheses, sample.mean)
    skewness = np.divide(cubes, spread**3, out=np.zeros_like(cubes), where=spread > 1e-9)
    # Fewer coefficients, a tighter bound.
    basis = spline_basis(sample.mean, n_knots=6)
    shapes = (np.ones_like(scaled), scaled, scaled**2 - 1, np.clip(skewness, -3, 3))
    return np.concatenate([basis * shape[:, None] for shape in shapes], axis=1)


def _third_moment(hypotheses: np.ndarray, mean: np.ndarray) -> np.ndarray:
    moment = np.empty(len(mean))
    for block in row_blocks(hypotheses):
        rows = hypotheses[block].astype(np.float64) - mean[block, None]
        moment[block] = np.mean(rows**3, axis=1)
    return moment
