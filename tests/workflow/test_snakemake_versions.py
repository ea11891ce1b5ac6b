"""The lowest release of Snakemake that the project allows; all other tests run the locked one."""

import functools
import os
import re
import subprocess
import sys

import pytest
from shipped import METADATA


def test_the_lowest_snakemake_plans_and_runs(new_project, tmp_path):
    workflow = METADATA["optional-dependencies"]["workflow"]
    (allowed,) = (d for d in workflow if "snakemake" in d)
    lowest = re.fullmatch(r"snakemake>=([\d.]+)", allowed).group(1)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    # A package that releases of that time needed.
    packages = [f"snakemake=={lowest}", "appdirs"]
    done = subprocess.run(
        [*install, "--target", str(tmp_path / "old"), *packages], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"no package index: {done.stderr.strip().splitlines()[-1]}")
    project = new_project("lowest")
    paths = os.pathsep.join([str(tmp_path / "old"), "workflow_scripts"])
    run = functools.partial(project.run, env={**os.environ, "PYTHONPATH": paths})
    assert run("--version").stdout.strip().startswith(lowest)
    run("--dry-run", "demo")
    run("results/digits/images.npz")
    assert "Nothing to be done" in run("results/digits/images.npz").stderr
    project.configure(lambda config: config["datasets"]["digits"].update(split_seed=1))
    assert "Reading the inputs of digits" in run("--dry-run", "results/digits/images.npz").stdout
