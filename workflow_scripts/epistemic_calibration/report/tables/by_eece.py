"""One row per method with the common metrics, in the order of the paper: by EECE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from epistemic_calibration.report.tables._by_method import ranked_table
from epistemic_calibration.report.tables._selection import dataset_scores
from epistemic_calibration.report.tables._table import Table, count

if TYPE_CHECKING:
    import pandas as pd

SUFFIX = "_by_eece"


def make(
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    n_resamples: int | None = None,
    differences: pd.DataFrame | None = None,
) -> Table:
    """Return one row per method: mean ± sd of the metrics of the table ``by_eece``.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    tasks, seeds : sequence, optional
        What there should be; by default every task and seed that any method has.
    n_resamples, differences
        Not used.

    Returns
    -------
    Table
        As returned by `ranked_table`.

    Raises
    ------
    ValueError
        As in `dataset_scores`.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame(
    ...     [("cat", 0.25), ("dog", 0.75)], columns=["task", "value"]
    ... ).assign(dataset="pets", seed=0, method="eknn", scope="task", metric="eece")
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> make(scores, "pets", methods).text.loc["EK-NN"].to_dict()
    {'Rank': '1', 'Family': 'illustrative', 'EECE': '0.5000 ± 0.3536'}
    """
    chosen = dataset_scores(scores, dataset, methods)
    n_tasks, n_seeds = chosen["task"].nunique(), chosen["seed"].nunique()
    return ranked_table(
        scores,
        dataset,
        methods,
        table="by_eece",
        caption=f"Methods by EECE on {dataset}: mean ± standard deviation over "
        f"{count(n_tasks, 'task')} and {count(n_seeds, 'seed')}",
        notes=(
            "EECE = Σ w |g² − W|: g² is what the mean of the hypotheses gets wrong, W is the "
            "scatter that the bins average away.",
            "Ranked by EECE; controls are not ranked.",
        ),
        tasks=tasks,
        seeds=seeds,
    )
