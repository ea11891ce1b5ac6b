"""The declared sources of a job are the ones it really runs, and only their code counts."""

import json
from pathlib import Path

import pytest
from shipped import python

from epistemic_calibration.methods import available_methods, method_path
from epistemic_calibration.registry import registered_files
from epistemic_calibration.workflow.provenance import StaleResultError
from epistemic_calibration.workflow.sources import (
    SCRIPTS,
    STAGES,
    check_sources,
    code_hash,
    files_below,
    source_files,
    source_hashes,
)

#: Imports each method as if nothing of the project had been, and prints what that has loaded.
IMPORT_EACH = """
import importlib, json, sys
found = {{}}
for name in {methods!r}:
    for module in [m for m in sys.modules if m.startswith("epistemic_calibration")]:
        del sys.modules[module]
    importlib.import_module(f"epistemic_calibration.methods.{{name}}")
    found[name] = [m.__file__ for n, m in sys.modules.items()
                   if n.startswith("epistemic_calibration") and getattr(m, "__file__", None)]
print(json.dumps(found))
"""


def names(paths):
    return {path.relative_to(SCRIPTS).as_posix() for path in paths}


def test_a_method_declares_what_importing_it_loads():
    printed = python("-c", IMPORT_EACH.format(methods=available_methods())).stdout
    for method, loaded in json.loads(printed).items():
        declared = names(source_files(method_path(method)))
        assert f"epistemic_calibration/methods/{method}.py" in declared
        assert names(map(Path, loaded)) <= declared, method


def test_fits_and_scores_do_not_depend_on_each_other_or_on_tables():
    declared = names(source_files(STAGES / "hypotheses.py", method_path("random_forest")))
    assert "epistemic_calibration/methods/random_forest.py" in declared
    for other in ("metrics", "scores", "report", "paper", "workflow"):
        assert not [name for name in declared if other in name], other
    assert "epistemic_calibration/methods/deep_ensemble.py" not in declared
    scored = names(
        source_files(STAGES / "scores.py", *registered_files("epistemic_calibration.scores"))
    )
    for other in ("methods/", "report/", "paper/", "latents/", "evaluation/", "torchvision"):
        assert not [name for name in scored if other in name], other


def test_imports_go_one_way():
    package = SCRIPTS / "epistemic_calibration"
    inside = [p for p in package.rglob("*.py") if p.relative_to(package).parts[0] != "workflow"]
    library = [p for p in inside if p.relative_to(package).parts[0] != "paper"]
    assert len(library) > 50
    assert len(inside) > len(library) + 5
    for path in library:
        reached = [name for name in names(source_files(path)) if "/paper/" in name]
        assert not reached, f"{path.relative_to(package)} reaches {reached}"
    # Which no job counts as a source.
    machinery = [path for path in inside if f"{package.name}.workflow" in path.read_text("utf-8")]
    assert machinery == []


def test_type_checking_imports_do_not_count(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n"
        "    from epistemic_calibration import parameters\n"
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
    assert set(source_hashes(tmp_path, tmp_path / "mine.py")) == {
        "mine.py",
        "helper.py",
        "layers/deep/__init__.py",
        "layers/deep/one.py",
        "layers/deep/two.py",
        "layers/deep/three.py",
        "layers/four.py",
        "workflow_scripts/epistemic_calibration/__init__.py",
        "workflow_scripts/epistemic_calibration/seeds.py",
    }


CODE = '''\
"""What it does."""
import os  # for paths


def double(x):
    """Return twice x."""
    # Twice.
    return 2 * x


class Forest:
    """Trees."""

    n_trees: int = parameter(100, ge=1, description="trees")
'''


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('"""What it does."""\n', "", True),
        ('"""Return twice x."""', '"""Return two times x."""', True),
        ("    # Twice.\n", "", True),
        ("    return 2 * x", "\n    return (\n        2 * x  # done\n    )", True),
        ('    """Trees."""\n\n', "", True),
        ("2 * x", "3 * x", False),
        ("import os", "import re", False),
        ("ge=1", "ge=2", False),
    ],
)
def test_comments_docstrings_and_layout_are_no_code(tmp_path, old, new, same):
    assert old in CODE
    for name, text in (("a.py", CODE), ("b.py", CODE.replace(old, new))):
        (tmp_path / name).write_text(text)
    assert (code_hash(tmp_path / "a.py") == code_hash(tmp_path / "b.py")) == same


@pytest.mark.fault
@pytest.mark.parametrize("change", ["edited", "lost"])
def test_a_file_that_is_not_that_of_the_spec_is_named(tmp_path, forget_sources, change):
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n")
    expected = source_hashes(tmp_path, path)
    path.write_text("x = 1  # the same\n")
    forget_sources()
    check_sources(expected, tmp_path)
    path.write_text("x = 2\n") if change == "edited" else path.unlink()
    forget_sources()
    with pytest.raises(StaleResultError, match=r"mine\.py was edited since the run began"):
        check_sources(expected, tmp_path)


@pytest.mark.fault
def test_a_source_with_a_fault_is_named_with_its_line(tmp_path):
    (tmp_path / "mine.py").write_text("x = 1\nif x\n")
    with pytest.raises(ValueError, match=r"mine\.py:2: expected ':'"):
        source_hashes(tmp_path, tmp_path / "mine.py")


def test_hidden_files_and_bytecode_are_not_among_those_of_a_folder(tmp_path):
    paths = ["b.py", "a/c.csv", ".git/config", "a/.hidden/d.py", "a/__pycache__/b.pyc", ".e.py"]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    assert files_below(tmp_path) == [tmp_path / "a" / "c.csv", tmp_path / "b.py"]
