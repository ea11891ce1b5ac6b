"""Is the uncertainty of the right size? The error of each method, and how much of it it reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report._trainings import about_trainings
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.tables._by_method import (
    coarse_p_values,
    rejection_cells,
    rejections,
)
from epistemic_calibration.report.tables._table import MISSING, Table, intervals, number

if TYPE_CHECKING:
    import pandas as pd

SUFFIX = "_size"

# Columns of the estimates from several labels per input, and of the bounds from one.
_ESTIMATES = (
    "reducible_error",
    "reported_error",
    "reported_share",
    "size_slope",
    "size_error",
    "tece_all_labels",
    "within_label_correlation",
)
_BOUNDS = ("reducible_error", "reported_share")
_TEST = "p_second_order"


def make(results: DatasetResults) -> Table:
    """Return one row per method: estimates where there are several labels per input, else bounds.

    Where each test drew too few label sets to reject anything, cells are empty and a note says so.
    What is missing is told by the other tables.

    Returns
    -------
    Table
        ``cells``: every score of all tasks together, as in `all_tasks_scores`. Rows by how far
        the share of the error that is reported is from 1; of bounds, in the order of the
        configuration.
    """
    import pandas as pd

    together = results.together
    estimated = "reported_share" in together
    if estimated:
        with np.errstate(divide="ignore"):
            distance = np.log(together["reported_share"].clip(lower=0)).abs()
        together = together.loc[distance.sort_values(kind="stable", na_position="last").index]
    text = pd.DataFrame(index=pd.Index(results.labels(together.index), name="Method"))
    for heading, cells in _estimates(together) if estimated else _bounds(together):
        text[heading] = cells
    tests = rejections(results, _TEST).reindex(together.index, fill_value=0)
    if tests["count"].any():
        text["Rejected: p* is distributed as the hypotheses"] = rejection_cells(
            tests["sum"], tests["count"]
        )
    return Table(
        cells=together,
        text=text,
        caption=f"Is the uncertainty of the right size? {results.title}: means over "
        f"{results.size_text()}",
        notes=(
            *_notes(estimated),
            *about_trainings(results),
            *coarse_p_values(results, _TEST),
        ),
    )


def _estimates(together: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    from epistemic_calibration.scores import METRICS

    for name in (n for n in _ESTIMATES if n in together):
        cells = intervals(together, [name, f"{name}_low", f"{name}_high"], METRICS[name].digits)
        yield METRICS[name].label, cells


def _bounds(together: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    from epistemic_calibration.scores import METRICS

    for name in (n for n in ("brier_of_mean", "brier_above_best") if n in together):
        digits = METRICS[name].digits
        yield METRICS[name].label, [number(value, digits) for value in together[name]]
    for name in _BOUNDS:
        # Where a method is missing, so are the bounds of all.
        names = ["none", f"{name}_at_least", f"{name}_at_most"]
        shown = intervals(together, names, METRICS[name].digits)
        yield METRICS[name].label, [cell.removeprefix(f"{MISSING} ") for cell in shown]


def _notes(estimated: bool) -> tuple[str, ...]:
    if not estimated:
        return (
            "With one label per image the error E[(p* − Δ)²] is known between two bounds only: the "
            "Brier score less that of the best method here, and the Brier score. [In brackets]: "
            "what the error, and the share of it that is reported, lie in with 95 % confidence; a "
            "share below 1 throughout is an uncertainty that is too small.",
        )
    return (
        "From several labels per image, [95 % confidence interval] over other images and labels. "
        "p* is the share of people who would give the class to this image. Reducible error: "
        "E[(p* − Δ)²], Δ the mean of the hypotheses. Error that is reported: what the epistemic "
        "uncertainty says that this error is. A share of 1 is right, below 1 a method is too sure "
        "of itself.",
        "Slope: 1 if the error grows as the uncertainty does, 0 if it does not. Size error: mean "
        "square of error less reported error in bins of the uncertainty. Rejected: tasks in which "
        "p* is not one more function of the law of the hypotheses, by Holm over those of a seed; "
        "methods that report an uncertainty of their own, or have fewer than 19 hypotheses, cannot "
        "be tested.",
        "Correlation within a class: where it may be 0, check that the counts are in the order of "
        "the images.",
    )
