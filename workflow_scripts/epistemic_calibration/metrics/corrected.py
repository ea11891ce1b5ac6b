"""The corrected error: TECE estimated without the noise of the labels, and its parts.

Throughout, e = y − Δ, and TECE = E[(P(Y = 1 | Π) − Δ)²] = E[(E[e | Π])²], which is what
proposition 1 of the paper leaves of its definition where EU is the variance.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._bins import Bins, variance_of_one_class
from epistemic_calibration.metrics._groups import (
    GroupedBins,
    form_of_pairs,
    group_sums,
    groups_of_samples,
    nested_bins_of_groups,
)
from epistemic_calibration.metrics._interval import Calibrated, interval, smallest_detectable
from epistemic_calibration.metrics._resolution import refined
from epistemic_calibration.metrics._sample import Sample, as_sample
from epistemic_calibration.metrics._validation import check_fraction, check_positive_integer
from epistemic_calibration.metrics.binning import Binning, coarse_bins


@dataclass(frozen=True)
class CorrectedError:
    """A bias-corrected estimate of TECE, or of a part of it, as far as the bins see it.

    Bins see at most TECE, so ``ci_low`` is a lower limit of TECE, but ``ci_high`` is an upper
    limit only of what these bins see. A part, as far as it is seen, may be more than it is.

    Attributes
    ----------
    estimate, standard_error : float
        Signed: where the truth is 0 it is centred at 0, so it may fall below.
    ci_low, ci_high : float
        Confidence interval, within [0, inf).
    noise_floor : float
        What the uncorrected estimate would be on average for a calibrated predictor.
    minimum_detectable : float
        About the smallest value, spread evenly over the samples and of one direction in each bin,
        that a one-sided test at level 1 − confidence_level finds with probability 0.8.
    plug_in : float
        The uncorrected estimate over the same bins.
    dropped_mass : float
        Fraction of samples that are alone in their bin, or in a bin of one group, and left out.
    n_bins : int
        Bins used: the resolution. What changes its sign within them stays unseen.
    confidence_level : float
    refined : bool
        Whether the labels show that bins finer than those asked for, which these are, see more.
        The interval then allows for the choice (Bonferroni).
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
    refined: bool = False


@dataclass(frozen=True)
class ErrorSplit:
    """TECE as mean miscalibration plus epistemic dependence (paper, property 1).

    Dependence is what spread and shape reveal about Y beyond the coarse bins of the mean: an error
    of the mean that varies in one passes for it as far as spread and shape vary with it.
    """

    total: CorrectedError  # E[(P(Y = 1 | Π) − Δ)²]
    mean_miscalibration: CorrectedError  # E[(P(Y = 1 | Δ) − Δ)²]
    epistemic_dependence: CorrectedError  # E[Var(P(Y = 1 | Π) | Δ)]


def corrected_epistemic_calibration_error(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    n_bins: int = 50,
    binning: Binning = "nested",
    random_state: int = 0,
    bins: ArrayLike | None = None,
    adaptive: bool = True,
    groups: ArrayLike | None = None,
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
    adaptive : bool, default True
        Whether ``nested`` bins give way to finer ones, of 8 samples or more on average, where
        these see significantly more (at 1 %, all together): TECE at a resolution that the labels
        support (Lee et al., 2023). Not so with bins that are given, other partitions, or groups.
        For comparisons take False, the same resolution everywhere.
    groups : array-like of shape (n_samples,), optional
        Which samples belong together: copies of an image, patches of a patient. Samples must be
        independent otherwise, and all of them without it: c copies of each add c − 1 noise
        floors to the estimate. Copies among inputs X have
        ``groups = np.unique(X, axis=0, return_inverse=True)[1]``; hypotheses and labels
        cannot show them, for few distinct rows are as well those of a shallow forest.
        The estimate is then of pairs of samples of different groups, whose variance allows for
        any dependence within groups.
    confidence_level : float in (0, 1), default 0.95

    Raises
    ------
    ValueError
        If labels are not 0 and 1, hypotheses are not in [0, 1], lengths differ, the binning
        is unknown, or every sample, or group, is alone in its bin.

    References
    ----------
    Kumar, Liang and Ma, 2019, "Verified uncertainty calibration"; Lee, Huang, Hassani and Dobriban,
    2023, "T-Cal: an optimal test for the calibration of predictive models"; Laurent and Massart,
    2000, "Adaptive estimation of a quadratic functional by model selection".

    Examples
    --------
    The plug-in estimate of four fair coins with three heads is (3/4 - 1/2)² = 1/16, and the
    noise of the labels accounts for all of it.

    >>> from epistemic_calibration import metrics
    >>> hypotheses = [[0.5, 0.5]] * 4
    >>> error = metrics.corrected_epistemic_calibration_error([1, 0, 1, 1], hypotheses)
    >>> error.plug_in, error.noise_floor, error.estimate
    (0.0625, 0.0625, 0.0)

    Seen twice, they say no more than once.

    >>> groups = [0, 1, 2, 3, 0, 1, 2, 3]
    >>> twice = metrics.corrected_epistemic_calibration_error(
    ...     [1, 0, 1, 1] * 2, hypotheses * 2, groups=groups
    ... )
    >>> twice.plug_in, twice.estimate
    (0.0625, 0.0)
    """
    sample = as_sample(y_true, hypotheses)
    level = check_fraction(confidence_level, name="confidence_level")
    groups = groups_of_samples(groups, len(sample))
    n_looked_at = 0
    if bins is None and binning == "nested":
        _, labels, n_looked_at = _nested(sample, n_bins, random_state, groups, adaptive=adaptive)
    else:
        labels = sample.bins(n_bins=n_bins, binning=binning, random_state=random_state, given=bins)
    return corrected_of_choice(sample, labels, level, n_looked_at, groups)


def split_epistemic_calibration_error(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    n_bins: int = 50,
    random_state: int = 0,
    confidence_level: float = 0.95,
    bins: ArrayLike | None = None,
    adaptive: bool = True,
    groups: ArrayLike | None = None,
) -> ErrorSplit:
    """Return bias-corrected estimates of TECE and of its two parts.

    Over ``nested`` bins (see :func:`assign_bins`), the corrected error of the fine bins is
    the total, that of the coarse bins, which depend on the mean only, is mean miscalibration;
    the dependence is their difference. It is 0 where Δ determines the row and repeats, as with
    few distinct rows. Elsewhere it is dependence at the resolution of the coarse bins: 1 to
    4 % of a smooth error of the mean passes for it, more where the error and EU jump together.

    Parameters and errors as in :func:`corrected_epistemic_calibration_error`; ``bins``, where
    given, are those of ``binning="nested"`` with the same ``n_bins``. With ``groups``, what lies in
    fine bins of one group is left out of the total and not of the mean miscalibration.

    Raises
    ------
    ValueError
        If ``bins`` has samples of two coarse bins in one.

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
    of_samples = groups_of_samples(groups, len(sample))
    coarse, fine, n_looked_at = _nested(
        sample, n_bins, random_state, of_samples, adaptive=adaptive, given=bins
    )
    n_pairs = len(np.unique(coarse * (fine.max() + 1) + fine))
    if n_pairs != len(np.unique(fine)):
        raise ValueError(f"bins are not nested in those of the row mean for n_bins={n_bins}")
    coarse = np.unique(coarse, return_inverse=True)[1]
    of_mean = corrected_over_bins(sample.y, sample.mean, coarse, level, of_samples)
    total = corrected_of_choice(sample, fine, level, n_looked_at, of_samples)
    dependence = _difference(sample, coarse, fine, of_samples, total, of_mean)
    return ErrorSplit(total, of_mean, dependence)


def _nested(
    sample: Sample,
    n_bins: int,
    seed: int,
    groups: np.ndarray | None,
    *,
    adaptive: bool,
    given: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return coarse and fine bins, and how many finer ones they were chosen from, if any."""
    if given is None and groups is not None:
        return (*nested_bins_of_groups(sample, groups, n_bins, seed), 0)
    fine = sample.bins(n_bins=n_bins, binning="nested", random_state=seed, given=given)
    coarse = coarse_bins(sample.mean, n_bins)
    return refined(sample, coarse, fine) if given is None and adaptive else (coarse, fine, 0)


def corrected_of_choice(
    sample: Sample,
    labels: np.ndarray,
    level: float,
    n_looked_at: int,
    groups: np.ndarray | None = None,
) -> CorrectedError:
    """Return the error over bins, with an interval that allows for their choice, if any."""
    found = corrected_over_bins(sample.y, sample.mean, labels, level, groups)
    if n_looked_at == 0:
        return found
    wide = corrected_over_bins(sample.y, sample.mean, labels, 1 - (1 - level) / n_looked_at)
    return dataclasses.replace(found, ci_low=wide.ci_low, ci_high=wide.ci_high, refined=True)


def corrected_over_bins(
    y: np.ndarray,
    mean: np.ndarray,
    labels: np.ndarray,
    level: float,
    groups: np.ndarray | None = None,
) -> CorrectedError:
    """Return the corrected error of checked labels, means, bins and groups (see `Bins`)."""
    return form_of(y, mean, labels, groups).corrected(level)


def form_of(y: np.ndarray, mean: np.ndarray, labels: np.ndarray, groups: np.ndarray | None) -> Form:
    if groups is None:
        return _OfSamples(Bins(y, mean, labels), mean, labels)
    return _OfGroups(GroupedBins(y, mean, labels, groups), mean, labels)


class Form:
    """The corrected error as a quadratic form of residuals, Σ_u a_u Σ_{i≠k} r_iu r_ku.

    A unit i is a sample or a group, a_u the weight of bin u over its pairs. Errors μ_u of the bins
    add to it 2 Σ_u a_u μ_u Σ_i (n_u − n_iu) r_iu, whose variance `added` returns.
    """

    noise: np.ndarray  # Σ_i r_iu²
    noise_floor: float
    variance_at_zero: float
    third_cumulant: float
    even: float  # what `slope` is where the error is as large in all bins
    calibrated: Calibrated
    added: Callable[[np.ndarray], float]

    def __init__(self, b: Bins | GroupedBins) -> None:
        self.bins = b

    def corrected(self, level: float) -> CorrectedError:
        b = self.bins
        return result_of_form(
            estimate=float(b.w @ b.squared_error),
            plug_in=float(b.w @ b.error**2),
            noise_floor=self.noise_floor,
            variance_at_zero=self.variance_at_zero,
            minimum_detectable=smallest_detectable([self.calibrated], level),
            slope=self.slope(b.error, b.squared_error),
            third_cumulant=self.third_cumulant,
            dropped_mass=b.dropped_mass,
            n_bins=len(b.n),
            level=level,
        )

    def slope(self, error: np.ndarray, squares: np.ndarray) -> float:
        """Return by how much the variance grows with the error, as this lies in the bins."""
        squares = np.maximum(squares, 0)
        total = float(self.bins.w @ squares)
        if total < 1e-15:
            return self.even
        return self.added(np.sign(error) * np.sqrt(squares)) / total


class _OfSamples(Form):
    """Residuals of samples, of which each is in one bin: closed forms of their variance."""

    third_cumulant = 0.0

    def __init__(self, b: Bins, mean: np.ndarray, labels: np.ndarray) -> None:
        super().__init__(b)
        self.noise = b.n * b.s2
        self.noise_floor = float(b.w @ (b.noise / b.n**2))
        self.variance_at_zero = float(b.w**2 @ (2 * b.s2**2 / b.pairs))
        self.even = self.added(np.ones(len(b.n)))
        noise = b.noise
        if not noise.any():
            # Predictions of exactly 0 or 1 have no noise, but labels may contradict them.
            noise = b.n * variance_of_one_class(noise, b.n, np.ones(len(b.n), dtype=bool))
        slope = float(4 * noise.sum() / b.n.sum() ** 2)
        self.calibrated = Calibrated(*b.calibrated_cumulants(), slope, mean, labels)

    def added(self, means: np.ndarray) -> float:
        return float(4 * (means**2 @ self.noise) / self.bins.n.sum() ** 2)


class _OfGroups(Form):
    """Residuals of groups, which may be in several bins: bins depend on each other."""

    def __init__(self, b: GroupedBins, mean: np.ndarray, labels: np.ndarray) -> None:
        super().__init__(b)
        shape = int(b.of_group.max()) + 1, len(b.n)
        shares = b.w / b.pairs
        sums = group_sums(b.residual, b.of_bin, b.of_group, *shape)
        products, self.variance_at_zero, self.third_cumulant = form_of_pairs(sums, shares)
        self.noise = np.diag(products)
        self.noise_floor = float(b.w @ (self.noise / b.n**2))
        influence = 2 * shares[b.of_bin] * (b.n[b.of_bin] - b.size) * b.residual
        self.influence = group_sums(influence, b.of_bin, b.of_group, *shape)
        # Errors of the same size whose directions in the bins are independent.
        self.even = float(self.influence.power(2).sum())
        self.calibrated = Calibrated(
            self.variance_at_zero, self.third_cumulant, self.even, mean, labels
        )

    def added(self, means: np.ndarray) -> float:
        return float(np.sum((self.influence @ means) ** 2))


def _difference(
    sample: Sample,
    coarse: np.ndarray,
    fine: np.ndarray,
    groups: np.ndarray | None,
    total: CorrectedError,
    of_mean: CorrectedError,
) -> CorrectedError:
    """Return the corrected error of fine bins less that of the coarse bins they are part of.

    It is the form Σ_{i≠k} r_i A r_kᵀ, where A has the share of a pair in its fine bin on the
    diagonal, and takes off that in its coarse bin from all fine bins that share it.
    """
    y, mean = sample.y, sample.mean
    of_coarse, of_fine = (form_of(y, mean, labels, groups) for labels in (coarse, fine))
    c, f = of_coarse.bins, of_fine.bins
    parent = np.empty(len(f.used), dtype=np.intp)
    parent[fine] = coarse
    in_fine, in_coarse, noise = (np.zeros(len(b.used)) for b in (f, c, f))
    in_fine[f.used], in_coarse[c.used] = f.w / f.pairs, c.w / c.pairs
    if groups is None:
        change = (in_fine - in_coarse[parent]) ** 2 - in_coarse[parent] ** 2

        def variance_of(*of_used: np.ndarray) -> float:
            noise, own = np.zeros((2, len(f.used)))
            noise[f.used], own[f.used] = of_used
            of_parent = np.bincount(parent, noise) ** 2 - np.bincount(parent, own)
            return max(2 * float(change @ (noise**2 - own) + in_coarse**2 @ of_parent), 0.0)

        noise[f.used] = of_fine.noise
        variance_at_zero = variance_of(of_fine.noise, f.n * f.s2**2)
        calibrated = of_fine.calibrated._replace(
            variance=variance_of(f.noise, f.noise_squared), third_cumulant=0.0
        )
    else:
        form = np.diag(in_fine) - in_coarse[parent] * (parent[:, None] == parent)
        seen, shape = np.flatnonzero(f.used), (int(groups.max()) + 1, len(f.used))
        sums = group_sums(f.residual, seen[f.of_bin], f.of_group, *shape)
        # What lies in a fine bin of one group counts in the coarse one only.
        alone, errors = ~f.used[fine], np.zeros(len(c.used))
        errors[c.used] = c.error
        rest = y - mean - errors[coarse]
        sums += group_sums(rest[alone], fine[alone], groups[alone], *shape)
        products = (sums.T @ sums).toarray()
        noise, scaled = np.diag(products), products @ form
        own = np.asarray((sums @ form * sums.toarray()).sum(axis=1)).ravel()
        variance_at_zero = max(2 * float(np.sum(scaled * scaled.T) - own @ own), 0.0)
        third = 8 * float(np.sum((scaled @ scaled) * scaled.T))
        calibrated = of_fine.calibrated._replace(variance=variance_at_zero, third_cumulant=third)
    position = (np.cumsum(c.used) - 1)[parent[f.used]]
    of_parent = np.bincount(parent, noise, len(c.used))[c.used] / c.n**2
    deviation = f.error - c.error[position]
    expected = noise[f.used] / f.n**2 * (1 - 2 * f.n / c.n[position]) + of_parent[position]
    level = total.confidence_level
    return result_of_form(
        estimate=total.estimate - of_mean.estimate,
        plug_in=total.plug_in - of_mean.plug_in,
        noise_floor=total.noise_floor - of_mean.noise_floor,
        variance_at_zero=variance_at_zero,
        minimum_detectable=smallest_detectable([calibrated], level),
        slope=of_fine.slope(deviation, deviation**2 - expected),
        dropped_mass=total.dropped_mass,
        n_bins=total.n_bins,
        level=level,
    )


def result_of_form(
    *,
    estimate: float,
    plug_in: float,
    noise_floor: float,
    variance_at_zero: float,
    minimum_detectable: float,
    slope: float,
    dropped_mass: float,
    n_bins: int,
    level: float,
    third_cumulant: float = 0.0,
) -> CorrectedError:
    """Return the result, whose lower end allows for the skewness of the estimate where given."""
    ci_low, ci_high = interval(estimate, variance_at_zero, slope, level, third_cumulant)
    return CorrectedError(
        estimate=estimate,
        standard_error=float(np.sqrt(variance_at_zero + slope * max(estimate, 0.0))),
        ci_low=ci_low,
        ci_high=ci_high,
        noise_floor=noise_floor,
        minimum_detectable=minimum_detectable,
        plug_in=plug_in,
        dropped_mass=dropped_mass,
        n_bins=n_bins,
        confidence_level=level,
    )
