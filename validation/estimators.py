"""Measure the estimators of epistemic calibration on predictors whose TECE is known.

    .venv/bin/python validation/estimators.py --output build/estimators          # 12 minutes of CPU
    .venv/bin/python validation/estimators.py --output build/estimators --quick  # about a minute

Writes one CSV for each experiment and the figures of docs/validation.md.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.special import betaln, expit, logit, logsumexp, ndtri, softmax
from scipy.stats import binom
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

from epistemic_calibration import metrics
from epistemic_calibration.metrics.binning import quantile_bins

LEVEL = 0.05


class Sample(NamedTuple):
    y: np.ndarray
    hypotheses: np.ndarray


class Predictor(NamedTuple):
    """A predictor with known error.

    Its hypotheses are independent Beta draws at every input with mean p and standard
    deviation spread·sqrt(p(1 − p)), where spread is the first or the second of two values
    at random; logit p is normal with ``location`` and ``scale``. With Δ the mean of the hypotheses,

        P(Y = 1 | Δ, spread) = sigmoid(slope·logit Δ + shift) ± dependence·Δ(1 − Δ),

    plus where the spread is the first.
    """

    description: str
    spreads: tuple[float, float] = (0.45, 0.15)
    slope: float = 1.0
    shift: float = 0.0
    dependence: float = 0.0
    shape: bool = False
    location: float = 0.0
    scale: float = 1.5

    def inputs(self, normal: np.ndarray) -> np.ndarray:
        return np.clip(expit(self.location + self.scale * normal), 1e-4, 1 - 1e-4)

    def draw(self, n: int, h: int, rng: np.random.Generator) -> Sample:
        p = self.inputs(rng.standard_normal(n))
        first = rng.random(n) < 0.5
        if self.shape:
            # Two values with the same mean and variance, skewed to one side or the other.
            spread = self.spreads[0] * np.sqrt(p * (1 - p))
            q = np.where(first, 0.2, 0.8)
            up, down = np.sqrt((1 - q) / q) * spread, np.sqrt(q / (1 - q)) * spread
            high = rng.random((n, h)) < q[:, None]
            hypotheses = np.where(high, (p + up)[:, None], (p - down)[:, None]).clip(0, 1)
        else:
            precision = np.where(first, *self.spreads) ** -2.0 - 1
            parameters = ((q * precision)[:, None] for q in (p, 1 - p))
            hypotheses = rng.beta(*parameters, (n, h))
        true = self.frequency(hypotheses, first.astype(float))
        return Sample((rng.random(n) < true).astype(float), hypotheses)

    def frequency(self, hypotheses: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Return P(Y = 1) where ``first`` is the probability of the first spread."""
        mean = np.clip(hypotheses.mean(axis=1), 1e-6, 1 - 1e-6)
        mean_part = expit(self.slope * logit(mean) + self.shift)
        return (mean_part + (2 * first - 1) * self.dependence * mean * (1 - mean)).clip(0, 1)

    def true_frequency(self, hypotheses: np.ndarray) -> np.ndarray:
        """Return P(Y = 1 | Π), with what the row itself tells of its spread (Bayes)."""
        n, h = hypotheses.shape
        if self.dependence == 0:
            return self.frequency(hypotheses, np.zeros(n))
        if self.shape:
            low, high = hypotheses.min(axis=1), hypotheses.max(axis=1)
            share = np.mean(hypotheses > ((low + high) / 2)[:, None], axis=1)
            return self.frequency(hypotheses, (share < 0.5).astype(float))
        p = self.inputs(ndtri((np.arange(250) + 0.5) / 250))
        rows = np.clip(hypotheses, 1e-300, 1 - 1e-16)
        logs = np.stack([np.log(rows).sum(axis=1), np.log1p(-rows).sum(axis=1)], axis=1)
        evidence = []
        for spread in self.spreads:
            a, b = p * (spread**-2.0 - 1), (1 - p) * (spread**-2.0 - 1)
            likelihood = logs @ np.stack([a - 1, b - 1]) - h * betaln(a, b)
            evidence.append(logsumexp(likelihood, axis=1))
        return self.frequency(hypotheses, expit(evidence[0] - evidence[1]))

    def tece(self, h: int) -> float:
        """Return the true epistemic calibration error with ``h`` hypotheses."""
        rng = generator("truth", h)
        parts = []
        for _ in range(4):
            rows = self.draw(2500, h, rng).hypotheses
            parts.append(metrics.true_epistemic_calibration_error(self.true_frequency(rows), rows))
        return float(np.mean(parts))


CALIBRATED = Predictor("calibrated")
RARE = {"location": -2.8, "scale": 1.8}
PREDICTORS = {
    "calibrated": CALIBRATED,
    "mean": Predictor("overconfident mean", slope=0.6, shift=0.2),
    "dependent": Predictor("spread tells of the label", dependence=0.32),
    "both": Predictor("both errors", slope=0.75, dependence=0.2),
    "forest": Predictor("calibrated, wide scatter", spreads=(0.7, 0.5)),
    "forest_dependent": Predictor("wide scatter, dependent", spreads=(0.7, 0.5), dependence=0.32),
    "narrow_dependent": Predictor(
        "narrow scatter, dependent", spreads=(0.06, 0.02), dependence=0.32
    ),
    "shape": Predictor(
        "skewness tells of the label", spreads=(0.3, 0.3), dependence=0.32, shape=True
    ),
    "rare": Predictor("calibrated, 10 % positives", **RARE),
    "rare_mean": Predictor("overconfident mean, 10 % positives", slope=0.6, shift=0.2, **RARE),
    "rare_dependent": Predictor(
        "spread tells of the label, 10 % positives", dependence=0.6, **RARE
    ),
    "certain": Predictor("calibrated, nearly certain", location=-7.0, scale=5.0),
}


def estimates(sample: Sample) -> dict[str, float]:
    """Return what each estimator says of a sample."""
    y, hypotheses = sample
    result = {}
    for name, binning, n_bins in (
        ("K-means 100", "kmeans", 100),
        ("sorted K-means 100", "sorted_kmeans", 100),
        ("quantile 100", "quantile", 100),
        ("nested 50", "nested", 50),
    ):
        bins = metrics.assign_bins(hypotheses, n_bins=n_bins, binning=binning)
        result[f"EECE, {name}"] = metrics.expected_epistemic_calibration_error(
            y, hypotheses, binning=binning, bins=bins
        )
        result[f"corrected, {name}"] = metrics.corrected_epistemic_calibration_error(
            y, hypotheses, bins=bins
        ).estimate
    result["lower bound"] = metrics.cross_fitted_lower_bound(y, hypotheses).estimate
    return result


#: Estimators in the figure, from the paper's to ours.
SHOWN = [
    "EECE, K-means 100",
    "EECE, sorted K-means 100",
    "corrected, K-means 100",
    "corrected, sorted K-means 100",
    "corrected, quantile 100",
    "corrected, nested 50",
    "lower bound",
]


def generator(*key: str | int) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


def run(jobs: int, function: Callable, tasks: list[tuple]) -> pd.DataFrame:
    """Return the rows that ``function`` makes of each task, in the order of the tasks."""

    def limited(task: tuple) -> list[dict]:
        with threadpool_limits(1):
            return function(*task)

    rows = Parallel(n_jobs=jobs)(delayed(limited)(task) for task in tasks)
    return pd.DataFrame(list(itertools.chain.from_iterable(rows)))


def compare_one(name: str, n: int, h: int, repeat: int) -> list[dict]:
    sample = PREDICTORS[name].draw(n, h, generator("compare", name, repeat))
    return [
        {"predictor": name, "estimator": estimator, "value": value}
        for estimator, value in estimates(sample).items()
    ]


def compare(jobs: int, repeats: int, *, n: int = 4000, h: int = 20) -> pd.DataFrame:
    tasks = [(name, n, h, k) for name in PREDICTORS for k in range(repeats)]
    rows = run(jobs, compare_one, tasks)
    table = rows.groupby(["predictor", "estimator"], sort=False)["value"].agg(["mean", "std"])
    table = table.reset_index()
    tece = {name: predictor.tece(h) for name, predictor in PREDICTORS.items()}
    table["tece"] = table["predictor"].map(tece)
    table["bias"] = table["mean"] - table["tece"]
    return table.assign(n_samples=n, n_hypotheses=h, n_repeats=repeats)


def bias_one(name: str, n: int, m: int, h: int, repeat: int) -> list[dict]:
    sample = PREDICTORS[name].draw(n, h, generator("bias", name, n, h, repeat))
    result = metrics.corrected_epistemic_calibration_error(sample.y, sample.hypotheses, n_bins=m)
    return [
        {
            "predictor": name,
            "n_samples": n,
            "n_bins": m,
            "n_hypotheses": h,
            "plug_in": result.plug_in,
            "corrected": result.estimate,
            "noise_floor": result.noise_floor,
        }
    ]


def bias(jobs: int, repeats: int) -> pd.DataFrame:
    settings = [(n, 50, 20) for n in (500, 1000, 2000, 4000, 8000)]
    settings += [(4000, m, 20) for m in (10, 20, 100, 200)]
    settings += [(4000, 50, h) for h in (5, 100)]
    tasks = [
        (name, *setting, k)
        for name in ("calibrated", "both")
        for setting in settings
        for k in range(repeats)
    ]
    by = ["predictor", "n_samples", "n_bins", "n_hypotheses"]
    groups = run(jobs, bias_one, tasks).groupby(by, sort=False)
    table = groups.mean().join(groups["corrected"].std().rename("corrected_std")).reset_index()
    table["tece"] = [PREDICTORS[row.predictor].tece(row.n_hypotheses) for row in table.itertuples()]
    return table.assign(n_repeats=repeats)


def coverage_one(name: str, n: int, h: int, tece: float, repeat: int) -> list[dict]:
    sample = PREDICTORS[name].draw(n, h, generator("coverage", name, repeat))
    split = metrics.split_epistemic_calibration_error(sample.y, sample.hypotheses)
    bound = metrics.cross_fitted_lower_bound(sample.y, sample.hypotheses)
    total = split.total
    return [
        {
            "predictor": name,
            "tece": tece,
            "estimate": total.estimate,
            "standard_error": total.standard_error,
            "covered": total.ci_low <= tece <= total.ci_high,
            "ci_low_above": total.ci_low > tece,
            "ci_high_below": total.ci_high < tece,
            "mean_miscalibration": split.mean_miscalibration.estimate,
            "epistemic_dependence": split.epistemic_dependence.estimate,
            "lower_bound": bound.estimate,
            "lower_limit_holds": bound.ci_low <= tece,
        }
    ]


def coverage(jobs: int, repeats: int, *, n: int = 2000, h: int = 20) -> pd.DataFrame:
    tece = {name: predictor.tece(h) for name, predictor in PREDICTORS.items()}
    tasks = [(name, n, h, tece[name], k) for name in PREDICTORS for k in range(repeats)]
    groups = run(jobs, coverage_one, tasks).groupby("predictor", sort=False)
    table = groups.mean().join(groups["estimate"].std().rename("estimate_std")).reset_index()
    return table.assign(n_samples=n, n_hypotheses=h, n_repeats=repeats)


def tasks_one(slope: float, n: int, repeat: int | str) -> list[dict]:
    """Ten one-vs-all tasks whose labels are one class an image."""
    rng = generator("tasks", slope, repeat)
    logits = rng.normal(0, 2, (n, 10))
    predictions, true = softmax(logits, axis=1), softmax(slope * logits, axis=1)
    if repeat == "truth":
        # Tasks are alike. The error of each sample's bins is what the interval is of; that
        # of very fine ones is TECE.
        errors = (true - predictions).ravel()[np.argsort(predictions, axis=None)]
        return [
            {
                name: float(np.mean(errors.reshape(n_bins, -1).mean(axis=1) ** 2))
                for name, n_bins in (("tece", 2000), ("tece_of_bins", 20))
            }
        ]
    cls = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    bins = [quantile_bins(p, 20) for p in predictions.T]
    labels = [cls == k for k in range(10)]
    result = metrics.mean_corrected_error(
        labels, list(predictions.T), bins, n_resamples=199, random_state=repeat
    )
    parts = [
        metrics.corrected_epistemic_calibration_error(y, p[:, None], bins=b)
        for y, p, b in zip(labels, predictions.T, bins, strict=True)
    ]
    independent = np.sqrt(np.mean([part.standard_error**2 for part in parts]) / 10)
    return [
        {
            "slope": slope,
            "estimate": result.estimate,
            "standard_error": result.standard_error,
            "if_independent": independent,
            "ci_low": result.ci_low,
            "ci_high": result.ci_high,
        }
    ]


def tasks(jobs: int, repeats: int, *, n: int = 1000) -> pd.DataFrame:
    rows = []
    for slope in (1.0, 0.9, 0.7):
        (truth,) = tasks_one(slope, 200_000, "truth")
        table = run(jobs, tasks_one, [(slope, n, k) for k in range(repeats)]).assign(**truth)
        rows.append(
            {
                "slope": slope,
                **truth,
                "estimate": table["estimate"].mean(),
                "estimate_std": table["estimate"].std(),
                "standard_error": table["standard_error"].mean(),
                "standard_error_if_independent": table["if_independent"].mean(),
                "covered": table["tece_of_bins"].between(table["ci_low"], table["ci_high"]).mean(),
                "n_samples": n,
                "n_repeats": repeats,
            }
        )
    return pd.DataFrame(rows)


TESTS: dict[str, Callable[[Sample, int], float]] = {
    "epistemic calibration": lambda s, k: (
        metrics.epistemic_calibration_test(
            s.y, s.hypotheses, n_resamples=199, random_state=k
        ).p_value
    ),
    "epistemic calibration, raw K-means": lambda s, k: (
        metrics.epistemic_calibration_test(
            s.y, s.hypotheses, binning="kmeans", n_resamples=199, random_state=k
        ).p_value
    ),
    "mean calibration": lambda s, k: (
        metrics.mean_calibration_test(s.y, s.hypotheses, n_resamples=199, random_state=k).p_value
    ),
    "independence, gcm": lambda s, k: (
        metrics.epistemic_independence_test(s.y, s.hypotheses, random_state=k).p_value
    ),
    "independence, score": lambda s, k: (
        metrics.epistemic_independence_test(
            s.y, s.hypotheses, method="score", random_state=k
        ).p_value
    ),
}


def tests_one(kind: str, effect: float, predictor: Predictor, n: int, repeat: int) -> list[dict]:
    sample = predictor.draw(n, 20, generator("tests", kind, effect, repeat))
    return [
        {"kind": kind, "effect": effect, "test": test, "rejected": p(sample, repeat) <= LEVEL}
        for test, p in TESTS.items()
        # Its size is exact as that of the first test; K-means is slow.
        if effect > 0 or "raw" not in test
    ]


def tests(jobs: int, size_repeats: int, power_repeats: int, *, n: int = 2000) -> pd.DataFrame:
    cases = [
        ("calibrated", 0.0, CALIBRATED, size_repeats),
        ("calibrated, 10 % positives", 0.0, PREDICTORS["rare"], size_repeats),
        ("calibrated, wide scatter", 0.0, PREDICTORS["forest"], size_repeats),
        ("calibrated, nearly certain", 0.0, PREDICTORS["certain"], size_repeats),
    ]
    cases += [
        ("mean", e, CALIBRATED._replace(slope=1 - e), power_repeats)
        for e in (0.1, 0.2, 0.3, 0.4, 0.5)
    ]
    cases += [
        ("dependence", e, CALIBRATED._replace(dependence=e), power_repeats)
        for e in (0.08, 0.16, 0.24, 0.32, 0.4)
    ]
    rows = run(jobs, tests_one, [(*case, n, k) for *case, repeats in cases for k in range(repeats)])
    groups = rows.groupby(["kind", "effect", "test"], sort=False)["rejected"]
    table = groups.agg(rejected="mean", n_repeats="size").reset_index()
    tece = {(kind, effect): predictor.tece(20) for kind, effect, predictor, _ in cases}
    table["tece"] = [tece[row.kind, row.effect] for row in table.itertuples()]
    table["low"], table["high"] = (
        binom.ppf(q, table["n_repeats"], LEVEL) / table["n_repeats"] for q in (0.005, 0.995)
    )
    return table.assign(n_samples=n)


def recalibrate_one(name: str, n: int, repeat: int) -> list[dict]:
    rng = generator("recalibrate", name, repeat)
    predictor = PREDICTORS[name]
    held_out, test = predictor.draw(n, 20, rng), predictor.draw(n, 20, rng)
    fitted = metrics.SecondOrderRecalibrator().fit(held_out.y, held_out.hypotheses)
    after = fitted.transform(test.hypotheses)
    true = predictor.true_frequency(test.hypotheses)
    return [
        {
            "predictor": name,
            "tece_before": metrics.true_epistemic_calibration_error(true, test.hypotheses),
            "tece_after": metrics.true_epistemic_calibration_error(true, after),
            "estimate_after": metrics.corrected_epistemic_calibration_error(test.y, after).estimate,
        }
    ]


def recalibrate(jobs: int, repeats: int, *, n: int = 4000) -> pd.DataFrame:
    rows = run(jobs, recalibrate_one, [(name, n, k) for name in PREDICTORS for k in range(repeats)])
    table = rows.groupby("predictor", sort=False).mean().reset_index()
    return table.assign(n_samples=n, n_repeats=repeats)


def plot_comparison(table: pd.DataFrame, path: Path) -> None:
    import matplotlib.pyplot as plt

    names, n_columns = list(PREDICTORS), 4
    n_rows = -(-len(names) // n_columns)
    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=(9, 2.3 * n_rows), sharey=True, layout="constrained"
    )
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    for axis, name in zip(axes.flat, names, strict=False):
        rows = table[table["predictor"] == name].set_index("estimator").loc[SHOWN]
        tece = rows["tece"].iloc[0]
        axis.axvline(tece, color="tab:red", linewidth=1)
        axis.errorbar(
            rows["mean"], range(len(rows)), xerr=rows["std"], fmt="o", color="black", markersize=3
        )
        axis.set_title(PREDICTORS[name].description.replace(", ", ",\n"), fontsize=7)
        axis.set_xlim(-0.002, max(2 * tece, 0.013))
        axis.tick_params(labelsize=7)
        axis.xaxis.set_major_locator(plt.MaxNLocator(3))
    axes[0, 0].set_yticks(range(len(SHOWN)), SHOWN)
    axes[0, 0].invert_yaxis()
    figure.supxlabel("estimate, mean ± standard deviation; red: TECE", fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def plot_bias(table: pd.DataFrame, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7, 2.8), sharey=True, layout="constrained")
    fixed = {"n_samples": ("n_bins", 50), "n_bins": ("n_samples", 4000)}
    labels = {"n_samples": "test points (50 bins)", "n_bins": "bins (4000 test points)"}
    for axis, (column, (other, value)) in zip(axes, fixed.items(), strict=True):
        part = table[(table[other] == value) & (table["n_hypotheses"] == 20)]
        for name, colour in (("calibrated", "tab:blue"), ("both", "tab:orange")):
            rows = part[part["predictor"] == name].sort_values(column)
            axis.axhline(rows["tece"].iloc[0], color=colour, linewidth=0.8, linestyle=":")
            axis.plot(rows[column], rows["plug_in"], "--", color=colour, label=f"{name}, plug-in")
            axis.plot(
                rows[column], rows["corrected"], "o-", color=colour, label=f"{name}, corrected"
            )
        axis.set_xscale("log")
        axis.set_xticks(rows[column], rows[column])
        axis.minorticks_off()
        axis.set_xlabel(labels[column])
    axes[0].set_ylabel("estimate (dotted: TECE)")
    axes[0].legend(fontsize=7)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def plot_power(table: pd.DataFrame, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.2), sharey=True, layout="constrained")
    for axis, kind in zip(axes, ("mean", "dependence"), strict=True):
        for test in TESTS:
            rows = table[
                (table["test"] == test) & table["kind"].isin([kind, "calibrated"])
            ].sort_values("tece")
            axis.plot(rows["tece"], rows["rejected"], "o-", markersize=3, label=test)
        axis.axhline(LEVEL, color="grey", linewidth=0.8)
        axis.set_title(f"error of the {kind}" if kind == "mean" else "epistemic dependence")
        axis.set_xlabel("TECE")
    axes[0].set_ylabel("rejected at 0.05")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=7)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="folder")
    parser.add_argument("--quick", action="store_true", help="few repeats, to see that it runs")
    parser.add_argument("--jobs", type=int, default=1, help="processes; results do not change")
    parser.add_argument(
        "--only",
        nargs="+",
        default=["compare", "bias", "coverage", "tasks", "tests", "recalibrate"],
        help="experiments to run",
    )
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    jobs, quick = args.jobs, args.quick
    experiments: dict[str, Callable[[], pd.DataFrame]] = {
        "compare": lambda: compare(jobs, 2 if quick else 20),
        "bias": lambda: bias(jobs, 2 if quick else 20),
        "coverage": lambda: coverage(jobs, 4 if quick else 150),
        "tasks": lambda: tasks(jobs, 4 if quick else 150),
        "tests": lambda: tests(jobs, 4 if quick else 200, 2 if quick else 40),
        "recalibrate": lambda: recalibrate(jobs, 1 if quick else 10),
    }
    plots = {"compare": plot_comparison, "bias": plot_bias, "tests": plot_power}
    unknown = set(args.only) - set(experiments)
    if unknown:
        parser.error(f"unknown experiments {sorted(unknown)}; there are {list(experiments)}")
    for name in args.only:
        table = experiments[name]()
        table.to_csv(args.output / f"{name}.csv", index=False, float_format="%.6g")
        if name in plots:
            plots[name](table, args.output / f"estimators_{name}.png")
        print(table.to_string(index=False, float_format="%.5f"), flush=True)


if __name__ == "__main__":
    main()
