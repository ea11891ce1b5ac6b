"""What tests of metrics share."""

import numpy as np
import pytest


@pytest.fixture
def predictor():
    """Return a function that draws predictors whose error is known."""
    return draw_predictor


def draw_predictor(n, *, h=10, mean_error=0.0, dependence=0.0, seed=0):
    """Draw labels and hypotheses with known P(Y = 1 | Π) − Δ, which is also returned.

    Half of the inputs have a large spread; there P(Y = 1 | Π) is larger by ``dependence``
    (times Δ(1 − Δ)), elsewhere smaller.
    """
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    wide = rng.random(n) < 0.5
    precision = np.where(wide, 4.0, 40.0)
    hypotheses = rng.beta(*((q * precision)[:, None] for q in (p, 1 - p)), (n, h))
    mean = hypotheses.mean(axis=1)
    spread_sign = np.where(wide, 1, -1)
    error = mean_error * (0.5 - mean) + dependence * spread_sign * mean * (1 - mean)
    true = np.clip(mean + error, 0, 1)
    return (rng.random(n) < true).astype(int), hypotheses, true - mean
