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


#: A method whose fits wait for the test, and then do what the file beside them says.
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
        while not Path(f"{self.name}.go").exists():
            time.sleep(0.1)
        if Path(f"{self.name}.raises").exists():
            raise RuntimeError("out of luck")
        eaten = []
        while Path(f"{self.name}.eats").exists() and len(eaten) < 60:
            eaten.append(np.ones(8_000_000))
            time.sleep(0.1)
        self.p_ = y.mean()
        return self

    def sample_hypotheses(self, X):
        rng = np.random.default_rng(self.random_state)
        return rng.beta(1 + self.p_, 1, size=(len(X), 4))
"""
LINE = 1 + METHOD.splitlines().index('            raise RuntimeError("out of luck")')
SEED = "results/digits/seed0"


def with_methods(project, *names):
    """Give a project methods that wait; return one file of hypotheses of each, by its name."""
    (project.folder / "own.py").write_text(METHOD)
    entries = {name: {"file": "own.py", "name": name} for name in names}
    project.configure(lambda config: config["methods"].update(entries))
    return {name: f"{SEED}/hypotheses/{name}/0.npz" for name in names}


def begun(project, name):
    """Return the jobs in which fits of a method have begun, one for each fit."""
    path = project.folder / f"{name}.begun"
    return path.read_text().split() if path.exists() else []


def wait_for(condition, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "what the test waits for did not happen"
        time.sleep(0.2)


def let_go(project, *names):
    for name in names:
        (project.folder / f"{name}.go").touch()


def hypotheses(project, names):
    """Return the bytes of all files of hypotheses of some methods."""
    folder = project.folder / SEED / "hypotheses"
    return {
        path.relative_to(folder): path.read_bytes()
        for name in names
        for path in folder.glob(f"{name}/*.npz")
    }


def undisturbed(project, folder, names):
    """Return what a local run makes of the methods, in a copy of the project."""
    copy = project.copy(folder)
    files = with_methods(copy, *names)
    let_go(copy, *names)
    # As the profile for SLURM has it.
    copy.run(*files.values(), "--config", "tasks_per_job=10")
    return hypotheses(copy, names)


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


@pytest.fixture
def project(run, slurm, tmp_path):
    """Return a copy of the finished project, whose jobs end with the test also if it fails."""
    yield run[0].copy(tmp_path / "work")
    subprocess.run(["scancel", "--user=root"], env=slurm, check=True)


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


def test_job_arrays_are_not_made_and_refused(run, slurm):
    # The plugin takes members of an array that end before the first one for failed.
    project, _, jobs = run
    assert not [number for number in jobs if "_" in number]
    asked = ("--slurm-array-jobs", "all", "--forcerun", "tables")
    done = run_through_slurm(project, slurm, *asked)
    assert done.returncode != 0
    assert "--slurm-array-jobs: leave it out" in done.stdout + done.stderr


def test_no_job_asks_for_a_gpu_unless_told_to(run):
    _, _, jobs = run
    assert {job["gpus"] for job in jobs.values()} == {"N/A"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="its jobs would find a GPU")
def test_with_device_cuda_the_jobs_that_can_use_a_gpu_ask_for_one(project, slurm):
    project.configure(lambda config: config.update(device="cuda"))
    before = queue(slurm)
    done = run_through_slurm(project, slurm, "results/tables/digits.csv", "--retries", "0")
    (job,) = (job for number, job in queue(slurm).items() if number not in before)
    assert job["rule"] == "encoder"
    assert "gpu" in job["gpus"]
    assert job["node"] == "node2"
    assert done.returncode != 0
    assert "device='cuda', but PyTorch finds no GPU here" in done.stdout + done.stderr


@pytest.mark.fault
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


@pytest.mark.fault
def test_jobs_of_a_killed_run_are_not_run_a_second_time_beside_themselves(project, slurm, tmp_path):
    names = ("a", "b")
    expected = undisturbed(project, tmp_path / "local", names)
    files = with_methods(project, *names)
    with running_through_slurm(project, slurm, *files.values()):
        wait_for(lambda: all(begun(project, name) for name in names))
    jobs = sorted({*begun(project, "a"), *begun(project, "b")}, key=int)
    assert len(jobs) == 2

    # With the lock and through SLURM, and without both.
    refused = [run_through_slurm(project, slurm, *files.values())]
    project.run("--unlock")
    local = [sys.executable, "-m", "snakemake", "--cores", "1", files["a"]]
    refused.append(
        subprocess.run(local, cwd=project.folder, env=slurm, capture_output=True, text=True)
    )
    for done in refused:
        said = done.stdout + done.stderr
        assert done.returncode != 0
        assert f"SLURM {', '.join(jobs)}" in said
        assert f"\n  scancel {' '.join(jobs)}\n" in said
        assert "snakemake --unlock" in said
        for noise in ("Traceback", "WorkflowError", "common.smk"):
            assert noise not in said

    let_go(project, *names)
    wait_for(lambda: not {*jobs} & {n for n, job in queue(slurm).items() if runs(job)})
    again = run_through_slurm(project, slurm, *files.values())
    assert again.returncode == 0, again.stdout + again.stderr
    assert hypotheses(project, names) == expected
    for name in names:
        # Of three tasks.
        assert len(begun(project, name)) == 3


def runs(job):
    return job["state"] in ("PENDING", "RUNNING", "COMPLETING")


@pytest.mark.fault
def test_jobs_that_slurm_ends_are_told_in_a_line_and_made_by_the_next_run(project, slurm, tmp_path):
    waiting = ("cancelled", "late", "hungry", "raising")
    names = (*waiting, "fine")
    expected = undisturbed(project, tmp_path / "local", names)
    files = with_methods(project, *names)
    for fault in ("hungry.eats", "raising.raises"):
        (project.folder / fault).touch()
    rule = "hypotheses_digits_0"
    options = ("--retries", "0", "--set-resources", f"{rule}:mem_mb=1500")
    # Four cores are there: one of the five begins when another has ended.
    with running_through_slurm(project, slurm, *files.values(), *options) as process:
        let_go(project, "fine")
        wait_for(lambda: all(begun(project, name) for name in waiting))
        job = {name: begun(project, name)[0] for name in waiting}
        limit = ["scontrol", "update", f"JobId={job['late']}", "TimeLimit=1"]
        subprocess.run(limit, env=slurm, check=True)
        subprocess.run(["scancel", job["cancelled"]], env=slurm, check=True)
        let_go(project, "hungry", "raising")
        assert process.wait(timeout=600) != 0
    job["fine"] = begun(project, "fine")[0]
    said = (project.folder / "screen.txt").read_text()
    states = queue(slurm)
    assert states[job["fine"]]["state"] == "COMPLETED"
    assert states[job["late"]]["state"] == "TIMEOUT"
    for name, reason in {
        "cancelled": f"SLURM ended job {job['cancelled']}: it was cancelled, as by scancel",
        "late": f"SLURM ended job {job['late']}: it took longer than its 240 minutes. "
        f"More: --set-resources={rule}:runtime=480",
        "hungry": f"SLURM ended job {job['hungry']}: it used more memory than its 1500 MB. "
        f"More: --set-resources={rule}:mem_mb=3000",
        "raising": f"own.py, line {LINE}: RuntimeError: out of luck",
    }.items():
        head = f"FAILED: Fitting {name} on digits, seed 0: 0, 3, 8"
        log = f"results/logs/digits/seed0/hypotheses/{name}.0.log"
        assert f"{head}\n  {reason}\n  log: {log}\n" in said
    for path in re.findall(r"^  log: (.*)$", said, flags=re.MULTILINE):
        assert (project.folder / path).is_file()
    for noise in ("Traceback", "account", "Array job", "Submitted", "run ID"):
        assert noise not in said

    let_go(project, *names)
    for fault in ("hungry.eats", "raising.raises"):
        (project.folder / fault).unlink()
    again = run_through_slurm(project, slurm, *files.values())
    assert again.returncode == 0, again.stdout + again.stderr
    assert hypotheses(project, names) == expected
    assert {*begun(project, "fine")} == {job["fine"]}


@pytest.mark.fault
def test_daemons_that_are_killed_and_a_drained_node_cost_nothing(project, cluster, tmp_path):
    slurm = cluster.environment
    names = ("a", "b", "c")
    expected = undisturbed(project, tmp_path / "local", names)
    files = with_methods(project, *names)
    said = project.folder / "screen.txt"
    drain = ["scontrol", "update", "NodeName=node1"]
    with running_through_slurm(project, slurm, *files.values()) as process:
        wait_for(lambda: all(begun(project, name) for name in names))
        cluster.restart("node1")
        cluster.restart("node2")
        cluster.restart("slurmctld")
        subprocess.run([*drain, "State=drain", "Reason=test"], env=slurm, check=True)
        try:
            let_go(project, *names)
            assert process.wait(timeout=600) == 0, said.read_text()
        finally:
            subprocess.run([*drain, "State=resume"], env=slurm, check=True)
    assert "FAILED" not in said.read_text()
    assert hypotheses(project, names) == expected
    for name in names:
        assert len(begun(project, name)) == 3
