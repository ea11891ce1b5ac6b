"""Files of predictions: archives of NumPy, and tables. Nothing is taken that does not say so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epistemic_calibration.predictions._arrays import (
    WEIGHTS,
    PredictionsError,
    listed,
    to_numbers,
)

_COLUMNS = ("y_true", "prediction", "epistemic_uncertainty", "n_positive", "n_labels", "groups")
_ARRAYS = (*_COLUMNS, "hypotheses", "label_counts", "class_names", "axes", "exchangeable")
_NUMBER = r"[ _.:-]*\d+"
_NUMBERED = re.compile(
    rf"(h|hypothesis|member|model|net|tree|seed|sample|draw|pass|p|prob|pred|v|){_NUMBER}",
    re.IGNORECASE,
)
_TABLE = re.compile(r"\.(csv|tsv|parquet)(\.(gz|bz2|xz))?$", re.IGNORECASE)


def read_file(
    path: Path, selection: str | Sequence[str] | None, groups: str | None, max_bytes: int
) -> tuple[dict[str, Any], list[str] | None]:
    """Return the arrays of a file, not yet checked, and the names of hypotheses in a table."""
    if path.stat().st_size == 0:
        raise PredictionsError("the file is empty")
    if path.suffix.lower() == ".npz":
        return _read_npz(path, selection, groups, max_bytes), None
    if kind := _TABLE.search(path.name):
        return _read_table(path, kind[1].lower(), selection, groups)
    raise PredictionsError(
        "a file of predictions ends in .npz, .csv, .tsv (also with .gz, .bz2, .xz), or .parquet: "
        "save arrays by numpy.savez('x.npz', y_true=..., hypotheses=...)"
    )


def _read_npz(
    path: Path, selection: str | Sequence[str] | None, groups: str | None, max_bytes: int
) -> dict[str, Any]:
    from epistemic_calibration.data._arrays import array_shapes, read_arrays
    from epistemic_calibration.data.base import DataError

    if not isinstance(selection, str | None):
        raise PredictionsError("hypotheses= is the name of one array where the file is an .npz")
    if groups in ("y_true", selection or "hypotheses"):
        raise PredictionsError(f"{groups!r} holds no groups")
    called = {selection or "hypotheses": "hypotheses", groups or "groups": "groups"}
    try:
        found = list(array_shapes(path))
        _check_named(["y_true", *called][: 3 if groups else 2], found)
        names = [n for n in found if n in called or n in set(_ARRAYS) - set(called.values())]
        # The files of hypotheses of the benchmark hold their provenance besides.
        if selection is None:
            _refuse_unknown([n for n in found if n not in (*names, "provenance")])
        arrays = read_arrays(path, names, max_bytes)
    except DataError as error:
        raise PredictionsError(str(error).removeprefix(str(path)).lstrip(": ")) from None
    return {called.get(name, name): array for name, array in arrays.items()}


def _read_table(
    path: Path, kind: str, selection: str | Sequence[str] | None, groups: str | None
) -> tuple[dict[str, Any], list[str]]:
    import pandas as pd

    try:
        table = pd.read_parquet(path) if kind == "parquet" else _read_text(path, kind)
    except ImportError:
        raise PredictionsError("reading Parquet needs pyarrow; or save a .csv") from None
    # Broken files raise what each compression and format has of its own.
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise PredictionsError(f"cannot be read: {reason}. Is it complete?") from None
    names = table.columns = [str(name).strip() for name in table.columns]
    if len(table) == 0:
        raise PredictionsError("has a header and no samples")
    # R writes names of the rows, all different, in a column that has none itself.
    if table.index.nlevels > 1 or not table.index.is_unique:
        raise PredictionsError("the samples have more columns than the header")
    # The row numbers of pandas.
    if names[0] in ("Unnamed: 0", "") and table.iloc[:, 0].diff().dropna().eq(1).all():
        names = names[1:]
    _check_named(["y_true", groups][: 2 if groups else 1], names)
    if groups in set(_COLUMNS) - {"groups"}:
        raise PredictionsError(f"{groups!r} holds no groups")
    known = [name for name in _COLUMNS if name in names and name != "groups"]
    of_groups = groups or "groups"
    taken = hypotheses_among([n for n in names if n not in (*known, of_groups)], selection)
    columns = {name: to_numbers(name, table[name]) for name in (*known[1:], *taken)}
    arrays: dict[str, Any] = {"y_true": table["y_true"].to_numpy()}
    arrays |= {name: columns[name] for name in known[1:]}
    if of_groups in names:
        arrays["groups"] = table[of_groups].to_numpy()
    return arrays | {"hypotheses": np.stack([columns[name] for name in taken], axis=1)}, taken


def _read_text(path: Path, kind: str) -> Any:
    import pandas as pd

    options = {"encoding": "utf-8-sig", "skipinitialspace": True}
    lines = pd.read_csv(path, sep="\x1f", header=None, nrows=2, dtype=str, quoting=3, **options)
    header, *first = lines[0]
    separator = "\t" if kind == "tsv" else next((s for s in ",;\t" if s in header), ",")
    # Where spreadsheets write decimal commas, they separate by semicolons or tabs.
    decimal = "," if separator != "," and re.search(r"\d,\d", "".join(first)) else "."
    return pd.read_csv(path, sep=separator, decimal=decimal, **options)


def hypotheses_among(names: list[str], selection: str | Sequence[str] | None = None) -> list[str]:
    """Return the names of hypotheses: all, which must say so by one word, or those selected."""
    if selection is None:
        matches = [_NUMBERED.fullmatch(name) for name in names]
        _refuse_unknown([n for n, match in zip(names, matches, strict=True) if not match])
        if len({match[1].casefold() for match in matches}) == 1:
            return names
        what = f"of several kinds, {listed(names)}" if names else "which there are none of"
        raise PredictionsError(f"needs columns of hypotheses called h0, h1, ..., {what}")
    if isinstance(selection, str):
        wanted = [n for n in names if re.fullmatch(re.escape(selection) + _NUMBER, n)]
    else:
        wanted = [str(name) for name in selection]
    if not wanted or not set(wanted) <= set(names) or len(set(wanted)) < len(wanted):
        raise PredictionsError(
            f"hypotheses={selection!r} must name columns, each once, or the start of their names "
            f"before a number; there are {listed(names)}"
        )
    return wanted


def _check_named(wanted: Sequence[str], found: Sequence[str]) -> None:
    if missing := [name for name in wanted if name not in found]:
        holds = listed(found) if found else "nothing"
        raise PredictionsError(f"lacks {' and '.join(missing)}; it holds {holds}")


def _refuse_unknown(names: list[str]) -> None:
    if any("weight" in name.casefold() for name in names):
        raise PredictionsError(f"{listed(names)}: {WEIGHTS}")
    if names:
        raise PredictionsError(
            f"{listed(names)} are neither hypotheses nor known: columns of hypotheses are h0, h1, "
            f"... (or member_0, sample_0, tree0, 0 and the like); of several classes they go in an "
            f".npz. Known are {', '.join(_ARRAYS)}. Leave others out, or select with hypotheses="
        )
