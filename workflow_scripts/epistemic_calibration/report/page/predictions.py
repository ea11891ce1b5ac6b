"""The page of one file of predictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration._evaluation_plot import size_curve
from epistemic_calibration._evaluation_text import number, points
from epistemic_calibration.evaluation import Evaluation
from epistemic_calibration.report.page import _charts
from epistemic_calibration.report.page._html import (
    Cell,
    Download,
    HtmlTable,
    Section,
    number_cells,
    render,
)
from epistemic_calibration.report.page._scores import Number, numbers_of_parts
from epistemic_calibration.report.page.diagnostics import diagnose
from epistemic_calibration.report.page.run import bin_shown, histogram_rows, short_rows

#: What the numbers of an evaluation are called, where the scores of a run have no such number.
_LABELS = {
    "reducible_error_at_most": "Error of the mean, at most (its Brier score)",
    "reported_error": "Squared error that is reported",
    "tece_minimum_detectable": "Smallest TECE that can be seen",
    "n_samples": "Inputs",
    "n_hypotheses": "Hypotheses for each",
    "p_epistemic_calibration": "p-value: calibrated",
    "p_mean_calibration": "p-value: mean calibrated",
    "p_epistemic_independence": "p-value: the spread tells nothing more",
    "p_second_order": "p-value: uncertainty of the right size",
}


def predictions_page(result: Evaluation, name: str) -> str:
    """Return the page of a file of predictions as HTML.

    Parameters
    ----------
    result : Evaluation
        What `epistemic_calibration.evaluate` finds in it.
    name : str
        What the file is called.

    Raises
    ------
    ModuleNotFoundError
        If a library of the extra ``page`` is missing.
    """
    said = result.judgement
    found = None if result.tece is None else _diagnoses(result)
    level = f"{100 * result.confidence_level:g}\N{NO-BREAK SPACE}%"
    sections = [
        Section(
            "answers",
            "Answers",
            f"Intervals: {level}, of the sampling of inputs. Points are percentage points of "
            f"probability, root mean square.",
            answers=[
                ("Is the mean right?", [said["mean"]]),
                ("Is the uncertainty of the right size?", [said["size"]]),
            ],
            warnings=result.warnings,
        ),
        _numbers(result, name),
        _pictures(result, found),
        _parts(result),
        _carriers(result, found),
        Section(
            "settings",
            "Settings",
            facts=[
                ("Bins of the corrected TECE", f"{result.n_bins}, nested"),
                ("Bins of EECE", f"{result.eece_n_bins}, K-means"),
                ("Hypotheses are draws", "yes" if result.exchangeable else "no"),
                ("Seed", str(result.random_state)),
            ],
        ),
    ]
    subtitle = (
        f"{result.n_samples:,} inputs, {100 * result.positive_share:.1f}\N{NO-BREAK SPACE}% of "
        f"them positive; {result.n_hypotheses:,} hypotheses each."
    )
    return render(f"Epistemic calibration: {name}", subtitle, sections)


def _numbers(result: Evaluation, name: str) -> Section:
    from epistemic_calibration.scoring import METRICS

    frame = result.to_frame()
    # Squared errors, on one scale.
    drawn = number_cells(
        [
            Number(row.value, row.ci_low, row.ci_high, "interval")
            if math.isfinite(row.points) and math.isfinite(row.ci_low)
            else None
            for row in frame.itertuples()
        ],
        root=True,
    )
    rows = []
    for row, cell in zip(frame.itertuples(), drawn, strict=True):
        label = _LABELS.get(row.metric)
        if label is None:
            label = METRICS[row.metric].label if row.metric in METRICS else row.metric
        whole = row.metric.startswith("n_")
        limits = "" if math.isnan(row.ci_low) else f"{number(row.ci_low)} to {number(row.ci_high)}"
        in_points = "" if math.isnan(row.points) else f"{row.points:.1f}"
        rows.append(
            [
                Cell(label),
                Cell(f"{row.value:,.0f}" if whole else number(row.value), _order(row.value)),
                Cell(limits, _order(row.ci_low), cell.drawn),
                Cell(in_points, _order(row.points)),
            ]
        )
    download = Download(f"{name}.csv", frame.to_csv(index=False))
    table = HtmlTable(
        ["Number", "Value", "Interval", "In points"], rows, "All numbers", downloads=[download]
    )
    return Section("numbers", "Numbers", tables=[table])


def _order(value: float) -> float | str:
    return float(value) if math.isfinite(value) else ""


def _compared(result: Evaluation) -> dict[str, np.ndarray]:
    sample = result._inputs.sample
    draws = result.exchangeable and sample.reported is None and result.n_hypotheses > 1
    factor = metrics.finite_draws_factor(result.n_hypotheses) if draws else 1.0
    bins = sample.bins(n_bins=result.n_bins, binning="nested", random_state=result.random_state)
    found = {
        "mean_prediction": sample.mean,
        "bins": bins,
        "uncertainty": factor * sample.uncertainty,
    }
    return {name: values[None] for name, values in found.items()}


def _diagnoses(result: Evaluation) -> dict[str, Any]:
    y_true = np.asarray(result._inputs.sample.y)[None]
    level = result.confidence_level
    return diagnose(y_true, _compared(result), [""], confidence_level=level)


def _pictures(result: Evaluation, found: dict[str, Any] | None) -> Section:
    if found is None:
        return Section("pictures", "Pictures")
    charts = [
        _charts.reliability(
            list(short_rows(found["reliability"][0])),
            controls="",
            description="Frequency of label 1 in bins of the mean prediction, with intervals; "
            "larger points stand for more inputs. On the dashed line the mean is right.",
        )
    ]
    if result.reported_error is not None:
        curve = size_curve(result, result._inputs)
        known = result.second_order is not None
        rows = [
            {"uncertainty": u, "error": max(e, 0.0), "low": max(low, 0.0), "high": high}
            for u, e, low, high in zip(
                curve.uncertainty, curve.error, curve.ci_low, curve.ci_high, strict=True
            )
            if np.isfinite([u, e, low, high]).all()
        ]
        what = (
            "On the dashed line the uncertainty has the right size, above it is too small."
            if known
            else "With one label per input the error is known from above only, by the Brier score: "
            "a point below the dashed line is an uncertainty that is too large."
        )
        charts += [
            _charts.error_against_uncertainty(
                rows, controls="", at_most=False, description=f"Bars are intervals. {what}"
            ),
            _charts.uncertainty_histogram(
                list(histogram_rows(found["histogram"][0])),
                controls="",
                description="An uncertainty that tells where the predictor errs is larger where "
                "the class predicted is wrong.",
            ),
        ]
    return Section("pictures", "Pictures", charts=charts, narrow=True)


def _parts(result: Evaluation) -> Section:
    if result.eece is None:
        return Section("eece", "What makes EECE")
    eece = result.eece
    rows = list(
        numbers_of_parts(
            "", "this file", eece.calibration, eece.noise_floor, eece.dispersion, eece.eece
        )
    )
    chart = _charts.eece_parts(
        rows,
        data={"": "all inputs"},
        methods={"": "this file"},
        title="Parts of EECE = Σ w |g² − W|",
        description="Stacked: g², the squared miss of the mean in the bins, of which the noise of "
        "the labels alone would make the grey part, and W, the scatter of the hypotheses that "
        "holds no label. The upright mark is EECE.",
    )
    return Section("eece", "What makes EECE", charts=[chart])


def _carriers(result: Evaluation, found: dict[str, Any] | None) -> Section:
    bins = []
    if found is not None:
        bins = [bin_shown(top, result.tece.estimate) for top in found["top_bins"]]
    off = "" if result.tece is None else f", {points(result.tece.estimate)} points"
    return Section(
        "carriers",
        "What carries the error",
        f"The bins that contribute most to the corrected TECE{off}, and in each the inputs that "
        f"miss most in its direction; rows count from 0. Intervals allow for the choice of bins.",
        groups=[{"title": "Bins by their part", "bins": bins}] if bins else [],
    )
