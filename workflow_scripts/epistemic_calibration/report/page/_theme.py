"""Colours of pages, light and dark: text and charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epistemic_calibration.report.style import method_styles

#: Colours of the page by theme, as CSS variables.
COLORS = {
    "light": {
        "ink": "#1c1f24",
        "muted": "#565d68",
        "line": "#c9ced6",
        "paper": "#ffffff",
        "panel": "#f4f6f9",
        "link": "#1f4fa8",
        "mark": "#1f4fa8",
        "warning": "#8a3b00",
    },
    "dark": {
        "ink": "#e8eaee",
        "muted": "#a9b1bd",
        "line": "#414852",
        "paper": "#14171c",
        "panel": "#1e232a",
        "link": "#8fb8ff",
        "mark": "#8fb8ff",
        "warning": "#ffb077",
    },
}
#: Parts of EECE, and right and wrong predictions; to be told apart on both backgrounds.
PARTS = {"error": "#cc6677", "noise": "#8a8f98", "dispersion": "#4a90c4"}
RIGHT_WRONG = {"right": "#4a90c4", "wrong": "#cc6677"}

# Vega's name of matplotlib's markers; what it has not is a circle.
_SHAPES = {
    "X": "M-.7,-1L0,-.3L.7,-1L1,-.7L.3,0L1,.7L.7,1L0,.3L-.7,1L-1,.7L-.3,0L-1,-.7Z",
    "o": "circle",
    "s": "square",
    "P": "M-.4,-1H.4V-.4H1V.4H.4V1H-.4V.4H-1V-.4H-.4Z",
    "D": "diamond",
    "d": "M0,-1L.6,0L0,1L-.6,0Z",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "*": "M0,-1L.25,-.35L.95,-.3L.4,.15L.6,.8L0,.43L-.6,.8L-.4,.15L-.95,-.3L-.25,-.35Z",
    "p": "M0,-1L.95,-.31L.59,.81L-.59,.81L-.95,-.31Z",
}


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2).

    Examples
    --------
    >>> contrast("#000000", "#ffffff")
    21.0
    """
    darker, lighter = sorted(map(_luminance, (first, second)))
    return (lighter + 0.05) / (darker + 0.05)


def readable(color: str, background: str, ratio: float = 3.0) -> str:
    """Return a colour, mixed with black or white until it stands out from a background.

    Examples
    --------
    >>> readable("#332288", "#ffffff"), contrast(readable("#332288", "#14171c"), "#14171c") >= 3
    ('#332288', True)
    """
    target = 255 if _luminance(background) < 0.2 else 0
    channels = [int(color[k : k + 2], 16) for k in (1, 3, 5)]
    for step in range(101):
        mixed = [round(c + (target - c) * step / 100) for c in channels]
        found = "#" + "".join(f"{c:02x}" for c in mixed)
        if contrast(found, background) >= ratio:
            break
    return found


def shapes(methods: Sequence[str]) -> list[str]:
    """Return Vega's shape of each method."""
    styles = method_styles(methods)
    return [_SHAPES.get(styles[name].marker, "circle") for name in methods]


def vega_themes(methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return Vega's configuration by theme; colours by category are those of the methods."""
    styles = method_styles(methods)
    return {
        name: _vega_theme(colors, [readable(styles[m].color, colors["paper"]) for m in methods])
        for name, colors in COLORS.items()
    }


def _vega_theme(colors: dict[str, str], of_methods: list[str]) -> dict[str, Any]:
    text = {"labelColor": colors["ink"], "titleColor": colors["ink"], "labelFontSize": 12}
    text |= {"titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 220}
    return {
        "background": "transparent",
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "axis": {**text, **{f"{k}Color": colors["line"] for k in ("grid", "domain", "tick")}},
        "legend": {**text, "symbolStrokeColor": colors["ink"]},
        "title": {
            "color": colors["ink"],
            "subtitleColor": colors["ink"],
            "anchor": "start",
            "fontSize": 13,
            "fontWeight": "normal",
        },
        "range": {"category": of_methods or [colors["mark"]]},
        "text": {"color": colors["ink"]},
        "rule": {"color": colors["muted"], "strokeWidth": 2},
        "tick": {"color": colors["ink"]},
        "point": {"stroke": colors["ink"]},
        "style": {
            "outlined": {"stroke": colors["ink"], "strokeWidth": 0.8},
            "mark": {"fill": colors["mark"], "stroke": colors["ink"], "strokeWidth": 0.8},
            "whisker": {"color": colors["mark"], "stroke": colors["mark"]},
        },
    }


def _luminance(color: str) -> float:
    channels = (int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
