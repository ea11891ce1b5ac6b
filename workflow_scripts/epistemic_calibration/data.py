"""Images and labels, from torchvision, folders of image files, .npz files or scikit-learn.

A *source config* is the part of a data set's block in the configuration that says where its
images come from: ``source`` and that source's own keys. What is needed to plan a run (class
names, a fingerprint of the raw data) is found without loading images or heavy libraries.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import socket
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

logger = logging.getLogger("epistemic_calibration")


class DataError(RuntimeError):
    """Raw data are missing or wrong; the message names the file and what to do."""


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Images and class labels, split into a training and a test set.

    Attributes
    ----------
    x_train, x_test : ndarray of shape (n_samples, height, width, channels)
        uint8, or float32 in [0, 1]; one or three channels.
    y_train, y_test : ndarray of shape (n_samples,), int64
        Indices into ``class_names``.
    class_names : tuple of str
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    class_names: tuple[str, ...]

    def check(self) -> None:
        """Check that the parts fit each other and that both sets hold every class.

        Raises
        ------
        DataError
            At the first fault found.
        """
        if len(self.class_names) < 2:
            raise DataError(
                f"the data set has the classes {list(self.class_names)}; at least two are needed"
            )
        for name, images, labels in (
            ("train", self.x_train, self.y_train),
            ("test", self.x_test, self.y_test),
        ):
            _check_images(f"x_{name}", images)
            if len(images) != len(labels):
                raise DataError(
                    f"x_{name} has {len(images)} images, but y_{name} {len(labels)} labels"
                )
            if labels.min() < 0 or labels.max() >= len(self.class_names):
                raise DataError(
                    f"y_{name} has labels from {labels.min()} to {labels.max()}; they must lie in "
                    f"0 ... {len(self.class_names) - 1}"
                )
            counts = np.bincount(labels, minlength=len(self.class_names))
            missing = [self.class_names[k] for k in np.flatnonzero(counts == 0)]
            if missing:
                raise DataError(f"the {name} set has no image of class {', '.join(missing)}")
        if self.x_train.shape[1:] != self.x_test.shape[1:]:
            raise DataError(
                f"x_train has images of {self.x_train.shape[1:]} (height, width, channels), but "
                f"x_test of {self.x_test.shape[1:]}"
            )

    @staticmethod
    def pixels(images: np.ndarray) -> np.ndarray:
        """Return images as float32 in [0, 1]."""
        if images.dtype == np.uint8:
            return images.astype(np.float32) / np.float32(255)
        return images.astype(np.float32, copy=False)


def _check_images(name: str, images: np.ndarray) -> None:
    if images.ndim != 4 or images.shape[3] not in (1, 3) or 0 in images.shape:
        raise DataError(
            f"{name} has shape {images.shape}; it must be (n_samples, height, width) or "
            f"(n_samples, height, width, channels) with 1 or 3 channels, and not empty"
        )
    if images.dtype == np.uint8:
        return
    if images.dtype.kind != "f":
        raise DataError(f"{name} has dtype {images.dtype}; it must be uint8 or floating point")
    low, high = images.min(), images.max()
    if np.isnan(low):
        bad = int(np.flatnonzero(np.isnan(images).any(axis=(1, 2, 3)))[0])
        raise DataError(f"{name} has pixels that are NaN, first in image {bad}")
    if low < 0 or high > 1:
        raise DataError(
            f"{name} has pixels from {low:g} to {high:g}; floating-point pixels must lie in "
            f"[0, 1] (uint8 ones in 0 ... 255)"
        )


def load_images(source_config: Mapping[str, Any], data_dir: str | Path) -> ImageDataset:
    """Load a data set.

    Parameters
    ----------
    source_config : mapping
        ``source``, its own keys, and optionally

        max_train, max_test : int
            Keep that many images, in their order: a random subset with the classes in their
            proportions, and at least one image of each. The choice is always the same.
    data_dir : path
        Where raw data lie or are downloaded to; relative paths start there.

    Returns
    -------
    ImageDataset
        Checked.

    Raises
    ------
    DataError
        If raw data are missing, broken, or no data set to learn from.
    ValueError
        If the config lacks a key or has a wrong value.

    Notes
    -----
    ``source: torchvision`` — ``name``: MNIST, CIFAR10 or FashionMNIST. Files that lie in
    ``data_dir`` are used, others are downloaded to it.

    ``source: image_folder`` — ``path``: a folder with train/CLASS/* and test/CLASS/*, read in
    the order of their names. All images must have one size, unless ``image_size`` ([height,
    width]) says to what they are scaled; ``channels`` (1 or 3) converts them, by default all
    must be as the first one, grey or colour.

    ``source: npz`` — ``path``: a file with x_train, y_train, x_test, y_test and optionally
    class_names. Images (n, height, width) or (n, height, width, channels), uint8 or floating
    point in [0, 1]; labels are integers, which index class_names where they are given, or
    strings.

    ``source: sklearn`` — ``name``: load_digits; ``test_fraction`` (0.5) of it, stratified and
    drawn with ``split_seed`` (0), is the test set.
    """
    data = _source(source_config).load(source_config, Path(data_dir))
    try:
        data.check()
    except DataError as error:
        where = [source_config["source"], source_config.get("path", source_config.get("name"))]
        raise DataError(f"{' '.join(map(str, where))}: {error}") from None
    logger.info(
        "%d training and %d test images of %s, %d classes",
        len(data.x_train),
        len(data.x_test),
        "x".join(map(str, data.x_train.shape[1:])),
        len(data.class_names),
    )
    return data


def class_names_of(source_config: Mapping[str, Any], data_dir: str | Path) -> tuple[str, ...]:
    """Return the class names of a data set, as `load_images` orders them, without images.

    Raises
    ------
    DataError
        If they cannot be found, are fewer than two, or two have the same `task_name`.
    ValueError
        If the config lacks a key or has a wrong value.
    """
    names = _source(source_config).class_names(source_config, Path(data_dir))
    if len(names) < 2:
        raise DataError(f"the data set has the classes {list(names)}; at least two are needed")
    taken: dict[str, str] = {}
    for name in names:
        # Some file systems do not tell capitals from small letters.
        key = task_name(name).lower()
        if key in taken:
            raise DataError(
                f"classes {taken[key]!r} and {name!r} would share the file name "
                f"{task_name(name)!r}; rename one"
            )
        taken[key] = name
    return names


def task_name(class_name: str) -> str:
    """Return a class name as part of a path: ASCII letters, digits, ``-``, ``_`` and ``.``.

    Accents are dropped, each run of other characters becomes ``_``, and so does a leading
    dot.

    Raises
    ------
    ValueError
        If the name is empty.
    """
    if not class_name:
        raise ValueError("a class name is empty")
    plain = unicodedata.normalize("NFKD", class_name)
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return re.sub(r"^\.", "_", re.sub(r"[^A-Za-z0-9._-]+", "_", plain))


def raw_inventory(source_config: Mapping[str, Any], data_dir: str | Path) -> dict[str, Any]:
    """Return what tells a data set's raw data from others, without reading images.

    For a folder it depends on the names and sizes of its files, for an .npz file on its
    content, for the standard data sets on the name; never on modification times or on
    where the data lie.

    Raises
    ------
    DataError
        If the folder or file is missing.
    ValueError
        If the config lacks a key or has a wrong value.
    """
    return _source(source_config).inventory(source_config, Path(data_dir))


def _get(config: Mapping[str, Any], key: str) -> Any:
    if key not in config:
        raise ValueError(f"datasets.<name>.{key} is missing (source: {config.get('source')})")
    return config[key]


def _choice(config: Mapping[str, Any], key: str, allowed: Sequence[str]) -> str:
    value = _get(config, key)
    if value not in allowed:
        raise ValueError(f"datasets.<name>.{key}: {value!r} is none of {', '.join(allowed)}")
    return value


def _chosen(labels: np.ndarray, config: Mapping[str, Any], key: str) -> np.ndarray | slice:
    """Return the rows that ``max_train`` or ``max_test`` keeps."""
    n_kept = config.get(key)
    if n_kept is None or n_kept >= len(labels):
        return slice(None)
    counts = np.unique(labels, return_counts=True)[1]
    if n_kept < len(counts):
        raise ValueError(
            f"datasets.<name>.{key}: {n_kept} images cannot hold one of each of the "
            f"{len(counts)} classes"
        )
    # The k-th of a class's n images, in random order, comes at the moment k / n: any first
    # part of that queue has the classes in proportion, and its head has one of each.
    order = np.random.default_rng(0).permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    moment = np.concatenate([np.arange(n) / n for n in counts])
    return np.sort(by_class[np.argsort(moment, kind="stable")[:n_kept]])


# torchvision

_DIGITS = tuple(str(k) for k in range(10))
_TORCHVISION_CLASSES = {
    "MNIST": _DIGITS,
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
#: Seconds that a server may stay silent.
_TIMEOUT = 15.0


class _NoAnswerError(OSError):
    """No server answers in time."""


@dataclass(frozen=True)
class _Archive:
    """A file that torchvision downloads: where it goes and comes from, what it unpacks to."""

    path: Path
    md5: str
    urls: tuple[str, ...]
    unpacked: tuple[Path, ...]


def _torchvision_name(config: Mapping[str, Any]) -> str:
    return _choice(config, "name", tuple(_TORCHVISION_CLASSES))


def _load_torchvision(config: Mapping[str, Any], data_dir: Path) -> ImageDataset:
    from torchvision import datasets

    name = _torchvision_name(config)
    dataset_class = getattr(datasets, name)
    archives = _archives(dataset_class, data_dir)
    if _incomplete(dataset_class, archives):
        _download(dataset_class, archives, data_dir)
    for path in _broken(dataset_class, archives):
        raise DataError(
            f"{path} is truncated or corrupt. Delete it and run again: it will be unpacked or "
            f"downloaded anew."
        )
    parts = {}
    for part in ("train", "test"):
        dataset = dataset_class(str(data_dir), train=part == "train")
        images, labels = np.asarray(dataset.data), np.asarray(dataset.targets, dtype=np.int64)
        chosen = _chosen(labels, config, f"max_{part}")
        parts[f"x_{part}"] = images.reshape(*images.shape[:3], -1)[chosen]
        parts[f"y_{part}"] = labels[chosen]
    return ImageDataset(**parts, class_names=_TORCHVISION_CLASSES[name])


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
                _check_reachable([url for a in absent for url in a.urls])
            with _socket_timeout(_TIMEOUT):
                dataset_class(str(data_dir), train=True, download=True)
            return
        except (_NoAnswerError, PermissionError) as error:
            reason = str(error)
            break
        # What torchvision, urllib, gzip and tarfile raise at a broken download has no
        # common base class.
        except Exception as error:
            reason = str(error)
            logger.warning("attempt %d of %d: %s", attempt + 1, _DOWNLOAD_ATTEMPTS, reason)
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


@contextlib.contextmanager
def _socket_timeout(seconds: float) -> Iterator[None]:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def _check_reachable(urls: Sequence[str]) -> None:
    """Raise OSError if no server of ``urls`` can be reached, _NoAnswerError if all are silent."""
    import urllib.error
    import urllib.request

    answers: dict[str, str] = {}
    answered = threading.Event()

    def ask(url: str) -> None:
        try:
            request = urllib.request.Request(url, method="HEAD")
            urllib.request.urlopen(request, timeout=2 * _TIMEOUT).close()
            answers[url] = ""
        except urllib.error.HTTPError:
            answers[url] = ""
        except (OSError, ValueError) as error:
            answers[url] = str(error)
        if not answers[url] or len(answers) == len(servers):
            answered.set()

    # One file of each server. In threads, since neither looking a name up nor trying all
    # of a server's addresses obeys the timeout.
    servers = {url.split("/")[2]: url for url in reversed(urls)}
    for url in servers.values():
        threading.Thread(target=ask, args=(url,), daemon=True).start()
    if not answered.wait(_TIMEOUT):
        raise _NoAnswerError(f"no answer from {', '.join(servers)} within {_TIMEOUT:g} s")
    if all(answers.values()):
        raise OSError(f"no connection to {', '.join(servers)}: {next(iter(answers.values()))}")


def _torchvision_class_names(config: Mapping[str, Any], data_dir: Path) -> tuple[str, ...]:
    return _TORCHVISION_CLASSES[_torchvision_name(config)]


def _torchvision_inventory(config: Mapping[str, Any], data_dir: Path) -> dict[str, Any]:
    return {"source": "torchvision", "name": _torchvision_name(config)}


# image_folder


def _folder(config: Mapping[str, Any], data_dir: Path) -> Path:
    folder = data_dir / Path(_get(config, "path")).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"no such folder: {folder} (config key datasets.<name>.path; it must hold "
            f"train/CLASS/* and test/CLASS/*)"
        )
    return folder


def _entries(folder: Path) -> list[os.DirEntry]:
    with os.scandir(folder) as entries:
        return sorted((e for e in entries if not e.name.startswith(".")), key=lambda e: e.name)


def _class_folders(folder: Path, part: str) -> tuple[str, ...]:
    if not (folder / part).is_dir():
        raise DataError(
            f"no such folder: {folder / part}; {folder} must hold train/CLASS/* and test/CLASS/*"
        )
    names = tuple(entry.name for entry in _entries(folder / part) if entry.is_dir())
    if not names:
        raise DataError(f"{folder / part} has no class folders; it must hold {part}/CLASS/*")
    return names


def _load_image_folder(config: Mapping[str, Any], data_dir: Path) -> ImageDataset:
    folder = _folder(config, data_dir)
    classes = _class_folders(folder, "train")
    test_classes = _class_folders(folder, "test")
    for missing in sorted(set(classes) - set(test_classes)):
        raise DataError(f"class {missing!r} is in {folder / 'train'}, but not in {folder / 'test'}")
    for unknown in sorted(set(test_classes) - set(classes)):
        raise DataError(f"class {unknown!r} is in {folder / 'test'}, but not in {folder / 'train'}")

    form = _ImageForm.of(config)
    parts = {}
    for part in ("train", "test"):
        files, labels = [], []
        for label, name in enumerate(classes):
            found = _image_files(folder / part / name)
            files += found
            labels += [label] * len(found)
        labels = np.array(labels, dtype=np.int64)
        chosen = _chosen(labels, config, f"max_{part}")
        parts[f"x_{part}"], form = _read_images(list(np.array(files)[chosen]), form)
        parts[f"y_{part}"] = labels[chosen]
    return ImageDataset(**parts, class_names=classes)


def _image_files(folder: Path) -> list[str]:
    from PIL import Image

    extensions = Image.registered_extensions()
    files, others = [], []
    for entry in _entries(folder):
        if entry.is_dir():
            raise DataError(f"{entry.path} is a folder; images must lie directly in {folder}")
        known = Path(entry.name).suffix.lower() in extensions
        (files if known else others).append(entry.path)
    if not files:
        raise DataError(f"{folder} has no image files")
    if others:
        logger.warning("%s: %d files are no images (%s, ...)", folder, len(others), others[0])
    return files


@dataclass(frozen=True)
class _ImageForm:
    """What every image must be, as far as the config or the first image has said."""

    size: tuple[int, int] | None
    channels: int | None
    resize: bool
    convert: bool
    first: str = ""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> _ImageForm:
        size, channels = config.get("image_size"), config.get("channels")
        if channels not in (None, 1, 3):
            raise ValueError(f"datasets.<name>.channels: {channels!r} is neither 1 nor 3")
        if size is not None:
            size = tuple(size)
            if len(size) != 2 or not all(isinstance(n, int) and n > 0 for n in size):
                raise ValueError(
                    f"datasets.<name>.image_size: {list(size)!r} is not [height, width]"
                )
        return cls(size, channels, resize=size is not None, convert=channels is not None)


def _read_images(files: Sequence[str], form: _ImageForm) -> tuple[np.ndarray, _ImageForm]:
    images = None
    for row, path in enumerate(files):
        pixels, form = _read_image(path, form)
        if images is None:
            images = np.empty((len(files), *form.size, form.channels), dtype=np.uint8)
        images[row] = pixels.reshape(images.shape[1:])
    return images, form


def _read_image(path: str, form: _ImageForm) -> tuple[np.ndarray, _ImageForm]:
    from PIL import Image

    try:
        with Image.open(path) as image:
            image.load()
    # Decoders raise OSError, SyntaxError, ValueError, struct.error and others.
    except Exception as error:
        raise DataError(f"{path} cannot be read as an image: {error}") from error
    if image.mode[0] in "IF":
        raise DataError(f"{path} has more than 8 bits a channel (mode {image.mode}); convert it")
    size, channels = image.size[::-1], 1 if image.mode in ("1", "L", "LA", "La") else 3
    if not form.first:
        form = _ImageForm(
            form.size or size, form.channels or channels, form.resize, form.convert, path
        )
    if size != form.size and not form.resize:
        raise DataError(
            f"{path} has {size[0]}x{size[1]} pixels (height x width), but {form.first} has "
            f"{form.size[0]}x{form.size[1]}; set datasets.<name>.image_size to scale all images"
        )
    if channels != form.channels and not form.convert:
        kinds = {1: "grey", 3: "colour"}
        raise DataError(
            f"{path} is {kinds[channels]}, but {form.first} is {kinds[form.channels]}; set "
            f"datasets.<name>.channels to convert all images"
        )
    mode = "L" if form.channels == 1 else "RGB"
    if image.mode != mode:
        image = image.convert(mode)
    if size != form.size:
        image = image.resize(form.size[::-1], Image.Resampling.BILINEAR)
    return np.asarray(image), form


def _image_folder_class_names(config: Mapping[str, Any], data_dir: Path) -> tuple[str, ...]:
    return _class_folders(_folder(config, data_dir), "train")


def _image_folder_inventory(config: Mapping[str, Any], data_dir: Path) -> dict[str, Any]:
    folder = _folder(config, data_dir)
    digest = hashlib.sha256()
    for part in ("train", "test"):
        for name in _class_folders(folder, part):
            for entry in _entries(folder / part / name):
                line = f"{part}/{name}/{entry.name}\0{entry.stat().st_size}\n"
                digest.update(line.encode("utf-8", "surrogateescape"))
    return {"source": "image_folder", "sha256": digest.hexdigest()}


# npz


def _npz_path(config: Mapping[str, Any], data_dir: Path) -> Path:
    path = data_dir / Path(_get(config, "path")).expanduser()
    if not path.is_file():
        raise DataError(f"no such file: {path} (config key datasets.<name>.path)")
    return path


def _read_npz(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the arrays of ``names`` that the file has."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in names if name in file.files}
    # A broken zip archive raises BadZipFile, ValueError, zlib.error and others.
    except Exception as error:
        raise DataError(
            f"{path} cannot be read ({error}): it must be a file of numpy.savez without "
            f"arrays of Python objects"
        ) from error


def _load_npz(config: Mapping[str, Any], data_dir: Path) -> ImageDataset:
    path = _npz_path(config, data_dir)
    arrays = _read_npz(path, ("x_train", "y_train", "x_test", "y_test", "class_names"))
    names = _npz_names(path, arrays)
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
            _check_images(x, images)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        if len(images) != len(labels):
            raise DataError(f"{path}: {x} has {len(images)} images, but {y} {len(labels)} labels")
        if images.dtype != np.uint8:
            images = images.astype(np.float32)
        chosen = _chosen(labels, config, f"max_{part}")
        parts[x], parts[y] = images[chosen], labels[chosen]
    return ImageDataset(**parts, class_names=names)


def _npz_labels(path: Path, name: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    if name not in arrays:
        raise DataError(f"{path} has no array {name}")
    labels = arrays[name]
    if labels.ndim != 1 or labels.dtype.kind not in "iuU":
        raise DataError(
            f"{path}: {name} has shape {labels.shape} and dtype {labels.dtype}; it must be "
            f"(n_samples,), integers or strings"
        )
    return labels


def _npz_names(path: Path, arrays: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    if "class_names" not in arrays:
        return tuple(str(label) for label in np.unique(_npz_labels(path, "y_train", arrays)))
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
    labels = _npz_labels(path, name, arrays)
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


def _npz_class_names(config: Mapping[str, Any], data_dir: Path) -> tuple[str, ...]:
    path = _npz_path(config, data_dir)
    arrays = _read_npz(path, ("class_names",)) or _read_npz(path, ("y_train",))
    return _npz_names(path, arrays)


def _npz_inventory(config: Mapping[str, Any], data_dir: Path) -> dict[str, Any]:
    with _npz_path(config, data_dir).open("rb") as file:
        return {"source": "npz", "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


# sklearn


def _sklearn_name(config: Mapping[str, Any]) -> str:
    return _choice(config, "name", ("load_digits",))


def _load_sklearn(config: Mapping[str, Any], data_dir: Path) -> ImageDataset:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    _sklearn_name(config)
    digits = load_digits()
    test_fraction = config.get("test_fraction", 0.5)
    try:
        split = train_test_split(
            np.arange(len(digits.target)),
            test_size=float(test_fraction),
            stratify=digits.target,
            random_state=config.get("split_seed", 0),
        )
    except ValueError as error:
        raise ValueError(f"datasets.<name>.test_fraction: {test_fraction!r}: {error}") from error
    parts = {}
    for part, rows in zip(("train", "test"), map(np.sort, split), strict=True):
        rows = rows[_chosen(digits.target[rows], config, f"max_{part}")]
        parts[f"x_{part}"] = (digits.images[rows, :, :, None] / 16).astype(np.float32)
        parts[f"y_{part}"] = digits.target[rows].astype(np.int64)
    return ImageDataset(**parts, class_names=_DIGITS)


def _sklearn_class_names(config: Mapping[str, Any], data_dir: Path) -> tuple[str, ...]:
    _sklearn_name(config)
    return _DIGITS


def _sklearn_inventory(config: Mapping[str, Any], data_dir: Path) -> dict[str, Any]:
    return {"source": "sklearn", "name": _sklearn_name(config)}


@dataclass(frozen=True)
class _Source:
    load: Callable[[Mapping[str, Any], Path], ImageDataset]
    class_names: Callable[[Mapping[str, Any], Path], tuple[str, ...]]
    inventory: Callable[[Mapping[str, Any], Path], dict[str, Any]]


_SOURCES = {
    "torchvision": _Source(_load_torchvision, _torchvision_class_names, _torchvision_inventory),
    "image_folder": _Source(_load_image_folder, _image_folder_class_names, _image_folder_inventory),
    "npz": _Source(_load_npz, _npz_class_names, _npz_inventory),
    "sklearn": _Source(_load_sklearn, _sklearn_class_names, _sklearn_inventory),
}


def _source(config: Mapping[str, Any]) -> _Source:
    return _SOURCES[_choice(config, "source", tuple(_SOURCES))]
