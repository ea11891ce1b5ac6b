"""Figure 1c: the smooth calibration curve of a method."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from epistemic_calibration.paper.toy import base
from epistemic_calibration.seeds import derive_seed


def measure(
    toy: base.Toy,
    n_train: base.TrainingSetSize = 50,
    n_test: base.TestSetSize = 40_000,
    bandwidth: Annotated[
        float, {"gt": 0, "description": "bandwidth of the Beta kernel; 0.2 in the paper"}
    ] = 0.2,
) -> base.DataFrame:
    """Return the smooth calibration curve of a method: predicted and frequency.

    ``frequency_if_calibrated`` is the curve of labels drawn from the predictions: what the smoother
    makes of a calibrated predictor with these predictions. Its distance from the diagonal is the
    bias of the kernel.
    """
    import pandas as pd

    from epistemic_calibration.metrics import smooth_calibration_curve

    toy.draw(n_train, n_test)
    prediction = base.point_prediction(toy.fit_predict())
    curve = smooth_calibration_curve(toy.y_test, prediction, bandwidth=bandwidth)
    rng = np.random.default_rng(derive_seed(*toy.key, toy.method, "labels"))
    labels = rng.random(n_test) < prediction
    calibrated = smooth_calibration_curve(labels, prediction, bandwidth=bandwidth)
    return pd.DataFrame({**curve._asdict(), "frequency_if_calibrated": calibrated.frequency})


def plot(table: base.DataFrame, canvas: base.Canvas) -> base.Figure:
    """Draw the curves, one line per method; dotted, those of perfect calibration."""
    table = canvas.named(table)
    figure, axes = canvas.axes(3.4)
    ax, lines = axes[0, 0], {"x": "predicted", "hue": "Method", "palette": canvas.palette(table)}
    ax.plot([0, 1], [0, 1], color=canvas.ink, lw=0.8, ls="--", label="diagonal")
    canvas.sns.lineplot(
        table,
        y="frequency",
        units="seed",
        estimator=None,
        lw=0.5,
        alpha=0.4,
        legend=False,
        ax=ax,
        **lines,
    )
    canvas.sns.lineplot(table, y="frequency", errorbar=None, lw=2, ax=ax, **lines)
    canvas.sns.lineplot(
        table, y="frequency_if_calibrated", errorbar=None, ls=":", legend=False, ax=ax, **lines
    )
    ax.plot([], [], color=canvas.faint, ls=":", label="if it were calibrated")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set(xlabel=f"Prediction Δ(x), {canvas.seeds(table)}", ylabel="Smoothed frequency of class 1")
    ax.legend()
    return figure


EXPERIMENT = base.Experiment(measure, plot)
