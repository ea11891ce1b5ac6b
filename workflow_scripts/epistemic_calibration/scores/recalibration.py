"""Scores before and after a recalibration, if the settings ask for them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration.scores.base import DIFFERENCE, POSITIVE, Inputs, Metric, Row

METRICS = tuple(
    Metric(f"{name}_{when}_recalibration", f"{label} {when} recalibration", digits, range_)
    for name, label, digits, range_ in (
        ("tece_corrected", "Corrected TECE", 4, DIFFERENCE),
        ("log_loss", "Log loss", 4, POSITIVE),
        ("share", "Share of the error reported", 2, POSITIVE),
    )
    for when in ("before", "after")
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield scores of the half of the samples on which the recalibration was not fitted.

    The share of the error that the variance of the hypotheses says, which several labels per
    input show, is that of a recalibration fitted on such labels.
    """
    from sklearn.model_selection import train_test_split

    sample, settings = inputs.sample, inputs.settings
    if not settings["recalibration"]:
        return
    seed = settings["random_state"]
    fitted_on, scored_on = train_test_split(
        np.arange(len(sample)), test_size=0.5, random_state=seed, stratify=sample.y
    )
    recalibrator = metrics.SecondOrderRecalibrator().fit(
        sample.y[fitted_on], sample.hypotheses[fitted_on]
    )
    before = sample.hypotheses[scored_on]
    for when, hypotheses in (("before", before), ("after", recalibrator.transform(before))):
        scored = metrics.Sample(sample.y[scored_on], hypotheses)
        corrected = metrics.corrected_epistemic_calibration_error(
            scored,
            n_bins=settings["corrected_n_bins"],
            binning=settings["corrected_binning"],
            adaptive=False,
            random_state=seed,
        )
        yield Row(f"tece_corrected_{when}_recalibration", corrected.estimate)
        yield Row(f"log_loss_{when}_recalibration", metrics.log_loss(scored.y, scored.mean))
    n_positive, n_labels = inputs.n_positive, inputs.n_labels
    if n_positive is None:
        return
    recalibrator = metrics.SecondOrderRecalibrator().fit_counts(
        n_positive[fitted_on],
        n_labels[fitted_on],
        sample.hypotheses[fitted_on],
        exchangeable=inputs.exchangeable,
    )
    for when, hypotheses in (("before", before), ("after", recalibrator.transform(before))):
        # The share needs no bins.
        options = {"exchangeable": inputs.exchangeable, "n_bins": 1, "binning": "quantile"}
        counts = n_positive[scored_on], n_labels[scored_on]
        result = metrics.second_order_error(*counts, hypotheses, **options)
        yield Row(f"share_{when}_recalibration", result.share.estimate)
