"""Labels that several people gave to the same inputs: published sets, and files of one's own.

*Label counts* say how many people gave each class to each test input. *Annotations* are the
labels of each training input, one column a person.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from epistemic_calibration._label_order import order_fault
from epistemic_calibration.data._arrays import array_shapes, read_array, read_arrays
from epistemic_calibration.data._download import socket_timeout
from epistemic_calibration.data._split import stratified_split
from epistemic_calibration.data.base import (
    DataError,
    Dataset,
    DataSource,
    logger,
    raw_file,
)
from epistemic_calibration.files import atomic_path, file_digest

Kind = Literal["label_counts", "annotations"]


@dataclass(frozen=True)
class Published:
    """Labels that others have published, which are downloaded and never part of the project."""

    kind: Kind
    #: Name in ``data_dir``.
    file: str
    url: str
    shape: tuple[int, int]
    read: Callable[[Path], np.ndarray]
    #: Whose labels they are, in whose order, their source and licence.
    about: str
    #: Of the values as int64, little-endian, row by row: of the content, whatever the format.
    sha256: str | None = None
    #: Size of the file, where there is no checksum.
    n_bytes: int | None = None

    def load(self, data_dir: Path) -> np.ndarray:
        """Return the labels, downloaded to ``data_dir`` if they are not there."""
        path = data_dir / self.file
        if not path.is_file():
            self._download(path)
        try:
            values = np.asarray(self.read(path))
        # A broken file raises whatever its format's reader does.
        except Exception as error:
            raise DataError(
                f"{path} cannot be read ({error}). Delete it and run again: it will be "
                f"downloaded anew"
            ) from error
        found = (values.shape, content_sha256(values), path.stat().st_size)
        wanted = (self.shape, self.sha256, self.n_bytes)
        if any(w not in (None, f) for f, w in zip(found, wanted, strict=True)):
            raise DataError(
                f"{path} does not hold the labels published at {self.url}: its shape, size or the "
                f"SHA-256 of its values is another. Delete it and run again"
            )
        logger.info("labels of %s", self.about)
        return values.astype(np.int64)

    def _download(self, path: Path) -> None:
        from torchvision.datasets.utils import download_url

        logger.info("downloading %s", self.url)
        try:
            with socket_timeout(), atomic_path(path) as unfinished:
                # A file that is there is not downloaded.
                unfinished.unlink()
                download_url(self.url, str(unfinished.parent), unfinished.name)
        # What torchvision and urllib raise at a broken download has no common base class.
        except Exception as error:
            raise DataError(
                f"{self.url} could not be downloaded ({error}). Put the file to {path}, or leave "
                f"out the config key datasets.<name>.{self.kind}"
            ) from error


def _read_cifar10n(path: Path) -> np.ndarray:
    import torch

    reconstruct = np._core.multiarray._reconstruct
    allowed = [
        (reconstruct, "numpy.core.multiarray._reconstruct"),
        (reconstruct, "numpy._core.multiarray._reconstruct"),
        np.ndarray,
        np.dtype,
        *(type(np.dtype(name)) for name in ("int64", "int32", "uint8")),
    ]
    # Without them numpy's arrays are refused, and with anything else than data a file could run.
    with torch.serialization.safe_globals(allowed):
        labels = torch.load(path, weights_only=True)
    return np.stack([np.asarray(labels[f"random_label{k}"]) for k in (1, 2, 3)], axis=1)


def _read_csv(path: Path) -> np.ndarray:
    return np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2)


#: Published labels by the name that the configuration gives them.
PUBLISHED = {
    "cifar10h": Published(
        kind="label_counts",
        file="cifar10h-counts.npy",
        url="https://github.com/jcpeterson/cifar-10h/raw/master/data/cifar10h-counts.npy",
        shape=(10_000, 10),
        read=read_array,
        about="the test set of CIFAR-10, in its order: CIFAR-10H (Peterson et al., 2019, arXiv "
        "1908.07086); licence: CC BY-NC-SA 4.0",
        sha256="e3a314fdecb1f8aeb680f50fde8682d83065d5191d8fc76f0bdc86333bd7fefe",
    ),
    "fashion_mnist_h": Published(
        kind="label_counts",
        file="fmh_counts.csv",
        url="https://raw.githubusercontent.com/takashiishida/irreducible/"
        "18e120d239fd5db9889e88ce66f87222d3531472/data/fmh_counts.csv",
        shape=(10_000, 10),
        read=_read_csv,
        about="the test set of Fashion-MNIST, in its order: Fashion-MNIST-H (Ishida et al., 2023, "
        "arXiv 2202.00395); licence: none stated by its authors",
        n_bytes=216_176,
    ),
    "cifar10n": Published(
        kind="annotations",
        file="CIFAR-10_human.pt",
        url="https://github.com/UCSC-REAL/cifar-10-100n/raw/main/data/CIFAR-10_human.pt",
        shape=(50_000, 3),
        read=_read_cifar10n,
        about="the training set of CIFAR-10, in its order: CIFAR-10N (Wei et al., 2022, arXiv "
        "2110.12088); licence: CC BY-NC 4.0",
        sha256="b22910af0e85b6f33a93b0950d37fc17d9a4daffd0f680476e8d26cae0b9f2c1",
    ),
}


def content_sha256(values: np.ndarray) -> str:
    """Return the SHA-256 of integers as int64, little-endian, row by row.

    Examples
    --------
    >>> content_sha256(np.array([[1, 0]], dtype=np.uint8))[:8]
    '4cbbd8ca'
    """
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<i8").tobytes()).hexdigest()


def labels_inventory(given: str, kind: Kind, data_dir: Path) -> dict[str, Any]:
    """Return what tells the labels that a configuration names from others."""
    if given in PUBLISHED:
        published = _published(given, kind)
        return {"name": given, "sha256": published.sha256, "n_bytes": published.n_bytes}
    return {"sha256": file_digest(_file(given, kind, data_dir))}


def read_labels_of_people(
    given: str, kind: Kind, data_dir: Path, class_names: tuple[str, ...]
) -> np.ndarray:
    """Return label counts (n_samples, n_classes) or annotations (n_samples, n_people), int64.

    ``given`` names a published set, or a .npy, .npz or .csv, relative to ``data_dir``. An .npz
    holds one array, or one that is named like the kind; the header of a .csv may name the classes,
    in any order.
    """
    if given in PUBLISHED:
        return _published(given, kind).load(data_dir)
    path = _file(given, kind, data_dir)
    try:
        values = _read(path, kind, class_names)
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{path} cannot be read ({error})") from error
    return check_integers(values, kind, str(path))


def check_integers(values: np.ndarray, kind: Kind, where: str) -> np.ndarray:
    """Return an array, which must hold integers on two axes, as int64."""
    if values.ndim != 2 or values.dtype.kind not in "iuf" or not np.all(values == values.round()):
        columns = "one column a class" if kind == "label_counts" else "one column a person"
        raise DataError(
            f"{where}: {kind} has shape {values.shape} and dtype {values.dtype}; it must hold "
            f"integers, one row an input and {columns}"
        )
    return values.astype(np.int64)


def _published(name: str, kind: Kind) -> Published:
    if PUBLISHED[name].kind != kind:
        raise DataError(f"datasets.<name>.{kind}: {name} is given as `{PUBLISHED[name].kind}`")
    return PUBLISHED[name]


def _file(given: str, kind: Kind, data_dir: Path) -> Path:
    known = ", ".join(name for name, labels in PUBLISHED.items() if labels.kind == kind)
    more = f": a file, or the name of a published set: {known}"
    return raw_file(data_dir, given, kind, more)


def _read(path: Path, kind: Kind, class_names: tuple[str, ...]) -> np.ndarray:
    if path.suffix == ".npy":
        return read_array(path)
    if path.suffix == ".npz":
        found = array_shapes(path)
        if kind not in found and len(found) != 1:
            raise DataError(f"{path} has no array {kind}; it holds {', '.join(sorted(found))}")
        name = kind if kind in found else next(iter(found))
        return read_arrays(path, [name])[name]
    if path.suffix != ".csv":
        raise DataError(f"{path}: {kind} must be a file .npy, .npz or .csv")
    import pandas as pd

    table = pd.read_csv(path, header=None, dtype=str)
    if table.iloc[0].str.fullmatch(r"\s*\d+\s*").all() and set(table.iloc[0]) != set(class_names):
        return table.to_numpy().astype(np.float64)
    header = [str(name).strip() for name in table.iloc[0]]
    values = table.iloc[1:].to_numpy().astype(np.float64)
    if kind == "annotations":
        return values
    if sorted(header) != sorted(class_names):
        raise DataError(
            f"{path}: the header names {', '.join(header)}, the classes are "
            f"{', '.join(class_names)}"
        )
    return values[:, [header.index(name) for name in class_names]]


def label_counts_of(
    source: DataSource,
    data_dir: Path,
    y_test: np.ndarray,
    test_rows: np.ndarray,
    class_names: tuple[str, ...],
) -> np.ndarray:
    """Return what `epistemic_calibration.data.load_label_counts` does, of a source."""
    n_classes = len(class_names)
    if source.annotations is not None:
        people = _annotations(source, data_dir, class_names)
        where = f"annotations: {source.annotations}"
        counts = np.stack([(people == k).sum(axis=1) for k in range(n_classes)], axis=1)
    elif source.label_counts is not None:
        where = f"label_counts: {source.label_counts}"
        counts = read_labels_of_people(source.label_counts, "label_counts", data_dir, class_names)
    else:
        where = "label_counts"
        inside = source.label_counts_inside(data_dir)
        counts = check_integers(inside, "label_counts", str(getattr(source, "path", where)))
    if counts.shape[1] != n_classes or counts.min() < 0:
        raise DataError(
            f"{where}: counts of shape {counts.shape}, from {counts.min()} up; there must be one "
            f"column for each of the {n_classes} classes, and numbers >= 0"
        )
    whole = source.max_test is None and source.annotations is None
    if test_rows.max() >= len(counts) or (whole and len(counts) != len(test_rows)):
        raise DataError(
            f"{where}: counts of {len(counts)} inputs; there must be one row for each input of "
            f"the whole test set, also where max_test keeps a part of it"
        )
    counts = counts[test_rows]
    total = counts.sum(axis=1)
    if not total.any():
        raise DataError(f"{where}: no test input has a label")
    logger.info("%.1f labels per test image (%d to %d)", total.mean(), total.min(), total.max())
    if fault := order_fault(counts, y_test):
        raise DataError(
            f"{where}: {fault}. A folder of images is in the order of its class folders and file "
            f"names"
        )
    return counts


def _annotations(source: DataSource, data_dir: Path, class_names: tuple[str, ...]) -> np.ndarray:
    people = read_labels_of_people(source.annotations, "annotations", data_dir, class_names)
    if people.min() < -1 or people.max() >= len(class_names) or people[:, 0].min() < 0:
        raise DataError(
            f"annotations: {source.annotations} has labels from {people.min()} to {people.max()}; "
            f"they must lie in 0 ... {len(class_names) - 1}, or be -1 where a person other than "
            f"the first gave none"
        )
    return people


def hold_out(source: DataSource, data_dir: Path) -> Dataset:
    """Return a data set's training inputs, split, with the labels of the first person."""
    whole = dataclasses.replace(source, annotations=None, max_train=None, max_test=None).load(
        data_dir
    )
    people = _annotations(source, data_dir, whole.class_names)
    if len(people) != len(whole.x_train):
        raise DataError(
            f"annotations: {source.annotations} has {len(people)} rows, but there are "
            f"{len(whole.x_train)} training inputs"
        )
    first = people[:, 0]
    split = stratified_split(first, source.held_out_fraction, 0, key="held_out_fraction")
    rows = {}
    for part, chosen in zip(("train", "test"), split, strict=True):
        rows[part] = chosen[source.chosen_rows(first[chosen], part)]
    return Dataset(
        x_train=whole.x_train[rows["train"]],
        y_train=first[rows["train"]],
        x_test=whole.x_train[rows["test"]],
        y_test=first[rows["test"]],
        class_names=whole.class_names,
        test_rows=rows["test"],
    )
