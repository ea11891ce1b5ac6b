"""What `pip install` gives: a light package with a command, in an environment of its own."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile

import numpy as np
import pandas as pd
import pytest
from shipped import METADATA, ROOT

ENV = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
#: What is needed to run the project, its tests and its documentation.
PROJECT = (
    *("Snakefile", "config.yaml", "Makefile", "pyproject.toml", "MANIFEST.in"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "LICENSE"),
    *(".gitignore", ".mdformat.toml", "benchmarks", "docs", "envs", "examples", "profiles"),
    *("report", "resources", "rules", "tests", "validation", "workflow_scripts"),
)
#: What the light dependencies bring along, whatever their release.
LIGHT = {
    *("epistemic-calibration", "numpy", "pandas", "scikit-learn", "scipy", "threadpoolctl"),
    *("cloudpickle", "joblib", "narwhals", "python-dateutil", "pytz", "six", "tzdata"),
    *("pip", "setuptools"),
}


def call(*command, check=True, **options):
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, env=ENV, **options)
    assert not check or done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the project: building writes beside it."""
    folder = tmp_path_factory.mktemp("tree")
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info", "generated")
    for name in PROJECT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=skipped)
        else:
            shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def sdist(tree):
    build = "import sys; from setuptools import build_meta; print(build_meta.build_sdist('dist'))"
    call(sys.executable, "-c", build, cwd=tree)
    (path,) = (tree / "dist").glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    reached = call(python, "-m", "pip", "install", "--dry-run", "--no-deps", "numpy", check=False)
    if reached.returncode != 0:
        pytest.skip(f"no package index can be reached: {reached.stderr.strip()[-300:]}")
    return folder


@pytest.fixture(scope="module")
def wheel(tree, environment):
    built = tree / "dist"
    call(environment / "bin" / "pip", "wheel", tree, "--no-deps", "-w", built)
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(environment, wheel):
    call(environment / "bin" / "pip", "install", "--no-compile", wheel)
    return environment / "bin"


def test_the_core_is_light():
    core = {"numpy", "pandas", "scikit-learn", "scipy", "threadpoolctl"}
    assert {each.partition(">=")[0] for each in METADATA["dependencies"]} == core


def test_the_wheel_holds_the_package(wheel):
    package = ROOT / "workflow_scripts" / "epistemic_calibration"
    modules = {
        path.relative_to(package.parent).as_posix()
        for path in [*package.rglob("*.py"), package / "py.typed", package / "__init__.pyi"]
    }
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert modules <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_sdist_holds_the_project(tree, sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    for path in tree.rglob("*"):
        inside = path.relative_to(tree)
        built = inside.parts[0] in ("build", "dist") or any(".egg-info" in p for p in inside.parts)
        if path.is_file() and not built:
            assert (folder / inside).read_bytes() == path.read_bytes(), inside
    strange = {path.name for path in folder.iterdir()} - {*PROJECT, "PKG-INFO", "setup.cfg"}
    assert not strange
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "--cores", "1", "digits"]
    call(*command, cwd=folder)


def test_the_wheel_of_the_sdist_is_that_of_the_tree(wheel, sdist, environment, tmp_path):
    call(environment / "bin" / "pip", "wheel", sdist, "--no-deps", "-w", tmp_path)
    contents = []
    for path in (wheel, *tmp_path.glob("*.whl")):
        with zipfile.ZipFile(path) as archive:
            contents.append({name: archive.read(name) for name in archive.namelist()})
    assert len(contents) == 2 and contents[0] == contents[1]


def test_nothing_heavy_is_installed(installed):
    listed = json.loads(call(installed / "pip", "list", "--format", "json").stdout)
    assert {entry["name"].lower().replace("_", "-") for entry in listed} <= LIGHT
    call(installed / "pip", "check")


def test_the_command_runs_without_anything_else(installed, tmp_path):
    rng = np.random.default_rng(0)
    hypotheses = rng.beta(2, 2, (300, 5))
    path = tmp_path / "mine.csv"
    table = pd.DataFrame(hypotheses).add_prefix("h")
    table.assign(y_true=rng.random(300) < hypotheses.mean(axis=1)).to_csv(path, index=False)
    command = installed / "epistemic-calibration"
    printed = call(command, "score", path, "--output", tmp_path / "o.csv", cwd=tmp_path).stdout
    assert printed.startswith("Evaluation of 300 inputs (")
    assert (tmp_path / "o.csv").read_text().startswith("metric,class,value,ci_low,ci_high,points\n")
    found = json.loads(call(command, "score", path, "--json").stdout)
    assert found["n_hypotheses"] == 5 and found["tece"]["n_bins"] > 1
    no_figure = call(command, "plot", path, "--output", tmp_path / "f.png", check=False)
    assert no_figure.returncode == 2
    assert no_figure.stderr == (
        "epistemic-calibration plot: plot needs matplotlib: "
        "pip install 'epistemic-calibration[plot]'\n"
    )
