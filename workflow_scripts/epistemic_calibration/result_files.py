"""Reading what the jobs before have written; every file was checked before the step began."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration.data.base import task_names
from epistemic_calibration.files import DamagedFileError, read_npz

if TYPE_CHECKING:
    import pandas as pd

#: Columns of tidy scores. The scope is ``task``; ``all_tasks`` for what is estimated of all tasks
#: of a data set together, without a task; or ``bin`` for what is of all tasks in one bin of EU.
SCORE_COLUMNS = (
    "dataset",
    "seed",
    "method",
    "scope",
    "task",
    "bin",
    "metric",
    "value",
    "n_bins",
    "n_hypotheses",
    "binning",
)


def read_labels(path: str | Path) -> dict[str, np.ndarray]:
    """Return the test labels of every one-vs-all task, uint8 (n_test,), by task."""
    labels, _ = read_npz(path, ["y_test", "class_names"])
    return {
        task: (labels["y_test"] == k).astype(np.uint8)
        for k, task in enumerate(task_names([str(name) for name in labels["class_names"]]))
    }


def read_label_counts(path: str | Path | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return ``n_positive``, ``n_labels`` and ``classes`` of the test images, int64, by task."""
    if path is None:
        return {}
    arrays, _ = read_npz(path)
    counts = arrays["label_counts"]
    of_all = {"n_labels": counts.sum(axis=1), "classes": arrays["y_test"]}
    return {
        task: {"n_positive": counts[:, k], **of_all}
        for k, task in enumerate(task_names([str(name) for name in arrays["class_names"]]))
    }


def read_tasks(
    inputs: SimpleNamespace, tasks: Sequence[str]
) -> Iterator[tuple[str, dict[str, np.ndarray], dict[str, float]]]:
    """Yield what a method says of each task: its name, its arrays, its fit's diagnostics.

    Parameters
    ----------
    inputs : namespace
        ``hypotheses``: folder of TASK.npz; ``labels``: path of the data set's labels;
        ``label_counts``, if it is there: a list of the path of its label counts, or an empty one.
        With them the arrays have what `read_label_counts` returns.
    tasks : sequence of str

    Raises
    ------
    DamagedFileError
        If a file is broken, belongs to another task, or has other labels than the data set.
    """
    labels = read_labels(inputs.labels)
    counts = read_label_counts(*getattr(inputs, "label_counts", []))
    for task in tasks:
        path = Path(inputs.hypotheses) / f"{task}.npz"
        arrays, record = read_npz(path)
        if record["task"] != task:
            raise DamagedFileError(f"{path} holds the hypotheses of task {record['task']!r}")
        if not np.array_equal(arrays["y_true"], labels[task]):
            raise DamagedFileError(f"{path} has other labels than {inputs.labels}")
        arrays |= {"y_true": labels[task], **counts.get(task, {})}
        yield task, arrays, record["diagnostics"]


def read_tables(paths: Iterable[str | Path]) -> pd.DataFrame:
    """Read and join tables, in the order of their paths.

    Raises
    ------
    DamagedFileError
        If one cannot be read.
    """
    import pandas as pd

    # Names such as the task "0" are text, also where they read as a missing value ("None").
    names: dict[str, Any] = dict.fromkeys(("dataset", "method", "scope", "task"), str)
    tables = []
    for path in sorted(map(str, paths)):
        try:
            tables.append(pd.read_csv(path, dtype=names, keep_default_na=False, na_values=[""]))
        except PermissionError:
            raise
        except (OSError, ValueError) as error:
            raise DamagedFileError(
                f"{path} cannot be read ({error}). Delete it and run again."
            ) from error
    return pd.concat(tables, ignore_index=True)
