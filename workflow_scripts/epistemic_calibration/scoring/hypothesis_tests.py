"""P-values of the tests of epistemic calibration, mean calibration and independence."""

from __future__ import annotations

from collections.abc import Iterator

from epistemic_calibration import metrics
from epistemic_calibration.scoring.base import Inputs, Metric, Row

ORDER = 4

METRICS = (
    Metric(
        "p_epistemic_calibration",
        "epistemic calibration",
        4,
        None,
        (0, 1),
        {"drivers": 13},
        kind="p_value",
        resampled=True,
    ),
    Metric(
        "p_mean_calibration",
        "mean calibration",
        4,
        None,
        (0, 1),
        {"drivers": 14},
        kind="p_value",
        resampled=True,
    ),
    Metric(
        "p_epistemic_independence",
        "epistemic independence",
        4,
        None,
        (0, 1),
        {"drivers": 15},
        kind="p_value",
        resampled=True,
    ),
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield the p-values."""
    sample, settings = inputs.sample, inputs.settings
    seed = settings["random_state"]
    drawn = {"random_state": seed, "n_resamples": settings["n_resamples"]}
    bins = settings["corrected_binning"], settings["corrected_n_bins"]
    calibration = metrics.epistemic_calibration_test(sample, bins=inputs.corrected_bins, **drawn)
    yield Row("p_epistemic_calibration", calibration.p_value, *bins)
    mean = metrics.mean_calibration_test(sample, **drawn)
    yield Row("p_mean_calibration", mean.p_value, "quantile")
    independence = metrics.epistemic_independence_test(sample, **drawn)
    yield Row("p_epistemic_independence", independence.p_value)
