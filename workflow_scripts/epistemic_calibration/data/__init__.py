"""Inputs and labels: images from torchvision or folders of files, features from tables, or either.

A *source* is a file of this folder that says how inputs are found and read: see
`epistemic_calibration.data.base.DataSource`. A *source config* is the part of a data set's
block in the configuration that says where its inputs come from: ``source``, the file's name,
and that source's own keys. What is needed to plan a run (class names, a fingerprint of the
raw data) is found without loading images. Functions that take a source config and a folder take
them as `load_dataset` does, and raise the same errors.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from epistemic_calibration import registry
from epistemic_calibration.data.base import (
    DataError,
    Dataset,
    DataSource,
    MissingDataError,
    check_class_names,
    logger,
    task_names,
)

__all__ = [
    "DataError",
    "DataSource",
    "Dataset",
    "MissingDataError",
    "available_sources",
    "class_names_of",
    "has_features",
    "has_label_counts",
    "label_counts_inventory",
    "load_dataset",
    "load_label_counts",
    "load_source",
    "make_source",
    "raw_inventory",
    "task_names",
]


def available_sources() -> tuple[str, ...]:
    """Return the names of the sources, sorted.

    Examples
    --------
    >>> "image_folder" in available_sources()
    True
    """
    return registry.available(__name__)


def load_source(name: str) -> type[DataSource]:
    """Return the class of a source.

    Raises
    ------
    ValueError
        If there is no source of that name, or its file does not define exactly one.

    Examples
    --------
    >>> load_source("sklearn")(name="load_digits").test_fraction
    0.5
    """
    return registry.only_class(registry.load(__name__, name), DataSource)


def load_dataset(source_config: Mapping[str, Any], data_dir: str | Path) -> Dataset:
    """Load a data set, and check it.

    Parameters
    ----------
    source_config : mapping
        ``source``, and that source's keys: the fields of its class, `load_source`. Other
        keys of a data set's block do no harm.
    data_dir : path
        Where raw data lie or are downloaded to; relative paths start there.

    Raises
    ------
    DataError
        If raw data are missing, broken, or no data set to learn from.
    ValueError
        If a key has a wrong value.
    TypeError
        If a key is missing.

    Examples
    --------
    >>> digits = load_dataset({"source": "sklearn", "name": "load_digits"}, "data")
    >>> digits.x_train.shape, digits.x_test.shape
    ((898, 8, 8, 1), (899, 8, 8, 1))
    """
    source = make_source(source_config)
    if source.annotations is None:
        data = source.load(Path(data_dir))
    else:
        data = _label_module().hold_out(source, Path(data_dir))
    try:
        data.check()
    except DataError as error:
        where = source_config.get("path", source_config.get("name", ""))
        raise DataError(f"{source_config['source']} {where}".rstrip() + f": {error}") from None
    if source.has_features(Path(data_dir)) != (data.x_train.ndim == 2):
        raise DataError(
            f"{source_config['source']}: x_train has shape {data.x_train.shape}, but "
            f"`has_features` of this source says otherwise"
        )
    logger.info(
        "%d training and %d test inputs of shape %s, %d classes",
        len(data.x_train),
        len(data.x_test),
        data.x_train.shape[1:],
        len(data.class_names),
    )
    return data


def make_source(source_config: Mapping[str, Any]) -> DataSource:
    """Return the source that a config describes.

    Examples
    --------
    >>> make_source({"source": "sklearn", "name": "load_iris"}).has_features(Path("data"))
    True
    """
    source = load_source(source_config["source"])
    names = [field.name for field in dataclasses.fields(source)]
    return source(**{name: source_config[name] for name in names if name in source_config})


def class_names_of(source_config: Mapping[str, Any], data_dir: str | Path) -> tuple[str, ...]:
    """Return the class names of a data set, as `load_dataset` orders them, without inputs.

    Examples
    --------
    >>> class_names_of({"source": "torchvision", "name": "CIFAR10"}, "data")[:3]
    ('airplane', 'automobile', 'bird')
    """
    names = make_source(source_config).class_names(Path(data_dir))
    check_class_names(names)
    return names


def has_features(source_config: Mapping[str, Any], data_dir: str | Path) -> bool:
    """Return whether inputs are features, (n_samples, n_features), not images."""
    return make_source(source_config).has_features(Path(data_dir))


def has_label_counts(source_config: Mapping[str, Any], data_dir: str | Path) -> bool:
    """Return whether several labels of each test input are known, without reading them."""
    return make_source(source_config).has_label_counts(Path(data_dir))


def raw_inventory(source_config: Mapping[str, Any], data_dir: str | Path) -> dict[str, Any]:
    """Return what tells a data set's raw data from others, without reading inputs.

    For a folder it depends on the names and sizes of its files, for an .npz file or a table on
    its content, for the standard data sets on the name; never on modification times or on
    where the data lie.

    Examples
    --------
    >>> raw_inventory({"source": "torchvision", "name": "MNIST"}, "data")
    {'source': 'torchvision', 'name': 'MNIST'}
    """
    source = make_source(source_config)
    inventory = {"source": source_config["source"], **source.inventory(Path(data_dir))}
    if source.annotations is not None:
        inventory["annotations"] = label_counts_inventory(source_config, data_dir)
    return inventory


def label_counts_inventory(
    source_config: Mapping[str, Any], data_dir: str | Path
) -> dict[str, Any]:
    """Return what tells the several labels of a data set from others.

    Examples
    --------
    >>> config = {"source": "torchvision", "name": "CIFAR10", "label_counts": "cifar10h"}
    >>> label_counts_inventory(config, "data")["name"]
    'cifar10h'
    """
    source = make_source(source_config)
    for kind in ("label_counts", "annotations"):
        if (given := getattr(source, kind)) is not None:
            return _label_module().labels_inventory(given, kind, Path(data_dir))
    return source.inventory(Path(data_dir))


def load_label_counts(
    source_config: Mapping[str, Any],
    data_dir: str | Path,
    *,
    y_test: np.ndarray,
    test_rows: np.ndarray,
    class_names: tuple[str, ...],
) -> np.ndarray:
    """Return how many people gave each class to each test input: int64, (n_test, n_classes).

    The source must have label counts (`DataSource.has_label_counts`); ``y_test``, ``test_rows``
    and ``class_names`` are those of the `Dataset` that `load_dataset` returns. A `DataError` is
    raised also if the counts are of other inputs, or in another order: the class that most people
    gave must be the label more often than by chance.
    """
    return _label_module().label_counts_of(
        make_source(source_config), Path(data_dir), y_test, test_rows, class_names
    )


def _label_module() -> ModuleType:
    # By name, as sources are: it needs libraries that most who import this package do not.
    return importlib.import_module(f"{__name__}._several_labels")
