"""Parameters are fields, or the keywords of a class's own ``__init__``."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pytest

from epistemic_calibration.methods import Method, load_method
from epistemic_calibration.methods.base_rate import BaseRate
from epistemic_calibration.parameters import parameter


class Silent(Method):
    label = "Silent"

    def fit(self, X, y):
        return self

    def sample_hypotheses(self, X):
        return np.full((len(X), 1), 0.5)


class OwnInit(Silent):
    def __init__(self, *, needed, k=3, random_state=0):
        self.needed, self.k, self.random_state = needed, k, random_state


@dataclass(kw_only=True, eq=False)
class Fields(Silent):
    kind: Literal["round", "square"] = parameter("round", description="shape")
    sizes: list[int] = field(default_factory=lambda: [1, 2])
    needed: float = parameter(gt=0, description="has no default")
    found: int = field(init=False, default=0)


def test_without_parameters_there_is_the_seed_alone():
    assert Silent.default_parameters() == {}
    assert Silent().random_state == 0
    assert Silent(random_state=4).random_state == 4
    with pytest.raises(TypeError):
        Silent(k=1)


def test_the_keywords_of_an_own_init_are_parameters():
    assert OwnInit.parameter_fields() is None
    assert OwnInit.default_parameters() == {"k": 3}
    labels = np.zeros((4, 2), dtype=np.uint8)
    given = {"parameters": {"needed": 1, "k": 5}, "random_states": [7, 8]}
    first, second = OwnInit.fit_predict_tasks(np.zeros((4, 2)), labels, np.zeros((3, 2)), **given)
    assert first.hypotheses.shape == second.hypotheses.shape == (3, 1)


def test_fields_that_init_takes_are_parameters():
    assert list(Fields.parameter_fields()) == ["kind", "sizes", "needed"]
    assert Fields.parameter_fields()["needed"].metadata["gt"] == 0
    assert Fields.default_parameters() == {"kind": "round", "sizes": [1, 2]}
    with pytest.raises(ValueError, match="kind='oval' must be 'round' or 'square'"):
        Fields(needed=1.0, kind="oval")


def test_a_class_inherits_the_fields_of_the_class_above():
    class Same(BaseRate):
        label = "Same"

    assert list(Same.parameter_fields()) == ["n_hypotheses"]
    assert Same.default_parameters() == BaseRate.default_parameters()


FILE = """\
from __future__ import annotations
from dataclasses import dataclass
from typing import Annotated, Literal
from epistemic_calibration.methods import Method
from epistemic_calibration.parameters import parameter

{decorator}
class Mine(Method):
    label = "Mine"
    k: int = parameter(3, ge=1, description="columns")
    how: Literal["up", "down"] = parameter("up", description="direction")
    rates: tuple[Annotated[float, {{"ge": 0}}], ...] = parameter((0.1,), description="rates")

    def fit(self, X, y):
        return self

    def sample_hypotheses(self, X):
        return X[:, : self.k]
"""


def test_a_file_may_define_a_dataclass(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(decorator="@dataclass(kw_only=True, eq=False)"))
    method = load_method(str(path))
    assert method.default_parameters() == {"k": 3, "how": "up", "rates": (0.1,)}
    assert method(k=2).sample_hypotheses(np.zeros((5, 4))).shape == (5, 2)
    with pytest.raises(ValueError, match="how='left' must be 'up' or 'down'"):
        method(how="left")


@pytest.mark.fault
def test_a_forgotten_decorator_is_told(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(decorator=""))
    expected = r"mine\.py: Mine has the parameter\(s\) k, how, rates, but is not a dataclass"
    with pytest.raises(ValueError, match=expected):
        load_method(str(path))


@pytest.mark.fault
def test_an_unknown_method_and_a_missing_file_are_named():
    with pytest.raises(
        ValueError, match=r"unknown method 'forest'; available: .*base_rate, .*\.py"
    ):
        load_method("forest")
    with pytest.raises(ValueError, match=r"no such method file: nowhere/mine\.py"):
        load_method("nowhere/mine.py")
