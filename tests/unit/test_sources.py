"""The declared sources of a job are the ones it really runs, and only their code counts."""

import os
import py_compile
import subprocess
import sys
import time
from pathlib import Path

import pytest

from epistemic_calibration.methods import available_methods, method_path
from epistemic_calibration.registry import registered_files
from epistemic_calibration.workflow import code_digests
from epistemic_calibration.workflow.plan import stages
from epistemic_calibration.workflow.provenance import StaleResultError
from epistemic_calibration.workflow.sources import (
    SCRIPTS,
    _resolved,
    check_loaded,
    check_sources,
    code_hash,
    files_below,
    is_of_the_environment,
    source_files,
    source_hashes,
)

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
    declared = names(source_files(SCRIPTS / "hypotheses.py", method_path("random_forest")))
    assert "epistemic_calibration/methods/random_forest.py" in declared
    assert "epistemic_calibration/methods/base.py" in declared
    for other in ("metrics", "scoring", "report", "paper", "config", "plan", "manifest"):
        assert not [name for name in declared if other in name], other
    assert "epistemic_calibration/methods/deep_ensemble.py" not in declared
    assert "epistemic_calibration/methods/_networks.py" not in declared
    for source in registered_files("epistemic_calibration.data"):
        assert source.relative_to(SCRIPTS).as_posix() not in declared


def test_scoring_does_not_depend_on_methods_tables_or_data_sources():
    families = registered_files("epistemic_calibration.scoring")
    declared = names(source_files(SCRIPTS / "scores.py", *families))
    assert "epistemic_calibration/metrics/eece.py" in declared
    for other in ("methods/", "report/", "paper/", "latents/", "torchvision"):
        assert not [name for name in declared if other in name], other


@pytest.mark.parametrize("wing", ["library", "paper"])
def test_imports_go_one_way(wing):
    package = SCRIPTS / "epistemic_calibration"
    above = {"library": ("workflow", "paper"), "paper": ("workflow",)}[wing]
    inside = [
        path
        for path in package.rglob("*.py")
        if (path.relative_to(package).parts[0] in above) is False
        and (path.relative_to(package).parts[0] == "paper") is (wing == "paper")
        and path.relative_to(package).parts[0] != "workflow"
    ]
    assert len(inside) > 5
    for path in inside:
        reached = names(source_files(path))
        for name in above:
            wrong = [n for n in reached if n.startswith(f"epistemic_calibration/{name}/")]
            assert not wrong, f"{path.relative_to(package)} reaches {wrong}"


@pytest.mark.parametrize("stage", stages())
def test_every_stage_has_a_script_that_tells_its_arguments(stage):
    run = subprocess.run(
        [sys.executable, str(SCRIPTS / f"{stage}.py"), "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--spec" in run.stdout


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


def test_a_moved_working_folder_changes_no_hash(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text("x = 1\n")
    first, second = (source_hashes(tmp_path / f, tmp_path / f / "mine.py") for f in ("a", "b"))
    assert first == second


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
    ("old", "new"),
    [
        ('"""What it does."""\n', ""),
        ('"""Return twice x."""', '"""Return two times x."""'),
        ("    # Twice.\n", ""),
        ("  # for paths", ""),
        ("    return 2 * x", "\n    return (\n        2 * x  # done\n    )"),
        ('    """Trees."""\n\n', ""),
        ('description="trees"', 'description="trees, and so hypotheses"'),
    ],
)
def test_comments_docstrings_and_layout_are_no_code(tmp_path, old, new):
    assert old in CODE
    for name, text in (("a.py", CODE), ("b.py", CODE.replace(old, new))):
        (tmp_path / name).write_text(text)
    assert code_hash(tmp_path / "a.py") == code_hash(tmp_path / "b.py")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2 * x", "3 * x"),
        ("import os", "import re"),
        ("100", "200"),
        ("ge=1", "ge=2"),
        ("x)", "y)"),
    ],
)
def test_code_is(tmp_path, old, new):
    assert old in CODE
    for name, text in (("a.py", CODE), ("b.py", CODE.replace(old, new))):
        (tmp_path / name).write_text(text)
    assert code_hash(tmp_path / "a.py") != code_hash(tmp_path / "b.py")


def test_a_data_file_counts_byte_by_byte(tmp_path):
    for name, text in (("a.csv", "# x\n1\n"), ("b.csv", "1\n")):
        (tmp_path / name).write_text(text)
    assert code_hash(tmp_path / "a.csv") != code_hash(tmp_path / "b.csv")


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """A user's module that this process has loaded."""
    path = tmp_path / "mine_as_loaded.py"
    path.write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__(path.stem)
    yield path
    del sys.modules[path.stem]


def of_this_process(*paths):
    """The hashes that a spec would have of everything of the project loaded here."""
    modules = [Path(m.__file__) for m in list(sys.modules.values()) if getattr(m, "__file__", None)]
    inside = [p for p in modules if p.suffix == ".py" and p.is_relative_to(SCRIPTS)]
    return source_hashes(Path(paths[0]).parent, *inside, *paths)


def test_what_was_loaded_as_planned_is_fine(loaded, tmp_path):
    check_loaded(of_this_process(loaded), tmp_path)


@pytest.mark.fault
def test_a_file_that_is_not_that_of_the_spec_is_named(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n")
    expected = source_hashes(tmp_path, path)
    assert check_sources(expected, tmp_path) == [path]
    with pytest.raises(StaleResultError, match=r"mine\.py was edited since the run began"):
        check_sources({**expected, "mine.py": "0" * 64}, tmp_path)
    path.unlink()
    with pytest.raises(StaleResultError, match=r"mine\.py was edited since the run began"):
        check_sources(expected, tmp_path)


@pytest.mark.fault
def test_bytecode_that_is_older_than_its_source_is_not_used(tmp_path):
    path = tmp_path / "zz.py"
    path.write_text("V = 0.2\n")
    compiled = Path(py_compile.compile(str(path)))
    # As a copy or an archive does, that brings the old time along.
    stat = path.stat()
    path.write_text("V = 0.7\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    check_sources(source_hashes(tmp_path, path), tmp_path)
    assert not compiled.exists()


def test_bytecode_of_this_source_is_kept(tmp_path):
    path = tmp_path / "zz.py"
    path.write_text("V = 0.2\n")
    time.sleep(0.02)
    compiled = Path(py_compile.compile(str(path)))
    check_sources(source_hashes(tmp_path, path), tmp_path)
    assert compiled.exists()


@pytest.mark.fault
def test_a_source_with_a_fault_is_named_with_its_line(tmp_path):
    (tmp_path / "mine.py").write_text("x = 1\nif x\n")
    with pytest.raises(ValueError, match=r"mine\.py:2: expected ':'"):
        source_hashes(tmp_path, tmp_path / "mine.py")


@pytest.mark.fault
@pytest.mark.parametrize("folder", ["", "sub"])
def test_a_module_that_no_import_statement_shows_is_named(tmp_path, monkeypatch, folder):
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "unseen_helper.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / folder))
    monkeypatch.delitem(sys.modules, "unseen_helper", raising=False)
    __import__("unseen_helper")
    (tmp_path / "entry.py").write_text("import importlib\n")
    expected = of_this_process(tmp_path / "entry.py")
    with pytest.raises(StaleResultError, match="which no import statement of its sources shows"):
        check_loaded(expected, tmp_path)


def test_files_behind_links_are_those_that_the_links_lead_to(tmp_path):
    (tmp_path / "mine" / "deeper").mkdir(parents=True)
    file = tmp_path / "mine" / "deeper" / "module.py"
    file.write_text("")
    (tmp_path / "link.py").symlink_to(file)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    for path in (file, tmp_path / "link.py", tmp_path / "link" / "deeper" / "module.py"):
        assert _resolved(str(path)) == file.resolve()
    assert _resolved("/") == Path("/")


def kept_answers(**environment):
    """Ask for the code of a file in a new process, which counts how often it parses."""
    code = (
        f"import ast, sys; sys.path.insert(0, {str(SCRIPTS)!r}); parse, n = ast.parse, []\n"
        "ast.parse = lambda *a, **k: n.append(1) or parse(*a, **k)\n"
        "from epistemic_calibration.workflow import code_digests as c\n"
        f"print(c.code_of(c.Path({str(SCRIPTS / 'scores.py')!r})).sha256, len(n))\n"
        "c.keep_answers()"
    )
    # Python's own variable for where bytecode goes.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.mark.fault
def test_a_file_is_parsed_once_and_damaged_answers_are_found_anew(tmp_path):
    where = {"PYTHONPYCACHEPREFIX": str(tmp_path)}
    expected = code_hash(SCRIPTS / "scores.py")
    assert kept_answers(**where, PYTHONDONTWRITEBYTECODE="1") == [expected, "1"]
    assert kept_answers(**where) == [expected, "1"]
    assert kept_answers(**where) == [expected, "0"]
    (kept,) = tmp_path.rglob("*.json")
    text = kept.read_text()
    for damaged in (text[:-9], "", "[]", text.replace('"of": "', '"of": "0')):
        kept.write_text(damaged)
        assert kept_answers(**where) == [expected, "1"]


def test_answers_are_of_the_content_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(code_digests, "_PACKAGE", tmp_path / "package")
    digests = set()
    for name, text in (("a.py", "x = 1\n"), ("b.py", "x = 1\n"), ("c.py", "x = 2\n")):
        path = tmp_path / name
        path.write_text(text)
        os.utime(path, (0, 0))
        digests.add(code_digests.code_of(path).sha256)
    assert len(digests) == 2


def test_hidden_files_and_bytecode_are_not_among_those_of_a_folder(tmp_path):
    paths = ["b.py", "a/c.csv", ".git/config", "a/.hidden/d.py", "a/__pycache__/b.pyc", ".e.py"]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    assert files_below(tmp_path) == [tmp_path / "a" / "c.csv", tmp_path / "b.py"]


def test_what_is_of_the_environment(tmp_path):
    # Of the standard library, installed here, and installed for another Python.
    for path in (os.__file__, pytest.__file__, "/somewhere/site-packages/mine.py"):
        assert is_of_the_environment(Path(path).resolve())
    assert not is_of_the_environment(tmp_path / "mine.py")
