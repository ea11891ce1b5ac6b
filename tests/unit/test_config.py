"""A wrong configuration stops early, and says which key, which value, and what is allowed."""

import copy
import re
import sys
from pathlib import Path

import pytest
import yaml

from epistemic_calibration.config import (
    RESERVED_NAMES,
    ConfigError,
    resolve_config,
    retype_overrides,
)
from epistemic_calibration.methods import available_methods, load_method

ROOT = Path(__file__).parents[2]
SHIPPED = yaml.safe_load((ROOT / "config.yaml").read_text())


@pytest.fixture
def config():
    return copy.deepcopy(SHIPPED)


def fault(config):
    with pytest.raises(ConfigError) as caught:
        resolve_config(config)
    return str(caught.value)


def test_no_data_set_can_have_the_name_of_a_rule_or_target():
    files = [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]
    rules = {name for path in files for name in re.findall(r"(?m)^rule (\w+):", path.read_text())}
    assert len(rules) > 20
    assert rules <= RESERVED_NAMES


def test_the_shipped_configuration_is_valid():
    resolve_config(SHIPPED)


def test_the_shipped_configuration_names_every_parameter_of_every_method():
    for name, entry in SHIPPED["methods"].items():
        expected = set(load_method(name).default_parameters()) - {"device"}
        assert set(entry) == expected, name


def test_the_shipped_parameters_are_the_defaults():
    resolved = resolve_config({**SHIPPED, "methods": {name: {} for name in SHIPPED["methods"]}})
    assert resolved["methods"] == resolve_config(SHIPPED)["methods"]


def test_the_shipped_configuration_runs_every_method_and_control():
    families = {name: load_method(name).family for name in available_methods()}
    methods = {name for name, family in families.items() if family != "control"}
    assert set(SHIPPED["methods"]) == methods
    assert len(methods) == 9


def test_resolving_does_not_change_its_argument(config):
    resolve_config(config)
    assert config == SHIPPED


def test_a_data_set_inherits_and_overrides_blocks(config):
    config["datasets"]["digits"]["scores"] = {"n_bins": 7}
    resolved = resolve_config(config)
    assert resolved["datasets"]["digits"]["scores"] == {**config["scores"], "n_bins": 7}
    assert resolved["datasets"]["mnist"]["scores"] == config["scores"]


def test_device_reaches_the_methods_that_take_one(config):
    config["device"] = "cpu"
    resolved = resolve_config(config)["methods"]
    assert resolved["deep_ensemble"]["parameters"]["device"] == "cpu"
    assert "device" not in resolved["random_forest"]["parameters"]


def test_a_method_left_out_is_left_out_of_the_toy_experiments(config):
    config["methods"].pop("random_forest")
    resolved = resolve_config(config)["toy"]
    assert "random_forest" not in resolved["eece_per_method"]["methods"]
    assert "eece_vs_noise" not in resolved
    assert set(resolved) == set(config["toy"]) - {
        "seeds",
        "calibration_plots",
        "eece_vs_noise",
        "eece_vs_training_size",
    }


def test_the_demo_changes_only_what_it_names(config):
    resolved = resolve_config(config)
    full, demo = resolved["toy"]["eece_vs_noise"], resolved["toy_demo"]["eece_vs_noise"]
    changed = {**full, **config["toy_demo"]["eece_vs_noise"], "seeds": [0, 1]}
    assert demo == changed


def test_one_method_twice_with_other_parameters(config):
    config["methods"]["small_forest"] = {"method": "random_forest", "n_estimators": 5}
    resolved = resolve_config(config)["methods"]["small_forest"]
    assert resolved["implementation"] == "random_forest"
    assert resolved["parameters"]["n_estimators"] == 5
    assert resolved["label"] == "small_forest"


def test_overrides_of_the_command_line_have_types():
    # As Snakemake reads --config 'seeds=[0, 1]' 'scores={n_bins: 5}' device=cpu tasks_per_job=2
    given = {"seeds": ["0", "1"], "scores": {"n_bins": "5"}, "device": "cpu", "tasks_per_job": 2}
    merged = {**given, "scores": {"n_bins": "5", "binning": "kmeans"}, "threads": 1}
    assert retype_overrides(merged, given) == {
        "seeds": [0, 1],
        "scores": {"n_bins": 5, "binning": "kmeans"},
        "device": "cpu",
        "tasks_per_job": 2,
        "threads": 1,
    }


def test_a_file_of_a_method_may_define_dataclasses(config, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from epistemic_calibration.methods.base_rate import BaseRate\n"
        "@dataclass\n"
        "class Part:\n"
        "    value: float\n"
        "class Mine(BaseRate):\n"
        "    label = 'Mine'\n"
    )
    config["methods"]["mine"] = {"file": "mine.py"}
    assert resolve_config(config, base_dir=tmp_path)["methods"]["mine"]["family"] == "control"


def test_methods_may_have_files_of_the_same_name_beside_them(config, tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "method.py").write_text(
            "from epistemic_calibration.methods.base_rate import BaseRate\n"
            "from names import LABEL\n"
            "class Mine(BaseRate):\n"
            "    label = LABEL\n"
        )
        (tmp_path / name / "names.py").write_text(f"LABEL = '{name} label'\n")
        config["methods"][name] = {"file": f"{name}/method.py"}
    for _ in range(2):
        resolve_config(config, base_dir=tmp_path)
        methods = [load_method(str(tmp_path / name / "method.py")) for name in ("first", "second")]
        assert [method.label for method in methods] == ["first label", "second label"]
    assert [folder for folder in sys.path if folder.startswith(str(tmp_path))] == [
        str(tmp_path / "second")
    ]


def test_a_method_from_a_file(config, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from epistemic_calibration.methods import Method\n"
        "class Mine(Method):\n"
        "    label = 'Mine'\n"
        "    parameter_schema = {'k': {'type': 'integer', 'minimum': 1}}\n"
        "    def __init__(self, *, k=3, random_state=0): self.k = k\n"
        "    def fit(self, X, y): return self\n"
        "    def sample_hypotheses(self, X): return X[:, : self.k]\n"
    )
    config["methods"]["mine"] = {"file": "mine.py", "k": 2}
    resolved = resolve_config(config, base_dir=tmp_path)["methods"]["mine"]
    assert resolved["parameters"] == {"k": 2}
    config["methods"]["mine"]["k"] = 0
    with pytest.raises(ConfigError, match=r"methods\.mine\.k: 0 is less than the minimum of 1"):
        resolve_config(config, base_dir=tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(seedz=[0]), ["seedz: unknown key", "did you mean 'seeds'"]),
        (lambda c: c.pop("seeds"), ["missing key(s) seeds"]),
        (lambda c: c.update(seeds=[0, 0]), ["seeds", "non-unique"]),
        (lambda c: c.update(seeds=[-1]), ["seeds.0", "-1"]),
        (lambda c: c.update(threads="two"), ["threads", "'two'", "integer"]),
        (lambda c: c.update(benchmark=["mnst"]), ["benchmark", "'mnst'", "did you mean 'mnist'"]),
        (
            lambda c: c["datasets"]["digits"].update(test_fracton=0.2),
            ["datasets.digits.test_fracton", "did you mean 'test_fraction'"],
        ),
        (
            lambda c: c["datasets"]["digits"].update(test_fraction=1.5),
            ["datasets.digits.test_fraction", "1.5"],
        ),
        (
            lambda c: c["datasets"]["mnist"].update(name="MNITS"),
            ["datasets.mnist.name", "'MNITS'", "FashionMNIST"],
        ),
        (lambda c: c["datasets"].update(x={"source": "url"}), ["datasets.x.source", "'url'"]),
        (lambda c: c["datasets"].update(x={"source": "npz"}), ["datasets.x", "path"]),
        (
            lambda c: c["datasets"].update({"../up": {"source": "npz", "path": "a.npz"}}),
            ["../up", "Letters, digits and underscores"],
        ),
        (
            lambda c: c["datasets"].update(tables={"source": "npz", "path": "a.npz"}),
            ["datasets.tables", "reserved"],
        ),
        (
            lambda c: c["datasets"].update(a_summary={"source": "npz", "path": "a.npz"}),
            ["datasets.a_summary", "must not end in _summary"],
        ),
        (
            lambda c: c["methods"].update(random_forrest={}),
            ["methods.random_forrest", "did you mean 'random_forest'"],
        ),
        (
            lambda c: c["methods"]["random_forest"].update(n_estimator=3),
            ["methods.random_forest.n_estimator", "did you mean 'n_estimators'"],
        ),
        (
            lambda c: c["methods"]["random_forest"].update(n_estimators=0),
            ["methods.random_forest.n_estimators", "0"],
        ),
        (lambda c: c["methods"].update(Eknn={"method": "eknn"}), ["Eknn", "taken by methods.eknn"]),
        (
            lambda c: c["methods"].update({"a/b": {"method": "eknn"}}),
            ["a/b", "Letters, digits and underscores"],
        ),
        (
            lambda c: c["methods"].update(mine={"file": "nowhere.py"}),
            ["methods.mine", "nowhere.py"],
        ),
        (
            lambda c: c["latents"].update(n_neighbors=5),
            ["methods.eknn.n_neighbors", "12", "latents.n_neighbors"],
        ),
        (
            lambda c: c["scores"].update(binning="k-means"),
            ["scores.binning", "'k-means'", "kmeans"],
        ),
    ],
)
def test_faults_are_named(config, change, words):
    change(config)
    message = fault(config)
    for word in words:
        assert word in message


def test_all_faults_are_told_at_once(config):
    config["seedz"] = 1
    config["threads"] = 0
    message = fault(config)
    assert "seedz" in message
    assert "threads" in message
