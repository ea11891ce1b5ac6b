"""Reading files of predictions: archives of NumPy, tables as text, Parquet."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from epistemic_calibration.predictions._arrays import WEIGHTS, PredictionsError, listed
from epistemic_calibration.predictions._columns import KNOWN, take_columns, with_hints

_TABLES = {".csv": ",", ".tsv": "\t", ".txt": ","}
_OPENERS = {"": open, ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_ARRAYS = (*KNOWN, "hypotheses", "label_counts", "class_names", "axes", "exchangeable")
# What the files of hypotheses of the benchmark hold besides.
_IGNORED = ("provenance",)
_SAVE = "numpy.savez('x.npz', y_true=..., hypotheses=...)"


def read_file(
    path: Path, selection: str | Sequence[str] | None, groups: str | None, max_bytes: int
) -> tuple[dict[str, Any], list[str] | None]:
    """Return the arrays of a file, not yet checked, and the names of hypotheses in a table."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]] or [""]
    packed = suffixes.pop() if suffixes[-1] in _OPENERS and len(suffixes) > 1 else ""
    suffix = suffixes[-1]
    if not (suffix in _TABLES or (suffix in (".npz", ".parquet") and not packed)):
        raise PredictionsError(
            f"a file of predictions ends in .npz, .csv, .tsv, .txt (also with .gz, .bz2, .xz), or "
            f".parquet: save arrays by {_SAVE}"
        )
    if path.stat().st_size == 0:
        raise PredictionsError("the file is empty")
    if suffix == ".npz":
        return _read_npz(path, selection, groups, max_bytes), None
    return take_columns(_table(path, suffix, packed), selection, groups)


def _read_npz(
    path: Path, selection: str | Sequence[str] | None, groups: str | None, max_bytes: int
) -> dict[str, Any]:
    from epistemic_calibration.data._arrays import array_shapes, read_arrays
    from epistemic_calibration.data.base import DataError

    source = "hypotheses" if selection is None else selection
    if not isinstance(source, str):
        raise PredictionsError("hypotheses= is the name of one array where the file is an .npz")
    called = {source: "hypotheses", groups or "groups": "groups"}
    try:
        found = list(array_shapes(path))
        missing = [name for name in ("y_true", source) if name not in found]
        if groups is not None and (groups not in found or groups in ("y_true", source)):
            missing.append(groups)
        if missing:
            raise PredictionsError(
                f"lacks {' and '.join(missing)}; it holds "
                f"{listed(found) if found else 'no arrays'}: write it by {_SAVE}"
            )
        known = {*_ARRAYS, *called}
        unknown = [name for name in found if name not in {*known, *_IGNORED}]
        if any("weight" in name.casefold() for name in unknown):
            raise PredictionsError(f"array(s) {listed(unknown)}: {WEIGHTS}")
        if unknown and selection is None:
            raise PredictionsError(
                f"array(s) {with_hints(unknown, known - set(found))} are not known: rename or "
                f"leave out; known are {', '.join(_ARRAYS)}"
            )
        skipped = {"hypotheses", "groups"} - set(called)
        names = [name for name in found if name in known and name not in skipped]
        arrays = read_arrays(path, names, max_bytes, limit="max_bytes= of read_predictions")
    except DataError as error:
        raise PredictionsError(str(error).removeprefix(str(path)).lstrip(": ")) from None
    return {called.get(name, name): array for name, array in arrays.items()}


def _table(path: Path, suffix: str, packed: str) -> Any:
    import pandas as pd

    try:
        if suffix == ".parquet":
            table = pd.read_parquet(path)
        else:
            table = _read_text(path, _TABLES[suffix], packed)
    except ImportError:
        raise PredictionsError("reading Parquet needs pyarrow; or save a .csv") from None
    except UnicodeDecodeError:
        raise PredictionsError(f"is named {suffix}, but is no text in UTF-8") from None
    # Broken files raise what each compression and format has of its own.
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise PredictionsError(f"cannot be read: {reason}. Is it complete?") from None
    table.columns = [str(name).strip() for name in table.columns]
    if len(table) == 0:
        raise PredictionsError("has a header and no samples")
    # R writes names of the rows, all different, in a column that has none itself.
    if table.index.nlevels > 1 or not table.index.is_unique:
        raise PredictionsError("the samples have more columns than the header")
    # The row numbers of pandas.
    if table.columns[0] in ("Unnamed: 0", "") and table.iloc[:, 0].diff().dropna().eq(1).all():
        table = table.iloc[:, 1:]
    return table


def _read_text(path: Path, separator: str, packed: str) -> Any:
    import pandas as pd

    with _OPENERS[packed](path, "rt", encoding="utf-8-sig") as file:
        start = [file.readline(), file.readline()]
    # Where spreadsheets write decimal commas, they separate by semicolons.
    if separator not in start[0]:
        separator = next((s for s in (";", "\t", " ") if s in start[0]), separator)
    decimal = "," if separator != "," and re.search(r"\d,\d", start[1]) else "."
    return pd.read_csv(
        path, sep=separator, decimal=decimal, encoding="utf-8-sig", skipinitialspace=True
    )
