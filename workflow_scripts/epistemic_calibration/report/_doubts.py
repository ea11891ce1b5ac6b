"""What the scores of a data set cannot tell, and what a reader of its tables must know of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report.results import DatasetResults

if TYPE_CHECKING:
    import pandas as pd

#: With fewer samples in a bin, on average, what is told from bins apart is not shown.
MIN_PER_BIN = 10
#: With fewer samples of the rarer label in a task, a note says so.
MIN_PER_LABEL = 30

# What says nothing where nearly each sample has a bin of its own: W is then 0 whatever the
# hypotheses are, and fine and coarse bins are the same.
_OF_BINS = {"eece_dispersion": "scores.n_bins", "epistemic_dependence": "scores.corrected_n_bins"}


def not_estimable(chosen: pd.DataFrame) -> dict[str, str]:
    """Return the metrics that cannot be estimated of so few samples, each with the reason.

    ``chosen`` is `DatasetResults.of_tasks`. Without the metric ``n_samples`` and the column
    ``n_bins``, nothing is known and nothing returned.
    """
    if "n_bins" not in chosen:
        return {}
    n_samples = chosen.loc[chosen["metric"] == "n_samples", "value"].min()
    found = {}
    for metric, key in _OF_BINS.items():
        n_bins = chosen.loc[chosen["metric"] == metric, "n_bins"].max()
        if n_samples < MIN_PER_BIN * n_bins:
            found[metric] = (
                f"{n_samples:.0f} test images in {n_bins:.0f} bins ({key}) are "
                f"{n_samples / n_bins:.1f} a bin"
            )
    return found


def doubts(results: DatasetResults, task_labels: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield, in one sentence each, what the scores themselves say against their use.

    ``task_labels`` are what readers see of tasks, by name.
    """
    chosen, methods = results.of_tasks, results.methods
    missing = not_estimable(chosen)
    if "eece_dispersion" in missing:
        yield (
            f"Few images for the bins of EECE: {missing['eece_dispersion']}; W is not shown, and "
            f"EECE and g² are near the Brier score"
        )
    if "epistemic_dependence" in missing:
        yield (
            f"Few images for the bins of the corrected TECE: {missing['epistemic_dependence']}; "
            f"epistemic dependence is not shown, and the corrected TECE is rough"
        )
    by_task = chosen.pivot_table(index=["method", "task"], columns="metric", values="value")
    if not {"n_samples", "n_positive"} <= set(by_task):
        return
    n, positive = by_task["n_samples"], by_task["n_positive"]
    rarer = np.minimum(positive, n - positive)
    few = rarer[rarer < MIN_PER_LABEL].groupby("task").min()
    if len(few):
        fewest = few.idxmin()
        name = (task_labels or {}).get(fewest, fewest)
        others = f" and {len(few) - 1} more" if len(few) > 1 else ""
        yield (
            f"Few images of a class: {few.min():.0f} of {n.xs(fewest, level='task').min():.0f} "
            f"test images in task {name}{others}; scores of so few are rough"
        )
    if "brier" in by_task:
        rate = positive / n
        worse = (by_task["brier"] >= rate * (1 - rate)).groupby("method").agg(["sum", "count"])
        for name, (k, n_tasks) in worse.iterrows():
            if k and methods[name]["family"] != "control":
                yield (
                    f"{methods[name]['label']}: no better than the base rate (Brier score of a "
                    f"constant) in {k} of {n_tasks} tasks"
                )
