"""What the project ships: its files, its settings, and its package in a process of its own."""

import os
import re
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
WORKFLOW = "\n".join(
    path.read_text() for path in [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]
)
#: Of every rule that runs a stage, the name of the stage and the text of the rule.
RULES = [
    (script[1], text)
    for text in re.split(r"(?m)^ *(?=rule\b)", WORKFLOW)[1:]
    if (script := re.search(r'command\(\s*"(\w+)\.py"', text))
]


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
