"""What a change reruns, and what it leaves alone."""

import os
import re
import shutil
import subprocess

TOY = "Running eece_vs_noise with random_forest (toy)"
FOREST = [
    "Fitting random_forest on digits, seed 0: 0, 3",
    "Fitting random_forest on digits, seed 0: 8",
]


ANOTHER_SCORE = '''\
"""A family of scores with one member."""

from epistemic_calibration.scoring.base import Metric, Row

METRICS = (Metric("positives", "Share of positives", 3, None, (0, 1), {"summary": 99}),)


def rows(inputs):
    yield Row("positives", float(inputs.sample.y.mean()))
'''


def is_aggregation(message):
    return not message.startswith(
        ("Reading", "Training", "Encoding", "Finding", "Fitting", "Scoring", "Running")
    )


def steps(messages):
    """Leave out what only aggregates: it must run whenever a score does."""
    return [message for message in messages if not is_aggregation(message)]


def edit(path, code="\nEDITED = True\n"):
    path.write_text(path.read_text() + code)


def test_nothing_to_do_after_a_run(project):
    assert project.planned() == []


def test_a_new_method_runs_its_own_jobs_and_the_aggregation(project):
    project.configure(lambda c: c["methods"].update(forest={"method": "random_forest"}))
    planned = project.planned()
    assert steps(planned) == [
        "Fitting forest on digits, seed 0: 0, 3",
        "Fitting forest on digits, seed 0: 8",
        "Scoring forest on digits, seed 0",
    ]
    assert "Making the tables of digits" in planned


def test_a_parameter_reruns_its_method_alone(project):
    project.configure(lambda c: c["methods"]["random_forest"].update(n_estimators=6))
    assert steps(project.planned()) == [*FOREST, TOY, "Scoring random_forest on digits, seed 0"]


def test_swapped_parameters_rerun(project):
    def swap(config):
        forest = config["methods"]["random_forest"]
        forest["n_estimators"], forest["min_samples_leaf"] = 7, 5

    project.configure(swap)
    project.run()

    def swap_back(config):
        forest = config["methods"]["random_forest"]
        forest["n_estimators"], forest["min_samples_leaf"] = 5, 7

    project.configure(swap_back)
    assert steps(project.planned()) == [*FOREST, TOY, "Scoring random_forest on digits, seed 0"]


def test_editing_a_method_reruns_it_alone(project):
    package = project.folder / "workflow_scripts" / "epistemic_calibration"
    edit(package / "methods" / "random_forest.py")
    assert steps(project.planned()) == [*FOREST, TOY, "Scoring random_forest on digits, seed 0"]


def test_editing_the_networks_reruns_the_methods_that_use_them(project):
    package = project.folder / "workflow_scripts" / "epistemic_calibration"
    edit(package / "methods" / "_networks.py")
    assert steps(project.planned()) == [
        "Fitting mc_dropout on digits, seed 0: 0, 3",
        "Fitting mc_dropout on digits, seed 0: 8",
        "Scoring mc_dropout on digits, seed 0",
    ]


def test_editing_a_metric_reruns_scoring_and_no_fit(project):
    package = project.folder / "workflow_scripts" / "epistemic_calibration"
    edit(package / "metrics" / "eece.py")
    # The toy experiments fit and score in one step.
    assert steps(project.planned()) == [
        TOY,
        *(
            f"Scoring {method} on digits, seed 0"
            for method in ("base_rate", "eknn", "mc_dropout", "random_forest")
        ),
    ]


def test_editing_the_figures_reruns_no_score(project):
    package = project.folder / "workflow_scripts" / "epistemic_calibration"
    edit(package / "report" / "figures" / "_axes.py")
    assert project.planned() == ["Drawing the figures of digits"]


def test_editing_the_page_remakes_the_pages_alone(project):
    package = project.folder / "workflow_scripts" / "epistemic_calibration"
    edit(package / "report" / "page" / "_charts.py")
    assert project.planned() == [
        "Making the page results/digits/report.html",
        "Making the page results/report.html",
    ]
    edit(package / "report" / "page" / "thumbnails.py")
    assert "Looking where the methods err on digits, seed 0" in project.planned()
    assert steps(project.planned()) == []


def test_comments_and_docstrings_rerun_nothing(project):
    scripts = project.folder / "workflow_scripts"
    for path in sorted(scripts.rglob("*.py")):
        text = path.read_text()
        docstring = re.compile(r'^"""(.*?)"""\n', re.DOTALL)
        assert docstring.match(text), path
        path.write_text(docstring.sub('"""Says something else."""\n', text) + "\n# A comment.\n")
    assert project.planned() == []


def test_a_new_table_makes_tables_only(project):
    tables = project.folder / "workflow_scripts" / "epistemic_calibration" / "report" / "tables"
    text = (tables / "by_eece.py").read_text()
    (tables / "another.py").write_text(text.replace('SUFFIX = "_by_eece"', 'SUFFIX = "_another"'))
    shutil.copy(project.folder / "report/by_eece.rst", project.folder / "report/another.rst")
    assert project.planned("digits") == [
        "Making the page results/digits/report.html",
        "Making the tables of digits",
    ]
    project.run("digits")
    made = (project.folder / "results/tables/digits_another.md").read_text()
    assert made == (project.folder / "results/tables/digits_by_eece.md").read_text()


def test_a_new_score_fits_nothing(project):
    family = (
        project.folder / "workflow_scripts" / "epistemic_calibration" / "scoring" / "another.py"
    )
    family.write_text(ANOTHER_SCORE)
    planned = project.planned("digits")
    assert not [m for m in planned if m.startswith(("Fitting", "Training", "Encoding"))]
    project.run("digits")
    assert "Share of positives" in (project.folder / "results/tables/digits_summary.md").read_text()


def test_the_number_of_bins_reruns_scoring_and_no_fit(project):
    project.configure(lambda c: c["datasets"]["digits"]["scores"].update(n_bins=11))
    assert steps(project.planned()) == [
        f"Scoring {method} on digits, seed 0"
        for method in ("base_rate", "eknn", "mc_dropout", "random_forest")
    ]


def test_removing_a_method_only_aggregates(project):
    project.configure(lambda c: c["methods"].pop("eknn"))
    planned = project.planned()
    assert "Making the tables of digits" in planned
    assert steps(planned) == []


def test_a_new_seed_runs_its_own_jobs(project):
    on_command_line = steps(project.planned("--config", "seeds=[0, 1]"))
    project.configure(lambda c: c.update(seeds=[0, 1]))
    planned = steps(project.planned())
    assert planned
    assert on_command_line == planned
    assert all("seed 1" in message for message in planned)


def test_a_new_data_set_runs_its_own_jobs(project):
    def add(config):
        config["datasets"]["more"] = {**config["datasets"]["digits"], "split_seed": 1}
        config["benchmark"].append("more")

    project.configure(add)
    planned = steps(project.planned())
    assert planned
    assert all(" more" in message for message in planned)


def test_the_data_set_of_the_demo_need_not_be_configured(project):
    def rename(config):
        config["datasets"]["numbers"] = config["datasets"].pop("digits")
        config["benchmark"] = ["numbers"]

    project.configure(rename)
    assert "Reading the inputs of numbers" in project.planned()


def test_tasks_per_job_reruns_nothing(project):
    for size in (1, 3, 10):
        project.configure(lambda c, size=size: c.update(tasks_per_job=size))
        assert project.planned() == [
            "Making the page results/digits/report.html",
            "Making the page results/report.html",
            "Writing the resolved configuration",
        ]


def test_the_order_of_keys_reruns_nothing(project):
    def reverse(config):
        for name, entry in config["methods"].items():
            config["methods"][name] = dict(reversed(entry.items()))
        for key in ("datasets", "scores", "autoencoder"):
            config[key] = dict(reversed(config[key].items()))

    project.configure(reverse)
    assert project.planned() == []


def test_touching_everything_reruns_nothing(project):
    for path in sorted(project.folder.rglob("*")):
        if path.is_file() and ".snakemake" not in path.parts:
            os.utime(path)
    assert project.planned() == []


def test_a_copied_folder_reruns_nothing(project, tmp_path):
    # `cp -r` gives every file a new modification time, in the order of the copy.
    subprocess.run(["cp", "-r", str(project.folder), str(tmp_path / "copy")], check=True)
    copied = type(project)(tmp_path / "copy")
    shutil.rmtree(project.folder)
    assert copied.planned() == []


def test_forcing_one_method_reruns_it_and_the_aggregation(project):
    folder = project.folder / "results/digits/seed0/hypotheses/random_forest"
    files = [str(path.relative_to(project.folder)) for path in sorted(folder.glob("*.npz"))]
    assert steps(project.planned("--forcerun", *files)) == [
        *FOREST,
        "Scoring random_forest on digits, seed 0",
    ]


def test_results_of_another_copy_are_used_where_they_fit(project, new_project):
    other = new_project("other")
    other.configure(lambda c: c["methods"]["mc_dropout"].update(n_epochs=3))
    shutil.copytree(project.folder / "results", other.folder / "results")
    for path in (other.folder / "workflow_scripts").rglob("*.py"):
        # As of a fresh checkout.
        os.utime(path)
    assert steps(other.planned()) == [
        "Fitting mc_dropout on digits, seed 0: 0, 3",
        "Fitting mc_dropout on digits, seed 0: 8",
        "Scoring mc_dropout on digits, seed 0",
    ]
