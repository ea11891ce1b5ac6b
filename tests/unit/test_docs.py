"""The Python in the documentation runs, and its links lead somewhere."""

import json
import re

import pytest
from shipped import ROOT, python

PAGES = sorted((ROOT / "docs").glob("*.md"))


#: A Python block, and what it prints: the next block without a language, a paragraph later at most.
BLOCK = re.compile(r"(?ms)^```python\n(.*?)^```\n(?:(?:\n[^`#\n][^\n]*){0,5}\n+```\n(.*?)^```$)?")


def python_of(path):
    """Return the heading, the text and the output, or "", of every Python block."""
    text = path.read_text()
    return [
        (re.findall(r"(?m)^#+ (.*)$", text[: match.start()])[-1], match[1], match[2] or "")
        for match in BLOCK.finditer(text)
    ]


#: Runs each block with names of its own, in a process that imports the heavy libraries once.
EACH = """
import contextlib, io, json, sys
printed = []
for heading, code, _ in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(code, heading, "exec"), {"__name__": "__main__"})
    printed.append(output.getvalue())
print(json.dumps(printed))
"""


def run(code, folder, given=None):
    return python("-c", code, cwd=folder, input=given).stdout


NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"


def check_output(printed, shown):
    """Compare with digits. Other processors and releases may move the last one by one."""
    shown, more = shown.strip(), "…" in shown
    shown = shown.rstrip("…").split()
    printed = printed.split()[: len(shown)] if more else printed.split()
    assert len(printed) == len(shown), (printed, shown)
    for is_, said in zip(printed, shown, strict=True):
        assert re.sub(NUMBER, "#", is_) == re.sub(NUMBER, "#", said), (is_, said)
        for a, b in zip(re.findall(NUMBER, is_), re.findall(NUMBER, said), strict=True):
            last = 10.0 ** -len(b.partition(".")[2])
            a, b = (float(number.replace(",", "")) for number in (a, b))
            assert abs(a - b) < 1.01 * last, (is_, said)


@pytest.mark.parametrize(
    "page", ["docs/index.md", "docs/models.md", "docs/why_not_eece.md", "README.md"]
)
def test_blocks_run_by_themselves_and_print_what_is_shown(page, tmp_path):
    blocks = python_of(ROOT / page)
    all_printed = json.loads(run(EACH, tmp_path, json.dumps(blocks)))
    for (heading, code, output), printed in zip(blocks, all_printed, strict=True):
        if output:
            check_output(printed, output)
        elif "print(evaluate(" in code:
            assert printed.startswith("Evaluation of "), heading


def test_what_to_do_with_a_result_runs_from_top_to_bottom(tmp_path):
    found = python_of(ROOT / "docs" / "read_your_result.md")
    code, output = ("\n".join(part) for part in list(zip(*found, strict=True))[1:])
    check_output(run(code, tmp_path), output)


def test_sentences_about_the_forest_of_the_readme_are_those_it_prints(tmp_path):
    (code,) = (code for _, code, _ in python_of(ROOT / "README.md") if "forest.npz" in code)
    cite = "from epistemic_calibration.cli import main; main(['score', 'forest.npz', '--cite'])"
    summary, cited = run(code, tmp_path), run(cite, tmp_path)
    index, page = (
        (ROOT / "docs" / name).read_text() for name in ("index.md", "read_your_result.md")
    )
    (said,) = re.findall(r"off by about [\d.]+ points \([\d.]+ to [\d.]+\)", index)
    assert said in summary
    quote = re.search(r"(?m)(?:^> .*\n)+", page)[0].replace("> ", " ")
    check_output(cited, quote + "…")
    by_eu, by_p, errors = re.search(
        r"([\d.]+) % by EU and ([\d.]+) %.*?, of ([\d.]+) %", page
    ).groups()
    for said in (f"Of {errors} % ", f" {by_eu} % ", f" {by_p} % "):
        assert said in cited


@pytest.mark.parametrize("name", ["2_several_classes", "3_several_labels", "4_repair"])
def test_percentages_in_and_about_a_tutorial_are_printed_by_it(name, tmp_path):
    code = (ROOT / "examples" / "tutorials" / f"{name}.py").read_text()
    page = (ROOT / "docs" / "read_your_result.md").read_text().replace("\n", " ")
    text = "".join(re.findall(r"(?m)^# [^%].*", code) + re.findall(rf"{name}\.py`[^.]*", page))
    printed = run(f"import matplotlib; matplotlib.use('agg')\n{code}", tmp_path)
    said = re.findall(rf"{NUMBER} %", text)
    assert said and [n for n in said if n not in printed.replace(".0 %", " %")] == []


def test_the_tables_of_how_many_are_those_of_the_script(tmp_path):
    printed = run(f"import runpy; runpy.run_path({str(ROOT / 'docs/how_many.py')!r})", tmp_path)
    assert printed == ""
    code = f"import runpy; runpy.run_path({str(ROOT / 'docs/how_many.py')!r}, run_name='__main__')"
    rows = [line.split() for line in run(code, tmp_path).splitlines() if line.strip()[:1].isdigit()]
    inputs, members = ([row for row in rows if (len(row) > 2) == more] for more in (False, True))
    page = (ROOT / "docs" / "read_your_result.md").read_text()

    def shown(label):
        (row,) = re.findall(rf"(?m)^\| {label} \|(.*)\|$", page)
        return [float(cell.replace(",", "")) for cell in row.split("|")]

    assert shown("test inputs") == [float(row[0]) for row in inputs]
    assert shown("members") == [float(row[0]) for row in members]
    for label, values in (
        ("least error that can be seen, points", [row[1] for row in inputs]),
        ("calibration error, points", [row[1] for row in members]),
        ("factor of the EU", [row[-1] for row in members]),
    ):
        assert shown(label) == pytest.approx([float(value) for value in values], abs=0.11)


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
