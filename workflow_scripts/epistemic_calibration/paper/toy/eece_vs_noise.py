"""Figure 3b, left: EECE and TECE against the noise in the training inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from epistemic_calibration.paper.toy._data import ExperimentData
from epistemic_calibration.paper.toy._scoring import BinningName, NumberOfBins, score, tidy
from epistemic_calibration.paper.toy.base import Experiment, TestSetSize, TrainingSetSize
from epistemic_calibration.seeds import derive_seed

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
    noise_levels: Annotated[
        tuple[Annotated[float, {"ge": 0, "le": 1}], ...],
        {
            "min_length": 1,
            "description": "fractions of the training input values that are replaced by noise",
        },
    ] = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
    n_train: TrainingSetSize = 50,
    n_test: TestSetSize = 40_000,
    n_bins: NumberOfBins = 100,
    binning: BinningName = "kmeans",
) -> pd.DataFrame:
    """Return EECE and TECE for each noise level.

    All levels of a seed start from the same training set; see `corrupt_inputs`.

    Returns
    -------
    DataFrame with columns method, seed, noise_level, metric, value, n_bins, n_hypotheses, \
binning, n_train, n_test
        Metrics: eece, tece.
    """
    data = ExperimentData("eece_vs_noise", seed, n_train, n_test)
    clean, rows = data.X_train, []
    for noise_level in noise_levels:
        data.X_train = corrupt_inputs(clean, noise_level, derive_seed(*data.key, "noise"))
        predictions = data.fit_predict(method, implementation, parameters)
        scores = score(data, predictions, n_bins=n_bins, binning=binning)
        rows += [{"noise_level": noise_level, **row} for row in scores]
    return tidy(rows, method=method, seed=seed, n_train=n_train, n_test=n_test)


def corrupt_inputs(X: np.ndarray, noise_level: float, random_state: int) -> np.ndarray:
    """Replace a fraction of the input values by uniform draws over their range.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    noise_level : float in [0, 1]
        Fraction of the n_samples · n_features values, to the nearest whole number of
        them, that is replaced by draws between the least and the largest value of
        their feature.
    random_state : int
        With the same seed, what a lower level replaces a higher one replaces too, by the
        same values.

    Returns
    -------
    ndarray of the shape and dtype of ``X``, which is left unchanged

    Raises
    ------
    ValueError
        If ``noise_level`` is not in [0, 1].

    Notes
    -----
    The paper says that "noise is introduced by randomly corrupting input values", from 0 to
    95 %; the uniform draws are this project's reading.
    """
    if not 0 <= noise_level <= 1:
        raise ValueError(f"noise_level must be in [0, 1], got {noise_level!r}")
    rng = np.random.default_rng(random_state)
    order = rng.permutation(X.size)
    draws = rng.uniform(X.min(axis=0), X.max(axis=0), size=X.shape)
    chosen = order[: round(noise_level * X.size)]
    corrupted = np.array(X)
    corrupted.flat[chosen] = draws.flat[chosen]
    return corrupted


def plot(table: pd.DataFrame, canvas: Canvas) -> Figure:
    """Draw EECE and TECE against the noise level in per cent."""
    canvas.require(table, "noise_level")
    return canvas.errors_against(
        table.assign(noise_level=100 * table["noise_level"]),
        "noise_level",
        "Training input values replaced by noise (%)",
    )


EXPERIMENT = Experiment(run, plot)
