"""Figure 1a: regularisation and the first-order calibration of a method."""

from __future__ import annotations

from typing import Annotated, Any

from epistemic_calibration.paper.toy import base


def measure(
    toy: base.Toy,
    variants: Annotated[
        dict[str, dict[str, Any]],
        {
            "min_length": 1,
            "description": "changes to the parameters of the method, by the name of the panel",
        },
    ],
    n_train: base.TrainingSetSize = 50,
    n_test: base.TestSetSize = 40_000,
    n_bins: Annotated[int, {"ge": 1, "description": "bins of equal width on [0, 1]"}] = 10,
) -> base.DataFrame:
    """Return binned calibration curves of variants of a method.

    Columns variant, bin, predicted, frequency, count and ece: one row per bin that has points;
    ``ece`` is that of the whole variant.
    """
    import pandas as pd

    from epistemic_calibration.metrics import calibration_curve, expected_calibration_error

    toy.draw(n_train, n_test)
    curves = {}
    for variant, changes in variants.items():
        prediction = base.point_prediction(toy.fit_predict(**changes))
        curve = calibration_curve(toy.y_test, prediction, n_bins=n_bins)
        ece = expected_calibration_error(toy.y_test, prediction, n_bins=n_bins)
        curves[variant] = pd.DataFrame(curve._asdict()).assign(ece=ece)
    return pd.concat(curves, names=["variant", "bin"]).reset_index()


def plot(table: base.DataFrame, canvas: base.Canvas) -> base.Figure:
    """Draw the calibration curves, one panel per variant."""
    variants = list(dict.fromkeys(table["variant"]))
    n_columns = min(3 if len(variants) % 2 else 2, len(variants))
    n_rows = -(-len(variants) // n_columns)
    # Square panels, with titles of three lines.
    height = 0.45 + n_rows * (0.48 + 2.55 / n_columns)
    figure, axes = canvas.axes(height, n_rows, n_columns, sharex=True, sharey=True)
    figure.set_layout_engine("compressed")
    for ax, variant in zip(axes.flat, variants, strict=False):
        part = table[table["variant"] == variant]
        color = next(iter(canvas.palette(part).values()))
        ax.plot([0, 1], [0, 1], color=canvas.ink, lw=0.8, ls="--", zorder=1)
        for _, curve in part.groupby("seed"):
            ax.plot(curve["predicted"], curve["frequency"], ".-", ms=4, lw=0.6, color=color)
        ece = part.groupby("seed")["ece"].first()
        spread = f"\n± {ece.std():.3f}" if len(ece) > 1 else ""
        title = f"{canvas.panel_name(variant)}\nECE {ece.mean():.3f}{spread}"
        ax.set_title(title, fontsize=7.5, linespacing=1.1)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    for ax in axes.flat[len(variants) :]:
        ax.set_axis_off()
    label = canvas.label(table["method"].iloc[0])
    figure.supxlabel(f"Mean prediction in the bin ({label}, {canvas.seeds(table)})", fontsize=8)
    figure.supylabel("Frequency of class 1", fontsize=8)
    return figure


EXPERIMENT = base.Experiment(measure, plot)
