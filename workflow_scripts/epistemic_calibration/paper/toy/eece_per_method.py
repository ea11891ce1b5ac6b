"""Figure 3a: EECE and TECE of every method, and of the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np

from epistemic_calibration.paper.toy import base

# Below this value the axis of an error is linear, so that it can show 0.
_LINEAR_BELOW = 1e-3


def measure(
    toy: base.Toy,
    n_train: base.TrainingSetSize = 50,
    n_test: base.TestSetSize = 40_000,
    n_bins: base.NumberOfBins = 100,
    binning: base.BinningName = "kmeans",
) -> list[dict[str, Any]]:
    """Return EECE, its parts, and the truth behind it.

    Metrics: tece, accuracy, ece, eece, eece_calibration, eece_dispersion, tece_corrected (of the
    mean prediction, from the labels alone), mean_epistemic_uncertainty.

    Notes
    -----
    TECE takes P(Y = 1 | Π(x)) as the mean of p over the test points with the same hypotheses.
    Methods that draw hypotheses anew at every input have no two such points, even where their
    Π is not injective; their TECE then uses p(x) itself and is, if anything, too large.
    """
    from epistemic_calibration import metrics

    toy.draw(n_train, n_test)
    found = toy.fit_predict()
    y, prediction, reported = toy.y_test, base.point_prediction(found), found.epistemic_uncertainty
    parts = toy.eece(found, n_bins, binning)
    corrected = metrics.corrected_epistemic_calibration_error(
        y, found.hypotheses, bins=toy.bins(found, n_bins, binning)
    )
    uncertainty = found.hypotheses.var(axis=1) if reported is None else reported
    values = {
        "tece": toy.tece(found),
        "accuracy": metrics.accuracy(y, prediction),
        "ece": metrics.expected_calibration_error(y, prediction),
        "eece": parts.eece,
        "eece_calibration": parts.calibration,
        "eece_dispersion": parts.dispersion,
        "tece_corrected": corrected.estimate,
        "mean_epistemic_uncertainty": np.mean(uncertainty, dtype=np.float64),
    }
    return toy.rows(values, found, n_bins, binning)


def plot(table: base.DataFrame, canvas: base.Canvas) -> base.Figure:
    """Draw EECE and TECE of every method, least EECE on top."""
    table = canvas.errors(table)
    means = table[table["Error"] == "EECE"].groupby("Method")["value"].mean()
    order = list(means.sort_values().index)
    figure, axes = canvas.axes(0.75 + 0.27 * len(order))
    ax = axes[0, 0]
    rows = {
        "ax": ax,
        "hue_order": ["EECE", "TECE"],
        "x": "value",
        "y": "Method",
        "hue": "Error",
        "order": order,
    }
    colors = {"EECE": canvas.ink, "TECE": canvas.class_colors[0]}
    canvas.sns.stripplot(
        table, dodge=True, jitter=False, size=2, palette=colors, legend=False, **rows
    )
    canvas.sns.pointplot(
        table,
        dodge=0.4,
        errorbar=canvas.range,
        ls="none",
        markers=["o", "D"],
        ms=4,
        err_kws={"lw": 1},
        palette=colors,
        **rows,
    )
    top = table["value"].max()
    ax.set_xscale("symlog", linthresh=_LINEAR_BELOW, linscale=0.4)
    powers = [10.0**k for k in range(-3, 1) if 10.0**k <= 2 * top]
    ax.set_xticks([0, *powers], [f"{tick:g}" for tick in (0, *powers)])
    ax.set_xticks([], minor=True)
    ax.set_xlim(-0.1 * _LINEAR_BELOW, 1.5 * top)
    ax.set(xlabel=f"Error (mean and range of {canvas.seeds(table)})", ylabel="")
    ax.get_legend().set_title("")
    return figure


EXPERIMENT = base.Experiment(measure, plot, controls=("oracle",))
