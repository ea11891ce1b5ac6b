"""What second-order calibration says of a finished run, and of the run spoilt on purpose.

The counts of labels are shuffled among the images of each class, or among all images, and the
spread of the hypotheses is halved and doubled. Each must be visible in a number. Run it on a data
set with label counts, after `snakemake --cores all cifar10h`:

    python validation/negative_checks.py results/cifar10h --output FOLDER
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow_scripts"))

from epistemic_calibration import metrics
from epistemic_calibration.metrics.label_order import (
    mean_within_label_correlation,
    within_label_products,
)

#: What the run is spoilt by, in the order of the table.
CHECKS = (
    "as it is",
    "counts shuffled in a class",
    "counts shuffled",
    "spread halved",
    "spread doubled",
)
#: Columns: their headings, and attributes of `metrics.SecondOrderError`.
COLUMNS = {
    "reducible error": "reducible",
    "share": "share",
    "slope": "slope",
    "size error": "size_error",
    "TECE, all labels": "calibration_error",
}


def spoilt(check, counts, labels, hypotheses, reported, rng):
    """Return counts, hypotheses and reported uncertainties after what a check does to them."""
    if check.startswith("counts"):
        order = np.arange(len(labels))
        groups = (
            [order]
            if check == "counts shuffled"
            else [order[labels == k] for k in np.unique(labels)]
        )
        for rows in groups:
            order[rows] = rng.permutation(rows)
        return counts[order], hypotheses, reported
    if not check.startswith("spread"):
        return counts, hypotheses, reported
    # EU is a variance: half of it is a spread of 1/sqrt(2).
    factor = 0.5 if check.endswith("halved") else 2.0
    if reported is not None:
        return counts, hypotheses, [factor * values for values in reported]
    means = [rows.mean(axis=1, keepdims=True) for rows in hypotheses]
    scaled = [m + np.sqrt(factor) * (rows - m) for m, rows in zip(means, hypotheses, strict=True)]
    return counts, [np.clip(rows, 0, 1) for rows in scaled], reported


def load(folder, method):
    """Return counts, labels, and the hypotheses and reported uncertainties by class."""
    with np.load(folder / "label_counts.npz") as file:
        counts, names = file["label_counts"], file["class_names"]
    with np.load(folder / "labels.npz") as file:
        labels = file["y_test"]
    hypotheses, reported = [], []
    for name in names:
        with np.load(folder / "seed0" / "hypotheses" / method / f"{name}.npz") as file:
            hypotheses.append(file["hypotheses"])
            reported.append(file.get("epistemic_uncertainty"))
    return counts, labels, hypotheses, None if reported[0] is None else reported


def check_method(folder, method):
    """Yield a row per check: estimates with their intervals."""
    counts, labels, hypotheses, reported = load(folder, method)
    for check in CHECKS:
        seen, rows, said = spoilt(
            check, counts, labels, hypotheses, reported, np.random.default_rng(0)
        )
        n_labels = seen.sum(axis=1)
        error = metrics.mean_second_order_error(
            list(seen.T), n_labels, rows, epistemic_uncertainty=said
        )
        products = [
            within_label_products(
                labels, np.clip(rows[k].mean(axis=1, dtype=float), 0, 1), seen[:, k], n_labels
            )
            for k in range(len(rows))
        ]
        order = mean_within_label_correlation([p for p, _ in products], products[0][1])
        estimates = {name: getattr(error, attribute) for name, attribute in COLUMNS.items()}
        estimates["correlation within a class"] = order
        row = {"method": method, "check": check}
        for name, estimate in estimates.items():
            row |= {
                name: estimate.estimate,
                f"{name} low": estimate.ci_low,
                f"{name} high": estimate.ci_high,
            }
        yield row


def draw(table, path):
    """Draw each number with its interval: a row per check, a column per number."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from epistemic_calibration.report.style import FULL_WIDTH, method_styles, rc_params

    shown = ["reducible error", "share", "TECE, all labels", "correlation within a class"]
    methods = list(dict.fromkeys(table["method"]))
    styles = method_styles(methods)
    with mpl.rc_context(rc_params()):
        figure = Figure(figsize=(FULL_WIDTH, 2.3))
        axes = figure.subplots(1, len(shown), sharey=True)
        for ax, name in zip(axes, shown, strict=True):
            for shift, method in enumerate(methods):
                rows = table[table["method"] == method]
                at = np.arange(len(rows))[::-1] + 0.18 * ((len(methods) - 1) / 2 - shift)
                ax.hlines(at, rows[f"{name} low"], rows[f"{name} high"], styles[method].color)
                label = method.replace("_", " ").capitalize()
                ax.plot(rows[name], at, ls="none", label=label, **styles[method].line())
            ax.set_xlabel((name[0].upper() + name[1:]).replace(" within", "\nwithin"))
            if name == "share":
                ax.set_xscale("log")
            ax.axvline(1 if name == "share" else 0, color="#555555", lw=0.8, ls="--", zorder=0)
        axes[0].set_yticks(range(len(CHECKS)), CHECKS[::-1])
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
        figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="results/DATASET of a finished run")
    parser.add_argument("--methods", nargs="+", default=["deep_ensemble", "random_forest"])
    parser.add_argument("--output", type=Path, required=True, help="folder of table and figure")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    rows = [row for method in args.methods for row in check_method(args.results, method)]
    table = pd.DataFrame(rows)
    table.to_csv(args.output / "negative_checks.csv", index=False)
    draw(table, args.output / "negative_checks.png")
    with pd.option_context("display.width", 200, "display.max_columns", None):
        names = [*COLUMNS, "correlation within a class"]
        print(table[["method", "check", *names]].to_string(index=False))


if __name__ == "__main__":
    main()
