"""The simulations behind the documentation: they run, and say what does not hold."""

import re

import pandas as pd
import pytest
from shipped import ROOT, python


def run(code):
    code = f"import sys; sys.path.insert(0, 'validation')\n{code}"
    return python("-c", code, cwd=ROOT).stdout


def test_every_study_that_the_docs_name_is_there():
    names = set(run("import run; print('\\n'.join(run.STUDIES))").splitlines())
    docs = (ROOT / "docs" / "validation.md").read_text("utf-8")
    assert {*re.findall(r"study `([^`]+)`", docs)} <= names
    numbers = (ROOT / "docs" / "validation_numbers.md").read_text("utf-8")
    assert {*re.findall(r"(?m)^\| `([^`]+)` \|", numbers)} == names


STUDY = """
import run
from _study import Study

def draw(rng):
    x = rng.normal(3)
    return {"truth": 3.0, "estimate": x, "covers": bool(abs(x - 3) < 1.96), "never": False}

claimed = {"estimate": (2.9, 3.1), "covers": (0.93, 0.97), "never": (0.05, 1)}
run.STUDIES = {"normal": Study("normal", "A sentence.", {"one": draw}, claimed, 2000)}
sys.argv = ["run.py", "--quick", "--only", "normal", "--output", OUTPUT]
print(run.main())
"""


def test_the_table_says_what_holds(tmp_path):
    out = run(f"OUTPUT = {str(tmp_path)!r}\n{STUDY}")
    assert out.splitlines()[-1] == "1"
    assert "does not hold: normal, one: never is 0" in out
    table = pd.read_csv(tmp_path / "validation_numbers.csv").set_index("measure")
    assert table["holds"].to_dict() == {"estimate": True, "covers": True, "never": False}
    assert set(table["draws"]) == {200}
    assert set(table["truth"]) == {3.0}
    # A mean and a share of 200 draws.
    assert table.loc["estimate", "value"] == pytest.approx(3, abs=4 / 200**0.5)
    text = (tmp_path / "validation_numbers.md").read_text(encoding="utf-8")
    assert "| `normal` | A sentence. | estimate 3" in text
    assert "never 0 %; **never not as claimed: one** | 1 × 200 |" in text
