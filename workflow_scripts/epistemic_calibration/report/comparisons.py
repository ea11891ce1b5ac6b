"""Which methods of a data set differ in the corrected TECE, every one with every other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report._trainings import about_trainings
from epistemic_calibration.report.tables._table import MISSING, Table, number

if TYPE_CHECKING:
    import pandas as pd

    from epistemic_calibration.report.results import DatasetResults

# What the methods are compared by, and what orders them.
_COMPARED = "tece_corrected"

#: Of what `compare_methods` returns.
COLUMNS = (
    *("method", "other", "difference", "standard_error", "degrees_of_freedom"),
    *("ci_low", "ci_high", "p_value", "p_holm", "p_holm_fixed"),
    *("n_seeds", "n_seeds_other", "seeds_needed"),
)


def compare_methods(
    y_true: Sequence[np.ndarray],
    predictions_by_method: Mapping[str, np.ndarray],
    bins_by_method: Mapping[str, np.ndarray],
    *,
    confidence_level: float,
    random_state: int,
    groups: np.ndarray | None = None,
) -> pd.DataFrame:
    """Compare methods by the corrected error on the same images.

    Parameters
    ----------
    y_true : sequence over tasks, of arrays of shape (n_samples,)
        Labels in {0, 1}; sample i is the same image in all of them.
    predictions_by_method, bins_by_method : mapping of str to array-like
        By method, of shape (n_seeds, n_tasks, n_samples): the mean of the hypotheses, in [0, 1],
        and the bins of the corrected error. Methods may differ in their numbers of seeds.
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
        ``standard_error``, ``degrees_of_freedom``, ``ci_low``, ``ci_high``, ``p_value``,
        ``p_holm`` (Holm over all pairs), ``p_holm_fixed`` (the same of these trainings alone),
        ``n_seeds``, ``n_seeds_other``, ``seeds_needed`` (of each method, for a difference of
        this size to be found among all pairs in four runs of five). Missing where a number does
        not exist: see `metrics.ErrorDifference`.

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
    >>> bins = [[(10 * p).astype(int)]]
    >>> pairs = compare_methods(
    ...     y_true,
    ...     {"calibrated": [[p]], "too_low": [[p**3]]},
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
    found = ("estimate", "standard_error", "degrees_of_freedom", "ci_low", "ci_high")
    found = (*found, "p_value", "p_value", "p_value_fixed")
    n_seeds = {name: len(of_seeds) for name, of_seeds in predictions_by_method.items()}
    rows = []
    for (method, other), d in differences.items():
        values = [getattr(d, name) for name in found]
        rows.append((method, other, *values, n_seeds[method], n_seeds[other], d.trainings_needed))
    table = pd.DataFrame(rows, columns=COLUMNS)
    if rows:
        adjusted = ["p_holm", "p_holm_fixed"]
        table[adjusted] = table[adjusted].apply(holm_correction)
    return table.astype({"degrees_of_freedom": float, "seeds_needed": "Int64"})


def comparisons_table(results: DatasetResults, *, level: float = 0.05) -> Table:
    """Return which methods differ in the corrected TECE.

    ``results`` has ``differences``; ``level`` is that of all comparisons together.

    Returns
    -------
    Table
        ``cells``: the pairs. ``text``: the methods from the smallest corrected TECE to the
        largest, each with its mean of the metrics of the table ``comparisons`` and with the
        methods that it cannot be told from. A star marks those that differ in these trainings.

    Examples
    --------
    >>> import pandas as pd
    >>> from epistemic_calibration.report.results import DatasetResults
    >>> differences = pd.DataFrame({"method": ["a"], "other": ["b"], "p_holm": [0.4]}).assign(
    ...     p_holm_fixed=0.4, seeds_needed=None
    ... )
    >>> scores = pd.DataFrame({"method": ["a", "b"], "value": [0.02, 0.01]}).assign(
    ...     dataset="pets", seed=0, scope="task", task="cat", metric="tece_corrected"
    ... )
    >>> methods = {"a": {"label": "A"}, "b": {"label": "B"}}
    >>> results = DatasetResults(scores, "pets", methods, differences=differences)
    >>> comparisons_table(results).text.to_dict("index")["B"]
    {'Corrected TECE': '0.0100', 'Cannot be told from': 'A'}
    """
    import pandas as pd

    from epistemic_calibration.scores import table_metrics

    differences = results.differences
    means = results.of_tasks.groupby(["metric", "method"])["value"].mean()
    order = list(means[_COMPARED].sort_values().index)
    alike: dict[str, dict[str, str]] = {name: {} for name in order}
    for pair in differences[differences["p_holm"] > level].itertuples():
        sign = "*" if pair.p_holm_fixed <= level else ""
        needed = "" if pd.isna(pair.seeds_needed) else f" ({int(pair.seeds_needed)})"
        alike[pair.method][pair.other] = alike[pair.other][pair.method] = sign + needed
    labels = dict(zip(order, results.labels(order), strict=True))
    shown = {
        metric.label: [
            number(means.get((metric.name, name), np.nan), metric.digits) for name in order
        ]
        for metric in table_metrics("comparisons")
    }
    names = [
        ", ".join(labels[other] + alike[name][other] for other in order if other in alike[name])
        for name in order
    ]
    text = pd.DataFrame(
        {**shown, "Cannot be told from": [name or MISSING for name in names]},
        index=pd.Index(labels.values(), name="Method"),
    )
    return Table(
        cells=differences.set_index(["method", "other"]),
        text=text,
        caption=f"Which methods differ in the corrected error on {results.title}: means over "
        f"{results.size_text()}",
        notes=(*_notes(differences, level), *about_trainings(results)),
        words=("Cannot be told from",),
    )


def _notes(differences: pd.DataFrame, level: float) -> Iterator[str]:
    yield (
        f"All other pairs differ at {level}, by Holm over {len(differences)} pairs. Compared are "
        f"means over tasks and seeds, on the same images."
    )
    apart, fixed = differences["p_holm"] <= level, differences["p_holm_fixed"] <= level
    if (fixed & ~apart).any():
        yield (
            f"{apart.sum()} of {len(differences)} pairs differ as methods; {(fixed & ~apart).sum()}"
            f" more, marked *, only as trained here."
        )
    if differences["seeds_needed"].notna().any():
        yield (
            "(In brackets): so many seeds of each of the two would show a difference as large as "
            "that found among all pairs, in four runs of five; where there is none, more than 100."
        )
