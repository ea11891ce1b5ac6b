"""Epistemic uncertainties (EU) that know nothing, which a good number has to beat.

With nearly certain labels the squared error E[(p* − Δ)²] is nearly the Brier score, and of a
calibrated prediction that is E[Δ(1 − Δ)]: whoever reports Δ(1 − Δ) reports the right size. A
constant EU, and EU shuffled among inputs, report as much as EU itself: only the slope tells them
from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from epistemic_calibration.metrics._means import Estimate, ratio_of_means

CONTROLS = ("product", "constant", "shuffled")


def control_estimates(
    error: Sequence[np.ndarray],
    uncertainty: Sequence[np.ndarray],
    mean: Sequence[np.ndarray],
    groups: np.ndarray,
    *,
    random_state: int = 0,
    confidence_level: float = 0.95,
) -> dict[str, dict[str, Estimate]]:
    """Return share and slope of each control, over tasks that share their inputs.

    Of each task ``error`` is an unbiased estimate of (p* − Δ)², ``uncertainty`` what is reported,
    c_H·EU, and ``mean`` Δ, each of shape (n_samples,). The slope on a constant is NaN.
    """
    errors, said, means = (np.stack(list(values)) for values in (error, uncertainty, mean))
    shuffled = np.random.default_rng(random_state).permutation(errors.shape[1])
    controls = {
        "product": means * (1 - means),
        "constant": np.broadcast_to(said.mean(axis=1, keepdims=True), said.shape),
        "shuffled": said[:, shuffled],
    }
    level = confidence_level
    found = {}
    for name, reported in controls.items():
        centred = reported - reported.mean(axis=1, keepdims=True)
        moved = centred * (errors - errors.mean(axis=1, keepdims=True))
        slope = Estimate(math.nan, math.nan, -math.inf, math.inf, level)
        if np.mean(centred**2) > 1e-20 * np.mean(reported) ** 2:
            slope = ratio_of_means(moved.mean(axis=0), (centred**2).mean(axis=0), groups, level)
        share = ratio_of_means(reported.mean(axis=0), errors.mean(axis=0), groups, level, least=0.0)
        found[name] = {"share": share, "slope": slope}
    return found
