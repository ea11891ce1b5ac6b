"""Which scores a table or figure is made of, checked, and which are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report.style import PAPER_METHODS
from epistemic_calibration.report.tables._table import count

if TYPE_CHECKING:
    import pandas as pd

#: Ends of the names of limits and bounds, and on which side of the estimate they are.
_SIDES = {"_low": -1, "_high": 1, "_at_least": -1, "_at_most": 1}
#: The metric that says of which level the intervals of a data set are.
LEVEL_OF_INTERVALS = "confidence_level"


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

    Of a method with several seeds, limits of intervals and bounds are of the method: over
    trainings, of a t distribution with Satterthwaite's degrees of freedom. The noise of the
    labels in the mean over trainings, which share the inputs, is taken to be that of one
    training, the most that it can be.

    Returns
    -------
    DataFrame
        Index method, columns metric; empty where ``scores`` has no such rows.
    """
    chosen = scores[(scores["dataset"] == dataset) & (scores["scope"] == "all_tasks")]
    table = chosen.pivot_table(index="method", columns="metric", values="value")
    for method, rows in chosen.groupby("method"):
        if rows["seed"].nunique() > 1:
            runs = rows.pivot_table(index="seed", columns="metric", values="value")
            for name, limit in _limits_over_trainings(runs):
                table.loc[method, name] = limit
    return table


def _limits_over_trainings(runs: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """Yield the limits of intervals and the bounds of a method; ``runs`` has a row per seed."""
    from epistemic_calibration.scoring import METRICS

    level = runs[LEVEL_OF_INTERVALS].iloc[0] if LEVEL_OF_INTERVALS in runs else 0.95
    for name in runs:
        for suffix, sign in _SIDES.items():
            if not name.endswith(suffix):
                continue
            # What a bound is of has no estimate.
            limits = runs[name].dropna()
            estimates = runs.get(name.removesuffix(suffix), limits).reindex(limits.index)
            limit = _limit(estimates.to_numpy(), limits.to_numpy(), sign, level)
            least, most = METRICS[name].range if name in METRICS else (-np.inf, np.inf)
            yield name, min(max(limit, least), most)


def _limit(estimates: np.ndarray, limits: np.ndarray, sign: int, level: float) -> float:
    from scipy.stats import norm, t

    from epistemic_calibration.metrics._trainings import Spread, over_trainings

    n = len(limits)
    if n == 1 or not np.isfinite([estimates, limits]).all():
        return float(sign * np.max(sign * limits))
    quantile = 0.5 + level / 2
    noise = (np.abs(limits - estimates).mean() / norm.ppf(quantile)) ** 2
    spread = Spread(estimates.var(ddof=1), 0.0, 1 / n, n - 1)
    variance, freedom = over_trainings(noise, [spread])
    return float(estimates.mean() + sign * t.ppf(quantile, freedom) * np.sqrt(variance))


@dataclass(frozen=True, eq=False)
class DatasetScores:
    """The scores of a data set, checked, of which its tables are made.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    tasks : sequence of str, optional
        What there should be; by default every task that any method has.
    seeds : mapping from method to sequence of int, optional
        What there should be; by default every seed that the method has, and of one without
        scores, every seed that any has.
    n_resamples : int, optional
        Label sets that each test by resampling drew.
    one_encoder : bool, default False
        Whether all trainings share what encodes the images.
    differences : DataFrame, optional
        Which methods differ in the corrected TECE, as returned by
        `report.comparisons.compare_methods`; None where methods are missing.

    Raises
    ------
    ValueError
        As in `dataset_scores`.
    """

    scores: pd.DataFrame
    dataset: str
    methods: Mapping[str, Mapping[str, str]]
    tasks: Sequence[str] | None = None
    seeds: Mapping[str, Sequence[int]] | None = None
    n_resamples: int | None = None
    one_encoder: bool = False
    differences: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        _ = self.of_tasks

    @cached_property
    def of_tasks(self) -> pd.DataFrame:
        """The finite scores of single tasks, as returned by `dataset_scores`."""
        return dataset_scores(self.scores, self.dataset, self.methods)

    @cached_property
    def together(self) -> pd.DataFrame:
        """What is of all tasks together, as returned by `all_tasks_scores`; all methods."""
        return all_tasks_scores(self.scores, self.dataset).reindex(self.order)

    @property
    def order(self) -> list[str]:
        return ordered_methods(self.methods)

    @cached_property
    def found(self) -> set[str]:
        """Names of the metrics with scores of tasks."""
        return set(self.of_tasks["metric"])

    @cached_property
    def n_trainings(self) -> pd.Series:
        """Number of seeds of each method that has scores."""
        rows = self.scores[self.scores["dataset"] == self.dataset]
        return rows.groupby("method")["seed"].nunique()

    def spread_over_trainings(self, metric: str) -> pd.Series:
        """Return the standard deviation over seeds of the estimate of all tasks, by method."""
        rows = self.scores[
            (self.scores["dataset"] == self.dataset)
            & (self.scores["scope"] == "all_tasks")
            & (self.scores["metric"] == metric)
        ]
        return rows.groupby("method")["value"].std(ddof=1)

    def labels(self, names: Iterable[str]) -> list[str]:
        return [self.methods[name]["label"] for name in names]

    def size_text(self) -> str:
        """Return how many tasks and trainings there are.

        Examples
        --------
        >>> import pandas as pd
        >>> scores = pd.DataFrame({"seed": [0, 1], "value": 0.5, "metric": "eece"}).assign(
        ...     dataset="pets", method="mine", scope="task", task="cat"
        ... )
        >>> DatasetScores(scores, "pets", {"mine": {}}).size_text()
        '1 task and 2 trainings of each method'
        """
        least, most = self.n_trainings.min(), self.n_trainings.max()
        n = f"{least} to {most} trainings" if least < most else count(most, "training")
        return f"{count(self.of_tasks['task'].nunique(), 'task')} and {n} of each method"

    def missing(self, metrics: Sequence[str]) -> pd.DataFrame:
        """Return the cells without a finite score: columns method, task, seed, metric."""
        import pandas as pd

        chosen = self.of_tasks
        tasks = chosen["task"].unique() if self.tasks is None else self.tasks
        seeds = self.seeds
        if seeds is None:
            seeds = chosen.groupby("method")["seed"].unique()
        every = sorted(chosen["seed"].unique())
        cells = [
            (method, task, seed, metric)
            for method in self.order
            for task in tasks
            for seed in sorted(seeds.get(method, every))
            for metric in metrics
        ]
        expected = pd.MultiIndex.from_tuples(cells, names=["method", "task", "seed", "metric"])
        present = pd.MultiIndex.from_frame(chosen[expected.names])
        return expected[~expected.isin(present)].to_frame(index=False)
