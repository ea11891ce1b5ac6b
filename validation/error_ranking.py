"""Claim: 95 % intervals of `metrics.error_ranking` cover, and with few errors do not promise more.

Two scores of a latent difficulty order the inputs, the second more closely; errors are drawn by
their probability given the difficulty. Truth: the same numbers of 3 million inputs.
Scenarios: continuous scores, ties (a dozen values, or two), groups of three inputs whose scores
are equal and whose errors mostly are; 5 errors expected, or 2 to 20 % of N = 200 to 10,000. Squared
errors: 5 labels an input.

    python validation/error_ranking.py                # 3 minutes on one core
    python validation/error_ranking.py --draws 100
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow_scripts"))

from epistemic_calibration.metrics.ranking import rank_errors

SCENARIOS = (
    (200, "continuous", 5 / 200),
    (200, "continuous", 0.2),
    (1_000, "continuous", 5 / 1_000),
    (1_000, "ties", 5 / 1_000),
    (1_000, "two values", 5 / 1_000),
    (1_000, "ties", 0.05),
    (3_000, "groups", 15 / 3_000),
    (3_000, "groups", 0.05),
    (10_000, "continuous", 5 / 10_000),
    (10_000, "ties", 0.02),
    (1_000, "squared", 0.2),
    (10_000, "squared", 0.2),
)
#: Noise of the errors, given the difficulty.
NOISE = 0.7
SHOWN = (
    ("kept 90", lambda r: r.by_uncertainty.kept_error_90),
    ("50", lambda r: r.by_uncertainty.kept_error_50),
    ("AUROC", lambda r: r.by_uncertainty.auroc_of_errors),
    ("diff. 90", lambda r: r.difference.kept_error_90),
    ("50", lambda r: r.difference.kept_error_50),
    ("AURC", lambda r: r.difference.aurc),
    ("AUGRC", lambda r: r.difference.augrc),
    ("AUROC", lambda r: r.difference.auroc_of_errors),
)


def draw(rng, n, kind, rate):
    """Return errors, both scores and groups."""
    copies = 3 if kind == "groups" else 1
    m = n // copies
    difficulty = rng.standard_normal(m)
    uncertainty = difficulty + 0.8 * rng.standard_normal(m)
    doubt = difficulty + 0.5 * rng.standard_normal(m)
    if kind == "ties":
        uncertainty, doubt = np.round(1.5 * uncertainty), np.round(1.5 * doubt)
    if kind == "two values":
        uncertainty = (uncertainty > 1) * 1.0
    threshold = brentq(lambda t: norm.cdf(-t / np.sqrt(1 + NOISE**2)) - rate, -5, 10)
    p = norm.cdf((difficulty - threshold) / NOISE)
    # Most errors are those of the whole group.
    u = rng.random((m, copies))
    shared = rng.random(m) < 0.6
    u[shared] = u[shared, :1]
    error = (u < p[:, None]).astype(float).ravel()
    if kind == "squared":
        # (p* - Δ)² with p* = 0.2 + 0.6 p and Δ = 0.3, of 5 labels.
        s = rng.binomial(5, 0.2 + 0.6 * p)
        error = (s / 5 - 0.3) ** 2 + s * (s - 1) / 20 - (s / 5) ** 2
    of_inputs = (np.repeat(values, copies) for values in (uncertainty, doubt))
    return error, *of_inputs, np.repeat(np.arange(m), copies)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    print("Coverage in %, of", draws, "draws")
    print(f"{'N':>6} {'scores':<11}{'errors':>7} ", *(f"{name:>8}" for name, _ in SHOWN))
    for n, kind, rate in SCENARIOS:
        truth = rank_errors(*draw(np.random.default_rng(1), 3_000_000, kind, rate), 0.95)
        covered = np.zeros(len(SHOWN))
        rng = np.random.default_rng(2)
        for _ in range(draws):
            found = rank_errors(*draw(rng, n, kind, rate), 0.95)
            for i, (_, of) in enumerate(SHOWN):
                covered[i] += of(found).ci_low <= of(truth).estimate <= of(found).ci_high
        errors = n * truth.error.estimate
        cells = (f"{100 * c / draws:8.1f}" if c else f"{'-':>8}" for c in covered)
        print(f"{n:>6} {kind:<11}{errors:>7.0f} ", *cells, flush=True)


if __name__ == "__main__":
    main()
