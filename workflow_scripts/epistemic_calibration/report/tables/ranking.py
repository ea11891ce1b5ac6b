"""Does the uncertainty tell where a method errs? Errors kept by EU, and by the prediction."""

from __future__ import annotations

from epistemic_calibration.report._trainings import about_trainings
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.tables._table import Table, intervals

SUFFIX = "_ranking"

# Headings, and what of the scores is in them: a value, or a value with its interval.
_COLUMNS = {
    "Errors, in %": ("error_rate", False, 100),
    "Kept at 90 % by EU": ("kept_error_90", True, 100),
    "by 1 − max p": ("kept_error_90_by_prediction", False, 100),
    "Difference": ("kept_error_90_difference", True, 100),
    "AUROC of errors by EU": ("auroc_of_errors", False, 1),
    "of 1 − max p": ("auroc_of_errors_by_prediction", False, 1),
    "Difference of AUROC": ("auroc_of_errors_difference", True, 1),
    "AUGRC by EU, in %": ("augrc", False, 100),
    "AURC by EU, in %": ("aurc", False, 100),
}


def make(results: DatasetResults) -> Table:
    """Return one row per method, those that keep the fewest errors at 90 % first.

    What is missing is told by the other tables.

    Returns
    -------
    Table
        ``cells``: every score of all tasks together, as in `all_tasks_scores`.
    """
    import pandas as pd

    together = results.together
    if "kept_error_90" in together:
        together = together.sort_values("kept_error_90", kind="stable", na_position="last")
    text = pd.DataFrame(index=pd.Index(results.labels(together.index), name="Method"))
    for heading, (name, interval, unit) in _COLUMNS.items():
        if name in together:
            ends = (f"{name}_low", f"{name}_high") if interval else ("none", "none")
            text[heading] = intervals(together, [name, *ends], 2 if unit > 1 else 3, unit)
    return Table(
        cells=together,
        text=text,
        caption=f"Does the uncertainty tell where it errs? {results.title}, all tasks together",
        notes=(
            "Errors among the 90 % of images and tasks of least epistemic uncertainty (EU), beside "
            "those where the prediction is surest, by 1 − max p; [95 % confidence interval] of "
            "other images. Below 0 in Difference, EU finds errors better. AUROC: how often an "
            "error has the larger EU than what is right. AUGRC: errors kept as a share of all "
            "images, a mean over coverages (Traub et al., 2024).",
            *about_trainings(results),
        ),
    )
