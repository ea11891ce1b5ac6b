"""A table for machines and for readers: values at full precision, and the same as text.

A cell without a score is shown as missing, never dropped, and named below the table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

# The workflow loads tables while it plans, so pandas waits until one is made.
if TYPE_CHECKING:
    import pandas as pd

MISSING = "—"
INCOMPLETE = "*"
#: How a note on missing cells begins.
PARTIAL = "Partial:"

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
    columns_per_part : int or None
        Value columns that fit side by side on a page.
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
    columns_per_part: int | None = None
    words: tuple[str, ...] = ()

    def contents(self) -> dict[str, str]:
        """Return the table as the text of files, by suffix: ``.csv``, ``.md``, ``.tex``.

        The CSV holds ``cells``, the others ``text``.
        """
        return {
            ".csv": self.cells.to_csv(lineterminator="\n"),
            ".md": self.to_markdown(),
            ".tex": self.to_latex(),
        }

    def to_markdown(self) -> str:
        """Return caption, table and notes as Markdown."""
        words = {*self.words, *self.text.index.names}
        parts = [f"**{self.caption}**", markdown(_flat(self.text), words), *self.notes]
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
        if self.text.index.nlevels > 1:
            blocks = list(dict.fromkeys(self.text.index.get_level_values(0)))
            for start in range(0, len(blocks), 3):
                yield self.text.loc[blocks[start : start + 3]]
            return
        step = self.columns_per_part or self.text.shape[1]
        for start in range(0, self.text.shape[1], step):
            yield self.text.iloc[:, start : start + step]


def missing_notes(missing: pd.DataFrame, methods: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the note that names missing cells, if there are any.

    Parameters
    ----------
    missing : DataFrame
        As returned by `missing_cells`.
    methods : mapping
    """
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
        f"{PARTIAL} {count(len(missing), 'score')} missing. {MISSING} stands for no score, "
        f"{INCOMPLETE} for a mean over fewer seeds than the others. Missing: "
        f"{' | '.join(named)}."
    )


def count(n: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "seed"), count(2, "seed")
    ('1 seed', '2 seeds')
    """
    return f"{n} {noun}" + ("" if n == 1 else "s")


def number(value: float, digits: int, *, starred: bool = False) -> str:
    """Return a number with so many decimals, or the sign for a missing one.

    Examples
    --------
    >>> number(-0.00001, 2), number(-0.126, 2), number(float("nan"), 2)
    ('0.00', '−0.13', '—')
    """
    if not np.isfinite(value):
        return MISSING
    # Adding 0 turns -0.0, what small negative numbers round to, into 0.0.
    text = f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
    return text + (INCOMPLETE if starred else "")


def mean_sd(mean: float, sd: float, digits: int) -> str:
    """Return a mean with its standard deviation, if that is finite.

    Examples
    --------
    >>> mean_sd(0.5, 0.25, 2), mean_sd(0.5, float("nan"), 2)
    ('0.50 ± 0.25', '0.50')
    """
    if not np.isfinite(mean):
        return MISSING
    spread = f" ± {number(sd, digits)}" if np.isfinite(sd) else ""
    return number(mean, digits) + spread


def markdown(table: pd.DataFrame, words: Collection[str]) -> str:
    """Return the columns of a table, without its index, as Markdown.

    Parameters
    ----------
    table : DataFrame
    words : collection of str
        Columns to align left; the others hold numbers.
    """
    escaped = table.map(lambda cell: str(cell).replace("|", r"\|"))
    escaped.columns = [str(name).replace("|", r"\|") for name in table.columns]
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
    n_columns = n_headings + text.shape[1]
    yield rf"\begin{{tabular}}{{{'l' * n_headings}{'r' * text.shape[1]}}}"
    yield r"\toprule"
    headings = [rf"\rotatebox{{75}}{{{_latex(name)}}}" for name in text.columns]
    yield _latex_row([""] * n_headings + headings)
    if n_headings == 1:
        yield r"\midrule"
        for name, row in text.iterrows():
            yield _latex_row([_latex(name), *map(_latex, row)])
    else:
        for block, rows in text.groupby(level=0, sort=False):
            yield r"\midrule"
            spread = list(ROW_LABELS.values())
            n_tasks = int((~rows.index.get_level_values(1).isin(spread)).sum())
            heading = rf"\multirow{{{n_tasks}}}{{*}}{{{_latex(block)}}}"
            for place, ((_, name), row) in enumerate(rows.iterrows()):
                if place == n_tasks:
                    yield rf"\cmidrule(l){{2-{n_columns}}}"
                yield _latex_row([heading if place == 0 else "", _latex(name), *map(_latex, row)])
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
