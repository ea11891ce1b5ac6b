"""What one label per input tells of the error that a method could avoid: bounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._groups import check_groups
from epistemic_calibration.metrics._means import (
    Estimate,
    mean_of_groups,
    ratio_of_means,
    summary_line,
)
from epistemic_calibration.metrics._members import finite_draws_factor
from epistemic_calibration.metrics._validation import (
    check_fraction,
    check_labels_of_tasks,
    check_positive_integer,
    check_probabilities,
    check_tasks,
    check_uncertainty,
)
from epistemic_calibration.metrics.error_curve import Asked, SecondOrderCurve, curve


@dataclass(frozen=True, repr=False)
class ReducibleErrorBounds:
    """What one label per input says of the reducible error E[(p* − Δ)²].

    Attributes
    ----------
    lower : Estimate
        Brier(method) − Brier(reference), signed: below 0 where the reference is worse.
    upper : Estimate
        Brier(method).
    ci_low, ci_high : float
        The reducible error lies between them at ``confidence_level``; at least 0.
    share_low, share_high : float
        Likewise for uncertainty / reducible; NaN if no uncertainty is given. ``share_high``
        is inf where the reducible error may be 0.
    confidence_level : float
    """

    lower: Estimate
    upper: Estimate
    ci_low: float
    ci_high: float
    share_low: float
    share_high: float
    confidence_level: float

    def __repr__(self) -> str:
        lines = [
            f"  lower      {summary_line(self.lower)}",
            f"  upper      {summary_line(self.upper)}",
            f"  reducible  in [{self.ci_low:.4g}, {self.ci_high:.4g}]",
            f"  share      in [{self.share_low:.4g}, {self.share_high:.4g}]",
        ]
        return "\n".join(["ReducibleErrorBounds(", *lines, ")"])


def bounds_from_one_label(
    y_true: ArrayLike,
    prediction: ArrayLike,
    reference: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    n_hypotheses: int | None = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> ReducibleErrorBounds:
    """Return bounds of the reducible error that one label per input gives.

    The Brier score is E[(p* − Δ)²] + E[p*(1 − p*)], and the second term is at most the Brier
    score of any predictor, so

        Brier(method) − Brier(reference) <= E[(p* − Δ)²] <= Brier(method).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), labels in {0, 1}
    prediction : array-like of shape (n_samples,)
        Mean prediction Δ of the method, in [0, 1].
    reference : array-like of shape (n_samples,) or (n_references, n_samples)
        Predictions in [0, 1] of a better method, made without these labels. Of several, the
        best on one half of the groups serves on the other half, and the reverse, so that the
        choice does not flatter the one chosen.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        EU, >= 0; gives bounds of the share of the error that is reported.
    n_hypotheses : int >= 2, optional
        Number H of draws that EU is the variance (ddof 0) of, for c_H = (H + 1)/(H − 1); by
        default c_H = 1.
    groups : array-like of shape (n_samples,), optional
        Groups of inputs, as in :func:`second_order_error`.
    random_state : int, default 0
        Seed of the halves, where there are several references.
    confidence_level : float in (0, 1), default 0.95

    Raises
    ------
    ValueError
        If labels are not 0 and 1, predictions are not in [0, 1], or lengths differ.

    See Also
    --------
    mean_bounds_from_one_label : of several tasks that share their inputs.
    second_order_error : an estimate, from several labels per input.

    Examples
    --------
    A predictor that is too cautious by 0.15 everywhere, so that E[(p* − Δ)²] = 0.0225, beside a
    reference that knows p*:

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> rng = np.random.default_rng(0)
    >>> p = rng.choice([0.05, 0.95], 10_000)
    >>> y = rng.random(10_000) < p
    >>> metrics.bounds_from_one_label(y, np.clip(p, 0.2, 0.8), p)
    ReducibleErrorBounds(
      lower      0.0217 ± 0.000671 [0.0203, 0.02294]
      upper      0.0717 ± 0.00134 [0.06912, 0.07439]
      reducible  in [0.0203, 0.07439]
      share      in [nan, nan]
    )
    """
    return mean_bounds_from_one_label(
        [y_true],
        [prediction],
        [reference],
        epistemic_uncertainty=None if epistemic_uncertainty is None else [epistemic_uncertainty],
        n_hypotheses=n_hypotheses,
        groups=groups,
        random_state=random_state,
        confidence_level=confidence_level,
    )


def mean_bounds_from_one_label(
    y_true: Sequence[ArrayLike],
    prediction: Sequence[ArrayLike],
    reference: Sequence[ArrayLike],
    *,
    epistemic_uncertainty: Sequence[ArrayLike] | None = None,
    n_hypotheses: int | None = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> ReducibleErrorBounds:
    """Return bounds of the mean reducible error over tasks that share their inputs.

    Parameters and errors as in :func:`bounds_from_one_label`, with one array a task of the first
    three and of EU.

    See Also
    --------
    mean_second_order_error : an estimate, from several labels per input.

    Examples
    --------
    Three classes, and a method that knows nothing:

    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 5000)
    >>> y = rng.multinomial(1, p)
    >>> bounds = metrics.mean_bounds_from_one_label(y.T, [np.full(5000, 1 / 3)] * 3, p.T)
    >>> truth = float(np.mean((p - 1 / 3) ** 2))
    >>> bounds.ci_low < truth < bounds.ci_high
    True
    """
    level = check_fraction(confidence_level, name="confidence_level")
    check_tasks(
        y_true=y_true,
        prediction=prediction,
        reference=reference,
        epistemic_uncertainty=epistemic_uncertainty,
    )
    labels = check_labels_of_tasks(y_true)
    n_samples = len(labels[0])
    groups = check_groups(groups, np.ones(n_samples, dtype=bool))
    factor = 1.0
    if n_hypotheses is not None:
        factor = finite_draws_factor(
            check_positive_integer(n_hypotheses, name="n_hypotheses", minimum=2)
        )
    losses = [
        _losses(y, prediction[t], reference[t], groups, random_state) for t, y in enumerate(labels)
    ]
    brier, gain = np.mean(losses, axis=0)
    lower = mean_of_groups(gain, groups, level)
    upper = mean_of_groups(brier, groups, level, least=0.0)
    share_low = share_high = math.nan
    if epistemic_uncertainty is not None:
        said = [check_uncertainty(values, n_samples=n_samples) for values in epistemic_uncertainty]
        uncertainty = factor * np.mean(said, axis=0)
        share_low = ratio_of_means(uncertainty, brier, groups, level, least=0.0).ci_low
        share_high = ratio_of_means(uncertainty, gain, groups, level, least=0.0).ci_high
    return ReducibleErrorBounds(
        lower=lower,
        upper=upper,
        ci_low=max(lower.ci_low, 0.0),
        ci_high=upper.ci_high,
        share_low=share_low,
        share_high=share_high,
        confidence_level=level,
    )


def curve_of_bounds(
    y_true: Sequence[ArrayLike],
    prediction: Sequence[ArrayLike],
    reference: Sequence[ArrayLike],
    *,
    chosen_by: Sequence[ArrayLike],
    compared: Sequence[ArrayLike],
    n_bins: int = 10,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> SecondOrderCurve:
    """Return bounds of the reducible error in quantiles of EU, of all tasks together.

    ``chosen_by`` and ``compared`` are, of each task, EU whose quantiles are the bins, and EU that
    is averaged in them, as `halves_of_uncertainty` returns them. The error lies between
    ``ci_low`` and ``ci_high``; ``error`` is the upper bound, the Brier score.
    """
    brier, gain = [], []
    labels = check_labels_of_tasks(y_true)
    groups = np.arange(len(labels[0]))
    for t, y in enumerate(labels):
        loss, above = _losses(y, prediction[t], reference[t], groups, random_state)
        key, said = (
            check_uncertainty(values[t], n_samples=len(y)) for values in (chosen_by, compared)
        )
        brier.append(Asked(key, loss, said, groups))
        gain.append(Asked(key, above, said, groups))
    upper, lower = (curve(asked, groups, n_bins, confidence_level) for asked in (brier, gain))
    return dataclasses.replace(upper, ci_low=lower.ci_low)


def _losses(
    y: np.ndarray,
    prediction: ArrayLike,
    reference: ArrayLike,
    groups: np.ndarray,
    random_state: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared loss of each input, and what it is above that of the reference."""

    def loss_of(p: ArrayLike, name: str) -> np.ndarray:
        return (y - check_probabilities(p, name=name, n_samples=len(y))) ** 2

    loss = loss_of(prediction, "prediction")
    if np.ndim(reference) != 2:
        return loss, loss - loss_of(reference, "reference")
    losses = np.stack([loss_of(p, "reference") for p in np.asarray(reference)])
    in_first = np.random.default_rng(random_state).permutation(groups.max() + 1)[groups] % 2 == 0
    best_of_first = losses[:, in_first].mean(axis=1).argmin()
    best_of_second = losses[:, ~in_first].mean(axis=1).argmin()
    return loss, loss - np.where(in_first, losses[best_of_second], losses[best_of_first])
