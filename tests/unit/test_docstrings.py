"""The examples in docstrings run, and public metrics have one."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import epistemic_calibration
from epistemic_calibration import metrics

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(epistemic_calibration.__path__, "epistemic_calibration.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name):
    outcome = doctest.testmod(importlib.import_module(name), raise_on_error=False)
    assert outcome.failed == 0


@pytest.mark.parametrize("name", metrics.__all__)
def test_every_public_function_of_the_metrics_has_an_example(name):
    value = getattr(metrics, name)
    if inspect.isfunction(value):
        assert ">>> " in inspect.getdoc(value)
