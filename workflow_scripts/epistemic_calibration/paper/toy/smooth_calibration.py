"""Figure 1c: the smooth calibration curve of a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from epistemic_calibration.paper.toy._data import ExperimentData, point_prediction
from epistemic_calibration.paper.toy.base import Experiment, TestSetSize, TrainingSetSize
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from epistemic_calibration.paper.toy_drawing import Canvas


def run(
    method: str = "bayesian_logistic_regression",
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    n_train: TrainingSetSize = 50,
    n_test: TestSetSize = 40_000,
    bandwidth: Annotated[
        float, {"gt": 0, "description": "bandwidth of the Beta kernel; 0.2 in the paper"}
    ] = 0.2,
) -> pd.DataFrame:
    """Return the smooth calibration curve of a method.

    Returns
    -------
    DataFrame with columns method, seed, predicted, frequency, frequency_if_calibrated
        The last is the curve of labels drawn from the predictions: what the smoother makes
        of a calibrated predictor with these predictions. Its distance from the diagonal is
        the bias of the kernel.
    """
    import pandas as pd

    from epistemic_calibration.metrics import smooth_calibration_curve

    data = ExperimentData("smooth_calibration", seed, n_train, n_test)
    prediction = point_prediction(data.fit_predict(method, implementation, parameters))
    curve = smooth_calibration_curve(data.y_test, prediction, bandwidth=bandwidth)
    rng = np.random.default_rng(derive_seed(*data.key, method, "labels"))
    labels = rng.random(n_test) < prediction
    calibrated = smooth_calibration_curve(labels, prediction, bandwidth=bandwidth)
    return pd.DataFrame(
        {
            "method": method,
            "seed": seed,
            **curve._asdict(),
            "frequency_if_calibrated": calibrated.frequency,
        }
    )


def plot(table: pd.DataFrame, canvas: Canvas) -> Figure:
    """Draw the curves, one line per method.

    The dotted line is the curve of labels drawn from the predictions: what the kernel makes
    of perfect calibration.
    """
    import seaborn as sns

    canvas.require(table, "method", "seed", "predicted", "frequency", "frequency_if_calibrated")
    figure, axes = canvas.axes(3.4)
    ax = axes[0, 0]
    ax.plot([0, 1], [0, 1], color=canvas.ink, lw=0.8, ls="--", label="diagonal")
    for method, style in canvas.styles(table["method"]).items():
        part = table[table["method"] == method]
        for _, curve in part.groupby("seed"):
            ax.plot(curve["predicted"], curve["frequency"], color=style.color, lw=0.5, alpha=0.4)
        sns.lineplot(
            part,
            x="predicted",
            y="frequency",
            errorbar=None,
            color=style.color,
            lw=2,
            label=canvas.label(method),
            ax=ax,
        )
        calibrated = part.groupby("predicted")["frequency_if_calibrated"].mean()
        ax.plot(calibrated, color=style.color, lw=1.2, ls=":", label="if it were calibrated")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set(xlabel=f"Prediction Δ(x), {canvas.seeds(table)}", ylabel="Smoothed frequency of class 1")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center")
    ax.get_legend().remove()
    return figure


EXPERIMENT = Experiment(run, plot)
