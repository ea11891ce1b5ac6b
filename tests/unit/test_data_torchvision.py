"""The data sets of torchvision: files that are there, broken, missing or downloaded."""

import gzip
import hashlib
import pickle
import shutil

import numpy as np
import pytest

from epistemic_calibration.data import DataError, _download, class_names_of, load_dataset
from epistemic_calibration.data import torchvision as source


def idx(array):
    """Return an array in the format of the MNIST files."""
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.astype(np.uint8).tobytes()


def mnist_arrays():
    rng = np.random.default_rng(0)
    return {
        "train-images-idx3-ubyte": rng.integers(0, 256, (20, 28, 28)),
        "train-labels-idx1-ubyte": np.arange(20) % 10,
        "t10k-images-idx3-ubyte": rng.integers(0, 256, (10, 28, 28)),
        "t10k-labels-idx1-ubyte": np.arange(10)[::-1].copy(),
    }


def write_mnist(folder):
    folder.mkdir(parents=True)
    for name, array in mnist_arrays().items():
        (folder / name).write_bytes(idx(array))


def torchvision(name):
    return {"source": "torchvision", "name": name}


@pytest.fixture
def small(monkeypatch):
    """A small MNIST and FashionMNIST are those published."""
    checksums = {file: hashlib.md5(idx(a)).hexdigest() for file, a in mnist_arrays().items()}
    for name in ("MNIST", "FashionMNIST"):
        monkeypatch.setitem(source._UNPACKED, name, checksums)


@pytest.fixture
def offline(monkeypatch, small):
    """A loopback port where nothing listens is the only server."""
    from torchvision import datasets

    for name in ("MNIST", "FashionMNIST"):
        monkeypatch.setattr(getattr(datasets, name), "mirrors", ["http://127.0.0.1:9/"])
    monkeypatch.setattr(datasets.CIFAR10, "url", "http://127.0.0.1:9/cifar-10-python.tar.gz")


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST"])
def test_files_that_are_there_need_no_network(offline, tmp_path, name):
    write_mnist(tmp_path / name / "raw")
    loaded = load_dataset(torchvision(name), tmp_path)
    assert loaded.x_train.shape == (20, 28, 28, 1)
    assert np.array_equal(loaded.x_test[..., 0], mnist_arrays()["t10k-images-idx3-ubyte"])
    assert loaded.y_test.tolist() == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert loaded.y_test.dtype == np.int64
    assert loaded.class_names == class_names_of(torchvision(name), "unused")


@pytest.mark.fault
def test_without_network_the_missing_files_are_named(offline, tmp_path):
    raw = tmp_path / "MNIST" / "raw"
    write_mnist(raw)
    (raw / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match=rf"MNIST is not complete in .*t10k-labels.* to {raw},"):
        load_dataset(torchvision("MNIST"), tmp_path)


@pytest.mark.fault
@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST"])
@pytest.mark.parametrize("file", mnist_arrays())
@pytest.mark.parametrize("broken", [True, False])
def test_other_data_under_the_names_of_mnist_are_refused(offline, tmp_path, name, file, broken):
    path = tmp_path / name / "raw" / file
    write_mnist(path.parent)
    # Cut off, or whole and a proper data set.
    path.write_bytes(path.read_bytes()[:-1] if broken else idx(mnist_arrays()[file][::-1]))
    words = rf"{path} is truncated or corrupt, or not the published file of {name} .*Delete it"
    with pytest.raises(DataError, match=words):
        load_dataset(torchvision(name), tmp_path)


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
    loaded = load_dataset({**torchvision("CIFAR10"), "max_train": 20}, tmp_path)
    assert loaded.x_train.shape == (20, 32, 32, 3)
    raw = pickle.loads((cifar / "test_batch").read_bytes())["data"]
    assert np.array_equal(loaded.x_test[3, 5, 7], raw[3].reshape(3, 32, 32)[:, 5, 7])
    assert loaded.class_names[:4] == ("airplane", "automobile", "bird", "cat")


def test_missing_files_are_downloaded_once(served, small, tmp_path, monkeypatch):
    from torchvision.datasets import MNIST

    folder, address = served
    resources = []
    for name, array in mnist_arrays().items():
        packed = gzip.compress(idx(array))
        (folder / f"{name}.gz").write_bytes(packed)
        resources.append((f"{name}.gz", hashlib.md5(packed).hexdigest()))
    monkeypatch.setattr(MNIST, "mirrors", [address])
    monkeypatch.setattr(MNIST, "resources", resources)
    loaded = load_dataset(torchvision("MNIST"), tmp_path / "data")
    assert np.array_equal(loaded.x_train[..., 0], mnist_arrays()["train-images-idx3-ubyte"])
    shutil.rmtree(folder)
    load_dataset(torchvision("MNIST"), tmp_path / "data")


def test_a_server_that_keeps_silent_is_given_up(offline, tmp_path, monkeypatch):
    import socket

    from torchvision.datasets import MNIST

    monkeypatch.setattr(_download, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setattr(MNIST, "mirrors", [f"http://127.0.0.1:{port}/"])
        with pytest.raises(DataError, match="could not be downloaded"):
            load_dataset(torchvision("MNIST"), tmp_path)
    assert socket.getdefaulttimeout() is None
