"""Labels beside points, placed so that they cover nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg

from epistemic_calibration.report.figures._axes import GREY


def label_points(ax: Axes, points: Sequence[tuple[float, float]], labels: Sequence[str]) -> None:
    """Write a label beside each point, where it covers no marker, label or edge.

    Each label takes the cheapest of rings of places around its point, in turn, until none
    moves; of the results of starting at each label, the cheapest is drawn.
    """
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    per_point = ax.figure.dpi / 72
    at = ax.transData.transform(np.asarray(points, dtype=float).reshape(-1, 2))
    markers = np.hstack([at - 3.2 * per_point, at + 3.2 * per_point])
    lines = [line.get_window_extent(renderer).padded(0.8 * per_point) for line in ax.lines]
    whiskers = np.array([box.extents for box in lines])
    others = [text.get_window_extent(renderer).extents for text in ax.texts]
    others = np.array(others).reshape(-1, 4)
    sizes = []
    for label in labels:
        text = ax.text(0.5, 0.5, label, fontsize=7, transform=ax.transAxes)
        sizes.append(text.get_window_extent(renderer).size)
        text.remove()

    radii, angles = np.meshgrid([5, 9, 15, 23, 32], np.deg2rad(np.arange(0, 360, 30)))
    radii, angles = radii.ravel(), angles.ravel()
    direction = np.column_stack([np.cos(angles), np.sin(angles)])

    def places(i: int) -> np.ndarray:
        # The ring touches the label's nearest edge, not its middle.
        low = at[i] + radii[:, None] * per_point * direction + (direction - 1) / 2 * sizes[i]
        return np.hstack([low, low + sizes[i]])

    candidates = [places(i) for i in range(len(labels))]
    strange = [_nearer_to_others(boxes, at, i) for i, boxes in enumerate(candidates)]

    def costs(i: int, chosen: Sequence[int]) -> np.ndarray:
        rest = [candidates[j][chosen[j]] for j in range(len(labels)) if j != i]
        blockers = np.vstack([np.delete(markers, i, axis=0), others, *rest])
        area = sizes[i].prod()
        hidden = _overlap(candidates[i], blockers).sum(axis=1) / area
        outside = 1 - _overlap(candidates[i], ax.bbox.extents[None])[:, 0] / area
        crossed = _overlap(candidates[i], whiskers).sum(axis=1) / area
        return 60 * (hidden + outside) + 9 * crossed + 6 * strange[i] + radii / 12

    def descend(start: int) -> tuple[float, list[int]]:
        chosen = [0] * len(labels)
        for _ in range(10):
            before = list(chosen)
            for i in np.roll(np.arange(len(labels)), start):
                chosen[i] = int(np.argmin(costs(i, chosen)))
            if chosen == before:
                break
        return sum(costs(i, chosen)[place] for i, place in enumerate(chosen)), chosen

    _, chosen = min(descend(start) for start in range(len(labels)))
    for i, label in enumerate(labels):
        box = candidates[i][chosen[i]]
        leader = {"arrowstyle": "-", "lw": 0.4, "color": GREY, "shrinkA": 0}
        ax.annotate(
            label,
            points[i],
            xytext=((box[:2] + box[2:]) / 2 - at[i]) / per_point,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7,
            zorder=4,
            bbox={"facecolor": "white", "alpha": 0.7, "lw": 0, "pad": 0.3},
            arrowprops=leader if radii[chosen[i]] > 10 or strange[i][chosen[i]] else None,
        )


def _nearer_to_others(boxes: np.ndarray, at: np.ndarray, own: int) -> np.ndarray:
    """Return which boxes are nearer to another point than to their own."""
    gap = np.maximum(boxes[:, None, :2] - at, at - boxes[:, None, 2:]).clip(min=0)
    distance = np.hypot(gap[..., 0], gap[..., 1])
    others = np.delete(distance, own, axis=1)
    return (others < distance[:, [own]]).any(axis=1)


def _overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the common area of each box of ``a`` and each of ``b``: x0, y0, x1, y1."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    return np.clip(high - low, 0, None).prod(axis=2)
