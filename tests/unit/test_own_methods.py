"""What is told of a user's method: when the configuration is read, and when it runs."""

import copy
import os
import re
import sys

import numpy as np
import pytest
from shipped import SHIPPED
from user_method import text

from epistemic_calibration.latents._neighbors import nearest_neighbors
from epistemic_calibration.methods import available_methods, load_method
from epistemic_calibration.methods._tasks import predict_tasks
from epistemic_calibration.methods.base import MethodError
from epistemic_calibration.workflow.config import ConfigError, resolve_config
from epistemic_calibration.workflow.plan import Plan


@pytest.fixture
def resolved(tmp_path):
    """Return a function that writes a method and reads a configuration with it."""

    def resolve(content=None, file="mine.py", **entry):
        if content is not None:
            (tmp_path / file).write_text(content)
        config = copy.deepcopy(SHIPPED)
        config["methods"]["mine"] = {"file": file, **entry}
        return resolve_config(config, tmp_path)

    yield resolve
    for name in [n for n in sys.modules if n.startswith("user_method_")]:
        del sys.modules[name]


def faults(resolve, *arguments, **entry):
    with pytest.raises(ConfigError) as caught:
        resolve(*arguments, **entry)
    assert all("\n" not in fault for fault in caught.value.faults)
    return caught.value.faults


def test_the_label_is_that_of_the_class_unless_the_entry_has_one(resolved, tmp_path):
    assert resolved(text()).methods["mine"].label == "My Method"
    assert resolved(label="Other").methods["mine"].label == "Other"
    assert resolved(text(label="pass")).methods["mine"].label == "mine"
    (tmp_path / "mine.py").write_text(text())
    config = copy.deepcopy(SHIPPED)
    config["methods"] |= {"one": {"file": "mine.py"}, "two": {"file": "mine.py"}}
    methods = resolve_config(config, tmp_path).methods
    # Two rows of a table must not look the same.
    assert [methods[name].label for name in ("one", "two")] == ["one", "two"]


@pytest.mark.parametrize(
    ("init", "given", "expected"),
    [
        ("self, *, k=3, random_state=0", {"k": 2.5}, "mine.k: Input should be a valid integer"),
        ("self, *, k: float = 3, random_state=0", {"k": "a"}, "k: Input should be a valid number"),
        ("self, *, k=True, random_state=0", {"k": 1}, "mine.k: Input should be a valid boolean"),
        ("self, *, k=3, random_state=0", {"kk": 1}, "did you mean 'k'?"),
        ("self, *, k, random_state=0", {}, "methods.mine.k: Mine has no default for it"),
        ("self, *, k=object(), random_state=0", {}, "is none that YAML can give"),
    ],
)
def test_parameters_of_a_plain_class_are_checked(resolved, init, given, expected):
    (fault,) = faults(resolved, text(init=init), **given)
    assert fault.startswith("methods.mine")
    assert expected in fault


def test_parameters_of_a_plain_class_are_taken(resolved):
    init = "self, *, k=3, s: int | None = None, r=(1, 2), needed, any=None, random_state=0"
    entry = resolved(text(init=init), k=4, s=5, needed=[1], any="x").methods["mine"]
    assert entry.parameters == {"k": 4, "s": 5, "r": [1, 2], "needed": [1], "any": "x"}


@pytest.mark.fault
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (text(init="self").replace("= random_state", "= 0"), "Mine takes no random_state"),
        (text(sample="sample_hypothesis"), "Mine lacks sample_hypotheses"),
        (text(base="object"), "found 0: []; Mine is no subclass: class Mine(Method)"),
        (text() + text().replace("Mine", "Other"), "found 2: ['Mine', 'Other']"),
        (text() + "    def predict_probas(self, X): pass\n", "did you mean 'predict_proba'?"),
        (text().replace("pass\n", "if\n", 1), "SyntaxError: invalid syntax (line 12 of mine.py)"),
        (text() + "1 / 0\n", "ZeroDivisionError: division by zero (line 18 of mine.py)"),
    ],
)
def test_faults_of_a_class_are_named_in_one_line(resolved, content, expected):
    (fault,) = faults(resolved, content)
    assert fault.startswith("methods.mine: ")
    assert expected in fault


def test_a_key_chooses_among_the_classes_of_a_file(resolved, tmp_path):
    content = text() + text(label='label = "Other"').replace("Mine", "Other")
    config = resolved(content, **{"class": "Other"})
    assert config.methods["mine"].label == "Other"
    plan = Plan(config, tmp_path)
    assert plan.method_sources("mine")[0] == tmp_path / "mine.py"
    where = {"dataset": "digits", "seed": 0, "method": "mine"}
    implementation = plan.spec("hypotheses", **where)["settings"]["implementation"]
    assert implementation == "mine.py::Other"
    assert load_method(str(tmp_path / implementation)).__name__ == "Other"
    (fault,) = faults(resolved, **{"class": "Third"})
    assert "a concrete subclass Third of Method, found 2: ['Mine', 'Other']" in fault


def test_keys_of_files_are_of_files_alone(resolved, tmp_path):
    config = copy.deepcopy(SHIPPED)
    config["methods"]["eknn"] |= {"class": "X", "depends_on": ["x.csv"]}
    with pytest.raises(ConfigError) as caught:
        resolve_config(config, tmp_path)
    assert "methods.eknn: `class` and `depends_on` only where `file` is" in str(caught.value)


@pytest.mark.fault
def test_a_missing_package_is_the_method_s_own_failure(resolved, tmp_path):
    config = resolved("import no_such_package.part\n" + text(), k=3)
    entry = config.methods["mine"]
    assert re.search(
        r"methods\.mine: ModuleNotFoundError: No module named 'no_such_package' \(line 1 of "
        r"mine\.py\); install the package .* -m pip install no_such_package`",
        entry.missing,
    )
    assert entry.parameters == {"k": 3}
    assert "mine" in Plan(config, tmp_path).methods("digits")
    assert config.methods["eknn"].missing is None


def test_what_a_method_depends_on_counts_as_its_code(resolved, tmp_path):
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "sub" / "a.csv").write_text("1\n")
    (tmp_path / "data" / ".hidden").write_text("")
    (tmp_path / "w.bin").write_bytes(b"\0")
    os.mkfifo(tmp_path / "pipe")
    for lost in ("absent.csv", "pipe"):
        (fault,) = faults(resolved, text(), depends_on=[lost])
        assert fault == f"methods.mine.depends_on: no such file or folder: {lost}"
    where = {"dataset": "digits", "seed": 0, "method": "mine"}
    plan = Plan(resolved(depends_on=["data", "w.bin"]), tmp_path)
    sources = plan.spec("hypotheses", **where)["sources"]
    assert {"mine.py", "data/sub/a.csv", "w.bin"} <= set(sources)
    assert not any(".hidden" in name for name in sources)
    assert {"mine.py", "w.bin"} <= set(
        plan.spec("toy_data", experiment="eece_per_method", method="mine")["sources"]
    )


# --- Arrays


RNG = np.random.default_rng(0)
X_TRAIN = RNG.standard_normal((60, 4)).astype(np.float32)
Y_TRAIN = (X_TRAIN[:, :3] + RNG.standard_normal((60, 3)) > 0.3).astype(np.uint8)
Y_TRAIN = np.concatenate([Y_TRAIN, 1 - Y_TRAIN[:, :2]], axis=1)
X_TEST = RNG.standard_normal((25, 4)).astype(np.float32)


def run(method, columns, path=None, **parameters):
    X, X_test = X_TRAIN.copy(), X_TEST.copy()
    return list(
        predict_tasks(
            method,
            X,
            Y_TRAIN[:, columns],
            X_test,
            parameters=parameters,
            random_states=[11 + column for column in columns],
            neighbors=nearest_neighbors(X, X_test, 12),
            path=path,
        )
    )


@pytest.fixture
def mine(tmp_path):
    def make(**changes):
        path = tmp_path / "mine.py"
        path.write_text(text(**changes))
        return load_method(str(path)), path

    return make


@pytest.mark.fault
@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"predict": "X *= 0"}, 16),
        ({"fit": "X -= X.mean(axis=0)"}, 12),
        ({"fit": "y[0] = 1"}, 12),
        ({"predict": "self.neighbors.distances[:] = 0"}, 16),
    ],
)
def test_a_method_that_changes_what_it_is_given_is_stopped_there(mine, change, line):
    method, path = mine(**change)
    expected = rf"mine\.py: ValueError: .* is read-only \(line {line} of mine\.py\); .* on a copy"
    with pytest.raises(MethodError, match=expected):
        run(method, [0], path)


@pytest.mark.parametrize("where", ["fit", "predict"])
def test_a_change_through_a_tensor_is_found(mine, where, recwarn):
    method, path = mine(**{where: "import torch; torch.from_numpy(X).mul_(0)"})
    name = "X_train" if where == "fit" else "X_test"
    with pytest.raises(MethodError, match=rf"mine\.py: {name} has been changed in place"):
        run(method, [0], path)


def test_a_tensor_that_is_only_read_gives_no_warning(mine, recwarn):
    method, path = mine(fit="import torch; self.m_ = torch.from_numpy(X).mean(0)")
    assert len(run(method, [0, 1], path)) == 2
    assert not [w for w in recwarn if "writ" in str(w.message)]


def grouped(method, size, **parameters):
    groups = [list(range(start, min(start + size, 5))) for start in range(0, 5, size)]
    return [p for columns in groups for p in run(method, columns, **parameters)]


@pytest.mark.fault
@pytest.mark.parametrize("name", available_methods())
def test_how_tasks_are_grouped_does_not_matter_to_the_methods_of_the_project(name, few):
    method = load_method(name)
    together = grouped(method, 5, **few(method))
    for tasks_at_once in (1, 2):
        found = grouped(method, tasks_at_once, **few(method))
        for a, b in zip(found, together, strict=True):
            for name in ("hypotheses", "epistemic_uncertainty", "prediction"):
                np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
