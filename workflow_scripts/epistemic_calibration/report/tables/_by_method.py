"""Tables with one row per method: means and standard deviations of metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report._doubts import not_estimable
from epistemic_calibration.report.tables._table import (
    MISSING,
    WARNING,
    Table,
    intervals,
    mean_sd,
    missing_notes,
)
from epistemic_calibration.scores._resamples import LEVEL, resamples_needed

if TYPE_CHECKING:
    import pandas as pd

    from epistemic_calibration.report.results import DatasetResults
    from epistemic_calibration.scores import Metric


def ranked_table(
    results: DatasetResults, *, table: str, caption: str, notes: Sequence[str]
) -> Table:
    """Return one row per method with the metrics of a table of ``scores.TABLE_METRICS``.

    Rows are by increasing mean EECE, methods without one last; controls stand where they fall and
    have no rank. ``cells`` is as returned by `method_cells`.
    """
    import pandas as pd

    from epistemic_calibration.scores import table_metrics

    chosen, methods = results.of_tasks, results.methods
    means = chosen[chosen["metric"] == "eece"].groupby("method")["value"].mean()
    eece = means.reindex(results.order)
    order = list(eece.sort_values(kind="stable", na_position="last").index)
    ranked = eece[[name for name in order if methods[name]["family"] != "control"]]
    shown = [metric for metric in table_metrics(table) if metric.name in results.found]
    values = method_cells(results, order, shown)
    ranks = ranked.rank(method="min").reindex(order).astype("Int64").array
    values.insert(2, "rank_eece", ranks)
    text = pd.DataFrame(
        {
            "Rank": [MISSING if pd.isna(r) else str(r) for r in ranks],
            "Family": values["family"],
        }
    )
    for metric in shown:
        heading = f"Rejected: {metric.label}" if metric.is_p_value else metric.label
        text[heading] = _column(values, metric)
    text.index = pd.Index(values["label"], name="Method")
    missing = results.missing([m.name for m in shown])
    return Table(
        cells=values,
        text=text,
        caption=caption,
        notes=(*notes, *missing_notes(missing, methods)),
        words=("Family",),
    )


def method_cells(
    results: DatasetResults, order: Sequence[str], metrics: Sequence[Metric]
) -> pd.DataFrame:
    """Return one row per method: what it is, how much it is scored on, and some metrics.

    METRIC_mean and METRIC_sd (over tasks and seeds, ddof = 1); METRIC_all_tasks of what is
    estimated of all tasks together, also of the limits of its interval, as in
    `all_tasks_scores`; NaN where so few samples tell nothing. The mean of p-values says
    nothing: METRIC_rejected and METRIC_tests count the rejections as `rejections` does.
    """
    import pandas as pd

    chosen, methods = results.of_tasks, results.methods
    by_method = chosen.groupby("method")
    values = pd.DataFrame(
        {
            "label": [methods[name]["label"] for name in order],
            "family": [methods[name]["family"] for name in order],
            "n_tasks": by_method["task"].nunique().reindex(order, fill_value=0),
            "n_seeds": by_method["seed"].nunique().reindex(order, fill_value=0),
        },
        index=pd.Index(order, name="method"),
    )
    together = results.together.reindex(order)
    hidden = not_estimable(chosen)
    by_cell = chosen.groupby(["metric", "method"])["value"]
    mean, sd = by_cell.mean(), by_cell.std(ddof=1)
    for metric in metrics:
        name = metric.name
        if metric.is_p_value:
            counts = rejections(results, name).reindex(order, fill_value=0)
            values[f"{name}_rejected"] = counts["sum"]
            values[f"{name}_tests"] = counts["count"]
            continue
        known = name in mean.index and name not in hidden
        values[f"{name}_mean"] = mean[name].reindex(order) if known else np.nan
        values[f"{name}_sd"] = sd[name].reindex(order) if known else np.nan
        for suffix in ("", "_low", "_high"):
            if f"{name}{suffix}" in together:
                values[f"{name}{suffix}_all_tasks"] = together[f"{name}{suffix}"]
    return values


def rejections(results: DatasetResults, name: str) -> pd.DataFrame:
    """Return in how many tasks a test rejects for each method, and how many there are.

    At `LEVEL`, by Holm over the methods and tasks of a seed. Columns sum, missing where the test
    draws too few resamples to reject anything, and count.
    """
    import pandas as pd

    from epistemic_calibration.metrics import holm_correction

    tests = results.of_tasks[results.of_tasks["metric"] == name]
    # Seeds repeat the same tests, so each is a family of its own.
    adjusted = tests.groupby("seed")["value"].transform(holm_correction)
    rejected = tests.assign(rejected=adjusted <= LEVEL).groupby("method")
    counts = rejected["rejected"].agg(["sum", "count"]).astype("Int64")
    if _too_few_for(tests, name, results.n_resamples):
        counts["sum"] = pd.NA
    return counts


def coarse_p_values(results: DatasetResults, *names: str) -> Iterator[str]:
    """Say so where the tests of a name, or any, draw too few resamples to reject anything."""
    chosen, n_resamples = results.of_tasks, results.n_resamples
    for name in names or chosen["metric"].unique():
        if n_tests := _too_few_for(chosen[chosen["metric"] == name], name, n_resamples):
            yield (
                f"{WARNING} {MISSING} under Rejected: with {n_resamples} resamples none of "
                f"{n_tests} tests can be rejected; set scores.n_resamples to "
                f"{resamples_needed(n_tests)} or more."
            )
            return


def _too_few_for(tests: pd.DataFrame, name: str, n_resamples: int | None) -> int:
    """Return the number of tests of a seed if none of them can be rejected, else 0."""
    from epistemic_calibration.scores import METRICS

    if n_resamples is None or tests.empty or not (name in METRICS and METRICS[name].is_p_value):
        return 0
    if tests["value"].min() < (1 - 1e-9) / (n_resamples + 1):
        # The test has a distribution in closed form for samples as large as these.
        return 0
    n_tests = int(tests.groupby("seed").size().max())
    return 0 if n_resamples >= resamples_needed(n_tests) else n_tests


def rejection_cells(rejected: pd.Series, n_tests: pd.Series) -> list[str]:
    """Return the text of what `rejections` counts."""
    import pandas as pd

    return [
        f"{k}/{n}" if n and not pd.isna(k) else MISSING
        for k, n in zip(rejected, n_tests, strict=True)
    ]


def _column(values: pd.DataFrame, metric: Metric) -> list[str]:
    name, digits = metric.name, metric.digits
    if metric.is_p_value:
        return rejection_cells(values[f"{name}_rejected"], values[f"{name}_tests"])
    interval = [f"{name}{end}_all_tasks" for end in ("", "_low", "_high")]
    if set(interval) <= set(values):
        return intervals(values, interval, digits)
    return [
        mean_sd(mean, sd, digits)
        for mean, sd in values[[f"{name}_mean", f"{name}_sd"]].itertuples(index=False)
    ]
