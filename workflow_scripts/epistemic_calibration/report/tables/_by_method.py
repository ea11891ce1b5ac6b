"""Tables with one row per method: mean ± standard deviation of metrics, ranked by EECE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report.tables._selection import (
    all_tasks_scores,
    dataset_scores,
    missing_cells,
    ordered_methods,
)
from epistemic_calibration.report.tables._table import (
    MISSING,
    Table,
    mean_sd,
    missing_notes,
    number,
)
from epistemic_calibration.scoring._resamples import LEVEL, can_reject, resamples_needed

if TYPE_CHECKING:
    import pandas as pd

    from epistemic_calibration.scoring import Metric


def table_by_method(
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    table: str,
    caption: str,
    notes: Sequence[str],
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    n_resamples: int | None = None,
) -> Table:
    """Return one row per method, with the metrics of a table as text and all as cells.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    table : str
        Name of the table in ``Metric.tables``.
    caption : str
    notes : sequence of str
        What stands below the table, before the missing cells.
    tasks, seeds : sequence, optional
        What there should be; by default every task and seed that any method has.
    n_resamples : int, optional
        Label sets that each test drew.

    Returns
    -------
    Table
        Rows by increasing mean EECE, methods without one last. Controls stand where they
        fall and have no rank. ``cells`` has METRIC_mean and METRIC_sd (over tasks and
        seeds, ddof = 1) of every metric, and METRIC_all_tasks of what is estimated of all
        tasks together. The mean of p-values says nothing: METRIC_rejected and METRIC_tests
        count the rejections at level 0.05 after Holm's correction over the methods and
        tasks of a seed; METRIC_rejected is missing where the resamples are too few to reject
        anything.
    """
    import pandas as pd

    from epistemic_calibration.scoring import METRICS, table_metrics

    chosen = dataset_scores(scores, dataset, methods)
    by_method = {"index": "method", "columns": "metric", "values": "value"}
    mean = chosen.pivot_table(**by_method, aggfunc="mean")
    sd = chosen.pivot_table(**by_method, aggfunc="std", dropna=False)
    eece = mean.get("eece", pd.Series(dtype=float)).reindex(ordered_methods(methods))
    order = list(eece.sort_values(kind="stable", na_position="last").index)
    ranked = eece[[name for name in order if methods[name]["family"] != "control"]]
    found = list(chosen["metric"].unique())
    first = [metric.name for metric in table_metrics("summary") if metric.name in found]
    together = all_tasks_scores(scores, dataset).reindex(order)

    values = pd.DataFrame(
        {
            "label": [methods[name]["label"] for name in order],
            "family": [methods[name]["family"] for name in order],
            "rank_eece": ranked.rank(method="min").reindex(order).astype("Int64").array,
            "n_tasks": chosen.groupby("method")["task"].nunique().reindex(order, fill_value=0),
            "n_seeds": chosen.groupby("method")["seed"].nunique().reindex(order, fill_value=0),
        },
        index=pd.Index(order, name="method"),
    )
    for name in dict.fromkeys([*first, *found]):
        if name in METRICS and METRICS[name].kind == "p_value":
            counts = rejections(chosen, name, n_resamples).reindex(order, fill_value=0)
            values[f"{name}_rejected"] = counts["sum"]
            values[f"{name}_tests"] = counts["count"]
        else:
            values[f"{name}_mean"] = mean[name].reindex(order)
            values[f"{name}_sd"] = sd[name].reindex(order)
    for name in together:
        values[f"{name}_all_tasks"] = together[name]

    shown = [metric for metric in table_metrics(table) if metric.name in found]
    text = pd.DataFrame(
        {
            "Rank": [MISSING if pd.isna(r) else str(r) for r in values["rank_eece"]],
            "Family": values["family"],
        }
    )
    for metric in shown:
        heading = f"Rejected: {metric.label}" if metric.kind == "p_value" else metric.label
        text[heading] = _column(values, metric)
    text.index = pd.Index(values["label"], name="Method")
    missing = missing_cells(
        scores, dataset, methods, metrics=[m.name for m in shown], tasks=tasks, seeds=seeds
    )
    return Table(
        cells=values,
        text=text,
        caption=caption,
        notes=(*notes, *missing_notes(missing, methods)),
        columns_per_part=6,
        words=("Family",),
    )


def rejections(chosen: pd.DataFrame, name: str, n_resamples: int | None = None) -> pd.DataFrame:
    """Return in how many tasks a test rejects for each method, and how many there are.

    At `LEVEL`, by Holm over the methods and tasks of a seed. Columns sum, which is missing where
    the test draws too few resamples to reject anything, and count.
    """
    import pandas as pd

    from epistemic_calibration.metrics import holm_correction

    tests = chosen[chosen["metric"] == name]
    # Seeds repeat the same tests, so each is a family of its own.
    adjusted = tests.groupby("seed")["value"].transform(holm_correction)
    rejected = tests.assign(rejected=adjusted <= LEVEL).groupby("method")
    counts = rejected["rejected"].agg(["sum", "count"]).astype("Int64")
    if _too_few_for(tests, name, n_resamples):
        counts["sum"] = pd.NA
    return counts


def coarse_p_values(chosen: pd.DataFrame, n_resamples: int | None) -> Iterator[str]:
    """Say so where the tests of a name draw too few resamples to reject anything."""
    for name in chosen["metric"].unique():
        if n_tests := _too_few_for(chosen[chosen["metric"] == name], name, n_resamples):
            yield (
                f"{MISSING} under Rejected: with {n_resamples} resamples none of {n_tests} tests "
                f"can be rejected; set scores.n_resamples to {resamples_needed(n_tests)} or more."
            )
            return


def _too_few_for(tests: pd.DataFrame, name: str, n_resamples: int | None) -> int:
    """Return the number of tests of a seed if none of them can be rejected, else 0."""
    from epistemic_calibration.scoring import METRICS

    if n_resamples is None or name not in METRICS or not METRICS[name].resampled or tests.empty:
        return 0
    if tests["value"].min() < (1 - 1e-9) / (n_resamples + 1):
        # The test has a distribution in closed form for samples as large as these.
        return 0
    n_tests = int(tests.groupby("seed").size().max())
    return 0 if can_reject(n_tests, n_resamples) else n_tests


def rejection_cells(rejected: pd.Series, n_tests: pd.Series) -> list[str]:
    """Return the text of what `rejections` counts."""
    import pandas as pd

    return [
        f"{k}/{n}" if n and not pd.isna(k) else MISSING
        for k, n in zip(rejected, n_tests, strict=True)
    ]


def _column(values: pd.DataFrame, metric: Metric) -> list[str]:
    name, digits = metric.name, metric.digits
    if metric.kind == "p_value":
        return rejection_cells(values[f"{name}_rejected"], values[f"{name}_tests"])
    limits = [f"{name}_low_all_tasks", f"{name}_high_all_tasks"]
    if set(limits) <= set(values):
        return [
            f"{number(mean, digits)} [{number(low, digits)}, {number(high, digits)}]"
            if np.isfinite(mean)
            else MISSING
            for mean, low, high in values[[f"{name}_mean", *limits]].itertuples(index=False)
        ]
    return [
        mean_sd(mean, sd, digits)
        for mean, sd in values[[f"{name}_mean", f"{name}_sd"]].itertuples(index=False)
    ]
