"""EECE, its parts, and the epistemic uncertainty that it judges."""

from __future__ import annotations

from collections.abc import Iterator

from epistemic_calibration import metrics
from epistemic_calibration.scores.base import POSITIVE, SHARE, Inputs, Metric, Row

METRICS = (
    Metric("eece", "EECE", 4, POSITIVE),
    Metric("eece_calibration", "EECE: calibration part g²", 4, SHARE, short_label="g²"),
    Metric("eece_dispersion", "EECE: dispersion part W", 4, SHARE, short_label="W"),
    Metric("mean_epistemic_uncertainty", "Mean epistemic uncertainty", 4, POSITIVE),
    Metric("eece_noise_floor", "Noise floor of g²", 4, (0, 0.25)),
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield the mean epistemic uncertainty, then EECE and its parts."""
    sample, settings = inputs.sample, inputs.settings
    yield Row("mean_epistemic_uncertainty", sample.uncertainty.mean())
    bins = settings["binning"], settings["n_bins"]
    parts = metrics.decompose_eece(
        sample, n_bins=bins[1], binning=bins[0], random_state=settings["random_state"]
    )
    yield Row("eece", parts.eece, *bins)
    for name in ("calibration", "dispersion", "noise_floor"):
        yield Row(f"eece_{name}", getattr(parts, name), *bins)
