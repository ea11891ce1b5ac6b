"""A table (CSV) through the workflow, and labels of several people beside it and instead of it."""

import os

import numpy as np
import pandas as pd
import pytest

LABELS = "results/customers/labels.npz"
BARS = "results/bars/seed0/scores/random_forest.csv"
TARGETS = ("results/tables/customers_summary.md", "results/config.resolved.yaml", BARS)


def customers(seed=0, n=240):
    """Two classes, a column of numbers with missing values, and one of categories."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n).astype(float)
    contract = rng.choice(["monthly", "yearly"], n)
    p = 1 / (1 + np.exp(-(age - 50) / 10 - np.where(contract == "yearly", 1, -1)))
    bought = np.where(rng.random(n) < p, "yes", "no")
    age[::9] = np.nan
    return pd.DataFrame({"age": age, "contract": contract, "bought": bought})


def bars():
    """Images of three classes, and what three people take each training image for."""
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 3
    images = rng.integers(0, 50, (240, 8, 8)).astype(np.uint8)
    images[np.arange(240), labels, :] += 200
    people = np.repeat(labels[:, None], 3, axis=1)
    wrong = rng.random(people.shape) < 0.2
    people[wrong] = rng.integers(0, 3, wrong.sum())
    arrays = {"x_train": images, "y_train": labels, "x_test": images[:6], "y_test": labels[:6]}
    return arrays, people


@pytest.fixture(scope="module")
def with_table(new_project):
    """A project with two data sets of its own and two fast methods, that has run."""
    project = new_project("table")
    data = project.folder / "data"
    data.mkdir()
    customers().to_csv(data / "customers.csv", index=False)
    arrays, people = bars()
    np.savez(data / "bars.npz", **arrays)
    np.save(data / "people.npy", people)
    few_bins = {"scores": {"n_bins": 8, "corrected_n_bins": 4}}
    table = {"source": "table", "path": "customers.csv", "label": "bought", "missing": "median"}
    images = {"source": "npz", "path": "bars.npz", "annotations": "people.npy"}
    images |= {"latents": {"encoder": "none"}}

    def change(config):
        config["benchmark"] = ["customers"]
        config["datasets"] = {"customers": table | few_bins, "bars": images | few_bins}
        config["methods"].pop("mc_dropout")

    project.configure(change)
    project.run(LABELS)
    with np.load(project.folder / LABELS) as labels:
        p = np.where(labels["y_test"] == 1, 0.8, 0.2)
    positive = np.random.default_rng(0).binomial(5, p)
    np.save(data / "counts.npy", np.stack([5 - positive, positive], axis=1))
    project.configure(lambda c: c["datasets"]["customers"].update(label_counts="counts.npy"))
    project.run(*TARGETS)
    return project


def scores_of(project, path):
    return pd.read_csv(project.folder / path).set_index(["scope", "metric"])["value"]


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
    assert "120 training and 120 test inputs of shape (3,), 2 classes" in log
    resolved = (results / "config.resolved.yaml").read_text()
    assert "encoder: none" in resolved and "scaling: standard" in resolved


def test_labels_of_several_people_are_scored(with_table):
    scores = scores_of(with_table, "results/customers/seed0/scores/random_forest.csv")
    assert scores["task", "labels_per_input"] == 5
    assert scores["all_tasks", "reported_share_low"] < scores["all_tasks", "reported_share"]
    # Annotations hold out a fifth of the training images, with what the first person said.
    assert set(scores_of(with_table, BARS)["task", "labels_per_input"]) == {3.0}
    with np.load(with_table.folder / "results/bars/labels.npz") as file:
        assert len(file["y_test"]) == 48
        np.testing.assert_array_equal(file["y_test"], bars()[1][file["test_rows"], 0])


def test_changing_the_table_reruns_and_touching_does_not(with_table):
    path = with_table.folder / "data" / "customers.csv"
    os.utime(path)
    assert with_table.planned(*TARGETS) == []
    customers(seed=1).to_csv(path, index=False)
    planned = with_table.planned(*TARGETS)
    assert "Reading the inputs of customers" in planned
    for kind in ("Fitting", "Scoring"):
        again = [message for message in planned if message.startswith(kind)]
        assert len(again) == 3 and all("on customers" in message for message in again)
