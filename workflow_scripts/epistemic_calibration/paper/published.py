"""The paper's published tables, and these results beside them, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from epistemic_calibration.report._metrics import metric_label
from epistemic_calibration.report.style import PAPER_METHODS
from epistemic_calibration.report.tables._table import MISSING, markdown, number

__all__ = [
    "comparison_markdown",
    "paper_comparison",
    "paper_comparison_means",
    "read_published",
]

#: Published values are printed with two decimals.
ROUNDING = 0.005

_MEANS = (
    *("dataset", "method", "metric", "tasks", "published", "published_sd", "ours", "ours_sd"),
    *("difference", "n_tasks", "n_within_rounding", "within_rounding", "status"),
)

#: The published chain that failed: (data set, method, task).
FAILED_CHAIN = ("cifar10", "bayesian_logistic_regression", "truck")


def read_published(path: str | Path) -> pd.DataFrame:
    """Read the paper's tables: one row per cell, ``value`` NaN where it is unpublished.

    Raises
    ------
    ValueError
        If columns are missing or a cell is there twice.
    """
    published = pd.read_csv(path, dtype=str, keep_default_na=False)
    needed = ["dataset", "task", "method", "metric", "value", "printed_method", "note"]
    absent = [column for column in needed if column not in published.columns]
    if absent:
        raise ValueError(f"{path} lacks the columns {absent}")
    repeated = published[published.duplicated(["dataset", "task", "method", "metric"])]
    if not repeated.empty:
        raise ValueError(f"{path} has two rows of {repeated.iloc[0, :4].to_dict()}")
    published["value"] = pd.to_numeric(published["value"].replace("", np.nan))
    return published


def paper_comparison(scores: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Compare with the paper, cell by cell.

    Parameters
    ----------
    scores : DataFrame
        Tidy scores of any data sets; those that the paper lacks are left out.
    published : DataFrame
        As returned by `read_published`.

    Returns
    -------
    DataFrame
        One row per cell of the paper's tables of the data sets in ``scores``: dataset,
        task, method, metric, published, ours (mean over seeds), ours_sd (over seeds,
        ddof = 1), n_seeds, difference (ours − published), within_rounding (whether the
        published value, which has two decimals, may be ours rounded), status (compared,
        unpublished, not run) and comment (what is odd about the published cell).
    """
    key = ["dataset", "task", "method", "metric"]
    rows = published[published["dataset"].isin(scores["dataset"])].rename(
        columns={"value": "published", "note": "comment"}
    )
    tasks = scores[(scores["scope"] == "task") & np.isfinite(scores["value"].astype(float))]
    cells = tasks.groupby(key)["value"]
    ours = cells.agg(ours="mean", ours_sd="std", n_seeds="count").reset_index()
    rows = rows.merge(ours, on=key, how="left", validate="one_to_one")
    rows["n_seeds"] = rows["n_seeds"].fillna(0).astype(int)
    rows["difference"] = rows["ours"] - rows["published"]
    rows["within_rounding"] = _within(rows["difference"])
    rows["status"] = np.select(
        [rows["published"].isna(), rows["n_seeds"] == 0], ["unpublished", "not run"], "compared"
    )
    columns = ["published", "ours", "ours_sd", "n_seeds", "difference", "within_rounding"]
    return rows[[*key, *columns, "status", "comment"]].reset_index(drop=True)


def paper_comparison_means(comparison: pd.DataFrame) -> pd.DataFrame:
    """Compare with the paper the means over tasks, from what `paper_comparison` returns.

    Returns
    -------
    DataFrame
        One row per (dataset, method, metric): tasks (``all``, or ``all but TASK`` in
        the second row of a method with a published chain that failed), published and
        published_sd, ours and ours_sd (over tasks), difference, n_tasks,
        n_within_rounding, within_rounding and status. Where both exist, both means are
        over the tasks that both have. Rounding moves a mean by no more than a cell.
    """
    groups = comparison.groupby(["dataset", "method", "metric"], sort=False)
    rows = [_mean_row(group, "all") for _, group in groups]
    dataset, method, task = FAILED_CHAIN
    failed = comparison[(comparison["dataset"] == dataset) & (comparison["method"] == method)]
    for _, group in failed[failed["task"] != task].groupby("metric", sort=False):
        rows.append(_mean_row(group, f"all but {task}"))
    return pd.DataFrame(rows, columns=_MEANS)


def _mean_row(group: pd.DataFrame, tasks: str) -> dict[str, object]:
    compared = group["status"] == "compared"
    common = group[compared] if compared.any() else group
    difference = common["difference"].mean()
    return {
        **group.iloc[0][["dataset", "method", "metric"]].to_dict(),
        "tasks": tasks,
        "published": common["published"].mean(),
        "published_sd": common["published"].std(ddof=1),
        "ours": common["ours"].mean(),
        "ours_sd": common["ours"].std(ddof=1),
        "difference": difference,
        "n_tasks": int(compared.sum()),
        "n_within_rounding": int(common["within_rounding"].fillna(False).sum()),
        "within_rounding": _within(pd.Series([difference])).iloc[0],
        "status": "compared" if compared.any() else group["status"].iloc[0],
    }


def comparison_markdown(
    comparison: pd.DataFrame, means: pd.DataFrame, methods: Mapping[str, Mapping[str, str]]
) -> str:
    """Return the comparison for readers: means first, then every cell.

    ``comparison`` and ``means`` are as returned by `paper_comparison` and
    `paper_comparison_means`; a method that ``methods`` lacks keeps its name.
    """
    parts = [
        "# Comparison with the published tables",
        "A cell reads: ours (published). **Bold**: the published value, which has two decimals, "
        f"is not ours rounded. {MISSING}: not run, or not published.",
    ]
    if comparison.empty:
        parts.append("The paper has none of the data sets that were run.")
    for dataset, cells in comparison.groupby("dataset", sort=False):
        compared = cells[cells["status"] == "compared"]
        agreeing = int(compared["within_rounding"].sum())
        parts += [
            f"## {dataset}",
            f"{agreeing} of {len(compared)} cells agree within rounding; "
            f"{(cells['status'] == 'unpublished').sum()} are unpublished, "
            f"{(cells['status'] == 'not run').sum()} were not run.",
        ]
        if cells["comment"].str.startswith("misprint").any():
            parts.append(
                "The published accuracies of this data set are misprinted: the block repeats "
                "columns and ends early. They stand here beside the methods they belong to; "
                "the column `comment` of the CSV says where each is printed."
            )
        if dataset == FAILED_CHAIN[0]:
            _, method, task = FAILED_CHAIN
            parts.append(
                f"The published row {task} of {_label(method, methods)} is far from its other nine "
                "in all three metrics, as a sampler that failed would make it: the means are "
                "given without it, too."
            )
        parts += ["### Means over tasks", _means_text(means, dataset, methods)]
        for metric, block in cells.groupby("metric", sort=False):
            parts += [f"### {metric_label(metric)}", _cells_text(block, methods)]
    return "\n\n".join(parts) + "\n"


def _means_text(means: pd.DataFrame, dataset: str, methods: Mapping[str, Mapping[str, str]]) -> str:
    rows = means[means["dataset"] == dataset]
    texts = [_pair(row, digits=4, published_digits=3) for row in rows.to_dict("records")]
    wide = rows.assign(text=texts).pivot(index=["method", "tasks"], columns="metric", values="text")
    order = sorted(wide.index, key=lambda key: (PAPER_METHODS.index(key[0]), key[1]))
    shown = wide.loc[order, rows["metric"].unique()].rename(columns=metric_label).fillna(MISSING)
    names = [_label(m, methods) + ("" if t == "all" else f" ({t})") for m, t in order]
    shown.insert(0, "Method", names)
    return markdown(shown, words={"Method"})


def _cells_text(block: pd.DataFrame, methods: Mapping[str, Mapping[str, str]]) -> str:
    cells = block.assign(text=[_pair(row, digits=3) for row in block.to_dict("records")])
    wide = cells.pivot(index="task", columns="method", values="text")
    columns = [name for name in PAPER_METHODS if name in wide.columns]
    wide = wide.reindex(index=block["task"].unique(), columns=columns)
    wide.columns = [_label(name, methods) for name in columns]
    return markdown(wide.rename_axis(index="Task").reset_index(), words={"Task"})


def _pair(cell: Mapping[str, Any], *, digits: int, published_digits: int = 2) -> str:
    ours = number(cell["ours"], digits)
    if cell["status"] == "compared" and not cell["within_rounding"]:
        ours = f"**{ours}**"
    return f"{ours} ({number(cell['published'], published_digits)})"


def _label(method: str, methods: Mapping[str, Mapping[str, str]]) -> str:
    return methods[method]["label"] if method in methods else method


def _within(difference: pd.Series) -> pd.Series:
    # The slack is for values such as 0.125, halfway between two decimals.
    within = (difference.abs() <= ROUNDING + 1e-9).astype("boolean")
    return within.mask(difference.isna())
