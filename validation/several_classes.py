"""Several classes: jointly, the top label, and each class against all others."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from _study import LEVEL, Study, inside
from scipy.special import softmax

from epistemic_calibration import metrics

N_HYPOTHESES = 10


class Draw(NamedTuple):
    """Predictions, and P(Y | Π), which is a function of them."""

    hypotheses: np.ndarray
    mean: np.ndarray
    p: np.ndarray

    @property
    def error(self) -> np.ndarray:
        return self.p - self.mean


class Scenario(NamedTuple):
    """A predictor whose hypotheses are draws of a Dirichlet distribution at every input.

    P(Y | Π) ∝ Δ^exponent, and ``dependence`` less of an exponent where the hypotheses vary
    much, more where they vary little.
    """

    description: str
    exponent: float = 1.0
    dependence: float = 0.0
    scale: float = 1.5

    def draw(self, n: int, n_classes: int, rng: np.random.Generator) -> Draw:
        logits = rng.normal(0, self.scale, (n, n_classes))
        law = softmax(logits, axis=1) + 1e-4
        precision = np.where(rng.random(n) < 0.5, 4.0, 40.0) * (1 if n_classes < 5 else 2)
        parameters = np.repeat((law * precision[:, None])[:, None], N_HYPOTHESES, axis=1)
        gamma = rng.standard_gamma(parameters) + 1e-12
        hypotheses = gamma / gamma.sum(axis=2, keepdims=True)
        mean = hypotheses.mean(axis=1)
        return Draw(hypotheses, mean, self._truth(hypotheses, mean))

    def _truth(self, hypotheses: np.ndarray, mean: np.ndarray) -> np.ndarray:
        n_classes = mean.shape[1]
        largest = 1 - np.square(mean).sum(axis=1)
        relative = np.sqrt(hypotheses.var(axis=1).sum(axis=1) / largest)
        # Between what both precisions give.
        much = relative > (0.28 if n_classes < 5 else 0.21)
        power = self.exponent + self.dependence * np.where(much, -1, 1)
        p = mean ** power[:, None]
        # A calibrated mean, not but for rounding.
        return mean if (power == 1).all() else p / p.sum(axis=1, keepdims=True)


SCENARIOS = {
    "calibrated": Scenario("calibrated"),
    "over": Scenario("overconfident", exponent=0.7),
    "certain": Scenario("overconfident, nearly certain", exponent=0.7, scale=4.0),
    "spread": Scenario("exponent depends on spread", dependence=0.3),
}


def labels_of(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random((len(p), 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)


def judged(rng: np.random.Generator, name: str, n_classes: int, n: int = 2000):
    draw = SCENARIOS[name].draw(n, n_classes, rng)
    y, error = labels_of(draw.p, rng), draw.error
    jointly = float(np.square(error).sum() / n)
    task = metrics.top_label_task(y, draw.hypotheses)
    top = float(np.mean(error[np.arange(n), task.predicted] ** 2))
    found = {
        "jointly": (metrics.canonical_epistemic_calibration_error(y, draw.hypotheses), jointly),
        "top label": (metrics.top_label_epistemic_calibration_error(y, draw.hypotheses), top),
        "classes": (
            metrics.classwise_epistemic_calibration_error(y, draw.hypotheses, n_resamples=199).mean,
            jointly / n_classes,
        ),
    }
    measures = {f"{k}: covers": inside(estimate, true) for k, (estimate, true) in found.items()}
    if jointly > 0:
        measures |= {f"{k}: seen": e.estimate / true for k, (e, true) in found.items()}
    else:
        test = metrics.canonical_epistemic_calibration_test(y, draw.hypotheses, n_resamples=199)
        measures["joint test rejects"] = test.p_value <= LEVEL
    return {"truth": jointly, **measures}


def _study(name: str, claim: str, scenarios: tuple[str, ...], claimed: dict) -> Study:
    return Study(
        name,
        claim,
        {
            f"{SCENARIOS[s].description}, C = {c}": partial(judged, name=s, n_classes=c)
            for s in scenarios
            for c in (3, 10)
        },
        claimed,
        draws=20,
    )


STUDIES = (
    _study(
        "several classes, calibrated",
        "A calibrated predictor of several classes is found to be one in 95 % of draws.",
        ("calibrated",),
        {
            **{f"{k}: covers": (0.93, 1) for k in ("jointly", "top label", "classes")},
            "joint test rejects": (0, 0.08),
        },
    ),
    _study(
        "several classes, error",
        "What bins see of the error of several classes is a part of it, and never more.",
        ("over", "certain", "spread"),
        {f"{k}: seen": (0.0, 1.1) for k in ("jointly", "top label", "classes")},
    ),
)
