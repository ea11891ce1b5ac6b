"""The standard data sets of torchvision, downloaded where their files are missing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from epistemic_calibration.data._download import (
    TIMEOUT,
    NoAnswerError,
    check_reachable,
    socket_timeout,
)
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
_DOWNLOAD_ATTEMPTS = 3
_RETRY_DELAY = 1.0


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
        archives = _archives(dataset_class, data_dir)
        if _incomplete(dataset_class, archives):
            _download(dataset_class, archives, data_dir)
        for path in _broken(archives):
            raise DataError(
                f"{path} is truncated or corrupt, or not the published file of {self.name} (its "
                f"MD5 is another). Delete it and run again: it will be unpacked or downloaded "
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


@dataclass(frozen=True)
class _Archive:
    """A file that torchvision downloads: where it goes and comes from, what it unpacks to."""

    path: Path
    md5: str
    urls: tuple[str, ...]
    #: MD5 by path.
    unpacked: dict[Path, str]


def _archives(dataset_class: Any, data_dir: Path) -> list[_Archive]:
    name = dataset_class.__name__
    if name == "CIFAR10":
        meta = (dataset_class.meta["filename"], dataset_class.meta["md5"])
        files = [*dataset_class.train_list, *dataset_class.test_list, meta]
        return [
            _Archive(
                path=data_dir / dataset_class.filename,
                md5=dataset_class.tgz_md5,
                urls=(dataset_class.url,),
                unpacked={data_dir / dataset_class.base_folder / file: md5 for file, md5 in files},
            )
        ]
    folder = data_dir / name / "raw"
    return [
        _Archive(
            path=folder / file,
            md5=md5,
            urls=tuple(mirror + file for mirror in dataset_class.mirrors),
            unpacked={folder / Path(file).stem: _UNPACKED[name][Path(file).stem]},
        )
        for file, md5 in dataset_class.resources
    ]


def _incomplete(dataset_class: Any, archives: Sequence[_Archive]) -> list[_Archive]:
    """Return the archives that torchvision would unpack, after downloading them if need be."""
    # Of CIFAR-10 it checks what is unpacked, too, and does it again if it is broken.
    checked = dataset_class.__name__ == "CIFAR10"
    return [
        archive
        for archive in archives
        if not all(path.is_file() for path in archive.unpacked) or (checked and _broken([archive]))
    ]


def _broken(archives: Sequence[_Archive]) -> list[Path]:
    """Return the unpacked files that are there, but not those published."""
    from torchvision.datasets.utils import check_integrity

    files = [file for archive in archives for file in archive.unpacked.items()]
    return [path for path, md5 in files if path.is_file() and not check_integrity(path, md5)]


def _download(dataset_class: Any, archives: Sequence[_Archive], data_dir: Path) -> None:
    from torchvision.datasets.utils import check_integrity

    reason = ""
    for attempt in range(_DOWNLOAD_ATTEMPTS):
        if attempt:
            time.sleep(_RETRY_DELAY * 2 ** (attempt - 1))
        try:
            absent = [
                a
                for a in _incomplete(dataset_class, archives)
                if not check_integrity(a.path, a.md5)
            ]
            if absent:
                logger.info("downloading %s to %s", dataset_class.__name__, data_dir)
                check_reachable([url for a in absent for url in a.urls])
            with socket_timeout(TIMEOUT):
                dataset_class(str(data_dir), train=True, download=True)
            return
        except (NoAnswerError, PermissionError) as error:
            reason = str(error)
            break
        # What torchvision, urllib, gzip and tarfile raise at a broken download has no
        # common base class.
        except Exception as error:
            reason = str(error)
            logger.info("attempt %d of %d: %s", attempt + 1, _DOWNLOAD_ATTEMPTS, reason)
    raise DataError(_missing_files_message(dataset_class, archives, data_dir, reason))


def _missing_files_message(
    dataset_class: Any, archives: Sequence[_Archive], data_dir: Path, reason: str
) -> str:
    name = dataset_class.__name__
    lines = [f"{name} is not complete in {data_dir} and could not be downloaded ({reason})."]
    missing = _incomplete(dataset_class, archives)
    archived = [a.path for a in missing if a.path.is_file()]
    for path in archived + _broken(missing):
        lines.append(f"  {path} is truncated or corrupt")
    for archive in missing:
        unpacked = ", ".join(str(path) for path in archive.unpacked)
        lines.append(f"  put {archive.urls[0]} to {archive.path}, or what is in it to {unpacked}")
    lines.append(
        "Or change the config key data_dir to a folder that has these files, or "
        "datasets.<name>.source to image_folder or npz to read files of your own."
    )
    return "\n".join(lines)
