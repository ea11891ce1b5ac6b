"""The small digits benchmark, run by a real SLURM with the profile that the project ships."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

ROOT = Path(__file__).parents[2]


def run_through_slurm(project, environment, *arguments):
    # Short delays: no one else waits in this queue, and its files are on this machine.
    delays = ("--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "5")
    profile = ("--workflow-profile", "profiles/slurm")
    return subprocess.run(
        [sys.executable, "-m", "snakemake", *profile, *delays, *arguments],
        cwd=project.folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        stdin=subprocess.DEVNULL,
    )


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
        job = dict(zip(COLUMNS, line.split(), strict=True))
        job["rule"] = re.match(r"rule_(.*?)(_wildcards_.*)?$", job["rule"]).group(1)
        jobs[job["number"]] = job
    return jobs


@pytest.fixture(scope="module")
def run(slurm, new_project):
    """The benchmark run through SLURM, whose first job gets too little memory at first."""
    project = new_project("slurm")
    done = run_through_slurm(
        project,
        slurm,
        "results/tables/digits.csv",
        "--set-resources",
        "images:mem_mb=20 if attempt == 1 else 4000",
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    return project, output, queue(slurm)


def test_numbers_are_those_of_a_local_run(run, finished):
    project, _, _ = run
    tables = project.tables()
    assert {"digits.csv", "digits_summary.csv"} <= set(tables)
    local = finished.tables()
    assert tables == {name: local[name] for name in tables}


def test_every_job_of_the_benchmark_went_through_the_queue(run):
    project, _, jobs = run
    # The screen tells what begins, Snakemake's own log also what is finished.
    log = max((project.folder / ".snakemake" / "log").glob("*.log"))
    executed = re.findall(r"Finished jobid: \d+ \(Rule: (\w+)\)", log.read_text())
    completed = [job["rule"] for job in jobs.values() if job["state"] == "COMPLETED"]
    assert sorted(completed) == sorted(executed)
    assert {"images", "encoder", "latents", "hypotheses_digits_0", "scores", "tables"} <= set(
        completed
    )


def test_jobs_are_spread_over_the_nodes(run):
    _, _, jobs = run
    assert {job["node"] for job in jobs.values()} == {"node1", "node2"}


def test_every_job_asks_for_memory_and_time(run):
    _, _, jobs = run
    for number, job in jobs.items():
        assert job["memory"] not in ("0", ""), (number, job)
        assert re.fullmatch(r"[\d:-]+", job["limit"]), (number, job)


def test_jobs_of_a_rule_are_an_array(run):
    _, _, jobs = run
    # The methods without neighbours or networks are ready together, when the latents are there.
    arrays = {number: job["rule"] for number, job in jobs.items() if "_" in number}
    assert list(arrays.values()).count("hypotheses_digits_0") == 2


def test_no_job_asks_for_a_gpu_unless_told_to(run):
    _, _, jobs = run
    assert {job["gpus"] for job in jobs.values()} == {"N/A"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="its jobs would find a GPU")
def test_with_device_cuda_the_jobs_that_can_use_a_gpu_ask_for_one(run, slurm, tmp_path):
    project = run[0].copy(tmp_path / "cuda")
    project.configure(lambda config: config.update(device="cuda"))
    before = queue(slurm)
    done = run_through_slurm(project, slurm, "results/tables/digits.csv", "--retries", "0")
    (job,) = (job for number, job in queue(slurm).items() if number not in before)
    assert job["rule"] == "encoder"
    assert "gpu" in job["gpus"]
    assert job["node"] == "node2"
    assert done.returncode != 0
    assert "device='cuda', but PyTorch finds no GPU here" in done.stdout + done.stderr


def test_killed_job_fails_names_its_logs_and_is_retried_with_more_memory(run):
    project, _, jobs = run
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

    # The screen says it in three lines; Snakemake's log has it all.
    logs_of_runs = sorted((project.folder / ".snakemake" / "log").glob("*.log"))
    output = "".join(path.read_text() for path in logs_of_runs)
    error = output[output.index("Error in rule images") :]
    assert f"SLURM-job '{killed}' failed" in error
    logs = re.search(r"^ +log: (.*) \(check", error, flags=re.MULTILINE).group(1)
    assert "results/logs/digits/images.log" in logs
    assert f"/{killed}.log" in logs
    assert "Trying to restart job" in error


def test_profile_says_all_that_the_default_one_says():
    default, cluster = (
        yaml.safe_load((ROOT / "profiles" / name / "config.v9+.yaml").read_text())
        for name in ("default", "slurm")
    )
    # On a cluster the queue counts cores.
    del default["cores"]
    assert {key: cluster.get(key) for key in default} == default
