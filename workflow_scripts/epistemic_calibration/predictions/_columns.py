"""Which columns of a table are hypotheses. None is taken that does not say so."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration.predictions._arrays import WEIGHTS, PredictionsError, listed

if TYPE_CHECKING:
    import pandas as pd

KNOWN = ("y_true", "prediction", "epistemic_uncertainty", "n_positive", "n_labels", "groups")
_NUMBERED = re.compile(
    r"(h|hyp|hypothes[ie]s|member|model|net|tree|estimator|seed|run|sample|draw|pass|mc|boot|"
    r"p|prob|proba|pred|v|)[ _.:-]*\d+",
    re.IGNORECASE,
)
_SINGLE = ("h", "hyp", "hypothesis")
_HOW = (
    "Hypotheses are columns called h0, h1, ... (or member_0, sample_0, tree0, 0 and the like); of "
    "several classes they go in an .npz. Leave other columns out, or select the hypotheses with "
    "hypotheses=: the start of their names, or a list"
)


def take_columns(
    table: pd.DataFrame, selection: str | Sequence[str] | None, groups: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the arrays of a table, and the names of its hypotheses."""
    names = list(table.columns)
    if "y_true" not in names:
        raise PredictionsError(f"lacks the column y_true; it has {listed(names)}")
    if groups is not None and (groups not in names or groups in set(KNOWN) - {"groups"}):
        raise PredictionsError(f"has no column {groups!r} of groups; it has {listed(names)}")
    known = [name for name in KNOWN if name in names and name not in ("groups", groups)]
    of_groups = groups or "groups"
    rest = [name for name in names if name not in (*known, of_groups)]
    taken = hypotheses_among(rest) if selection is None else _selected(rest, selection)
    arrays = {name: _numbers(name, table[name]) for name in known if name != "y_true"}
    arrays["y_true"] = table["y_true"].to_numpy()
    if of_groups in names:
        arrays["groups"] = table[of_groups].to_numpy()
    arrays["hypotheses"] = np.stack([_numbers(name, table[name]) for name in taken], axis=1)
    return arrays, taken


def hypotheses_among(names: list[str]) -> list[str]:
    """Return the names, all of which must say that they are hypotheses, by one word."""
    if len(names) == 1 and names[0].casefold() in _SINGLE:
        return names
    matches = [_NUMBERED.fullmatch(name) for name in names]
    unknown = [name for name, match in zip(names, matches, strict=True) if not match]
    if any("weight" in name.casefold() for name in unknown):
        raise PredictionsError(f"column(s) {listed(unknown)}: {WEIGHTS}")
    if unknown or not names:
        what = f"column(s) {with_hints(unknown, KNOWN)} are neither hypotheses nor known"
        raise PredictionsError(f"{what if names else 'has no column of a hypothesis'}. {_HOW}")
    words = {match[1].casefold(): name for name, match in zip(names, matches, strict=True)}
    if len(words) > 1:
        raise PredictionsError(
            f"has columns of hypotheses of several kinds, {listed(words.values())}. {_HOW}"
        )
    return names


def with_hints(names: Collection[str], known: Collection[str]) -> str:
    """Return names in quotes, with known ones that they may be slips of the pen for."""
    close = {
        name: match
        for name in list(names)[:10]
        for match in difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.75)
    }
    hints = ", ".join(f"did you mean {match!r}?" for match in dict.fromkeys(close.values()))
    return listed(names) + (f" ({hints})" if hints else "")


def _selected(rest: list[str], selection: str | Sequence[str]) -> list[str]:
    if isinstance(selection, str):
        number = re.compile(rf"{re.escape(selection)}[ _.:-]*\d+")
        wanted = [name for name in rest if number.fullmatch(name)]
    else:
        wanted = [str(name) for name in selection]
    if not wanted or not set(wanted) <= set(rest) or len(set(wanted)) < len(wanted):
        raise PredictionsError(
            f"hypotheses={selection!r} must name columns, each once, or the start of their names "
            f"before a number; there are {listed(rest)}"
        )
    return wanted


def _numbers(name: str, column: pd.Series) -> np.ndarray:
    """Return a column as floats, NaN where it is empty."""
    import pandas as pd

    values = pd.to_numeric(column, errors="coerce")
    wrong = (values.isna() & column.notna()).to_numpy()
    if wrong.any():
        n = int(wrong.argmax())
        raise PredictionsError(
            f"column {name!r} holds {listed([column.iloc[n]])} for sample {n}, which is no number"
        )
    return values.to_numpy(dtype=np.float64, na_value=np.nan)
