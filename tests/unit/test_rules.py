"""Rules and stages agree: each rule runs one stage's script, and hands it what it asks for."""

import re

import pytest
from shipped import RULES, WORKFLOW

from epistemic_calibration.workflow.plan import stages

every_rule = pytest.mark.parametrize(("stage", "text"), RULES, ids=[stage for stage, _ in RULES])


def section(text, directive):
    """Return what stands under a directive of a rule."""
    found = re.search(rf"(?ms)^    {directive}:(.*?)(?=^    \w|^\w|^#|\Z)", text)
    return found[1] if found else ""


def plain(*names):
    return {name.rstrip("*") for name in names}


def test_every_stage_has_one_rule():
    assert sorted(stage for stage, _ in RULES) == sorted(stages())


@every_rule
def test_a_rule_hands_its_script_exactly_what_the_stage_names(stage, text):
    found = stages()[stage]
    given = re.findall(r'--([a-z-]+) (\{[^"]*?)(?=--|"|$)', section(text, "shell"))
    names = {flag.replace("-", "_"): value for flag, value in given}
    assert len(given) == len(names)
    assert set(names) == plain(*found.inputs, *found.unchecked, *found.outputs)
    for name, value in names.items():
        # From the rule's input, or output, of the same name.
        if f"{name}*" in found.outputs:
            assert re.fullmatch(r"(\{output(\.\w+)?:q\} ?)+", value), (name, value)
        elif name in found.outputs:
            alone = ["{output:q}"] if len(found.outputs) == 1 else []
            assert value.strip() in [f"{{output.{name}:q}}", *alone], (name, value)
        else:
            group = r"(input|params)" if name in found.unchecked else "input"
            assert re.match(rf"\{{{group}\.{name}:q\}}", value), (name, value)


@every_rule
def test_a_rule_waits_for_exactly_the_inputs_of_its_stage(stage, text):
    names = set(re.findall(r"(?m)^        (\w+)=", section(text, "input"))) - {"spec"}
    if function := re.search(r"unpack\((\w+)\)", text):
        body = re.search(rf"(?ms)^def {function[1]}\(.*?^    \}}", WORKFLOW)[0]
        names |= set(re.findall(r'(?m)^        "(\w+)":', body))
    found = stages()[stage]
    assert plain(*found.inputs) <= names <= plain(*found.inputs, *found.unchecked)


@every_rule
def test_a_rule_has_what_every_rule_has(stage, text):
    assert re.findall(r'spec\("(\w+)"', section(text, "input")) == [stage]
    for directive in ("output", "log", "benchmark", "conda", "message"):
        assert section(text, directive).strip(), directive
    threads = "CONFIG.threads" if stages()[stage].threads else ""
    assert section(text, "threads").strip() == threads


def test_no_data_set_can_have_the_name_of_a_rule_or_of_a_folder_of_results():
    listed = re.search(r"(?ms)^RESERVED = \((.*?)^\)", WORKFLOW)[1]
    reserved = {*stages(), *re.findall(r"\w+", listed)}
    names = set(re.findall(r"(?m)^rule (\w+):", WORKFLOW))
    folders = set(re.findall(r"results/(\w+)/", WORKFLOW))
    assert len(names) > 20
    assert len(folders) > 5
    assert names | folders <= reserved
