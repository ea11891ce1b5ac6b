"""The table of the paper's appendix: blocks of metrics, tasks down, methods across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report._doubts import not_estimable
from epistemic_calibration.report.tables._selection import (
    dataset_scores,
    missing_cells,
    ordered_methods,
)
from epistemic_calibration.report.tables._table import (
    MEAN,
    ROW_LABELS,
    SD,
    Table,
    count,
    missing_notes,
    number,
)

if TYPE_CHECKING:
    import pandas as pd

SUFFIX = ""

# The blocks of the paper itself, with fewer decimals than the others, as there.
_PUBLISHED = ("accuracy", "ece", "eece")


def make(
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    n_resamples: int | None = None,
    differences: pd.DataFrame | None = None,
    decimals: int = 2,
) -> Table:
    """Return the table of the paper's appendix, with further blocks below the paper's.

    The blocks are the paper's accuracy, ECE and EECE, then those of the other metrics of
    the table ``paper`` that ``scores`` has.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    tasks, seeds : sequence, optional
        What there should be; by default every task and seed that any method has.
    n_resamples, differences
        Not used.
    decimals : int
        Decimals of the paper's three metrics as text; the other blocks show two more.

    Returns
    -------
    Table
        ``cells`` has rows (metric, task) with the mean over seeds, and at the end of each
        block (mean) and (sd), both over tasks and seeds (sd with ddof = 1); columns are
        methods, the paper's first and in its order.

    Raises
    ------
    ValueError
        As in `dataset_scores`.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame(
    ...     [("cat", "accuracy", 0.9), ("cat", "ece", 0.25), ("cat", "eece", 0.125)],
    ...     columns=["task", "metric", "value"],
    ... ).assign(dataset="pets", seed=0, method="eknn", scope="task")
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> table = make(scores, "pets", methods)
    >>> float(table.cells.loc[("ece", "cat"), "eknn"]), table.text.loc[("ECE", "cat"), "EK-NN"]
    (0.25, '0.25')
    """
    import pandas as pd

    from epistemic_calibration.scoring import table_metrics

    chosen = dataset_scores(scores, dataset, methods)
    found = set(chosen["metric"])
    metrics = [m for m in table_metrics("paper") if m.name in _PUBLISHED or m.name in found]
    tasks = list(chosen["task"].unique() if tasks is None else tasks)
    columns = ordered_methods(methods)
    missing = missing_cells(
        scores, dataset, methods, metrics=[m.name for m in metrics], tasks=tasks, seeds=seeds
    )
    hidden = not_estimable(chosen)
    incomplete = set(missing[["metric", "task", "method"]].itertuples(index=False, name=None))

    blocks, text = {}, {}
    for metric in metrics:
        digits = decimals if metric.name in _PUBLISHED else decimals + 2
        block = chosen[(chosen["metric"] == metric.name) & chosen["task"].isin(tasks)]
        means = block.pivot_table(index="task", columns="method", values="value", aggfunc="mean")
        rows = means.reindex(index=tasks, columns=columns)
        by_method = block.groupby("method")["value"]
        rows.loc[MEAN] = by_method.mean().reindex(columns)
        rows.loc[SD] = by_method.std(ddof=1).reindex(columns)
        if metric.name in hidden:
            rows[:] = np.nan
        blocks[metric.name] = rows
        shown = [
            [
                number(value, digits, starred=(metric.name, row, method) in incomplete)
                for method, value in line.items()
            ]
            for row, line in rows.iterrows()
        ]
        text[metric.short_label] = pd.DataFrame(
            shown,
            index=[ROW_LABELS.get(row, row) for row in rows.index],
            columns=[methods[method]["label"] for method in columns],
        )
    n_seeds = chosen["seed"].nunique()
    return Table(
        cells=pd.concat(blocks, names=["metric", "task"]),
        text=pd.concat(text, names=["Metric", "Task"]),
        caption=f"One-vs-all classification on {dataset}, mean over {count(n_seeds, 'seed')}",
        notes=tuple(missing_notes(missing, methods)),
    )
