"""HTML of pages: templates, charts, tables and downloads; what is text stays text."""

from __future__ import annotations

import itertools
import math
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epistemic_calibration import __version__
from epistemic_calibration.report.page._scores import Number
from epistemic_calibration.report.page._template import TEMPLATES
from epistemic_calibration.report.page._theme import COLORS, vega_themes
from epistemic_calibration.report.tables._table import text_of_markdown


@dataclass(frozen=True)
class Chart:
    """A chart: its Vega-Lite specification, and what it shows, for those who cannot see it."""

    spec: Mapping[str, Any]
    title: str
    description: str
    #: Names elements of the chart in the page; with it, the chart has a place to hide methods.
    prefix: str = ""


@dataclass(frozen=True)
class Drawn:
    """A number drawn in its cell, from 0 to 100 across."""

    at: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, what it is sorted by, and its interval if it is drawn."""

    text: str
    order: float | str | None = None
    drawn: Drawn | None = None
    strong: bool = False


@dataclass(frozen=True)
class HtmlTable:
    """A table that can be sorted and searched."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str
    notes: Sequence[str] = ()
    downloads: Sequence[Download] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells under {len(self.columns)} headings")


@dataclass(frozen=True)
class Download:
    """A file inside the page."""

    name: str
    content: str
    media_type: str = "text/csv"

    @property
    def uri(self) -> str:
        encoded = b64encode(self.content.encode("utf-8")).decode("ascii")
        return f"data:{self.media_type};charset=utf-8;base64,{encoded}"


@dataclass(frozen=True)
class Picture:
    """A figure that is an image."""

    uri: str
    alt: str
    caption: str

    @classmethod
    def read(cls, path: str | Path, alt: str, caption: str) -> Picture:
        """Read a PNG."""
        encoded = b64encode(Path(path).read_bytes()).decode("ascii")
        return cls(f"data:image/png;base64,{encoded}", alt, caption)


@dataclass
class Section:
    """A part of a page: a heading and what is below it, in this order."""

    id: str
    title: str
    lead: str = ""
    #: Paragraphs, each group below a name, which may be empty.
    answers: Sequence[tuple[str, Sequence[str]]] = ()
    warnings: Sequence[str] = ()
    controls: Sequence[Control] = ()
    charts: Sequence[Chart] = ()
    tables: Sequence[HtmlTable] = ()
    groups: Sequence[Any] = ()
    pictures: Sequence[Picture] = ()
    facts: Sequence[tuple[str, str]] = ()
    texts: Sequence[tuple[str, str]] = ()
    downloads: Sequence[Download] = ()
    folded: bool = False
    #: Whether charts stand side by side.
    narrow: bool = False


@dataclass(frozen=True)
class Control:
    """A menu that several charts of a section follow."""

    id: str
    label: str
    options: Mapping[str, str] = field(default_factory=dict)


def render(
    title: str, subtitle: str, sections: Sequence[Section], methods: Sequence[str] = ()
) -> str:
    """Return a page as HTML.

    Parameters
    ----------
    title, subtitle : str
    sections : sequence of Section
    methods : sequence of str
        Names of the methods whose colours charts use, in the order of their scales.

    Raises
    ------
    ModuleNotFoundError
        If a library of the extra ``page`` is missing.
    """
    import itables.options
    import jinja2
    import vl_convert
    from itables.javascript import generate_init_offline_itables_html

    # That no text becomes markup is for the environment to see to, not for each template.
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    tables = generate_init_offline_itables_html(itables.options.dt_bundle)
    scripts = re.findall(r"<script>.*?</script>", tables, flags=re.DOTALL)
    return environment.get_template("page.html").render(
        title=title,
        subtitle=subtitle,
        sections=[section for section in sections if not _is_empty(section)],
        colors=COLORS,
        themes=vega_themes(methods),
        version=__version__,
        # Libraries, which are markup by intention.
        vega=jinja2.utils.markupsafe.Markup(
            vl_convert.javascript_bundle().replace("</script", "<\\/script")
        ),
        datatables=jinja2.utils.markupsafe.Markup("\n".join(scripts)),
        datatables_name=re.search(r"window\.(_itables_\w+)", tables)[1],
    )


def _is_empty(section: Section) -> bool:
    parts = ("answers", "charts", "tables", "groups", "pictures", "facts", "texts", "downloads")
    return not any(getattr(section, part) for part in (*parts, "warnings"))


def number_cells(numbers: Sequence[Number | None], *, root: bool = False) -> list[Cell]:
    """Return the cells of a column of numbers, drawn on one scale.

    Parameters
    ----------
    numbers : sequence of Number or None
    root : bool
        Whether the scale is that of the square root, as suits squared errors.
    """
    scale = math.sqrt if root else float
    ends = [
        scale(max(value, 0.0) if root else value)
        for number in numbers
        if number is not None
        for value in (number.shown, number.low, number.high)
        if math.isfinite(value)
    ]
    left, right = (min([0.0, *ends]), max(ends)) if ends else (0.0, 1.0)

    def place(value: float) -> float | None:
        if math.isnan(value):
            return None
        if math.isinf(value):
            return 100.0 if value > 0 else 0.0
        at = scale(max(value, 0.0) if root else value)
        return round(100 * (at - left) / (right - left), 1) if right > left else 0.0

    cells = []
    for number in numbers:
        if number is None or math.isnan(number.shown):
            cells.append(Cell("—", ""))
            continue
        at = None if number.kind == "bounds" else place(number.value)
        drawn = Drawn(at, place(number.low), place(number.high))
        # JSON and attributes have no infinity.
        cells.append(Cell(number.text, min(number.shown, 1e300), drawn))
    return cells


def read_markdown(
    text: str, *, caption: str = "", downloads: Sequence[Download] = ()
) -> Iterator[HtmlTable]:
    """Yield the tables of a Markdown file of the workflow, each with what is said around it.

    Parameters
    ----------
    text : str
    caption : str
        Of a table that has none.
    downloads : sequence of Download
        What the file is made of; they go below its first table.

    Examples
    --------
    >>> text = "**Cats**\\n\\n| Method | ECE |\\n|:--|--:|\\n| a \\\\| b | 0.1 |\\n\\nA note.\\n"
    >>> (table,) = read_markdown(text)
    >>> table.caption, table.columns, [cell.text for cell in table.rows[0]], table.notes
    ('Cats', ['Method', 'ECE'], ['a | b', '0.1'], ['A note.'])
    """
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text) if block.strip()]
    n_tables = sum(block.startswith("|") for block in blocks)
    chapter, heading, notes, number = "", "", [], 0
    for place, block in enumerate(blocks):
        if block.startswith("## "):
            chapter, heading = block.strip("# "), ""
        elif block.startswith("#") or re.fullmatch(r"\*\*[^*\n]+\*\*", block):
            heading = block.strip("#* ")
        elif block.startswith("|"):
            head, _, *body = block.splitlines()
            rows = [_row(line) for line in body]
            for above, row in itertools.pairwise(rows):
                # The name of a block stands on its first row alone, and sorting would part them.
                row[0] = row[0] or above[0]
            number += 1
            below = blocks[place + 1 :] if number == n_tables else []
            yield HtmlTable(
                columns=[column.strip("*") for column in _row(head)],
                rows=[[_cell(cell) for cell in row] for row in rows],
                caption=": ".join(filter(None, [chapter, heading])) or caption,
                notes=[note.replace("**", "") for note in (*notes, *below)],
                downloads=downloads if number == 1 else (),
            )
            notes = []
        else:
            notes.append(block)


def _row(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
    return [text_of_markdown(cell) for cell in cells]


def _cell(text: str) -> Cell:
    strong = text.startswith("**")
    text = text.strip("*") if strong else text
    number = re.match(r"^[−-]?\d+(\.\d+)?(e[−-]?\d+)?", text)
    order = float(number[0].replace("−", "-")) if number else "" if text == "—" else text
    return Cell(text, order, strong=strong)
