"""What a run prints, and what it knows of itself afterwards: lines, tables, warnings, status."""

import os
import re
import subprocess
import sys

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


def own_method(project, line):
    (project.folder / "own.py").write_text(METHOD.format(line=line))
    entry = {"file": "own.py", "label": "Own method"}
    project.configure(lambda c: c["methods"].update(own=entry))


def status(project, *arguments):
    command = [sys.executable, "-m", "epistemic_calibration.workflow.status", *arguments]
    scripts = str(project.folder / "workflow_scripts")
    return subprocess.run(
        command,
        cwd=project.folder,
        env={**os.environ, "PYTHONPATH": scripts},
        capture_output=True,
        text=True,
    )


def test_a_method_that_fails_is_told_in_few_lines_and_the_others_get_their_tables(project):
    own_method(project, "raise RuntimeError('out of luck')")
    done = project.run("digits", check=False)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    # Two jobs of the method, of a task more or less.
    assert said.count("FAILED: Fitting own on digits") == 2
    reason = f"own.py, line {LINE}: RuntimeError: out of luck"
    assert said.count("out of luck") == 1
    assert f"  {reason}\n  log: results/logs/digits/seed0/hypotheses/own." in said
    assert "for the same reason as above" in said
    for noise in ("Traceback", "Reason:", "sha256", "--spec", "Error in rule"):
        assert noise not in said
    assert len(said.splitlines()) < 40
    # Of the others there are tables, marked as what they are.
    assert "PARTIAL: Summary of digits" in done.stdout
    assert re.search(r"Random Forest +\d\.\d{3} ", done.stdout)
    assert "results/partial/digits_*" in done.stdout
    partial = (project.folder / "results/partial/digits_summary.md").read_text()
    assert f"Failed: Own method: {reason}" in partial
    assert "Missing: Own method" in partial
    assert "Random Forest" in partial

    assert "  failed   own" in status(project, "digits").stdout
    assert reason in status(project, "digits").stdout
    # They are what `collect` makes.
    assert project.planned("collect") == []

    own_method(project, "pass")
    assert "PARTIAL" not in project.run("digits").stdout
    assert "failed" not in status(project, "digits").stdout


def test_what_a_method_warns_of_stands_under_the_tables_and_at_the_end_of_every_run(project):
    own_method(project, WARNING)
    done = project.run("digits")
    # One for each of three tasks, which differ in the number alone.
    sentence = re.compile(
        rf"Warning: Own method on digits, 3 times: UserWarning: the chain has not converged, R-hat "
        rf"is 0\.\d+ \(own\.py, line {LINE}\)"
    )
    assert len(sentence.findall(done.stdout)) == 1
    folder = project.folder / "results/tables"
    for name in ("digits", "digits_summary", "digits_drivers", "digits_size", "digits_comparisons"):
        assert len(sentence.findall((folder / f"{name}.md").read_text())) == 1, name
        assert "the chain has not converged" in (folder / f"{name}.tex").read_text(), name
    warned = pd.read_csv(folder / "digits_warnings.csv")
    assert warned.query("method == 'own'")["count"].sum() == 3

    # Also when no job runs, and when the tables alone are made again.
    assert project.planned("digits") == []
    again = project.run("digits")
    assert "Nothing has to be made again." in again.stdout + again.stderr
    assert len(sentence.findall(again.stdout + again.stderr)) == 1
    (folder / "digits_summary.md").unlink()
    assert project.planned("digits") == [
        "Making the page results/digits/report.html",
        "Making the tables of digits",
    ]
    assert len(sentence.findall(project.run("digits").stdout)) == 1
    assert len(sentence.findall((folder / "digits_summary.md").read_text())) == 1


def test_a_run_prints_a_line_per_job_and_ends_with_its_table(project, screen, new_project):
    stdout, stderr = screen
    planned = new_project("screen").planned()
    jobs = re.findall(r"^\[ ?(\d+)/(\d+)  [^]]*\] (.*)$", stderr, flags=re.MULTILINE)
    assert sorted(message for _, _, message in jobs) == planned
    assert [int(k) for k, _, _ in jobs] == list(range(1, len(planned) + 1))
    assert {int(n) for _, n, _ in jobs} == {len(planned)}
    # The first time, nobody knows how long a job takes.
    assert "left]" not in stderr
    assert "Reason" not in stderr
    assert len(stderr.splitlines()) < len(planned) + 10
    summary = (project.folder / "results/tables/digits_summary.txt").read_text()
    assert summary in stdout
    assert max(map(len, summary.splitlines())) <= 100
    assert "results/figures/digits/" in stdout
    # 200 test images, ten bins: of each digit there are about 20.
    assert "Few images of a class" in stdout

    tidy = pd.read_csv(project.folder / "results/tables/digits_scores.csv")
    assert {"accuracy", "brier", "tece_corrected", "n_positive"} <= set(tidy["metric"])
    assert set(tidy["method"]) == {"random_forest", "eknn", "mc_dropout", "base_rate"}
    assert "digits: 4 of 4 done" in status(project).stdout

    resolved = "results/config.resolved.yaml"
    again = project.run(resolved, "--forcerun", resolved).stderr
    assert re.search(r"^\[1/1  0:00, about \d+:\d\d left\] Writing", again, flags=re.MULTILINE)


def test_the_status_of_what_has_not_begun_and_of_an_unknown_data_set(new_project):
    project = new_project("status")
    assert status(project).stdout == "digits: 0 of 4 done\n"
    unknown = status(project, "digit")
    assert unknown.returncode == 2
    assert unknown.stderr == "status: no data set digit; there are: digits\n"
