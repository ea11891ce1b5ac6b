"""The data sets of scikit-learn, and the random subsets that every source takes."""

import numpy as np
import pytest

from epistemic_calibration.data import DataError, class_names_of, load_dataset, make_source

DIGITS = {"source": "sklearn", "name": "load_digits"}


def test_digits_are_split_by_class():
    from sklearn.datasets import load_digits

    digits = load_digits()
    loaded = load_dataset(DIGITS, "unused")
    assert loaded.x_train.shape == (898, 8, 8, 1)
    assert loaded.x_test.shape == (899, 8, 8, 1)
    assert loaded.x_train.dtype == np.float32
    assert loaded.x_train.max() == 1
    assert loaded.class_names == tuple("0123456789")
    # Every image is in exactly one of the two sets, with its own label.
    pixels = 16 * np.concatenate([loaded.x_train, loaded.x_test]).reshape(-1, 64)
    found = np.c_[pixels, np.r_[loaded.y_train, loaded.y_test]]
    assert sorted(found.tolist()) == sorted(np.c_[digits.data, digits.target].tolist())
    assert np.abs(np.bincount(loaded.y_train) - np.bincount(loaded.y_test)).max() <= 1
    other = load_dataset({**DIGITS, "split_seed": 1, "test_fraction": 0.2}, "unused")
    assert len(other.x_test) == 360
    with pytest.raises(ValueError, match=r"datasets\.<name>\.test_fraction: 0\.001"):
        load_dataset({**DIGITS, "test_fraction": 0.001}, "unused")


def test_a_subset_has_the_classes_in_proportion():
    whole = load_dataset(DIGITS, "unused")
    part = load_dataset({**DIGITS, "max_train": 100, "max_test": 10}, "unused")
    assert part.x_train.shape == (100, 8, 8, 1)
    share = 100 * np.bincount(whole.y_train) / len(whole.y_train)
    assert np.abs(np.bincount(part.y_train) - share).max() <= 1
    assert sorted(part.y_test) == list(range(10))
    # In the order of the whole, and the same each time.
    index = {image.tobytes(): k for k, image in enumerate(whole.x_train)}
    rows = [index[image.tobytes()] for image in part.x_train]
    assert rows == sorted(rows)
    assert rows != list(range(100))
    again = load_dataset({**DIGITS, "max_train": 100, "max_test": 10}, "unused")
    assert np.array_equal(part.x_train, again.x_train)
    assert len(load_dataset({**DIGITS, "max_train": 10**6}, "unused").x_train) == 898
    with pytest.raises(ValueError, match="max_train: 9 inputs cannot hold one of each of the 10"):
        load_dataset({**DIGITS, "max_train": 9}, "unused")


@pytest.mark.parametrize("name", ["load_breast_cancer", "load_iris", "load_wine"])
def test_features_are_those_of_scikit_learn(name):
    from sklearn import datasets

    whole = getattr(datasets, name)()
    source = {"source": "sklearn", "name": name, "test_fraction": 0.3, "split_seed": 2}
    loaded = load_dataset(source, "unused")
    assert make_source(source).has_features("unused") and not make_source(DIGITS).has_features(
        "unused"
    )
    assert class_names_of(source, "unused") == tuple(whole.target_names) == loaded.class_names
    # Unscaled and in double precision: nothing is learnt of the test set here.
    found = np.r_[np.c_[loaded.x_train, loaded.y_train], np.c_[loaded.x_test, loaded.y_test]]
    assert sorted(found.tolist()) == sorted(np.c_[whole.data, whole.target].tolist())


@pytest.mark.fault
def test_what_cannot_be_downloaded_is_told_in_one_line(tmp_path, monkeypatch):
    from urllib.error import URLError

    def no_network(*args, **kwargs):
        raise URLError("no network")

    monkeypatch.setattr("sklearn.datasets._base.urlretrieve", no_network)
    with pytest.raises(DataError, match=r"fetch_covtype are not in .* \(<urlopen") as error:
        load_dataset({"source": "sklearn", "name": "fetch_covtype"}, tmp_path)
    assert "\n" not in str(error.value)
    assert "copy what it writes to" in str(error.value)


def test_the_classes_of_covtype_are_its_numbers_from_1_on(monkeypatch):
    from types import SimpleNamespace

    rows = np.arange(28.0)[:, None]
    fetched = SimpleNamespace(data=rows, target=np.arange(28) % 7 + 1)
    monkeypatch.setattr("sklearn.datasets.fetch_covtype", lambda **options: fetched)
    loaded = load_dataset({"source": "sklearn", "name": "fetch_covtype"}, "unused")
    assert len(loaded.class_names) == 7
    assert np.array_equal(loaded.y_test, loaded.x_test[:, 0] % 7)
