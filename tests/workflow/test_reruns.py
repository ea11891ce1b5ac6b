"""What reruns, and that no stale, damaged or foreign result is taken for current."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import yaml
from user_method import text

SEED = "results/digits/seed0"
FOREST = f"{SEED}/hypotheses/random_forest"
OF_FOREST = [
    "Fitting random_forest on digits, seed 0",
    "Running eece_vs_noise with random_forest",
    "Scoring random_forest on digits, seed 0",
]
SCORING = [
    f"Scoring {method} on digits, seed 0"
    for method in ("base_rate", "eknn", "mc_dropout", "random_forest")
]


#: Fits the first task; while there is a folder `fail`, no other.
FICKLE = """\
from pathlib import Path
if Path("fail").exists():
    if list(Path("fail").iterdir()):
        raise ValueError("my solver diverged")
    Path("fail", "once").touch()"""


def change_forest(config, n_estimators=6):
    config["methods"]["random_forest"]["n_estimators"] = n_estimators


def verified(project):
    """What `make verify` prints and returns."""
    done = subprocess.run(
        [sys.executable, "-m", "epistemic_calibration.workflow.verify"],
        cwd=project.folder,
        env={**os.environ, "PYTHONPATH": "workflow_scripts"},
        capture_output=True,
        text=True,
    )
    return done.stdout, done.returncode


def test_a_setting_reruns_its_method_and_set_back_nothing(project):
    assert project.planned() == []
    forced = project.steps(project.planned("digits", "--forcerun", FOREST))
    assert forced == [m for m in OF_FOREST if "Running" not in m]
    project.configure(change_forest)
    planned = project.planned()
    assert project.steps(planned) == OF_FOREST
    assert "Making the tables of digits" in planned
    project.configure(lambda config: change_forest(config, 5))
    assert project.planned() == []


def test_code_reruns_what_imports_it_and_comments_nothing(project):
    package = project.folder / "workflow_scripts" / "epistemic_calibration"
    for path in package.rglob("*.py"):
        path.write_text(path.read_text() + "\n# A comment.\n")
    assert project.planned() == []
    # What runs the jobs is no part of their results.
    with (package / "workflow" / "job_log.py").open("a") as file:
        file.write("\nEDITED = True\n")
    assert project.planned() == []
    with (package / "methods" / "random_forest.py").open("a") as file:
        file.write("\nEDITED = True\n")
    assert project.steps(project.planned()) == OF_FOREST


def test_another_file_adds_methods_and_reruns_no_others(project):
    added = project.folder / "added.yaml"
    added.write_text("""\
methods: {forest: {method: random_forest}, mc_dropout: {n_hypotheses: 11}}
controls: {label_shuffled_ensemble: {n_members: 2}}
""")
    options = ("--configfile", "added.yaml")
    names = ("forest", "label_shuffled_ensemble", "mc_dropout")
    assert project.steps(project.planned("digits", *options)) == sorted(
        f"{what} {name} on digits, seed 0" for what in ("Fitting", "Scoring") for name in names
    )
    project.run("results/config.resolved.yaml", *options)
    resolved = yaml.safe_load((project.folder / "results/config.resolved.yaml").read_text())
    assert set(resolved["methods"]) == {"random_forest", "eknn", "mc_dropout", "forest"}
    assert resolved["methods"]["mc_dropout"]["parameters"]["n_hypotheses"] == 11
    assert resolved["methods"]["mc_dropout"]["parameters"]["n_epochs"] == 2
    assert set(resolved["controls"]) == {"base_rate", "label_shuffled_ensemble"}


def test_copies_and_lost_records_rerun_nothing_that_is_current(project, tmp_path):
    shutil.rmtree(project.folder / ".snakemake")
    assert project.planned() == []
    subprocess.run(["cp", "-r", str(project.folder), str(tmp_path / "copy")], check=True)
    copied = type(project)(tmp_path / "copy")
    # New times, in the order of the copy: what is older than its inputs runs again, or is touched.
    copied.run("--touch")
    assert copied.planned() == []
    # That cannot hide a change.
    copied.configure(lambda config: config["datasets"]["digits"]["scores"].update(n_bins=11))
    copied.run("--touch")
    assert copied.steps(copied.planned()) == SCORING
    # What has no receipt is made again.
    shutil.rmtree(project.folder / "results" / "receipts" / "scores")
    assert project.steps(project.planned("results/tables/digits.md")) == SCORING


def test_results_moved_aside_and_back_are_not_taken_for_others(project):
    results, scores = project.folder / "results", f"{SEED}/scores/random_forest.csv"
    shutil.copytree(results, project.folder / "a")
    project.configure(change_forest)
    project.run(scores)
    # Now Snakemake's records are those of the changed configuration.
    results.rename(project.folder / "b")
    (project.folder / "a").rename(results)
    assert project.steps(project.planned(scores)) == [m for m in OF_FOREST if "Running" not in m]
    project.configure(lambda config: change_forest(config, 5))
    assert project.planned(scores) == []


def test_a_task_that_fails_leaves_the_finished_ones_to_the_next_run(project):
    (project.folder / "mine.py").write_text(text(fit=FICKLE))
    project.configure(lambda config: config["methods"].update(mine={"file": "mine.py"}))
    (project.folder / "fail").mkdir()
    folder = f"{SEED}/hypotheses/mine"
    assert "my solver diverged" in project.failed(f"{SEED}/scores/mine.csv")
    assert not (project.folder / folder).exists()
    (kept,) = (project.folder / "results" / "work").iterdir()
    assert [path.name for path in kept.iterdir()] == ["0.npz"]
    shutil.rmtree(project.folder / "fail")
    project.run(f"{SEED}/scores/mine.csv")
    log = (project.folder / "results/logs/digits/seed0/hypotheses/mine.log").read_text()
    assert "finished before: 0" in log
    assert sorted(path.name for path in (project.folder / folder).glob("*.npz")) == [
        "0.npz",
        "3.npz",
        "8.npz",
    ]
    assert not list((project.folder / "results" / "work").iterdir())
    # The same as of a job that was not disturbed.
    made = {path.name: path.read_bytes() for path in (project.folder / folder).glob("*.npz")}
    shutil.rmtree(project.folder / folder)
    project.run(f"{SEED}/scores/mine.csv")
    assert made == {p.name: p.read_bytes() for p in (project.folder / folder).glob("*.npz")}


def test_damaged_and_foreign_inputs_are_all_named_and_made_again(project):
    digits = project.folder / FOREST
    before = {path.name: path.read_bytes() for path in digits.glob("*.npz")}
    with (digits / "0.npz").open("ab") as file:
        file.write(b"x")
    other = project.folder / SEED / "hypotheses/eknn/3.npz"
    shutil.copy2(other, digits / "3.npz")
    said = project.failed(f"{SEED}/scores/random_forest.csv", "--forcerun", "scores")
    for name in ("0.npz", "3.npz"):
        assert f"{FOREST}/{name} is not what its job has written" in said
    assert "delete it and run again" in said
    shutil.rmtree(digits)
    project.run(f"{SEED}/scores/random_forest.csv")
    assert before == {path.name: path.read_bytes() for path in digits.glob("*.npz")}


def test_a_number_edited_in_the_scores_does_not_reach_the_tables(project):
    path = project.folder / SEED / "scores" / "eknn.csv"
    stat, text = path.stat(), path.read_text()
    value = next(line for line in text.splitlines() if ",eece," in line).split(",")[6]
    path.write_text(text.replace(value, value[:-1] + ("1" if value[-1] != "1" else "2"), 1))
    # As if it had not been touched.
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    (project.folder / "results/tables/digits.md").unlink()
    said = project.failed("results/tables/digits.md")
    assert f"{SEED}/scores/eknn.csv is not what its job has written" in said


def test_verify_names_what_no_job_reads(project):
    said, code = verified(project)
    assert code == 0, said
    rng = np.random.default_rng(0)
    receipts = project.folder / "results" / "receipts"
    made = sorted(
        name
        for path in receipts.rglob("*.json")
        for name in json.loads(path.read_text())["outputs"]
    )
    flipped = sorted(map(str, rng.choice(made, 20, replace=False)))
    for name in flipped:
        path = project.folder / name
        content, bit = bytearray(path.read_bytes()), int(rng.integers(8))
        content[int(rng.integers(len(content)))] ^= 1 << bit
        stat = path.stat()
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    said, code = verified(project)
    assert code == 1
    assert sorted(line.partition(":")[0] for line in said.splitlines()[:-1]) == flipped


def test_settings_of_snakemake_that_would_hide_a_change_are_refused(project):
    for options, needed in (
        (("--rerun-triggers", "input"), "rerun-triggers: [mtime]"),
        (("--max-checksum-file-size", "1000000"), "max-checksum-file-size: 0"),
    ):
        said = project.failed("--dry-run", *options)
        assert f"this workflow needs {needed}: run it with profiles/" in said
