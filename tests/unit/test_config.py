"""A wrong configuration stops early, and says which key, which value, and what is allowed."""

import copy
import importlib.util
import sys

import jsonschema
import pytest
from shipped import EXTENDED, ROOT, SHIPPED, python

from epistemic_calibration.methods import available_methods, load_method
from epistemic_calibration.report.style import PAPER_METHODS
from epistemic_calibration.workflow.config import (
    ConfigError,
    check_yaml,
    json_schema,
    resolve_config,
)


@pytest.fixture
def config():
    return copy.deepcopy(SHIPPED)


def fault(config):
    with pytest.raises(ConfigError) as caught:
        resolve_config(config, reserved=["tables"])
    return str(caught.value)


def test_the_shipped_configurations_name_parameters_with_their_defaults():
    for name, entry in SHIPPED["methods"].items():
        assert set(entry) == set(load_method(name).default_parameters()) - {"device"}, name
    stated = SHIPPED | {group: SHIPPED[group] | EXTENDED[group] for group in EXTENDED}
    bare = SHIPPED | {group: {key: {} for key in stated[group]} for group in EXTENDED}
    found, expected = (resolve_config(c, check_packages=False) for c in (stated, bare))
    assert (found.methods, found.controls) == (expected.methods, expected.controls)


@pytest.mark.parametrize(
    "key", ["data_dir", "device", "threads", "autoencoder", "latents", "scores", "sensitivity"]
)
def test_the_shipped_settings_are_the_defaults(config, key):
    del config[key]
    assert resolve_config(config) == resolve_config(SHIPPED)


def test_a_short_configuration_is_enough():
    short = {
        "benchmark": ["digits"],
        "seeds": [0],
        "datasets": {"digits": {"source": "sklearn", "name": "load_digits"}},
        "methods": {"random_forest": {}},
    }
    resolved = resolve_config(short)
    assert resolved.datasets["digits"].encoder == "auto"
    assert resolved.controls == resolved.toy == {}


def test_the_schema_for_editors_finds_faults():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert not list(validator.iter_errors(SHIPPED))
    for change in (
        lambda c: c.update(seedz=[0]),
        lambda c: c["datasets"]["mnist"].update(path="x"),
        lambda c: c["toy"]["eece_vs_noise"].update(n_test=0),
    ):
        wrong = copy.deepcopy(SHIPPED)
        change(wrong)
        assert list(validator.iter_errors(wrong))


def test_planning_loads_no_heavy_library():
    code = (
        "import sys, yaml; from epistemic_calibration.workflow.config import resolve_config\n"
        "from epistemic_calibration.latents import available_encoders, load_encoder\n"
        "from epistemic_calibration.registry import available, load\n"
        f"resolve_config(yaml.safe_load(open({str(ROOT / 'config.yaml')!r})))\n"
        "for name in available_encoders(): load_encoder(name)()\n"
        "package = 'epistemic_calibration.report.tables'\n"
        "suffixes = [load(package, name).SUFFIX for name in available(package)]\n"
        "assert len(set(suffixes)) == len(suffixes)\n"
        "heavy = {'torch', 'sklearn', 'scipy', 'matplotlib', 'pandas', 'safetensors'}\n"
        "print(heavy & set(sys.modules))"
    )
    assert python("-c", code).stdout.strip() == "set()"


def test_every_method_and_control_is_in_one_of_the_shipped_configurations():
    families = {name: load_method(name).family for name in available_methods()}
    for group in ("methods", "controls"):
        named = [*SHIPPED[group], *EXTENDED[group]]
        expected = {
            n for n, family in families.items() if (family == "control") == (group != "methods")
        }
        assert sorted(named) == sorted(expected)
    assert set(SHIPPED["methods"]) == {*PAPER_METHODS}


@pytest.mark.fault
def test_a_missing_package_is_named(config, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "gpytorch" else find_spec(name)
    )
    config["methods"]["gaussian_process"] = {}
    assert fault(config).splitlines()[1:] == [
        "methods.gaussian_process: needs gpytorch: pip install 'epistemic-calibration[extended]'"
    ]
    # Where jobs have environments of their own.
    resolve_config(config, check_packages=False)


def test_a_data_set_inherits_and_overrides_blocks(config):
    config["datasets"]["digits"]["scores"] = {"n_bins": 7}
    resolved = resolve_config(config)
    scores = {name: dataset.scores.model_dump() for name, dataset in resolved.datasets.items()}
    assert scores["digits"] == {**config["scores"], "n_bins": 7}
    assert scores["mnist"] == config["scores"]
    assert resolved.datasets["digits"].encoder_parameters["min_steps"] == 480
    assert resolved.datasets["mnist"].encoder_parameters["min_steps"] == 1000


def test_device_reaches_the_methods_that_take_one(config):
    config["device"] = "cpu"
    config["methods"]["laplace"]["device"] = "cuda"
    resolved = resolve_config(config)
    assert resolved.methods["deep_ensemble"].parameters["device"] == "cpu"
    assert resolved.methods["laplace"].parameters["device"] == "cuda"
    assert "device" not in resolved.methods["random_forest"].parameters
    assert resolved.datasets["digits"].encoder_parameters["device"] == "cpu"


def test_a_method_left_out_is_left_out_of_the_toy_experiments(config):
    config["methods"].pop("random_forest")
    resolved = resolve_config(config).toy
    assert "random_forest" not in resolved["eece_per_method"]["methods"]
    assert "eece_vs_noise" not in resolved
    assert resolved["uncertainty_maps"]["seeds"] == [0] != resolved["eece_per_method"]["seeds"]


def test_predictions_made_elsewhere(config):
    entry = {"predictions": "p/{dataset}_{task}.npz", "label": "Mine", "datasets": ["digits"]}
    config["methods"]["mine"] = entry
    resolved = resolve_config(config)
    mine = resolved.methods["mine"]
    assert (mine.implementation, mine.predictions) == (None, entry["predictions"])
    assert (mine.label, mine.family, mine.datasets) == ("Mine", "active", ["digits"])
    assert "mine" not in resolved.toy["eece_per_method"]["methods"]


def test_neighbours_are_needed_where_a_method_runs(config):
    config["datasets"]["digits"]["latents"] = {"n_neighbors": 5}
    told = fault(config)
    assert "methods.eknn.n_neighbors: 12 is more than the 5 neighbours" in told
    assert "stores for data set digits" in told
    for name in ("eknn", "likelihood"):
        config["methods"][name]["datasets"] = ["mnist"]
    resolve_config(config)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds: [0\nb: 1\n", r"config\.yaml: "),
        ("a: \xff", r"config\.yaml: "),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", r"b\.c is given twice, .*line 4 of .*config\.yaml"),
    ],
)
def test_what_is_not_yaml_is_named_with_its_file(tmp_path, text, message):
    path = tmp_path / "config.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=message):
        check_yaml(path)


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


METHOD = """\
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal
from epistemic_calibration.methods import Method
from epistemic_calibration.parameters import parameter

@dataclass(kw_only=True, eq=False)
class Mine(Method):
    {fields}

    def fit(self, X, y): return self
    def sample_hypotheses(self, X): return X
"""


def resolved_fields(config, tmp_path, fields, **given):
    (tmp_path / "mine.py").write_text(METHOD.format(fields="\n    ".join(fields)))
    config["methods"]["mine"] = {"file": "mine.py", **given}
    return resolve_config(config, base_dir=tmp_path).methods["mine"].parameters


def test_a_method_from_a_file_whose_parameters_are_fields(config, tmp_path):
    fields = [
        "k: int = parameter(3, ge=1, description='neighbours')",
        "kind: Literal['a', 'b'] | None = None",
        "sizes: tuple[Annotated[int, {'ge': 1}], ...] = parameter((4, 5), min_length=1)",
        "size: Literal['auto'] | int = parameter('auto', ge=2)",
        "plain: float = 1",
        "pair: tuple[int, int] = (1, 2)",
    ]
    assert resolved_fields(config, tmp_path, fields, sizes=[6], size=2) == {
        "k": 3,
        "kind": None,
        "sizes": [6],
        "size": 2,
        "plain": 1.0,
        "pair": [1, 2],
    }
    wrong = {"k": 0, "kind": "c", "sizes": [], "size": 1, "plain": "x", "pair": [1]}
    with pytest.raises(ConfigError) as caught:
        resolved_fields(config, tmp_path, fields, **wrong)
    keys = [line.partition(": ")[0] for line in caught.value.faults]
    # Of a choice between two, pydantic says what is wrong with each.
    assert list(dict.fromkeys(key.split(".")[2] for key in keys)) == list(wrong)
    bound = "methods.mine.k: Input should be greater than or equal to 1, got 0"
    assert caught.value.faults[0] == bound
    with pytest.raises(ConfigError, match=r"methods\.mine\.sizes\.1: Input should be greater"):
        resolved_fields(config, tmp_path, fields, sizes=[1, 0])


@pytest.mark.fault
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (["k: int = parameter(0, ge=1)"], r"methods\.mine\.k: Input should be greater"),
        (["k: Unheard = 1"], r"methods\.mine: NameError: name 'Unheard' is not defined"),
        (["family: ClassVar[str] = 'x'"], r"methods\.mine\.family: Input should be 'active'"),
    ],
)
def test_faults_of_a_users_file_are_named(config, tmp_path, fields, words):
    with pytest.raises(ConfigError, match=words):
        resolved_fields(config, tmp_path, fields)


NPZ = {"source": "npz", "path": "a.npz"}


@pytest.mark.fault
@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda c: c.update(seedz=[0]), "seedz: unknown key, did you mean 'seeds'?"),
        (lambda c: c.update(seeds=[0, 0]), "seeds: Input has non-unique elements, got [0, 0]"),
        (lambda c: c.update(device="gpu"), "device: Input should be 'auto', 'cpu' or 'cuda', got"),
        (lambda c: c["datasets"].update(x={"source": "url"}), "datasets.x: Input tag 'url' found"),
        (lambda c: c["datasets"].update({"../up": NPZ}), "datasets.../up.[key]: String should"),
        (
            lambda c: c["methods"].update(random_forrest={}),
            "methods.random_forrest: no method 'random_forrest', did you mean 'random_forest'?",
        ),
        (lambda c: c["controls"].update(eknn={}), "controls.eknn: the name is taken by methods"),
        (
            lambda c: c["methods"].update(mine={"file": "nowhere.py"}),
            "methods.mine: no such method file: ",
        ),
        (
            lambda c: c["methods"].update(p={"predictions": "x.csv"}),
            "methods.p.predictions: String should match pattern",
        ),
        (
            lambda c: c["methods"].update(p={"method": "eknn", "file": "p.py"}),
            "methods.p: give one of method and file, not both",
        ),
        (
            lambda c: c["toy"]["eece_vs_noise"].update(methods=["forest"]),
            "toy.eece_vs_noise.methods: no method 'forest'",
        ),
    ],
)
def test_what_a_fault_is_called(config, change, line):
    change(config)
    lines = fault(config).splitlines()[1:]
    assert any(told.startswith(line) for told in lines), lines


@pytest.mark.fault
def test_all_faults_are_told_at_once(config):
    config["seedz"] = 1
    config["threads"] = 0
    config["benchmark"] = ["mnst"]
    config["datasets"]["tables"] = {"source": "npz", "path": "a.npz", "max_test": 1}
    config["methods"]["random_forest"] |= {"n_estimators": 0, "datasets": ["digit"]}
    with pytest.raises(ConfigError) as caught:
        resolve_config(config, reserved=["tables"])
    starts = {line.partition(":")[0] for line in caught.value.faults}
    assert starts == {
        "seedz",
        "threads",
        "benchmark",
        "datasets.tables",
        "datasets.tables.npz.max_test",
        "methods.random_forest.n_estimators",
        "methods.random_forest.datasets",
    }
    assert all(": " in line and "\n" not in line for line in caught.value.faults)


@pytest.mark.fault
def test_names_that_could_share_files_are_refused(config):
    config["datasets"]["Digits"] = config["datasets"]["d_scores"] = config["datasets"]["digits"]
    config["methods"]["MC_dropout"] = {"method": "mc_dropout"}
    said = fault(config)
    assert "datasets.Digits: the name differs from digits in case only" in said
    assert "datasets.d_scores: a name must not end as tables do" in said
    assert "methods.MC_dropout: the name differs from mc_dropout in case only" in said


@pytest.mark.fault
def test_yaml_is_checked_without_being_built(tmp_path):
    path = tmp_path / "config.yaml"
    for text in (
        "path: {{name}}",
        "b: &B {k: 1}\nx: {y: &A {<<: *B, k: 2}}\nc: {<<: *A}",
        "&a [*a]",
    ):
        path.write_text(text)
        check_yaml(path)


def test_a_method_is_built_within_the_bounds_of_its_parameters():
    with pytest.raises(ValueError, match=r"learning_rate=-1\.0 must be > 0"):
        load_method("deep_ensemble")(learning_rate=-1.0)
    with pytest.raises(ValueError, match=r"drop_probability=1\.0 must be <= 0\.99"):
        load_method("dropconnect")(drop_probability=1.0)
