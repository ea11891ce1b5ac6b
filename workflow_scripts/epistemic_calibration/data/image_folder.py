"""Image files in folders that name their classes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from epistemic_calibration.data.base import DataError, DataSource, ImageDataset, logger
from epistemic_calibration.parameters import parameter

#: Height or width in pixels.
_Pixels = Annotated[int, {"ge": 4}]


@dataclass(frozen=True, kw_only=True)
class ImageFolder(DataSource):
    """A folder with train/CLASS/* and test/CLASS/*, read in the order of their names.

    Every format that Pillow reads, up to 8 bits a channel; pixels become uint8. Files that
    are no images are named in a warning, hidden ones are passed over.
    """

    path: str = parameter(min_length=1, description="the folder; relative paths start at data_dir")
    image_size: tuple[_Pixels, _Pixels] | None = parameter(
        None,
        description="[height, width] in pixels to which all images are scaled; by default all "
        "must have one size",
    )
    channels: Literal[1, 3] | None = parameter(
        None,
        description="1 (grey) or 3 (colour), to which all images are converted; by default all "
        "must be as the first one",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image_size is not None:
            size = tuple(self.image_size)
            if len(size) != 2 or not all(isinstance(n, int) and n > 0 for n in size):
                raise ValueError(
                    f"datasets.<name>.image_size: {list(size)!r} is not [height, width]"
                )

    def load(self, data_dir: Path) -> ImageDataset:
        folder = self._folder(data_dir)
        classes = _class_folders(folder, "train")
        test_classes = _class_folders(folder, "test")
        for missing in sorted(set(classes) - set(test_classes)):
            raise DataError(
                f"class {missing!r} is in {folder / 'train'}, but not in {folder / 'test'}"
            )
        for unknown in sorted(set(test_classes) - set(classes)):
            raise DataError(
                f"class {unknown!r} is in {folder / 'test'}, but not in {folder / 'train'}"
            )

        form = _ImageForm(
            None if self.image_size is None else tuple(self.image_size),
            self.channels,
            resize=self.image_size is not None,
            convert=self.channels is not None,
        )
        parts = {}
        for part in ("train", "test"):
            files, labels = [], []
            for label, name in enumerate(classes):
                found = _image_files(folder / part / name)
                files += found
                labels += [label] * len(found)
            labels = np.array(labels, dtype=np.int64)
            chosen = self.chosen_rows(labels, part)
            parts[f"x_{part}"], form = _read_images(list(np.array(files)[chosen]), form)
            parts[f"y_{part}"] = labels[chosen]
        test_rows = np.arange(len(labels))[chosen]
        return ImageDataset(**parts, class_names=classes, test_rows=test_rows)

    def class_names(self, data_dir: Path) -> tuple[str, ...]:
        return _class_folders(self._folder(data_dir), "train")

    def inventory(self, data_dir: Path) -> dict[str, Any]:
        folder = self._folder(data_dir)
        digest = hashlib.sha256()
        for part in ("train", "test"):
            for name in _class_folders(folder, part):
                for entry in _entries(folder / part / name):
                    line = f"{part}/{name}/{entry.name}\0{entry.stat().st_size}\n"
                    digest.update(line.encode("utf-8", "surrogateescape"))
        return {"sha256": digest.hexdigest()}

    def _folder(self, data_dir: Path) -> Path:
        folder = data_dir / Path(self.path).expanduser()
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
    """What every image must be, as far as the configuration or the first image has said."""

    size: tuple[int, int] | None
    channels: int | None
    resize: bool
    convert: bool
    first: str = ""


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
