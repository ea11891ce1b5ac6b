"""Which methods of a data set differ in the corrected TECE, every one with every other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report.tables._table import MISSING, Table, number

if TYPE_CHECKING:
    import pandas as pd

# What the methods are compared by, and what orders them.
_COMPARED = "tece_corrected"


def compare_methods(
    y_true: Sequence[np.ndarray],
    predictions_by_method: Mapping[str, Sequence[np.ndarray]],
    bins_by_method: Mapping[str, Sequence[np.ndarray]],
    *,
    confidence_level: float,
    random_state: int,
    groups: np.ndarray | None = None,
) -> pd.DataFrame:
    """Compare methods by the corrected error on the same images.

    Parameters
    ----------
    y_true : sequence over tasks and seeds, of arrays of shape (n_samples,)
        Labels in {0, 1}; sample i is the same image in all of them.
    predictions_by_method, bins_by_method : mapping of str to sequence of arrays
        By method: the mean of the hypotheses, in [0, 1], and the bins of the corrected
        error, in the order of ``y_true``.
    confidence_level : float
        Of the intervals, in (0, 1).
    random_state : int
    groups : ndarray of shape (n_samples,), optional
        Equal for images that are not independent of each other.

    Returns
    -------
    DataFrame
        One row per pair, in the order of ``predictions_by_method``: ``method``, ``other``,
        ``difference`` (of the mean over tasks and seeds, method less other),
        ``standard_error``, ``ci_low``, ``ci_high``, ``p_value``, ``p_holm`` (Holm over all
        pairs).

    Raises
    ------
    ValueError
        If methods, or labels, predictions and bins, do not have the same tasks and samples.

    See Also
    --------
    epistemic_calibration.metrics.compare_mean_corrected_errors : the comparison itself.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=400)
    >>> y_true = [rng.uniform(size=400) < p]
    >>> bins = [(10 * p).astype(int)]
    >>> pairs = compare_methods(
    ...     y_true,
    ...     {"calibrated": [p], "too_low": [p**3]},
    ...     {"calibrated": bins, "too_low": bins},
    ...     confidence_level=0.95,
    ...     random_state=0,
    ... )
    >>> pairs[["method", "other"]].values.tolist()
    [['calibrated', 'too_low']]
    >>> bool(pairs["difference"][0] < 0), bool(pairs["p_holm"][0] < 0.05)
    (True, True)
    """
    import pandas as pd

    from epistemic_calibration.metrics import compare_mean_corrected_errors, holm_correction

    differences = compare_mean_corrected_errors(
        y_true,
        predictions_by_method,
        bins_by_method,
        groups=groups,
        confidence_level=confidence_level,
        random_state=random_state,
    )
    columns = ["method", "other", "difference", "standard_error", "ci_low", "ci_high", "p_value"]
    rows = [
        (*pair, d.estimate, d.standard_error, d.ci_low, d.ci_high, d.p_value)
        for pair, d in differences.items()
    ]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(p_holm=holm_correction(table["p_value"]) if rows else [])


def comparisons_table(
    differences: pd.DataFrame,
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    level: float = 0.05,
) -> Table:
    """Return which methods differ in the corrected TECE.

    Parameters
    ----------
    differences : DataFrame
        As returned by `compare_methods`.
    scores, dataset, methods
        As in `dataset_scores`.
    level : float, default 0.05
        Of all comparisons together.

    Returns
    -------
    Table
        ``cells``: the pairs. ``text``: the methods from the smallest corrected TECE to the
        largest, each with its mean of the metrics of the table ``comparisons`` and with the
        methods that it cannot be told from.

    Examples
    --------
    >>> import pandas as pd
    >>> differences = pd.DataFrame({"method": ["a"], "other": ["b"], "p_holm": [0.4]})
    >>> scores = pd.DataFrame({"method": ["a", "b"], "value": [0.02, 0.01]}).assign(
    ...     dataset="pets", seed=0, scope="task", task="cat", metric="tece_corrected"
    ... )
    >>> methods = {"a": {"label": "A"}, "b": {"label": "B"}}
    >>> comparisons_table(differences, scores, "pets", methods).text.to_dict("index")["B"]
    {'Corrected TECE': '0.0100', 'Cannot be told from': 'A'}
    """
    import pandas as pd

    from epistemic_calibration.scoring import table_metrics

    rows = scores[(scores["dataset"] == dataset) & (scores["scope"] == "task")]
    means = rows.groupby(["metric", "method"])["value"].mean()
    order = list(means[_COMPARED].sort_values().index)
    alike: dict[str, list[str]] = {name: [] for name in order}
    for pair in differences[differences["p_holm"] > level].itertuples():
        alike[pair.method].append(pair.other)
        alike[pair.other].append(pair.method)
    labels = {name: methods[name]["label"] for name in order}
    shown = {
        metric.label: [
            number(means.get((metric.name, name), np.nan), metric.digits) for name in order
        ]
        for metric in table_metrics("comparisons")
    }
    names = [", ".join(labels[other] for other in order if other in alike[name]) for name in order]
    text = pd.DataFrame(
        {**shown, "Cannot be told from": [name or MISSING for name in names]},
        index=pd.Index(labels.values(), name="Method"),
    )
    notes = (
        f"All other pairs differ at {level}, by Holm over {len(differences)} pairs. Compared are "
        f"means over tasks and seeds, on the same images.",
    )
    return Table(
        cells=differences.set_index(["method", "other"]),
        text=text,
        caption=f"Which methods differ in the corrected error on {dataset}",
        notes=notes,
        words=("Cannot be told from",),
    )
