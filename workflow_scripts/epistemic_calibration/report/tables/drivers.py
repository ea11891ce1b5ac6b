"""What drives EECE: its parts beside the estimate of the error it stands for, and the tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from epistemic_calibration.report.tables._by_method import coarse_p_values, ranked_table
from epistemic_calibration.report.tables._selection import all_tasks_scores, dataset_scores
from epistemic_calibration.report.tables._table import WARNING, Table

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
    differences: pd.DataFrame | None = None,
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
        Label sets that each test drew; where they are too few to reject
        anything, cells are empty and a note says so.
    differences : DataFrame, optional
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
    ...     [("task", "cat", "tece_corrected", 0.25), ("task", "dog", "tece_corrected", 0.75)]
    ...     + [("all_tasks", None, f"tece_corrected_{end}", 0.5) for end in ("low", "high")],
    ...     columns=["scope", "task", "metric", "value"],
    ... ).assign(dataset="pets", seed=0, method="eknn")
    >>> methods = {"eknn": {"label": "EK-NN", "family": "illustrative"}}
    >>> make(scores, "pets", methods).text.loc["EK-NN", "Corrected TECE"]
    '0.5000 [0.5000, 0.5000]'
    """
    return ranked_table(
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
            "It is of what its bins see, a lower bound of TECE: half and twice the bins show how "
            "it moves. The cross-fitted bound needs no bins.",
            "Corrected TECE is of the hypotheses, whatever uncertainty a method reports. TECE with "
            "the reported uncertainty is at least the last of these columns; it is the same where "
            "that is their variance. Of H draws from a right law it is above 0, by about their "
            "mean uncertainty/(H − 1) at most, so compare methods of few and of many hypotheses "
            "with care.",
            *_hidden_by_bins(dataset_scores(scores, dataset, methods), scores, dataset, methods),
            "Rejected: tasks in which the test rejects at 0.05, by Holm over those of a seed.",
            *coarse_p_values(dataset_scores(scores, dataset, methods), n_resamples),
        ),
        tasks=tasks,
        seeds=seeds,
        n_resamples=n_resamples,
    )


def _hidden_by_bins(
    chosen: pd.DataFrame,
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    """Say so where the bound without bins is surely above what the bins see."""
    together = all_tasks_scores(scores, dataset)
    bound = chosen[chosen["metric"] == "tece_cross_fitted_low"].groupby("method")["value"].mean()
    if "tece_corrected_high" not in together:
        return
    high = together["tece_corrected_high"].reindex(bound.index)
    if above := [methods[name]["label"] for name in bound.index[bound > high]]:
        yield (
            f"{WARNING} the bins hide error of {', '.join(above)}: the lower limit of the bound "
            f"without bins is above the upper limit of the corrected TECE. Use more bins."
        )
