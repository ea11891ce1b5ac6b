"""P-values of the tests of epistemic calibration, mean calibration and independence."""

from __future__ import annotations

from collections.abc import Iterator

from epistemic_calibration import metrics
from epistemic_calibration.scores.base import SHARE, Inputs, Metric, Row

METRICS = tuple(
    Metric(f"p_{name.replace(' ', '_')}", name, range=SHARE)
    for name in ("epistemic calibration", "mean calibration", "epistemic independence")
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
