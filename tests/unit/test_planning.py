"""What Snakemake is told of functions is what it would find out, and spares it the looking."""

import inspect

import pytest
import snakemake.common
from snakemake.common import get_function_params, get_input_function_aux_params
from snakemake.resources import Resource, Resources

from epistemic_calibration.workflow.planning import (
    any_in_another,
    know_parameters_of_resources,
    known_parameters,
)


class Rule:
    """As much of a rule as is asked for."""

    def __init__(self, **resources):
        self.resources = Resources({n: Resource(n, value) for n, value in resources.items()})


@pytest.fixture
def asked(monkeypatch):
    """Functions that Python is asked for the parameters of."""
    functions, signature = [], inspect.signature

    def asking(function, **options):
        functions.append(function)
        return signature(function, **options)

    monkeypatch.setattr(inspect, "signature", asking)
    return functions


def test_parameters_of_a_function_are_asked_for_once(asked):
    @known_parameters
    def function(wildcards, attempt, *, input=None):
        return [wildcards, attempt, input]

    assert asked == [function]
    given = {"attempt": 2, "threads": 1, "input": "x"}
    assert get_input_function_aux_params(function, given) == {"attempt": 2, "input": "x"}
    assert [*get_function_params(function)] == ["wildcards", "attempt", "input"]
    assert asked == [function]


def test_resources_are_evaluated_as_before(asked):
    rule = Rule(mem_mb=lambda wildcards, attempt: 100 * attempt, runtime=7)
    know_parameters_of_resources([rule])
    asked.clear()
    memory = rule.resources["mem_mb"]
    assert get_input_function_aux_params(memory.evaluate, {"a": 1}) == {"a": 1}
    assert memory.evaluate({}, attempt=3, threads=1, rulename="x").value == 300
    assert rule.resources["runtime"].value == 7
    assert asked == []


def test_what_snakemake_cannot_be_told_it_asks(monkeypatch):
    # A method has no attributes of its own, and an older Snakemake no such function.
    method = Rule().__init__
    assert known_parameters(method) is method
    assert [*get_function_params(method)] == ["resources"]
    monkeypatch.delattr(snakemake.common, "overwrite_function_params")

    def function(wildcards):
        return wildcards

    assert known_parameters(function) is function
    assert [*get_function_params(function)] == ["wildcards"]


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ([], False),
        (["a"], False),
        (["a", "ab", "a.b/c"], False),
        (["a/b/c/d", "a/b"], True),
        (["a/b", "a/b/c"], True),
        (["./a/b", "a//b/c"], True),
        (["a/b", "a/../a/b/c"], True),
    ],
)
def test_an_output_in_another_is_found(paths, found):
    assert any_in_another(paths) is found
    assert any_in_another(reversed(paths)) is found
