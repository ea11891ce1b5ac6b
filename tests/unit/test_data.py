"""Images from every source, and what is said where they are wrong or missing."""

import functools
import gzip
import hashlib
import http.server
import os
import pickle
import shutil
import subprocess
import sys
import tarfile
import threading

import numpy as np
import pytest
from PIL import Image

from epistemic_calibration import data
from epistemic_calibration.data import (
    DataError,
    ImageDataset,
    class_names_of,
    load_images,
    raw_inventory,
    task_name,
)

DIGITS = {"source": "sklearn", "name": "load_digits"}
FOLDER = {"source": "image_folder", "path": "pictures"}
NPZ = {"source": "npz", "path": "file.npz"}


def load_folder(tmp_path, **options):
    return load_images({**FOLDER, **options}, tmp_path)


# scikit-learn


def test_digits_are_split_by_class():
    from sklearn.datasets import load_digits

    digits = load_digits()
    loaded = load_images(DIGITS, "unused")
    assert loaded.x_train.shape == (898, 8, 8, 1)
    assert loaded.x_test.shape == (899, 8, 8, 1)
    assert loaded.x_train.dtype == np.float32
    assert loaded.x_train.max() == 1
    assert loaded.class_names == tuple("0123456789")
    # Every image is in exactly one of the two sets, with its own label.
    rows = {
        (image.tobytes(), label) for image, label in zip(digits.images, digits.target, strict=True)
    }
    found = {
        ((image[..., 0] * 16).astype(float).tobytes(), label)
        for part in ("train", "test")
        for image, label in zip(
            getattr(loaded, f"x_{part}"), getattr(loaded, f"y_{part}"), strict=True
        )
    }
    assert found == rows
    assert np.abs(np.bincount(loaded.y_train) - np.bincount(loaded.y_test)).max() <= 1
    other = load_images({**DIGITS, "split_seed": 1, "test_fraction": 0.2}, "unused")
    assert len(other.x_test) == 360
    with pytest.raises(ValueError, match=r"datasets\.<name>\.test_fraction: 0\.001"):
        load_images({**DIGITS, "test_fraction": 0.001}, "unused")


def test_a_subset_has_the_classes_in_proportion():
    whole = load_images(DIGITS, "unused")
    part = load_images({**DIGITS, "max_train": 100, "max_test": 10}, "unused")
    assert part.x_train.shape == (100, 8, 8, 1)
    share = 100 * np.bincount(whole.y_train) / len(whole.y_train)
    assert np.abs(np.bincount(part.y_train) - share).max() <= 1
    assert sorted(part.y_test) == list(range(10))
    # In the order of the whole, and the same each time.
    index = {image.tobytes(): k for k, image in enumerate(whole.x_train)}
    rows = [index[image.tobytes()] for image in part.x_train]
    assert rows == sorted(rows)
    assert rows != list(range(100))
    again = load_images({**DIGITS, "max_train": 100, "max_test": 10}, "unused")
    assert np.array_equal(part.x_train, again.x_train)
    assert len(load_images({**DIGITS, "max_train": 10**6}, "unused").x_train) == 898
    with pytest.raises(ValueError, match="max_train: 9 images cannot hold one of each of the 10"):
        load_images({**DIGITS, "max_train": 9}, "unused")


# image_folder


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
    elsewhere = load_images({**FOLDER, "path": str(pictures)}, "/nowhere")
    assert np.array_equal(elsewhere.x_train, loaded.x_train)


def test_a_subset_of_a_folder_reads_only_its_files(pictures, tmp_path):
    rows = np.flatnonzero(load_folder(tmp_path, max_train=2).x_train[:, 0, 0, 0] < 100)
    kept = load_folder(tmp_path, max_train=2).x_train[:, 0, 0, 0]
    assert len(rows) == 2
    for k, name in enumerate(("Cat", "dog")):
        for i in range(3):
            if 10 * k + i not in kept:
                (pictures / "train" / name / f"image{i}.png").write_bytes(b"broken")
    assert np.array_equal(load_folder(tmp_path, max_train=2).x_train[:, 0, 0, 0], kept)
    with pytest.raises(DataError, match="cannot be read as an image"):
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


def test_jpeg_pixels_are_those_of_pillow(tmp_path):
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        for name in ("a", "b"):
            (tmp_path / "pictures" / part / name).mkdir(parents=True)
            pixels = rng.integers(0, 256, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / part / name / "x.jpg")
    loaded = load_folder(tmp_path)
    assert loaded.x_test.shape == (2, 8, 8, 1)
    with Image.open(tmp_path / "pictures" / "test" / "b" / "x.jpg") as image:
        assert np.array_equal(loaded.x_test[1, :, :, 0], np.asarray(image))


def delete(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def save(mode, size=(5, 6)):
    return lambda path: Image.new(mode, size).save(path)


@pytest.mark.parametrize(
    ("spoil", "where", "message"),
    [
        (truncate, "train/dog/image1.png", r"dog/image1\.png cannot be read as an image"),
        (lambda p: p.write_text(""), "test/dog/image0.png", r"image0\.png cannot be read"),
        (save("RGB", (6, 6)), "test/Cat/image0.png", r"test/Cat/image0\.png has 6x6 pixels .*6x5"),
        (save("L"), "train/Cat/image2.png", r"image2\.png is grey, but .*image0\.png is colour"),
        (save("I;16"), "train/Cat/image0.png", r"image0\.png has more than 8 bits"),
        (delete, "test/dog", r"class 'dog' is in .*train, but not in .*test"),
        (delete, "train/dog", r"class 'dog' is in .*test, but not in .*train"),
        (delete, "test", r"no such folder: .*test; .* must hold train/CLASS/\*"),
        (delete, "", r"no such folder: .*pictures \(config key datasets\.<name>\.path"),
        (lambda p: p.mkdir(), "train/dog/more", r"dog/more is a folder"),
    ],
)
def test_what_is_wrong_in_a_folder_is_named(pictures, tmp_path, spoil, where, message):
    spoil(pictures / where)
    with pytest.raises(DataError, match=message):
        load_folder(tmp_path)


def test_an_empty_class_and_a_single_class(pictures, tmp_path):
    for i in range(2):
        (pictures / "test" / "dog" / f"image{i}.png").unlink()
    with pytest.raises(DataError, match=r"test/dog has no image files"):
        load_folder(tmp_path)
    for part in ("train", "test"):
        shutil.rmtree(pictures / part / "dog")
    for function in (load_images, class_names_of):
        with pytest.raises(DataError, match=r"\['Cat'\]; at least two are needed"):
            function(FOLDER, tmp_path)
    shutil.rmtree(pictures / "train" / "Cat")
    with pytest.raises(DataError, match="train has no class folders"):
        class_names_of(FOLDER, tmp_path)


def test_wrong_options_of_a_folder(pictures, tmp_path):
    with pytest.raises(ValueError, match="channels: 4 is neither 1 nor 3"):
        load_folder(tmp_path, channels=4)
    with pytest.raises(ValueError, match=r"image_size: \[8\] is not \[height, width\]"):
        load_folder(tmp_path, image_size=[8])


def test_the_inventory_of_a_folder_tells_names_and_sizes(pictures, tmp_path):
    before = raw_inventory(FOLDER, tmp_path)
    image = pictures / "train" / "dog" / "image0.png"
    os.utime(image, (0, 0))
    moved = tmp_path / "elsewhere"
    shutil.copytree(pictures, moved)
    assert raw_inventory(FOLDER, tmp_path) == before
    assert raw_inventory({**FOLDER, "path": "elsewhere"}, tmp_path) == before
    image.rename(image.with_name("image9.png"))
    renamed = raw_inventory(FOLDER, tmp_path)
    truncate(image.with_name("image9.png"))
    assert len({str(v) for v in (before, renamed, raw_inventory(FOLDER, tmp_path))}) == 3


# npz


def arrays(**changes):
    rng = np.random.default_rng(0)
    content = {
        "x_train": rng.integers(0, 256, (6, 4, 5), dtype=np.uint8),
        "y_train": np.array([2, 0, 1, 0, 1, 2]),
        "x_test": rng.integers(0, 256, (3, 4, 5), dtype=np.uint8),
        "y_test": np.array([1, 2, 0]),
    }
    content.update(changes)
    return {key: value for key, value in content.items() if value is not None}


def load_npz(tmp_path, **changes):
    np.savez(tmp_path / "file.npz", **arrays(**changes))
    return load_images(NPZ, tmp_path)


def test_integer_labels(tmp_path):
    loaded = load_npz(tmp_path)
    assert np.array_equal(loaded.x_train[..., 0], arrays()["x_train"])
    assert loaded.y_train.tolist() == [2, 0, 1, 0, 1, 2]
    assert loaded.y_train.dtype == np.int64
    assert loaded.class_names == ("0", "1", "2") == class_names_of(NPZ, tmp_path)
    # Labels need not be 0, 1, ...: they are ordered as numbers.
    loaded = load_npz(
        tmp_path, y_train=np.array([10, -1, 9, -1, 9, 10], np.int8), y_test=[9, 10, -1]
    )
    assert loaded.class_names == ("-1", "9", "10") == class_names_of(NPZ, tmp_path)
    assert loaded.y_train.tolist() == [2, 0, 1, 0, 1, 2]
    assert loaded.y_test.tolist() == [1, 2, 0]


def test_string_labels_and_class_names(tmp_path):
    words = np.array(["cat", "ant", "bee"])
    y_train, y_test = words[arrays()["y_train"]], words[arrays()["y_test"]]
    loaded = load_npz(tmp_path, y_train=y_train, y_test=y_test)
    assert loaded.class_names == ("ant", "bee", "cat") == class_names_of(NPZ, tmp_path)
    assert [loaded.class_names[k] for k in loaded.y_train] == y_train.tolist()
    loaded = load_npz(tmp_path, y_train=y_train, y_test=y_test, class_names=words)
    assert loaded.class_names == tuple(words) == class_names_of(NPZ, tmp_path)
    assert loaded.y_train.tolist() == [2, 0, 1, 0, 1, 2]
    loaded = load_npz(tmp_path, class_names=words)
    assert loaded.class_names == tuple(words)
    assert loaded.y_test.tolist() == [1, 2, 0]


def test_floating_point_images(tmp_path):
    pixels = np.linspace(0, 1, 6 * 4 * 5 * 3).reshape(6, 4, 5, 3)
    loaded = load_npz(tmp_path, x_train=pixels, x_test=pixels[:3].astype(np.float16))
    assert loaded.x_train.dtype == loaded.x_test.dtype == np.float32
    np.testing.assert_allclose(loaded.x_train, pixels, rtol=1e-7)


def with_nan():
    pixels = np.zeros((6, 4, 5))
    pixels[4, 1, 2] = np.nan
    return pixels


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_test": None}, r"file\.npz has no array x_test"),
        ({"y_train": None}, r"file\.npz has no array y_train"),
        ({"y_test": [1, 2]}, r"x_test has 3 images, but y_test 2 labels"),
        ({"x_train": with_nan()}, r"file\.npz: x_train has pixels that are NaN, first in image 4"),
        ({"x_train": np.full((6, 4, 5), 255.0)}, r"x_train has pixels from 255 to 255; float"),
        ({"x_train": np.zeros((6, 4, 5), int)}, r"x_train has dtype int64; it must be uint8"),
        ({"x_train": np.zeros((6, 3, 5, 5), np.uint8)}, r"x_train has shape \(6, 3, 5, 5\)"),
        ({"x_train": np.zeros((6, 20), np.uint8)}, r"x_train has shape \(6, 20\)"),
        ({"x_train": np.zeros((6, 4, 4), np.uint8)}, r"x_train has images of \(4, 4, 1\).*4, 5"),
        ({"y_test": [1, 2, 3]}, r"y_test has the label 3, which y_train does not have"),
        ({"y_test": [1, 2, 1]}, r"file\.npz: the test set has no image of class 0"),
        ({"y_train": np.ones(6)}, r"y_train has shape \(6,\) and dtype float64; it must be"),
        ({"y_train": np.ones((6, 1), int)}, r"y_train has shape \(6, 1\)"),
        ({"y_train": np.array([0, 1, 2] * 2, object)}, r"file\.npz cannot be read .*allow_pickle"),
        ({"class_names": ["a", "b"]}, r"y_train has the label 2, but class_names has 2 names"),
        ({"class_names": ["a", "b", "c", "d"]}, r"train set has no image of class d"),
        ({"class_names": ["a", "b", "a"]}, r"class_names has a name twice"),
        ({"class_names": [1, 2, 3]}, r"class_names has shape \(3,\) and dtype int64"),
        ({"y_train": [0] * 6, "y_test": [0] * 3}, r"\['0'\]; at least two are needed"),
    ],
)
def test_what_is_wrong_in_an_npz_file_is_named(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        load_npz(tmp_path, **changes)


def test_a_missing_or_broken_npz_file_is_named(tmp_path):
    for function in (load_images, class_names_of, raw_inventory):
        with pytest.raises(DataError, match=r"no such file: .*file\.npz \(config key datasets"):
            function(NPZ, tmp_path)
    load_npz(tmp_path)
    truncate(tmp_path / "file.npz")
    for function in (load_images, class_names_of):
        with pytest.raises(DataError, match=r"file\.npz cannot be read"):
            function(NPZ, tmp_path)
    np.save(tmp_path / "file.npz", np.zeros(3))
    (tmp_path / "file.npz.npy").rename(tmp_path / "file.npz")
    with pytest.raises(DataError, match=r"file\.npz cannot be read"):
        load_images(NPZ, tmp_path)


def test_the_inventory_of_an_npz_file_is_its_content(tmp_path):
    load_npz(tmp_path)
    digest = hashlib.sha256((tmp_path / "file.npz").read_bytes()).hexdigest()
    os.utime(tmp_path / "file.npz", (0, 0))
    assert raw_inventory(NPZ, tmp_path) == {"source": "npz", "sha256": digest}


# torchvision


def write_idx(path, array):
    """Write an array in the format of the MNIST files."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + array.astype(np.uint8).tobytes())


def mnist_arrays():
    rng = np.random.default_rng(0)
    return {
        "train-images-idx3-ubyte": rng.integers(0, 256, (20, 28, 28)),
        "train-labels-idx1-ubyte": np.arange(20) % 10,
        "t10k-images-idx3-ubyte": rng.integers(0, 256, (10, 28, 28)),
        "t10k-labels-idx1-ubyte": np.arange(10)[::-1].copy(),
    }


def write_mnist(folder):
    for name, array in mnist_arrays().items():
        write_idx(folder / name, array)


def torchvision(name):
    return {"source": "torchvision", "name": name}


@pytest.fixture
def offline(monkeypatch):
    """A loopback port where nothing listens is the only server; no waiting between attempts."""
    from torchvision import datasets

    for name in ("MNIST", "FashionMNIST"):
        monkeypatch.setattr(getattr(datasets, name), "mirrors", ["http://127.0.0.1:9/"])
    monkeypatch.setattr(datasets.CIFAR10, "url", "http://127.0.0.1:9/cifar-10-python.tar.gz")
    monkeypatch.setattr(data, "_RETRY_DELAY", 0.01)


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST"])
def test_files_that_are_there_need_no_network(offline, tmp_path, name):
    write_mnist(tmp_path / name / "raw")
    loaded = load_images(torchvision(name), tmp_path)
    assert loaded.x_train.shape == (20, 28, 28, 1)
    assert np.array_equal(loaded.x_test[..., 0], mnist_arrays()["t10k-images-idx3-ubyte"])
    assert loaded.y_test.tolist() == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert loaded.y_test.dtype == np.int64
    assert loaded.class_names == class_names_of(torchvision(name), "unused")


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST"])
def test_without_network_the_missing_files_are_named(offline, tmp_path, name):
    raw = tmp_path / name / "raw"
    write_mnist(raw)
    (raw / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match=r"no connection to 127\.0\.0\.1:9") as error:
        load_images(torchvision(name), tmp_path)
    message = str(error.value)
    assert f"{name} is not complete in {tmp_path}" in message
    assert str(raw / "t10k-labels-idx1-ubyte.gz") in message
    assert f"to {raw / 't10k-labels-idx1-ubyte'}\n" in message
    assert "train-labels" not in message
    assert "config key data_dir" in message
    assert "datasets.<name>.source" in message


@pytest.mark.parametrize("keep", [10, -1])
def test_a_truncated_mnist_file_is_named(offline, tmp_path, keep):
    write_mnist(tmp_path / "MNIST" / "raw")
    path = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=rf"{path} is truncated or corrupt. Delete it"):
        load_images(torchvision("MNIST"), tmp_path)


def test_wrong_labels_of_mnist_are_found(offline, tmp_path):
    raw = tmp_path / "MNIST" / "raw"
    write_mnist(raw)
    write_idx(raw / "t10k-labels-idx1-ubyte", np.array([200, *range(1, 10)]))
    with pytest.raises(DataError, match="torchvision MNIST: y_test has labels from 1 to 200"):
        load_images(torchvision("MNIST"), tmp_path)


@pytest.fixture
def cifar(monkeypatch, offline, tmp_path):
    """The files of a small CIFAR-10, with their checksums told to torchvision."""
    from torchvision.datasets import CIFAR10

    folder = tmp_path / CIFAR10.base_folder
    folder.mkdir()
    rng = np.random.default_rng(0)

    def write(name, content):
        (folder / name).write_bytes(pickle.dumps(content))
        return hashlib.md5((folder / name).read_bytes()).hexdigest()

    def batch(name):
        pixels = rng.integers(0, 256, (10, 3072), dtype=np.uint8)
        return [name, write(name, {"data": pixels, "labels": list(range(10))})]

    monkeypatch.setattr(CIFAR10, "train_list", [batch(name) for name, _ in CIFAR10.train_list])
    monkeypatch.setattr(CIFAR10, "test_list", [batch(name) for name, _ in CIFAR10.test_list])
    names = {"label_names": list(class_names_of(torchvision("CIFAR10"), tmp_path))}
    meta = {**CIFAR10.meta, "md5": write("batches.meta", names)}
    monkeypatch.setattr(CIFAR10, "meta", meta)
    return folder


def test_cifar_is_read_with_channels_last(cifar, tmp_path):
    loaded = load_images({**torchvision("CIFAR10"), "max_train": 20}, tmp_path)
    assert loaded.x_train.shape == (20, 32, 32, 3)
    raw = pickle.loads((cifar / "test_batch").read_bytes())["data"]
    assert np.array_equal(loaded.x_test[3, 5, 7], raw[3].reshape(3, 32, 32)[:, 5, 7])
    assert loaded.class_names[:4] == ("airplane", "automobile", "bird", "cat")


def test_a_truncated_cifar_file_without_network_is_named(cifar, tmp_path):
    truncate(cifar / "data_batch_3")
    with pytest.raises(DataError, match="CIFAR10 is not complete") as error:
        load_images(torchvision("CIFAR10"), tmp_path)
    assert f"{cifar / 'data_batch_3'} is truncated or corrupt" in str(error.value)
    assert f"to {tmp_path / 'cifar-10-python.tar.gz'}," in str(error.value)


def test_a_cifar_archive_is_unpacked_without_network(cifar, monkeypatch, tmp_path):
    from torchvision.datasets import CIFAR10

    archive = tmp_path / CIFAR10.filename
    with tarfile.open(archive, "w:gz") as file:
        file.add(cifar, arcname=cifar.name)
    monkeypatch.setattr(CIFAR10, "tgz_md5", hashlib.md5(archive.read_bytes()).hexdigest())
    shutil.rmtree(cifar)
    assert len(load_images(torchvision("CIFAR10"), tmp_path).x_train) == 50
    shutil.rmtree(cifar)
    truncate(archive)
    with pytest.raises(DataError, match=f"{archive} is truncated or corrupt"):
        load_images(torchvision("CIFAR10"), tmp_path)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server of the MNIST archives that first fails ``server.failures`` times."""
    from torchvision.datasets import MNIST

    folder = tmp_path / "server"
    folder.mkdir()
    resources = []
    for name, array in mnist_arrays().items():
        write_idx(folder / name, array)
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
        md5 = hashlib.md5((folder / f"{name}.gz").read_bytes()).hexdigest()
        resources.append((f"{name}.gz", md5))

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            self.server.n_requests += 1
            if self.server.n_requests <= self.server.failures:
                self.send_error(503)
            else:
                super().do_GET()

        def log_message(self, *args):
            pass

    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.n_requests, server.failures = 0, 0
        monkeypatch.setattr(MNIST, "mirrors", [f"http://127.0.0.1:{server.server_port}/"])
        monkeypatch.setattr(MNIST, "resources", resources)
        monkeypatch.setattr(data, "_RETRY_DELAY", 0.01)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_missing_files_are_downloaded_in_several_attempts(server, tmp_path):
    server.failures = 2
    loaded = load_images(torchvision("MNIST"), tmp_path / "data")
    assert np.array_equal(loaded.x_train[..., 0], mnist_arrays()["train-images-idx3-ubyte"])
    asked = server.n_requests
    assert asked > 2
    load_images(torchvision("MNIST"), tmp_path / "data")
    assert server.n_requests == asked


def test_a_download_with_a_wrong_checksum_is_refused(server, tmp_path):
    (tmp_path / "server" / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"other"))
    with pytest.raises(DataError, match=r"t10k-images-idx3-ubyte\.gz is truncated or corrupt"):
        load_images(torchvision("MNIST"), tmp_path / "data")


def test_a_server_that_keeps_silent_is_given_up(offline, tmp_path, monkeypatch):
    import socket

    from torchvision.datasets import MNIST

    monkeypatch.setattr(data, "_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setattr(MNIST, "mirrors", [f"http://127.0.0.1:{port}/"])
        with pytest.raises(
            DataError, match=r"could not be downloaded \(no answer from 127\.0\.0\.1"
        ):
            load_images(torchvision("MNIST"), tmp_path)
    assert socket.getdefaulttimeout() is None


# All sources


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"source": "web"}, r"datasets\.<name>\.source: 'web' is none of torchvision, image"),
        ({}, r"datasets\.<name>\.source is missing"),
        ({"source": "npz"}, r"datasets\.<name>\.path is missing \(source: npz\)"),
        ({"source": "torchvision", "name": "SVHN"}, r"name: 'SVHN' is none of MNIST, CIFAR10"),
        ({"source": "sklearn", "name": "iris"}, r"name: 'iris' is none of load_digits"),
    ],
)
@pytest.mark.parametrize("function", [load_images, class_names_of, raw_inventory])
def test_wrong_configs_are_named(function, config, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        function(config, tmp_path)


@pytest.mark.parametrize("config", [torchvision("CIFAR10"), DIGITS])
def test_the_inventory_of_a_standard_data_set_is_its_name(config):
    options = {"max_train": 100, "split_seed": 3}
    assert raw_inventory({**config, **options}, "unused") == config


def test_planning_loads_no_heavy_library(pictures, tmp_path):
    np.savez(tmp_path / "file.npz", **arrays())
    configs = [torchvision("MNIST"), torchvision("CIFAR10"), DIGITS, FOLDER, NPZ]
    code = (
        "import sys\n"
        "from epistemic_calibration.data import class_names_of, raw_inventory\n"
        f"for config in {configs!r}:\n"
        f"    class_names_of(config, {str(tmp_path)!r}), raw_inventory(config, {str(tmp_path)!r})\n"
        "print(sorted({'torch', 'torchvision', 'sklearn', 'PIL', 'pandas'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("airplane", "airplane"),
        ("T-shirt/top", "T-shirt_top"),
        ("Ankle boot", "Ankle_boot"),
        ("../x", "_._x"),
        (".", "_"),
        ("v1.5", "v1.5"),
        ("café", "cafe"),
        ("-1", "-1"),
        ("猫", "_"),
    ],
)
def test_task_names_are_parts_of_a_path(name, safe):
    assert task_name(name) == safe


def test_class_names_that_share_a_file_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="a class name is empty"):
        task_name("")
    for one, two in (("a b", "a/b"), ("Cat", "cat")):
        np.savez(tmp_path / "file.npz", **arrays(class_names=[one, two, "c"]))
        with pytest.raises(DataError, match=f"classes '{one}' and '{two}' would share"):
            class_names_of(NPZ, tmp_path)


def test_pixels_are_float32_in_0_1():
    pixels = ImageDataset.pixels(np.array([0, 51, 255], np.uint8))
    assert pixels.dtype == np.float32
    assert pixels.tolist() == [0, np.float32(0.2), 1]
    same = np.array([0.25], np.float32)
    assert ImageDataset.pixels(same) is same
