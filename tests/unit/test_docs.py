"""The Python in the documentation runs, and its links lead somewhere."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import epistemic_calibration

ROOT = Path(__file__).parents[2]
PACKAGE = Path(epistemic_calibration.__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))


def python_of(path):
    """Return the heading and the text of every Python block."""
    text = path.read_text()
    return [
        (re.findall(r"(?m)^#+ (.*)$", text[: match.start()])[-1], match[1])
        for match in re.finditer(r"(?ms)^```python\n(.*?)^```$", text)
    ]


#: Runs each block with names of its own, in a process that imports the heavy libraries once.
EACH = """
import contextlib, io, json, sys
printed = []
for heading, code in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(code, heading, "exec"), {"__name__": "__main__"})
    printed.append(output.getvalue())
print(json.dumps(printed))
"""


def run(code, folder, given=None):
    command = [sys.executable, "-c", code]
    env = {"PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env, input=given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def words(text):
    """Return a text without digits, which processors and releases move."""
    return " ".join(re.sub(r"[-+]?[\d,]*\.?\d+(e-?\d+)?", "#", text).split())


@pytest.mark.parametrize(
    "page", ["docs/index.md", "docs/models.md", "docs/why_not_eece.md", "README.md"]
)
def test_blocks_run_by_themselves(page, tmp_path):
    blocks = python_of(ROOT / page)
    for (heading, code), printed in zip(
        blocks, json.loads(run(EACH, tmp_path, json.dumps(blocks))), strict=True
    ):
        if "print(evaluate(" in code:
            assert printed.startswith("Evaluation of "), heading
            if page == "README.md":
                text = (ROOT / page).read_text()
                shown = re.search(r"(?ms)^```\n(Evaluation of .*?)…?\n```$", text)[1]
                assert words(printed).startswith(words(shown))


def test_what_to_do_with_a_result_runs_from_top_to_bottom(tmp_path):
    code = "\n".join(text for _, text in python_of(ROOT / "docs" / "read_your_result.md"))
    assert len(run(code, tmp_path).splitlines()) >= 3


def test_the_tables_of_how_many_are_those_of_the_script(tmp_path):
    printed = run(f"import runpy; runpy.run_path({str(ROOT / 'docs/how_many.py')!r})", tmp_path)
    assert printed == ""
    code = f"import runpy; runpy.run_path({str(ROOT / 'docs/how_many.py')!r}, run_name='__main__')"
    rows = [line.split() for line in run(code, tmp_path).splitlines()]
    page = (ROOT / "docs" / "read_your_result.md").read_text()

    def shown(label):
        (row,) = re.findall(rf"(?m)^\| {label} \|(.*)\|$", page)
        return [float(cell.replace(",", "")) for cell in row.split("|")]

    tables = [[], []]
    for row in rows:
        if row and row[0].isdigit():
            tables[len(row) > 2].append(row)
    inputs, members = tables
    assert shown("test inputs") == [float(row[0]) for row in inputs]
    assert shown("members") == [float(row[0]) for row in members]
    # Other processors and releases move an error by some tenths of a point.
    for label, values in (
        ("least error that can be seen, points", [row[1] for row in inputs]),
        ("calibration error, points", [row[1] for row in members]),
        ("factor of the EU", [row[-1] for row in members]),
    ):
        assert shown(label) == pytest.approx([float(value) for value in values], abs=0.5)


def anchors(path):
    """Return the anchors that code hosts give the headings of a page."""
    headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```$", "", path.read_text()))
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)#\s]*(?:#[^)\s]*)?)\)", path.read_text()):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_adapter_has_a_section():
    text = (ROOT / "docs" / "models.md").read_text()
    for label in ("scikit-learn", "PyTorch", "laplace-torch", "torchmetrics"):
        assert re.search(rf"(?m)^## {label}", text)
