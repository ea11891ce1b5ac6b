"""What `pip install` gives: a light package with a command, in an environment of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
ENV = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
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
    """A copy of what the package is built from: building writes beside it."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    package = Path("workflow_scripts") / "epistemic_calibration"
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / package, folder / package, ignore=skipped)
    return folder


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
    call(environment / "bin" / "pip", "install", wheel)
    return environment / "bin"


def test_the_core_is_light():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {"numpy", "pandas", "scikit-learn", "scipy", "threadpoolctl"}
    assert set(project["dependencies"]) == core


def test_the_lock_holds_every_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert {"plot", "page", "benchmark", "workflow", "cluster", "dev"} <= set(extras)
    assert "--all-extras" in (ROOT / "Makefile").read_text().partition("\nlock:")[2]
    locked = {
        line.partition("==")[0].strip()
        for line in (ROOT / "envs" / "requirements.lock").read_text().splitlines()
    }
    wanted = {
        re.match(r"[\w.-]+", requirement)[0]
        for entries in extras.values()
        for requirement in entries
    }
    assert wanted <= locked


def test_wheel_and_sdist_hold_the_package(tree, wheel):
    package = ROOT / "workflow_scripts" / "epistemic_calibration"
    modules = {
        path.relative_to(package.parent).as_posix()
        for path in [*package.rglob("*.py"), package / "py.typed", package / "__init__.pyi"]
    }
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert modules <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    build = "import sys; from setuptools import build_meta; print(build_meta.build_sdist('dist'))"
    call(sys.executable, "-c", build, cwd=tree)
    (path,) = (tree / "dist").glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"workflow_scripts/{module}" for module in modules} <= names
    assert {"pyproject.toml", "LICENSE", "README.md"} <= names


def test_nothing_heavy_is_installed(installed):
    listed = json.loads(call(installed / "pip", "list", "--format", "json").stdout)
    assert {entry["name"].lower().replace("_", "-") for entry in listed} <= LIGHT
    call(installed / "pip", "check")


def test_the_command_runs_without_anything_else(installed, tmp_path):
    rng = np.random.default_rng(0)
    hypotheses = rng.beta(2, 2, (300, 5))
    path = tmp_path / "mine.csv"
    header = "y_true,h0,h1,h2,h3,h4"
    rows = np.column_stack([rng.random(300) < hypotheses.mean(axis=1), hypotheses])
    np.savetxt(path, rows, delimiter=",", header=header, comments="")
    command = installed / "epistemic-calibration"
    printed = call(command, "score", path, "--output", tmp_path / "o.csv", cwd=tmp_path).stdout
    assert printed.startswith("Evaluation of 300 inputs (")
    assert (tmp_path / "o.csv").read_text().startswith("metric,value,ci_low,ci_high,points\n")
    found = json.loads(call(command, "score", path, "--json").stdout)
    assert found["n_hypotheses"] == 5 and found["tece"]["n_bins"] > 1
    no_figure = call(command, "plot", path, "--output", tmp_path / "f.png", check=False)
    assert no_figure.returncode == 2
    assert no_figure.stderr == (
        "epistemic-calibration plot: plot needs matplotlib: "
        "pip install 'epistemic-calibration[plot]'\n"
    )
