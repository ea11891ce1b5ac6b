"""Which columns of a table are hypotheses. None is taken that does not say so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from epistemic_calibration.predictions._words import (
    COUNTS,
    GROUPS,
    OPTIONAL_ARRAYS,
    PredictionsError,
    listed,
    meant,
    similar,
    with_hint,
    with_hints,
)

if TYPE_CHECKING:
    import pandas as pd

_KNOWN = ("y_true", *OPTIONAL_ARRAYS, *COUNTS, GROUPS)
# What is numbered in other libraries' tables; v is R's, and "" is the number alone.
_MEMBER = re.compile(
    r"h|hyp|hypothes[ie]s|member|model|net|network|ensemble|est|estimator|tree|seed|run|"
    r"sample|draw|particle|posterior|chain|iter|iteration|mc|pass|forward|"
    r"boot|bootstrap|rep|replicate|(y_?)?(p|prob|proba|pred)|p_hat|probability|prediction|v|"
)
_SINGLE = ("h", "hyp", "hypothesis")
_NUMBERED = re.compile(r"(?P<prefix>.*?)(?P<separator>[ _.:-]*)(?P<number>\d+)")
_UNNAMED = re.compile(r"(Unnamed: \d+(\.\d+)*)?")
_HOW = (
    "Hypotheses are columns called h0, h1, ... (or member_0, sample_0, tree0, 0 and the like). "
    "Leave other columns out, "
)
# A number, and the name of a class.
_OF_CLASS = re.compile(r"[a-z_]*\d+[ _.:-]+[^ _.:-].*|[^ _.:-]+[_.:-]+[a-z]*\d+")
_CLASSES = "; hypotheses of several classes go in an .npz"
_SELECT = "or select the hypotheses with hypotheses=: the start of their names, or a list"


def take_columns(
    names: list[str],
    table: pd.DataFrame,
    selection: str | Sequence[str] | None,
    groups: str | None = None,
) -> tuple[dict[str, Any], list[str], list[str], list[str]]:
    """Return the arrays of a table, the names of its hypotheses, notes for a log, and doubts.

    Parameters
    ----------
    names : list of str
        Of the columns, as the file has them.
    table : DataFrame
        Its columns are called 0, 1, ...
    selection : str, sequence of str or None
        As ``hypotheses`` of `read_predictions`.
    groups : str or None
        As there.
    """
    notes: list[str] = []
    position = {name: j for j, name in enumerate(names)}
    for name, j in list(position.items()):
        if _UNNAMED.fullmatch(name) and names.count(name) == 1 and _counts_rows(table[j]):
            del position[name]
            notes.append(f"dropped column {j} ({name or 'without a name'}), a running number")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PredictionsError(
            f"column name(s) {listed(twice)} are in the header more than once: rename or leave out"
        )
    if "y_true" not in position:
        raise PredictionsError(f"lacks the column y_true{_instead_of_labels(list(position))}")
    if groups in _KNOWN and groups != GROUPS:
        raise PredictionsError(f"column {groups!r} cannot be the groups")
    if groups is not None and groups not in position:
        raise PredictionsError(f"has no column {groups!r} of groups; it has {listed(position)}")
    of_groups = GROUPS if groups is None else groups
    rest = [name for name in position if name not in (*_KNOWN, of_groups)]
    doubts: list[str] = []
    if selection is None:
        taken, doubts = hypotheses_among(rest)
    else:
        taken = _selected(rest, selection)
        left_out = [name for name in rest if name not in taken]
        close = [name for name in left_out if similar(name, _KNOWN)]
        if close:
            raise PredictionsError(f"column(s) {with_hints(close, _KNOWN)}: rename or leave out")
        if left_out:
            notes.append(f"not used: column(s) {listed(left_out)}")
    arrays: dict[str, Any] = {n: table[position[n]].to_numpy() for n in _KNOWN if n in position}
    arrays.pop(GROUPS, None)
    if of_groups in position:
        arrays[GROUPS] = table[position[of_groups]].to_numpy()
        notes.append(f"groups are the column {of_groups!r}")
    for name in (*OPTIONAL_ARRAYS, *COUNTS):
        if name in arrays:
            arrays[name] = _numbers(name, table[position[name]])
    arrays["hypotheses"] = np.stack([_numbers(n, table[position[n]]) for n in taken], axis=1)
    notes.insert(0, f"hypotheses are {len(taken)} column(s), {listed(taken)}")
    others = [name for name in arrays if name not in ("y_true", "hypotheses", GROUPS)]
    if others:
        notes.append(f"also taken: column(s) {listed(others)}")
    return arrays, taken, notes, doubts


def hypotheses_among(rest: list[str], select: str = _SELECT) -> tuple[list[str], list[str]]:
    """Return the names that are hypotheses by what they say, and doubts; refuse others."""
    how = _HOW + select
    groups: dict[str, dict[str, int]] = {}
    single: list[str] = []
    unknown: list[str] = []
    for name in rest:
        match = _NUMBERED.fullmatch(name)
        prefix = match["prefix"].casefold() if match else None
        if prefix is not None and _MEMBER.fullmatch(prefix):
            groups.setdefault(prefix, {})[name] = int(match["number"])
        elif name.casefold() in _SINGLE:
            single.append(name)
        else:
            unknown.append(name)
    if len(single) > 1 or groups:
        unknown += single
    if unknown:
        hint = _common_prefix(unknown) if not groups else ""
        if not hint and len(unknown) > 2 and all(_OF_CLASS.fullmatch(name) for name in unknown):
            hint = _CLASSES
        raise PredictionsError(
            f"column(s) {with_hints(unknown, _KNOWN)} are neither hypotheses nor "
            f"{', '.join(_KNOWN)}. {how}{hint}"
        )
    if not rest:
        raise PredictionsError(f"has no column of a hypothesis. {how}")
    if single:
        return single, []
    if len(groups) > 1:
        kinds = " or ".join(f"{len(g)} as {next(iter(g))!r}" for g in groups.values())
        raise PredictionsError(f"has columns of hypotheses of several kinds, {kinds}. {how}")
    (numbers,) = groups.values()
    values = sorted(numbers.values())
    if len(set(values)) < len(values):
        number = next(n for n in values if values.count(n) > 1)
        same = [name for name, n in numbers.items() if n == number]
        raise PredictionsError(
            f"columns {listed(same)} have the same number: leave out all but one"
        )
    absent = values[-1] - values[0] + 1 - len(values)
    doubts = (
        [f"of the columns {listed(numbers)}, {absent} number(s) between are missing"]
        if absent
        else []
    )
    return list(numbers), doubts


def _common_prefix(names: list[str]) -> str:
    matches = [_NUMBERED.fullmatch(name) for name in names]
    prefixes = {match["prefix"] + match["separator"] for match in matches if match}
    if len(names) > 1 and all(matches) and len(prefixes) == 1:
        return f". If these are the hypotheses: hypotheses={prefixes.pop()!r}"
    return ""


def _selected(rest: list[str], selection: str | Sequence[str]) -> list[str]:
    if isinstance(selection, str):
        number = re.compile(rf"{re.escape(selection)}[ _.:-]*\d+")
        taken = [name for name in rest if number.fullmatch(name)]
        if not taken:
            raise PredictionsError(
                f"hypotheses={selection!r}: no column is called so with a number; the columns are "
                f"{listed(rest)}"
            )
        return taken
    wanted = [str(name) for name in selection]
    missing = [name for name in wanted if name not in rest]
    if missing or not wanted or len(set(wanted)) < len(wanted):
        what = "names no column" if not wanted else "names a column more than once"
        if missing:
            what = f"there is no such column beside {', '.join(_KNOWN)}: "
            what += with_hints(missing, rest)
        raise PredictionsError(f"hypotheses=[...]: {what}; the columns are {listed(rest)}")
    return wanted


def _instead_of_labels(names: list[str]) -> str:
    if names and all(re.fullmatch(r"[\d.,eE+-]*", name) for name in names):
        return ": its first line holds numbers, and must hold the names of the columns"
    hints = [name for name in names if meant(name, ("y_true",))]
    if hints:
        return f"; rename {with_hint(hints[0], ('y_true',))}"
    return f"; it has {listed(names)}"


def _counts_rows(column: pd.Series) -> bool:
    values = column.to_numpy()
    if values.dtype.kind not in "iuf" or len(values) == 0:
        return False
    return any(np.array_equal(values, np.arange(start, start + len(values))) for start in (0, 1))


def _numbers(name: str, column: pd.Series) -> np.ndarray:
    """Return a column as floats, NaN where it is empty."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    values = pd.to_numeric(column, errors="coerce")
    wrong = (values.isna() & column.notna()).to_numpy()
    if not wrong.any():
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    n = int(wrong.argmax())
    raise PredictionsError(
        f"column {name!r} holds {listed([column.iloc[n]])} for sample {n}, which is no number: "
        f"write numbers, with a decimal point where commas separate columns"
    )
