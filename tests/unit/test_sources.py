"""The declared sources of a job are the ones it really runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from epistemic_calibration.methods import available_methods, method_path
from epistemic_calibration.plan import SCRIPTS, STAGE_SCRIPTS
from epistemic_calibration.sources import source_files, source_hashes

PRINT_MODULES = """
import sys, runpy
sys.path.insert(0, {scripts!r})
for name in {modules!r}:
    __import__(name)
print("\\n".join(m.__file__ for n, m in sys.modules.items()
      if n.startswith("epistemic_calibration") and getattr(m, "__file__", None)))
"""


def names(paths):
    return {path.relative_to(SCRIPTS).as_posix() for path in paths}


def really_imported(modules):
    code = PRINT_MODULES.format(scripts=str(SCRIPTS), modules=modules)
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    return names(Path(line) for line in output.splitlines())


@pytest.mark.parametrize("method", available_methods())
def test_a_method_declares_what_importing_it_loads(method):
    declared = names(source_files(method_path(method)))
    loaded = really_imported([f"epistemic_calibration.methods.{method}"])
    assert loaded <= declared


def test_fitting_does_not_depend_on_metrics_tables_or_other_methods():
    declared = names(source_files(SCRIPTS / "fit_method.py", method_path("random_forest")))
    assert "epistemic_calibration/methods/random_forest.py" in declared
    assert "epistemic_calibration/methods/base.py" in declared
    assert "epistemic_calibration/hypotheses.py" in declared
    assert not [name for name in declared if "metrics" in name or "tables" in name]
    assert "epistemic_calibration/methods/deep_ensemble.py" not in declared
    assert "epistemic_calibration/networks.py" not in declared


def test_scoring_does_not_depend_on_methods():
    declared = names(source_files(SCRIPTS / "score_hypotheses.py"))
    assert "epistemic_calibration/metrics/epistemic.py" in declared
    assert not [name for name in declared if "methods" in name or "networks" in name]


@pytest.mark.parametrize("stage", STAGE_SCRIPTS)
def test_every_stage_has_a_script_that_tells_its_arguments(stage):
    script = SCRIPTS / STAGE_SCRIPTS[stage]
    run = subprocess.run(
        [sys.executable, str(script), "--help"], capture_output=True, text=True, check=True
    )
    assert "--spec" in run.stdout


def test_type_checking_imports_do_not_count(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from epistemic_calibration import tables\n"
        "def late():\n"
        "    from epistemic_calibration.seeds import derive_seed\n"
    )
    found = {path.name for path in source_files(script)}
    assert found == {"script.py", "__init__.py", "seeds.py"}


def test_a_method_of_a_users_own_brings_the_files_of_its_folder(tmp_path):
    package = tmp_path / "layers" / "deep"
    package.mkdir(parents=True)
    (tmp_path / "mine.py").write_text("import numpy\nfrom helper import f\nimport layers.deep.one")
    (tmp_path / "helper.py").write_text("from epistemic_calibration.seeds import derive_seed\n")
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("from . import two\nfrom .three import f\n")
    (package / "two.py").write_text("from ..four import f\n")
    for name in ("layers/deep/three", "layers/four", "layers/unused", "numpy/unused", "unused"):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    assert set(source_hashes(tmp_path / "mine.py")) == {
        "mine.py",
        "helper.py",
        "layers/deep/__init__.py",
        "layers/deep/one.py",
        "layers/deep/two.py",
        "layers/deep/three.py",
        "layers/four.py",
        "epistemic_calibration/__init__.py",
        "epistemic_calibration/seeds.py",
    }


def test_a_file_outside_the_project_is_told_by_name_and_content(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text("x = 1\n")
    assert source_hashes(tmp_path / "a" / "mine.py") == source_hashes(tmp_path / "b" / "mine.py")
