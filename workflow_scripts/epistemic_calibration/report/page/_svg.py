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


def inline_svg(figure: Figure, said: str, *, kind: str = "") -> str:
    """Return a figure as an ``svg`` element in the colours of the page, ``var(--blue)``.

    ``said`` is what it shows, for those who cannot see it; ``kind`` the class of the element.
    """
    for patch in (figure.patch, *(ax.patch for ax in figure.axes)):
        patch.set_visible(False)
    file = io.StringIO()
    with mpl.rc_context(rc_params(**{"svg.fonttype": "none"})):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    view = re.search(r'viewBox="[^"]*"', text)[0]
    text = re.sub(r"^.*?<svg[^>]*>|<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<style.*?</style>", "", text, count=1, flags=re.DOTALL)
    # Links lead within the page.
    text = text.replace(' target="_blank"', "")
    for color, name in COLORS.items():
        text = text.replace(color, f"var(--{name})")
    # Black text has no colour of its own; fonts are those of the page.
    start = (
        f'<svg {view} class="{kind}" role="img" aria-label="{escape(said)}" '
        f'style="fill: var(--ink); font-family: system-ui, sans-serif; stroke-linejoin: round" '
        f'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return start + _short(text)


def _tenths(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")


def _short(text: str) -> str:
    """Return the same picture in fewer bytes: a page holds many."""
    used = set(re.findall(r'(?:#|url\(#)([\w-]+)[")]', text))
    text = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", text)
    # Places, not what is written: that stands between tags.
    text = re.sub(r"<[^>]+>", lambda m: re.sub(r"-?\d+\.\d{2,}", _tenths, m[0]), text)
    # A mark has the stroke of what it uses; only its fill is its own.
    text = re.sub(r"<use[^>]*>", lambda m: re.sub(r"stroke[\w-]*: [^;\"]*(; )?", "", m[0]), text)
    text = text.replace(' style=""', "").replace(' class=""', "")
    text = re.sub(r"<g\b[^>]*/>|<defs>\s*</defs>", "", text)
    text = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", text)
    text = re.sub(r"font-family: 'DejaVu Sans'; |; font-family: 'DejaVu Sans'", "", text)
    text = re.sub(r"([MLQCz]) ?([-\d. ]*)\n", r"\1\2", re.sub(r"\n\s+", "\n", text))
    parts, kept = [], []
    for part in re.split(r"(<g\b[^>]*>|</g>)", text):
        if part.startswith("<g"):
            kept.append(part != "<g>")
        if (part == "</g>" and not kept.pop()) or part == "<g>":
            continue
        parts.append(part)
    return re.sub(r"\n+", "\n", "".join(parts))
