"""Features of the columns of a table: what each column is, and how it becomes numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from epistemic_calibration.data.base import DataError, logger, raise_faults

if TYPE_CHECKING:
    import pandas as pd

#: Rows from which on a column without a repetition is an identifier.
_MANY_ROWS = 20
_KINDS = ("number", "category")
_DATE = re.compile(r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].*)?\s*")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+\s*")
_ID_NAME = re.compile(r"(.*[ _.-])?(id|uuid|guid|index)|unnamed: ?0|", re.IGNORECASE)


def encoded_features(
    frame: pd.DataFrame,
    train: np.ndarray,
    test: np.ndarray,
    *,
    columns: Sequence[str] | None,
    drop: Collection[str],
    categorical: Collection[str],
    missing: Literal["refuse", "median", "most_frequent"],
    where: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the features of the training and of the test rows, in the order of the columns.

    Categories and what stands in for missing values are learnt from the training rows. A category
    that no training row has gives 0 in all features of its column. Both are float64.
    """
    names = _chosen(frame, columns, drop, categorical, where)
    # By all rows: of a part of them identifiers do not show.
    kinds = {
        name: _kind(name, frame[name], name in categorical, name in (columns or ()))
        for name in names
    }
    faults = [f"column {n!r} {kind}" for n, kind in kinds.items() if kind not in _KINDS]
    kinds = {name: kind for name, kind in kinds.items() if kind in _KINDS}
    frame = frame[names].iloc[np.concatenate([train, test])].reset_index(drop=True)
    n_train = len(train)
    faults += _faults_of_missing(frame[list(kinds)], n_train, missing)
    raise_faults(where, faults)
    blocks = {
        name: _numbers(frame[name], n_train, missing)
        if kind == "number"
        else _indicators(name, text_of(frame[name]), n_train)
        for name, kind in kinds.items()
    }
    n_features = {name: block.shape[1] for name, block in blocks.items()}
    logger.info("features of each column: %s", n_features)
    features = np.concatenate(list(blocks.values()), axis=1)
    return features[:n_train], features[n_train:]


def text_of(column: pd.Series) -> pd.Series:
    """Return a column as text, whole numbers without a decimal point; missing values stay."""
    import pandas as pd

    values = column.astype(object).where(column.notna(), None)
    if pd.api.types.is_float_dtype(column):
        whole = column.dropna().mod(1).eq(0).all()
        words = [None if v is None else str(int(v)) if whole else repr(float(v)) for v in values]
    else:
        words = [None if v is None else str(v) for v in values]
    return pd.Series(words, index=column.index, dtype=object)


def _chosen(
    frame: pd.DataFrame,
    columns: Sequence[str] | None,
    drop: Collection[str],
    categorical: Collection[str],
    where: str,
) -> list[str]:
    for key, given in (("columns", columns or ()), ("drop", drop), ("categorical", categorical)):
        unknown = [name for name in given if name not in frame.columns]
        if unknown:
            raise DataError(
                f"{where} has no column {unknown[0]!r} besides label and split (config key "
                f"datasets.<name>.{key})"
            )
    names = [n for n in frame.columns if n not in drop and (columns is None or n in columns)]
    if not names:
        raise DataError(f"{where} has no columns left that could be features")
    return names


def _kind(name: str, column: pd.Series, is_category: bool, is_named: bool) -> str:
    """Return "number" or "category", or what is wrong with a column, after its name."""
    import pandas as pd

    leave_out = f"leave it out with datasets.<name>.drop: [{name!r}]"
    values = column.dropna()
    if values.empty:
        return f"is empty: {leave_out}"
    if is_category:
        return "category"
    if pd.api.types.is_bool_dtype(values):
        return "number"
    if pd.api.types.is_numeric_dtype(values):
        n_infinite = int(np.isinf(values.to_numpy(dtype=np.float64)).sum())
        if n_infinite:
            return f"has {n_infinite:,} infinite values"
        if not is_named and _is_identifier(name, column):
            return (
                f"numbers the rows or identifies them: {leave_out}, or name it under columns if "
                f"it is a feature"
            )
        return "number"
    inner = pd.api.types.infer_dtype(values)
    if inner == "boolean":
        return "number"
    words = text_of(values).str.strip()
    is_time = any(word in inner for word in ("date", "time", "period"))
    if is_time or words.str.fullmatch(_DATE).mean() > 0.9:
        return f"holds dates or times, such as {words.iloc[0]}: {leave_out}"
    if words.str.fullmatch(_DECIMAL_COMMA).mean() > 0.5:
        return (
            f"holds numbers with decimal commas, such as {words.iloc[0]!r}: set "
            f'datasets.<name>.decimal: ","'
        )
    others = words[pd.to_numeric(words, errors="coerce").isna()]
    if others.empty and not isinstance(column.dtype, pd.CategoricalDtype):
        return "number"
    if len(others) <= len(words) / 2:
        shown = ", ".join(map(repr, others.unique()[:3]))
        return (
            f"holds numbers, but for {len(others):,} values such as {shown}: if they mean that "
            f"a value is missing, name them under datasets.<name>.missing_values; if the "
            f"column's values are categories, name it under categorical"
        )
    n_distinct = words.nunique()
    if len(words) >= _MANY_ROWS and n_distinct > len(words) / 2:
        return (
            f"has {n_distinct:,} different texts in {len(words):,} rows, such as "
            f"{words.iloc[0]!r}, as identifiers and free text have: {leave_out}"
        )
    return "category"


def _is_identifier(name: str, column: pd.Series) -> bool:
    if len(column) < _MANY_ROWS or not column.is_unique or column.isna().any():
        return False
    values = column.to_numpy(dtype=np.float64)
    if not np.all(values == np.round(values)):
        return False
    return np.ptp(values) + 1 == len(values) or _ID_NAME.fullmatch(name) is not None


def _faults_of_missing(frame: pd.DataFrame, n_train: int, missing: str) -> list[str]:
    counts = frame.isna().sum()
    counts = counts[counts > 0]
    if counts.empty:
        return []
    listed = ", ".join(f"{name} ({n:,})" for name, n in counts.items())
    if missing == "refuse":
        return [
            f"missing values in {listed}: set datasets.<name>.missing to median or most_frequent, "
            f"which are those of the training rows, or leave the columns out with "
            f"datasets.<name>.drop"
        ]
    logger.info("missing values filled in (%s): %s", missing, listed)
    empty = [name for name in counts.index if frame[name].iloc[:n_train].isna().all()]
    return [f"column {name!r} has no value in any training row" for name in empty]


def _numbers(column: pd.Series, n_train: int, missing: str) -> np.ndarray:
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(column):
        column = pd.to_numeric(column.astype(object))
    column = pd.Series(column.to_numpy(dtype=np.float64, na_value=np.nan))
    train = column.iloc[:n_train]
    if column.isna().any():
        column = column.fillna(train.median() if missing == "median" else train.mode()[0])
    return column.to_numpy()[:, None]


def _indicators(name: str, words: pd.Series, n_train: int) -> np.ndarray:
    import pandas as pd

    words = words.str.strip()
    words = words.fillna(words.iloc[:n_train].mode()[0])
    categories = sorted(words.iloc[:n_train].unique())
    codes = pd.Index(categories).get_indexer(words)
    unknown = words[codes < 0]
    if len(unknown):
        logger.warning(
            "column %s: categories that no training row has, 0 in all of its features: in %d of %d "
            "test rows (%s)",
            name,
            len(unknown),
            len(words) - n_train,
            ", ".join(sorted(unknown.unique())[:3]),
        )
    return (codes[:, None] == np.arange(len(categories))).astype(np.float64)
