"""Whatever happens to records, times and files, no stale result is taken for current."""

import os
import shutil
import subprocess

import numpy as np
import pytest

SEED = "results/digits/seed0"
FOREST = f"{SEED}/hypotheses/random_forest/0.npz"
FITS = [
    "Fitting random_forest on digits, seed 0: 0, 3",
    "Fitting random_forest on digits, seed 0: 8",
]
RERUN = [
    *FITS,
    "Running eece_vs_noise with random_forest (toy)",
    "Scoring random_forest on digits, seed 0",
]


def change_forest(config):
    config["methods"]["random_forest"]["n_estimators"] = 6


def steps(messages):
    """Leave out what only aggregates."""
    kinds = ("Reading", "Training", "Encoding", "Finding", "Fitting", "Scoring", "Running")
    return [message for message in messages if message.startswith(kinds)]


def records(project):
    """The files in which Snakemake has what it knows of results."""
    folder = project.folder / ".snakemake" / "metadata"
    found = [path for path in folder.rglob("*") if path.is_file()]
    assert found
    return found


@pytest.mark.fault
def test_lost_records_alone_are_no_harm(project):
    shutil.rmtree(project.folder / ".snakemake")
    assert project.planned() == []


@pytest.mark.fault
def test_lost_records_and_a_checkout_rerun_nothing(project):
    shutil.rmtree(project.folder / ".snakemake")
    for path in sorted(project.folder.rglob("*.py")):
        os.utime(path)
    assert project.planned() == []


@pytest.mark.fault
def test_lost_records_and_a_copy_rerun_nothing(project, tmp_path):
    shutil.rmtree(project.folder / ".snakemake")
    # New times, in the order of the copy.
    subprocess.run(["cp", "-r", str(project.folder), str(tmp_path / "copy")], check=True)
    copied = type(project)(tmp_path / "copy")
    os.utime(copied.folder / SEED / "latents.npz")
    assert copied.planned() == []


@pytest.mark.fault
def test_lost_records_and_a_change_rerun_what_depends_on_it(project):
    shutil.rmtree(project.folder / ".snakemake")
    project.configure(change_forest)
    assert steps(project.planned()) == RERUN


@pytest.mark.fault
@pytest.mark.parametrize("damage", ["truncated", "empty", "zeroed"])
def test_damaged_records_and_a_change_rerun_what_depends_on_it(project, damage):
    for path in records(project):
        content = path.read_bytes()
        half = content[: len(content) // 2]
        path.write_bytes({"truncated": half, "empty": b"", "zeroed": bytes(len(content))}[damage])
    project.configure(change_forest)
    assert steps(project.planned()) == RERUN


@pytest.mark.fault
@pytest.mark.parametrize("trigger", ["mtime", "input", "code", "params", "software-env"])
def test_no_choice_of_triggers_keeps_old_results(project, trigger):
    project.configure(change_forest)
    assert steps(project.planned("--rerun-triggers", trigger)) == RERUN


@pytest.mark.fault
def test_results_moved_aside_and_back_are_what_they_were(project):
    results = project.folder / "results"
    tables = project.tables()
    results.rename(project.folder / "a")
    shutil.copytree(project.folder / "a", results)
    project.configure(change_forest)
    project.run("results/tables/digits.md")
    changed = project.tables()
    assert changed["digits.csv"] != tables["digits.csv"]
    # Now Snakemake's records are those of the changed configuration.
    results.rename(project.folder / "b")
    (project.folder / "a").rename(results)
    assert steps(project.planned("digits")) == [m for m in RERUN if "Running" not in m]
    project.run("results/tables/digits.md")
    assert project.tables()["digits.csv"] == changed["digits.csv"]


@pytest.mark.fault
def test_touch_does_not_make_stale_results_current(project):
    project.configure(change_forest)
    done = project.run("--touch", check=False)
    assert done.returncode != 0
    assert FOREST in done.stderr
    assert "--touch would not change that" in done.stderr
    assert steps(project.planned()) == RERUN


@pytest.mark.fault
def test_a_report_of_stale_results_says_so(project):
    project.configure(change_forest)
    done = project.run("digits", "--report", "report.html", check=False)
    assert "results are not those that the configuration and the sources ask for" in done.stderr


@pytest.mark.fault
def test_a_run_until_a_stage_leaves_the_rest_to_the_next(project):
    project.configure(change_forest)
    project.run("digits", "--until", "hypotheses_digits_0", "hypotheses_digits_1")
    with np.load(project.folder / FOREST) as file:
        assert file["hypotheses"].shape[1] == 6
    assert "Scoring random_forest on digits, seed 0" in project.planned("digits")


@pytest.mark.fault
def test_one_number_edited_in_the_scores_does_not_reach_the_tables(project):
    path = project.folder / SEED / "scores" / "eknn.csv"
    stat, text = path.stat(), path.read_text()
    value = next(line for line in text.splitlines() if ",eece," in line).split(",")[6]
    path.write_text(text.replace(value, value[:-1] + ("1" if value[-1] != "1" else "2"), 1))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    done = project.run("results/tables/digits.md", check=False)
    assert done.returncode != 0
    assert f"{SEED}/scores/eknn.csv" in done.stderr
    assert "Delete it" in done.stderr
    path.unlink()
    project.run("results/tables/digits.md", str(path.relative_to(project.folder)))
    assert path.read_text() == text


@pytest.mark.fault
def test_one_float_edited_in_a_whole_archive_is_found(project):
    path = project.folder / FOREST
    with np.load(path) as file:
        arrays = dict(file)
    arrays["hypotheses"][0, 0] = 1 - arrays["hypotheses"][0, 0]
    np.savez(path, **arrays)
    done = project.run("results/tables/digits.md", check=False)
    assert done.returncode != 0
    assert FOREST in done.stderr


@pytest.mark.fault
@pytest.mark.parametrize("suffix", ["csv", "md", "tex"])
def test_an_edited_table_is_found(project, suffix):
    path = project.folder / "results" / "tables" / f"digits_summary.{suffix}"
    path.write_text(path.read_text() + " ")
    done = project.run(check=False)
    assert done.returncode != 0
    assert f"results/tables/digits_summary.{suffix}" in done.stderr


@pytest.mark.fault
def test_a_truncated_score_file_stops_the_tables(project):
    path = project.folder / SEED / "scores/eknn.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]))
    (project.folder / "results/tables/digits.md").unlink()
    done = project.run("results/tables/digits.md", check=False)
    assert done.returncode != 0
    assert "eknn.csv cannot be read as what was written: truncated" in done.stderr + done.stdout


@pytest.mark.fault
def test_another_configuration_on_the_command_line_reruns_what_it_changes(project):
    (project.folder / "quick.yaml").write_text("methods: {random_forest: {n_estimators: 6}}\n")
    planned = project.planned("--configfile", "quick.yaml", "--config", "tasks_per_job=3")
    assert "Fitting random_forest on digits, seed 0: 0, 3, 8" in planned
    assert not [message for message in planned if "eknn" in message]


@pytest.mark.fault
def test_receipts_that_are_lost_have_their_results_made_again(project):
    shutil.rmtree(project.folder / "results" / "receipts" / "digits" / "seed0" / "scores")
    (project.folder / "results" / "ledger.json").unlink()
    planned = project.planned("results/tables/digits.md")
    assert [m for m in steps(planned) if not m.startswith("Scoring")] == []
    assert len([m for m in planned if m.startswith("Scoring")]) == 4


@pytest.mark.fault
def test_a_dry_run_changes_nothing(project):
    def seen():
        return {
            path.relative_to(project.folder): path.stat().st_mtime_ns
            for path in (project.folder / "results").rglob("*")
            if path.name != "ledger.json" and path.is_file()
        }

    before = seen()
    project.configure(change_forest)
    assert project.planned()
    assert seen() == before
