"""The spread of a finished run's hypotheses, recalibrated on half of its test images.

Fitted on one half and judged on the other, in two ways: from the counts of several labels
(`SecondOrderRecalibrator.fit_counts`), and from the log loss of one label per image, by a scale of
the mean of the logits and one of their dispersion (as in JUCAL, arXiv 2602.20153). Run it on a data
set with label counts, after `snakemake --cores all cifar10h`:

    python validation/recalibrated_spread.py results/cifar10h --output FOLDER
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow_scripts"))

from epistemic_calibration import metrics


def load(folder, method):
    """Return counts, labels, and the hypotheses by class; none if the method reports its own EU."""
    with np.load(folder / "label_counts.npz") as file:
        counts, names = file["label_counts"], file["class_names"]
    with np.load(folder / "labels.npz") as file:
        labels = file["y_test"]
    hypotheses = []
    for name in names:
        with np.load(folder / "seed0" / "hypotheses" / method / f"{name}.npz") as file:
            if "epistemic_uncertainty" in file:
                return counts, labels, None
            hypotheses.append(file["hypotheses"])
    return counts, labels, hypotheses


def by_single_labels(y, hypotheses, others):
    """Return ``others`` after the two scales that minimise the log loss, and the second."""
    from scipy.optimize import minimize
    from scipy.special import expit, logit

    def scaled(rows, scales):
        f = logit(np.clip(rows.astype(np.float64), 1e-6, 1 - 1e-6))
        centre = f.mean(axis=1, keepdims=True)
        return expit(np.exp(scales[0]) * centre + np.exp(scales[1]) * (f - centre))

    def loss(scales):
        return metrics.log_loss(y, scaled(hypotheses, scales).mean(axis=1))

    # From a simplex wide enough that it does not stop where it starts.
    options = {"xatol": 1e-3, "fatol": 1e-7, "initial_simplex": [[0, 0], [0.5, 0], [0, 1]]}
    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options=options)
    return scaled(others, best.x), float(np.exp(best.x[1]))


def rows_of(folder, method):
    """Yield a row for the hypotheses as they are, and for each recalibration."""
    counts, labels, hypotheses = load(folder, method)
    if hypotheses is None:
        return
    fitted_on = np.random.default_rng(0).permutation(len(labels)) < len(labels) // 2
    n_labels = counts.sum(axis=1)
    results = {"as it is": ([h[~fitted_on] for h in hypotheses], [])}
    for name in ("single labels", "counts"):
        recalibrated, dispersions = [], []
        for k, rows in enumerate(hypotheses):
            if name == "counts":
                model = metrics.SecondOrderRecalibrator().fit_counts(
                    counts[fitted_on, k], n_labels[fitted_on], rows[fitted_on]
                )
                after, dispersion = model.transform(rows[~fitted_on]), model.dispersion_
            else:
                y = labels[fitted_on] == k
                after, dispersion = by_single_labels(y, rows[fitted_on], rows[~fitted_on])
            recalibrated.append(after)
            dispersions.append(dispersion)
        results[name] = recalibrated, dispersions
    for name, (rows, dispersions) in results.items():
        error = metrics.mean_second_order_error(
            list(counts[~fitted_on].T), n_labels[~fitted_on], rows
        )
        yield {
            "method": method,
            "spread fitted by": name,
            "dispersion": np.median(dispersions) if dispersions else 1.0,
            "reducible error": error.reducible.estimate,
            "share": error.share.estimate,
            "share low": error.share.ci_low,
            "share high": error.share.ci_high,
            "slope": error.slope.estimate,
            "size error": error.size_error.estimate,
            "TECE, all labels": error.calibration_error.estimate,
        }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="results/DATASET of a finished run")
    parser.add_argument(
        "--methods", nargs="+", help="by default all that report no EU of their own"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder of the table")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    folder = args.results / "seed0" / "hypotheses"
    methods = args.methods or sorted(path.name for path in folder.iterdir())
    rows = []
    for method in methods:
        rows += rows_of(args.results, method)
        if rows:
            print(pd.DataFrame(rows[-3:]).round(5).to_string(index=False), flush=True)
    pd.DataFrame(rows).to_csv(args.output / "recalibrated_spread.csv", index=False)


if __name__ == "__main__":
    main()
