"""What all sources of images share: their contract, their registry, and the checks of images."""

import dataclasses

import numpy as np
import pytest

from epistemic_calibration.data import (
    DataError,
    Dataset,
    DataSource,
    available_sources,
    load_dataset,
    load_source,
    raw_inventory,
    task_names,
)
from epistemic_calibration.parameters import BOUNDS

CIFAR10 = {"source": "torchvision", "name": "CIFAR10"}
DIGITS = {"source": "sklearn", "name": "load_digits"}


@pytest.mark.parametrize("name", available_sources())
def test_every_source_keeps_the_contract(name):
    source = load_source(name)
    assert issubclass(source, DataSource)
    assert source.__doc__ and not source.__doc__.startswith(source.__name__)
    assert not source.__abstractmethods__
    fields = {field.name: field for field in dataclasses.fields(source)}
    for field in fields.values():
        assert field.kw_only
        assert field.metadata["description"]
        assert set(field.metadata) <= {"description", *BOUNDS}
    assert fields["max_train"].metadata["ge"] == fields["max_test"].metadata["ge"] == 2


@pytest.mark.fault
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"source": "web"}, r"nothing called 'web' in data: .*image_folder"),
        ({"source": "npz"}, "missing .* 'path'"),
        ({"source": "torchvision", "name": "SVHN"}, r"name: 'SVHN' is none of MNIST, CIFAR10"),
        ({"source": "sklearn", "name": None}, r"name: None is none of load_digits"),
    ],
)
def test_wrong_configs_are_named(config, message, tmp_path):
    with pytest.raises((ValueError, TypeError), match=message):
        load_dataset(config, tmp_path)


@pytest.mark.parametrize("config", [CIFAR10, DIGITS])
def test_the_inventory_of_a_standard_data_set_is_its_name(config):
    options = {"max_train": 100, "split_seed": 3}
    assert raw_inventory({**config, **options}, "unused") == config


@pytest.mark.parametrize(
    ("names", "safe"),
    [
        (["airplane", "T-shirt/top", "../x"], ["airplane", "T-shirt_top", "_._x"]),
        ([".x", "café", "-1"], ["_x", "cafe", "-1"]),
        # Classes without a spelling of their own are numbered.
        (["猫", "собака", "dog"], ["class_0", "class_1", "dog"]),
        (["a/b", "a b", "c"], ["class_0", "class_1", "c"]),
        (["Cat", "cat"], ["class_0", "class_1"]),
        # A name that is another's number gives way.
        (["dog", "CLASS_2", "猫"], ["dog", "class_1", "class_2"]),
        (["...", "b"], ["class_0", "b"]),
        # What a file cannot be called.
        (["a" * 151, "b" * 150], ["class_0", "b" * 150]),
    ],
)
def test_task_names_are_parts_of_a_path_and_all_different(names, safe):
    assert list(task_names(names)) == safe


def image_dataset(**changes):
    images = np.zeros((4, 5, 6, 1), np.uint8)
    parts = {"x_train": images, "y_train": np.array([0, 1, 0, 1]), "x_test": images[:2]}
    parts |= {"y_test": np.array([1, 0]), "class_names": ("a", "b"), "test_rows": np.arange(2)}
    return Dataset(**{**parts, **changes})


@pytest.mark.fault
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_names": ("a",)}, r"has the classes \['a'\]; at least two are needed"),
        ({"x_test": np.zeros((2, 5, 6, 2), np.uint8)}, r"x_test has shape \(2, 5, 6, 2\)"),
        ({"y_train": np.array([0, 1, 0])}, "x_train has 4 inputs, but y_train 3 labels"),
        ({"y_test": np.array([1, 2])}, r"y_test has labels from 1 to 2; .* lie in 0 \.\.\. 1"),
        ({"y_test": np.array([1, 1])}, "the test set has no input of class a"),
        ({"x_test": np.zeros((2, 6))}, r"x_train has shape .*, but x_test \(2, 6\)"),
        ({"x_test": np.full((2, 5, 6, 1), 255.0)}, "x_test has pixels from 255 to 255; float"),
        ({"x_test": np.zeros((2, 0))}, r"x_test has shape \(2, 0\); .* not empty"),
        ({"x_test": np.full((2, 6), np.inf)}, "x_test has values that are NaN .* first in row 0"),
    ],
)
def test_what_is_wrong_in_a_data_set_is_named(changes, message):
    image_dataset().check()
    with pytest.raises(DataError, match=message):
        image_dataset(**changes).check()
