"""Figures 2 and 6: maps of the epistemic uncertainty and of the expected squared error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from epistemic_calibration.paper.toy._data import ExperimentData
from epistemic_calibration.paper.toy._mixture import mixture_density, true_probability
from epistemic_calibration.paper.toy.base import Experiment, TrainingSetSize

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from epistemic_calibration.methods import Predictions
    from epistemic_calibration.paper.toy_drawing import Canvas

#: Half the side of the square that the maps show: both classes to three standard deviations.
MAP_LIMIT = 8.0

# The least value with a colour of its own, in parts of the largest.
_LEAST_SHOWN = 1e-4


def run(
    method: str,
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    n_train: TrainingSetSize = 10,
    n_grid: Annotated[int, {"ge": 2, "description": "grid points along each axis"}] = 100,
) -> pd.DataFrame:
    """Return epistemic uncertainty and expected squared error on a grid.

    The grid goes from −`MAP_LIMIT` to `MAP_LIMIT` along each axis. The paper has 10 training
    points.

    Returns
    -------
    DataFrame with columns method, seed, kind, x1, x2, y, p_true, epistemic_uncertainty, \
expected_squared_error
        Rows of kind ``grid`` have no y; those of kind ``training`` are the training points
        and have no uncertainty and no error.

    Notes
    -----
    The expected squared error is E_j (P(Y = 1 | Π(x)) − h_j(x))². The grid points at which
    all hypotheses agree are a level set of Π, and P(Y = 1 | Π(x)) is the mean of p over
    them, weighted by the density of the mixture: p itself where Π is injective on the grid.
    """
    import pandas as pd

    data = ExperimentData("uncertainty_maps", seed, n_train, 0)
    axis = np.linspace(-MAP_LIMIT, MAP_LIMIT, n_grid)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    p_true = true_probability(grid)
    predictions = data.fit_predict(method, implementation, parameters, X=grid.astype(np.float32))
    uncertainty, error = uncertainty_and_error(p_true, predictions, weights=mixture_density(grid))
    table = pd.DataFrame(
        {
            "kind": "grid",
            "x1": grid[:, 0],
            "x2": grid[:, 1],
            "p_true": p_true,
            "epistemic_uncertainty": uncertainty,
            "expected_squared_error": error,
        }
    )
    training = pd.DataFrame(
        {
            "kind": "training",
            "x1": data.X_train[:, 0],
            "x2": data.X_train[:, 1],
            "y": data.y_train,
            "p_true": true_probability(data.X_train),
        }
    )
    table = pd.concat([table, training], ignore_index=True).assign(method=method, seed=seed)
    columns = ["method", "seed", "kind", "x1", "x2", "y", "p_true"]
    return table[[*columns, "epistemic_uncertainty", "expected_squared_error"]]


def uncertainty_and_error(
    p_true: np.ndarray, predictions: Predictions, *, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return EU(x) and E_j (P(Y = 1 | Π(x)) − h_j(x))², each of shape (n_samples,).

    Parameters
    ----------
    p_true : ndarray of shape (n_samples,)
        P(Y = 1 | x_n) in [0, 1].
    predictions : Predictions
        At the same points.
    weights : ndarray of shape (n_samples,)
        Density of X at the points, up to a factor; positive.
    """
    from epistemic_calibration.metrics.binning import group_equal_rows, row_moments

    mean, variance = row_moments(predictions.hypotheses)
    level_sets = group_equal_rows(predictions.hypotheses)
    mass = np.bincount(level_sets, weights=weights)
    frequency = (np.bincount(level_sets, weights=weights * p_true) / mass)[level_sets]
    reported = predictions.epistemic_uncertainty
    return variance if reported is None else reported, (frequency - mean) ** 2 + variance


def plot(table: pd.DataFrame, canvas: Canvas) -> Figure:
    """Draw EU(x) beside the expected squared error, one row per method.

    All panels share one logarithmic colour scale, of four powers of ten up to the largest value;
    what is smaller, 0 among it, has the darkest colour. The white line is p(x) = 1/2; white
    triangles are positive training points, dark circles negative ones.

    Raises
    ------
    ValueError
        If the table has more than one seed.
    """
    import textwrap

    import matplotlib.patheffects as effects
    from matplotlib.colors import LogNorm

    quantities = {
        "epistemic_uncertainty": "EU(x)",
        "expected_squared_error": "E (P(Y=1|Π) − h)²",
    }
    canvas.require(table, "method", "seed", "kind", "x1", "x2", "y", "p_true", *quantities)
    if table["seed"].nunique() > 1:
        raise ValueError(f"table must be of one seed, got {sorted(table['seed'].unique())}")
    methods = list(dict.fromkeys(table["method"]))
    height = 0.9 + 1.03 * len(methods)
    figure, axes = canvas.axes(height, len(methods), 2, sharex=True, sharey=True)
    figure.set_layout_engine("compressed")
    top = float(table[list(quantities)].max().max())
    outline = [effects.withStroke(linewidth=2, foreground=canvas.ink)]
    norm = LogNorm(_LEAST_SHOWN * (top or 1), top or 1)
    for row, method in zip(axes, methods, strict=True):
        part = table[table["method"] == method]
        grid, training = part[part["kind"] == "grid"], part[part["kind"] == "training"]
        for ax, quantity in zip(row, quantities, strict=True):
            values = grid.pivot(index="x2", columns="x1", values=quantity)
            x1, x2 = values.columns.to_numpy(), values.index.to_numpy()
            # Of 0 there is no logarithm.
            values = values.clip(lower=norm.vmin)
            image = ax.pcolormesh(x1, x2, values, cmap="viridis", norm=norm, rasterized=True)
            p_true = grid.pivot(index="x2", columns="x1", values="p_true")
            line = ax.contour(x1, x2, p_true, levels=[0.5], colors="white", linewidths=0.9)
            line.set_path_effects(outline)
            for label, points in training.groupby("y"):
                look = _point(canvas, int(label))
                ax.plot(points["x1"], points["x2"], ls="none", zorder=3, **look)
            ax.set(aspect="equal", xticks=[-5, 0, 5], yticks=[-5, 0, 5])
            ax.grid(False)
        # No longer than a panel is high.
        name = "\n".join(textwrap.wrap(canvas.label(method), 20))
        row[0].set_ylabel(f"{name}\nx₂", fontsize=7)
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, extend="min", aspect=30)
    bar.set_label("EU, or expected squared error")
    for ax, title in zip(axes[0], quantities.values(), strict=True):
        ax.set_title(title)
    for ax in axes[-1]:
        ax.set_xlabel("x₁")
    handles = [
        canvas.handle("training point, class 0", ls="none", **_point(canvas, 0)),
        canvas.handle("training point, class 1", ls="none", **_point(canvas, 1)),
        canvas.handle("p(x) = 1/2", color="white", lw=0.9, path_effects=outline),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
    return figure


def _point(canvas: Canvas, label: int) -> dict[str, Any]:
    """Return how a training point is drawn."""
    face, edge = ("white", canvas.ink) if label else (canvas.ink, "white")
    marker = canvas.class_markers[label]
    return {"marker": marker, "ms": 4, "mfc": face, "mec": edge, "mew": 0.6}


EXPERIMENT = Experiment(run, plot)
