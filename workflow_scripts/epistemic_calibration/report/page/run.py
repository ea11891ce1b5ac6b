"""The page of a run: the answer, one method at a time, and what experts ask for."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure

from epistemic_calibration import __version__
from epistemic_calibration.report._answers import (
    answers,
    answers_table,
    headline,
    interval,
    sentences,
    share,
)
from epistemic_calibration.report.figures import _panels
from epistemic_calibration.report.figures import answers as answers_figure
from epistemic_calibration.report.page._svg import inline_svg
from epistemic_calibration.report.page._template import COLORS, TEMPLATES
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.style import rc_params
from epistemic_calibration.report.tables._table import MISSING, Table, _flat, estimate, number

_PERCENT = "\N{NO-BREAK SPACE}%"
#: Width in inches of the answers on a wide and on a narrow screen.
_WIDTHS = {"wide": 7.5, "narrow": 3.6}


@dataclass(frozen=True)
class RunResults:
    """What there is of a run.

    Attributes
    ----------
    datasets : sequence of DatasetResults
    tables : mapping of str to sequence of Table
        By data set: further tables of it.
    texts : mapping of str to str
        By what they are: texts of several data sets, such as the comparison with the paper, and
        the configuration.
    facts : mapping of str to str
        What the page was made with.
    """

    datasets: Sequence[DatasetResults]
    tables: Mapping[str, Sequence[Table]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


def run_page(run: RunResults) -> str:
    """Return the page of a run as HTML.

    Parameters
    ----------
    run : RunResults

    Raises
    ------
    ModuleNotFoundError
        If Jinja is not installed.
    """
    import jinja2

    # That no text becomes markup is for the environment to see to, not for each template.
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    markup = jinja2.utils.markupsafe.Markup
    shown = [_Dataset(d, run.tables.get(d.dataset, ()), markup).shown() for d in run.datasets]
    alone = len(shown) == 1
    return environment.get_template("page.html").render(
        title="Can the uncertainty be trusted?" + (f" {shown[0]['title']}" if alone else ""),
        subtitle=shown[0]["subtitle"] if alone else f"{len(shown)} data sets",
        datasets=shown,
        texts=list(run.texts.items()),
        facts=[("Software", f"epistemic-calibration {__version__}"), *run.facts.items()],
        colors=COLORS,
    )


class _Dataset:
    """What the template shows of a data set."""

    def __init__(self, results: DatasetResults, tables: Sequence[Table], markup: type) -> None:
        self.results, self.tables, self.markup = results, tables, markup
        self.found = answers(results)
        self.id = slug(results.dataset)
        self.ids = {name: f"{self.id}.{slug(name)}" for name in self.found.index}

    def shown(self) -> dict[str, Any]:
        results, found = self.results, self.found
        table = answers_table(found, results)
        more = set(found["family"]) - {"active"} if (found["family"] == "active").any() else set()
        tables = [*self.tables, *_fits(results)]
        return {
            "id": self.id,
            "title": results.title,
            "subtitle": _subtitle(results),
            "headline": headline(found),
            "sentences": list(sentences(found)),
            "warnings": list(results.warnings),
            "answers": list(self._answers(bool(more))),
            "more": bool(more),
            "csv": csv_uri(table),
            "table_shown": table_shown(table),
            "text": table.to_terminal(),
            "latex": table.to_latex(self.id),
            "methods": list(self._methods()),
            "tables": [table_shown(t, folded=True) for t in tables],
        }

    def _answers(self, more: bool) -> Iterator[str]:
        shown = set(self.found["family"])
        links = {name: f"#{self.ids[name]}" for name in self.results.diagnostics}
        views = [("main", ["active"]), ("all", sorted(shown))] if more else [("", sorted(shown))]
        said = f"{headline(self.found)} {' '.join(sentences(self.found))}"
        for view, families in views:
            for kind, width in _WIDTHS.items():
                figure = answers_figure.draw(
                    self.results, width=width, families=families, questions=True, links=links
                )
                yield self.markup(inline_svg(figure, said, kind=f"{view} {kind}"))

    def _methods(self) -> Iterator[dict[str, Any]]:
        curves = _panels.error_curves(self.results)
        bounded = all(curve["error"].isna().all() for curve in curves.values())
        kind = "Bars reach from bound to bound." if bounded else "Dots have intervals."
        for name, row in self.found.iterrows():
            diagnosed = self.results.diagnostics.get(name)
            if not diagnosed:
                continue
            pictures = [
                (_panels.reliability, diagnosed["reliability"], _SAID["reliability"]),
                (_panels.error_against_uncertainty, curves.get(name), _SAID["size"] + kind),
                (_panels.risk_coverage, diagnosed["risk_coverage"], _SAID["ranking"]),
            ]
            yield {
                "id": self.ids[name],
                "label": row["label"],
                "said": _said_of_method(row),
                "pictures": [
                    {"svg": self._panel(draw, data, f"{row['label']}: {said}"), "caption": said}
                    for draw, data, said in pictures
                    if data is not None
                ],
                "wrong": [table_shown(t) for t in _wrong(diagnosed["top_bins"])],
            }

    def _panel(self, draw: Any, data: Any, said: str) -> str:
        # Lines of a grid would be a third of the page.
        with rc_context(rc_params(**{"axes.grid": False})):
            figure = Figure(figsize=(2.7, 2.5))
            draw(figure.subplots(), data)
        return self.markup(inline_svg(figure, said))


_SAID = {
    "reliability": "Frequency of label 1 against the prediction, with intervals: on the dashed "
    "line the probabilities are right. Below, on a scale of roots, how many there are.",
    "size": "Error at one input against √EU, in tenths by EU: above the dashed line EU is too "
    "small. ",
    "ranking": "Errors among the inputs kept: the lower, the better EU tells where the method "
    "errs. Dashed: by the prediction itself. Dotted: all inputs.",
}


def _said_of_method(row: pd.Series) -> str:
    parts = [f"Off by {interval(row, 'points', ' points')}."]
    if row["verdict"]:
        slope = ""
        if not np.isnan(row["slope"]):
            slope = f", slope {interval(row, 'slope')}"
        known = share(row, _PERCENT)
        known = "an unknown share" if known == MISSING else known
        parts.append(
            f"EU reports {known} of the squared error at one input{slope}: {row['verdict']}."
        )
    if not np.isnan(row["share_of_product"]):
        parts.append(
            f"EU = Δ(1 − Δ), which knows nothing, would report "
            f"{interval(row, 'share_of_product', _PERCENT)}."
        )
    if not np.isnan(row["kept"]):
        parts.append(
            f"Errors: {interval(row, 'error', _PERCENT)}; {interval(row, 'kept', _PERCENT)} "
            f"among the 90{_PERCENT} of least EU, {interval(row, 'kept_by_prediction', _PERCENT)} "
            f"among those of least 1 − max p."
        )
    return " ".join(parts)


def _wrong(bins: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    if not bins:
        return
    cells = pd.DataFrame(bins).set_index("task")
    text = {
        "Inputs": [f"{n:,}" for n in cells["n"]],
        "Mean prediction": [number(value, 3) for value in cells["predicted"]],
        "Frequency of label 1": [
            estimate(*row, 3) for row in cells[["frequency", "low", "high"]].to_numpy()
        ],
        "Share of the squared error": [
            MISSING if pd.isna(value) else number(100 * value, 0) + _PERCENT
            for value in cells["share"]
        ],
    }
    index = pd.Index([task or "all" for task in cells.index], name="Task")
    notes = (
        "Intervals allow for the choice among all bins. The noise of the labels is subtracted, so "
        "other bins may have shares below 0.",
    )
    caption = "Where it goes wrong: the bins with the largest shares of its calibration error"
    yield Table(cells, pd.DataFrame(text, index=index), caption, notes)


def _fits(results: DatasetResults) -> Iterator[Table]:
    rows = results.of_tasks
    rows = rows[rows["metric"].str.startswith("diagnostic_")]
    if rows.empty:
        return
    names = rows["metric"].str.removeprefix("diagnostic_").str.replace("_", " ")
    found = rows.assign(number=names).groupby(["method", "number"])["value"]
    cells = found.agg(["min", "median", "max"]).reindex(results.order, level="method")
    text = cells.map("{:.4g}".format).set_axis(["Least", "Median", "Largest"], axis=1)
    text = text.rename(lambda name: results.methods[name]["label"], level="method")
    text.index.names = ["Method", "Number"]
    caption = "What fits say of themselves, over tasks and seeds"
    yield Table(cells, text, caption, ("R-hat should be near 1.",))


def table_shown(table: Table, *, folded: bool = False) -> dict[str, Any]:
    """Return what the template shows of a table, which has its caption above if it is folded."""
    text = _flat(table.text)
    words = {*table.words, *table.text.index.names}
    return {
        "caption": table.caption,
        "columns": list(text.columns),
        "words": [k for k, name in enumerate(text.columns) if name in words],
        "rows": text.to_numpy().tolist(),
        "notes": list(table.notes),
        "csv": csv_uri(table) if folded else "",
        "shows_caption": not folded,
        "file": f"{slug(table.caption)}.csv",
    }


def _subtitle(results: DatasetResults) -> str:
    rows = results.rows
    n = rows.loc[rows["metric"] == "n_samples", "value"].max()
    seeds, n_tasks = sorted(rows["seed"].unique()), len(results.tasks or ())
    estimated = "reducible_error" in set(rows["metric"])
    parts = [] if np.isnan(n) else [f"{n:,.0f} test inputs"]
    if n_tasks > 1:
        parts.append(f"{n_tasks} one-vs-all tasks")
    parts.append("several labels per input" if estimated else "one label per input")
    if len(seeds) > 1 or n_tasks > 1:
        parts.append(f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}")
    return " · ".join([*parts, "EU: epistemic uncertainty"])


def slug(name: str) -> str:
    """Return a name as part of an address.

    Examples
    --------
    >>> slug("My <b>file")
    'My-b-file'
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-") or "x"


def csv_uri(table: Table) -> str:
    """Return the address, inside the page, of a table's values at full precision."""
    content = table.cells.to_csv(lineterminator="\n").encode("utf-8")
    return f"data:text/csv;charset=utf-8;base64,{b64encode(content).decode('ascii')}"
