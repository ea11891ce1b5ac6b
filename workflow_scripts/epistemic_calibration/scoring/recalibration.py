"""Scores before and after a recalibration, if the settings ask for them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration.scoring.base import Inputs, Metric, Row

ORDER = 5

METRICS = (
    Metric(
        "tece_corrected_before_recalibration",
        "Corrected TECE before recalibration",
        4,
        "lower",
        (-1, 1),
    ),
    Metric(
        "log_loss_before_recalibration",
        "Log loss before recalibration",
        4,
        "lower",
        (0, math.inf),
        {"by_eece": 10},
    ),
    Metric(
        "tece_corrected_after_recalibration",
        "Corrected TECE after recalibration",
        4,
        "lower",
        (-1, 1),
    ),
    Metric(
        "log_loss_after_recalibration",
        "Log loss after recalibration",
        4,
        "lower",
        (0, math.inf),
        {"by_eece": 11},
    ),
    Metric(
        "share_before_recalibration",
        "Share of the error reported before recalibration",
        2,
        None,
        (0, math.inf),
    ),
    Metric(
        "share_after_recalibration",
        "Share of the error reported after recalibration",
        2,
        None,
        (0, math.inf),
    ),
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
        result = metrics.second_order_error(
            n_positive[scored_on],
            n_labels[scored_on],
            hypotheses,
            exchangeable=inputs.exchangeable,
            # The share needs no bins.
            n_bins=1,
            binning="quantile",
        )
        yield Row(f"share_{when}_recalibration", result.share.estimate)
