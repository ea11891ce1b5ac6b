"""The page of two runs side by side: what moved."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from epistemic_calibration.data.base import task_names
from epistemic_calibration.report.page import _charts
from epistemic_calibration.report.page._answers import listed
from epistemic_calibration.report.page._html import Cell, Download, HtmlTable, Section, render
from epistemic_calibration.report.page._scores import decimals, labels_of
from epistemic_calibration.report.page._theme import shapes

if TYPE_CHECKING:
    import pandas as pd

_KEY = ["dataset", "method", "metric"]
_LEVEL = 0.95
#: The metric whose difference has an interval over test inputs.
_COMPARED = "tece_corrected"


@dataclass(frozen=True)
class RunFolder:
    """What there is of a run in a folder of results.

    Attributes
    ----------
    folder : Path
    scores : DataFrame
        Tidy.
    methods : dict
        By name: ``{"label": ..., "family": ...}``.
    config : dict
        The resolved configuration, empty if the folder has none.
    manifest : list of dict
    """

    folder: Path
    scores: pd.DataFrame
    methods: dict[str, dict[str, str]]
    config: dict[str, Any]
    manifest: list[dict[str, Any]]


def read_run(folder: str | Path) -> RunFolder:
    """Read the scores of a folder of results.

    Parameters
    ----------
    folder : path
        The folder ``results`` of a run.

    Raises
    ------
    ValueError
        If it has no scores, or a file in it cannot be read; the message names it.
    """
    import pandas as pd
    import yaml

    folder = Path(folder)
    patterns = ("*/seed*/scores/*.csv", "*/seed*/bounds.csv")
    paths = sorted(path for pattern in patterns for path in folder.glob(pattern))
    if not paths:
        raise ValueError(
            f"{folder}: no scores; a folder of results has DATASET/seedSEED/scores/METHOD.csv"
        )
    names = dict.fromkeys(("dataset", "method", "scope", "task", "metric"), str)
    tables = []
    for path in paths:
        try:
            table = pd.read_csv(path, dtype=names, keep_default_na=False, na_values=[""])
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
        lacking = {*names, "seed", "value"} - set(table)
        if lacking:
            raise ValueError(f"{path} is no table of scores: it lacks {', '.join(sorted(lacking))}")
        tables.append(table)
    scores = pd.concat(tables, ignore_index=True)
    path = folder / "config.resolved.yaml"
    config = {}
    if path.is_file():
        try:
            config = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise ValueError(f"{path} cannot be read: {error}") from error
    known = {**config.get("methods", {}), **config.get("controls", {})}
    methods = {
        name: {"label": known.get(name, {}).get("label", name)}
        for name in sorted(set(scores["method"]))
    }
    manifest = folder / "manifest.jsonl"
    lines = manifest.read_text(encoding="utf-8").splitlines() if manifest.is_file() else []
    return RunFolder(folder, scores, methods, config, [json.loads(x) for x in lines if x.strip()])


def moves_of_runs(a: RunFolder, b: RunFolder) -> pd.DataFrame:
    """Return what moved between two folders of results.

    Returns
    -------
    DataFrame
        As of `moves`, and ``interval_over``, ``"inputs"`` or ``"tasks"``. The corrected TECE of a
        method that both runs have predicted for the same test inputs has the interval of
        `compare_mean_corrected_errors`, which covers the sampling of these inputs.

    Raises
    ------
    ValueError
        If a file of predictions cannot be read; the message names it.
    """
    table = moves(a.scores, b.scores).assign(interval_over="tasks")
    compared = table[table["metric"] == _COMPARED]
    for dataset, methods in compared.groupby("dataset")["method"]:
        of_task = _shared_labels(a, b, dataset)
        for row, method in methods.items() if of_task else ():
            if interval := _interval_over_inputs(a, b, dataset, method, of_task):
                table.loc[row, ["low", "high"]] = interval
                table.loc[row, "interval_over"] = "inputs"
    return table


def _shared_labels(a: RunFolder, b: RunFolder, dataset: str) -> dict[str, np.ndarray]:
    """Return the test labels of each task; none where the runs have other test inputs."""
    names = ("y_test", "class_names", "test_rows")
    labels = [_arrays(run.folder / dataset / "labels.npz", *names) for run in (a, b)]
    if not _alike(labels, *names):
        return {}
    tasks = task_names([str(name) for name in labels[0]["class_names"]])
    return {task: labels[0]["y_test"] == k for k, task in enumerate(tasks)}


def _interval_over_inputs(
    a: RunFolder, b: RunFolder, dataset: str, method: str, of_task: Mapping[str, np.ndarray]
) -> tuple[float, float] | None:
    """Return the interval of the difference in the corrected TECE, B less A, if there is one."""
    from epistemic_calibration.metrics import compare_mean_corrected_errors

    seeds = [
        set(scores.loc[(scores["dataset"] == dataset) & (scores["method"] == method), "seed"])
        for scores in (a.scores, b.scores)
    ]
    y_true, predictions, bins = [], {"b": [], "a": []}, {"b": [], "a": []}
    for seed in sorted(set.intersection(*seeds)):
        path = f"{dataset}/seed{seed}/scores/{method}.npz"
        found = [_arrays(run.folder / path, "mean_prediction", "bins") for run in (b, a)]
        if not _alike(found, "tasks"):
            return None
        y_true += [of_task[task] for task in found[0]["tasks"]]
        for run, arrays in zip(predictions, found, strict=True):
            predictions[run] += list(arrays["mean_prediction"])
            bins[run] += list(arrays["bins"])
    difference = compare_mean_corrected_errors(y_true, predictions, bins, confidence_level=_LEVEL)[
        "b", "a"
    ]
    return difference.ci_low, difference.ci_high


def _arrays(path: Path, *names: str) -> dict[str, Any]:
    """Return arrays of a result, and the tasks of their rows; nothing if it is not there."""
    if not path.is_file():
        return {}
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in names}
            record = json.loads(str(file["provenance"]))
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    return {**arrays, "tasks": record.get("tasks", [])}


def _alike(both: Sequence[Mapping[str, Any]], *names: str) -> bool:
    """Return whether both are there and have the same under each name."""
    first, second = both
    return bool(first and second) and all(
        np.array_equal(first[name], second[name]) for name in names
    )


def moves(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Return what moved between two runs, the largest relative move first.

    Parameters
    ----------
    a, b : DataFrame
        Tidy scores.

    Returns
    -------
    DataFrame
        dataset, method, metric; ``a`` and ``b``, means over what both have; ``difference``, b less
        a; ``low``, ``high``: a 95 % interval of it from the differences of tasks and seeds
        (Student's t), NaN where there are fewer than two or all are the same; ``n_pairs``;
        ``relative``: \\|difference\\| over the larger of \\|a\\| and \\|b\\|.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ["dataset", "method", "metric", "scope", "task", "seed", "value"]
    >>> a = pd.DataFrame([("d", "m", "eece", "task", t, 0, 0.5) for t in "xy"], columns=columns)
    >>> moved = moves(a, a.assign(value=[0.7, 0.8]))
    >>> moved[["difference", "n_pairs"]].round(6).values.tolist()
    [[0.25, 2.0]]
    """
    import pandas as pd

    from epistemic_calibration.scoring import METRICS

    shown = [
        metric.name
        for metric in METRICS.values()
        if metric.kind == "score" and not metric.name.endswith(("_low", "_high"))
    ]
    rows = []
    for scope in ("task", "all_tasks"):
        index = [*_KEY, "seed", *(["task"] if scope == "task" else [])]
        chosen = [
            run[(run["scope"] == scope) & run["metric"].isin(shown)].set_index(index)["value"]
            for run in (a, b)
        ]
        pairs = pd.concat(dict(zip("ab", chosen, strict=True)), axis=1, join="inner").dropna()
        pairs = pairs[np.isfinite(pairs).all(axis=1)]
        for key, of_key in pairs.groupby(level=_KEY):
            rows.append((scope, *key, *_move(of_key)))
    columns = ["scope", *_KEY, "a", "b", "difference", "low", "high", "n_pairs"]
    table = pd.DataFrame(rows, columns=columns)
    # What is estimated of all tasks together is the mean of the tasks where there are these.
    table = table.drop_duplicates(_KEY, keep="first")
    largest = table[["a", "b"]].abs().max(axis=1)
    table["relative"] = (table["difference"].abs() / largest.where(largest > 0)).fillna(0.0)
    order = table.sort_values("relative", ascending=False, kind="stable")
    return order.drop(columns="scope").reset_index(drop=True)


def _move(pairs: pd.DataFrame) -> tuple[float, ...]:
    from scipy.stats import ttest_1samp

    differences = (pairs["b"] - pairs["a"]).to_numpy()
    low = high = math.nan
    if len(differences) > 1 and np.ptp(differences) > 0:
        low, high = ttest_1samp(differences, 0).confidence_interval(_LEVEL)
    means = float(pairs["a"].mean()), float(pairs["b"].mean())
    return (*means, float(differences.mean()), float(low), float(high), len(differences))


def two_runs_page(a: RunFolder, b: RunFolder, names: tuple[str, str]) -> str:
    """Return the page of two runs as HTML.

    Parameters
    ----------
    a, b : RunFolder
    names : tuple of str
        What the runs are called.

    Raises
    ------
    ValueError
        If they share no score.
    ModuleNotFoundError
        If a library of the extra ``page`` is missing.
    """
    from epistemic_calibration.scoring import METRICS

    table = moves_of_runs(a, b)
    if table.empty:
        raise ValueError(f"{names[0]} and {names[1]} share no data set, method and task")
    methods = labels_of({**a.methods, **b.methods})
    methods = {name: label for name, label in methods.items() if name in set(table["method"])}
    datasets = list(dict.fromkeys(table["dataset"]))
    metrics = {m.name: m for m in METRICS.values() if m.name in set(table["metric"])}
    moved = int((table["difference"] != 0).sum())
    beyond = table[(table["low"] > 0) | (table["high"] < 0)]
    answer = (
        f"{moved:,} of {len(table):,} numbers differ; {len(beyond):,} of them by more than their "
        f"interval allows for."
    )
    if moved:
        top = table.iloc[0]
        answer += (
            f" The largest move: {metrics[top.metric].label} of {methods[top.method]} on "
            f"{top.dataset}, {_text(top, metrics)}."
        )
    places = {name: str(k) for k, name in enumerate(datasets)}
    chart = _charts.two_runs(
        [
            {
                "data": places[row.dataset],
                "method": methods[row.method],
                "metric": row.metric,
                "a": row.a,
                "b": row.b,
                "text": _text(row, metrics),
            }
            for row in table.itertuples()
        ],
        data={place: name for name, place in places.items()},
        methods=methods,
        shapes=shapes(list(methods)),
        metrics={name: metric.label for name, metric in metrics.items()},
        metric="tece_corrected" if "tece_corrected" in metrics else next(iter(metrics)),
        names=names,
        description="One point per method; on the dashed line nothing has moved.",
    )
    sections = [
        Section(
            "answers",
            "What moved",
            "Intervals are of the mean difference, B less A. That of the corrected TECE covers the "
            "sampling of test inputs, where both runs have predicted the same ones. The others are "
            "of pairs by task and seed (Student's t over these): they tell a shift from the spread "
            "over tasks, and do not cover the sampling of test inputs.",
            answers=[("", [answer])],
            warnings=list(_lacking(a, b, names)),
        ),
        Section("chart", "Picture", charts=[chart]),
        Section("moves", "All numbers", tables=[_moves_table(table, methods, metrics)]),
        _changes(a, b, names),
    ]
    title = f"Two runs: {names[0]} and {names[1]}"
    subtitle = f"A is {names[0]}, B is {names[1]}."
    return render(title, subtitle, sections, list(methods))


def _text(row: Any, metrics: Mapping[str, Any]) -> str:
    digits = metrics[row.metric].digits
    text = f"{decimals(row.a, digits)} → {decimals(row.b, digits)}"
    if math.isfinite(row.low):
        ends = f"{decimals(row.low, digits)}, {decimals(row.high, digits)}"
        text += f" (difference {decimals(row.difference, digits)} [{ends}])"
    return text


def _moves_table(
    table: pd.DataFrame, methods: Mapping[str, str], metrics: Mapping[str, Any]
) -> HtmlTable:
    rows = []
    for row in table.itertuples():
        digits = metrics[row.metric].digits
        limits = "—"
        if math.isfinite(row.low):
            limits = f"{decimals(row.low, digits)} to {decimals(row.high, digits)}"
        rows.append(
            [
                Cell(row.dataset),
                Cell(methods[row.method]),
                Cell(metrics[row.metric].label),
                *(
                    Cell(decimals(value, digits), float(value))
                    for value in (row.a, row.b, row.difference)
                ),
                Cell(limits, "" if limits == "—" else float(row.low)),
                Cell("—" if limits == "—" else row.interval_over),
                Cell(str(row.n_pairs), int(row.n_pairs)),
                Cell(f"{100 * row.relative:.1f}\N{NO-BREAK SPACE}%", float(row.relative)),
            ]
        )
    headings = [
        "Data set",
        "Method",
        "Metric",
        "A",
        "B",
        "B − A",
        "Interval",
        "Over",
        "Pairs",
        "Relative",
    ]
    return HtmlTable(
        headings,
        rows,
        "Every number that both runs have, the largest relative move first",
        notes=["Relative: the difference over the larger of both values."],
        downloads=[Download("moves.csv", table.to_csv(index=False))],
    )


def _lacking(a: RunFolder, b: RunFolder, names: tuple[str, str]) -> Iterator[str]:
    pairs = [set(zip(r.scores["dataset"], r.scores["method"], strict=True)) for r in (a, b)]
    for name, only in zip(names, (pairs[0] - pairs[1], pairs[1] - pairs[0]), strict=True):
        if only:
            yield f"In {name} alone: {listed([f'{m} on {d}' for d, m in sorted(only)])}."


def _changes(a: RunFolder, b: RunFolder, names: tuple[str, str]) -> Section:
    flat = [dict(_flat(run.config)) for run in (a, b)]
    keys = [k for k in {**flat[0], **flat[1]} if flat[0].get(k) != flat[1].get(k)]
    rows = [[Cell(k), *(Cell(of_run.get(k, "—")) for of_run in flat)] for k in keys]
    tables = []
    if rows:
        tables.append(HtmlTable(["Setting", "A", "B"], rows, "Settings that differ"))
    facts = [] if rows else [("Settings", _no_difference(a, b))]
    for letter, run in zip("AB", (a, b), strict=True):
        starts = [line for line in run.manifest if line["event"] == "start"]
        if starts:
            last = starts[-1]
            versions = ", ".join(f"{k} {v}" for k, v in last["versions"].items())
            changed = ", with changes" if last["dirty"] else ""
            code = f"{last['commit'] or 'no repository'}{changed}"
            facts.append((f"{letter}, {last['time']}", f"code {code}; {versions}"))
    return Section("settings", "Settings and code", facts=facts, tables=tables)


def _no_difference(a: RunFolder, b: RunFolder) -> str:
    if not (a.config and b.config):
        return "not known: a folder lacks config.resolved.yaml"
    return "the same in both"


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inside in value.items():
            yield from _flat(inside, f"{prefix}.{name}" if prefix else str(name))
    else:
        yield prefix, json.dumps(value, ensure_ascii=False)
