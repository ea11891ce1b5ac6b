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
_DOWNLOAD_ATTEMPTS = 3
_RETRY_DELAY = 1.0


@dataclass(frozen=True, kw_only=True)
class Torchvision(DataSource):
    """A data set that torchvision knows, with its own training and test set.

    Files that lie in ``data_dir``, as torchvision lays them out, are used; others are
    downloaded to it.
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
        for path in _broken(dataset_class, archives):
            raise DataError(
                f"{path} is truncated or corrupt. Delete it and run again: it will be unpacked "
                f"or downloaded anew."
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
    unpacked: tuple[Path, ...]


def _archives(dataset_class: Any, data_dir: Path) -> list[_Archive]:
    if dataset_class.__name__ == "CIFAR10":
        folder = data_dir / dataset_class.base_folder
        files = [file for file, _ in _cifar_files(dataset_class)]
        return [
            _Archive(
                path=data_dir / dataset_class.filename,
                md5=dataset_class.tgz_md5,
                urls=(dataset_class.url,),
                unpacked=tuple(folder / file for file in files),
            )
        ]
    folder = data_dir / dataset_class.__name__ / "raw"
    return [
        _Archive(
            path=folder / file,
            md5=md5,
            urls=tuple(mirror + file for mirror in dataset_class.mirrors),
            unpacked=(folder / Path(file).stem,),
        )
        for file, md5 in dataset_class.resources
    ]


def _cifar_files(dataset_class: Any) -> list[tuple[str, str]]:
    meta = (dataset_class.meta["filename"], dataset_class.meta["md5"])
    return [*dataset_class.train_list, *dataset_class.test_list, meta]


def _incomplete(dataset_class: Any, archives: Sequence[_Archive]) -> list[_Archive]:
    """Return the archives that torchvision would unpack, after downloading them if need be."""
    missing = [a for a in archives if not all(path.is_file() for path in a.unpacked)]
    if dataset_class.__name__ == "CIFAR10" and _broken(dataset_class, archives):
        # Here torchvision checks what is unpacked too, and does it again if it is broken.
        return list(archives)
    return missing


def _broken(dataset_class: Any, archives: Sequence[_Archive]) -> list[Path]:
    """Return the unpacked files that are there, but truncated or corrupt."""
    from torchvision.datasets.utils import check_integrity

    paths = [path for a in archives for path in a.unpacked if path.is_file()]
    if dataset_class.__name__ == "CIFAR10":
        checksums = dict(_cifar_files(dataset_class))
        return [path for path in paths if not check_integrity(path, checksums[path.name])]
    return [path for path in paths if not _idx_file_is_whole(path)]


def _idx_file_is_whole(path: Path) -> bool:
    # magic number 0, 0, 8 (bytes), number of axes; then each axis's length, then the bytes
    with path.open("rb") as file:
        head = file.read(4)
        if len(head) < 4 or head[:3] != b"\0\0\x08":
            return False
        shape = [int.from_bytes(file.read(4), "big") for _ in range(head[3])]
    return path.stat().st_size == 4 + 4 * len(shape) + int(np.prod(shape))


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
    for path in archived + _broken(dataset_class, missing):
        lines.append(f"  {path} is truncated or corrupt")
    for archive in missing:
        unpacked = ", ".join(str(path) for path in archive.unpacked)
        lines.append(f"  put {archive.urls[0]} to {archive.path}, or what is in it to {unpacked}")
    lines.append(
        "Or change the config key data_dir to a folder that has these files, or "
        "datasets.<name>.source to image_folder or npz to read files of your own."
    )
    return "\n".join(lines)
