"""What a user brings: a method, predictions made elsewhere, several labels of each image."""

import re
import shutil

import numpy as np
import pandas as pd
import pytest

TABLE = "results/tables/digits.md"
SCORES = "results/digits/seed0/scores"
METHOD = """\
import warnings
from pathlib import Path
import numpy as np
from epistemic_calibration.methods import Method


class Nearest(Method):
    label = "Nearest"

    def __init__(self, *, n_hypotheses=5, random_state=0):
        self.n_hypotheses = n_hypotheses
        self.random_state = random_state

    def fit(self, X, y):
        self.centers_ = [X[y == k].mean(axis=0) for k in (0, 1)]
        return self

    def sample_hypotheses(self, X):
        from encoder import squared_distances

        warnings.warn(f"the chain has not converged, R-hat is {Path('notes.txt').read_text()}")
        rng = np.random.default_rng(self.random_state)
        negative, positive = squared_distances(X, self.centers_)
        mean = 1 / (1 + np.exp(positive - negative))
        noise = rng.uniform(-0.1, 0.1, (len(X), self.n_hypotheses))
        return np.clip(mean[:, None] + noise, 0, 1)
"""
#: A file of its own beside it, called as one of the stages is.
HELPER = """\
def squared_distances(X, centers):
    return [((X - c) ** 2).sum(axis=1) for c in centers]
"""
COUNTED = "Reading the several labels of each test input of digits"


def latents(project):
    with np.load(project.folder / "results/digits/seed0/latents.npz") as file:
        return dict(file)


def predictions(project, task):
    """Return what a framework elsewhere might have written."""
    found = latents(project)
    k = [str(name) for name in found["class_names"]].index(task)
    y_true = (found["y_test"] == k).astype(int)
    noise = np.random.default_rng(int(task)).uniform(0, 0.4, (len(y_true), 8))
    return {"hypotheses": np.abs(y_true[:, None] - noise), "y_true": y_true}


def write_predictions(project, name, **changes):
    """Write predictions of every task and name them in the configuration."""
    for task in ("0", "3", "8"):
        arrays = {**predictions(project, task), **changes}
        given = {key: value for key, value in arrays.items() if value is not None}
        np.savez(project.folder / f"preds/{name}_digits_0_{task}.npz", **given)
    add(project, name, predictions=f"preds/{name}_{{dataset}}_{{seed}}_{{task}}.npz")


def add(project, name, **entry):
    entry |= {"datasets": ["digits"]} if "predictions" in entry else {}
    project.configure(lambda c: c["methods"].update({name: entry}))


def write_counts(project, seed=0):
    """Write what four people say of each image of the whole test set."""
    from epistemic_calibration.data import load_dataset

    source = {"source": "sklearn", "name": "load_digits"}
    labels = load_dataset(source, project.folder).y_test
    p = np.full((len(labels), 10), 0.02)
    p[np.arange(len(labels)), labels] = 0.82
    rng = np.random.default_rng(seed)
    counts = np.stack([rng.multinomial(4, row) for row in p])
    np.save(project.folder / "data" / "counts.npy", counts)
    return counts


@pytest.fixture(scope="module")
def extended(finished, tmp_path_factory):
    """A project with all of it that has run: the plan before, the project, its screen."""
    project = finished.copy(tmp_path_factory.mktemp("extended") / "work")
    for folder in ("own", "preds", "data"):
        (project.folder / folder).mkdir(exist_ok=True)
    (project.folder / "own" / "nearest.py").write_text(METHOD)
    (project.folder / "own" / "encoder.py").write_text(HELPER)
    (project.folder / "notes.txt").write_text("1.21")
    add(project, "nearest", file="own/nearest.py", n_hypotheses=7)
    write_predictions(project, "mine")
    # One file of all ten classes, hypotheses first.
    y_true = latents(project)["y_test"]
    draws = np.random.default_rng(0).dirichlet(np.ones(10), (6, len(y_true)))
    hypotheses = (draws + 2 * np.eye(10)[y_true]) / 3
    np.savez(project.folder / "preds/together.npz", y_true=y_true, hypotheses=hypotheses)
    add(project, "together", predictions="preds/together.npz")
    write_counts(project)
    project.configure(lambda c: c["datasets"]["digits"].update(label_counts="counts.npy"))
    planned = project.planned("digits")
    return planned, project, project.run("digits").stdout


def test_what_is_added_runs_and_nothing_else_is_fitted_again(extended):
    planned, project, _ = extended
    new = ("mine", "nearest", "together")
    methods = sorted((*new, "base_rate", "eknn", "mc_dropout", "random_forest"))
    assert project.steps(planned) == [
        "Fitting nearest on digits, seed 0",
        *(f"Importing the predictions of {n} on digits, seed 0" for n in ("mine", "together")),
        COUNTED,
        *(f"Scoring {name} on digits, seed 0" for name in methods),
    ]
    assert project.planned("digits") == []
    text = (project.folder / TABLE).read_text()
    for name in ("Nearest", "mine", "together", "Random Forest"):
        assert name in text
    for name in ("mine", "together"):
        scores = pd.read_csv(project.folder / SCORES / f"{name}.csv")
        # Hypotheses on the right side of 1/2 everywhere, by construction.
        assert scores.query("metric == 'accuracy'")["value"].tolist() == [1, 1, 1]


def test_several_labels_are_scored(extended):
    folder = extended[1].folder
    scores = pd.read_csv(folder / SCORES / "random_forest.csv")
    values = scores.set_index(["scope", "metric"])["value"]
    assert set(values["task", "labels_per_input"]) == {4.0}
    assert values["all_tasks", "reported_share_low"] < values["all_tasks", "reported_share"]
    assert set(scores[scores["metric"] == "curve_error"]["scope"]) == {"bin"}
    table = (folder / "results/tables/digits_size.md").read_text()
    assert "Share of the error that is reported" in table
    assert "From several labels per image" in table
    assert (folder / "results/figures/digits/error_against_uncertainty.png").is_file()


def test_what_a_method_warns_of_stands_under_every_table(extended):
    _, project, screen = extended
    line = 1 + next(k for k, text in enumerate(METHOD.splitlines()) if "warn(" in text)
    sentence = (
        "Warning: Nearest on digits, 3 times: UserWarning: the chain has not converged, R-hat is "
        f"1.21 (nearest.py, line {line})"
    )
    assert screen.count(sentence) == 1
    assert "notes.txt was read, but no `depends_on` has it" in screen
    folder = project.folder / "results/tables"
    for name in ("digits", "digits_summary", "digits_drivers", "digits_size", "digits_comparisons"):
        assert (folder / f"{name}.md").read_text().count(sentence) == 1, name
        assert "the chain has not converged" in (folder / f"{name}.tex").read_text(), name
    warned = pd.read_csv(folder / "digits_warnings.csv")
    assert warned.query("method == 'nearest' and text.str.contains('R-hat')")["count"].sum() == 3


def test_a_change_reruns_what_it_is_of_alone(extended):
    _, project, _ = extended
    nearest = [f"{what} nearest on digits, seed 0" for what in ("Fitting", "Scoring")]
    own = project.folder / "own"
    for path, change in (("nearest.py", ("0.1, 0.1", "0.2, 0.2")), ("encoder.py", ("2", "4"))):
        text = (own / path).read_text()
        (own / path).write_text(text.replace(*change))
        assert project.steps(project.planned(TABLE)) == nearest
        (own / path).write_text(text)
    path = project.folder / "preds/mine_digits_0_3.npz"
    kept, arrays = shutil.copy2(path, path.with_suffix(".kept")), predictions(project, "3")
    np.savez(path, **arrays | {"hypotheses": arrays["hypotheses"] / 2})
    assert project.steps(project.planned(TABLE)) == [
        "Importing the predictions of mine on digits, seed 0",
        "Scoring mine on digits, seed 0",
    ]
    kept.replace(path)
    write_counts(project, seed=1)
    planned = project.steps(project.planned(TABLE))
    assert COUNTED in planned and sum(m.startswith("Scoring") for m in planned) == 7
    assert not [m for m in planned if m.startswith(("Fitting", "Importing"))]
    write_counts(project)
    assert project.planned("digits") == []


def test_what_is_wrong_is_refused_with_its_file_named(extended, tmp_path):
    project = extended[1].copy(tmp_path / "work")
    tables = project.tables()
    y_true = predictions(project, "0")["y_true"]
    write_predictions(project, "permuted", y_true=y_true[::-1])
    write_predictions(project, "beyond", hypotheses=np.full((len(y_true), 8), 1.5))
    write_predictions(project, "unlabelled", y_true=None)
    counts = np.roll(write_counts(project), 3, axis=1)
    np.save(project.folder / "data" / "counts.npy", counts)
    said = project.failed(TABLE)
    for expected in (
        "preds/permuted_digits_0_0.npz: y_true differs from the labels of task 0 in",
        "preds/beyond_digits_0_0.npz: ",
        "hypotheses lies in [1.5, 1.5], expected values in [0, 1]",
        "preds/unlabelled_digits_0_0.npz: lacks y_true",
        "label_counts: counts.npy: the class that most people gave is",
    ):
        assert expected in said
    assert project.tables() == tables


def test_missing_predictions_are_named_before_anything_runs(extended, tmp_path):
    project = extended[1].copy(tmp_path / "work")
    lost = "preds/mine_digits_0_8.npz"
    (project.folder / lost).unlink()
    assert lost in project.failed(TABLE, "--dry-run")
    # A new method without its files is no success either.
    write_predictions(project, "mine")
    add(project, "absent", predictions="none/{task}.npz")
    done = project.run(TABLE, check=False)
    assert done.returncode != 0
    assert re.search("methods.absent.predictions: no such file: none/0.npz", done.stderr)
