"""The error of an epistemic uncertainty that a method reports, from one label per input."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._bins import Bins
from epistemic_calibration.metrics._means import Estimate, mean_of_groups, summary_line
from epistemic_calibration.metrics._sample import Sample, as_sample
from epistemic_calibration.metrics._validation import check_fraction
from epistemic_calibration.metrics.binning import Binning
from epistemic_calibration.metrics.corrected import CorrectedError, corrected_over_bins


@dataclass(frozen=True, repr=False)
class ReportedUncertaintyError:
    """TECE with EU as reported: its two parts, a lower bound, and an estimate over bins.

    Attributes
    ----------
    calibration : CorrectedError
        E[(P(Y = 1 | Π) − Δ)²], the corrected TECE of the hypotheses, over the bins used here.
    reporting : Estimate
        E[V − EU], V the variance of the hypotheses (ddof 0): above 0 the method reports less
        than its hypotheses differ. It depends on no label.
    signed : Estimate
        Their sum, E[(P(Y = 1 | Π) − Δ)² + V − EU]. What is too large on some inputs cancels
        what is too small on others.
    lower : Estimate
        A lower bound of TECE, cut at 0: the larger of ``signed`` and Σ w ±(G + mean(V − EU)),
        where the sign of a bin is that of V − EU.
    binned : float
        Σ w |G + mean(V − EU)|. The noise of the labels makes it too large where the error is
        small: by about ``calibration.noise_floor`` where there is none.
    """

    calibration: CorrectedError
    reporting: Estimate
    signed: Estimate
    lower: Estimate
    binned: float

    def __repr__(self) -> str:
        lines = [
            f"  {name:<11} {summary_line(getattr(self, name))}"
            for name in ("calibration", "reporting", "signed", "lower")
        ]
        lines.append(f"  {'binned':<11} {self.binned:.3g}")
        return "\n".join(["ReportedUncertaintyError(", *lines, ")"])


def reported_uncertainty_error(
    y_true: ArrayLike | Sample,
    hypotheses: ArrayLike | None = None,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    n_bins: int = 50,
    binning: Binning = "nested",
    random_state: int = 0,
    bins: ArrayLike | None = None,
    confidence_level: float = 0.95,
) -> ReportedUncertaintyError:
    """Return estimates of TECE as the paper defines it, with EU as the method reports it.

    TECE = E|E_h[(P(Y = 1 | Π) − h)²] − EU| = E|(P(Y = 1 | Π) − Δ)² + V − EU|. Where EU is
    the variance V of the hypotheses, this is what
    :func:`corrected_epistemic_calibration_error` estimates; where a method reports something
    else, that function does not see it.

    Parameters
    ----------
    y_true, hypotheses
        As in :func:`corrected_epistemic_calibration_error`.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        Reported by the method, >= 0; by default the variance of the hypotheses, for which
        ``reporting`` is 0.
    n_bins, binning, random_state
        Bins of the hypotheses, as in :func:`assign_bins`; each is divided into the inputs
        with V < EU and the others, as far as no sample is left alone.
    bins : array-like of int, shape (n_samples,), optional
        Bins made before, used as they are; they must not depend on ``y_true``.
    confidence_level : float in (0, 1), default 0.95
        Of all intervals, which are about other inputs and labels of the same kind.

    Raises
    ------
    ValueError
        As in :func:`corrected_epistemic_calibration_error`, or if the uncertainty is not finite
        and >= 0.

    See Also
    --------
    true_epistemic_calibration_error : where P(Y = 1 | x) is known.
    second_order_error : whether EU is the size of the error at single inputs, which takes
        several labels per input.

    Notes
    -----
    This is not a test of whether EU is as large as the error (p* − Δ)² at an input. By the
    definition a right EU is V if the hypotheses are calibrated, however far p* varies among
    inputs with the same hypotheses.

    **Which variance.** In the definition the mean is over the law Π. Of H draws from it,
    mean (P(Y = 1 | Π) − h_j)² = (P(Y = 1 | Π) − Δ)² + V, V with ddof 0, has exactly the
    expectation under the law, so ``signed`` and ``lower`` need no factor for a finite H. Its
    parts do: ``calibration`` of the law is smaller, and ``reporting`` larger, by E[V]/(H − 1).

    **The bounds.** In a bin, |E[v | bin]| <= E[|v| | bin], and any signs that do not
    depend on labels give Σ w ±E[v | bin] <= TECE. Error of the mean that bins hide makes
    G too small, which lowers ``signed``, but raises the other bound where V < EU: it holds
    as far as the bins see the error. ``lower`` is the one of the two whose lower limit is higher,
    and its limits are at (1 + confidence_level)/2 for that choice, unless both are the same.

    References
    ----------
    Hoarau, arXiv 2606.10777, definition 6 and proposition 1.

    Examples
    --------
    The mean is calibrated, and the reported uncertainty is 0 instead of the variance 1/16:

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> labels, rows = np.arange(400) % 2, np.tile([0.25, 0.75], (400, 1))
    >>> error = metrics.reported_uncertainty_error(
    ...     labels, rows, epistemic_uncertainty=np.zeros(400)
    ... )
    >>> error.reporting.estimate, round(error.lower.estimate, 4)
    (0.0625, 0.0619)
    """
    sample = as_sample(y_true, hypotheses, epistemic_uncertainty)
    level = check_fraction(confidence_level, name="confidence_level")
    excess = sample.variance - sample.uncertainty
    # EU that was rounded to 32 bits is not another EU.
    below = excess < -1e-12 - 1e-5 * sample.uncertainty
    labels = sample.bins(n_bins=n_bins, binning=binning, random_state=random_state, given=bins)
    if bins is None:
        labels = _divided(labels, below)
    b = Bins(sample.y, sample.mean, labels)
    calibration = corrected_over_bins(sample.y, sample.mean, labels, level)

    used = b.used[labels]
    index = (np.cumsum(b.used) - 1)[labels[used]]
    excess, error = excess[used], (sample.y - sample.mean)[used]
    gap = b.squared_error + np.bincount(index, weights=excess) / b.n
    root = np.sign(b.error) * np.sqrt(np.maximum(b.squared_error, 0))
    # Noise alone makes some squares positive: together they are as large as the estimate.
    positive = float(b.w @ root**2)
    if positive > 0:
        root *= np.sqrt(max(calibration.estimate, 0.0) / positive)
    of_samples = 2 * root[index] * error - (root**2)[index] + excess
    variance_at_zero = float(b.w**2 @ (2 * b.s2**2 / b.pairs))

    def estimate(sign: np.ndarray, level: float) -> Estimate:
        from scipy.stats import norm

        value = float(b.w @ (sign * gap))
        variance = np.var(sign[index] * of_samples, ddof=1) / len(error)
        standard_error = float(np.sqrt(variance + variance_at_zero))
        half = float(norm.ppf(0.5 + level / 2)) * standard_error
        return Estimate(value, standard_error, value - half, value + half, level)

    alike = np.ones(len(b.n))
    signed = lower = estimate(alike, level)
    signs = np.where(np.bincount(index, weights=below[used]) > b.n / 2, -1.0, 1.0)
    if (signs < 0).any():
        both = (estimate(s, (1 + level) / 2) for s in (alike, signs))
        lower = max(both, key=lambda bound: bound.ci_low)
    return ReportedUncertaintyError(
        calibration=calibration,
        reporting=mean_of_groups(excess, np.arange(len(excess)), level),
        signed=signed,
        lower=Estimate(*(max(value, 0.0) for value in astuple(lower)[:-1]), level),
        binned=float(b.w @ np.abs(gap)),
    )


def _divided(labels: np.ndarray, below: np.ndarray) -> np.ndarray:
    divided = 2 * labels + below
    count = np.bincount(divided, minlength=2 * labels.max() + 2)
    sibling = divided ^ 1
    # Two that are both alone meet in the even one.
    joined = np.where(count[sibling] > 1, sibling, 2 * labels)
    return np.where((count[divided] == 1) & (count[sibling] > 0), joined, divided)
