"""Each fault of a method is found, and named alone."""

import textwrap

import pytest

from epistemic_calibration import cli
from epistemic_calibration._check_method import check_file, check_method
from epistemic_calibration.methods import load_method

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


def faults(path):
    return {o.check: o.fault for o in check_file(path) if o.fault is not None}


def test_a_good_method_has_no_fault(write):
    outcomes = list(check_file(write(GOOD)))
    assert [str(o) for o in outcomes if o.fault or o.note] == []
    assert "n_hypotheses is kept" in [o.check for o in outcomes]


@pytest.mark.parametrize("name", ["base_rate", "eknn", "likelihood", "mc_dropout"])
def test_methods_of_the_package_have_none(name):
    assert [str(o) for o in check_method(load_method(name)) if o.fault] == []


@pytest.mark.fault
@pytest.mark.parametrize(
    ("text", "check", "words"),
    [
        (
            changed(RETURN, RETURN + ".T"),
            "hypotheses have the right shape",
            r"hypotheses has shape (5, 30), expected (30, n_hypotheses); return one row for each",
        ),
        (
            changed(RETURN, "        return X.astype(float) @ self.weights_"),
            "hypotheses have the right shape",
            "expected values in [0, 1]",
        ),
        (
            changed(RETURN, RETURN.replace("return 1 /", "return 0 * X[:, :1] + np.nan /")),
            "hypotheses have the right shape",
            "150 values that are NaN",
        ),
        (
            changed(RETURN, "        return (X @ self.weights_ > 0).astype(int)"),
            "hypotheses have the right shape",
            "hypotheses has dtype int64; return floating point",
        ),
        (
            changed(
                RETURN,
                "        p = 1 / (1 + np.exp(-X[:, 0])); return np.stack([1 - p, p], axis=1)",
            ),
            "hypotheses have the right shape",
            "column [:, 1]",
        ),
        (
            changed("        return self\n", "        return None\n"),
            "hypotheses have the right shape",
            "fit returns NoneType; it must return self",
        ),
        (
            changed("n_hypotheses=5,", "n_hypotheses,"),
            "parameters have defaults",
            "every parameter needs a default",
        ),
        (
            changed(", random_state=0):", "):").replace(
                "self.random_state = random_state", "self.random_state = 0"
            ),
            "parameters have defaults",
            "random_state must be one of them",
        ),
        (
            changed("self.random_state = random_state", "pass"),
            "parameters have defaults",
            "random_state is not kept",
        ),
        (
            changed(RNG, "        rng = np.random.default_rng()"),
            "one random_state gives the same",
            "np.random.default_rng(self.random_state)",
        ),
        (
            changed(RETURN, f"        import random; random.seed(1); random.random()\n{RETURN}"),
            "no global random state",
            "the global state of random is",
        ),
        (
            changed(RETURN, f"        import torch; torch.manual_seed(1); torch.rand(1)\n{RETURN}"),
            "no global random state",
            "the global state of torch is",
        ),
        (
            changed(RNG, "        np.random.seed(self.random_state); rng = np.random"),
            "no global random state",
            "the global state of numpy.random is used or changed",
        ),
        (
            changed(RETURN, "        X *= 0.5\n" + RETURN),
            "inputs are not changed",
            "X of sample_hypotheses is changed in place",
        ),
        (
            changed(RNG, "        X -= X.mean(axis=0)\n" + RNG),
            "inputs are not changed",
            "X of fit is changed in place",
        ),
        (
            changed(
                "self.random_state = random_state",
                "self.random_state = random_state\n"
                "        self.rng = np.random.default_rng(random_state)",
            ).replace(RNG, "        rng = self.rng"),
            "a fit does not depend on an earlier one",
            "a second fit is not as a first one",
        ),
        (
            changed("self.n_hypotheses))", "5))"),
            "n_hypotheses is kept",
            "n_hypotheses=7 gives 5 columns; it must give 7",
        ),
        (
            changed(RNG, "        if len(y) < 20: raise RuntimeError('too few')\n" + RNG),
            "ten training points suffice",
            "RuntimeError: too few (line 14 of mine.py)",
        ),
        (
            changed(
                RNG, "        X = X / X.std(axis=0)\n        assert np.isfinite(X).all()\n" + RNG
            ),
            "constant features are harmless",
            "AssertionError (line 15 of mine.py)",
        ),
        (
            GOOD + "\n    def diagnostics(self):\n        return {'r_hat': float('nan')}\n",
            "diagnostics are finite numbers",
            "'r_hat': nan",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_each_fault_is_found_with_what_to_do(write, text, check, words):
    found = faults(write(text))
    name = next(name for name in found if name.startswith(check))
    assert words in found[name]
    related = {"inputs are not changed", "read-only inputs are accepted"}
    assert len(set(found) - related) <= 1


@pytest.mark.parametrize(
    "text",
    [
        changed(RNG, "        rng = np.random"),
        changed(RETURN, f"        import random; X = X + random.random()\n{RETURN}"),
        changed(RETURN, f"        import torch; X = X + torch.rand(1).numpy()\n{RETURN}"),
    ],
)
def test_an_unseeded_global_generator_is_found_and_named(write, text):
    found = faults(write(text))
    assert "two fits with one random_state differ" in found.pop(
        "one random_state gives the same hypotheses"
    )
    (fault,) = found.values()
    assert "the global state of" in fault


def test_a_task_that_depends_on_others_is_found(write):
    own = textwrap.indent(
        textwrap.dedent("""
        @classmethod
        def fit_predict_tasks(cls, X, Y, X_test, *, parameters, random_states, neighbors=None):
            for y, seed in zip(Y.T, random_states):
                yield cls(**parameters, random_state=random_states[0]).fit(X, y).predict(X_test)
        """),
        "    ",
    )
    assert list(faults(write(GOOD + own))) == ["a task does not depend on others"]


def test_notes_are_no_faults(write):
    one_class = changed(
        RNG, "        if len(set(y)) < 2: raise ValueError('one class')\n" + RNG
    ).replace("default_rng(self.random_state)", "default_rng(0)")
    outcomes = list(check_file(write(one_class)))
    notes = {o.check: o.note for o in outcomes if o.note}
    assert list(notes) == ["another random_state gives others", "labels of one class only"]
    assert "ValueError: one class" in notes["labels of one class only"]
    assert not any(o.fault for o in outcomes)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "must define exactly one concrete subclass of Method, found 0"),
        ("import nothing_like_it\n", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("def f(:\n", "SyntaxError"),
        (GOOD.replace("def sample_hypotheses", "def sample_hypothesis"), "lacks sample_hypotheses"),
    ],
)
def test_a_file_without_a_method_is_told_in_one_line(write, capsys, text, words):
    path = write(text)
    assert cli.main(["check-method", str(path)]) == 1
    out = capsys.readouterr().out
    assert words in out and "Traceback" not in out
    assert out.endswith("The method does not keep its contract.\n")


def test_the_command_says_what_it_checked(write, capsys):
    assert cli.main(["check-method", str(write(GOOD))]) == 0
    out = capsys.readouterr().out
    assert "OK     inputs are not changed\n" in out
    assert out.endswith("The method keeps its contract.\n")
    bad = write(changed(RNG, "        rng = np.random.default_rng()"))
    assert cli.main(["check-method", str(bad)]) == 1
    assert "FAULT  one random_state gives the same hypotheses: " in capsys.readouterr().out


@pytest.mark.fault
def test_a_package_that_is_not_installed_is_named_and_nothing_else_tried(write):
    needed = '    label = "Mine"\n    required_packages = {"no_such_module": "some[extra]"}'
    outcomes = list(check_file(write(GOOD.replace('    label = "Mine"', needed))))
    assert [str(outcome) for outcome in outcomes if outcome.fault] == [
        "FAULT  the packages that it needs are installed: needs no_such_module: pip install "
        "'some[extra]'"
    ]
    assert len(outcomes) == 2
