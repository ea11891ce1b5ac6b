"""One colour and marker per method, the same in every figure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

#: Widths of a figure in one column of a paper and across the text, in inches: ICML's column, and
#: the text of NeurIPS and ICLR.
COLUMN_WIDTH = 3.25
FULL_WIDTH = 5.5

# Outlines of markers that matplotlib has no letter for.
_HOUSE = ((-1, -1), (1, -1), (1, 0.2), (0, 1), (-1, 0.2), (-1, -1))
_HOURGLASS = ((-0.8, -1), (0.8, -1), (-0.8, 1), (0.8, 1), (-0.8, -1))
_DART = ((-1, -1), (0, -0.5), (1, -1), (0, 1), (-1, -1))
_TRAPEZIUM = ((-1, -0.7), (1, -0.7), (0.4, 0.7), (-0.4, 0.7), (-1, -0.7))

# The paper's nine methods, in the order of its tables: after "muted" of Paul Tol, "Colour Schemes"
# (SRON/EPS/TN/09-002, 2021), safe for the usual kinds of colour blindness, with the lighter ones
# darkened to a contrast of 3 with white.
_PAPER = {
    "centroids": ("#999933", "X"),  # olive
    "dropconnect": ("#0099E5", "o"),  # blue
    "bayesian_logistic_regression": ("#AA4499", "s"),  # purple
    "likelihood": ("#A69359", "P"),  # sand
    "eknn": ("#0C805B", "D"),  # teal
    "random_forest": ("#CC6677", "^"),  # rose
    "mc_dropout": ("#332288", "v"),  # indigo
    "deep_ensemble": ("#117733", "<"),  # green
    "laplace": ("#882255", ">"),  # wine
}
#: The nine methods of the paper, in the order of its tables.
PAPER_METHODS = tuple(_PAPER)

_FIXED = {
    **_PAPER,
    # Controls are black and grey, so that nobody takes them for methods; of the greys, these are
    # far from the colours above for the colour-blind, too.
    "oracle": ("#000000", "*"),
    "base_rate": ("#333333", "p"),
    "label_shuffled_ensemble": ("#939393", "h"),
    "venn_abers": ("#51472F", _HOUSE),
    # All further colours are the farthest from those above under simulated protanopia and
    # deuteranopia, of those that stand out from white and are neither black nor grey.
    "gradient_boosting_ensemble": ("#807800", "d"),
    "evidential": ("#AA0011", (4, 1, 0)),
    "swag": ("#0030F2", _HOURGLASS),
    "gaussian_process": ("#552266", _DART),
}

# Methods that the project does not know.
_FURTHER_COLORS = ("#0000FF", "#9944BB", "#CC6655", "#6666CC")
_FURTHER_MARKERS = ("8", _TRAPEZIUM, (3, 1, 0), "H", (6, 1, 0))


@dataclass(frozen=True)
class MethodStyle:
    """How a method is drawn: its colour, and a marker of any kind that matplotlib knows."""

    color: str
    marker: Any

    def line(self) -> dict[str, Any]:
        """Return the keywords of ``Axes.plot`` and ``Axes.errorbar``."""
        return {
            "color": self.color,
            "marker": self.marker,
            "markeredgecolor": "#222222",
            "markeredgewidth": 0.5,
        }


def method_styles(methods: Iterable[str]) -> dict[str, MethodStyle]:
    """Return the style of each method by name, in the order of ``methods``.

    The methods and controls of the project have fixed styles; any other name has a place of its
    own among the further ones, or the next that is free, found from the name alone. Ask for all
    methods of a configuration together, and the styles agree between figures; no two share both
    colour and marker.

    Raises
    ------
    ValueError
        If there are more further methods than styles for them.

    Examples
    --------
    >>> method_styles(["eknn", "mine"])["eknn"]
    MethodStyle(color='#0C805B', marker='D')
    """
    known = dict(_FIXED)
    free = [(color, marker) for marker in _FURTHER_MARKERS for color in _FURTHER_COLORS]
    unknown = [name for name in dict.fromkeys(methods) if name not in known]
    if len(unknown) > len(free):
        raise ValueError(
            f"methods has {len(unknown)} names beyond the project's own; at most {len(free)} can "
            f"be told apart in a figure"
        )
    for name in unknown:
        place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        while free[place % len(free)] in known.values():
            place += 1
        known[name] = free[place % len(free)]
    return {name: MethodStyle(*known[name]) for name in methods}


def rc_params(**overrides: Any) -> dict[str, Any]:
    """Return matplotlib settings of every figure: TrueType fonts of 7 to 9 points as printed."""
    return {
        "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
        "font.size": 8,
        "axes.labelsize": 8,
        "axes.titlesize": 8.5,
        "xtick.labelsize": 7.5,
        "ytick.labelsize": 7.5,
        "legend.fontsize": 7.5,
        "legend.frameon": False,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": "#DDDDDD",
        "grid.linewidth": 0.5,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "lines.linewidth": 1.2,
        "lines.markersize": 5,
        "figure.constrained_layout.use": True,
        "figure.facecolor": "white",
        "savefig.dpi": 200,
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "svg.hashsalt": "epistemic-calibration",
        **overrides,
    }
