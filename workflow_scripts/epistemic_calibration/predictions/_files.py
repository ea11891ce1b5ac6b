"""Reading files of predictions: archives of NumPy, tables as text, Parquet."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import lzma
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from epistemic_calibration.predictions._columns import take_columns
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

_OTHERS = ("label_counts", GROUPS, "class_names", "axes", "exchangeable")
_ARRAYS = ("y_true", "hypotheses", *OPTIONAL_ARRAYS, *COUNTS, *_OTHERS)
_NAMES = ("y_true", "class_names", GROUPS, "axes")
_OPENERS = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_TABLES = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")
_KINDS = {
    b"\x93NUMPY": "one array of NumPy (.npy)",
    b"PK\x03\x04": "an archive (an .npz, a spreadsheet or a PyTorch file)",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "compressed by gzip (.gz)",
    b"\x89HDF": "an HDF5 file",
    b"\x80": "a pickle, which is not read, since that would run code",
    b"MATLAB": "a MATLAB file",
}
_SAVE = "numpy.savez('x.npz', y_true=..., hypotheses=...)"


@dataclass
class Contents:
    """Of a file: arrays by name, names of the hypotheses in a table, notes and doubts."""

    arrays: dict[str, Any]
    columns: list[str] | None = None
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def read_file(
    path: Path, selection: str | Sequence[str] | None, groups: str | None = None
) -> Contents:
    """Return what a file of predictions holds, not yet checked."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]] or [""]
    packed = suffixes.pop() if suffixes[-1] in _OPENERS and len(suffixes) > 1 else ""
    suffix = suffixes[-1]
    if not (suffix in _TABLES or (suffix in (".npz", *_PARQUET) and not packed)):
        raise PredictionsError(
            f"a file of predictions ends in .npz, .csv, .tsv, .txt (also with .gz, .bz2, .xz), or "
            f".parquet: save arrays by {_SAVE}"
        )
    try:
        if path.stat().st_size == 0:
            raise PredictionsError("the file is empty")
        if suffix == ".npz":
            return _read_npz(path, selection, groups)
        if suffix in _PARQUET:
            return _read_parquet(path, selection, groups)
        with _OPENERS[packed](path, "rb") as file:
            return _read_text(file.read(), suffix, selection, groups)
    except PredictionsError:
        raise
    except PermissionError as error:
        raise PredictionsError(f"cannot be read: {error.strerror}") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, lzma.LZMAError, zlib.error) as error:
        reason = " ".join(str(error).split())[:200]
        raise PredictionsError(f"cannot be read: {reason}. Is it complete?") from None


def _kind(start: bytes) -> str | None:
    return next((kind for magic, kind in _KINDS.items() if start.startswith(magic)), None)


def _read_npz(path: Path, selection: str | Sequence[str] | None, groups: str | None) -> Contents:
    with path.open("rb") as file:
        start = file.read(8)
    # Of anything else NumPy would say how to unpickle it.
    if not start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        kind = _kind(start) or "no such archive"
        raise PredictionsError(f"is named .npz, but is {kind}: write it by {_SAVE}")
    source = "hypotheses" if selection is None else selection
    if not isinstance(source, str):
        raise PredictionsError("hypotheses= is the name of one array where the file is an .npz")
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
        found = [name for name in file.files if "/" not in name]
        if len(found) < len(file.files):
            raise PredictionsError(f"is an archive, but none of arrays: write it by {_SAVE}")
        missing = [name for name in ("y_true", source) if name not in found]
        if missing:
            hints = [name for name in found if meant(name, missing) and name not in _ARRAYS]
            hint = f"; rename {with_hint(hints[0], missing)}" if hints else ""
            raise PredictionsError(
                f"lacks {' and '.join(missing)}; it holds "
                f"{listed(found) if found else 'nothing'}{hint or f': write it by {_SAVE}'}"
            )
        if groups in (*_ARRAYS, source) and groups != GROUPS:
            raise PredictionsError(f"array {groups!r} cannot be the groups")
        if groups is not None and groups not in found:
            raise PredictionsError(f"has no array {groups!r} of groups; it holds {listed(found)}")
        of_groups = GROUPS if groups is None else groups
        skipped = ("hypotheses", GROUPS)
        wanted = [name for name in found if name in _ARRAYS and name not in skipped]
        others = [name for name in found if name not in (*wanted, source, of_groups)]
        close = [name for name in others if similar(name, set(_ARRAYS) - set(found))]
        if close and selection is None:
            raise PredictionsError(
                f"array(s) {with_hints(close, set(_ARRAYS) - set(found))} are not known: rename or "
                f"leave out"
            )
        arrays = {name: _member(file, name) for name in wanted}
        arrays["hypotheses"] = _member(file, source)
        if of_groups in found:
            arrays[GROUPS] = _member(file, of_groups)
    notes = [f"hypotheses are the array {source!r}, {arrays['hypotheses'].shape}"]
    if GROUPS in arrays:
        notes.append(f"groups are the array {of_groups!r}")
    if others:
        notes.append(f"not used: array(s) {listed(others)}")
    return Contents(arrays, notes=notes)


def _member(file: Any, name: str) -> np.ndarray:
    try:
        array = file[name]
    except ValueError as error:
        # NumPy's own words advise to allow pickles.
        if "allow_pickle" in str(error):
            what = "text, {}.astype(str)" if name in _NAMES else "numbers, {}.astype(float)"
            raise PredictionsError(
                f"array {name!r} holds Python objects, which are not read, since that would run "
                f"code: save {what.format(name)}"
            ) from None
        raise
    if not isinstance(array, np.ndarray):
        raise PredictionsError(f"{name!r} is no array: write the file by {_SAVE}")
    return array


def _read_parquet(
    path: Path, selection: str | Sequence[str] | None, groups: str | None
) -> Contents:
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except ImportError:
        raise PredictionsError(
            "reading Parquet needs pyarrow or fastparquet, and neither is installed: install one, "
            "or save a .csv"
        ) from None
    return _from_table([str(name) for name in table.columns], table, selection, groups)


def _from_table(names: list[str], table: Any, selection: Any, groups: str | None) -> Contents:
    if len(table) == 0:
        raise PredictionsError("has a header and no samples")
    table.columns = range(len(names))
    return Contents(*take_columns(names, table, selection, groups))


def _read_text(
    raw: bytes, suffix: str, selection: str | Sequence[str] | None, groups: str | None
) -> Contents:
    import pandas as pd

    kind = _kind(raw[:8])
    if kind:
        raise PredictionsError(f"is named {suffix}, but is {kind}")
    # Spreadsheets write "Unicode text" with this mark in front.
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(encoding).lstrip("\r\n")
    except UnicodeDecodeError:
        raise PredictionsError(f"is named {suffix}, but is no text in UTF-8: save it so") from None
    if not text.strip():
        raise PredictionsError("the file is empty")
    lines = itertools.islice((line for line in io.StringIO(text) if line.strip()), 2)
    delimiter, names = _header(next(lines), suffix)
    first = next((_fields(line, delimiter) for line in lines), None)
    if first is not None and len(first) == len(names) + 1 and first[0] and first[-1]:
        # R writes the names of the rows in a column that has none itself.
        names = ["", *names]
    if first is not None and len(first) != len(names):
        commas = " Decimal commas need another separator of columns." if delimiter == "," else ""
        raise PredictionsError(
            f"the header has {len(names)} columns, the first sample {len(first)}: columns are "
            f"separated by {delimiter!r}.{commas}"
        )

    def parse(decimal: str) -> pd.DataFrame:
        return pd.read_csv(
            io.StringIO(text),
            sep=delimiter,
            decimal=decimal,
            header=0,
            names=range(len(names)),
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
        )

    try:
        table = parse(".")
        if delimiter != "," and _has_decimal_commas(table):
            table = parse(",")
    except pd.errors.ParserError as error:
        reason = str(error).strip().rpartition("error: ")[2]
        raise PredictionsError(
            f"cannot be read as a table: {reason}: each line must have as many"
        ) from None
    return _from_table(names, table, selection, groups)


def _fields(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])


def _header(line: str, suffix: str) -> tuple[str, list[str]]:
    """Return what separates the columns, and their names."""
    candidates = ("\t", ",", ";", " ") if suffix == ".tsv" else (",", ";", "\t", " ")
    headers = {}
    for delimiter in candidates:
        # numpy.savetxt puts a # in front of its header.
        fields = _fields(line.removeprefix("# "), delimiter)
        headers[delimiter] = [name.strip() for name in fields]
    known = [d for d in candidates if len(headers[d]) > 1 and "y_true" in headers[d]]
    likely = max(candidates[:3], key=lambda d: len(headers[d]))
    delimiter = known[0] if known else likely
    return delimiter, headers[delimiter]


def _has_decimal_commas(table: Any) -> bool:
    import pandas as pd

    text = [c for c in table if not pd.api.types.is_numeric_dtype(table[c])]
    return any(
        table[c].astype(str).str.fullmatch(r"\s*[-+]?\d*,\d+(e-?\d+)?\s*").any() for c in text
    )
