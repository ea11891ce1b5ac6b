"""The small digits benchmark, run by a real SLURM with the profile that the project ships."""

import contextlib
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

ROOT = Path(__file__).parents[2]
SEED = "results/digits/seed0"

#: A method whose fits wait for the test.
METHOD = """\
import os, time
from pathlib import Path
import numpy as np
from epistemic_calibration.methods import Method

class Own(Method):
    label = "own"

    def __init__(self, *, random_state=0, name="own"):
        self.random_state, self.name = random_state, name

    def fit(self, X, y):
        with Path(f"{self.name}.begun").open("a") as file:
            print(os.environ.get("SLURM_JOB_ID", "none"), file=file)
        while not Path("go").exists():
            time.sleep(0.1)
        self.p_ = y.mean()
        return self

    def sample_hypotheses(self, X):
        rng = np.random.default_rng(self.random_state)
        return rng.beta(1 + self.p_, 1, size=(len(X), 4))
"""

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


def command(*arguments):
    # Short delays: no one else waits in this queue, and its files are on this machine.
    delays = ("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "5")
    profile = ("--workflow-profile", "profiles/slurm")
    return [sys.executable, "-m", "snakemake", *profile, *delays, *arguments]


def run_through_slurm(project, environment, *arguments):
    return subprocess.run(
        command(*arguments),
        cwd=project.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        stdin=subprocess.DEVNULL,
    )


@contextlib.contextmanager
def running_through_slurm(project, environment, *arguments):
    """Start a run, and yield its process; its output goes to a file of the project."""
    with (project.folder / "screen.txt").open("w") as output:
        process = subprocess.Popen(
            command(*arguments),
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


def wait_for(condition, seconds=600):
    end = time.monotonic() + seconds
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


SCORES = [f"{SEED}/scores/{method}.csv" for method in ("random_forest", "eknn")]


@pytest.fixture(scope="module")
def run(slurm, new_project):
    """Two methods run through SLURM; the first job gets too little memory at first."""
    project = new_project("slurm")
    done = run_through_slurm(
        project,
        slurm,
        *SCORES,
        "--set-resources",
        "images:mem_mb=20 if attempt == 1 else 4000",
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    return project, output, queue(slurm)


@pytest.fixture
def project(run, slurm, tmp_path):
    """Return a copy of the finished project, whose jobs end with the test also if it fails."""
    yield run[0].copy(tmp_path / "work")
    subprocess.run(["scancel", "--user=root"], env=slurm, check=True)


def test_a_run_is_equal_to_a_local_one_and_all_of_it_went_through_the_queue(run, finished):
    project, output, jobs = run
    for name in SCORES:
        assert (project.folder / name).read_bytes() == (finished.folder / name).read_bytes()
    executed = re.findall(r"Finished jobid: \d+ \(Rule: (\w+)\)", output)
    completed = [job["rule"] for job in jobs.values() if job["state"] == "COMPLETED"]
    assert sorted(completed) == sorted(executed)
    assert {"images", "encoder", "latents", "neighbors", "hypotheses", "scores"} == set(completed)
    # Which of the nodes it goes to depends on how busy the machine is.
    assert {job["node"] for job in jobs.values()} <= {"node1", "node2"}
    for number, job in jobs.items():
        assert job["memory"] not in ("0", ""), (number, job)
        assert re.fullmatch(r"[\d:-]+", job["limit"]), (number, job)
        assert job["gpus"] == "N/A"


@pytest.mark.fault
def test_a_job_that_needs_more_memory_is_named_and_gets_more(run):
    _, output, jobs = run
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


@pytest.mark.skipif(torch.cuda.is_available(), reason="its jobs would find a GPU")
def test_with_device_cuda_the_jobs_that_can_use_a_gpu_ask_for_one(project, slurm):
    project.configure(lambda config: config.update(device="cuda"))
    before = queue(slurm)
    done = run_through_slurm(project, slurm, SCORES[0], "--retries", "0")
    (job,) = (job for number, job in queue(slurm).items() if number not in before)
    assert job["rule"] == "encoder"
    assert "gpu" in job["gpus"]
    assert job["node"] == "node2"
    assert done.returncode != 0
    assert "device='cuda', but PyTorch finds no GPU here" in done.stdout + done.stderr


def test_the_profile_says_all_that_the_default_one_says():
    default, cluster = (
        yaml.safe_load((ROOT / "profiles" / name / "config.v9+.yaml").read_text())
        for name in ("default", "slurm")
    )
    # On a cluster the queue counts cores.
    del default["cores"]
    assert {key: cluster.get(key) for key in default} == default


@pytest.mark.fault
def test_jobs_that_are_cancelled_time_out_or_lose_their_node_run_again(project, slurm, tmp_path):
    names = ("cancelled", "slow", "lost")
    (project.folder / "own.py").write_text(METHOD)
    entries = {name: {"file": "own.py", "name": name} for name in names}
    project.configure(lambda config: config["methods"].update(entries))
    folders = [f"{SEED}/hypotheses/{name}" for name in names]
    local = project.copy(tmp_path / "local")
    (local.folder / "go").touch()
    local.run(*folders)

    def begun(name):
        path = project.folder / f"{name}.begun"
        return path.read_text().split() if path.exists() else []

    limit = "hypotheses:runtime=1 if attempt == 1 else 60"
    with running_through_slurm(project, slurm, *folders, "--set-resources", limit) as process:
        wait_for(lambda: all(begun(name) for name in names))
        subprocess.run(["scancel", begun("cancelled")[0]], env=slurm, check=True)
        # The others reach the limit of a minute.
        wait_for(lambda: all(len(set(begun(name))) == 2 for name in names))
        states = {number: job["state"] for number, job in queue(slurm).items()}
        assert states[begun("cancelled")[0]] == "CANCELLED"
        assert states[begun("slow")[0]] == states[begun("lost")[0]] == "TIMEOUT"
        n_begun = len(begun("lost"))
        node = queue(slurm)[begun("lost")[-1]]["node"]
        update = ["scontrol", "update", f"NodeName={node}", "Reason=test"]
        subprocess.run([*update, "State=DOWN"], env=slurm, check=True)
        subprocess.run([*update, "State=RESUME"], env=slurm, check=True)
        wait_for(lambda: len(begun("lost")) > n_begun)
        (project.folder / "go").touch()
        assert process.wait(timeout=600) == 0, (project.folder / "screen.txt").read_text()
    for folder in folders:
        made, expected = (
            {path.name: path.read_bytes() for path in (p.folder / folder).glob("*.npz")}
            for p in (project, local)
        )
        assert made == expected
        assert len(made) == 3
