"""The command: what it prints and writes, and how it says what is wrong."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from shipped import python
from sklearn.metrics import brier_score_loss

from epistemic_calibration import __version__, cli, evaluate
from epistemic_calibration.evaluation._comparison import compare
from epistemic_calibration.workflow.sources import SCRIPTS

RNG = np.random.default_rng(0)
N = 400
HYPOTHESES = RNG.beta(2, 3, (N, 1)) * RNG.uniform(0.8, 1, (N, 7))
Y_TRUE = (RNG.random(N) < HYPOTHESES.mean(axis=1)).astype(int)
WORSE = HYPOTHESES**3


def saved(path, hypotheses=HYPOTHESES, y_true=Y_TRUE, **more):
    np.savez(path, hypotheses=hypotheses, y_true=y_true, **more)
    return path


@pytest.fixture
def npz(tmp_path):
    return saved(tmp_path / "mine.npz")


def run(capsys, *arguments):
    """Run the command and return its exit code, its output and what it says of faults."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as stop:  # of argparse
        code = stop.code
    said = capsys.readouterr()
    return code, said.out, said.err


def test_score_prints_the_evaluation(capsys, npz):
    code, out, err = run(capsys, "score", npz)
    expected = evaluate(Y_TRUE, HYPOTHESES.astype(np.float32))
    assert (code, out, err) == (0, f"{expected}\n", "")


def test_score_of_a_csv_in_a_process_of_its_own(tmp_path):
    columns = {f"member {j}": HYPOTHESES[:, j] for j in range(7)}
    pd.DataFrame({"y_true": Y_TRUE, **columns}).to_csv(tmp_path / "mine.csv", index=False)
    command = ("-m", "epistemic_calibration", "score", "mine.csv", "--output", "s.csv")
    done = python(*command, cwd=tmp_path)
    assert done.stdout.startswith(f"Evaluation of {N} inputs (") and done.stderr == ""
    scores = pd.read_csv(tmp_path / "s.csv").set_index("metric")
    expected = brier_score_loss(Y_TRUE, HYPOTHESES.astype(np.float32).mean(axis=1))
    assert scores.loc["brier", "value"] == pytest.approx(expected, rel=1e-6)


def test_settings_arrive(capsys, npz):
    options = ("--json", "--n-bins", 8, "--random-state", 3, "--confidence-level", 0.8)
    options += ("--kind-of-uncertainty", "mutual_information")
    code, out, _ = run(capsys, "score", npz, *options, "--output", npz.with_name("o.json"))
    expected = evaluate(
        Y_TRUE,
        HYPOTHESES,
        n_bins=8,
        random_state=3,
        confidence_level=0.8,
        kind_of_uncertainty="mutual_information",
    )
    assert npz.with_name("o.json").read_text() == out
    assert code == 0 and json.loads(out) == expected.to_dict()


N_LABELS = RNG.integers(0, 6, N)


@pytest.mark.parametrize(
    "more",
    [
        {"n_positive": RNG.binomial(N_LABELS, 0.4), "n_labels": N_LABELS},
        {"prediction": np.full(N, 0.3), "epistemic_uncertainty": np.full(N, 0.05)},
        {"exchangeable": False},
    ],
)
def test_score_uses_everything_that_a_file_holds(capsys, npz, more):
    saved(npz, **more)
    expected = evaluate(Y_TRUE, HYPOTHESES, **more)
    assert json.loads(run(capsys, "score", npz, "--json")[1]) == expected.to_dict()
    assert expected.to_dict() != evaluate(Y_TRUE, HYPOTHESES).to_dict()


def test_compare_tells_which_is_better_calibrated(capsys, npz, tmp_path):
    worse = saved(tmp_path / "worse.npz", WORSE)
    code, out, err = run(capsys, "compare", npz, worse)
    assert (code, err) == (0, "") and "→ mine is better calibrated than worse (p " in out
    assert "→ mine is better calibrated than worse" in run(capsys, "compare", worse, npz)[1]
    found = json.loads(run(capsys, "compare", npz, worse, "--json")[1])
    rows = {"mine": HYPOTHESES, "worse": WORSE}
    expected = compare({name: evaluate(Y_TRUE, values) for name, values in rows.items()})
    assert found == expected.to_dict() and found["pairs"][0]["calibration"]["ci_high"] < 0


@pytest.mark.fault
def test_compare_refuses_other_inputs(capsys, npz, tmp_path):
    other = saved(tmp_path / "other.npz", y_true=np.roll(Y_TRUE, 1))
    code, _, err = run(capsys, "compare", npz, other)
    differ = np.count_nonzero(np.roll(Y_TRUE, 1) != Y_TRUE)
    assert code == 1 and f"mine and other differ in {differ} of {N} labels" in err
    saved(other, HYPOTHESES[1:], Y_TRUE[1:])
    assert "has 400 inputs and other has 399" in run(capsys, "compare", npz, other)[2]
    few = [saved(tmp_path / f"{name}.npz", HYPOTHESES[:5], Y_TRUE[:5]) for name in "ab"]
    assert "takes 11 inputs or more, got 5" in run(capsys, "compare", *few)[2]


@pytest.mark.fault
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["score", "nowhere.npz"], 1, "no such file of predictions: nowhere.npz"),
        (["score", "nowhere.npz", "--output", "missing/o.csv"], 2, "does not exist: missing"),
        (["score", "{npz}", "--output", "."], 2, "--output is a folder"),
        (["score", "{npz}", "--output", "o.txt"], 2, "must end in .csv or .json, got o.txt"),
        (["score", "{npz}", "--n-bins", "201"], 1, "n_bins must be at most 200"),
        (["plot", "{npz}", "--output", "o.csv"], 2, "must end in .png or .pdf or .svg"),
        (["compare", "{npz}", "{npz}"], 2, "a file is given twice"),
        (["compare", "{npz}"], 2, "compare takes two files or more"),
        (["check-method", "mine.npz"], 2, "check-method takes a .py file, got mine.npz"),
    ],
)
def test_faults_are_one_line(capsys, npz, monkeypatch, arguments, code, words):
    monkeypatch.chdir(npz.parent)
    found, out, err = run(capsys, *(a.format(npz=npz) for a in arguments))
    assert (found, out) == (code, "")
    assert err.startswith(f"epistemic-calibration {arguments[0]}: ") and words in err
    assert err.count("\n") == 1


def test_help_and_version(capsys):
    assert "one column for each hypothesis" in run(capsys, "score", "--help")[1]
    assert run(capsys, "--version")[1] == f"epistemic-calibration {__version__}\n"
    assert run(capsys, "scor")[0] == run(capsys, "plot", "a.npz")[0] == 2


def test_a_reader_that_has_seen_enough_is_no_fault(npz):
    done = subprocess.run(
        f"{sys.executable} -m epistemic_calibration score {npz} | true",
        shell=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
    )
    assert done.stderr == ""


# Several classes and groups.

OF_CLASSES = RNG.dirichlet([1, 1, 1], (N, 4))
CLASSES = RNG.integers(0, 3, N)


def test_several_classes_are_scored_drawn_and_compared(capsys, tmp_path):
    classes = saved(tmp_path / "classes.npz", OF_CLASSES.transpose(1, 0, 2), CLASSES)
    code, out, err = run(capsys, "score", classes, "--output", tmp_path / "s.csv")
    expected = evaluate(CLASSES, OF_CLASSES)
    assert (code, out, err) == (0, f"{expected}\n", "")
    table = pd.read_csv(tmp_path / "s.csv")
    assert table["metric"].tolist() == expected.to_frame()["metric"].tolist()
    found = json.loads(run(capsys, "score", classes, "--json", "--axes", "hnc")[1])
    assert found == expected.to_dict()
    assert run(capsys, "plot", classes, "--output", tmp_path / "f.pdf") == (0, "", "")
    other = saved(tmp_path / "other.npz", np.full((N, 2, 3), 1 / 3), CLASSES)
    code, out, _ = run(capsys, "compare", classes, other)
    assert code == 0 and "on average over classes" in out
    code, _, err = run(capsys, "score", classes, "--axes", "nch")
    assert code == 1 and "axes='nch' its axis 0 is" in err


def test_groups_are_taken_by_name_or_by_themselves(capsys, tmp_path):
    rows = np.repeat(np.arange(N // 2), 2)
    columns = {f"h{j}": HYPOTHESES[rows, j] for j in range(7)}
    table = pd.DataFrame({"y_true": Y_TRUE[rows], **columns})
    paths = [tmp_path / f"{name}.csv" for name in ("none", "groups", "patient")]
    table.to_csv(paths[0], index=False)
    table.assign(groups=rows).to_csv(paths[1], index=False)
    table.assign(patient=[f"p{k}" for k in rows]).to_csv(paths[2], index=False)
    code, out, err = run(capsys, "score", paths[0])
    assert code == 0 and out.startswith(f"Evaluation of {N} inputs (")
    assert err == "" and f"! {N // 2} of {N} samples repeat" in out and "--groups" in out
    err = run(capsys, "plot", paths[0], "--output", tmp_path / "f.svg")[2]
    assert err.startswith("epistemic-calibration plot: warning: ") and "--groups" in err
    found = [run(capsys, "score", paths[1]), run(capsys, "score", paths[2], "--groups", "patient")]
    for code, out, err in found:
        assert (code, err) == (0, "")
        assert out.startswith(f"Evaluation of {N} inputs in {N // 2} groups")
    assert found[0] == found[1]
    code, _, err = run(capsys, "score", paths[2])
    assert code == 1 and "'patient'" in err


def test_a_limit_of_the_calibration_error_is_the_status(tmp_path, capsys):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=2000)
    # Off by 20 points.
    rows = np.clip(p[:, None] + 0.2 + rng.normal(0, 0.02, (2000, 5)), 0, 1)
    path = saved(tmp_path / "bold.npz", rows, rng.random(2000) < p)
    assert run(capsys, "score", path, "--fail-above", "10")[0] == 1
    assert run(capsys, "score", path, "--fail-above", "30")[0] == 0
    code, said, _ = run(capsys, "score", path, "--cite")
    assert code == 0 and said.startswith("On 2,000 inputs, probabilities are off by 1")
