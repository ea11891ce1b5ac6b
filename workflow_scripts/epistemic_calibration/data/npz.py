"""Arrays of images or features, and labels, in one ``.npz`` file of numpy."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from epistemic_calibration.data._arrays import MAX_BYTES, array_shapes, read_arrays
from epistemic_calibration.data.base import (
    DataError,
    Dataset,
    DataSource,
    check_inputs,
    file_sha256,
    logger,
    raw_file,
)
from epistemic_calibration.parameters import parameter

#: What arrays are called, the first name that a file has counts: ours, MedMNIST's.
_NAMES = {
    "x_train": ("x_train", "train_images"),
    "y_train": ("y_train", "train_labels"),
    "x_test": ("x_test", "test_images"),
    "y_test": ("y_test", "test_labels"),
}
#: Left out: a benchmark chooses nothing by a validation set.
_UNUSED = ("val_images", "val_labels", "x_val", "y_val")


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
    channel_axis: Literal["first", "last"] | None = parameter(
        None,
        description="where the channels of images of four axes are; by default the axis of length "
        "1 or 3",
    )
    max_bytes: int = parameter(
        MAX_BYTES,
        ge=1,
        description="bytes of memory beyond which the file is not unpacked",
    )

    def load(self, data_dir: Path) -> Dataset:
        path = self._file(data_dir)
        found = array_shapes(path)
        own = {name: _own_name(path, name, found) for name in _NAMES}
        arrays = self._read(path, {*own.values(), "class_names"})
        if unused := [name for name in _UNUSED if name in found]:
            logger.info("%s: not used: %s", path, ", ".join(f"{n} {found[n]}" for n in unused))
        names = _class_names(path, own["y_train"], arrays)
        parts = {}
        for part in ("train", "test"):
            x, y = own[f"x_{part}"], own[f"y_{part}"]
            inputs = _inputs(path, x, arrays[x], self.channel_axis)
            labels = _label_indices(path, y, arrays, names, own["y_train"])
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

    def has_label_counts_inside(self, data_dir: Path) -> bool:
        return "label_counts" in array_shapes(self._file(data_dir))

    def label_counts_inside(self, data_dir: Path) -> np.ndarray | None:
        return self._read(self._file(data_dir), ["label_counts"]).get("label_counts")

    def class_names(self, data_dir: Path) -> tuple[str, ...]:
        path = self._file(data_dir)
        found = array_shapes(path)
        y_train = "y_train" if "class_names" in found else _own_name(path, "y_train", found)
        name = "class_names" if "class_names" in found else y_train
        return _class_names(path, y_train, self._read(path, [name]))

    def inventory(self, data_dir: Path) -> dict[str, Any]:
        return {"sha256": file_sha256(self._file(data_dir))}

    def _file(self, data_dir: Path) -> Path:
        return raw_file(data_dir, self.path, "path")

    def _read(self, path: Path, names: Collection[str]) -> dict[str, np.ndarray]:
        return read_arrays(path, names, self.max_bytes)


def _own_name(path: Path, name: str, found: Collection[str]) -> str:
    """Return what the file calls an array."""
    for candidate in _NAMES[name]:
        if candidate in found:
            return candidate
    held = f"it holds {', '.join(sorted(found))}" if found else "it holds no arrays"
    raise DataError(f"{path} has no array {' or '.join(_NAMES[name])}; {held}")


def _inputs(path: Path, name: str, inputs: np.ndarray, channel_axis: str | None) -> np.ndarray:
    if inputs.ndim == 2:
        if inputs.dtype.kind not in "biuf":
            raise DataError(f"{path}: {name} has dtype {inputs.dtype}; features must be numbers")
        # Not to float32, which does not tell large numbers apart; that is done once scaled.
        inputs = inputs if inputs.dtype in (np.float32, np.float64) else inputs.astype(np.float64)
    elif inputs.ndim == 3:
        inputs = inputs[..., None]
    elif inputs.ndim == 4:
        inputs = _channels_last(path, name, inputs, channel_axis)
    try:
        check_inputs(name, inputs)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    # Floating-point images, of any precision.
    return inputs.astype(np.float32) if inputs.ndim == 4 and inputs.dtype != np.uint8 else inputs


def _channels_last(path: Path, name: str, images: np.ndarray, axis: str | None) -> np.ndarray:
    may_be_first, may_be_last = (images.shape[k] in (1, 3) for k in (1, 3))
    if axis is None and may_be_first and may_be_last:
        raise DataError(
            f"{path}: {name} has shape {images.shape}; the channels may be its second or its last "
            f"axis: set datasets.<name>.channel_axis to first or last"
        )
    if axis == "first" or (axis is None and may_be_first):
        logger.info("%s: %s has shape %s: channels first", path, name, images.shape)
        return np.moveaxis(images, 1, -1)
    return images


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
    if len(np.unique(names)) < len(names):
        raise DataError(f"{path}: class_names has a name twice: {', '.join(names)}")
    return tuple(str(name) for name in names)


def _label_indices(
    path: Path,
    name: str,
    arrays: Mapping[str, np.ndarray],
    class_names: tuple[str, ...],
    y_train: str,
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
        known = "class_names" if "class_names" in arrays else y_train
        raise DataError(f"{path}: {name} has the label {unknown[0]}, which {known} does not have")
    return np.array([index[str(label)] for label in found], dtype=np.int64)[inverse]
