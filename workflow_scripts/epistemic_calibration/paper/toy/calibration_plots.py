"""Figure 1a: regularisation and the first-order calibration of a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from epistemic_calibration.paper.toy._data import ExperimentData, point_prediction
from epistemic_calibration.paper.toy.base import Experiment, TestSetSize, TrainingSetSize

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from epistemic_calibration.paper.toy_drawing import Canvas


def run(
    method: str = "random_forest",
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    variants: Annotated[
        dict[str, dict[str, Any]],
        {
            "min_length": 1,
            "description": "changes to the parameters of the method, by the name of the panel",
        },
    ],
    n_train: TrainingSetSize = 50,
    n_test: TestSetSize = 40_000,
    n_bins: Annotated[int, {"ge": 1, "description": "bins of equal width on [0, 1]"}] = 10,
) -> pd.DataFrame:
    """Return binned calibration curves of variants of a method.

    Returns
    -------
    DataFrame with columns method, variant, seed, bin, predicted, frequency, count, ece
        One row per bin that has points; ``ece`` is that of the whole variant.
    """
    import pandas as pd

    from epistemic_calibration.metrics import calibration_curve, expected_calibration_error

    data = ExperimentData("calibration_plots", seed, n_train, n_test)
    tables = []
    for variant, changes in variants.items():
        predictions = data.fit_predict(method, implementation, {**(parameters or {}), **changes})
        prediction = point_prediction(predictions)
        curve = calibration_curve(data.y_test, prediction, n_bins=n_bins)
        table = pd.DataFrame(curve._asdict())
        table.insert(0, "bin", np.arange(len(table)))
        table.insert(0, "seed", seed)
        table.insert(0, "variant", variant)
        table.insert(0, "method", method)
        table["ece"] = expected_calibration_error(data.y_test, prediction, n_bins=n_bins)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def plot(table: pd.DataFrame, canvas: Canvas) -> Figure:
    """Draw the calibration curves, one panel per variant."""
    canvas.require(table, "method", "variant", "seed", "bin", "predicted", "frequency", "ece")
    variants = list(dict.fromkeys(table["variant"]))
    n_columns = min(3 if len(variants) % 2 else 2, len(variants))
    n_rows = -(-len(variants) // n_columns)
    # Square panels, with titles of three lines.
    height = 0.45 + n_rows * (0.48 + 2.55 / n_columns)
    figure, axes = canvas.axes(height, n_rows, n_columns, sharex=True, sharey=True)
    figure.set_layout_engine("compressed")
    for ax, variant in zip(axes.flat, variants, strict=False):
        part = table[table["variant"] == variant]
        color = canvas.styles(part["method"]).popitem()[1].color
        ax.plot([0, 1], [0, 1], color=canvas.ink, lw=0.8, ls="--", zorder=1)
        for _, curve in part.groupby("seed"):
            ax.plot(curve["predicted"], curve["frequency"], color=color, lw=0.6, alpha=0.35)
        ax.scatter(part["predicted"], part["frequency"], s=7, color=color, lw=0, alpha=0.8)
        ece = part.groupby("seed")["ece"].first()
        ax.set_title(
            f"{canvas.panel_name(variant)}\nECE {_mean_and_sd(ece)}", fontsize=7.5, linespacing=1.1
        )
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
        ax.set_yticks([0, 0.5, 1], ["0", ".5", "1"])
    for ax in axes.flat[len(variants) :]:
        ax.set_axis_off()
    label = canvas.label(table["method"].iloc[0])
    figure.supxlabel(f"Mean prediction in the bin ({label}, {canvas.seeds(table)})", fontsize=8)
    figure.supylabel("Frequency of class 1", fontsize=8)
    return figure


def _mean_and_sd(values: pd.Series) -> str:
    if len(values) == 1:
        return f"{values.iloc[0]:.3f}"
    return f"{values.mean():.3f}\n± {values.std():.3f}"


EXPERIMENT = Experiment(run, plot)
