"""The summary: the three answers of each method."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epistemic_calibration.report._answers import answers, answers_table, groups
from epistemic_calibration.report._trainings import about_trainings
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.tables._by_method import method_cells
from epistemic_calibration.report.tables._table import Table, missing_notes

SUFFIX = "_summary"

_FURTHER = ("tece_corrected", "tece_reported")
# What there is room for in a terminal, by its short name there.
_BRIEF = {
    "Group": "Group",
    "Calibration error, points": "Points",
    "Share reported, %": "Share, %",
    "Uncertainty": "Uncertainty",
    "Errors, %": "Errors, %",
    "kept at 90 %": "at 90 %",
}


def make(results: DatasetResults) -> Table:
    """Return one row per method: active ones, illustrative ones, controls; by calibration error.

    Without differences there are no groups.

    Returns
    -------
    Table
        ``text`` as of `answers_table`. ``cells``: the metrics of the table ``summary``, the
        corrected TECE and TECE with the reported uncertainty, as `method_cells` returns them; the
        standard deviation over trainings of the corrected TECE; in points (100 · √), the corrected
        TECE and the error for one image, with limits; the share of that error that is reported.
        Where there is one label per image, the last two are bounds, ``..._at_least`` and
        ``..._at_most``. ``group`` is of methods, ``group_of_these_trainings`` of the trainings
        of the run.
    """
    from epistemic_calibration.scores import METRICS, table_metrics

    metrics = [m for m in table_metrics("summary") if m.name in results.found]
    metrics += [METRICS[name] for name in _FURTHER if name in results.found]
    found = answers(results)
    cells = method_cells(results, list(found.index), metrics)
    together = results.together.reindex(found.index)
    if "tece_corrected" in together:
        for end in ("", "_low", "_high"):
            if f"tece_corrected{end}" in together:
                cells[f"points{end}"] = found[f"points{end}"]
        spread = results.spread_over_trainings("tece_corrected").reindex(found.index)
        cells["tece_corrected_sd_over_trainings"] = spread
    estimated = "reported_share" in together
    ends = ("", "_low", "_high") if estimated else ("_at_least", "_at_most")
    for name, column in (("reducible_error", "error_points"), ("reported_share", "reported_share")):
        for end in ends:
            if f"{name}{end}" in together:
                values = together[f"{name}{end}"]
                in_points = column == "error_points"
                cells[f"{column}{end}"] = (
                    100 * np.sqrt(values.clip(lower=0)) if in_points else values
                )
    if results.differences is not None:
        cells.insert(2, "group", found["group"])
        of_trainings = groups(found, results.differences, "p_holm_fixed")
        cells.insert(3, "group_of_these_trainings", of_trainings)
    table = answers_table(found, results)
    brief = table.text[[name for name in _BRIEF if name in table.text]].rename(columns=_BRIEF)
    for name in brief.columns.intersection(["Errors, %", "at 90 %"]):
        brief[name] = brief[name].str.partition(" ")[0]
    missing = results.missing([metric.name for metric in metrics])
    return replace(
        table,
        cells=cells,
        caption=f"Summary of {results.title}: means over {results.size_text()}",
        notes=(
            *table.notes,
            *about_trainings(results),
            *missing_notes(missing, results.methods),
        ),
        brief=brief,
    )
