"""Figures as part of a page: SVG without fonts, in the colours of the page."""

from __future__ import annotations

import io
import re
from html import escape

import matplotlib as mpl
from matplotlib.figure import Figure

from epistemic_calibration.report.figures._axes import BLUE, GREY, INK, ORANGE
from epistemic_calibration.report.style import rc_params

#: Colours of figures, by their name in the style of the page.
COLORS = {
    INK: "ink",
    GREY: "muted",
    BLUE: "blue",
    ORANGE: "orange",
    "#ffffff": "paper",
    rc_params()["grid.color"].lower(): "line",
}


def inline_svg(figure: Figure, said: str, *, kind: str = "", themed: bool = True) -> str:
    """Return a figure as an ``svg`` element.

    Parameters
    ----------
    figure : Figure
    said : str
        What it shows, for those who cannot see it.
    kind : str
        Class of the element.
    themed : bool
        Whether colours follow the page: ``var(--blue, #1f4fa8)``, which other programs draw, too.
    """
    file = io.StringIO()
    with mpl.rc_context(rc_params(**{"svg.fonttype": "none"})):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    used = set(re.findall(r'(?:#|url\(#)([\w-]+)[")]', text))
    text = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", text)
    # Tenths of a point are enough, and a page holds many of them.
    text = re.sub(r"-?\d+\.\d{2,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), text)
    text = re.sub(r"<g>\s*</g>", "", re.sub(r"\s*\n\s*", "\n", text))
    text = text.replace("'DejaVu Sans'", "system-ui, sans-serif")
    if themed:
        # Black text has no colour of its own.
        text = re.sub(r'(<text style=")(?![^"]*fill)', rf"\1fill: {INK}; ", text)
        for color, name in COLORS.items():
            text = text.replace(color, f"var(--{name}, {color})")
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)[0]
    start = f'<svg {size} class="{kind}" role="img" aria-label="{escape(said)}" '
    start += 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    return re.sub(r"^<svg[^>]*>", lambda _: start, text)
