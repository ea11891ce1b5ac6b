"""What the project ships: its files, its settings, and its package in a process of its own."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
SHIPPED = yaml.safe_load((ROOT / "config.yaml").read_text())
EXTENDED = yaml.safe_load((ROOT / "config" / "extended.yaml").read_text())
#: Of `pyproject.toml`.
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def python(*arguments, **options):
    """Run Python, which finds the package of this folder, and return the finished process."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "workflow_scripts"), "OMP_NUM_THREADS": "1"},
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done
