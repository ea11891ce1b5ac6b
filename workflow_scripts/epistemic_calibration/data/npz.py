"""Arrays of images and labels in one ``.npz`` file of numpy."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epistemic_calibration.data.base import DataError, DataSource, ImageDataset, check_images
from epistemic_calibration.parameters import parameter


@dataclass(frozen=True, kw_only=True)
class Npz(DataSource):
    """A file with the arrays x_train, y_train, x_test, y_test and optionally class_names.

    Where it has an array label_counts, (n_test, n_classes), that is the data set's.

    Images are (n, height, width) or (n, height, width, channels), uint8 or floating point in
    [0, 1]. Labels are integers, which index class_names where they are given, or strings.
    """

    path: str = parameter(min_length=1, description="the file; relative paths start at data_dir")

    def load(self, data_dir: Path) -> ImageDataset:
        path = self._file(data_dir)
        arrays = _read(path, ("x_train", "y_train", "x_test", "y_test", "class_names"))
        names = _class_names(path, arrays)
        parts = {}
        for part in ("train", "test"):
            x, y = f"x_{part}", f"y_{part}"
            for key in (x, y):
                if key not in arrays:
                    raise DataError(f"{path} has no array {key}")
            images = arrays[x]
            images = images[..., None] if images.ndim == 3 else images
            labels = _label_indices(path, y, arrays, names)
            try:
                check_images(x, images)
            except DataError as error:
                raise DataError(f"{path}: {error}") from None
            if len(images) != len(labels):
                raise DataError(
                    f"{path}: {x} has {len(images)} images, but {y} {len(labels)} labels"
                )
            if images.dtype != np.uint8:
                images = images.astype(np.float32)
            chosen = self.chosen_rows(labels, part)
            parts[x], parts[y] = images[chosen], labels[chosen]
        test_rows = np.arange(len(labels))[chosen]
        return ImageDataset(**parts, class_names=names, test_rows=test_rows)

    def has_label_counts_inside(self, data_dir: Path) -> bool:
        path = self._file(data_dir)
        try:
            with np.load(path, allow_pickle=False) as file:
                return "label_counts" in file.files
        except Exception as error:
            raise _unreadable(path, error) from error

    def label_counts_inside(self, data_dir: Path) -> np.ndarray | None:
        return _read(self._file(data_dir), ("label_counts",)).get("label_counts")

    def class_names(self, data_dir: Path) -> tuple[str, ...]:
        path = self._file(data_dir)
        arrays = _read(path, ("class_names",)) or _read(path, ("y_train",))
        return _class_names(path, arrays)

    def inventory(self, data_dir: Path) -> dict[str, Any]:
        with self._file(data_dir).open("rb") as file:
            return {"sha256": hashlib.file_digest(file, "sha256").hexdigest()}

    def _file(self, data_dir: Path) -> Path:
        path = data_dir / Path(self.path).expanduser()
        if not path.is_file():
            raise DataError(f"no such file: {path} (config key datasets.<name>.path)")
        return path


def _read(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the arrays of ``names`` that the file has."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in names if name in file.files}
    # A broken zip archive raises BadZipFile, ValueError, zlib.error and others.
    except Exception as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path} cannot be read ({error}): it must be a file of numpy.savez without arrays of "
        f"Python objects"
    )


def _labels(path: Path, name: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    if name not in arrays:
        raise DataError(f"{path} has no array {name}")
    labels = arrays[name]
    if labels.ndim != 1 or labels.dtype.kind not in "iuU":
        raise DataError(
            f"{path}: {name} has shape {labels.shape} and dtype {labels.dtype}; it must be "
            f"(n_samples,), integers or strings"
        )
    return labels


def _class_names(path: Path, arrays: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    if "class_names" not in arrays:
        return tuple(str(label) for label in np.unique(_labels(path, "y_train", arrays)))
    names = arrays["class_names"]
    if names.ndim != 1 or names.dtype.kind != "U":
        raise DataError(
            f"{path}: class_names has shape {names.shape} and dtype {names.dtype}; it must be "
            f"one string a class"
        )
    if len(np.unique(names)) < len(names):
        raise DataError(f"{path}: class_names has a name twice: {', '.join(names)}")
    return tuple(str(name) for name in names)


def _label_indices(
    path: Path, name: str, arrays: Mapping[str, np.ndarray], class_names: tuple[str, ...]
) -> np.ndarray:
    labels = _labels(path, name, arrays)
    if labels.dtype.kind != "U" and "class_names" in arrays:
        wrong = labels[(labels < 0) | (labels >= len(class_names))]
        if len(wrong):
            raise DataError(
                f"{path}: {name} has the label {wrong[0]}, but class_names has "
                f"{len(class_names)} names: labels must lie in 0 ... {len(class_names) - 1}"
            )
        return labels.astype(np.int64)
    found, inverse = np.unique(labels, return_inverse=True)
    index = {name: k for k, name in enumerate(class_names)}
    unknown = [str(label) for label in found if str(label) not in index]
    if unknown:
        known = "class_names" if "class_names" in arrays else "y_train"
        raise DataError(f"{path}: {name} has the label {unknown[0]}, which {known} does not have")
    return np.array([index[str(label)] for label in found], dtype=np.int64)[inverse]
