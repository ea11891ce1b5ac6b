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
    much, more where they vary little. With ``swap``, half of the probability of class 0 goes to
    class 1 where the hypotheses vary much, and back where they vary little; with ``shape``,
    where they differ about class 0 and where they differ about class 1.
    """

    description: str
    exponent: float = 1.0
    dependence: float = 0.0
    scale: float = 1.5
    by_class: bool = False
    swap: bool = False
    shape: bool = False

    def draw(self, n: int, n_classes: int, rng: np.random.Generator) -> Draw:
        logits = rng.normal(0, self.scale, (n, n_classes))
        if self.shape:
            # Only the logit of one of two classes is uncertain.
            noise = np.zeros((n, N_HYPOTHESES, n_classes))
            doubtful = rng.integers(0, 2, n)
            noise[np.arange(n), :, doubtful] = rng.normal(0, 1.5, (n, N_HYPOTHESES))
            hypotheses = softmax(logits[:, None] + noise, axis=2)
        else:
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
        if self.by_class:
            p = p * np.linspace(0.75, 1.3, n_classes)
        p /= p.sum(axis=1, keepdims=True)
        if self == Scenario(self.description):
            # Not but for rounding.
            return mean
        if self.swap or self.shape:
            spread = hypotheses.std(axis=1)[:, :2] / np.sqrt(mean * (1 - mean))[:, :2]
            first = spread[:, 0] > spread[:, 1] if self.shape else much
            moved = 0.5 * np.where(first, p[:, 0], -p[:, 1])
            p[:, 0] -= moved
            p[:, 1] += moved
        return p


SCENARIOS = {
    "calibrated": Scenario("calibrated"),
    "over": Scenario("overconfident", exponent=0.7),
    "certain": Scenario("overconfident, nearly certain", exponent=0.7, scale=4.0),
    "spread": Scenario("exponent depends on spread", dependence=0.3),
    "class": Scenario("classes too frequent", by_class=True),
    "swap": Scenario("two classes swap by spread", swap=True),
    "shape": Scenario("by which class is in doubt", shape=True),
}


def labels_of(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random((len(p), 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)


def judged(rng: np.random.Generator, name: str, n_classes: int, n: int):
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
            f"{SCENARIOS[s].description}, C = {c}, N = {n:,}": partial(
                judged, name=s, n_classes=c, n=n
            )
            for s in scenarios
            for c in (3, 10)
            for n in (1000, 5000)
        },
        claimed,
        draws=200,
        quick=6,
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
