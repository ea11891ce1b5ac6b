"""Draw the figures of docs/validation.md: estimators beside each other, bias, power of tests.

python validation/figures.py --output FOLDER    # 10 minutes on one core
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from scipy.stats import binom
from threadpoolctl import threadpool_limits

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "workflow_scripts"))

from _study import LEVEL, generator
from corrected import CALIBRATED, N_HYPOTHESES, PREDICTORS, Predictor, Sample, tece

from epistemic_calibration import metrics


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


def run(function: Callable, tasks: list[tuple]) -> pd.DataFrame:
    """Return the rows that ``function`` makes of each task, in the order of the tasks."""
    return pd.DataFrame(list(itertools.chain.from_iterable(function(*task) for task in tasks)))


def compare_one(name: str, n: int, h: int, repeat: int) -> list[dict]:
    sample = PREDICTORS[name].draw(n, h, generator("compare", name, repeat))
    return [
        {"predictor": name, "estimator": estimator, "value": value}
        for estimator, value in estimates(sample).items()
    ]


def compare(repeats: int, *, n: int = 4000, h: int = N_HYPOTHESES) -> pd.DataFrame:
    rows = run(compare_one, [(name, n, h, k) for name in PREDICTORS for k in range(repeats)])
    table = rows.groupby(["predictor", "estimator"], sort=False)["value"].agg(["mean", "std"])
    table = table.reset_index()
    table["tece"] = table["predictor"].map({name: tece(p) for name, p in PREDICTORS.items()})
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


def bias(repeats: int) -> pd.DataFrame:
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
    groups = run(bias_one, tasks).groupby(by, sort=False)
    table = groups.mean().join(groups["corrected"].std().rename("corrected_std")).reset_index()
    table["tece"] = [
        tece(PREDICTORS[row.predictor], row.n_hypotheses) for row in table.itertuples()
    ]
    return table.assign(n_repeats=repeats)


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


def tests(size_repeats: int, power_repeats: int, *, n: int = 2000) -> pd.DataFrame:
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
    rows = run(tests_one, [(*case, n, k) for *case, repeats in cases for k in range(repeats)])
    groups = rows.groupby(["kind", "effect", "test"], sort=False)["rejected"]
    table = groups.agg(rejected="mean", n_repeats="size").reset_index()
    true = {(kind, effect): tece(predictor) for kind, effect, predictor, _ in cases}
    table["tece"] = [true[row.kind, row.effect] for row in table.itertuples()]
    table["low"], table["high"] = (
        binom.ppf(q, table["n_repeats"], LEVEL) / table["n_repeats"] for q in (0.005, 0.995)
    )
    return table.assign(n_samples=n)


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
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    # Small products of matrices: threads would only wait for each other.
    with threadpool_limits(1):
        plot_comparison(compare(20), folder / "estimators_compare.png")
        plot_bias(bias(20), folder / "estimators_bias.png")
        plot_power(tests(200, 40), folder / "estimators_tests.png")


if __name__ == "__main__":
    main()
