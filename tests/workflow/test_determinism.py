"""The same tables, byte for byte, however they come about."""

import os
import signal
import subprocess
import sys
import time

TABLES = [
    f"results/tables/digits{part}.{suffix}"
    for part in ("", "_summary", "_drivers")
    for suffix in ("csv", "md", "tex")
]


def tables(project):
    return {name: (project.folder / name).read_bytes() for name in TABLES}


def test_one_core_gives_the_tables_of_two(finished, new_project):
    project = new_project("one_core")
    project.run("--cores", "1", TABLES[0])
    assert tables(project) == tables(finished)


def test_a_killed_and_resumed_run_gives_the_tables_of_one_that_was_left_alone(
    finished, new_project
):
    project = new_project("killed")
    command = [sys.executable, "-m", "snakemake", "--cores", "2", TABLES[0]]
    process = subprocess.Popen(
        command,
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    hypotheses = project.folder / "results/digits/seed0/hypotheses"
    end = time.monotonic() + 200
    while not list(hypotheses.glob("*/*.npz")):
        assert process.poll() is None, "the run ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.05)
    # Its jobs go on without it, and may write while the next run does.
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (project.folder / TABLES[0]).exists()

    locked = project.run(TABLES[0], check=False)
    assert locked.returncode != 0
    assert "--unlock" in locked.stdout + locked.stderr
    project.run("--unlock")
    project.run(TABLES[0])
    assert tables(project) == tables(finished)
