"""Arrays of images or features, and labels, in one ``.npz`` file of numpy."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epistemic_calibration.data._arrays import array_shapes, read_arrays
from epistemic_calibration.data.base import (
    DataError,
    Dataset,
    DataSource,
    check_inputs,
    logger,
    raw_file,
)
from epistemic_calibration.files import file_digest
from epistemic_calibration.parameters import parameter

#: What arrays are called, the first name that a file has counts: ours, MedMNIST's.
_NAMES = {
    "x_train": ("x_train", "train_images"),
    "y_train": ("y_train", "train_labels"),
    "x_test": ("x_test", "test_images"),
    "y_test": ("y_test", "test_labels"),
}


@dataclass(frozen=True, kw_only=True)
class Npz(DataSource):
    """A file with the arrays x_train, y_train, x_test, y_test and optionally class_names.

    The names of MedMNIST, train_images, train_labels, test_images and test_labels, are read, too.
    Where it has an array label_counts, (n_test, n_classes), that is the data set's.

    Images are (n, height, width), (n, height, width, channels) or (n, channels, height, width),
    uint8 or floating point in [0, 1]; features are (n, n_features), numbers. Labels, (n,) or
    (n, 1), are integers, which index class_names where they are given, or strings.
    """

    path: str = parameter(min_length=1, description="the file; relative paths start at data_dir")

    def load(self, data_dir: Path) -> Dataset:
        path = self._file(data_dir)
        own = {name: _own_name(path, name, array_shapes(path)) for name in _NAMES}
        arrays = read_arrays(path, {*own.values(), "class_names"})
        names = _class_names(path, own["y_train"], arrays)
        parts = {}
        for part in ("train", "test"):
            x, y = own[f"x_{part}"], own[f"y_{part}"]
            inputs = _inputs(path, x, arrays[x])
            labels = _label_indices(path, y, arrays, names)
            if len(inputs) != len(labels):
                raise DataError(
                    f"{path}: {x} has {len(inputs)} inputs, but {y} {len(labels)} labels"
                )
            chosen = self.chosen_rows(labels, part)
            parts[f"x_{part}"], parts[f"y_{part}"] = inputs[chosen], labels[chosen]
        test_rows = np.arange(len(labels))[chosen]
        return Dataset(**parts, class_names=names, test_rows=test_rows)

    def has_features(self, data_dir: Path) -> bool:
        path = self._file(data_dir)
        found = array_shapes(path)
        return len(found[_own_name(path, "x_train", found)]) == 2

    def has_label_counts(self, data_dir: Path) -> bool:
        inside = "label_counts" in array_shapes(self._file(data_dir))
        return super().has_label_counts(data_dir) or inside

    def label_counts_inside(self, data_dir: Path) -> np.ndarray | None:
        return read_arrays(self._file(data_dir), ["label_counts"]).get("label_counts")

    def class_names(self, data_dir: Path) -> tuple[str, ...]:
        path = self._file(data_dir)
        found = array_shapes(path)
        y_train = "y_train" if "class_names" in found else _own_name(path, "y_train", found)
        name = "class_names" if "class_names" in found else y_train
        return _class_names(path, y_train, read_arrays(path, [name]))

    def inventory(self, data_dir: Path) -> dict[str, Any]:
        return {"sha256": file_digest(self._file(data_dir))}

    def _file(self, data_dir: Path) -> Path:
        return raw_file(data_dir, self.path, "path")


def _own_name(path: Path, name: str, found: Collection[str]) -> str:
    """Return what the file calls an array."""
    for candidate in _NAMES[name]:
        if candidate in found:
            return candidate
    held = ", ".join(sorted(found)) or "no arrays"
    raise DataError(f"{path} has no array {' or '.join(_NAMES[name])}; it holds {held}")


def _inputs(path: Path, name: str, inputs: np.ndarray) -> np.ndarray:
    if inputs.ndim == 2 and inputs.dtype.kind in "biu":
        # Not to float32, which does not tell large numbers apart; that is done once scaled.
        inputs = inputs.astype(np.float64)
    elif inputs.ndim == 3:
        inputs = inputs[..., None]
    elif inputs.ndim == 4 and inputs.shape[1] in (1, 3):
        if inputs.shape[3] in (1, 3):
            raise DataError(
                f"{path}: {name} has shape {inputs.shape}; the channels may be its second or its "
                f"last axis: save images of one channel as (n, height, width)"
            )
        logger.info("%s: %s has shape %s: channels first", path, name, inputs.shape)
        inputs = np.moveaxis(inputs, 1, -1)
    try:
        check_inputs(name, inputs)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if inputs.dtype in (np.uint8, np.float32) or (inputs.ndim == 2 and inputs.dtype == np.float64):
        return inputs
    return inputs.astype(np.float32 if inputs.ndim == 4 else np.float64)


def _labels(path: Path, name: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    labels = arrays[name]
    # MedMNIST has a column of labels.
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1 or labels.dtype.kind not in "iuU":
        raise DataError(
            f"{path}: {name} has shape {labels.shape} and dtype {labels.dtype}; it must be "
            f"(n_samples,) or (n_samples, 1), integers or strings"
        )
    return labels


def _class_names(path: Path, y_train: str, arrays: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    if "class_names" not in arrays:
        return tuple(str(label) for label in np.unique(_labels(path, y_train, arrays)))
    names = arrays["class_names"]
    if names.ndim != 1 or names.dtype.kind != "U":
        raise DataError(
            f"{path}: class_names has shape {names.shape} and dtype {names.dtype}; it must be "
            f"one string a class"
        )
    return tuple(str(name) for name in names)


def _label_indices(
    path: Path,
    name: str,
    arrays: Mapping[str, np.ndarray],
    class_names: tuple[str, ...],
) -> np.ndarray:
    labels = _labels(path, name, arrays)
    if labels.dtype.kind != "U" and "class_names" in arrays:
        # That they index the classes is checked of every data set.
        return labels.astype(np.int64)
    found, inverse = np.unique(labels, return_inverse=True)
    index = {name: k for k, name in enumerate(class_names)}
    unknown = [str(label) for label in found if str(label) not in index]
    if unknown:
        raise DataError(
            f"{path}: {name} has the label {unknown[0]}; the classes are {', '.join(class_names)}"
        )
    return np.array([index[str(label)] for label in found], dtype=np.int64)[inverse]
