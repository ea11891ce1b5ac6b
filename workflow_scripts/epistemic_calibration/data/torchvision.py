"""The standard data sets of torchvision, downloaded where their files are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from epistemic_calibration.data._download import socket_timeout
from epistemic_calibration.data.base import DataError, Dataset, DataSource, logger
from epistemic_calibration.parameters import parameter

_CLASSES = {
    "MNIST": tuple("0123456789"),
    "CIFAR10": (
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ),
    "FashionMNIST": (
        "T-shirt_top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle_boot",
    ),
}
#: MD5 of what is in the archives; torchvision knows those of the archives, and of CIFAR-10's files.
_UNPACKED = {
    "MNIST": {
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    },
    "FashionMNIST": {
        "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    },
}


@dataclass(frozen=True, kw_only=True)
class Torchvision(DataSource):
    """A data set that torchvision knows, with its own training and test set.

    Files that lie in ``data_dir``, as torchvision lays them out, are used if their MD5 is that of
    the published ones; those that are not there are downloaded.
    """

    name: Literal["MNIST", "CIFAR10", "FashionMNIST"] = parameter(
        description="class of torchvision.datasets"
    )

    def load(self, data_dir: Path) -> Dataset:
        from torchvision import datasets

        dataset_class = getattr(datasets, self.name)
        published = _published(dataset_class, data_dir)
        broken = _broken(published)
        if not all(path.is_file() for path in published) or (broken and self.name == "CIFAR10"):
            _download(dataset_class, data_dir)
            broken = _broken(published)
        if broken:
            raise DataError(
                f"{broken[0]} is truncated or corrupt, or not the published file of {self.name} "
                f"(its MD5 is another). Delete it and run again: it will be unpacked or downloaded "
                f"anew. Images of your own are read with datasets.<name>.source: npz or "
                f"image_folder."
            )
        parts = {}
        for part in ("train", "test"):
            dataset = dataset_class(str(data_dir), train=part == "train")
            images, labels = np.asarray(dataset.data), np.asarray(dataset.targets, dtype=np.int64)
            chosen = self.chosen_rows(labels, part)
            parts[f"x_{part}"] = images.reshape(*images.shape[:3], -1)[chosen]
            parts[f"y_{part}"] = labels[chosen]
        return Dataset(
            **parts, class_names=_CLASSES[self.name], test_rows=np.arange(len(labels))[chosen]
        )

    def class_names(self, data_dir: Path) -> tuple[str, ...]:
        return _CLASSES[self.name]

    def inventory(self, data_dir: Path) -> dict[str, Any]:
        return {"name": self.name}


def _published(dataset_class: Any, data_dir: Path) -> dict[Path, str]:
    """Return the MD5 of each unpacked file, by its path."""
    name = dataset_class.__name__
    if name == "CIFAR10":
        meta = (dataset_class.meta["filename"], dataset_class.meta["md5"])
        files = [*dataset_class.train_list, *dataset_class.test_list, meta]
        return {data_dir / dataset_class.base_folder / file: md5 for file, md5 in files}
    return {data_dir / name / "raw" / file: md5 for file, md5 in _UNPACKED[name].items()}


def _broken(published: Mapping[Path, str]) -> list[Path]:
    """Return the unpacked files that are there, but not those published."""
    from torchvision.datasets.utils import check_integrity

    return [
        path for path, md5 in published.items() if path.is_file() and not check_integrity(path, md5)
    ]


def _download(dataset_class: Any, data_dir: Path) -> None:
    logger.info("downloading or unpacking %s in %s", dataset_class.__name__, data_dir)
    try:
        with socket_timeout():
            dataset_class(str(data_dir), train=True, download=True)
    # What torchvision, urllib, gzip and tarfile raise at a broken download has no common base.
    except Exception as error:
        name, folder = dataset_class.__name__, data_dir / dataset_class.__name__ / "raw"
        if name == "CIFAR10":
            files = f"{dataset_class.url} to {data_dir}"
        else:
            archives = ", ".join(file for file, _ in dataset_class.resources)
            files = f"{archives} of {dataset_class.mirrors[0]} to {folder}"
        reason = " ".join(str(error).split())
        raise DataError(
            f"{name} is not complete in {data_dir} and could not be downloaded ({reason}): put "
            f"{files}, deleting files that are truncated there, or change the config key data_dir "
            f"to a folder that has them"
        ) from None
