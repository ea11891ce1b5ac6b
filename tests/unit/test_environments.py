"""The conda environments and the pip lock name the same versions."""

import re
from itertools import chain
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = sorted((ROOT / "envs").glob("*.yaml"))
CONDA_TO_PIP = {"pytorch": "torch"}


def locked_versions():
    lines = (ROOT / "envs" / "requirements.lock").read_text().splitlines()
    return dict(re.match(r"([A-Za-z0-9_.\-]+)==([^ ;]+)", line).groups() for line in lines if line)


def environment_versions(path):
    versions = {}
    for entry in yaml.safe_load(path.read_text())["dependencies"]:
        pins = entry["pip"] if isinstance(entry, dict) else [entry]
        versions.update(re.split("==?", pin) for pin in pins if "=" in pin)
    return versions


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_pins_agree_with_the_lock(path):
    locked = locked_versions()
    pins = environment_versions(path)
    assert pins.pop("python") == "3.11"
    assert pins == {name: locked[CONDA_TO_PIP.get(name, name)] for name in pins}


def test_every_environment_is_used_by_a_rule():
    rules = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    assert {path.stem for path in ENVIRONMENTS} == set(re.findall(r"envs/(\w+)\.yaml", rules))


def test_lock_pins_every_declared_dependency():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.match(r"[A-Za-z0-9_.\-]+", requirement).group() for requirement in declared}
    assert names <= set(locked_versions())
