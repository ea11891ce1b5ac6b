"""Which point is which method: labels that cover nothing, or a legend where there is no room."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from epistemic_calibration.report.figures._axes import GREY
from epistemic_calibration.report.style import MethodStyle

# In points: half a marker, by how much a label must be nearer to its own marker than to any
# other, and how near markers are that hide each other.
_HALF_MARKER, _NEARER, _TIED = 3.2, 1.5, 2.5
_FONT_SIZE = 7
# What a label may hide of itself, for rounding.
_TOLERATED = 0.02


@dataclass(frozen=True)
class Points:
    """Methods on axes: their names, places in data coordinates, and markers."""

    ax: Axes
    names: Sequence[str]
    places: Sequence[tuple[float, float]]
    markers: Sequence[Line2D]


def name_points(
    figure: Figure,
    panels: Sequence[Points],
    labels: Mapping[str, str],
    styles: Mapping[str, MethodStyle],
) -> None:
    """Say which point is which, and show markers that others hide.

    Each point gets a label that covers no marker, label or edge and is nearer to its own marker
    than to any other. If that cannot be done in every panel, all methods are in a legend below,
    for which the figure grows.
    """
    figure.draw_without_rendering()
    placed = [_place(panel, labels) for panel in panels]
    if all(places is not None for places in placed):
        for panel, places in zip(panels, placed, strict=True):
            _write(panel, labels, places)
    else:
        names = list(dict.fromkeys(name for panel in panels for name in panel.names))
        n_columns = max(1, int(figure.get_figwidth() / 1.6))
        # The height of a row of the legend.
        grown = figure.get_figheight() + 0.17 * math.ceil(len(names) / n_columns)
        figure.set_figheight(grown)
        figure.legend(
            handles=[
                Line2D([], [], ls="none", **styles[name].line(), label=labels[name])
                for name in names
            ],
            loc="outside lower center",
            ncols=n_columns,
            handletextpad=0.2,
            columnspacing=1,
        )
        figure.draw_without_rendering()
    for panel in panels:
        _show_hidden(panel)


def _show_hidden(points: Points) -> None:
    """Make markers that lie beneath others larger, so that they show around them."""
    at = _pixels(points)
    tied = _TIED * points.ax.figure.dpi / 72
    for i, marker in enumerate(points.markers):
        above = (np.hypot(*(at[i + 1 :] - at[i]).T) < tied).sum()
        marker.set_markersize(marker.get_markersize() + 2.5 * min(above, 3))


def _pixels(points: Points) -> np.ndarray:
    return points.ax.transData.transform(np.asarray(points.places, dtype=float).reshape(-1, 2))


def _place(points: Points, labels: Mapping[str, str]) -> list[tuple[np.ndarray, bool]] | None:
    """Return the box of each label and whether it is far, or None if there is no room.

    Each label takes the cheapest of rings of places around its point, in turn, until none
    moves; of the results of starting at each label, the cheapest counts.
    """
    ax, n_points = points.ax, len(points.names)
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    per_point = ax.figure.dpi / 72
    at = _pixels(points)
    markers = np.hstack([at - _HALF_MARKER * per_point, at + _HALF_MARKER * per_point])
    whiskers = [line for line in ax.lines if line not in points.markers]
    lines = [line.get_window_extent(renderer).padded(0.8 * per_point) for line in whiskers]
    lines = np.array([box.extents for box in lines]).reshape(-1, 4)
    others = [text.get_window_extent(renderer).extents for text in ax.texts]
    others = np.array(others).reshape(-1, 4)
    sizes = []
    for name in points.names:
        text = ax.text(0.5, 0.5, labels[name], fontsize=_FONT_SIZE, transform=ax.transAxes)
        sizes.append(text.get_window_extent(renderer).size)
        text.remove()

    radii, angles = np.meshgrid([5, 9, 15, 23, 32], np.deg2rad(np.arange(0, 360, 30)))
    radii, angles = radii.ravel(), angles.ravel()
    direction = np.column_stack([np.cos(angles), np.sin(angles)])

    def places(i: int) -> np.ndarray:
        # The ring touches the label's nearest edge, not its middle.
        low = at[i] + radii[:, None] * per_point * direction + (direction - 1) / 2 * sizes[i]
        return np.hstack([low, low + sizes[i]])

    candidates = [places(i) for i in range(n_points)]
    strange = [_nearer_to_others(boxes, at, i, per_point) for i, boxes in enumerate(candidates)]

    def hidden(i: int, chosen: Sequence[int]) -> np.ndarray:
        rest = [candidates[j][chosen[j]] for j in range(n_points) if j != i]
        area = sizes[i].prod()
        covered = _overlap(candidates[i], np.vstack([markers, others, *rest])).sum(axis=1)
        outside = area - _overlap(candidates[i], ax.bbox.extents[None])[:, 0]
        return (covered + outside) / area + strange[i]

    def costs(i: int, chosen: Sequence[int]) -> np.ndarray:
        crossed = _overlap(candidates[i], lines).sum(axis=1) / sizes[i].prod()
        return 60 * hidden(i, chosen) + 12 * crossed + radii / 12

    def descend(start: int) -> tuple[float, list[int]]:
        chosen = [0] * n_points
        for _ in range(10):
            before = list(chosen)
            for i in np.roll(np.arange(n_points), start):
                chosen[i] = int(np.argmin(costs(i, chosen)))
            if chosen == before:
                break
        return sum(costs(i, chosen)[place] for i, place in enumerate(chosen)), chosen

    _, chosen = min(descend(start) for start in range(n_points))
    if any(hidden(i, chosen)[place] > _TOLERATED for i, place in enumerate(chosen)):
        return None
    return [(candidates[i][place], bool(radii[place] > 10)) for i, place in enumerate(chosen)]


def _write(
    points: Points, labels: Mapping[str, str], places: Sequence[tuple[np.ndarray, bool]]
) -> None:
    per_point = points.ax.figure.dpi / 72
    at = _pixels(points)
    leader = {"arrowstyle": "-", "lw": 0.4, "color": GREY, "shrinkA": 0}
    for i, (box, far) in enumerate(places):
        points.ax.annotate(
            labels[points.names[i]],
            points.places[i],
            xytext=((box[:2] + box[2:]) / 2 - at[i]) / per_point,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=_FONT_SIZE,
            zorder=4,
            arrowprops=leader if far else None,
        )


def _nearer_to_others(boxes: np.ndarray, at: np.ndarray, own: int, per_point: float) -> np.ndarray:
    """Return which boxes are not clearly nearer to their own point than to another."""
    # Of points at the same place, each label names one.
    apart = np.hypot(*(at - at[own]).T) >= _TIED * per_point
    gap = np.maximum(boxes[:, None, :2] - at, at - boxes[:, None, 2:]).clip(min=0)
    distance = np.hypot(gap[..., 0], gap[..., 1])
    return (distance[:, apart] < distance[:, [own]] + _NEARER * per_point).any(axis=1)


def _overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the common area of each box of ``a`` and each of ``b``: x0, y0, x1, y1."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    return np.clip(high - low, 0, None).prod(axis=2)
