"""The conda environments and the pip lock name the same versions."""

import ast
import re
import sys
from itertools import chain

import pytest
import yaml
from shipped import METADATA, ROOT, RULES, WORKFLOW

from epistemic_calibration.workflow.plan import stages
from epistemic_calibration.workflow.sources import STAGES, source_files

ENVIRONMENTS = sorted((ROOT / "envs").glob("*.yaml"))
CONDA_TO_PIP = {"pytorch": "torch"}
MODULE_TO_PACKAGE = {
    "PIL": "pillow",
    "arviz_stats": "arviz-stats",
    "laplace": "laplace-torch",
    "sklearn": "scikit-learn",
    "torch": "pytorch",
    "venn_abers": "venn-abers",
    "yaml": "pyyaml",
}
#: With scikit-learn.
COME_ALONG = ("joblib", "threadpoolctl")


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
    assert {path.stem for path in ENVIRONMENTS} == set(re.findall(r"envs/(\w+)\.yaml", WORKFLOW))


@pytest.mark.parametrize(("stage", "rule"), RULES, ids=[stage for stage, _ in RULES])
def test_environments_have_what_their_jobs_import(stage, rule, one_job_per_stage):
    plan, jobs = one_job_per_stage
    imported = set()
    methods = plan.fitted if "method" in jobs[stage] else [None]
    for method in methods if stage in ("hypotheses", "toy_data") else [jobs[stage].get("method")]:
        where = {**jobs[stage], **({"method": method} if method else {})}
        needs = stages()[stage].needs(plan, **{name: str(value) for name, value in where.items()})
        for path in source_files(STAGES / f"{stage}.py", *needs.sources):
            imported |= set(imports(path))
    imported -= {"epistemic_calibration", "__future__", *stages(), *sys.stdlib_module_names}
    packages = {MODULE_TO_PACKAGE.get(name, name) for name in imported}
    environment = ROOT / re.search(r"envs/\w+\.yaml", rule)[0]
    assert packages <= {*environment_versions(environment), *COME_ALONG}


def imports(path):
    if path.suffix != ".py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def test_lock_pins_every_declared_dependency():
    declared = [*METADATA["dependencies"], *chain(*METADATA["optional-dependencies"].values())]
    names = {re.match(r"[A-Za-z0-9_.\-]+", requirement).group() for requirement in declared}
    assert names <= set(locked_versions())
