"""What drives EECE: its parts beside the estimate of the error it stands for, and the tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from epistemic_calibration.report.tables._by_method import LEVEL, table_by_method
from epistemic_calibration.report.tables._selection import dataset_scores
from epistemic_calibration.report.tables._table import Table

if TYPE_CHECKING:
    import pandas as pd

SUFFIX = "_drivers"


def make(
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    n_resamples: int | None = None,
) -> Table:
    """Return one row per method with the metrics of the table ``drivers``.

    In the text the corrected TECE has the interval of its mean over tasks, which takes into
    account that they share their images; with several seeds, the mean of their limits.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    tasks, seeds : sequence, optional
        What there should be; by default every task and seed that any method has.
    n_resamples : int, optional
        Label sets that each test drew; if they are too few to reject anything, a note says so.

    Returns
    -------
    Table
        As returned by `table_by_method`.

    Raises
    ------
    ValueError
        As in `dataset_scores`.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame(
    ...     [("task", "cat", "tece_corrected", 0.25), ("task", "dog", "tece_corrected", 0.75)]
    ...     + [("all_tasks", None, f"tece_corrected_{end}", 0.5) for end in ("low", "high")],
    ...     columns=["scope", "task", "metric", "value"],
    ... ).assign(dataset="pets", seed=0, method="eknn")
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> make(scores, "pets", methods).text.loc["EK-NN", "Corrected TECE"]
    '0.5000 [0.5000, 0.5000]'
    """
    return table_by_method(
        scores,
        dataset,
        methods,
        table="drivers",
        caption=f"What drives EECE on {dataset}",
        notes=(
            "EECE = Σ w |g² − W|. g²: what the mean of the hypotheses gets wrong, with the noise "
            "of the labels (the floor) in it. W: scatter of the hypotheses that the bins average "
            "away; it holds no label.",
            "Corrected TECE: without that noise, [confidence interval of the mean over tasks; "
            "mean of the seeds' intervals]; it is mean miscalibration plus epistemic dependence. "
            "The cross-fitted bound needs no bins.",
            "Rejected: tasks in which the test rejects at 0.05, by Holm over those of a seed.",
            *_coarse_p_values(dataset_scores(scores, dataset, methods), n_resamples),
        ),
        tasks=tasks,
        seeds=seeds,
    )


def _coarse_p_values(chosen: pd.DataFrame, n_resamples: int | None) -> Iterator[str]:
    """Say so where no test by resampling can reject: p is 1/(n_resamples + 1) at least."""
    tests = chosen[chosen["metric"] == "p_epistemic_calibration"]
    n_tests = tests.groupby("seed").size().max() if len(tests) else 0
    if n_resamples is not None and n_tests > LEVEL * (n_resamples + 1):
        yield (
            f"Too few resamples: with {n_resamples} of them none of {n_tests} tests can be "
            f"rejected; set scores.n_resamples to {int(2 * n_tests / LEVEL) - 1} or more."
        )
