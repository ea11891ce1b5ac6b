"""Measure recalibration, and the error of a reported EU, where everything is known.

    .venv/bin/python validation/recalibration.py                     # 30 minutes on one core
    .venv/bin/python validation/recalibration.py --quick             # a minute, to see that it runs
    .venv/bin/python validation/recalibration.py --only dispersion   # some of the experiments
    .venv/bin/python validation/recalibration.py --output FOLDER     # tables as files as well

Prints Markdown tables; the results do not depend on which experiments run.
"""

from __future__ import annotations

import argparse
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

from epistemic_calibration import metrics
from epistemic_calibration.metrics.recalibration import _change, _fit, _spread

SIZES = (500, 2000, 10_000)
LABELS = (2, 3, 50)


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


def generator(*key: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def fitted(s: np.ndarray, k: int, rows: np.ndarray, **options: bool):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return metrics.SecondOrderRecalibrator(**options).fit_counts(s, k, rows)


@cache
def true_dispersion(name: str, h: int) -> float:
    rng = generator("truth", name, h)
    p, rows = SCENARIOS[name].draw(50_000, h, rng)
    return fitted(rng.binomial(10**9, p), 10**9, rows, only_if_better=False).dispersion_


@cache
def judged_on(name: str, h: int) -> tuple[np.ndarray, np.ndarray]:
    n = 20_000 if SCENARIOS[name].rare else 5000
    return SCENARIOS[name].draw(n, h, generator("judge", name, h))


def share(recalibrated: np.ndarray, p: np.ndarray) -> float:
    h = recalibrated.shape[1]
    uncertainty = metrics.finite_draws_factor(h) * recalibrated.var(axis=1).mean()
    return float(uncertainty / np.mean((p - recalibrated.mean(axis=1)) ** 2))


def by_likelihood_of_counts(
    model: metrics.SecondOrderRecalibrator, s: np.ndarray, k: int, rows: np.ndarray
) -> float:
    """Return τ that maximises the likelihood of counts, those of a mixture of hypotheses."""
    from scipy.special import logsumexp

    logits = logit(rows)
    parameters = np.array([model.scale_, model.shift_, model.spread_, model.interaction_])
    logits += _change(logits, parameters)[:, None]

    def loss(log_dispersion: float) -> float:
        f = _spread(logits, np.exp(log_dispersion))
        terms = -s[:, None] * np.logaddexp(0, -f) - (k - s)[:, None] * np.logaddexp(0, f)
        return -float(np.sum(logsumexp(terms, axis=1)))

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 3), options={"xatol": 1e-3}).x))


def of_one_label(y: np.ndarray, rows: np.ndarray, dispersion: float | None = None):
    """Fit scale and τ (JUCAL), or the scale alone, by the log loss of the mean; return both."""
    logits = logit(rows)
    mean = logits.mean(axis=1)
    deviation = logits - mean[:, None]

    def loss(x: np.ndarray) -> float:
        tau = np.exp(x[1]) if dispersion is None else dispersion
        p = expit(np.exp(x[0]) * mean[:, None] + tau * deviation).mean(axis=1)
        p = np.clip(p, 1e-15, 1 - 1e-15)
        return -float(np.mean(np.where(y, np.log(p), np.log1p(-p))))

    n_free = 2 if dispersion is None else 1
    result = minimize(loss, np.zeros(n_free), method="L-BFGS-B", bounds=[(-3, 3)] * n_free)
    tau = float(np.exp(result.x[1])) if dispersion is None else dispersion
    return tau, float(result.fun)


def log_loss_of_four(y: np.ndarray, rows: np.ndarray, dispersion: float) -> float:
    """Return the log loss of the mean with τ given and the other four numbers fitted."""
    logits = logit(rows)
    mean = logits.mean(axis=1, keepdims=True)
    logits = mean + dispersion * (logits - mean)
    parameters = _fit(y.astype(float), np.ones(len(y)), logits)
    after = expit(logits + _change(logits, parameters)[:, None])
    return metrics.log_loss(y, after.mean(axis=1))


def dispersion(repeats: Callable[[int], int]) -> Iterator[tuple[str, pd.DataFrame]]:
    """τ by three ways to fit it, and the share of the error reported afterwards."""
    for h in (20, 3):
        rows = []
        for name, scenario in SCENARIOS.items():
            if h == 3 and name not in ("right", "half"):
                continue
            true, (p_judge, judge) = true_dispersion(name, h), judged_on(name, h)
            before = share(judge, p_judge)
            for n in SIZES:
                for repeat in range(repeats(n)):
                    rng = generator("dispersion", name, h, n, repeat)
                    p, hypotheses = scenario.draw(n, h, rng)
                    one_label, _ = of_one_label(rng.random(n) < p, hypotheses)
                    for k in LABELS:
                        s = rng.binomial(k, p)
                        always = fitted(s, k, hypotheses, only_if_better=False)
                        default = fitted(s, k, hypotheses)
                        tau = by_likelihood_of_counts(always, s, k, hypotheses)
                        row = {"scenario": scenario.description, "N": n, "k": k, "τ": true}
                        row["of moments"] = always.dispersion_
                        row["share"] = share(always.transform(judge), p_judge)
                        row["default: share"] = share(default.transform(judge), p_judge)
                        row["of counts"] = tau
                        always.dispersion_ = tau
                        row["share (counts)"] = share(always.transform(judge), p_judge)
                        row["one label each"] = one_label
                        row["share before"] = before
                        rows.append(row)
        groups = pd.DataFrame(rows).groupby(["scenario", "N", "k"], sort=False)
        mean, deviation = groups.mean(), groups.std()
        table = pd.DataFrame(
            {
                column: mean[column].map("{:.2f}".format)
                + ("" if column in ("τ", "share before") else " ± ")
                + (
                    ""
                    if column in ("τ", "share before")
                    else deviation[column].map("{:.2f}".format)
                )
                for column in mean
            }
        ).assign(draws=groups.size())
        yield f"τ, and the share of the error that is reported (H = {h}; mean ± SD)", table


def identification(
    repeats: Callable[[int], int], *, h: int = 20, k: int = 3
) -> Iterator[tuple[str, pd.DataFrame]]:
    """How much log loss a wrong τ costs: of the mean of single labels, and of counts."""
    rows = []
    for name, scenario in SCENARIOS.items():
        for repeat in range(max(2, repeats(10_000))):
            rng = generator("identification", name, repeat)
            p, hypotheses = scenario.draw(10_000, h, rng)
            y, s = rng.random(len(p)) < p, rng.binomial(k, p)
            _, best = of_one_label(y, hypotheses)
            model = fitted(s, k, hypotheses, only_if_better=False)
            tau = model.dispersion_
            factors = (1 / 3, 1 / 2, 1, 2, 3)
            of_four = [log_loss_of_four(y, hypotheses, tau * factor) for factor in factors]
            for factor, with_spread in zip(factors, of_four, strict=True):
                _, loss = of_one_label(y, hypotheses, tau * factor)
                model.dispersion_ = tau * factor
                after = model.transform(hypotheses)
                result = metrics.second_order_error(s, k, after, n_bins=2, binning="quantile")
                rows.append(
                    {
                        "scenario": scenario.description,
                        "τ / τ of counts": round(factor, 2),
                        "one label each, scale and τ: nats lost": 1e4 * (loss - best),
                        "one label each, four numbers": 1e4 * (with_spread - min(of_four)),
                        "share by counts": result.share.estimate,
                        "its gap / SE": result.gap.estimate / result.gap.standard_error,
                    }
                )
    groups = pd.DataFrame(rows).groupby(["scenario", "τ / τ of counts"], sort=False)
    title = f"What a wrong τ costs (N = 10,000, H = {h}, k = {k})"
    yield title, groups.mean().round(2).assign(draws=groups.size())


def price(repeats: Callable[[int], int], *, h: int = 10) -> Iterator[tuple[str, pd.DataFrame]]:
    """What recalibration does to predictors whose P(Y = 1 | row) is known."""
    rows = []
    predictors = {
        "calibrated": lambda m, s: m,
        "calibrated, 1 % positives": lambda m, s: m,
        "overconfident mean": lambda m, s: 0.7 * m,
        "spread predicts the label": lambda m, s: m + 0.8 * (s - 0.9),
    }
    for name, change in predictors.items():
        for n in (50, 100, 300, 1000, 4000):
            for repeat in range(repeats(n)):
                rng = generator("price", name, n, repeat)
                size = n + 4000
                centre = rng.normal(-5.5 if "1 %" in name else 0, 1.3, size)
                spread = rng.choice([0.3, 1.5], size)
                logits = centre[:, None] + spread[:, None] * rng.standard_normal((size, h))
                mean, deviation = logits.mean(axis=1), logits.std(axis=1)
                shift = change(mean, deviation) - mean
                true = expit(logits + shift[:, None]).mean(axis=1)
                y, hypotheses = rng.random(size) < true, expit(logits)
                if y[:n].min() == y[:n].max():
                    continue
                before = hypotheses[n:].mean(axis=1)
                row = {"predictor": name, "N": n}
                for column, option in (("always", False), ("default", True)):
                    model = metrics.SecondOrderRecalibrator(only_if_better=option)
                    model.fit(y[:n], hypotheses[:n])
                    after = model.transform(hypotheses[n:]).mean(axis=1)
                    row[f"log loss × N, {column}"] = n * (
                        _cross_entropy(true[n:], after) - _cross_entropy(true[n:], before)
                    )
                    row[f"TECE, {column}"] = np.mean((true[n:] - after) ** 2)
                    row[f"reversed, %, {column}"] = 100 * _reversed(before, after)
                row["changed, %"] = 100.0 * model.changed_
                row["TECE before"] = np.mean((true[n:] - before) ** 2)
                rows.append(row)
    groups = pd.DataFrame(rows).groupby(["predictor", "N"], sort=False)
    table = groups.mean()
    formats = {c: "{:.5f}" if "TECE" in c else "{:.2f}" for c in table}
    table = pd.DataFrame({c: table[c].map(formats[c].format) for c in table})
    yield "The price of fitting, and what it buys", table.assign(draws=groups.size())


def _cross_entropy(true: np.ndarray, p: np.ndarray) -> float:
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return -float(np.mean(true * np.log(p) + (1 - true) * np.log1p(-p)))


def _reversed(before: np.ndarray, after: np.ndarray) -> float:
    """Return the share of pairs whose order changes (Kendall's τ is 1 − 2 of it)."""
    from scipy.stats import kendalltau

    return float((1 - kendalltau(rankdata(before[:1000]), rankdata(after[:1000])).statistic) / 2)


def _reports(variance: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "variance": variance,
        "0": np.zeros(len(variance)),
        "10 × variance": 10 * variance,
        "1/6": np.full(len(variance), 1 / 6),
        "shuffled variance": rng.permutation(variance),
    }


def reported(repeats: Callable[[int], int], *, h: int = 20) -> Iterator[tuple[str, pd.DataFrame]]:
    """TECE with EU as reported, by its estimates from one label per input."""
    rows = []
    _, large = SCENARIOS["right"].draw(400_000, h, generator("population"))
    for mean_error in (0.0, 0.3):
        mean, variance = large.mean(axis=1), large.var(axis=1)
        squares = (mean_error * (0.5 - mean)) ** 2 + variance
        population = {
            name: float(np.mean(squares - uncertainty))
            for name, uncertainty in _reports(variance, generator("population")).items()
        }
        for n in (500, 2000, 10_000):
            for repeat in range(repeats(n)):
                rng = generator("reported", mean_error, n, repeat)
                _, hypotheses = SCENARIOS["right"].draw(n, h, rng)
                mean, variance = hypotheses.mean(axis=1), hypotheses.var(axis=1)
                true = mean + mean_error * (0.5 - mean)
                y = rng.random(n) < true
                for name, uncertainty in _reports(variance, rng).items():
                    tece = metrics.true_epistemic_calibration_error(
                        true, hypotheses, epistemic_uncertainty=uncertainty
                    )
                    result = metrics.reported_uncertainty_error(
                        y,
                        hypotheses,
                        epistemic_uncertainty=uncertainty,
                        binning="quantile",
                        random_state=repeat,
                    )
                    signed = population[name]
                    rows.append(
                        {
                            "mean": f"{mean_error:.0%} towards 1/2" if mean_error else "calibrated",
                            "reported EU": name,
                            "N": n,
                            "TECE": tece,
                            "lower": result.lower.estimate,
                            "binned": result.binned,
                            "signed: true": signed,
                            "signed": result.signed.estimate,
                            "SE / SD": result.signed.standard_error,
                            "signed covered, %": 100.0
                            * (result.signed.ci_low <= signed <= result.signed.ci_high),
                            "lower limit > TECE, %": 100.0 * (result.lower.ci_low > tece),
                            "lower limit > 0, %": 100.0 * (result.lower.ci_low > 0),
                        }
                    )
    groups = pd.DataFrame(rows).groupby(["mean", "reported EU", "N"], sort=False)
    table = groups.mean()
    table["SE / SD"] /= groups["signed"].std()
    table = pd.DataFrame(
        {c: table[c].map(("{:.2f}" if "%" in c or "/" in c else "{:.5f}").format) for c in table}
    )
    yield f"TECE with EU as reported (H = {h})", table.assign(draws=groups.size())


EXPERIMENTS = {
    "dispersion": dispersion,
    "identification": identification,
    "price": price,
    "reported": reported,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few draws, to see that it runs")
    parser.add_argument("--draws", type=int, default=200, help="of small samples (default 200)")
    parser.add_argument("--only", nargs="+", default=list(EXPERIMENTS), help="experiments to run")
    parser.add_argument("--output", type=Path, help="folder for the tables, as CSV")
    args = parser.parse_args()
    unknown = set(args.only) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"unknown experiments {sorted(unknown)}; there are {list(EXPERIMENTS)}")
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)

    def repeats(n: int) -> int:
        # Of large samples, fewer are enough and each is slow.
        return 2 if args.quick else max(2, args.draws // (1 if n <= 500 else 2 if n <= 4000 else 3))

    # Small products of matrices: threads would only wait for each other.
    with threadpool_limits(1):
        for name in args.only:
            for number, (title, table) in enumerate(EXPERIMENTS[name](repeats)):
                table = table.reset_index()
                print(f"\n### {title}\n\n{table.to_markdown(index=False)}", flush=True)
                if args.output:
                    table.to_csv(args.output / f"{name}_{number}.csv", index=False)


if __name__ == "__main__":
    main()
