"""The data sets of scikit-learn: digits as images, and tables of features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from epistemic_calibration.data._download import socket_timeout
from epistemic_calibration.data._split import stratified_split
from epistemic_calibration.data.base import DataError, Dataset, DataSource
from epistemic_calibration.parameters import parameter

_CLASSES = {
    "load_digits": tuple("0123456789"),
    "load_breast_cancer": ("malignant", "benign"),
    "load_iris": ("setosa", "versicolor", "virginica"),
    "load_wine": ("class_0", "class_1", "class_2"),
    # Names of UCI, whose numbers 1 to 7 scikit-learn gives.
    "fetch_covtype": (
        "Spruce/Fir",
        "Lodgepole Pine",
        "Ponderosa Pine",
        "Cottonwood/Willow",
        "Aspen",
        "Douglas-fir",
        "Krummholz",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Sklearn(DataSource):
    """A data set of scikit-learn: load_digits are images, all others features.

    scikit-learn does not split them: the test set is drawn at random, with the classes in
    their proportions. The pixels of the digits, 0 ... 16, become float32 in [0, 1]. What is not
    inside scikit-learn (fetch_...) is downloaded to ``data_dir`` unless it is there.
    """

    name: Literal[
        "load_digits", "load_breast_cancer", "load_iris", "load_wine", "fetch_covtype"
    ] = parameter(description="function of sklearn.datasets")
    test_fraction: float = parameter(
        0.5, gt=0, lt=1, description="fraction of the inputs that is the test set"
    )
    split_seed: int = parameter(0, ge=0, description="seed that draws the test set")

    def load(self, data_dir: Path) -> Dataset:
        x, y = self._inputs_and_labels(data_dir)
        parts = {}
        split = stratified_split(y, self.test_fraction, self.split_seed)
        for part, rows in zip(("train", "test"), split, strict=True):
            chosen = self.chosen_rows(y[rows], part)
            test_rows, rows = np.arange(len(rows))[chosen], rows[chosen]
            parts[f"x_{part}"] = x[rows]
            parts[f"y_{part}"] = y[rows].astype(np.int64)
        return Dataset(**parts, class_names=self.class_names(data_dir), test_rows=test_rows)

    def has_features(self, data_dir: Path) -> bool:
        return self.name != "load_digits"

    def class_names(self, data_dir: Path) -> tuple[str, ...]:
        return _CLASSES[self.name]

    def inventory(self, data_dir: Path) -> dict[str, Any]:
        return {"name": self.name}

    def _inputs_and_labels(self, data_dir: Path) -> tuple[np.ndarray, np.ndarray]:
        from sklearn import datasets

        function = getattr(datasets, self.name)
        if self.name == "fetch_covtype":
            found = _fetch(function, data_dir / "scikit_learn_data")
            return found.data.astype(np.float64), found.target - 1
        found = function()
        if self.name == "load_digits":
            return (found.images[..., None] / 16).astype(np.float32), found.target
        return found.data, found.target


def _fetch(function: Any, folder: Path) -> Any:
    """Return what a function of sklearn.datasets fetches, downloaded if it is not there."""
    try:
        with socket_timeout():
            return function(data_home=str(folder), n_retries=1)
    # What a broken download raises has no common base class.
    except Exception as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"the data of {function.__name__} are not in {folder} and could not be downloaded "
            f"({reason}): run sklearn.datasets.{function.__name__}(data_home=...) where there is a "
            f"network, and copy what it writes to {folder}"
        ) from None
