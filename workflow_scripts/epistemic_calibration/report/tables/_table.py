"""A table for machines and for readers: values at full precision, and the same as text.

A cell without a score is shown as missing, never dropped, and named below the table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report.results import count

# The workflow loads tables while it plans, so pandas waits until one is made.
if TYPE_CHECKING:
    import pandas as pd

MISSING = "—"
INCOMPLETE = "*"
#: How a note on missing cells begins, and any other that says not to trust a number: the page
#: repeats both beside the answers.
PARTIAL, WARNING = "Partial:", "Warning:"
#: How many tasks without scores are named, and not counted.
_NAMED = 3
# Characters of a name in a terminal.
_LONGEST = 25

# Rows of a block that are no tasks; a task's name is safe for a path, so has no brackets.
MEAN, SD = "(mean)", "(sd)"
ROW_LABELS = {MEAN: "mean", SD: "± sd"}


@dataclass(frozen=True)
class Table:
    """A table for machines and for readers.

    Attributes
    ----------
    cells : DataFrame
        Values at full precision, NaN where missing; rows and columns by their names in
        the configuration and in the scores.
    text : DataFrame
        The same as text, with headings for readers. An index of two levels is one of
        blocks of rows: Metric, Task.
    caption : str
    notes : tuple of str
        What a reader has to know, missing cells among it.
    brief : DataFrame or None
        Fewer columns of ``text``, which fit in a terminal.
    words : tuple of str
        Columns of ``text`` that hold words, not numbers; the index always does.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = pd.DataFrame({"eece": [0.00123]}, index=pd.Index(["eknn"], name="method"))
    >>> text = pd.DataFrame({"EECE": ["0.0012"]}, index=pd.Index(["EK-NN"], name="Method"))
    >>> print(Table(cells, text, "EECE of one method").to_markdown())
    **EECE of one method**
    <BLANKLINE>
    | Method   |   EECE |
    |:---------|-------:|
    | EK-NN    | 0.0012 |
    <BLANKLINE>
    """

    cells: pd.DataFrame
    text: pd.DataFrame
    caption: str
    notes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    brief: pd.DataFrame | None = None

    def contents(self, name: str = "") -> dict[str, str]:
        """Return the table as the text of files, by suffix: ``.csv``, ``.md``, ``.tex``.

        The CSV holds ``cells``, the others ``text``; ``.txt`` holds ``brief``, if there is one.
        ``name`` is as of `to_latex`.
        """
        safe = self.cells.map(_no_formula).rename(index=_no_formula, columns=_no_formula)
        contents = {
            ".csv": safe.to_csv(lineterminator="\n"),
            ".md": self.to_markdown(),
            ".tex": self.to_latex(name),
        }
        if self.brief is not None:
            contents[".txt"] = self.to_terminal()
        return contents

    def with_notes(self, *notes: str) -> Table:
        """Return the table with further notes at its end."""
        return replace(self, notes=(*self.notes, *notes))

    def with_task_labels(self, labels: Mapping[str, str]) -> Table:
        """Return the table with the classes that tasks are named after, in its text."""
        names = self.text.index.names
        if "Task" not in names or not labels:
            return self
        return replace(self, text=self.text.rename(index=labels, level=names.index("Task")))

    def to_terminal(self) -> str:
        """Return caption and the table's narrow form as plain text; long names are cut."""
        shown = _flat(self.text if self.brief is None else self.brief).map(_one_line)
        first = shown.columns[0]
        cut = shown[first].str.len() > _LONGEST
        shown.loc[cut, first] = shown.loc[cut, first].str[: _LONGEST - 1] + "…"
        columns = []
        for name in shown:
            cells = [_one_line(name), *shown[name]]
            width = max(map(len, cells))
            cells.insert(1, "-" * width)
            pad = str.ljust if name in self._words() else str.rjust
            columns.append([pad(cell, width) for cell in cells])
        lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
        return "\n".join([self.caption, "", *lines, ""])

    def _words(self) -> set[str]:
        return {*self.words, *self.text.index.names}

    def to_markdown(self) -> str:
        """Return caption, table and notes as Markdown."""
        table = markdown(_flat(self.text), self._words())
        parts = [f"**{self.caption}**", table, *map(_one_line, self.notes)]
        return "\n\n".join(parts) + "\n"

    def to_latex(self, name: str = "") -> str:
        r"""Return ``table`` environments that need the packages booktabs and graphicx.

        They are as wide as the text of a page at most. Tables with blocks of rows are cut into
        groups of three blocks, as many as the paper sets on a page. With a ``name`` the label is
        ``tab:NAME``, and ``tab:NAME-2`` and so on of what continues the table.
        """
        needed = r"% In the preamble: \usepackage{booktabs,graphicx}"
        return "\n".join([needed, *self._latex_parts(name)])

    def _latex_parts(self, name: str) -> Iterator[str]:
        text = self.text
        blocks = list(text.index.unique(level=0)) if text.index.nlevels > 1 else []
        pages = [text.loc[blocks[k : k + 3]] for k in range(0, len(blocks), 3)]
        for number, part in enumerate(pages or [text]):
            caption = f"{self.caption} (continued)." if number else f"{self.caption}."
            notes = () if number else self.notes
            label = f"tab:{name}-{number + 1}" if number else f"tab:{name}"
            lines = [
                r"\begin{table}",
                r"\centering",
                r"\scriptsize",
                r"\setlength{\tabcolsep}{3pt}",
                # No wider than the text, and no wider than it is by itself.
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                *_latex_tabular(part),
                "}",
                rf"\caption{{{_latex(' '.join([caption, *notes]))}}}",
                *([rf"\label{{{label}}}"] if name else []),
                r"\end{table}",
                "",
            ]
            yield "\n".join(lines)


def missing_notes(missing: pd.DataFrame, methods: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the note that names missing cells, as of `DatasetResults.missing`, if there are any."""
    if missing.empty:
        return
    named, n_metrics = [], missing["metric"].nunique()
    for method, cells in missing.groupby("method", sort=False):
        alike: dict[str, list[str]] = {}
        for task, absent in cells.groupby("task", sort=False):
            seeds = ", ".join(str(seed) for seed in absent["seed"].unique())
            metrics = absent["metric"].unique()
            which = "" if len(metrics) == n_metrics else f": {', '.join(metrics)}"
            alike.setdefault(f"seed {seeds}{which}", []).append(str(task))
        places = [
            f"{', '.join(tasks) if len(tasks) <= _NAMED else count(len(tasks), 'task')} ({which})"
            for which, tasks in alike.items()
        ]
        named.append(f"{methods[method]['label']}: {'; '.join(places)}")
    yield (
        f"{PARTIAL} {count(len(missing), 'score')} missing. {MISSING} stands for no score, "
        f"{INCOMPLETE} for a mean over fewer seeds than the others. Missing: "
        f"{' | '.join(named)}."
    )


def number(value: float, digits: int, *, starred: bool = False) -> str:
    """Return a number with so many decimals, or the sign for a missing one.

    Examples
    --------
    >>> number(-0.00001, 2), number(-0.126, 2), number(float("nan"), 2), number(float("inf"), 2)
    ('0.00', '−0.13', '—', '∞')
    """
    if not np.isfinite(value):
        return MISSING if np.isnan(value) else "∞" if value > 0 else "−∞"
    # Adding 0 turns -0.0, what small negative numbers round to, into 0.0.
    text = f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
    return text + (INCOMPLETE if starred else "")


def estimate(value: float, low: float, high: float, digits: int) -> str:
    """Return a number with its interval, if that is known: "0.50 [0.25, 1.00]"."""
    if np.isnan([low, high]).any() or (np.isnan(value) and np.isinf([low, high]).all()):
        return number(value, digits)
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


def intervals(table: pd.DataFrame, names: Sequence[str], digits: int, unit: float = 1) -> list[str]:
    """Return a cell as of `estimate` for each row; ``names`` are value, lower and upper limit."""
    values = unit * table.reindex(columns=names).astype(float)
    return [estimate(*row, digits) for row in values.to_numpy()]


def mean_sd(mean: float, sd: float, digits: int) -> str:
    """Return a mean with its standard deviation, if that is finite: "0.50 ± 0.25"."""
    if not np.isfinite(mean):
        return MISSING
    spread = f" ± {number(sd, digits)}" if np.isfinite(sd) else ""
    return number(mean, digits) + spread


def markdown(table: pd.DataFrame, words: Collection[str]) -> str:
    """Return the columns, without the index, as Markdown; ``words`` are aligned left."""
    escaped = table.map(_markdown)
    escaped.columns = [_markdown(name) for name in table.columns]
    return escaped.to_markdown(
        index=False,
        disable_numparse=True,
        colalign=["left" if name in words else "right" for name in table.columns],
    )


def _flat(text: pd.DataFrame) -> pd.DataFrame:
    """Return the table with its index as columns, the name of a block on its first row."""
    flat = text.reset_index()
    if text.index.nlevels > 1:
        block = text.index.names[0]
        flat[block] = flat[block].mask(flat[block] == flat[block].shift(), "")
    return flat


def _latex_tabular(text: pd.DataFrame) -> Iterator[str]:
    n_headings = text.index.nlevels
    headings = [rf"\rotatebox{{75}}{{{_latex(name)}}}" for name in text.columns]
    yield rf"\begin{{tabular}}{{{'l' * n_headings}{'r' * text.shape[1]}}}"
    yield r"\toprule"
    yield _latex_row([""] * n_headings + headings)
    for place, row in enumerate(_flat(text).itertuples(index=False)):
        # A name in the first of two headings begins a block.
        if place == 0 or (n_headings > 1 and row[0]):
            yield r"\midrule"
        yield _latex_row([_latex(cell) for cell in row])
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _latex_row(cells: Sequence[str]) -> str:
    first, *rest = cells
    # After the end of a row these two would belong to it.
    if first.startswith(("[", "*")):
        first = f"{{{first[0]}}}{first[1:]}"
    return " & ".join([first, *rest]) + r" \\"


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
    "Δ": r"$\Delta$",
    "√": r"$\surd$",
    "∞": r"$\infty$",
    "·": r"$\cdot$",
    "≥": r"$\geq$",
    "…": r"\dots{}",
    "−": r"$-$",
    "—": "---",
    "\N{NO-BREAK SPACE}": "~",
    **{character: "\\" + character for character in "&%$#_{}"},
}
_LATEX_SPECIAL = re.compile("|".join(re.escape(character) for character in _LATEX))


def _latex(text: object) -> str:
    return _LATEX_SPECIAL.sub(lambda match: _LATEX[match.group()], _one_line(text))


# What Markdown takes for HTML, a formula, a link or a picture.
_MARKDOWN_SPECIAL = re.compile(r"[|$]|\](?=[(\[])|<(?=[a-zA-Z/!?])")
#: What a spreadsheet takes for a formula.
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.]+$)")


def _no_formula(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def _markdown(text: object) -> str:
    return _MARKDOWN_SPECIAL.sub(r"\\\g<0>", _one_line(text))


def _one_line(text: object) -> str:
    """Return text without line breaks, which would end a row."""
    return re.sub(r"\s*[\r\n\v\f\x85\u2028\u2029]\s*", " ", str(text))
