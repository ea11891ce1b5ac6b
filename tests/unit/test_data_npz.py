"""Arrays in an .npz file, and what is said where one is wrong."""

import hashlib
import os
import zipfile

import numpy as np
import pytest

from epistemic_calibration.data import (
    DataError,
    class_names_of,
    load_dataset,
    make_source,
    raw_inventory,
)

NPZ = {"source": "npz", "path": "file.npz"}


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
    return load_dataset(NPZ, tmp_path)


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


@pytest.mark.fault
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_test": None}, r"file\.npz has no array x_test"),
        ({"x_train": np.full((6, 4, 5), np.nan)}, r"file\.npz: x_train has values that are NaN"),
        ({"x_train": np.zeros((6, 4, 5), int)}, r"x_train has dtype int64; it must be"),
        ({"x_train": np.full((6, 2), "a")}, r"x_train has dtype <U1; it must be floating"),
        ({"x_train": np.zeros((6, 3, 5, 3), np.uint8)}, r"channels may be its second or"),
        ({"y_test": [1, 2, 3]}, r"y_test has the label 3; the classes are 0, 1, 2"),
        ({"y_train": np.ones(6)}, r"y_train has shape \(6,\) and dtype float64; it must be"),
        ({"y_train": np.array([0, 1, 2] * 2, object)}, r"file\.npz: y_train holds Python objects"),
        ({"class_names": ["a", "b", "a"]}, "two classes are called 'a'"),
        ({"class_names": [1, 2, 3]}, r"class_names has shape \(3,\) and dtype int64"),
    ],
)
def test_what_is_wrong_in_an_npz_file_is_named(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        load_npz(tmp_path, **changes)


@pytest.mark.fault
def test_a_missing_or_broken_npz_file_is_named(tmp_path):
    for function in (load_dataset, class_names_of, raw_inventory):
        with pytest.raises(DataError, match=r"no such file: .*file\.npz \(config key datasets"):
            function(NPZ, tmp_path)
    load_npz(tmp_path)
    path = tmp_path / "file.npz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for function in (load_dataset, class_names_of):
        with pytest.raises(DataError, match=r"file\.npz cannot be read"):
            function(NPZ, tmp_path)


def test_the_inventory_of_an_npz_file_is_its_content(tmp_path):
    load_npz(tmp_path)
    digest = hashlib.sha256((tmp_path / "file.npz").read_bytes()).hexdigest()
    os.utime(tmp_path / "file.npz", (0, 0))
    assert raw_inventory(NPZ, tmp_path) == {"source": "npz", "sha256": digest}


def test_arrays_of_two_axes_are_features(tmp_path):
    # Of a size that float32 does not tell apart.
    x = 1.6e9 + np.arange(12.0).reshape(6, 2)
    loaded = load_npz(tmp_path, x_train=x, x_test=x[:3].astype(np.int64))
    assert make_source(NPZ).has_features(tmp_path)
    assert np.array_equal(loaded.x_train, x)
    assert loaded.x_train.dtype == loaded.x_test.dtype == np.float64
    load_npz(tmp_path)
    assert not make_source(NPZ).has_features(tmp_path)


def test_the_names_and_shapes_of_medmnist_are_read(tmp_path):
    given = arrays()
    named = {"train_images": given["x_train"], "train_labels": given["y_train"][:, None]}
    named |= {"test_images": given["x_test"], "test_labels": given["y_test"][:, None]}
    np.savez(tmp_path / "file.npz", **named)
    loaded = load_dataset(NPZ, tmp_path)
    assert np.array_equal(loaded.x_train[..., 0], given["x_train"])
    assert loaded.y_test.tolist() == given["y_test"].tolist()
    assert class_names_of(NPZ, tmp_path) == ("0", "1", "2")
    # Labels of several findings at once are not classes.
    named["train_labels"] = np.ones((6, 14), np.uint8)
    np.savez(tmp_path / "file.npz", **named)
    with pytest.raises(DataError, match=r"train_labels has shape \(6, 14\)"):
        load_dataset(NPZ, tmp_path)


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_may_come_first(tmp_path, caplog, channels):
    rng = np.random.default_rng(0)
    last = rng.integers(0, 256, (6, 4, 5, channels), dtype=np.uint8)
    first = np.moveaxis(last, 3, 1)
    with caplog.at_level("INFO"):
        loaded = load_npz(tmp_path, x_train=first, x_test=first[:3])
    assert np.array_equal(loaded.x_train, last)
    assert f"x_train has shape (6, {channels}, 4, 5): channels first" in caplog.text


@pytest.mark.fault
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused(tmp_path):
    np.savez(tmp_path / "file.npz", **arrays())
    with zipfile.ZipFile(tmp_path / "file.npz", "a") as archive:
        archive.writestr("x_train.npy", archive.read("x_train.npy"))
    with pytest.raises(DataError, match=r"file\.npz has two arrays called 'x_train'"):
        load_dataset(NPZ, tmp_path)


@pytest.mark.fault
def test_a_file_of_other_names_is_told_what_it_holds(tmp_path):
    np.savez(tmp_path / "file.npz", images=np.zeros(3))
    for function in (load_dataset, class_names_of):
        with pytest.raises(DataError, match=r"no array [xy]_train or train_\w+; it holds images"):
            function(NPZ, tmp_path)
