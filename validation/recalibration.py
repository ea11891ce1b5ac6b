"""Recalibration of mean and spread, and the error of an uncertainty as it is reported."""

from __future__ import annotations

import warnings
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from _study import Study, generator, inside
from corrected import PREDICTORS
from scipy.special import expit, logit

from epistemic_calibration import metrics

N_HYPOTHESES = 20


class Scenario(NamedTuple):
    """At an input with mean μ and variance V, hypotheses are draws of a law with these.

    p* is a draw of the law with the same mean and ``factor`` times the variance (Beta), or, if
    ``in_logits``, of one whose logits have that, so that the mean is not the same. The
    logits of the hypotheses are then multiplied by ``scale``.
    """

    description: str
    factor: float = 1.0
    scale: float = 1.0
    in_logits: bool = False
    rare: bool = False

    def draw(self, n: int, h: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return p* and hypotheses."""
        if self.in_logits:
            centre = rng.normal(0, 1.5, n)
            spread = 0.7 * np.exp(rng.normal(0, 0.5, n))
            p = expit(centre + np.sqrt(self.factor) * spread * rng.standard_normal(n))
            logits = centre[:, None] + spread[:, None] * rng.standard_normal((n, h))
            return p, expit(self.scale * logits)
        mean = expit(rng.normal(-4.0, 1.0, n)) if self.rare else rng.beta(1.2, 1.2, n)
        precision = 2.5 + np.exp(rng.normal(1.2, 1.2, n))
        of_p = (precision + 1) / self.factor - 1
        p = rng.beta(mean * of_p, (1 - mean) * of_p)
        a, b = (mean * precision)[:, None], ((1 - mean) * precision)[:, None]
        rows = np.clip(rng.beta(a, b, (n, h)), 1e-6, 1 - 1e-6)
        return p, expit(self.scale * logit(rows))


SCENARIOS = {
    "right": Scenario("right size"),
    "half": Scenario("half the variance", factor=2.0),
    "double": Scenario("twice the variance", factor=0.5),
    "confident": Scenario("right size, logits × 1.5", scale=1.5),
    "logits": Scenario("half the variance of logits", factor=2.0, in_logits=True),
    "rare": Scenario("half, 3 % positives", factor=2.0, rare=True),
}


def fitted(s: np.ndarray, k: int, rows: np.ndarray):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return metrics.SecondOrderRecalibrator().fit_counts(s, k, rows)


@cache
def judged_on(name: str, h: int) -> tuple[np.ndarray, np.ndarray]:
    n = 20_000 if SCENARIOS[name].rare else 5000
    return SCENARIOS[name].draw(n, h, generator("judge", name, h))


def share(recalibrated: np.ndarray, p: np.ndarray) -> float:
    h = recalibrated.shape[1]
    uncertainty = metrics.finite_draws_factor(h) * recalibrated.var(axis=1).mean()
    return float(uncertainty / np.mean((p - recalibrated.mean(axis=1)) ** 2))


def _reports(variance: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "variance": variance,
        "0": np.zeros(len(variance)),
        "10 × variance": 10 * variance,
        "1/6": np.full(len(variance), 1 / 6),
        "shuffled variance": rng.permutation(variance),
    }


def from_counts(rng: np.random.Generator, name: str, n: int, k: int):
    """The share of the error that is reported after a fit on counts of labels."""
    scenario = SCENARIOS[name]
    p, hypotheses = scenario.draw(n, N_HYPOTHESES, rng)
    model = fitted(rng.binomial(k, p), k, hypotheses)
    p_judge, judge = judged_on(name, N_HYPOTHESES)
    return {
        "truth": 1.0,
        "share before": share(judge, p_judge),
        "share after": share(model.transform(judge), p_judge),
    }


def from_one_label(rng: np.random.Generator, name: str, n: int = 4000):
    predictor = PREDICTORS[name]
    held_out, test = (predictor.draw(n, N_HYPOTHESES, rng) for _ in range(2))
    model = metrics.SecondOrderRecalibrator().fit(held_out.y, held_out.hypotheses)
    true = predictor.true_frequency(test.hypotheses)
    before, after = (
        metrics.true_epistemic_calibration_error(true, rows)
        for rows in (test.hypotheses, model.transform(test.hypotheses))
    )
    return {
        "TECE before": before,
        "TECE after": after,
        "TECE added": after - before,
        "changed": bool(after != before),
    }


@cache
def signed_error(mean_error: float, report: str) -> float:
    _, large = SCENARIOS["right"].draw(400_000, N_HYPOTHESES, generator("population"))
    mean, variance = large.mean(axis=1), large.var(axis=1)
    uncertainty = _reports(variance, generator("population"))[report]
    return float(np.mean((mean_error * (0.5 - mean)) ** 2 + variance - uncertainty))


def reported(rng: np.random.Generator, mean_error: float, report: str, n: int = 2000):
    _, hypotheses = SCENARIOS["right"].draw(n, N_HYPOTHESES, rng)
    mean, variance = hypotheses.mean(axis=1), hypotheses.var(axis=1)
    true = mean + mean_error * (0.5 - mean)
    uncertainty = _reports(variance, rng)[report]
    truth = metrics.true_epistemic_calibration_error(
        true, hypotheses, epistemic_uncertainty=uncertainty
    )
    found = metrics.reported_uncertainty_error(
        rng.random(n) < true, hypotheses, epistemic_uncertainty=uncertainty, binning="quantile"
    )
    return {
        "truth": truth,
        "signed covers": inside(found.signed, signed_error(mean_error, report)),
        "lower limit above TECE": bool(found.lower.ci_low > truth),
    }


STUDIES = (
    Study(
        "spread from counts",
        "A recalibration fitted on counts of labels makes the share of the error that is reported "
        "right.",
        {
            f"{SCENARIOS[name].description}, N = {n:,}, {k} labels": partial(
                from_counts, name=name, n=n, k=k
            )
            for name in ("right", "half", "double", "confident", "logits")
            for n, k in ((2000, 3),)
        },
        {"share after": (0.85, 1.15)},
        draws=20,
    ),
    Study(
        "recalibration",
        "A recalibration fitted on one label per input takes error of the mean and of the spread "
        "away, and adds none to a calibrated predictor.",
        {
            PREDICTORS[name].description: partial(from_one_label, name=name)
            for name in ("calibrated", "mean", "dependent", "shape")
        },
        {"TECE added": (-1, 1e-4)},
        draws=20,
    ),
    Study(
        "reported uncertainty",
        "Of an uncertainty that a method reports itself, the signed error is covered, and the "
        "lower limit is above TECE in 5 % of draws at most.",
        {
            f"EU reported as {report}, mean {'right' if error == 0 else 'wrong'}": partial(
                reported, mean_error=error, report=report
            )
            for error in (0.0, 0.3)
            for report in ("variance", "0", "10 × variance", "1/6")
        },
        {"signed covers": (0.9, 1), "lower limit above TECE": (0, 0.05)},
        draws=20,
    ),
)
