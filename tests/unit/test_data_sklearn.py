"""The digits of scikit-learn, and the random subsets that every source takes."""

import numpy as np
import pytest

from epistemic_calibration.data import load_dataset

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
    with pytest.raises(ValueError, match="max_train: 9 images cannot hold one of each of the 10"):
        load_dataset({**DIGITS, "max_train": 9}, "unused")
