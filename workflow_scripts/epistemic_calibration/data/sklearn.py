"""The data set inside scikit-learn that has images: 1,797 handwritten digits of 8 x 8 pixels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from epistemic_calibration.data.base import DataSource, ImageDataset
from epistemic_calibration.parameters import parameter


@dataclass(frozen=True, kw_only=True)
class Sklearn(DataSource):
    """Images inside scikit-learn, which need no files and no network.

    scikit-learn does not split them: the test set is drawn at random, with the classes in
    their proportions. Pixels, 0 ... 16, become float32 in [0, 1].
    """

    name: Literal["load_digits"] = parameter(description="function of sklearn.datasets")
    test_fraction: float = parameter(
        0.5, gt=0, lt=1, description="fraction of the images that is the test set"
    )
    split_seed: int = parameter(0, ge=0, description="seed that draws the test set")

    def load(self, data_dir: Path) -> ImageDataset:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        digits = load_digits()
        try:
            split = train_test_split(
                np.arange(len(digits.target)),
                test_size=float(self.test_fraction),
                stratify=digits.target,
                random_state=self.split_seed,
            )
        except ValueError as error:
            raise ValueError(
                f"datasets.<name>.test_fraction: {self.test_fraction!r}: {error}"
            ) from error
        parts = {}
        for part, rows in zip(("train", "test"), map(np.sort, split), strict=True):
            chosen = self.chosen_rows(digits.target[rows], part)
            test_rows, rows = np.arange(len(rows))[chosen], rows[chosen]
            parts[f"x_{part}"] = (digits.images[rows, :, :, None] / 16).astype(np.float32)
            parts[f"y_{part}"] = digits.target[rows].astype(np.int64)
        return ImageDataset(**parts, class_names=self.class_names(data_dir), test_rows=test_rows)

    def class_names(self, data_dir: Path) -> tuple[str, ...]:
        return tuple("0123456789")

    def inventory(self, data_dir: Path) -> dict[str, Any]:
        return {"name": self.name}
