"""EECE, TECE and other scores of an experiment's predictions, as tidy tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from epistemic_calibration.metrics.binning import Binning
from epistemic_calibration.paper.toy._data import ExperimentData, point_prediction
from epistemic_calibration.paper.toy._mixture import true_probability
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    import pandas as pd

    from epistemic_calibration.methods import Predictions

#: Settings of the experiments that measure EECE.
NumberOfBins = Annotated[int, {"ge": 1, "description": "bins of the EECE"}]
BinningName = Annotated[Binning, {"description": "how the bins of the EECE are built"}]


def tece(data: ExperimentData, predictions: Predictions) -> float:
    """Return the true epistemic calibration error (TECE) on the test set."""
    from epistemic_calibration.metrics import true_epistemic_calibration_error

    return true_epistemic_calibration_error(
        true_probability(data.X_test),
        predictions.hypotheses,
        epistemic_uncertainty=predictions.epistemic_uncertainty,
    )


def score(
    data: ExperimentData,
    predictions: Predictions,
    *,
    n_bins: int,
    binning: str,
    all_metrics: bool = False,
    known_tece: float | None = None,
) -> list[dict[str, Any]]:
    """Return scores on the test set, a row per metric.

    Parameters
    ----------
    data, predictions
        The predictions are those at the test set.
    n_bins, binning
        Of the EECE.
    all_metrics : bool
        Not only ``tece`` and ``eece``, but all metrics of the experiment `eece_per_method`.
    known_tece : float, optional
        The TECE, if it has been computed already.

    Returns
    -------
    list of dict
        Keys metric, value, n_bins, n_hypotheses, binning; the first row is ``tece``.
    """
    from epistemic_calibration import metrics

    y_true, hypotheses = data.y_test, predictions.hypotheses
    reported = predictions.epistemic_uncertainty
    # In the precision in which the benchmark stores hypotheses, and twice as fast.
    bins = metrics.assign_bins(
        hypotheses.astype(np.float32),
        n_bins=n_bins,
        binning=binning,
        random_state=derive_seed(*data.key, "bins"),
    )
    values = {"tece": tece(data, predictions) if known_tece is None else known_tece}
    if all_metrics:
        parts = metrics.decompose_eece(
            y_true, hypotheses, epistemic_uncertainty=reported, binning=binning, bins=bins
        )
        prediction = point_prediction(predictions)
        uncertainty = hypotheses.var(axis=1) if reported is None else reported
        corrected = metrics.corrected_epistemic_calibration_error(y_true, hypotheses, bins=bins)
        values |= {
            "accuracy": metrics.accuracy(y_true, prediction),
            "ece": metrics.expected_calibration_error(y_true, prediction),
            "eece": parts.eece,
            "eece_calibration": parts.calibration,
            "eece_dispersion": parts.dispersion,
            "tece_corrected": corrected.estimate,
            "mean_epistemic_uncertainty": np.mean(uncertainty, dtype=np.float64),
        }
    else:
        values["eece"] = metrics.expected_epistemic_calibration_error(
            y_true, hypotheses, epistemic_uncertainty=reported, binning=binning, bins=bins
        )
    shape = {"n_bins": n_bins, "n_hypotheses": hypotheses.shape[1], "binning": binning}
    return [{"metric": name, "value": float(value), **shape} for name, value in values.items()]


def tidy(rows: list[dict[str, Any]], *, method: str, seed: int, **context: Any) -> pd.DataFrame:
    """Return rows as a table, method and seed first, what they have in common last."""
    import pandas as pd

    table = pd.DataFrame(rows)
    table.insert(0, "seed", seed)
    table.insert(0, "method", method)
    return table.assign(**context)
