"""Which scores a table or figure is made of, checked, and which are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report.style import PAPER_METHODS

if TYPE_CHECKING:
    import pandas as pd


def ordered_methods(methods: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the names of ``methods``: the paper's in its order, then the others.

    Examples
    --------
    >>> ordered_methods({"mine": {}, "laplace": {}, "eknn": {}})
    ['eknn', 'laplace', 'mine']
    """
    paper = [name for name in PAPER_METHODS if name in methods]
    return paper + [name for name in methods if name not in PAPER_METHODS]


def dataset_scores(
    scores: pd.DataFrame, dataset: str, methods: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    """Return the finite scores of one data set's tasks, checked to have one value per cell.

    Parameters
    ----------
    scores : DataFrame
        Tidy: dataset, seed, method, scope, task, metric, value, ... The scope is ``task``,
        ``all_tasks`` for what is estimated of all tasks of a data set together, or ``bin`` for
        what is of all tasks in one bin.
    dataset : str
    methods : mapping
        By name in the configuration: ``{"label": ..., "family": ...}``, family one of
        active, illustrative, control.

    Raises
    ------
    ValueError
        If columns are missing, the data set has no scores, a method is not in
        ``methods``, or a (method, task, seed, metric) has two values.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame(
    ...     [("eknn", "task", "cat", 0.5), ("eknn", "all_tasks", None, 0.25)],
    ...     columns=["method", "scope", "task", "value"],
    ... ).assign(dataset="pets", seed=0, metric="eece")
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> dataset_scores(scores, "pets", methods)["value"].to_list()
    [0.5]
    """
    needed = ["dataset", "seed", "method", "scope", "task", "metric", "value"]
    absent = [column for column in needed if column not in scores.columns]
    if absent:
        raise ValueError(f"scores lacks the columns {absent}; it has {list(scores.columns)}")
    chosen = scores[scores["dataset"] == dataset]
    if chosen.empty:
        known = sorted(scores["dataset"].unique())
        raise ValueError(f"dataset={dataset!r} has no scores; those with scores: {known}")
    unknown = sorted(set(chosen["method"]) - set(methods))
    if unknown:
        raise ValueError(f"scores has methods {unknown} that methods lacks: {list(methods)}")
    key = ["method", "scope", "task", "seed", "metric", "bin"]
    key = [column for column in key if column in chosen]
    repeated = chosen[chosen.duplicated(key)]
    if not repeated.empty:
        cell = repeated.iloc[0][key].to_dict()
        raise ValueError(f"scores of dataset={dataset!r} has more than one value of {cell}")
    return chosen[np.isfinite(chosen["value"].astype(float)) & (chosen["scope"] == "task")]


def all_tasks_scores(scores: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Return what is estimated of all tasks of a data set together, mean over seeds.

    Returns
    -------
    DataFrame
        Index method, columns metric; empty where ``scores`` has no such rows.
    """
    chosen = scores[(scores["dataset"] == dataset) & (scores["scope"] == "all_tasks")]
    return chosen.pivot_table(index="method", columns="metric", values="value")


def missing_cells(
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    metrics: Sequence[str],
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> pd.DataFrame:
    """Return the cells without a finite score: columns method, task, seed, metric.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    metrics : sequence of str
    tasks, seeds : sequence, optional
        What there should be; by default every task and seed that any method has.
    """
    import pandas as pd

    chosen = dataset_scores(scores, dataset, methods)
    expected = pd.MultiIndex.from_product(
        [
            ordered_methods(methods),
            chosen["task"].unique() if tasks is None else tasks,
            sorted(chosen["seed"].unique()) if seeds is None else seeds,
            metrics,
        ],
        names=["method", "task", "seed", "metric"],
    )
    present = pd.MultiIndex.from_frame(chosen[expected.names])
    return expected[~expected.isin(present)].to_frame(index=False)
