"""Folders of image files, and what is said where one is wrong."""

import os
import shutil

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image

from epistemic_calibration.data import DataError, class_names_of, load_dataset, raw_inventory

FOLDER = {"source": "image_folder", "path": "pictures"}


def load_folder(tmp_path, **options):
    return load_dataset({**FOLDER, **options}, tmp_path)


@pytest.fixture
def pictures(tmp_path):
    """A folder of colour images: class k of (dog, Cat) is all of value 10 k + position."""
    for part, n in (("train", 3), ("test", 2)):
        for k, name in enumerate(("Cat", "dog")):
            folder = tmp_path / "pictures" / part / name
            folder.mkdir(parents=True)
            for i in range(n):
                pixels = np.full((6, 5, 3), 10 * k + i, np.uint8)
                Image.fromarray(pixels).save(folder / f"image{i}.png")
    return tmp_path / "pictures"


def test_a_folder_is_read_in_the_order_of_names(pictures, tmp_path):
    loaded = load_folder(tmp_path)
    assert loaded.class_names == ("Cat", "dog") == class_names_of(FOLDER, tmp_path)
    assert loaded.x_train.shape == (6, 6, 5, 3)
    assert loaded.x_train.dtype == np.uint8
    assert loaded.x_train[:, 0, 0, 0].tolist() == [0, 1, 2, 10, 11, 12]
    assert loaded.y_train.tolist() == [0, 0, 0, 1, 1, 1]
    assert loaded.x_test[:, 5, 4, 2].tolist() == [0, 1, 10, 11]
    assert loaded.y_test.tolist() == [0, 0, 1, 1]


def test_a_subset_of_a_folder_reads_only_its_files(pictures, tmp_path):
    rows = np.flatnonzero(load_folder(tmp_path, max_train=2).x_train[:, 0, 0, 0] < 100)
    kept = load_folder(tmp_path, max_train=2).x_train[:, 0, 0, 0]
    assert len(rows) == 2
    for k, name in enumerate(("Cat", "dog")):
        for i in range(3):
            if 10 * k + i not in kept:
                (pictures / "train" / name / f"image{i}.png").write_bytes(b"broken")
    assert np.array_equal(load_folder(tmp_path, max_train=2).x_train[:, 0, 0, 0], kept)
    with pytest.raises(DataError, match="cannot be read as images"):
        load_folder(tmp_path)


def test_formats_and_conversions(pictures, tmp_path):
    folder = pictures / "train" / "Cat"
    Image.new("L", (5, 6), 100).save(folder / "a.BMP")
    Image.new("P", (5, 6)).save(folder / "b.gif")
    Image.new("RGBA", (5, 6), (50, 50, 50, 255)).save(folder / "c.webp", lossless=True)
    (folder / "notes.txt").write_text("not an image")
    (folder / ".hidden.png").write_text("not an image")
    grey = load_folder(tmp_path, channels=1)
    assert grey.x_train.shape == (9, 6, 5, 1)
    assert grey.x_train[:, 0, 0, 0].tolist() == [100, 0, 50, 0, 1, 2, 10, 11, 12]
    colour = load_folder(tmp_path, channels=3)
    assert colour.x_train[0, 0, 0].tolist() == [100, 100, 100]
    small = load_folder(tmp_path, channels=3, image_size=[4, 3])
    assert small.x_train.shape == (9, 4, 3, 3)
    assert small.x_train[:, 0, 0, 0].tolist() == colour.x_train[:, 0, 0, 0].tolist()


@pytest.mark.fault
def test_an_eps_file_called_png_is_refused_and_starts_no_program(pictures, tmp_path, monkeypatch):
    (tmp_path / "gs").write_text(f"#!/bin/sh\ntouch {tmp_path / 'started'}\n")
    (tmp_path / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    # Pillow looks for the program once.
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    Image.new("RGB", (5, 6)).save(pictures / "train" / "Cat" / "more.png", format="EPS")
    with pytest.raises(DataError, match=r"train/Cat/more.png \(cannot identify"):
        load_folder(tmp_path)
    assert not (tmp_path / "started").exists()


def delete(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def save(mode, size=(5, 6)):
    return lambda path: Image.new(mode, size).save(path)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("spoil", "where", "message"),
    [
        (
            save("RGB", (6, 6)),
            "test/Cat/image0.png",
            r"images have 2 sizes .*: \(6, 5\) \(9: .*, \.\.\.\), \(6, 6\) \(1: .*0\.png\); "
            r"set datasets\.<name>\.image_size .* image_size: \[6, 5\]",
        ),
        (
            save("L"),
            "train/Cat/image2.png",
            r"grey and colour: colour \(9: .*\), grey \(1: .*/image2\.png\); set .*channels",
        ),
        (delete, "test/dog", r"pictures: class dog in train/, but not in test/"),
        (delete, "test", r"no such folder: .*test; .* must hold train/CLASS/\*"),
        (delete, "", r"no such folder: .*pictures \(config key datasets\.<name>\.path"),
    ],
)
def test_what_is_wrong_in_a_folder_is_named(pictures, tmp_path, spoil, where, message):
    spoil(pictures / where)
    with pytest.raises(DataError, match=message):
        load_folder(tmp_path)


@pytest.mark.fault
def test_all_faults_of_a_folder_are_told_at_once(pictures, tmp_path):
    (pictures / "train" / "dog" / "image1.png").write_text("")
    save("RGB", (7, 9))(pictures / "train" / "Cat" / "image0.png")
    save("RGB", (9, 9))(pictures / "train" / "Cat" / "image1.png")
    save("L")(pictures / "test" / "Cat" / "image0.png")
    save("I;16")(pictures / "test" / "Cat" / "image1.png")
    (pictures / "train" / "dog" / "more").mkdir()
    with pytest.raises(DataError) as error:
        load_folder(tmp_path)
    first, *faults = str(error.value).splitlines()
    assert first == f"{pictures} has 5 faults:"
    starts = ("train/dog holds folders", "cannot be read as images")
    starts += ("have more than 8 bits", "images have 3 sizes", "images are grey and colour")
    for fault, start in zip(faults, starts, strict=True):
        assert fault.strip().startswith(start)
    # What the keys mend is no longer told.
    with pytest.raises(DataError, match="has 3 faults"):
        load_folder(tmp_path, image_size=8, channels=1)


def test_photos_are_turned_upright(pictures, tmp_path):
    pixels = np.arange(30, dtype=np.uint8).reshape(5, 6)
    exif = Image.Exif()
    # To be turned by a quarter, clockwise.
    exif[0x0112] = 6
    path = pictures / "train" / "Cat" / "image0.png"
    Image.fromarray(pixels).save(path, exif=exif)
    loaded = load_folder(tmp_path, channels=1)
    assert loaded.x_train.shape == (6, 6, 5, 1)
    assert np.array_equal(loaded.x_train[0, :, :, 0], np.rot90(pixels, -1))


def test_an_empty_class_and_a_single_class(pictures, tmp_path):
    for i in range(2):
        (pictures / "test" / "dog" / f"image{i}.png").unlink()
    with pytest.raises(DataError, match=r"test/dog has no image files"):
        load_folder(tmp_path)
    for part in ("train", "test"):
        shutil.rmtree(pictures / part / "dog")
    for function in (load_dataset, class_names_of):
        with pytest.raises(DataError, match=r"\['Cat'\]; at least two are needed"):
            function(FOLDER, tmp_path)


def test_the_inventory_of_a_folder_tells_names_and_sizes(pictures, tmp_path):
    before = raw_inventory(FOLDER, tmp_path)
    image = pictures / "train" / "dog" / "image0.png"
    os.utime(image, (0, 0))
    moved = tmp_path / "elsewhere"
    shutil.copytree(pictures, moved)
    assert raw_inventory(FOLDER, tmp_path) == before
    assert raw_inventory({**FOLDER, "path": "elsewhere"}, tmp_path) == before
    image = image.rename(image.with_name("image9.png"))
    renamed = raw_inventory(FOLDER, tmp_path)
    image.write_bytes(image.read_bytes()[: image.stat().st_size // 2])
    assert len({str(v) for v in (before, renamed, raw_inventory(FOLDER, tmp_path))}) == 3
