"""Image files in folders that name their classes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from epistemic_calibration.data.base import (
    DataError,
    Dataset,
    DataSource,
    MissingDataError,
    logger,
    raise_faults,
)
from epistemic_calibration.parameters import parameter

if TYPE_CHECKING:
    from PIL import Image

#: Height or width in pixels.
_Pixels = Annotated[int, {"ge": 4}]
#: Formats of images, by Pillow's names: decoders that start no other program (that of EPS does).
_FORMATS = ("AVIF", "BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TGA", "TIFF", "WEBP")
#: Files and forms that a message names of each kind.
_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class ImageFolder(DataSource):
    """A folder with train/CLASS/* and test/CLASS/*, read in the order of their names.

    The usual formats, up to 8 bits a channel, told by the content of a file; pixels become uint8,
    turned as the orientation in a photo's EXIF data says. Files that are no images by their names
    are named in a warning, hidden ones are passed over. All that is wrong with a folder is told at
    once.
    """

    path: str = parameter(min_length=1, description="the folder; relative paths start at data_dir")
    image_size: tuple[_Pixels, _Pixels] | int | None = parameter(
        None,
        ge=4,
        description="[height, width] in pixels to which all images are scaled, such as [32, 32], "
        "or one number for both; by default all must have one size",
    )
    channels: Literal[1, 3] | None = parameter(
        None,
        description="1 (grey) or 3 (colour), to which all images are converted; by default all "
        "must be of one kind",
    )

    def load(self, data_dir: Path) -> Dataset:
        folder = self._folder(data_dir)
        classes = {part: _class_folders(folder, part) for part in ("train", "test")}
        faults = []
        for one, other in (("train", "test"), ("test", "train")):
            if lacking := sorted(set(classes[one]) - set(classes[other])):
                faults.append(f"class {_first(lacking)} in {one}/, but not in {other}/")
        size = (self.image_size,) * 2 if isinstance(self.image_size, int) else self.image_size
        reader = _Reader(folder, None if size is None else tuple(size), self.channels)
        parts = {}
        for part in ("train", "test"):
            files, labels = [], []
            for label, name in enumerate(classes["train"]):
                found = _image_files(folder, part, name, faults) if name in classes[part] else []
                files += found
                labels += [label] * len(found)
            labels = np.array(labels, dtype=np.int64)
            chosen = self.chosen_rows(labels, part)
            rows = np.arange(len(labels))[chosen]
            parts[f"x_{part}"] = reader.read([files[row] for row in rows])
            parts[f"y_{part}"] = labels[rows]
        faults += reader.faults()
        raise_faults(str(folder), faults)
        return Dataset(**parts, class_names=classes["train"], test_rows=rows)

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
            raise MissingDataError(
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


def _image_files(folder: Path, part: str, name: str, faults: list[str]) -> list[str]:
    from PIL import Image

    extensions = Image.registered_extensions()
    files, others, folders = [], [], []
    for entry in _entries(folder / part / name):
        known = Path(entry.name).suffix.lower() in extensions
        (folders if entry.is_dir() else files if known else others).append(entry.path)
    where = f"{part}/{name}"
    if folders:
        names = _first([Path(path).name for path in folders])
        faults.append(f"{where} holds folders ({names}); images must lie directly in it")
    if not files:
        faults.append(f"{where} has no image files")
    if others:
        names = _first([Path(path).name for path in others])
        logger.warning("%s: %d files are no images (%s)", folder / where, len(others), names)
    return files


@dataclass
class _Reader:
    """Reads images into arrays, and notes of each file what is wrong with it."""

    folder: Path
    size: tuple[int, int] | None
    channels: int | None
    #: Files by their size, and by their kind, where the configuration says none.
    sizes: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    kinds: dict[str, list[str]] = field(default_factory=dict)
    #: Files that are no images of 8 bits, by what is wrong with them.
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def read(self, files: Sequence[str]) -> np.ndarray | None:
        """Return the images of files; with faults, what is in the array means nothing."""
        images = None
        for row, path in enumerate(files):
            pixels = self._pixels(path)
            if pixels is None:
                continue
            if images is None:
                images = np.empty((len(files), *pixels.shape), dtype=np.uint8)
            # Else it is a fault, told at the end.
            if pixels.shape == images.shape[1:]:
                images[row] = pixels
        return images

    def faults(self) -> list[str]:
        """Return what is wrong with the files read so far, a line a kind."""
        faults = [f"{words}: {_first(n)} ({len(n):,} files)" for words, n in self.wrong.items()]
        if self.size is None and len(self.sizes) > 1:
            most = list(max(self.sizes, key=lambda size: len(self.sizes[size])))
            faults.append(
                f"images have {len(self.sizes)} sizes (height, width): {_of_forms(self.sizes)}; "
                f"set datasets.<name>.image_size to scale all to one, such as image_size: {most}"
            )
        if self.channels is None and len(self.kinds) > 1:
            faults.append(
                f"images are grey and colour: {_of_forms(self.kinds)}; set "
                f"datasets.<name>.channels to convert all, to 1 (grey) or 3 (colour)"
            )
        return faults

    def _pixels(self, path: str) -> np.ndarray | None:
        from PIL import Image

        name = Path(path).relative_to(self.folder).as_posix()
        try:
            image = _upright(path)
        # Decoders raise OSError, SyntaxError, ValueError, struct.error and others.
        except Exception as error:
            reason = " ".join(str(error).replace(repr(path), "").replace(path, "").split())[:80]
            named = f"{name} ({reason or type(error).__name__})"
            self.wrong.setdefault("cannot be read as images", []).append(named)
            return None
        if image.mode[0] in "IF":
            words = "have more than 8 bits a channel: convert them"
            self.wrong.setdefault(words, []).append(name)
            return None
        size, channels = image.size[::-1], 1 if image.mode in ("1", "L", "LA", "La") else 3
        self.sizes.setdefault(size, []).append(name)
        self.kinds.setdefault({1: "grey", 3: "colour"}[channels], []).append(name)
        mode = "L" if (self.channels or channels) == 1 else "RGB"
        if image.mode != mode:
            image = image.convert(mode)
        if self.size not in (None, size):
            image = image.resize(self.size[::-1], Image.Resampling.BILINEAR)
        pixels = np.asarray(image)
        return pixels[..., None] if pixels.ndim == 2 else pixels


def _upright(path: str) -> Image.Image:
    from PIL import Image, ImageOps

    with Image.open(path, formats=_FORMATS) as image:
        image.load()
        return ImageOps.exif_transpose(image)


def _of_forms(forms: Mapping[Any, Sequence[str]]) -> str:
    most = sorted(forms, key=lambda form: -len(forms[form]))
    return _first([f"{form} ({len(forms[form]):,}: {_first(forms[form])})" for form in most])


def _first(names: Sequence[str]) -> str:
    return ", ".join([*names[:_NAMED], *(["..."] if len(names) > _NAMED else [])])
