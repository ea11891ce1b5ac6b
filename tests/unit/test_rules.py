"""Rules and stages agree: each rule runs one stage's script, and hands it what it asks for."""

import re
from pathlib import Path

import pytest

from epistemic_calibration.workflow.plan import stages

ROOT = Path(__file__).parents[2]


def rules():
    """Return the text of every rule that runs a stage, by rule file and stage."""
    found = []
    for path in sorted((ROOT / "rules").glob("*.smk")):
        for text in re.split(r"(?m)^ *(?=rule\b)", path.read_text())[1:]:
            script = re.search(r'python\("(\w+)\.py"\)', text)
            if script:
                found.append(pytest.param(script[1], text, id=f"{path.stem}-{script[1]}"))
    return found


def flags(stage):
    stage = stages()[stage]
    names = (*stage.inputs, *stage.unchecked, *stage.outputs)
    return {f"--{name.rstrip('*').replace('_', '-')}" for name in names}


def test_every_stage_has_one_rule():
    assert sorted(parameters.values[0] for parameters in rules()) == sorted(stages())


@pytest.mark.parametrize(("stage", "text"), rules())
def test_a_rule_asks_for_the_spec_of_the_script_that_it_runs(stage, text):
    assert re.findall(r'spec=spec\("(\w+)"', text) == [stage]


@pytest.mark.parametrize(("stage", "text"), rules())
def test_a_rule_hands_its_script_the_files_that_the_stage_names(stage, text):
    command = text.partition("shell:")[2]
    given = re.findall(r"(--[a-z-]+) ", command)
    assert sorted(given) == sorted(flags(stage))
    # An input of the stage is an input of the rule, under the same name, and so for outputs.
    for flag, group, name in re.findall(r"(--[a-z-]+) \{(input|output)\.(\w+):q\}", command):
        assert flag == f"--{name.replace('_', '-')}"
        found = stages()[stage]
        declared = (*found.inputs, *found.unchecked) if group == "input" else found.outputs
        assert name in {n.rstrip("*") for n in declared}


@pytest.mark.parametrize(("stage", "text"), rules())
def test_a_rule_has_what_every_rule_has(stage, text):
    for directive in ("output", "log", "benchmark", "conda", "threads", "resources", "message"):
        assert re.search(rf"(?m)^ +{directive}:", text), directive
    assert "mem_mb=growing(" in text
    assert "runtime=growing(" in text


def test_no_data_set_can_have_the_name_of_a_rule_or_of_a_folder_of_results():
    common = (ROOT / "rules" / "common.smk").read_text()
    lists = re.findall(r"(?ms)^(?:TARGETS|FOLDERS) = \((.*?)\)$", common)
    reserved = {*stages(), *re.findall(r"\w+", " ".join(lists))}
    files = [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]
    text = "\n".join(path.read_text() for path in files)
    rules = set(re.findall(r"(?m)^rule (\w+):", text))
    folders = set(re.findall(r"results/(\w+)/", text))
    assert len(rules) > 20
    assert len(folders) > 5
    assert rules | folders <= reserved
