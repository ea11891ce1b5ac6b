"""The page of a run: its answers, maps, tables, what carries the error, and what was run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration.report.page import _charts
from epistemic_calibration.report.page._answers import answer_on_mean, answer_on_size
from epistemic_calibration.report.page._html import (
    Cell,
    Control,
    Download,
    HtmlTable,
    Picture,
    Section,
    number_cells,
    read_markdown,
    render,
)
from epistemic_calibration.report.page._scores import (
    ALL_TASKS,
    SHARE,
    TECE,
    Number,
    curves,
    labels_of,
    numbers,
    numbers_of_parts,
    short,
    shown_metrics,
)
from epistemic_calibration.report.page._theme import shapes
from epistemic_calibration.report.page.diagnostics import EU_EDGES
from epistemic_calibration.report.tables._table import PARTIAL, WARNING
from epistemic_calibration.scoring._resamples import LEVEL

if TYPE_CHECKING:
    import pandas as pd

#: Columns of the table of methods, of those that are scored.
_COLUMNS = (TECE, SHARE, "accuracy", "brier", "ece", "eece")
#: Columns whose intervals are drawn on the scale of their square root.
_ROOTS = (TECE, SHARE, "brier", "eece")
#: A bar without end is drawn to this many times the largest number.
_BEYOND = 3.0
#: Runs of the manifest shown.
_N_RUNS = 12


@dataclass(frozen=True)
class DatasetResults:
    """What there is of a data set.

    Attributes
    ----------
    name : str
    scores : DataFrame
        Tidy, with bounds.
    methods : mapping
        By name in the configuration: ``{"label": ..., "family": ...}``.
    tasks : sequence of str
    seeds : sequence of int
    diagnostics : mapping of str to mapping
        By method: what `diagnose` returns, with ``images`` and ``lines`` of its inputs.
    tables : mapping of str to str
        Content of the files of tables, by name.
    pictures : sequence of Picture
    differences : DataFrame, optional
        Pairs of methods: method, other, p_holm.
    confidence_level : float
    """

    name: str
    scores: pd.DataFrame
    methods: Mapping[str, Mapping[str, str]]
    tasks: Sequence[str]
    seeds: Sequence[int]
    diagnostics: Mapping[str, Mapping[str, Any]]
    tables: Mapping[str, str]
    pictures: Sequence[Picture] = ()
    differences: pd.DataFrame | None = None
    confidence_level: float = 0.95


@dataclass(frozen=True)
class RunResults:
    """What there is of a run.

    Attributes
    ----------
    datasets : sequence of DatasetResults
    tables : mapping of str to str
        Tables of several data sets, such as the comparison with the paper.
    pictures : sequence of Picture
        Of the toy experiments.
    config : str
        The resolved configuration.
    manifest : str
        Lines of JSON about runs.
    """

    datasets: Sequence[DatasetResults]
    tables: Mapping[str, str] = field(default_factory=dict)
    pictures: Sequence[Picture] = ()
    config: str = ""
    manifest: str = ""


def run_page(run: RunResults) -> str:
    """Return the page of a run as HTML.

    Parameters
    ----------
    run : RunResults

    Raises
    ------
    ModuleNotFoundError
        If a library of the extra ``page`` is missing.
    """
    return _Page(run).html()


class _Page:
    def __init__(self, run: RunResults) -> None:
        self.run = run
        methods = {n: m for dataset in run.datasets for n, m in dataset.methods.items()}
        self.methods = methods
        self.labels = labels_of(methods)
        self.places = {name: k for k, name in enumerate(self.labels)}
        self.numbers = {
            d.name: numbers(d.scores, d.name, [m for m in self.labels if m in d.methods], d.tasks)
            for d in run.datasets
        }
        self.metrics = {
            metric.name: metric
            for dataset in run.datasets
            for metric in shown_metrics(dataset.scores)
        }
        # In numbers: a name may be anything.
        self.data = {
            f"{k}/{t}": f"{d.name}: {task}"
            for k, d in enumerate(run.datasets)
            for t, task in (("", ALL_TASKS), *enumerate(d.tasks))
        }

    def html(self) -> str:
        names = [d.name for d in self.run.datasets]
        sections = [
            self._answers(),
            self._maps(),
            self._methods(),
            self._parts(),
            self._diagnostics(),
            self._carriers(),
            self._fits(),
            self._tables(),
            self._paper(),
            self._pictures("autoencoder", "Autoencoder", self._autoencoder()),
            self._pictures("toy", "Toy experiments", self.run.pictures),
            self._provenance(),
            self._downloads(),
        ]
        seeds = sorted({seed for d in self.run.datasets for seed in d.seeds})
        n_tasks = sum(len(d.tasks) for d in self.run.datasets)
        subtitle = (
            f"Can the epistemic uncertainty of {len(self.labels)} methods be trusted? "
            f"{n_tasks} one-vs-all tasks, seed{'s' if len(seeds) > 1 else ''} "
            f"{', '.join(map(str, seeds))}."
        )
        title = f"Epistemic calibration: {', '.join(names)}"
        return render(title, subtitle, sections, list(self.labels))

    def _answers(self) -> Section:
        answers, warnings = [], []
        for dataset in self.run.datasets:
            judged = {
                name: label
                for name, label in self.labels.items()
                if name in dataset.methods and dataset.methods[name]["family"] != "control"
            }
            found = self.numbers[dataset.name]
            name = dataset.name if len(self.run.datasets) > 1 else ""
            of_both = answer_on_mean(found, judged, _alike(dataset)), answer_on_size(found, judged)
            answers.append((name, of_both))
            for content in (text for name, text in dataset.tables.items() if name.endswith(".md")):
                for table in read_markdown(content):
                    warnings += [
                        _of_dataset(note, dataset.name)
                        for note in table.notes
                        if note.startswith((PARTIAL, WARNING))
                    ]
        level = self.run.datasets[0].confidence_level if self.run.datasets else 0.95
        lead = (
            f"Intervals: {100 * level:g} %, of the sampling of test inputs. A constant base rate "
            f"has a good mean, too: read the Brier score beside it."
        )
        return Section(
            "answers",
            "Answers",
            lead,
            answers=answers,
            warnings=list(dict.fromkeys(warnings)),
        )

    def _maps(self) -> Section:
        rows = []
        for k, dataset in enumerate(self.run.datasets):
            found = self.numbers[dataset.name]
            tops = _tops(found)
            for t, task in (("", ALL_TASKS), *enumerate(dataset.tasks)):
                for name in (n for n in self.labels if n in dataset.methods):
                    values = {
                        metric: _packed(found[task, name, metric], tops[task, metric])
                        for metric in self.metrics
                        if (task, name, metric) in found
                    }
                    rows.append({"data": f"{k}/{t}", "method": self.places[name], "v": values})
        metrics = {name: metric.label for name, metric in self.metrics.items()}
        shared = {
            "data": self.data,
            "methods": self.labels,
            "shapes": shapes(list(self.labels)),
            "hidden": [n for n, m in self.methods.items() if m["family"] == "control"],
            "metrics": metrics,
        }
        charts = []
        if {TECE, SHARE} <= set(metrics):
            charts.append(
                _charts.method_map(
                    rows,
                    **shared,
                    x=TECE,
                    y=SHARE,
                    logs=(True, True),
                    title="The two questions",
                    description=(
                        "A method to the left has a mean that can be trusted; on the dashed line "
                        "its uncertainty has the right size, below it is too small. Bars are "
                        "intervals, or bounds where there is one label per input; values below "
                        "0.00001 stand at the edge of a logarithmic axis."
                    ),
                    prefix="two-questions",
                )
            )
        if {"ece", "eece"} <= set(metrics):
            charts.append(
                _charts.method_map(
                    rows,
                    **shared,
                    x="eece",
                    y="ece",
                    logs=(True, True),
                    title="The paper's map",
                    description=(
                        "ECE against EECE, means over tasks: both are smallest at the lower left. "
                        "Bars reach one standard deviation over tasks to each side."
                    ),
                    prefix="paper-map",
                )
            )
        return Section(
            "maps",
            "Maps of the methods",
            "Point at a method for its numbers. Data, metrics and scales can be changed below each "
            "map, and methods hidden; controls are, at first.",
            charts=charts,
        )

    def _methods(self) -> Section:
        tables = []
        for dataset in self.run.datasets:
            found = self.numbers[dataset.name]
            names = [name for name in self.labels if name in dataset.methods]
            names.sort(key=lambda name: self._rank(dataset, name))
            columns = [
                metric
                for metric in _COLUMNS
                if any((ALL_TASKS, name, metric) in found for name in names)
            ]
            cells = {
                metric: number_cells(
                    [found.get((ALL_TASKS, name, metric)) for name in names],
                    root=metric in _ROOTS,
                )
                for metric in columns
            }
            tables.append(
                HtmlTable(
                    columns=["Method", "Family", *(self.metrics[m].label for m in columns)],
                    rows=[
                        [
                            Cell(self.labels[name]),
                            Cell(dataset.methods[name]["family"]),
                            *(cells[metric][k] for metric in columns),
                        ]
                        for k, name in enumerate(names)
                    ],
                    caption=f"{dataset.name}: all methods, by the corrected TECE; controls last",
                    notes=[
                        "[Brackets]: intervals of the mean over tasks; ±: standard deviation over "
                        "tasks; “to”: bounds. Squared errors and shares are drawn on the scale of "
                        "their root."
                    ],
                )
            )
        return Section("methods", "Methods", "Headings sort, the field searches.", tables=tables)

    def _rank(self, dataset: DatasetResults, name: str) -> tuple[bool, float]:
        found = self.numbers[dataset.name].get((ALL_TASKS, name, TECE))
        is_control = dataset.methods[name]["family"] == "control"
        return is_control, np.inf if found is None else found.value

    def _parts(self) -> Section:
        rows = []
        for k, dataset in enumerate(self.run.datasets):
            chosen = dataset.scores[
                (dataset.scores["dataset"] == dataset.name) & (dataset.scores["scope"] == "task")
            ]
            names = ["eece_calibration", "eece_noise_floor", "eece_dispersion", "eece"]
            by_task = chosen[chosen["metric"].isin(names)].pivot_table(
                index=["task", "method"], columns="metric", values="value"
            )
            if not set(names) <= set(by_task):
                continue
            parts = {ALL_TASKS: by_task.groupby(level="method").mean()}
            parts |= {
                task: by_task.xs(task, level="task")
                for task in dataset.tasks
                if task in by_task.index.get_level_values("task")
            }
            for t, task in (("", ALL_TASKS), *enumerate(dataset.tasks)):
                if task not in parts:
                    continue
                for name in (n for n in self.labels if n in parts[task].index):
                    values = (float(parts[task].loc[name, metric]) for metric in names)
                    rows += numbers_of_parts(f"{k}/{t}", self.labels[name], *values)
        if not rows:
            return Section("eece", "What makes EECE")
        chart = _charts.eece_parts(
            rows,
            data=self.data,
            methods=self.labels,
            title="Parts of EECE = Σ w |g² − W|",
            description=(
                "Stacked bars: g², the squared miss of the mean in the bins, of which the noise of "
                "the labels alone would make the grey part, and W, the scatter of the hypotheses "
                "that holds no label. The upright mark is EECE."
            ),
        )
        return Section("eece", "What makes EECE", charts=[chart])

    def _diagnostics(self) -> Section:
        shown = [d for d in self.run.datasets if d.diagnostics]
        if not shown:
            return Section("diagnostics", "Diagnostics")
        reliability, histogram, errors = [], [], []
        at_most = True
        for k, dataset in enumerate(self.run.datasets):
            for name, found in dataset.diagnostics.items():
                method = str(self.places[name])
                for t, of_task in enumerate(found["reliability"]):
                    key = {"data": f"{k}/{t - 1 if t else ''}", "method": method}
                    reliability += short_rows(of_task, **key)
                for t, of_task in enumerate(found["histogram"]):
                    key = {"data": f"{k}/{t - 1 if t else ''}", "method": method}
                    histogram += histogram_rows(of_task, **key)
            for row in curves(dataset.scores, dataset.name):
                if row["method"] in self.places:
                    at_most &= row["error"] is None
                    key = {"data": f"{k}/", "method": str(self.places[row["method"]])}
                    errors.append({**row, **key})
        charts = [
            _charts.reliability(
                reliability,
                controls="diagnostics",
                description="Frequency of label 1 in bins of the mean prediction, with intervals; "
                "larger points stand for more predictions. On the dashed line the mean is right.",
            ),
            _charts.error_against_uncertainty(
                errors,
                controls="diagnostics",
                at_most=at_most,
                description="All tasks together. On the dashed line the uncertainty has the right "
                "size, above it is too small. Bars: bounds where there is one label per input, "
                "intervals else.",
            ),
            _charts.uncertainty_histogram(
                histogram,
                controls="diagnostics",
                description="An uncertainty that tells where the method errs is larger where the "
                "class predicted is wrong.",
            ),
        ]
        controls = [
            Control("diagnostics-data", "Data", self.data),
            Control(
                "diagnostics-method",
                "Method",
                {str(k): label for k, label in enumerate(self.labels.values())},
            ),
        ]
        seeds = {min(d.seeds) for d in shown}
        return Section(
            "diagnostics",
            "One method at a time",
            f"Seed {', '.join(map(str, sorted(seeds)))}; both menus are for all three charts.",
            controls=controls,
            charts=charts if errors else [charts[0], charts[2]],
            narrow=True,
        )

    def _carriers(self) -> Section:
        groups = []
        for dataset in self.run.datasets:
            for name in (n for n in self.labels if n in dataset.diagnostics):
                found = dataset.diagnostics[name]
                total = self.numbers[dataset.name].get((ALL_TASKS, name, TECE))
                bins = [bin_shown(b, total and total.value) for b in found["top_bins"]]
                if bins:
                    title = f"{dataset.name}: {self.labels[name]}"
                    groups.append({"title": title, "bins": bins})
        return Section(
            "carriers",
            "What carries the error",
            "The bins that contribute most to the corrected TECE of each method, and in each the "
            "inputs that miss most in its direction. Intervals allow for the choice of bins.",
            groups=groups,
        )

    def _fits(self) -> Section:
        tables = []
        for dataset in self.run.datasets:
            chosen = dataset.scores[dataset.scores["metric"].str.startswith("diagnostic_")]
            if chosen.empty:
                continue
            spread = chosen.groupby(["method", "metric"])["value"].agg(["min", "median", "max"])
            rows = [
                [
                    Cell(self.labels[method]),
                    Cell(metric.removeprefix("diagnostic_").replace("_", " ")),
                    *(Cell(f"{value:.4g}", float(value)) for value in values),
                ]
                for (method, metric), values in zip(spread.index, spread.to_numpy(), strict=True)
                if method in self.labels and np.isfinite(values).all()
            ]
            tables.append(
                HtmlTable(
                    columns=["Method", "What", "Least", "Median", "Largest"],
                    rows=rows,
                    caption=f"{dataset.name}: what fits say of themselves, over tasks and seeds",
                )
            )
        return Section(
            "fits",
            "Fits and cost",
            "R-hat should be near 1. Warnings of fits stand above, among the answers, and below "
            "the tables.",
            tables=[*tables, *self._of_tables("runtimes")],
        )

    def _of_tables(self, *beginnings: str, rest: bool = False) -> list[HtmlTable]:
        found = []
        for dataset in self.run.datasets:
            for name, content in dataset.tables.items():
                if name.endswith(".md") and name.startswith(beginnings) != rest:
                    csv = name.removesuffix(".md") + ".csv"
                    files = [Download(csv.replace("/", "_"), dataset.tables[csv])]
                    found += read_markdown(content, downloads=files)
        return found

    def _tables(self) -> Section:
        return Section(
            "tables",
            "Tables of the run",
            "As in results/tables, with their notes.",
            tables=self._of_tables("runtimes", rest=True),
            folded=True,
        )

    def _paper(self) -> Section:
        tables, texts = [], []
        for name, content in self.run.tables.items():
            if not name.endswith(".md"):
                continue
            csv = name.removesuffix(".md") + ".csv"
            caption = csv.removesuffix(".csv").replace("_", " ").capitalize()
            files = [Download(csv, self.run.tables[csv])]
            found = list(read_markdown(content, caption=caption, downloads=files))
            tables += found
            if not found:
                texts.append((caption, content))
        return Section("paper", "Beside the paper", tables=tables, texts=texts, folded=True)

    def _autoencoder(self) -> list[Picture]:
        return [picture for dataset in self.run.datasets for picture in dataset.pictures]

    def _pictures(self, id: str, title: str, pictures: Sequence[Picture]) -> Section:
        return Section(id, title, pictures=pictures)

    def _provenance(self) -> Section:
        runs = [json.loads(line) for line in self.run.manifest.splitlines() if line.strip()]
        facts = [("Data sets", ", ".join(d.name for d in self.run.datasets))]
        if runs:
            last = [run for run in runs if run["event"] == "start"][-1:] or runs[-1:]
            (last,) = last
            machine = last["machine"]
            changed = {True: ", with changes", False: "", None: ""}[last["dirty"]]
            facts += [
                ("Code", f"{last['commit'] or 'no repository'}{changed}"),
                ("Versions", ", ".join(f"{k} {v}" for k, v in last["versions"].items())),
                ("Machine", f"{machine['platform']}, {machine['cores']} cores"),
                ("Command", f"snakemake {' '.join(last['arguments'])}"),
            ]
        rows = [
            [Cell(run["time"]), Cell(run["event"]), Cell(" ".join(run["arguments"]))]
            for run in runs[-_N_RUNS:]
        ]
        tables = []
        if rows:
            tables.append(
                HtmlTable(
                    ["Time", "Event", "Arguments"],
                    rows,
                    "Runs in this folder, the latest last",
                    notes=["Up to when the page was made: a run's end is not among them."],
                )
            )
        texts = [("Configuration, every default filled in", self.run.config)]
        return Section(
            "run",
            "What was run",
            facts=facts,
            tables=tables,
            texts=texts if self.run.config else (),
        )

    def _downloads(self) -> Section:
        files = [
            Download(name.replace("/", "_"), content)
            for tables in (*(d.tables for d in self.run.datasets), self.run.tables)
            for name, content in tables.items()
            if name.endswith(".csv")
        ]
        return Section(
            "downloads",
            "Downloads",
            "Tables at full precision, inside this page.",
            downloads=files,
        )


def short_rows(columns: Mapping[str, Sequence[float]], **key: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table that is given by columns, in few digits."""
    for row in zip(*columns.values(), strict=True):
        yield {**key, **{name: short(value) for name, value in zip(columns, row, strict=True)}}


def histogram_rows(counts: Mapping[str, Sequence[int]], **key: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a histogram's chart, without empty bins."""
    edges = [short(edge) for edge in EU_EDGES]
    # A logarithmic axis has no 0.
    edges[0] = short(EU_EDGES[1] ** 2 / EU_EDGES[2])
    for outcome, of_outcome in counts.items():
        total = sum(of_outcome)
        for low, high, n in zip(edges[:-1], edges[1:], of_outcome, strict=True):
            if n:
                share = short(n / total)
                yield {
                    **key,
                    "low": low,
                    "high": high,
                    "outcome": outcome,
                    "n": n,
                    "share": share,
                }


def bin_shown(found: Mapping[str, Any], total: float | None) -> dict[str, Any]:
    """Return a bin that carries error, in words."""
    mean, low, high = found["predicted"]
    share = f" of {total:.2g}" if total is not None and total > 0 else ""
    task = f"Task {found['task']}: " if found["task"] else ""
    return {
        "title": f"{task}{found['n']} inputs predicted {mean:.3f} on average",
        "text": (
            f"Label 1 has a frequency of {found['frequency']:.3f} "
            f"({found['low']:.3f} to {found['high']:.3f}) where predictions are {low:.3f} to "
            f"{high:.3f}: this bin adds {found['contribution']:.2g}{share} to the corrected TECE."
        ),
        "inputs": [_input_shown(shown) for shown in found["inputs"]],
    }


def _of_dataset(note: str, dataset: str) -> str:
    """Return a note that warns, with the name of its data set once."""
    said = note.removeprefix(WARNING).strip()
    return said if said.startswith(f"{dataset}: ") else f"{dataset}: {said}"


def _input_shown(shown: Mapping[str, Any]) -> dict[str, Any]:
    what = f"class {shown['class']}" if "class" in shown else f"label {shown['label']}"
    said = f"says {shown['predicted']:.3f} ± {shown['uncertainty'] / 100:.3f}"
    lines = [what, said, f"row {shown['row']}"]
    if shown.get("values"):
        lines.append(shown["values"])
    alt = f"test input {shown['row']}, {what}; the method {said}"
    return {"image": shown.get("image"), "alt": alt, "lines": lines}


def _alike(dataset: DatasetResults) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    if dataset.differences is not None:
        for pair in dataset.differences.itertuples():
            if pair.p_holm > LEVEL:
                found.setdefault(pair.method, []).append(pair.other)
                found.setdefault(pair.other, []).append(pair.method)
    return found


def _tops(found: Mapping[tuple[str, str, str], Number]) -> dict[tuple[str, str], float]:
    """Return where a bar without end is drawn to, by task and metric."""
    tops: dict[tuple[str, str], float] = {}
    for (task, _, metric), number in found.items():
        ends = [x for x in (number.value, number.low, number.high) if np.isfinite(x)]
        tops[task, metric] = max([tops.get((task, metric), 0.0), *(_BEYOND * x for x in ends)])
    return tops


def _packed(number: Number, top: float) -> list[Any]:
    """Return what a chart needs of a number, in few digits."""
    high = top if number.high == np.inf else number.high
    ends = (number.shown, number.low, high)
    return [*(short(end) for end in ends), number.text]
