"""The same results, byte for byte, however they come about."""

import os
import signal
import subprocess
import sys
import time

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
    end = time.monotonic() + 600
    while not list(hypotheses.glob("*/*.npz")):
        assert process.poll() is None, "the run ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.05)
    # Its jobs go on without it, and may write while the next run does.
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (project.folder / TABLES).exists()
    locked = project.run(TABLES, check=False)
    assert locked.returncode != 0
    assert "--unlock" in locked.stdout + locked.stderr
    project.run("--unlock")
    project.run("--cores", "1", TABLES)
    expected = results(finished)
    assert results(project) == {path: expected[path] for path in results(project)}
    assert len(results(project)) > 20
