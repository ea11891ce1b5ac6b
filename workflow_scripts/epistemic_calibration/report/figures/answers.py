"""The three answers of a data set in one picture, a row per method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from epistemic_calibration.report._answers import FAMILIES, RIGHT, UNKNOWN, answers
from epistemic_calibration.report._names import drawable
from epistemic_calibration.report.figures._axes import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    from_zero,
    plain_ticks,
)
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.style import FULL_WIDTH, rc_params

CAPTION = (
    "Can the epistemic uncertainty (EU) of each method be trusted? First column: calibration "
    "error, by how many percentage points the probabilities are off (root mean square), with "
    "95 % intervals, blue where they reach 0; methods that share a letter cannot be told apart. "
    "Second: share of the "
    "squared error at one input that EU makes up, with its 95 % interval; 100 % is right, an "
    "arrow stands where there is no end, and a dot where it is estimated and not only bounded. "
    "Third: errors among all inputs (circle) and among the 90 % of least EU (dot, with 95 % "
    "interval), orange where the 90 % of least 1 − max p, the upright mark, have fewer."
)
_HEADINGS = {"illustrative": "Illustrative", "control": "Controls"}
_QUESTIONS = ("Probabilities right?", "EU of the right size?", "EU knows the errors?")
_ROW = 0.2
_LONGEST = 24


def draw(
    results: DatasetResults,
    *,
    width: float = FULL_WIDTH,
    families: Sequence[str] = FAMILIES,
    questions: bool = False,
    links: Mapping[str, str] | None = None,
) -> Figure:
    """Draw calibration error, share and errors kept, side by side, or one above the other.

    Below a ``width`` of 4.5 inches the columns stand one above the other. Methods of ``families``
    are shown; with ``questions`` each column has its question above it; ``links`` are where the
    names of methods lead to, in an SVG.

    Raises
    ------
    ValueError
        If no method of these families has a corrected TECE.

    Examples
    --------
    >>> import pandas as pd
    >>> values = {"tece_corrected": 0.01, "reported_share_at_least": 0.2}
    >>> values |= {"reported_share_at_most": 0.5}
    >>> scores = pd.DataFrame({"metric": values.keys(), "value": values.values()}).assign(
    ...     dataset="pets", seed=0, method="mine", scope="all_tasks", task=None
    ... )
    >>> methods = {"mine": {"label": "Mine", "family": "active"}}
    >>> figure = draw(DatasetResults(scores, "pets", methods))
    >>> [text.get_text() for text in figure.axes[1].texts]
    ['too small']
    """
    found = answers(results)
    found = found[found["family"].isin(families)]
    if not found["points"].notna().any():
        raise ValueError(f"no method of dataset={results.dataset!r} has a corrected TECE")
    columns = [_calibration_error]
    columns += [_share] if found["verdict"].any() else []
    columns += [_errors_kept] if found["kept"].notna().any() else []
    heights = _places(found)
    high = -float(heights.min()) + 1.2
    wide = width >= 4.5
    size = 8 if questions else 7
    sizes = {f"{kind}.labelsize": size for kind in ("axes", "xtick", "ytick")}
    with mpl.rc_context(rc_params(**sizes, **{"font.size": size})):
        if wide:
            figure = Figure(figsize=(width, _ROW * high + 0.6 + 0.2 * questions))
            ratios = [1, 1.15, 1][: len(columns)]
            axes = figure.subplots(1, len(columns), width_ratios=ratios, squeeze=False)[0]
        else:
            size = (width, len(columns) * (0.17 * high + 0.58 + 0.2 * questions))
            figure = Figure(figsize=size)
            axes = figure.subplots(len(columns), 1, squeeze=False)[:, 0]
        for k, (ax, column) in enumerate(zip(axes, columns, strict=True)):
            _rows(ax, found, heights, links or {}, named=k == 0 or not wide)
            column(ax, found, heights)
            if questions:
                ax.set_title(_QUESTIONS[k], loc="left", fontweight="bold", fontsize=8.5)
    return figure


def _places(found: pd.DataFrame) -> pd.Series:
    """Return the height of each row: downwards from 0, a heading's room before another family."""
    new = found["family"].ne(found["family"].shift()) & found["family"].isin(_HEADINGS)
    return -(np.arange(len(found)) + new.cumsum() - new.iloc[0])


def _rows(
    ax: Axes, found: pd.DataFrame, heights: pd.Series, links: Mapping[str, str], *, named: bool
) -> None:
    ax.set_ylim(heights.min() - 0.6, 0.6)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    # Longer names, such as those of files, would leave no room for the columns.
    names = [n if len(n) <= _LONGEST else f"{n[: _LONGEST - 1]}…" for n in found["label"]]
    ax.set_yticks(heights, map(drawable, names) if named else [""] * len(found))
    for tick, name in zip(ax.yaxis.get_major_ticks(), found.index, strict=True):
        tick.label1.set_url(links.get(name))
    previous = found["family"].iloc[0]
    for height, family in zip(heights, found["family"], strict=True):
        if family != previous:
            ax.axhline(height + 1.5, color=GREY, lw=0.6, ls=":", clip_on=False)
            if named:
                look = {"ha": "right", "va": "center", "color": GREY, "style": "italic"}
                where = mpl.transforms.ScaledTranslation(-3 / 72, 0, ax.figure.dpi_scale_trans)
                look["transform"] = ax.get_yaxis_transform() + where
                ax.text(0, height + 1, f"{_HEADINGS[family]}:", **look)
        previous = family


def _calibration_error(ax: Axes, found: pd.DataFrame, heights: pd.Series) -> None:
    for height, row in zip(heights, found.itertuples(), strict=True):
        color = ORANGE if row.points_low > 0 else BLUE
        ax.plot([row.points_low, row.points_high], [height] * 2, color=color, lw=1.6)
        ax.plot(row.points, height, "o", color=color, ms=4.5, clip_on=False)
    from_zero(ax, found[["points", "points_high"]], least=1.0)
    letters = "\nsame letter: not told apart" if found["group"].any() else ""
    ax.set_xlabel(f"Calibration error, points{letters}")
    beside = {"transform": ax.get_yaxis_transform(), "color": GREY, "va": "center"}
    for height, group in zip(heights, found["group"], strict=True):
        ax.text(1.02, height, group, **beside)


def _share(ax: Axes, found: pd.DataFrame, heights: pd.Series) -> None:
    ends = found[["share_low", "share_high"]].to_numpy(dtype=float)
    inside = ends[np.isfinite(ends) & (ends > 0)]
    left = max(min([30.0, *inside]) / 1.6, 0.01)
    right = min(max([300.0, *inside]) * 1.6, 1e5)
    ax.set(
        xscale="log",
        xlim=(left, right),
        xlabel="Share of its squared error\nthat EU reports, % (100 is right)",
    )
    plain_ticks(ax.xaxis)
    ax.xaxis.set_minor_locator(mpl.ticker.NullLocator())
    ax.axvline(100, color=INK, lw=0.9, ls="--", zorder=1)
    # A bar ends before its arrow's head does.
    edge = (right / left) ** 0.035
    word = {"transform": ax.get_yaxis_transform(), "va": "center"}
    for height, row in zip(heights, found.itertuples(), strict=True):
        color = {RIGHT: BLUE, UNKNOWN: GREY}.get(row.verdict, ORANGE)
        ax.text(1.04, height, row.verdict, color=color, **word)
        if np.isnan(row.share_low) or np.isnan(row.share_high):
            continue
        open_left, open_right = row.share_low < left, row.share_high > right
        low = left * edge if open_left else row.share_low
        high = right / edge if open_right else row.share_high
        face = "white" if row.verdict == UNKNOWN else color
        if high > low:
            bar = {"facecolor": face, "edgecolor": color, "linewidth": 1.1, "zorder": 2}
            ax.barh(height, high - low, left=low, height=0.4, **bar)
        head = {"color": color, "ms": 5.5, "mew": 0, "ls": "none", "clip_on": False, "zorder": 3}
        if open_left:
            ax.plot(left * edge**0.6, height, marker="<", **head)
        if open_right:
            ax.plot(right / edge**0.6, height, marker=">", **head)
        if left < row.share < right:
            ax.plot(row.share, height, "o", color=color, mec="white", mew=0.8, ms=5, zorder=4)


def _errors_kept(ax: Axes, found: pd.DataFrame, heights: pd.Series) -> None:
    mark = {"ls": "none", "clip_on": False}
    ax.hlines(heights, found["kept"], found["error"], color=GREY, lw=0.8, zorder=1)
    ax.plot(found["error"], heights, "o", mfc="white", mec=GREY, ms=4.5, zorder=3, **mark)
    for height, row in zip(heights, found.itertuples(), strict=True):
        color = ORANGE if row.kept_difference_low > 0 else BLUE
        ax.plot([row.kept_low, row.kept_high], [height] * 2, color=color, lw=1.6, zorder=2)
        ax.plot(row.kept, height, "o", color=color, ms=4.5, zorder=4, **mark)
    by = found["kept_by_prediction"]
    ax.plot(by, heights, "|", color=INK, ms=9, mew=1.3, zorder=5, **mark)
    from_zero(ax, found[["error", "kept", "kept_high"]], least=0.1)
    ax.set_xlabel("Errors, %: ○ all inputs\n● 90 % by EU\n❘ 90 % by 1 − max p")
