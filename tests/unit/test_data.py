"""What all sources of images share: their contract, their registry, and the checks of images."""

import dataclasses
import doctest
import importlib
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import epistemic_calibration
from epistemic_calibration.data import (
    DataError,
    Dataset,
    DataSource,
    available_sources,
    base,
    class_names_of,
    load_dataset,
    load_source,
    raw_inventory,
    task_names,
)
from epistemic_calibration.parameters import BOUNDS, parameter

MNIST = {"source": "torchvision", "name": "MNIST"}
CIFAR10 = {"source": "torchvision", "name": "CIFAR10"}
DIGITS = {"source": "sklearn", "name": "load_digits"}
FOLDER = {"source": "image_folder", "path": "pictures"}
NPZ = {"source": "npz", "path": "file.npz"}

#: Keys of configurations that exist, by source: True where required.
KEYS = {
    "torchvision": {"name": True},
    "image_folder": {"path": True, "image_size": False, "channels": False},
    "npz": {"path": True, "channel_axis": False, "max_bytes": False},
    "table": {
        **{"path": True, "label": True, "columns": False, "drop": False, "categorical": False},
        **{"missing": False, "missing_values": False, "test_path": False, "split": False},
        **{"test_fraction": False, "split_seed": False, "separator": False, "decimal": False},
    },
    "sklearn": {"name": True, "test_fraction": False, "split_seed": False},
}


def test_every_file_is_a_source():
    assert set(available_sources()) >= set(KEYS)
    with pytest.raises(ValueError, match=r"nothing called 'web' in data: .*image_folder"):
        load_source("web")


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


@pytest.mark.parametrize(("name", "keys"), KEYS.items())
def test_the_fields_of_a_source_are_its_configuration_keys(name, keys):
    fields = dataclasses.fields(load_source(name))
    required = {field.name: field.default is dataclasses.MISSING for field in fields}
    common = ("max_train", "max_test", "label_counts", "annotations", "held_out_fraction")
    assert required == {**dict.fromkeys(common, False), **keys}


@pytest.mark.parametrize("value", ["red", 4])
def test_choices_are_checked_and_none_is_one_where_it_is_the_default(value):
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Source(DataSource):
        two: Literal["a", "b"] = parameter("a")
        three: Literal[1, 2, 3] | None = parameter(None)

        def load(self, data_dir):
            raise NotImplementedError

        class_names = inventory = load

    assert Source(two="b", three=3).three == 3
    assert Source().three is None
    with pytest.raises(ValueError, match=rf"datasets\.<name>\.two: {value!r} is neither a nor b"):
        Source(two=value)
    with pytest.raises(ValueError, match=rf"three: {value!r} is none of 1, 2, 3"):
        Source(three=value)
    with pytest.raises(ValueError, match="two: None is neither a nor b"):
        Source(two=None)


def test_a_new_source_is_one_file(tmp_path):
    # The copy holds nothing but the sources and what they import: no list to add to.
    package = tmp_path / "epistemic_calibration"
    package.mkdir()
    original = Path(epistemic_calibration.__file__).parent
    for name in ("__init__.py", "parameters.py", "registry.py"):
        shutil.copy(original / name, package)
    shutil.copytree(original / "data", package / "data")
    (package / "data" / "noise.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "import numpy as np\n"
        "from epistemic_calibration.data.base import DataSource, Dataset\n"
        "from epistemic_calibration.parameters import parameter\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Noise(DataSource):\n"
        "    size: int = parameter(ge=1)\n"
        "    def load(self, data_dir):\n"
        "        images = np.zeros((20, self.size, 4, 1), np.uint8)\n"
        "        labels = np.arange(20) % 2\n"
        "        chosen = self.chosen_rows(labels, 'train')\n"
        "        train, rows = (images[chosen], labels[chosen]), np.arange(20)\n"
        "        return Dataset(*train, images, labels, ('a', 'b'), rows)\n"
        "    def class_names(self, data_dir):\n"
        "        return ('a', 'b')\n"
        "    def inventory(self, data_dir):\n"
        "        return {'size': self.size}\n"
    )
    code = (
        "from epistemic_calibration.data import *\n"
        "config = {'source': 'noise', 'size': 5, 'max_train': 6}\n"
        "print(load_dataset(config, '').x_train.shape)\n"
        "print(class_names_of(config, ''), raw_inventory(config, ''))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.splitlines() == [
        "(6, 5, 4, 1)",
        "('a', 'b') {'source': 'noise', 'size': 5}",
    ]


@pytest.mark.fault
@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"source": "web"},
            r"datasets\.<name>\.source: 'web' is none of .*image_folder",
        ),
        ({}, r"datasets\.<name>\.source: None is none of .*image_folder"),
        ({"source": "npz"}, r"datasets\.<name>\.path is missing \(source: npz\)"),
        ({"source": "torchvision", "name": "SVHN"}, r"name: 'SVHN' is none of MNIST, CIFAR10"),
        ({"source": "sklearn", "name": "iris"}, r"name: 'iris' is none of load_digits"),
    ],
)
@pytest.mark.parametrize("function", [load_dataset, class_names_of, raw_inventory])
def test_wrong_configs_are_named(function, config, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        function(config, tmp_path)


@pytest.mark.parametrize("config", [CIFAR10, DIGITS])
def test_the_inventory_of_a_standard_data_set_is_its_name(config):
    options = {"max_train": 100, "split_seed": 3}
    assert raw_inventory({**config, **options}, "unused") == config


def test_planning_loads_no_heavy_library(tmp_path):
    for part, name in itertools.product(("train", "test"), "ab"):
        (tmp_path / "pictures" / part / name).mkdir(parents=True)
        (tmp_path / "pictures" / part / name / "x.png").touch()
    np.savez(tmp_path / "file.npz", y_train=[0, 1])
    configs = [MNIST, CIFAR10, DIGITS, FOLDER, NPZ]
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
        (".x", "_x"),
        ("v1.5", "v1.5"),
        ("café", "cafe"),
        ("-1", "-1"),
    ],
)
def test_task_names_are_parts_of_a_path(name, safe):
    assert task_names([name, "another"]) == (safe, "another")


@pytest.mark.parametrize(
    ("names", "safe"),
    [
        (["猫", "собака", "dog"], ["class_0", "class_1", "dog"]),
        (["a/b", "a b", "c"], ["class_0", "class_1", "c"]),
        (["Cat", "cat"], ["class_0", "class_1"]),
        # A name that is another's number gives way.
        (["dog", "CLASS_2", "猫"], ["dog", "class_1", "class_2"]),
        (["...", "b"], ["class_0", "b"]),
    ],
)
def test_classes_without_a_spelling_of_their_own_are_numbered(names, safe):
    assert list(task_names(names)) == safe


def test_long_class_names_are_shortened_and_stay_apart():
    names = ["a" * 300 + end for end in "xy"]
    short = task_names(names)
    assert short[0] != short[1]
    assert all(len(name) == 150 for name in short)
    assert task_names(["a" * 150]) == ("a" * 150,)


def test_a_class_needs_a_name():
    with pytest.raises(ValueError, match="a class name is empty"):
        task_names(["cat", ""])


def test_pixels_are_float32_in_0_1():
    pixels = Dataset.pixels(np.array([0, 51, 255], np.uint8))
    assert pixels.dtype == np.float32
    assert pixels.tolist() == [0, np.float32(0.2), 1]
    same = np.array([0.25], np.float32)
    assert Dataset.pixels(same) is same


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
        ({"y_test": np.array([1, -1])}, "y_test has labels from -1 to 1"),
        ({"y_test": np.array([1, 1])}, "the test set has no input of class a"),
        ({"x_test": np.zeros((2, 6, 6, 1), np.uint8)}, r"x_train has images of \(5, 6, 1\)"),
        ({"x_test": np.zeros((2, 6))}, r"x_train has images of \(5, 6, 1\).*x_test 6 features"),
        ({"x_test": np.zeros((2, 6), int)}, "x_test has dtype int64; features must be floating"),
        ({"x_test": np.zeros((2, 0))}, r"x_test has shape \(2, 0\); features must not be empty"),
        ({"x_test": np.full((2, 6), np.inf)}, "x_test has 12 values .* first in row 0, feature 0"),
    ],
)
def test_what_is_wrong_in_a_data_set_is_named(changes, message):
    image_dataset().check()
    with pytest.raises(DataError, match=message):
        image_dataset(**changes).check()


@pytest.mark.parametrize("module", ["epistemic_calibration.data", base.__name__])
def test_the_examples_in_the_docstrings_hold(module):
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted and not result.failed
