"""Tables of scores in the paper's layout, summaries, and the comparison with the paper.

Every table has two faces: values at full precision for machines (CSV), and the same cells
as text for readers (Markdown, LaTeX). A cell without a score is shown as missing, never
dropped, and named below the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from epistemic_calibration.metrics import holm_correction
from epistemic_calibration.provenance import atomic_path
from epistemic_calibration.scores import ALL_TASKS
from epistemic_calibration.style import PAPER_METHODS, PAPER_METRICS, metric_label

__all__ = [
    "Table",
    "all_tasks_scores",
    "comparisons_table",
    "dataset_scores",
    "drivers_table",
    "missing_cells",
    "ordered_methods",
    "paper_comparison",
    "paper_comparison_means",
    "paper_table",
    "read_published",
    "summary_table",
    "write_comparison",
    "write_table",
]

MISSING = "—"
_INCOMPLETE = "*"
_PARTIAL = "Partial:"

# Rows of a block that are no tasks; a task's name is safe for a path, so has no brackets.
_MEAN, _SD = "(mean)", "(sd)"
_ROW_LABELS = {_MEAN: "mean", _SD: "± sd"}
_BLOCK_LABELS = {"accuracy": "Acc.", "eece_calibration": "g²", "eece_dispersion": "W"}

# An accuracy goes nowhere without the scores that a constant cannot win, nor an EECE
# without its parts.
_FURTHER_METRICS = (
    "eece_calibration",
    "eece_dispersion",
    "tece_corrected",
    "brier",
    "log_loss",
    "auroc",
)
_FRACTIONS = ("accuracy", "auroc", "brier", "log_loss")

#: What `summary_table` and `drivers_table` show, in this order.
SUMMARY_METRICS = (
    "accuracy",
    "brier",
    "log_loss",
    "auroc",
    "ece",
    "eece",
    "eece_calibration",
    "eece_dispersion",
    "mean_epistemic_uncertainty",
)
DRIVER_METRICS = (
    "eece",
    "eece_calibration",
    "eece_dispersion",
    "mean_epistemic_uncertainty",
    "tece_corrected",
    "eece_noise_floor",
    "mean_miscalibration",
    "epistemic_dependence",
    "tece_cross_fitted",
    "p_epistemic_calibration",
    "p_mean_calibration",
    "p_epistemic_independence",
)

_TEXT_COLUMNS = ("Metric", "Stage", "Task", "Method", "Family", "Cannot be told from")

#: Level of all tests of a table together.
LEVEL = 0.05

#: Published values are printed with two decimals.
ROUNDING = 0.005

#: The published chain that failed: (data set, method, task).
FAILED_CHAIN = ("cifar10", "bayesian_logistic_regression", "truck")


@dataclass(frozen=True)
class Table:
    """A table for machines and for readers.

    Attributes
    ----------
    cells : DataFrame
        Scores at full precision, NaN where missing; rows and columns by their names in
        the configuration and in the scores.
    text : DataFrame
        The same as text, with headings for readers.
    caption : str
    notes : tuple of str
        What a reader has to know, missing cells among it.
    columns_per_part : int or None
        Value columns that fit side by side on a page.
    """

    cells: pd.DataFrame
    text: pd.DataFrame
    caption: str
    notes: tuple[str, ...] = ()
    columns_per_part: int | None = None

    def to_markdown(self) -> str:
        """Return caption, table and notes as Markdown."""
        parts = [f"**{self.caption}**", _markdown(_flat(self.text)), *self.notes]
        return "\n\n".join(parts) + "\n"

    def to_latex(self) -> str:
        r"""Return ``table`` environments that need the packages booktabs, multirow, graphicx.

        Tables with blocks of rows are cut into groups of three blocks, as many as the
        paper sets on a page.
        """
        return "\n".join(self._latex_parts())

    def _latex_parts(self) -> Iterator[str]:
        for number, part in enumerate(self._pages()):
            caption = f"{self.caption} (continued)." if number else f"{self.caption}."
            notes = () if number else self.notes
            lines = [
                r"\begin{table}",
                r"\centering",
                r"\scriptsize",
                r"\setlength{\tabcolsep}{3pt}",
                *_latex_tabular(part),
                rf"\caption{{{_latex(' '.join([caption, *notes]))}}}",
                r"\end{table}",
                "",
            ]
            yield "\n".join(lines)

    def _pages(self) -> Iterator[pd.DataFrame]:
        if isinstance(self.text.index, pd.MultiIndex):
            blocks = list(dict.fromkeys(self.text.index.get_level_values(0)))
            for start in range(0, len(blocks), 3):
                yield self.text.loc[blocks[start : start + 3]]
            return
        step = self.columns_per_part or self.text.shape[1]
        for start in range(0, self.text.shape[1], step):
            yield self.text.iloc[:, start : start + step]


def write_table(table: Table, stem: str | Path, fingerprint: str) -> list[Path]:
    """Write ``STEM.csv``, ``STEM.md`` and ``STEM.tex`` and return their paths.

    The two texts carry the fingerprint in a comment; the CSV is all numbers.
    """
    contents = {
        ".csv": table.cells.to_csv(lineterminator="\n"),
        ".md": f"{table.to_markdown()}\n<!-- fingerprint: {fingerprint} -->\n",
        ".tex": f"% fingerprint: {fingerprint}\n{table.to_latex()}",
    }
    return [_write(Path(f"{stem}{suffix}"), content) for suffix, content in contents.items()]


def ordered_methods(methods: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the names of ``methods``: the paper's in its order, then the others."""
    paper = [name for name in PAPER_METHODS if name in methods]
    return paper + [name for name in methods if name not in PAPER_METHODS]


def dataset_scores(
    scores: pd.DataFrame, dataset: str, methods: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    """Return the finite scores of one data set's tasks, checked to have one value a cell.

    Parameters
    ----------
    scores : DataFrame
        Tidy: dataset, seed, method, task, metric, value, ...
    dataset : str
    methods : mapping
        By name in the configuration: ``{"label": ..., "family": ...}``, family one of
        active, illustrative, control.

    Raises
    ------
    ValueError
        If columns are missing, the data set has no scores, a method is not in
        ``methods``, or a (method, task, seed, metric) has two values.
    """
    needed = ["dataset", "seed", "method", "task", "metric", "value"]
    absent = [column for column in needed if column not in scores.columns]
    if absent:
        raise ValueError(f"scores lacks the columns {absent}; it has {list(scores.columns)}")
    chosen = scores[scores["dataset"] == dataset]
    if chosen.empty:
        known = sorted(scores["dataset"].unique())
        raise ValueError(f"dataset={dataset!r} has no scores; those with scores: {known}")
    unknown = sorted(set(chosen["method"]) - set(methods))
    if unknown:
        raise ValueError(f"scores has methods {unknown} that methods lacks: {list(methods)}")
    key = ["method", "task", "seed", "metric"]
    repeated = chosen[chosen.duplicated(key)]
    if not repeated.empty:
        cell = repeated.iloc[0][key].to_dict()
        raise ValueError(f"scores of dataset={dataset!r} has more than one value of {cell}")
    return chosen[np.isfinite(chosen["value"].astype(float)) & (chosen["task"] != ALL_TASKS)]


def all_tasks_scores(scores: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Return what is estimated of all tasks of a data set together, mean over seeds.

    Returns
    -------
    DataFrame
        Index method, columns metric; empty where ``scores`` has no such rows.
    """
    chosen = scores[(scores["dataset"] == dataset) & (scores["task"] == ALL_TASKS)]
    return chosen.pivot_table(index="method", columns="metric", values="value")


def missing_cells(
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    metrics: Sequence[str] = PAPER_METRICS,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> pd.DataFrame:
    """Return the cells without a finite score: columns method, task, seed, metric.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    metrics : sequence of str
    tasks, seeds : sequence, optional
        What there should be; by default every task and seed that any method has.
    """
    chosen = dataset_scores(scores, dataset, methods)
    expected = pd.MultiIndex.from_product(
        [
            ordered_methods(methods),
            chosen["task"].unique() if tasks is None else tasks,
            sorted(chosen["seed"].unique()) if seeds is None else seeds,
            metrics,
        ],
        names=["method", "task", "seed", "metric"],
    )
    present = pd.MultiIndex.from_frame(chosen[expected.names])
    return expected[~expected.isin(present)].to_frame(index=False)


def paper_table(
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    metrics: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    decimals: int = 2,
) -> Table:
    """Return the table of the paper's appendix: blocks of metrics, tasks down, methods across.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    metrics : sequence of str, optional
        Blocks. By default the paper's three, then the parts of EECE, the corrected
        estimate and the other scores of the prediction, where ``scores`` has them.
    tasks, seeds : sequence, optional
        What there should be; by default every task and seed that any method has.
    decimals : int
        Decimals of the paper's three metrics as text; the other blocks show two more.

    Returns
    -------
    Table
        ``cells`` has rows (metric, task) with the mean over seeds, and at the end of each
        block (mean) and (sd), both over tasks and seeds (sd with ddof = 1); columns are
        methods, the paper's first and in its order.
    """
    chosen = dataset_scores(scores, dataset, methods)
    if metrics is None:
        found = set(chosen["metric"])
        metrics = [*PAPER_METRICS, *(m for m in _FURTHER_METRICS if m in found)]
    tasks = list(chosen["task"].unique() if tasks is None else tasks)
    columns = ordered_methods(methods)
    missing = missing_cells(scores, dataset, methods, metrics=metrics, tasks=tasks, seeds=seeds)
    incomplete = set(missing[["metric", "task", "method"]].itertuples(index=False, name=None))

    blocks, text = {}, {}
    for metric in metrics:
        digits = decimals if metric in PAPER_METRICS else decimals + 2
        block = chosen[(chosen["metric"] == metric) & chosen["task"].isin(tasks)]
        means = block.pivot_table(index="task", columns="method", values="value", aggfunc="mean")
        rows = means.reindex(index=tasks, columns=columns)
        by_method = block.groupby("method")["value"]
        rows.loc[_MEAN] = by_method.mean().reindex(columns)
        rows.loc[_SD] = by_method.std(ddof=1).reindex(columns)
        blocks[metric] = rows
        shown = [
            [
                _number(value, digits, starred=(metric, row, method) in incomplete)
                for method, value in line.items()
            ]
            for row, line in rows.iterrows()
        ]
        text[_BLOCK_LABELS.get(metric, metric_label(metric))] = pd.DataFrame(
            shown,
            index=[_ROW_LABELS.get(row, row) for row in rows.index],
            columns=[methods[method]["label"] for method in columns],
        )
    n_seeds = chosen["seed"].nunique()
    return Table(
        cells=pd.concat(blocks, names=["metric", "task"]),
        text=pd.concat(text, names=["Metric", "Task"]),
        caption=f"One-vs-all classification on {dataset}, mean over {_count(n_seeds, 'seed')}",
        notes=tuple(_missing_notes(missing, methods)),
    )


def summary_table(
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    shown: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
) -> Table:
    """Return one row a method: mean ± sd of every metric, ranked by EECE.

    Parameters
    ----------
    scores, dataset, methods
        As in `dataset_scores`.
    shown : sequence of str, optional
        Metrics of the text, in this order; by default the common ones, and those that no
        table of this module knows.
    tasks, seeds : sequence, optional
        What there should be; by default every task and seed that any method has.

    Returns
    -------
    Table
        Rows by increasing mean EECE, methods without one last. Controls stand where they
        fall and have no rank. ``cells`` has METRIC_mean and METRIC_sd (over tasks and
        seeds, ddof = 1) of every metric. Metrics named ``p_...`` are p values of tests,
        whose mean says nothing: METRIC_rejected and METRIC_tests count the rejections at
        level 0.05 after Holm's correction over the methods and tasks of a seed.
    """
    chosen = dataset_scores(scores, dataset, methods)
    by_method = {"index": "method", "columns": "metric", "values": "value"}
    mean = chosen.pivot_table(**by_method, aggfunc="mean")
    sd = chosen.pivot_table(**by_method, aggfunc="std", dropna=False)
    eece = mean.get("eece", pd.Series(dtype=float)).reindex(ordered_methods(methods))
    order = list(eece.sort_values(kind="stable", na_position="last").index)
    ranked = eece[[name for name in order if methods[name]["family"] != "control"]]
    metrics = _sorted_metrics(chosen["metric"].unique())
    if shown is None:
        others = [m for m in metrics if not m.startswith(("diagnostic_", "tece_", "p_"))]
        shown = [*SUMMARY_METRICS, *(m for m in others if m not in DRIVER_METRICS)]
    shown = [m for m in dict.fromkeys(shown) if m in metrics]
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
    text = pd.DataFrame(
        {
            "Rank": [MISSING if pd.isna(r) else str(r) for r in values["rank_eece"]],
            "Family": values["family"],
        }
    )
    for metric in metrics:
        if metric.startswith("p_"):
            tests = chosen[chosen["metric"] == metric]
            # Seeds repeat the same tests, so each is a family of its own.
            adjusted = tests.groupby("seed")["value"].transform(holm_correction)
            rejected = tests.assign(rejected=adjusted <= LEVEL).groupby("method")
            counts = rejected["rejected"].agg(["sum", "count"]).reindex(order, fill_value=0)
            values[f"{metric}_rejected"] = counts["sum"].astype(int)
            values[f"{metric}_tests"] = counts["count"]
            continue
        values[f"{metric}_mean"] = mean[metric].reindex(order)
        values[f"{metric}_sd"] = sd[metric].reindex(order)
    for metric in together:
        values[f"{metric}_all_tasks"] = together[metric]
    for metric in shown:
        text[_heading(metric)] = _summary_column(values, metric)
    text.index = pd.Index(values["label"], name="Method")

    missing = missing_cells(scores, dataset, methods, metrics=shown, tasks=tasks, seeds=seeds)
    notes = [
        "EECE = Σ w |g² − W|: g² is what the mean of the hypotheses gets wrong, W is the scatter "
        "that the bins average away.",
        "Ranked by EECE; controls are not ranked.",
    ]
    n_tasks, n_seeds = chosen["task"].nunique(), chosen["seed"].nunique()
    return Table(
        cells=values,
        text=text,
        caption=f"Summary of {dataset}: mean ± standard deviation over "
        f"{_count(n_tasks, 'task')} and {_count(n_seeds, 'seed')}",
        notes=(*notes, *_missing_notes(missing, methods)),
        columns_per_part=6,
    )


def drivers_table(
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    tasks: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    n_resamples: int | None = None,
) -> Table:
    """Return what drives EECE: its parts beside the estimate of the error it stands for.

    Parameters, rows and ``cells`` are those of `summary_table`; with ``n_resamples``, the
    label sets that the tests drew, a note says if they are too few to reject anything. In
    the text the corrected TECE has the interval of its mean over tasks, which knows that
    they share their images; with several seeds, the mean of their limits.
    """
    table = summary_table(scores, dataset, methods, shown=DRIVER_METRICS, tasks=tasks, seeds=seeds)
    partial = [note for note in table.notes if note.startswith(_PARTIAL)]
    notes = (
        "EECE = Σ w |g² − W|. g²: what the mean of the hypotheses gets wrong, with the noise of "
        "the labels (the floor) in it. W: scatter of the hypotheses that the bins average away; "
        "it holds no label.",
        "Corrected TECE: without that noise, [confidence interval of the mean over tasks; mean of "
        "the seeds' intervals]; it is mean miscalibration plus epistemic dependence. The "
        "cross-fitted bound needs no bins.",
        "Rejected: tasks in which the test rejects at 0.05, by Holm over those of a seed.",
        *_coarse_p_values(scores, dataset, methods, n_resamples),
        *partial,
    )
    caption = f"What drives EECE on {dataset}"
    return replace(table, caption=caption, notes=notes, columns_per_part=6)


def comparisons_table(
    differences: pd.DataFrame,
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    *,
    level: float = LEVEL,
) -> Table:
    """Return which methods differ in the corrected TECE.

    Parameters
    ----------
    differences : DataFrame
        As of `scores.compare_methods`.
    scores, dataset, methods
        As of `summary_table`.
    level : float, default 0.05
        Of all comparisons together.

    Returns
    -------
    Table
        ``cells``: the pairs. ``text``: the methods from the smallest corrected TECE to the
        largest, each with those that it cannot be told from.
    """
    rows = scores[(scores["dataset"] == dataset) & (scores["metric"] == "tece_corrected")]
    means = rows[rows["task"] != ALL_TASKS].groupby("method")["value"].mean().sort_values()
    alike: dict[str, list[str]] = {name: [] for name in means.index}
    for pair in differences[differences["p_holm"] > level].itertuples():
        alike[pair.method].append(pair.other)
        alike[pair.other].append(pair.method)
    labels = {name: methods[name]["label"] for name in means.index}
    text = pd.DataFrame(
        {
            metric_label("tece_corrected"): [_number(value, 4) for value in means],
            "Cannot be told from": [
                ", ".join(labels[other] for other in means.index if other in alike[name]) or MISSING
                for name in means.index
            ],
        },
        index=pd.Index([labels[name] for name in means.index], name="Method"),
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
    )


def _coarse_p_values(
    scores: pd.DataFrame,
    dataset: str,
    methods: Mapping[str, Mapping[str, str]],
    n_resamples: int | None,
) -> Iterator[str]:
    """Say so where no test by resampling can reject: p is 1/(n_resamples + 1) at least."""
    chosen = dataset_scores(scores, dataset, methods)
    tests = chosen[chosen["metric"] == "p_epistemic_calibration"]
    n_tests = tests.groupby("seed").size().max() if len(tests) else 0
    if n_resamples is not None and n_tests > LEVEL * (n_resamples + 1):
        yield (
            f"Too few resamples: with {n_resamples} of them none of {n_tests} tests can be "
            f"rejected; set scores.n_resamples to {int(2 * n_tests / LEVEL) - 1} or more."
        )


def _summary_column(values: pd.DataFrame, metric: str) -> list[str]:
    if metric.startswith("p_"):
        counts = values[[f"{metric}_rejected", f"{metric}_tests"]]
        return [f"{k}/{n}" if n else MISSING for k, n in counts.itertuples(index=False)]
    digits = 3 if metric in _FRACTIONS else 4
    limits = [f"{metric}_low_all_tasks", f"{metric}_high_all_tasks"]
    if set(limits) <= set(values):
        return [
            f"{_number(mean, digits)} [{_number(low, digits)}, {_number(high, digits)}]"
            if np.isfinite(mean)
            else MISSING
            for mean, low, high in values[[f"{metric}_mean", *limits]].itertuples(index=False)
        ]
    return [
        _mean_sd(mean, sd, digits)
        for mean, sd in values[[f"{metric}_mean", f"{metric}_sd"]].itertuples(index=False)
    ]


def _heading(metric: str) -> str:
    if metric.startswith("p_"):
        return f"Rejected: {metric_label(metric.removeprefix('p_'))}"
    return metric_label(metric)


def read_published(path: str | Path) -> pd.DataFrame:
    """Read the paper's tables: one row a cell, ``value`` NaN where it is unpublished.

    Raises
    ------
    ValueError
        If columns are missing or a cell stands twice.
    """
    published = pd.read_csv(path, dtype=str, keep_default_na=False)
    needed = ["dataset", "task", "method", "metric", "value", "printed_method", "note"]
    absent = [column for column in needed if column not in published.columns]
    if absent:
        raise ValueError(f"{path} lacks the columns {absent}")
    repeated = published[published.duplicated(["dataset", "task", "method", "metric"])]
    if not repeated.empty:
        raise ValueError(f"{path} has two rows of {repeated.iloc[0, :4].to_dict()}")
    published["value"] = pd.to_numeric(published["value"].replace("", np.nan))
    return published


def paper_comparison(scores: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Compare with the paper, cell by cell.

    Parameters
    ----------
    scores : DataFrame
        Tidy scores of any data sets; those that the paper lacks are left out.
    published : DataFrame
        As `read_published` returns.

    Returns
    -------
    DataFrame
        A row for each cell of the paper's tables of the data sets in ``scores``: dataset,
        task, method, metric, published, ours (mean over seeds), ours_sd (over seeds,
        ddof = 1), n_seeds, difference (ours − published), within_rounding (whether the
        published value, which has two decimals, may be ours rounded), status (compared,
        unpublished, not run) and comment (what is odd about the published cell).
    """
    key = ["dataset", "task", "method", "metric"]
    rows = published[published["dataset"].isin(scores["dataset"])].rename(
        columns={"value": "published", "note": "comment"}
    )
    cells = scores[np.isfinite(scores["value"].astype(float))].groupby(key)["value"]
    ours = cells.agg(ours="mean", ours_sd="std", n_seeds="count").reset_index()
    rows = rows.merge(ours, on=key, how="left", validate="one_to_one")
    rows["n_seeds"] = rows["n_seeds"].fillna(0).astype(int)
    rows["difference"] = rows["ours"] - rows["published"]
    rows["within_rounding"] = _within(rows["difference"])
    rows["status"] = np.select(
        [rows["published"].isna(), rows["n_seeds"] == 0], ["unpublished", "not run"], "compared"
    )
    columns = [
        *key,
        "published",
        "ours",
        "ours_sd",
        "n_seeds",
        "difference",
        "within_rounding",
        "status",
        "comment",
    ]
    return rows[columns].reset_index(drop=True)


def paper_comparison_means(comparison: pd.DataFrame) -> pd.DataFrame:
    """Compare with the paper the means over tasks.

    Parameters
    ----------
    comparison : DataFrame
        As `paper_comparison` returns.

    Returns
    -------
    DataFrame
        A row for each (dataset, method, metric): tasks (``all``, or ``all but TASK`` in
        the second row of a method with a published chain that failed), published and
        published_sd, ours and ours_sd (over tasks), difference, n_tasks,
        n_within_rounding, within_rounding and status. Where both exist, both means are
        over the tasks that both have. Rounding moves a mean by no more than a cell.
    """
    rows = [
        {"tasks": "all", **_mean_row(group)}
        for _, group in comparison.groupby(["dataset", "method", "metric"], sort=False)
    ]
    dataset, method, task = FAILED_CHAIN
    failed = comparison[(comparison["dataset"] == dataset) & (comparison["method"] == method)]
    for _, group in failed[failed["task"] != task].groupby("metric", sort=False):
        rows.append({"tasks": f"all but {task}", **_mean_row(group)})
    columns = [
        "dataset",
        "method",
        "metric",
        "tasks",
        "published",
        "published_sd",
        "ours",
        "ours_sd",
        "difference",
        "n_tasks",
        "n_within_rounding",
        "within_rounding",
        "status",
    ]
    return pd.DataFrame(rows, columns=columns)


def _mean_row(group: pd.DataFrame) -> dict[str, object]:
    compared = group["status"] == "compared"
    common = group[compared] if compared.any() else group
    difference = common["difference"].mean()
    return {
        **group.iloc[0][["dataset", "method", "metric"]].to_dict(),
        "published": common["published"].mean(),
        "published_sd": common["published"].std(ddof=1),
        "ours": common["ours"].mean(),
        "ours_sd": common["ours"].std(ddof=1),
        "difference": difference,
        "n_tasks": int(compared.sum()),
        "n_within_rounding": int(common["within_rounding"].fillna(False).sum()),
        "within_rounding": _within(pd.Series([difference])).iloc[0],
        "status": "compared" if compared.any() else group["status"].iloc[0],
    }


def write_comparison(
    comparison: pd.DataFrame,
    stem: str | Path,
    methods: Mapping[str, Mapping[str, str]],
    fingerprint: str,
) -> list[Path]:
    """Write ``STEM.csv`` (cells), ``STEM_means.csv`` and ``STEM.md``; return their paths."""
    means = paper_comparison_means(comparison)
    mark = f"\n<!-- fingerprint: {fingerprint} -->\n"
    return [
        _write(Path(f"{stem}.csv"), comparison.to_csv(index=False, lineterminator="\n")),
        _write(Path(f"{stem}_means.csv"), means.to_csv(index=False, lineterminator="\n")),
        _write(Path(f"{stem}.md"), comparison_markdown(comparison, means, methods) + mark),
    ]


def comparison_markdown(
    comparison: pd.DataFrame, means: pd.DataFrame, methods: Mapping[str, Mapping[str, str]]
) -> str:
    """Return the comparison for readers: means first, then every cell.

    Parameters
    ----------
    comparison, means : DataFrame
        As `paper_comparison` and `paper_comparison_means` return.
    methods : mapping
        Labels, as in `dataset_scores`; a method that it lacks keeps its name.
    """
    parts = [
        "# Comparison with the published tables",
        "A cell reads: ours (published). **Bold**: the published value, which has two decimals, "
        f"is not ours rounded. {MISSING}: not run, or not published.",
    ]
    if comparison.empty:
        parts.append("The paper has none of the data sets that were run.")
    for dataset, cells in comparison.groupby("dataset", sort=False):
        compared = cells[cells["status"] == "compared"]
        agreeing = int(compared["within_rounding"].sum())
        parts += [
            f"## {dataset}",
            f"{agreeing} of {len(compared)} cells agree within rounding; "
            f"{(cells['status'] == 'unpublished').sum()} are unpublished, "
            f"{(cells['status'] == 'not run').sum()} were not run.",
        ]
        if cells["comment"].str.startswith("misprint").any():
            parts.append(
                "The published accuracies of this data set are misprinted: the block repeats "
                "columns and ends early. They stand here beside the methods they belong to; "
                "the column `comment` of the CSV says where each is printed."
            )
        if dataset == FAILED_CHAIN[0]:
            _, method, task = FAILED_CHAIN
            parts.append(
                f"The published row {task} of {_label(method, methods)} is far from its other nine "
                "in all three metrics, as a sampler that failed would make it: the means are "
                "given without it, too."
            )
        parts += ["### Means over tasks", _markdown(_means_text(means, dataset, methods))]
        for metric, block in cells.groupby("metric", sort=False):
            parts += [f"### {metric_label(metric)}", _markdown(_cells_text(block, methods))]
    return "\n\n".join(parts) + "\n"


def _means_text(
    means: pd.DataFrame, dataset: str, methods: Mapping[str, Mapping[str, str]]
) -> pd.DataFrame:
    rows = means[means["dataset"] == dataset]
    order = [(name, tasks) for name in PAPER_METHODS for tasks in rows["tasks"].unique()]
    by_row = dict(list(rows.groupby(["method", "tasks"])))
    lines = []
    for method, tasks in [key for key in order if key in by_row]:
        cells = by_row[method, tasks].set_index("metric")
        line = {"Method": _label(method, methods) + ("" if tasks == "all" else f" ({tasks})")}
        for metric in cells.index:
            line[metric_label(metric)] = _pair(cells.loc[metric], digits=4, published_digits=3)
        lines.append(line)
    return pd.DataFrame(lines).fillna(MISSING)


def _cells_text(block: pd.DataFrame, methods: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    cells = block.assign(text=[_pair(row, digits=3) for _, row in block.iterrows()])
    wide = cells.pivot_table(index="task", columns="method", values="text", aggfunc="first")
    columns = [name for name in PAPER_METHODS if name in wide.columns]
    wide = wide.reindex(index=block["task"].unique(), columns=columns)
    wide.columns = [_label(name, methods) for name in columns]
    return wide.rename_axis(index="Task").reset_index()


def _pair(cell: pd.Series, *, digits: int, published_digits: int = 2) -> str:
    ours = _number(cell["ours"], digits)
    if cell["status"] == "compared" and not cell["within_rounding"]:
        ours = f"**{ours}**"
    return f"{ours} ({_number(cell['published'], published_digits)})"


def _label(method: str, methods: Mapping[str, Mapping[str, str]]) -> str:
    return methods[method]["label"] if method in methods else method


def _within(difference: pd.Series) -> pd.Series:
    # The slack is for values such as 0.125, halfway between two decimals.
    within = (difference.abs() <= ROUNDING + 1e-9).astype("boolean")
    return within.mask(difference.isna())


def _sorted_metrics(found: Sequence[str]) -> list[str]:
    first = ["accuracy", "brier", "log_loss", "auroc", "ece", "eece"]
    first += ["eece_calibration", "eece_dispersion"]
    return [m for m in first if m in found] + [m for m in found if m not in first]


def _missing_notes(
    missing: pd.DataFrame, methods: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    if missing.empty:
        return
    named, n_metrics = [], missing["metric"].nunique()
    for method, cells in missing.groupby("method", sort=False):
        places = []
        for task, absent in cells.groupby("task", sort=False):
            seeds = ", ".join(str(seed) for seed in absent["seed"].unique())
            metrics = absent["metric"].unique()
            which = "" if len(metrics) == n_metrics else f": {', '.join(metrics)}"
            places.append(f"{task} (seed {seeds}{which})")
        named.append(f"{methods[method]['label']}: {'; '.join(places)}")
    yield (
        f"{_PARTIAL} {_count(len(missing), 'score')} missing. {MISSING} stands for no score, "
        f"{_INCOMPLETE} for a mean over fewer seeds than the others. Missing: "
        f"{' | '.join(named)}."
    )


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def _number(value: float, digits: int, *, starred: bool = False) -> str:
    if not np.isfinite(value):
        return MISSING
    # Adding 0 turns -0.0, what small negative numbers round to, into 0.0.
    number = f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
    return number + (_INCOMPLETE if starred else "")


def _mean_sd(mean: float, sd: float, digits: int) -> str:
    if not np.isfinite(mean):
        return MISSING
    spread = f" ± {_number(sd, digits)}" if np.isfinite(sd) else ""
    return _number(mean, digits) + spread


def _flat(text: pd.DataFrame) -> pd.DataFrame:
    """Return the table with its index as columns, the name of a block on its first row."""
    if not isinstance(text.index, pd.MultiIndex):
        return text.reset_index()
    flat = text.reset_index()
    flat["Metric"] = flat["Metric"].mask(flat["Metric"] == flat["Metric"].shift(), "")
    return flat


def _markdown(table: pd.DataFrame) -> str:
    escaped = table.map(lambda cell: str(cell).replace("|", r"\|"))
    escaped.columns = [str(name).replace("|", r"\|") for name in table.columns]
    headings = [name in _TEXT_COLUMNS for name in table.columns]
    return escaped.to_markdown(
        index=False,
        disable_numparse=True,
        colalign=["left" if heading else "right" for heading in headings],
    )


def _latex_tabular(text: pd.DataFrame) -> Iterator[str]:
    blocks = isinstance(text.index, pd.MultiIndex)
    n_headings = 2 if blocks else 1
    n_columns = n_headings + text.shape[1]
    yield rf"\begin{{tabular}}{{{'l' * n_headings}{'r' * text.shape[1]}}}"
    yield r"\toprule"
    headings = [rf"\rotatebox{{75}}{{{_latex(name)}}}" for name in text.columns]
    yield _latex_row([""] * n_headings + headings)
    if not blocks:
        yield r"\midrule"
        for name, row in text.iterrows():
            yield _latex_row([_latex(name), *map(_latex, row)])
    else:
        for block, rows in text.groupby(level=0, sort=False):
            yield r"\midrule"
            spread = list(_ROW_LABELS.values())
            n_tasks = int((~rows.index.get_level_values(1).isin(spread)).sum())
            heading = rf"\multirow{{{n_tasks}}}{{*}}{{{_latex(block)}}}"
            for number, ((_, name), row) in enumerate(rows.iterrows()):
                if number == n_tasks:
                    yield rf"\cmidrule(l){{2-{n_columns}}}"
                yield _latex_row([heading if number == 0 else "", _latex(name), *map(_latex, row)])
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "²": r"$^2$",
    "Σ": r"$\Sigma$",
    "−": r"$-$",
    "—": "---",
    **{character: "\\" + character for character in "&%$#_{}"},
}
_LATEX_SPECIAL = re.compile("|".join(re.escape(character) for character in _LATEX))


def _latex(text: object) -> str:
    return _LATEX_SPECIAL.sub(lambda match: _LATEX[match.group()], str(text))


def _write(path: Path, content: str) -> Path:
    with atomic_path(path) as temporary:
        temporary.write_text(content, encoding="utf-8", newline="\n")
    return path
