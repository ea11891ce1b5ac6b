"""Neither lost records nor --touch can pass off results of other settings as current."""

import shutil
import subprocess
import sys

FOREST = "results/digits/seed0/hypotheses/random_forest/0.npz"


def change_forest(config):
    config["methods"]["random_forest"]["n_estimators"] = 6


def test_lost_records_alone_are_no_harm(project):
    shutil.rmtree(project.folder / ".snakemake")
    assert project.planned() == []


def test_lost_records_and_a_change_name_the_stale_files_and_the_remedy(project):
    shutil.rmtree(project.folder / ".snakemake")
    project.configure(change_forest)
    done = project.run(check=False)
    assert done.returncode != 0
    assert "Snakemake would take them for current" in done.stderr
    assert FOREST in done.stderr
    assert "discard_stale.py" in done.stderr

    discard = [sys.executable, "workflow_scripts/discard_stale.py"]
    named = subprocess.run(
        discard, cwd=project.folder, capture_output=True, text=True, check=True
    ).stdout.split()
    assert FOREST in named
    assert "results/digits/seed0/scores/random_forest.csv" in named
    assert "results/tables/digits.md" in named
    assert not [name for name in named if "eknn" in name or "latents" in name]
    assert "Fitting random_forest on digits, seed 0: 0, 3" in project.planned()


def test_touch_does_not_make_stale_results_current(project):
    project.configure(change_forest)
    done = project.run("--touch", check=False)
    assert done.returncode != 0
    assert FOREST in done.stderr
    # Without --touch the records are intact, and the method runs again.
    assert "Fitting random_forest on digits, seed 0: 0, 3" in project.planned()


def test_a_truncated_score_file_stops_the_tables(project):
    path = project.folder / "results/digits/seed0/scores/eknn.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]))
    (project.folder / "results/tables/digits.md").unlink()
    done = project.run("results/tables/digits.md", check=False)
    assert done.returncode != 0
    assert "eknn.csv is truncated" in done.stderr + done.stdout


def test_the_remedy_keeps_what_belongs_to_the_same_command_line(project):
    shutil.rmtree(project.folder / ".snakemake")
    (project.folder / "quick.yaml").write_text("methods: {random_forest: {n_estimators: 6}}\n")
    options = ["--configfile", "quick.yaml", "--config", "tasks_per_job=3"]
    done = project.run(*options, check=False)
    assert done.returncode != 0
    remedy = "workflow_scripts/discard_stale.py --configfile quick.yaml --config tasks_per_job=3"
    assert remedy in done.stderr
    named = subprocess.run(
        [sys.executable, *remedy.split()],
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert FOREST in named
    assert not [name for name in named if "eknn" in name or "latents" in name]
    planned = project.planned(*options)
    assert "Fitting random_forest on digits, seed 0: 0, 3, 8" in planned
    assert not [message for message in planned if "eknn" in message]
