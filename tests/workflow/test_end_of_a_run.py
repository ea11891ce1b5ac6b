"""What a run ends with: tables, warnings, the page; and what is left when a method fails."""

import re

import pandas as pd

METHOD = """\
import warnings
import numpy as np
from epistemic_calibration.methods import Method

class Own(Method):
    label = "Own method"

    def __init__(self, *, random_state=0):
        self.random_state = random_state

    def fit(self, X, y):
        self.p_ = y.mean()
        return self

    def sample_hypotheses(self, X):
        {line}
        return np.full((len(X), 4), self.p_)
"""
LINE = 1 + METHOD.splitlines().index("        {line}")
WARNING = "warnings.warn('the chain has not converged, R-hat is %.3f' % self.p_)"
READS = "open('notes.txt').read()"


def own_method(project, line):
    (project.folder / "own.py").write_text(METHOD.format(line=line))
    entry = {"file": "own.py", "label": "Own method"}
    project.configure(lambda c: c["methods"].update(own=entry))


def test_a_run_ends_with_its_table_its_warnings_and_its_page(finished, screen):
    stdout, _ = screen
    summary = (finished.folder / "results/tables/digits_summary.txt").read_text()
    assert summary.strip() in stdout
    assert max(map(len, summary.splitlines())) <= 100
    # 200 test images, ten bins: of each digit there are about 20.
    assert "Few images of a class" in stdout
    pages = [line.split()[1] for line in stdout.splitlines() if line.startswith("Open ")]
    assert sorted(pages) == ["results/benchmark/report.html", "results/digits/report.html"]
    assert all((finished.folder / page).is_file() for page in pages)
    tidy = pd.read_csv(finished.folder / "results/tables/digits_scores.csv")
    assert {"accuracy", "brier", "tece_corrected", "n_positive"} <= set(tidy["metric"])
    assert set(tidy["method"]) == {"random_forest", "eknn", "mc_dropout", "base_rate"}


def test_a_method_that_fails_leaves_the_others_their_tables(project):
    own_method(project, "raise RuntimeError('out of luck')")
    done = project.run("digits", check=False)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    reason = f"own.py, line {LINE}: RuntimeError: out of luck"
    assert f"FAILED: {reason}" in said
    assert "results/logs/digits/seed0/hypotheses/own.log" in said
    assert "--config 'methods={NAME: null}'" in said
    project.run("digits", "--config", "methods={own: null}")
    table = (project.folder / "results/tables/digits_summary.md").read_text()
    assert "Random Forest" in table
    assert "Own method" not in table
    own_method(project, "pass")
    project.run("digits")
    assert "Own method" in (project.folder / "results/tables/digits_summary.md").read_text()


def test_what_a_method_warns_of_stands_under_every_table(project):
    (project.folder / "notes.txt").write_text("read, but declared nowhere")
    own_method(project, f"{WARNING}; {READS}")
    done = project.run("digits")
    # One for each of three tasks, which differ in the number alone.
    sentence = re.compile(
        rf"Warning: Own method on digits, 3 times: UserWarning: the chain has not converged, R-hat "
        rf"is 0\.\d+ \(own\.py, line {LINE}\)"
    )
    assert len(sentence.findall(done.stdout)) == 1
    assert "notes.txt was read, but no `depends_on` has it" in done.stdout
    folder = project.folder / "results/tables"
    for name in ("digits", "digits_summary", "digits_drivers", "digits_size", "digits_comparisons"):
        assert len(sentence.findall((folder / f"{name}.md").read_text())) == 1, name
        assert "the chain has not converged" in (folder / f"{name}.tex").read_text(), name
    warned = pd.read_csv(folder / "digits_warnings.csv")
    assert warned.query("method == 'own' and text.str.contains('R-hat')")["count"].sum() == 3
    # Also where the tables alone are made again.
    (folder / "digits_summary.md").unlink()
    assert project.planned("digits") == [
        "Making the page results/digits/report.html",
        "Making the tables of digits",
    ]
    project.run("results/tables/digits_summary.md")
    assert len(sentence.findall((folder / "digits_summary.md").read_text())) == 1
