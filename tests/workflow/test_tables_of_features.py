"""A table (CSV) through the whole workflow: to a table of methods, and what changing it reruns."""

import os

import numpy as np
import pandas as pd
import pytest

TARGETS = ("results/tables/customers_summary.md", "results/config.resolved.yaml")


def customers(seed=0, n=240):
    """Two classes, a column of numbers with missing values, and one of categories."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n).astype(float)
    contract = rng.choice(["monthly", "yearly"], n)
    p = 1 / (1 + np.exp(-(age - 50) / 10 - np.where(contract == "yearly", 1, -1)))
    bought = np.where(rng.random(n) < p, "yes", "no")
    age[::9] = np.nan
    return pd.DataFrame({"age": age, "contract": contract, "bought": bought})


@pytest.fixture(scope="module")
def with_table(new_project):
    """A project whose data set is a CSV, with two fast methods, that has run."""
    project = new_project("table")
    (project.folder / "data").mkdir()
    customers().to_csv(project.folder / "data" / "customers.csv", index=False)

    def change(config):
        config["benchmark"] = ["customers"]
        block = {"source": "table", "path": "customers.csv", "label": "bought"}
        block |= {"missing": "median", "scores": {"n_bins": 8, "corrected_n_bins": 4}}
        config["datasets"] = {"customers": block}
        config["methods"].pop("mc_dropout")

    project.configure(change)
    project.run(*TARGETS)
    return project


def test_a_table_becomes_a_table_of_methods(with_table):
    results = with_table.folder / "results"
    with np.load(results / "customers/seed0/latents.npz") as latents:
        assert latents["x_train"].shape == latents["x_test"].shape == (120, 3)
        np.testing.assert_allclose(latents["x_train"].mean(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(latents["x_train"].std(axis=0), 1, atol=1e-6)
        assert latents["class_names"].tolist() == ["no", "yes"]
    # One task, not two that mirror each other, in fits, scores and tables.
    for method in ("random_forest", "eknn", "base_rate"):
        files = (results / "customers/seed0/hypotheses" / method).glob("*.npz")
        assert [path.stem for path in files] == ["yes"]
        scores = pd.read_csv(results / f"customers/seed0/scores/{method}.csv")
        assert set(scores["task"].dropna()) == {"yes"}
    summary = (results / "tables/customers_summary.md").read_text()
    assert "Random Forest" in summary and "EK-NN" in summary
    assert "nan" not in summary.lower()
    log = (results / "logs/customers/images.log").read_text()
    assert "missing values filled in (median): age (27)" in log
    assert "120 training and 120 test rows of 3 features, 2 classes" in log
    resolved = (results / "config.resolved.yaml").read_text()
    assert "encoder: none" in resolved and "scaling: standard" in resolved


def test_changing_the_table_reruns_and_touching_does_not(with_table, tmp_path):
    project = with_table.copy(tmp_path / "work")
    path = project.folder / "data" / "customers.csv"
    os.utime(path)
    assert project.planned(*TARGETS) == []
    customers(seed=1).to_csv(path, index=False)
    planned = project.planned(*TARGETS)
    assert "Reading the inputs of customers" in planned
    assert sum(message.startswith("Fitting") for message in planned) == 3
    assert sum(message.startswith("Scoring") for message in planned) == 3
    project.run(*TARGETS)
    tables = [name for name in project.tables() if name.startswith("customers_summary")]
    assert any(project.tables()[name] != with_table.tables()[name] for name in tables)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"label": "sold"}, "datasets.customers: data/customers.csv has no column 'sold'"),
        ({"missing": "refuse"}, "missing values in age (27)"),
        ({"tasks": ["no", "yes"]}, "datasets.customers.tasks: with two classes"),
        (
            {"latents": {"encoder": "autoencoder"}},
            "datasets.customers.latents.encoder: autoencoder",
        ),
        ({"path": "none.csv"}, "datasets.customers: no such file: data/none.csv"),
    ],
)
def test_faults_of_a_table_are_named(with_table, tmp_path, change, words):
    project = with_table.copy(tmp_path / "work")
    project.configure(lambda c: c["datasets"]["customers"].update(change))
    done = project.run(*TARGETS, check=False)
    assert done.returncode != 0
    assert words in done.stdout + done.stderr


def test_several_labels_of_the_test_rows_are_scored_with_one_task(with_table, tmp_path):
    project = with_table.copy(tmp_path / "work")
    with np.load(project.folder / "results/customers/labels.npz") as labels:
        y_test = labels["y_test"]
    positive = np.random.default_rng(0).binomial(5, np.where(y_test == 1, 0.8, 0.2))
    counts = np.stack([5 - positive, positive], axis=1)
    np.save(project.folder / "data" / "counts.npy", counts)
    project.configure(lambda c: c["datasets"]["customers"].update(label_counts="counts.npy"))
    target = "results/customers/seed0/scores/random_forest.csv"
    assert not [m for m in project.planned(target) if m.startswith("Fitting")]
    project.run(target)
    scores = pd.read_csv(project.folder / target).set_index(["scope", "metric"])["value"]
    assert scores["task", "labels_per_input"] == 5
    assert scores["all_tasks", "reported_share_low"] < scores["all_tasks", "reported_share"]
