"""Each fault of a method is found, and named alone."""

import numpy as np
import pytest

from epistemic_calibration import cli
from epistemic_calibration.methods import load_method
from epistemic_calibration.methods._check import check_file, check_method

#: A method without faults; the tests change one line.
GOOD = """
import numpy as np
from epistemic_calibration.methods import Method


class Mine(Method):
    label = "Mine"

    def __init__(self, *, n_hypotheses=5, random_state=0):
        self.n_hypotheses = n_hypotheses
        self.random_state = random_state

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        self.weights_ = rng.standard_normal((X.shape[1], self.n_hypotheses))
        self.base_ = np.log((y.sum() + 1) / (len(y) - y.sum() + 1))
        return self

    def sample_hypotheses(self, X):
        return 1 / (1 + np.exp(-(X.astype(float) @ self.weights_ + self.base_)))
"""

RETURN = "        return 1 / (1 + np.exp(-(X.astype(float) @ self.weights_ + self.base_)))"
RNG = "        rng = np.random.default_rng(self.random_state)"


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "mine.py"
        path.write_text(text)
        return path

    return write


def changed(old, new):
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def test_a_good_method_has_no_fault(write, capsys):
    path = write(GOOD)
    assert [str(o) for o in check_file(path) if o.fault or o.note] == []
    assert cli.main(["check-method", str(path)]) == 0
    out = capsys.readouterr().out
    assert "OK     A task does not depend on others\n" in out
    assert out.endswith("The method keeps its contract.\n")


@pytest.mark.parametrize("name", ["base_rate", "mc_dropout"])
def test_methods_of_the_package_have_none(name):
    assert [str(o) for o in check_method(load_method(name)) if o.fault] == []


OF_TASKS = """
    @classmethod
    def fit_predict_tasks(cls, X, Y, X_test, *, parameters, random_states, neighbors=None):
        for y, seed in zip(Y.T, random_states):
            yield cls(**parameters, random_state=random_states[0]).fit(X, y).predict(X_test)
"""
KEPT = "self.random_state = random_state"
FAULTS = {
    "shape": (changed(RETURN, RETURN + ".T"), "hypotheses has shape (5, 30), expected (30, n_"),
    "both classes": (
        changed(
            RETURN, "        p = 1 / (1 + np.exp(-X[:, 0])); return np.stack([1 - p, p], axis=1)"
        ),
        "column [:, 1]",
    ),
    "no self": (changed("        return self\n", ""), "fit returns NoneType; it must return self"),
    "no default": (changed("n_hypotheses=5,", "n_hypotheses,"), "every parameter needs a default"),
    "not kept": (changed(KEPT, "pass"), "random_state is not kept"),
    "package": (
        changed('label = "Mine"', 'label = "Mine"; required_packages = {"no_such": "some[extra]"}'),
        "needs no_such: pip install 'some[extra]'",
    ),
    "unseeded": (
        changed(RNG, "        rng = np.random.default_rng()"),
        "two fits with one random_state differ",
    ),
    "random": (
        changed(RETURN, f"        import random; random.seed(1); random.random()\n{RETURN}"),
        "the global state of random is",
    ),
    "torch": (
        changed(RETURN, f"        import torch; torch.manual_seed(1); torch.rand(1)\n{RETURN}"),
        "the global state of torch is",
    ),
    "numpy": (
        changed(RNG, "        np.random.seed(self.random_state); rng = np.random"),
        "the global state of numpy.random is used or changed",
    ),
    "changed in place": (
        changed(RNG, "        X -= X.mean(axis=0)\n" + RNG),
        "read-only (line 14 of mine.py); what a method is given must not be changed",
    ),
    "changed through torch": (
        changed(RETURN, "        import torch; torch.from_numpy(X).mul_(0.5)\n" + RETURN),
        "an input is changed in place",
    ),
    "refit": (
        changed(KEPT, f"{KEPT}\n        self.rng = np.random.default_rng(random_state)").replace(
            RNG, "        rng = self.rng"
        ),
        "a second fit is not as a first one",
    ),
    "tasks": (GOOD + OF_TASKS, "a task depends on those it is fitted with"),
    "one input": (
        changed(RETURN, f"        X = np.squeeze(X)\n{RETURN}"),
        "hypotheses has shape (5,), expected (1, n_hypotheses)",
    ),
    "few": (
        changed(RNG, "        if len(y) < 20: raise RuntimeError('too few')\n" + RNG),
        "RuntimeError: too few (line 14 of mine.py)",
    ),
    "constant": (
        changed(RNG, "        X = X / X.std(axis=0)\n        assert np.isfinite(X).all()\n" + RNG),
        "AssertionError (line 15 of mine.py)",
    ),
}


@pytest.mark.fault
@pytest.mark.parametrize(("text", "words"), FAULTS.values(), ids=FAULTS)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:The given NumPy array is not writable")
def test_each_fault_is_found_alone_with_what_to_do(write, text, words):
    fault, *others = [o.fault for o in check_file(write(text)) if o.fault is not None]
    assert words in fault
    # What changes inputs changes those of the tasks after it.
    assert all("a task depends on" in other for other in others)


def test_what_a_method_does_to_global_generators_reaches_nobody_else(write):
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.random(2)  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    text = changed(RNG, "        np.random.seed(self.random_state); rng = np.random")
    assert any(o.fault for o in check_file(write(text)))
    np.testing.assert_array_equal(np.random.random(2), expected)  # noqa: NPY002


def test_a_seed_without_effect_is_no_fault(write):
    outcomes = list(check_file(write(changed("default_rng(self.random_state)", "default_rng(0)"))))
    assert [o.check for o in outcomes if o.note] == ["Another random_state gives others"]
    assert not any(o.fault for o in outcomes)


@pytest.mark.fault
def test_a_file_without_a_method_is_told_in_one_line(write, capsys):
    assert cli.main(["check-method", str(write("x = 1\n"))]) == 1
    out = capsys.readouterr().out
    assert "must define exactly one concrete subclass of Method, found 0" in out
    assert out.endswith("The method does not keep its contract.\n")
