"""Features and labels in the columns of a table: a CSV or Parquet file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from epistemic_calibration.data._columns import encoded_features, text_of
from epistemic_calibration.data._split import stratified_split
from epistemic_calibration.data.base import (
    DataError,
    Dataset,
    DataSource,
    logger,
    raw_file,
)
from epistemic_calibration.files import file_digest
from epistemic_calibration.parameters import parameter

if TYPE_CHECKING:
    import pandas as pd

_PARQUET = (".parquet", ".pq")
#: What a split column may say, and what it means; validation rows are left out, since a
#: benchmark chooses nothing by them.
_PARTS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("test", "testing"), "test"),
    **dict.fromkeys(("val", "valid", "validation"), "unused"),
}
_DEFAULT_TEST_FRACTION = 0.5
#: What pandas takes for a missing value.
_MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)


@dataclass(frozen=True, kw_only=True)
class Table(DataSource):
    """A table with a column of labels, and features in the others.

    A .csv, .tsv or .txt file, also compressed, or .parquet. Columns of text are categories, one
    feature for each category that the training rows have; all others are numbers. What is an
    identifier, a date or free text is refused by the column's name.

    The test set is another table (``test_path``), the rows that a column says (``split``), or a
    part of the rows drawn at random, with the classes in their proportions (``test_fraction``).
    """

    path: str = parameter(min_length=1, description="the table; relative paths start at data_dir")
    label: str = parameter(min_length=1, description="column of the labels")
    columns: tuple[str, ...] | None = parameter(
        None, min_length=1, description="columns that are features; all others by default"
    )
    drop: tuple[str, ...] | None = parameter(None, description="columns to leave out")
    categorical: tuple[str, ...] | None = parameter(
        None, description="columns of numbers that are categories, such as codes"
    )
    missing: Literal["refuse", "median", "most_frequent"] = parameter(
        "refuse",
        description="what becomes of missing values: refuse, or the median or most frequent value "
        "of the training rows; categories take the most frequent with both",
    )
    missing_values: tuple[str, ...] | None = parameter(
        None, description="what a missing value is called, besides nothing, NA, NaN, null and such"
    )
    test_path: str | None = parameter(
        None, min_length=1, description="table of the test set, with the same columns"
    )
    split: str | None = parameter(
        None, min_length=1, description="column that says train or test in each row"
    )
    test_fraction: float | None = parameter(
        None, gt=0, lt=1, description="fraction of the rows that is the test set; 0.5 by default"
    )
    split_seed: int = parameter(0, ge=0, description="seed that draws the test set")
    separator: str | None = parameter(
        None,
        min_length=1,
        description="one character between columns; by default a comma, in .tsv a tab",
    )
    decimal: Literal[".", ","] = parameter(".", description="decimal point or comma of numbers")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.separator is not None and len(self.separator) != 1:
            raise ValueError(f"datasets.<name>.separator: {self.separator!r} is no one character")
        given = [k for k in ("test_path", "split", "test_fraction") if getattr(self, k) is not None]
        if len(given) > 1:
            raise ValueError(
                f"datasets.<name>.{given[1]}: the test set is given by {given[0]} already; give "
                f"one of test_path, split and test_fraction"
            )
        if self.columns is not None and self.drop is not None:
            raise ValueError("datasets.<name>.drop: give the features by columns or drop, not both")
        if self.annotations is not None:
            raise ValueError(
                "datasets.<name>.annotations: a table takes none, since how it is encoded is "
                "learnt from its training rows; give one person's labels as label, and "
                "label_counts for the test rows"
            )

    def load(self, data_dir: Path) -> Dataset:
        frame, parts = self._rows(data_dir, only_labels=False)
        names = _class_names(frame, parts, self.label)
        index = {name: k for k, name in enumerate(names)}
        labels = frame[self.label].map(index).to_numpy()
        rows = {part: parts[part][self.chosen_rows(labels[parts[part]], part)] for part in parts}
        x_train, x_test = encoded_features(
            frame.drop(columns=[self.label, *([self.split] if self.split else [])]),
            rows["train"],
            rows["test"],
            columns=self.columns,
            drop=self.drop or (),
            categorical=self.categorical or (),
            missing=self.missing,
            where=str(raw_file(data_dir, self.path, "path")),
        )
        return Dataset(
            x_train=x_train,
            y_train=labels[rows["train"]].astype(np.int64),
            x_test=x_test,
            y_test=labels[rows["test"]].astype(np.int64),
            class_names=names,
            test_rows=np.searchsorted(parts["test"], rows["test"]),
        )

    def has_features(self, data_dir: Path) -> bool:
        return True

    def class_names(self, data_dir: Path) -> tuple[str, ...]:
        frame, parts = self._rows(data_dir, only_labels=True)
        return _class_names(frame, parts, self.label)

    def inventory(self, data_dir: Path) -> dict[str, Any]:
        return {
            f"{key}_sha256": file_digest(raw_file(data_dir, getattr(self, key), key))
            for key in ("path", "test_path")
            if getattr(self, key) is not None
        }

    def _rows(
        self, data_dir: Path, *, only_labels: bool
    ) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
        """Return all rows, those of ``test_path`` last, and which are training and test set.

        Labels are text, and checked.
        """
        import pandas as pd

        path = raw_file(data_dir, self.path, "path")
        needed = [self.label, *([self.split] if self.split else [])]
        wanted = needed if only_labels else None
        frames = [self._read(path, needed, wanted)]
        if self.test_path is not None:
            test_path = raw_file(data_dir, self.test_path, "test_path")
            test = self._read(test_path, needed, wanted)
            lacking = [str(name) for name in frames[0].columns if name not in test.columns]
            kept = self.columns if self.columns is not None else lacking
            lacking = [name for name in lacking if name in kept and name not in (self.drop or ())]
            if lacking:
                raise DataError(f"{test_path} lacks columns of {path}: {', '.join(lacking[:5])}")
            frames.append(test.reindex(columns=frames[0].columns))
        frame = pd.concat(frames, ignore_index=True)
        labels = frame[self.label]
        if (n_labels := labels.nunique()) > len(frame) / 2:
            raise DataError(
                f"{path}: column {self.label!r} has {n_labels:,} different labels in "
                f"{len(frame):,} rows; a class needs several rows (numbers to predict are no "
                f"classes)"
            )
        if self.test_path is not None:
            n_train = len(frames[0])
            parts = {"train": np.arange(n_train), "test": np.arange(n_train, len(frame))}
        elif self.split is not None:
            parts = _said_by(frame[self.split], path, self.split)
        else:
            fraction = self.test_fraction or _DEFAULT_TEST_FRACTION
            split = stratified_split(labels.to_numpy(), fraction, self.split_seed)
            parts = dict(zip(("train", "test"), split, strict=True))
        for part, rows in parts.items():
            if not len(rows):
                raise DataError(f"{path}: no row is of the {part} set")
        unknown = sorted(set(labels.iloc[parts["test"]]) - set(labels.iloc[parts["train"]]))
        if unknown:
            raise DataError(
                f"{path}: the test set has the label {unknown[0]!r} in column {self.label!r}, "
                f"which no training row has"
            )
        return frame, parts

    def _read(self, path: Path, needed: list[str], wanted: list[str] | None) -> pd.DataFrame:
        parquet = self._read_parquet(path) if path.suffix.lower() in _PARQUET else None
        names = self._column_names(path) if parquet is None else list(parquet.columns)
        for key, name in zip(("label", "split"), needed, strict=False):
            if name not in names:
                more = "; is datasets.<name>.separator right?" if len(names) == 1 else ""
                raise DataError(
                    f"{path} has no column {name!r} (config key datasets.<name>.{key}); it has "
                    f"{', '.join(names)}{more}"
                )
        if parquet is None:
            frame = self._read_text(path, names, wanted)
        else:
            frame = parquet if wanted is None else parquet[wanted]
        if len(frame) == 0:
            raise DataError(f"{path} has a header and no rows")
        labels = text_of(frame[self.label]).str.strip()
        lacking = labels.isna() | (labels == "")
        if lacking.any():
            first = int(np.flatnonzero(lacking)[0]) + 1
            raise DataError(
                f"{path}: no label in column {self.label!r} in {int(lacking.sum()):,} of "
                f"{len(frame):,} rows, first in row {first}: fill it in or take the rows out"
            )
        return frame.assign(**{self.label: labels})

    def _column_names(self, path: Path) -> list[str]:
        head = self._parsed(path, header=None, nrows=2, dtype=str, keep_default_na=False)
        names = [str(name).strip() for name in head.iloc[0]]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DataError(f"{path} has a column twice: {', '.join(map(repr, twice))}")
        return names

    def _read_parquet(self, path: Path) -> pd.DataFrame:
        import pandas as pd

        try:
            frame = pd.read_parquet(path)
        except ImportError:
            raise DataError(
                f"{path}: reading Parquet needs pyarrow, which is not installed: install it, or "
                f"save a .csv"
            ) from None
        # A broken file raises what the library behind pandas does.
        except Exception as error:
            raise _unreadable(path, error) from None
        return frame.reset_index(drop=True).rename(columns=str)

    def _read_text(self, path: Path, names: list[str], wanted: list[str] | None) -> pd.DataFrame:
        missing = [*_MISSING, *(self.missing_values or ())]
        return self._parsed(
            path,
            header=0,
            names=names,
            index_col=False,
            usecols=wanted,
            decimal=self.decimal,
            # A class may be called "None" or "NA".
            keep_default_na=False,
            na_values={name: missing for name in names if name != self.label},
            dtype=dict.fromkeys(filter(None, (self.label, self.split)), str),
            low_memory=False,
        )

    def _parsed(self, path: Path, **options: Any) -> pd.DataFrame:
        import pandas as pd

        try:
            return pd.read_csv(
                path,
                sep=self.separator or ("\t" if ".tsv" in path.suffixes else ","),
                skipinitialspace=True,
                encoding="utf-8-sig",
                **options,
            )
        except pd.errors.EmptyDataError:
            raise DataError(f"{path} is empty") from None
        except UnicodeDecodeError:
            raise DataError(
                f"{path} is no text in UTF-8: save it as that, or as Parquet (.parquet)"
            ) from None
        # Of a broken archive or a line with other columns; the classes have no common base.
        except Exception as error:
            raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = " ".join(str(error).split()).rpartition("error: ")[2][:200]
    return DataError(f"{path} cannot be read as a table: {reason or type(error).__name__}")


def _said_by(column: pd.Series, path: Path, name: str) -> dict[str, np.ndarray]:
    said = text_of(column).fillna("").str.strip().str.lower()
    unknown = [value for value in said.unique() if value not in _PARTS]
    if unknown:
        raise DataError(
            f"{path}: column {name!r} says {unknown[0]!r} (config key datasets.<name>.split); it "
            f"must say train or test in each row"
        )
    part = said.map(_PARTS)
    if n_unused := int((part == "unused").sum()):
        logger.info("%s: %d rows of the validation set are not used", path, n_unused)
    return {name: np.flatnonzero(part == name) for name in ("train", "test")}


def _class_names(frame: pd.DataFrame, parts: dict[str, np.ndarray], label: str) -> tuple[str, ...]:
    names = [str(name) for name in frame[label].iloc[parts["train"]].unique()]
    try:
        # Labels that are numbers are ordered as such.
        return tuple(sorted(names, key=lambda name: (float(name), name)))
    except ValueError:
        return tuple(sorted(names))
