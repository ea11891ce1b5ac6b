"""The table of the paper's appendix: blocks of metrics, tasks down, methods across."""

from __future__ import annotations

import numpy as np

from epistemic_calibration.report._doubts import not_estimable
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.tables._table import (
    MEAN,
    ROW_LABELS,
    SD,
    Table,
    missing_notes,
    number,
)

SUFFIX = ""

# The blocks of the paper itself, with fewer decimals than the others, as there.
_PUBLISHED = ("accuracy", "ece", "eece")


def make(results: DatasetResults, *, decimals: int = 2) -> Table:
    """Return the table of the paper's appendix, with further blocks below the paper's.

    The blocks are the paper's accuracy, ECE and EECE, then those of the other metrics of
    the table ``paper`` that ``scores`` has.

    ``cells`` has rows (metric, task) with the mean over seeds, and at the end of each block (mean)
    and (sd), both over tasks and seeds (sd with ddof = 1); columns are methods, the paper's first
    and in its order. As text, the paper's three metrics have ``decimals``, the others two more.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame(
    ...     [("cat", "accuracy", 0.9), ("cat", "ece", 0.25), ("cat", "eece", 0.125)],
    ...     columns=["task", "metric", "value"],
    ... ).assign(dataset="pets", seed=0, method="eknn", scope="task")
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> table = make(DatasetResults(scores, "pets", methods))
    >>> float(table.cells.loc[("ece", "cat"), "eknn"]), table.text.loc[("ECE", "cat"), "EK-NN"]
    (0.25, '0.25')
    """
    import pandas as pd

    from epistemic_calibration.scores import table_metrics

    chosen, columns = results.of_tasks, results.order
    metrics = [m for m in table_metrics("paper") if m.name in _PUBLISHED or m.name in results.found]
    tasks = list(chosen["task"].unique() if results.tasks is None else results.tasks)
    missing = results.missing([m.name for m in metrics])
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
            columns=results.labels(columns),
        )
    return Table(
        cells=pd.concat(blocks, names=["metric", "task"]),
        text=pd.concat(text, names=["Metric", "Task"]),
        caption=f"One-vs-all classification on {results.title}: {results.size_text()}",
        notes=tuple(missing_notes(missing, results.methods)),
    )
