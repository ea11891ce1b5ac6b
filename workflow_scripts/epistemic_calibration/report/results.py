"""What tables, figures and pages are made of: everything that is known of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration.report.style import PAPER_METHODS

if TYPE_CHECKING:
    import pandas as pd

_TITLES = {
    "breast_cancer": "Breast cancer",
    "cifar10": "CIFAR-10",
    "cifar10h": "CIFAR-10H",
    "digits": "Digits",
    "fashion_mnist": "Fashion-MNIST",
    "kmnist": "KMNIST",
    "mnist": "MNIST",
}
#: Ends of the names of limits and bounds, and on which side of the estimate they are.
_SIDES = {"_low": -1, "_high": 1, "_at_least": -1, "_at_most": 1}
#: The metric that says of which level the intervals of a data set are.
LEVEL_OF_INTERVALS = "confidence_level"
_NEEDED = ("dataset", "seed", "method", "scope", "task", "metric", "value")


def ordered_methods(methods: Iterable[str]) -> list[str]:
    """Return the names of ``methods``: the paper's in its order, then the others.

    Examples
    --------
    >>> ordered_methods(["mine", "laplace", "eknn"])
    ['eknn', 'laplace', 'mine']
    """
    paper = [name for name in PAPER_METHODS if name in methods]
    return paper + [name for name in methods if name not in PAPER_METHODS]


def count(n: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "seed"), count(2, "seed")
    ('1 seed', '2 seeds')
    """
    return f"{n} {noun}" + ("" if n == 1 else "s")


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
    from epistemic_calibration.scores import METRICS

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
class DatasetResults:
    """What there is of a data set, checked to have one value per cell.

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
    diagnostics : mapping of str to mapping
        By method: what `report._diagnostics.diagnose` returns.
    confidence_level : float
    warnings : sequence of str
        What a reader must know before any number.

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
    >>> DatasetResults(scores, "pets", methods).of_tasks["value"].to_list()
    [0.5]
    """

    scores: pd.DataFrame
    dataset: str
    methods: Mapping[str, Mapping[str, str]]
    tasks: Sequence[str] | None = None
    seeds: Mapping[str, Sequence[int]] | None = None
    n_resamples: int | None = None
    one_encoder: bool = False
    differences: pd.DataFrame | None = None
    diagnostics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    confidence_level: float = 0.95
    warnings: Sequence[str] = ()

    def __post_init__(self) -> None:
        scores, dataset = self.scores, self.dataset
        absent = [column for column in _NEEDED if column not in scores.columns]
        if absent:
            raise ValueError(f"scores lacks the columns {absent}; it has {list(scores.columns)}")
        rows = self.rows
        if rows.empty:
            known = sorted(scores["dataset"].unique())
            raise ValueError(f"dataset={dataset!r} has no scores; those with scores: {known}")
        unknown = sorted(set(rows["method"]) - set(self.methods))
        if unknown:
            raise ValueError(
                f"scores has methods {unknown} that methods lacks: {list(self.methods)}"
            )
        key = [c for c in ("method", "scope", "task", "seed", "metric", "bin") if c in rows]
        repeated = rows[rows.duplicated(key)]
        if not repeated.empty:
            cell = repeated.iloc[0][key].to_dict()
            raise ValueError(f"scores of dataset={dataset!r} has more than one value of {cell}")

    @property
    def title(self) -> str:
        """What readers see of the data set."""
        return _TITLES.get(self.dataset, self.dataset)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The scores of this data set."""
        return self.scores[self.scores["dataset"] == self.dataset]

    @cached_property
    def of_tasks(self) -> pd.DataFrame:
        """The finite scores of single tasks."""
        finite = np.isfinite(self.rows["value"].astype(float))
        return self.rows[finite & (self.rows["scope"] == "task")]

    @cached_property
    def together(self) -> pd.DataFrame:
        """What is of all tasks together, as returned by `all_tasks_scores`; all methods."""
        return all_tasks_scores(self.scores, self.dataset).reindex(self.order)

    @property
    def order(self) -> list[str]:
        """The methods as in `ordered_methods`."""
        return ordered_methods(self.methods)

    @cached_property
    def found(self) -> set[str]:
        """Names of the metrics with scores of tasks."""
        return set(self.of_tasks["metric"])

    @cached_property
    def n_trainings(self) -> pd.Series:
        """Number of seeds of each method that has scores."""
        return self.rows.groupby("method")["seed"].nunique()

    def spread_over_trainings(self, metric: str) -> pd.Series:
        """Return the standard deviation over seeds of the estimate of all tasks, by method."""
        chosen = (self.rows["scope"] == "all_tasks") & (self.rows["metric"] == metric)
        return self.rows[chosen].groupby("method")["value"].std(ddof=1)

    def labels(self, names: Iterable[str]) -> list[str]:
        """Return what readers see of methods."""
        return [self.methods[name]["label"] for name in names]

    def size_text(self) -> str:
        """Return how many tasks and trainings there are.

        Examples
        --------
        >>> import pandas as pd
        >>> scores = pd.DataFrame({"seed": [0, 1], "value": 0.5, "metric": "eece"}).assign(
        ...     dataset="pets", method="mine", scope="task", task="cat"
        ... )
        >>> DatasetResults(scores, "pets", {"mine": {}}).size_text()
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
        seeds = chosen.groupby("method")["seed"].unique() if self.seeds is None else self.seeds
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
