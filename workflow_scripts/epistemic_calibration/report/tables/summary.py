"""The summary: for each method, is the mean right, and is the uncertainty of the right size?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report._groups import letters
from epistemic_calibration.report._trainings import about_trainings
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.tables._by_method import LEVEL, method_cells
from epistemic_calibration.report.tables._table import (
    MISSING,
    Table,
    mean_sd,
    missing_notes,
    number,
)

if TYPE_CHECKING:
    import pandas as pd

    from epistemic_calibration.scoring import Metric

SUFFIX = "_summary"

_SORTED_BY = "tece_corrected"
# The standard deviation over tasks and seeds of the others is in the CSV alone.
_WITH_SD = ("eece",)
_FURTHER = (_SORTED_BY, "tece_reported")
_SPREAD = f"{_SORTED_BY}_sd_over_trainings"
_SHARE = "Share of it that is reported"


def make(results: DatasetResults) -> Table:
    """Return one row per method, from the smallest corrected TECE to the largest, controls last.

    Parameters
    ----------
    results : DatasetResults
        Without differences there are no groups.

    Returns
    -------
    Table
        ``cells``: the metrics of the table ``summary``, the corrected TECE and TECE with the
        reported uncertainty, as `method_cells` returns them; the standard deviation over
        trainings of the corrected TECE; in points (100 · √), the corrected
        TECE and the error for one image, with limits; the share of that error that is reported.
        Where there is one label per image, the last two are bounds, ``..._at_least`` and
        ``..._at_most``. ``group`` is of methods, ``group_of_these_trainings`` of the trainings
        of the run.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame(
    ...     [("task", "cat", "tece_corrected", 0.0025)]
    ...     + [("all_tasks", None, f"tece_corrected{end}", x) for end, x in
    ...        [("", 0.0025), ("_low", 0.0016), ("_high", 0.0036)]],
    ...     columns=["scope", "task", "metric", "value"],
    ... ).assign(dataset="pets", seed=0, method="eknn")
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> make(DatasetResults(scores, "pets", methods)).text.T.to_dict()["EK-NN (illustrative)"]
    {'Corrected TECE [interval]': '0.0025 [0.0016, 0.0036]', 'In points': '5.0 [4.0, 6.0]'}
    """
    import pandas as pd

    from epistemic_calibration.scoring import METRICS, table_metrics

    found, differences = results.found, results.differences
    plain = [metric for metric in table_metrics("summary") if metric.name in found]
    further = [METRICS[name] for name in _FURTHER if name in found]
    cells = method_cells(results, results.order, [*plain, *further])
    cells = _with_points_and_share(cells, results)
    if _SORTED_BY in found:
        cells = cells.sort_values(f"{_SORTED_BY}_mean", kind="stable", na_position="last")
    cells = cells.sort_values("family", key=lambda f: f == "control", kind="stable")
    if differences is not None:
        cells.insert(2, "group", _groups(cells, differences, "p_holm"))
        fixed = _groups(cells, differences, "p_holm_fixed")
        cells.insert(3, "group_of_these_trainings", fixed)

    columns = {}
    if "group" in cells:
        columns["Group"] = [group or MISSING for group in cells["group"]]
    for metric in plain:
        heading = metric.label if metric.name == "accuracy" else metric.short_label
        columns[heading] = _means(cells, metric)
    columns |= dict(_answers(cells))
    text = pd.DataFrame(columns, index=pd.Index(_labels(cells), name="Method"))
    missing = results.missing([metric.name for metric in (*plain, *further)])
    return Table(
        cells=cells,
        text=text,
        caption=f"Summary of {results.dataset}: means over {results.size_text()}",
        notes=(
            *_notes(cells, results),
            *about_trainings(results),
            *missing_notes(missing, results.methods),
        ),
        words=("Group",),
        brief=_brief(text),
    )


def _means(cells: pd.DataFrame, metric: Metric) -> list[str]:
    means = cells[f"{metric.name}_mean"]
    if metric.name not in _WITH_SD:
        return [number(mean, metric.digits) for mean in means]
    rows = zip(means, cells[f"{metric.name}_sd"], strict=True)
    return [mean_sd(mean, sd, metric.digits) for mean, sd in rows]


def _with_points_and_share(cells: pd.DataFrame, results: DatasetResults) -> pd.DataFrame:
    together = results.together.reindex(cells.index)

    def points(values: pd.Series) -> pd.Series:
        return 100 * np.sqrt(values.clip(lower=0))

    if _SORTED_BY in together:
        cells["points"] = points(together[_SORTED_BY])
        for end in ("low", "high"):
            if f"{_SORTED_BY}_{end}" in together:
                cells[f"points_{end}"] = points(together[f"{_SORTED_BY}_{end}"])
        cells[_SPREAD] = results.spread_over_trainings(_SORTED_BY).reindex(cells.index)
    estimated = "reported_share" in together
    ends = ("", "_low", "_high") if estimated else ("_at_least", "_at_most")
    for end in ends:
        if f"reducible_error{end}" in together:
            cells[f"error_points{end}"] = points(together[f"reducible_error{end}"])
    for end in ends:
        if f"reported_share{end}" in together:
            cells[f"reported_share{end}"] = together[f"reported_share{end}"]
    return cells


def _groups(cells: pd.DataFrame, differences: pd.DataFrame, p_values: str) -> list[str]:
    """Return the letters of each row; controls, which are not ranked, have none."""
    ranked = cells.index[(cells["family"] != "control") & cells[f"{_SORTED_BY}_mean"].notna()]
    apart = differences[differences[p_values] <= LEVEL]
    found = letters(list(ranked), apart[["method", "other"]].itertuples(index=False, name=None))
    return [found.get(name, "") for name in cells.index]


def _labels(cells: pd.DataFrame) -> list[str]:
    return [
        label if family == "active" else f"{label} ({family})"
        for label, family in zip(cells["label"], cells["family"], strict=True)
    ]


def _answers(cells: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """Yield the columns of the two questions."""
    if "points" in cells:
        columns = [f"{_SORTED_BY}{end}_all_tasks" for end in ("", "_low", "_high")]
        rows = cells.reindex(columns=columns)
        yield "Corrected TECE [interval]", [_estimate(*row, 4) for row in rows.values]
        rows = cells.reindex(columns=["points", "points_low", "points_high"])
        yield "In points", [_estimate(*row, 1) for row in rows.values]
        if cells[_SPREAD].notna().any():
            yield "SD over trainings", [number(x, 4) for x in cells[_SPREAD]]
    if "tece_reported_mean" in cells:
        yield "With the reported EU", [number(x, 4) for x in cells["tece_reported_mean"]]
    for name, heading in (
        ("error_points", "Error for one image, points"),
        ("reported_share", _SHARE),
    ):
        percent = name == "reported_share"
        if name in cells:
            rows = cells.reindex(columns=[name, f"{name}_low", f"{name}_high"])
            shown = [_estimate(*row, 1, percent=percent) for row in rows.values]
            yield f"{heading} [interval]", shown
        elif f"{name}_at_least" in cells:
            rows = cells[[f"{name}_at_least", f"{name}_at_most"]]
            yield f"{heading}: bounds", [_bounds(*row, percent=percent) for row in rows.values]


def _estimate(value: float, low: float, high: float, digits: int, *, percent: bool = False) -> str:
    if not np.isfinite(value):
        return MISSING
    scale, unit = (100, " %") if percent else (1, "")
    shown, *limits = (_digits(scale * x, digits, percent) for x in (value, low, high))
    interval = "" if np.isnan([low, high]).any() else f" [{', '.join(limits)}]"
    return shown + unit + interval


def _bounds(low: float, high: float, *, percent: bool) -> str:
    if np.isnan(low) or np.isnan(high):
        return MISSING
    scale, unit = (100, " %") if percent else (1, "")
    return f"{_digits(scale * low, 1, percent)} to {_digits(scale * high, 1, percent)}{unit}"


def _digits(value: float, digits: int, percent: bool) -> str:
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    # A share of 119 % has no tenths worth reading.
    return number(value, 0 if percent and abs(value) >= 20 else digits)


def _notes(cells: pd.DataFrame, results: DatasetResults) -> Iterator[str]:
    yield (
        "Sorted by the corrected TECE, the mean squared error of the predictions given all that a "
        "method says [confidence interval of the mean over tasks]. In points: 100 · √TECE, by how "
        "far probabilities are off. EECE = Σ w |g² − W|: g² is what the mean of the hypotheses "
        "gets wrong, label noise included; W is scatter that the bins average away."
    )
    if results.differences is not None:
        whose = "methods" if results.n_trainings.max() > 1 else "trainings"
        yield (
            f"Group: {whose} that share a letter cannot be told apart in the corrected TECE (level "
            f"{LEVEL}, by Holm over {len(results.differences)} pairs, on the same images)."
        )
    if "reported_share" in cells:
        yield (
            "Error for one image: 100 · √E[(p* − Δ)²], p* the probability of the label at this "
            "image, Δ the prediction. Share: how much of that squared error the reported "
            "epistemic uncertainty (EU) makes up; 100 % is right."
        )
    elif "reported_share_at_least" in cells:
        yield (
            "Error for one image: 100 · √E[(p* − Δ)²], p* the probability of the label at this "
            "image, Δ the prediction. With one label per image, it and the share of the squared "
            "error that the reported epistemic uncertainty (EU) makes up (100 % is right) are "
            "known between bounds only; several labels per image would tell."
        )
    families = set(cells["family"])
    if "illustrative" in families and "tece_reported_mean" in cells:
        yield (
            "Illustrative methods report an uncertainty that is not the variance of their "
            "hypotheses; their TECE with it is at least that in the column of the reported EU."
        )
    if "control" in families:
        yield (
            "Controls are not ranked: a constant base rate is calibrated, and useless. Read the "
            "accuracy, too."
        )


def _brief(text: pd.DataFrame) -> pd.DataFrame:
    """Return the columns for a terminal; points have no limits there, those of TECE tell them."""
    import pandas as pd

    columns = {
        "Group": "Group",
        "Accuracy": "Accuracy",
        "Corrected TECE [interval]": "Corrected TECE",
        "In points": "Points",
        f"{_SHARE} [interval]": "Share reported",
        f"{_SHARE}: bounds": "Share reported",
    }
    brief = pd.DataFrame(
        {short: text[name] for name, short in columns.items() if name in text}, index=text.index
    )
    if "Points" in brief:
        brief["Points"] = [cell.partition(" ")[0] for cell in brief["Points"]]
    return brief
