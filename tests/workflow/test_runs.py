"""What a run ends with, and the same results byte for byte after it was killed and resumed."""

import os
import signal
import subprocess
import sys
import time

import pandas as pd

SEED = "results/digits/seed0"
TABLES = "results/tables/digits.csv"


def results(project):
    """The content of all scores, hypotheses and tables that do not tell times, by path."""
    folder = project.folder / "results"
    kinds = ("*/seed0/hypotheses/*/*.npz", "*/seed0/scores/*", "tables/digits*")
    return {p.relative_to(folder): p.read_bytes() for kind in kinds for p in folder.glob(kind)}


def test_a_killed_and_resumed_run_on_one_core_gives_the_results_of_one_left_alone_on_two(
    finished, new_project
):
    project = new_project("killed")
    command = [sys.executable, "-m", "snakemake", "--cores", "1", TABLES]
    process = subprocess.Popen(
        command,
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    hypotheses = project.folder / SEED / "hypotheses"
    end = time.monotonic() + 1800
    while not list(hypotheses.glob("*/*.npz")):
        assert process.poll() is None, "the run ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.05)
    # Its jobs go on without it, and may write while the next run does.
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (project.folder / TABLES).exists()
    assert "--unlock" in project.failed(TABLES)
    project.run("--unlock")
    project.run("--cores", "1", TABLES)
    expected = results(finished)
    assert results(project) == {path: expected[path] for path in results(project)}
    assert len(results(project)) > 20


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
