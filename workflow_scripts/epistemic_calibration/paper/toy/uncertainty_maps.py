"""Figures 2 and 6: maps of the epistemic uncertainty and of the expected squared error."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from epistemic_calibration.paper.toy import base
from epistemic_calibration.paper.toy._mixture import mixture_density, true_probability

#: Half the side of the square that the maps show: both classes to three standard deviations.
MAP_LIMIT = 8.0

# The least value with a colour of its own, in parts of the largest.
_LEAST_SHOWN = 1e-4
_TITLES = {"epistemic_uncertainty": "EU(x)", "expected_squared_error": "E (P(Y=1|Π) − h)²"}


def measure(
    toy: base.Toy,
    n_train: base.TrainingSetSize = 10,
    n_grid: Annotated[int, {"ge": 2, "description": "grid points along each axis"}] = 100,
) -> base.DataFrame:
    """Return epistemic uncertainty and expected squared error on a grid.

    The grid goes from −`MAP_LIMIT` to `MAP_LIMIT` along each axis. Rows of kind ``grid`` have no y;
    those of kind ``training`` are the training points and have no uncertainty and no error.
    """
    import pandas as pd

    toy.draw(n_train)
    axis = np.linspace(-MAP_LIMIT, MAP_LIMIT, n_grid)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    found = toy.fit_predict(grid.astype(np.float32))
    weights = mixture_density(grid)
    parts = []
    for kind, X in (("grid", grid), ("training", toy.X_train)):
        points = {"kind": kind, "x1": X[:, 0], "x2": X[:, 1]}
        parts.append(pd.DataFrame({**points, "y": np.nan, "p_true": true_probability(X)}))
    p_true = parts[0]["p_true"].to_numpy()
    parts[0][list(_TITLES)] = np.stack(uncertainty_and_error(p_true, found, weights), axis=1)
    parts[1]["y"] = toy.y_train
    return pd.concat(parts, ignore_index=True)


def uncertainty_and_error(
    p_true: np.ndarray, predictions: base.Predictions, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return EU(x) and E_j (P(Y = 1 | Π(x)) − h_j(x))², each of shape (n_samples,).

    The points at which all hypotheses agree are a level set of Π, and P(Y = 1 | Π(x)) is the mean
    over them of ``p_true``, P(Y = 1 | x), by ``weights``, the density of X up to a factor.
    """
    from epistemic_calibration.metrics.binning import group_equal_rows, row_moments

    mean, variance = row_moments(predictions.hypotheses)
    level_sets = group_equal_rows(predictions.hypotheses)
    mass = np.bincount(level_sets, weights=weights)
    frequency = (np.bincount(level_sets, weights=weights * p_true) / mass)[level_sets]
    reported = predictions.epistemic_uncertainty
    return variance if reported is None else reported, (frequency - mean) ** 2 + variance


def plot(table: base.DataFrame, canvas: base.Canvas) -> base.Figure:
    """Draw EU(x) beside the expected squared error, one row per method, of the first seed.

    All panels share one logarithmic colour scale, of four powers of ten up to the largest value;
    what is smaller, 0 among it, has the darkest colour. The white line is p(x) = 1/2; white
    triangles are positive training points, dark circles negative ones.
    """
    import textwrap

    from matplotlib.colors import LogNorm

    table = table[table["seed"] == table["seed"].min()]
    methods = list(dict.fromkeys(table["method"]))
    figure, axes = canvas.axes(0.9 + 1.03 * len(methods), len(methods), 2, sharex=True, sharey=True)
    figure.set_layout_engine("compressed")
    top = float(table[list(_TITLES)].max().max()) or 1.0
    norm = LogNorm(_LEAST_SHOWN * top, top)
    for row, method in zip(axes, methods, strict=True):
        part = table[table["method"] == method]
        grid, training = part[part["kind"] == "grid"], part[part["kind"] == "training"]
        p_true = grid.pivot(index="x2", columns="x1", values="p_true")
        for ax, quantity in zip(row, _TITLES, strict=True):
            # Of 0 there is no logarithm.
            values = grid.pivot(index="x2", columns="x1", values=quantity).clip(lower=norm.vmin)
            x = values.columns.to_numpy()
            image = ax.pcolormesh(x, x, values, cmap="viridis", norm=norm, rasterized=True)
            ax.contour(x, x, p_true, levels=[0.5], colors="white", linewidths=0.9)
            for label, points in training.groupby("y"):
                face, edge = ("white", canvas.ink) if label else (canvas.ink, "white")
                look = {"mfc": face, "mec": edge, "marker": canvas.class_markers[int(label)]}
                look |= {"ls": "none", "ms": 4, "mew": 0.6, "zorder": 3}
                name = f"training point, class {label:g}"
                ax.plot(points["x1"], points["x2"], label=name, **look)
            ax.set(aspect="equal", xticks=[-5, 0, 5], yticks=[-5, 0, 5])
            ax.grid(False)
        # No longer than a panel is high.
        name = "\n".join(textwrap.wrap(canvas.label(method), 20))
        row[0].set_ylabel(f"{name}\nx₂", fontsize=7)
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, extend="min", aspect=30)
    bar.set_label("EU, or expected squared error")
    for ax, title in zip(axes[0], _TITLES.values(), strict=True):
        ax.set_title(title)
    for ax in axes[-1]:
        ax.set_xlabel("x₁")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


EXPERIMENT = base.Experiment(measure, plot)
