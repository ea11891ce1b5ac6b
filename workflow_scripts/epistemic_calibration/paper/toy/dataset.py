"""Figure 1b: a sample of the mixture."""

from __future__ import annotations

from typing import Annotated

from epistemic_calibration.paper.toy import base
from epistemic_calibration.paper.toy._mixture import sample_mixture, true_probability
from epistemic_calibration.seeds import derive_seed


def sample(
    toy: base.Toy, n_samples: Annotated[int, {"ge": 1, "description": "points in the sample"}] = 500
) -> base.DataFrame:
    """Return a sample of the mixture: x1, x2, y and p_true."""
    import pandas as pd

    _, name, seed = toy.key
    X, y = sample_mixture(n_samples, derive_seed("toy", name, seed))
    return pd.DataFrame({"x1": X[:, 0], "x2": X[:, 1], "y": y, "p_true": true_probability(X)})


def plot(table: base.DataFrame, canvas: base.Canvas) -> base.Figure:
    """Draw the sample with the line p(x) = 1/2."""
    figure, axes = canvas.axes(3.0)
    ax = axes[0, 0]
    for label, part in table.groupby("y"):
        look = {"marker": canvas.class_markers[label], "color": canvas.class_colors[label]}
        name = f"{'positive' if label else 'negative'} class"
        ax.scatter(part["x1"], part["x2"], s=9, alpha=0.75, lw=0, label=name, **look)
    limit = 1.05 * table[["x1", "x2"]].abs().to_numpy().max()
    ax.plot([-limit, limit], [limit, -limit], color=canvas.ink, lw=1, label="p(x) = 1/2")
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xlabel="x₁", ylabel="x₂")
    figure.legend(loc="outside upper center", ncols=3, handletextpad=0.3, columnspacing=1)
    return figure


EXPERIMENT = base.Experiment(sample, plot, methods=False, controls=("mixture",))
