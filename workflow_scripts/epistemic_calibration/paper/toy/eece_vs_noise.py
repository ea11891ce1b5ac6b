"""Figure 3b, left: EECE and TECE against the noise in the training inputs."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from epistemic_calibration.paper.toy import base
from epistemic_calibration.seeds import derive_seed


def measure(
    toy: base.Toy,
    noise_levels: Annotated[
        tuple[Annotated[float, {"ge": 0, "le": 1}], ...],
        {
            "min_length": 1,
            "description": "fractions of the training input values that are replaced by noise",
        },
    ] = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
    n_train: base.TrainingSetSize = 50,
    n_test: base.TestSetSize = 40_000,
    n_bins: base.NumberOfBins = 100,
    binning: base.BinningName = "kmeans",
) -> list[dict[str, Any]]:
    """Return EECE and TECE for each noise level, all from the same training set."""
    toy.draw(n_train, n_test)
    clean, rows = toy.X_train, []
    for noise_level in noise_levels:
        toy.X_train = corrupt_inputs(clean, noise_level, derive_seed(*toy.key, "noise"))
        rows += toy.errors(n_bins, binning, noise_level=noise_level)
    return rows


def corrupt_inputs(X: np.ndarray, noise_level: float, random_state: int) -> np.ndarray:
    """Replace a fraction of the values of ``X`` by uniform draws over the range of their feature.

    The fraction, in [0, 1], is met to the nearest whole number of values. With the same seed,
    what a lower level replaces a higher one replaces too, by the same values.

    Notes
    -----
    The paper says that "noise is introduced by randomly corrupting input values", from 0 to
    95 %; the uniform draws are this project's reading.
    """
    rng = np.random.default_rng(random_state)
    order = rng.permutation(X.size)
    draws = rng.uniform(X.min(axis=0), X.max(axis=0), size=X.shape)
    chosen = order[: round(noise_level * X.size)]
    corrupted = np.array(X)
    corrupted.flat[chosen] = draws.flat[chosen]
    return corrupted


def plot(table: base.DataFrame, canvas: base.Canvas) -> base.Figure:
    """Draw EECE and TECE against the noise level in per cent."""
    table = table.assign(noise_level=100 * table["noise_level"])
    return canvas.errors_against(
        table, "noise_level", "Training input values replaced by noise (%)"
    )


EXPERIMENT = base.Experiment(measure, plot)
