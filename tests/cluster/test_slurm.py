"""The small digits benchmark, run by a real SLURM with the profile that the project ships."""

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml
from shipped import ROOT
from user_method import text

SEED = "results/digits/seed0"
#: Seconds after which something hangs; a busy machine needs a part of them.
WAIT = 1800

#: Of fits that wait for the test.
WAITING = """\
import os, time
from pathlib import Path
with Path("begun").open("a") as file:
    print(os.environ.get("SLURM_JOB_ID", "none"), file=file)
while not Path("go").exists():
    time.sleep(0.1)"""

#: What is asked of each job in the queue, by the name that SLURM has for it.
COLUMNS = {
    "number": "JobArrayID",
    "state": "State",
    "memory": "MinMemory",
    "limit": "TimeLimit",
    "node": "NodeList",
    "gpus": "tres-per-job",
    "rule": "Comment",
}


@contextlib.contextmanager
def running_through_slurm(project, environment, *arguments):
    """Start a run, and yield its process; its output goes to a file of the project."""
    # Short delays: no one else waits in this queue, and its files are on this machine.
    delays = ("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "5")
    profile = ("--workflow-profile", "profiles/slurm")
    with (project.folder / "screen.txt").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", *profile, *delays, *arguments],
            cwd=project.folder,
            env=environment,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            subprocess.run(["scancel", "--user=root"], env=environment, check=True)


def wait_for(condition):
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, "what the test waits for did not happen"
        time.sleep(0.2)


def queue(environment):
    """Return what SLURM knows of each job, by its number."""
    form = ",".join(f"{name}:200" for name in COLUMNS.values())
    table = subprocess.run(
        ["squeue", "--states=all", "--noheader", f"--Format={form}"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    jobs = {}
    for line in table.splitlines():
        # A job that waits is on no node.
        fields = [line[k * 200 : (k + 1) * 200].strip() for k in range(len(COLUMNS))]
        job = dict(zip(COLUMNS, fields, strict=True))
        job["rule"] = re.match(r"rule_(.*?)(_wildcards_.*)?$", job["rule"]).group(1)
        jobs[job["number"]] = job
    return jobs


SCORES = f"{SEED}/scores/random_forest.csv"
OWN = f"{SEED}/hypotheses/own"


@pytest.fixture(scope="module")
def run(slurm, new_project):
    """What was run through SLURM: the project, its screen, the queue, the jobs of a method.

    The job of the images gets too little memory at first; that of the method is cancelled, and then
    loses its node.
    """
    project = new_project("slurm")
    (project.folder / "own.py").write_text(text(fit=WAITING))
    project.configure(lambda config: config["methods"].update(own={"file": "own.py"}))

    def begun():
        path = project.folder / "begun"
        return path.read_text().split() if path.exists() else []

    little = ("--set-resources", "images:mem_mb=20 if attempt == 1 else 4000")
    with running_through_slurm(project, slurm, SCORES, OWN, *little) as process:

        def has_begun(n):
            assert process.poll() is None, (project.folder / "screen.txt").read_text()
            return len(begun()) >= n

        wait_for(lambda: has_begun(1))
        subprocess.run(["scancel", begun()[0]], env=slurm, check=True)
        wait_for(lambda: has_begun(2))
        update = ["scontrol", "update", f"NodeName={queue(slurm)[begun()[1]]['node']}"]
        subprocess.run([*update, "Reason=test", "State=DOWN"], env=slurm, check=True)
        # Refused where the node has come back by itself.
        subprocess.run([*update, "Reason=test", "State=RESUME"], env=slurm)
        wait_for(lambda: has_begun(3))
        (project.folder / "go").touch()
        code = process.wait(timeout=WAIT)
    # On a node that is down SLURM ends nothing.
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if str(project.folder) in command.read_text():
                os.kill(int(command.parent.name), 9)
    output = (project.folder / "screen.txt").read_text()
    assert code == 0, output
    return project, output, queue(slurm), begun()


def test_a_run_is_equal_to_a_local_one_and_all_of_it_went_through_the_queue(run, finished):
    project, output, jobs, _ = run
    assert (project.folder / SCORES).read_bytes() == (finished.folder / SCORES).read_bytes()
    executed = re.findall(r"Finished jobid: \d+ \(Rule: (\w+)\)", output)
    completed = [job["rule"] for job in jobs.values() if job["state"] == "COMPLETED"]
    assert sorted(completed) == sorted(executed)
    assert {"images", "encoder", "latents", "hypotheses", "scores"} <= set(completed)
    # Which of the nodes it goes to depends on how busy the machine is.
    assert {job["node"] for job in jobs.values()} <= {"node1", "node2"}
    for number, job in jobs.items():
        assert job["memory"] not in ("0", ""), (number, job)
        assert re.fullmatch(r"[\d:-]+", job["limit"]), (number, job)
        assert job["gpus"] == "N/A"


def test_a_job_that_needs_more_memory_is_named_and_gets_more(run):
    _, output, jobs, _ = run
    attempts = {
        number: (job["state"], job["memory"])
        for number, job in jobs.items()
        if job["rule"] == "images"
    }
    (killed, first), (_, second) = sorted(attempts.items(), key=lambda item: int(item[0]))
    # Which of them depends on SLURM's version.
    assert first[0] in {"FAILED", "OUT_OF_MEMORY", "CANCELLED"}
    assert first[1] == "20M"
    assert second == ("COMPLETED", "4000M")
    assert f"SLURM-job '{killed}' failed" in output
    assert "results/logs/digits/images.log" in output


def test_a_job_that_is_cancelled_or_loses_its_node_runs_again(run):
    project, _, jobs, (cancelled, *_, last) = run
    assert jobs[cancelled]["state"] == "CANCELLED"
    assert jobs[last]["state"] == "COMPLETED"
    made = sorted(path.name for path in (project.folder / OWN).glob("*.npz"))
    assert made == ["0.npz", "3.npz", "8.npz"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="its jobs would find a GPU")
def test_with_device_cuda_the_jobs_that_can_use_a_gpu_ask_for_one(run, slurm):
    project, _, before, _ = run
    project.configure(lambda config: config.update(device="cuda"))
    with running_through_slurm(project, slurm, SCORES, "--retries", "0") as process:
        assert process.wait(timeout=WAIT) != 0
    (job,) = (job for number, job in queue(slurm).items() if number not in before)
    assert job["rule"] == "encoder"
    assert "gpu" in job["gpus"]
    assert job["node"] == "node2"
    said = (project.folder / "screen.txt").read_text()
    assert "device='cuda', but PyTorch finds no GPU here" in said


def test_the_profile_says_all_that_the_default_one_says():
    default, cluster = (
        yaml.safe_load((ROOT / "profiles" / name / "config.v9+.yaml").read_text())
        for name in ("default", "slurm")
    )
    # On a cluster the queue counts cores.
    del default["cores"]
    assert {key: cluster.get(key) for key in default} == default
