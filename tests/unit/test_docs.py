"""The Python in the documentation runs, and the page of the API is that of the code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import epistemic_calibration

ROOT = Path(__file__).parents[2]
PACKAGE = Path(epistemic_calibration.__file__).parents[1]


def blocks(path):
    """Yield the heading and the text of every Python block."""
    text = (ROOT / path).read_text()
    for match in re.finditer(r"(?ms)^```python\n(.*?)^```$", text):
        heading = re.findall(r"(?m)^#+ (.*)$", text[: match.start()])[-1]
        yield pytest.param(match[1], id=f"{path}: {heading}")


def run(code, folder):
    command = [sys.executable, "-c", code]
    env = {"PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def words(text):
    """Return a text without digits, which processors and releases move."""
    return " ".join(re.sub(r"[-+]?[\d,]*\.?\d+(e-?\d+)?", "#", text).split())


@pytest.mark.parametrize("code", [*blocks("docs/models.md"), *blocks("README.md")])
def test_blocks_run_by_themselves(code, tmp_path):
    printed = run(code, tmp_path)
    if "print(evaluate(" in code:
        assert printed.startswith("Evaluation of ")
    readme = (ROOT / "README.md").read_text()
    if "print(evaluate(" in code and code in readme:
        shown = re.search(r"(?ms)^```\n(Evaluation of .*?)^```$", readme)[1]
        assert words(printed) == words(shown)


def test_every_adapter_has_a_section():
    text = (ROOT / "docs" / "models.md").read_text()
    for label in ("scikit-learn", "PyTorch", "laplace-torch", "torchmetrics"):
        assert re.search(rf"(?m)^## {label}", text)


def test_the_page_of_the_api_is_that_of_the_code():
    code = "import runpy; print(runpy.run_path('docs/api.py')['page'](), end='')"
    assert run(code, ROOT) == (ROOT / "docs" / "api.md").read_text(), "run make docs"
