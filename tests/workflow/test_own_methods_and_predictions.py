"""A user's own method and own predictions in the tables, without touching the project."""

import numpy as np
import pytest

TABLE = "results/tables/digits.md"
METHOD = """\
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


def predictions(project, task):
    """Return what a framework elsewhere might have written."""
    with np.load(project.folder / "results/digits/seed0/latents.npz") as latents:
        k = [str(name) for name in latents["class_names"]].index(task)
        y_true = (latents["y_test"] == k).astype(int)
    noise = np.random.default_rng(int(task)).uniform(0, 0.4, (len(y_true), 8))
    return {"hypotheses": np.abs(y_true[:, None] - noise), "y_true": y_true}


def write_predictions(project, name, **changes):
    """Write predictions of every task and name them in the configuration."""
    (project.folder / "preds").mkdir(exist_ok=True)
    for task in ("0", "3", "8"):
        arrays = {**predictions(project, task), **changes}
        given = {key: value for key, value in arrays.items() if value is not None}
        np.savez(project.folder / f"preds/{name}_digits_0_{task}.npz", **given)
    pattern = f"preds/{name}_{{dataset}}_{{seed}}_{{task}}.npz"
    entry = {"predictions": pattern, "datasets": ["digits"]}
    project.configure(lambda c: c["methods"].update({name: entry}))


def write_all_classes(project, name):
    """Write one file of all ten classes, hypotheses first, and name it in the configuration."""
    with np.load(project.folder / "results/digits/seed0/latents.npz") as latents:
        y_true = latents["y_test"]
    rng = np.random.default_rng(0)
    hypotheses = rng.dirichlet(np.ones(10), (6, len(y_true))) + 2 * np.eye(10)[y_true]
    np.savez(project.folder / f"preds/{name}.npz", y_true=y_true, hypotheses=hypotheses / 3)
    entry = {"predictions": f"preds/{name}.npz", "datasets": ["digits"]}
    project.configure(lambda c: c["methods"].update({name: entry}))


@pytest.fixture(scope="module")
def extended(finished, tmp_path_factory):
    """A finished project with a method of the user's own and predictions made elsewhere."""
    project = finished.copy(tmp_path_factory.mktemp("extended") / "work")
    (project.folder / "own").mkdir()
    (project.folder / "own" / "nearest.py").write_text(METHOD)
    (project.folder / "own" / "encoder.py").write_text(HELPER)
    entry = {"file": "own/nearest.py", "n_hypotheses": 7}
    project.configure(lambda c: c["methods"].update(nearest=entry))
    write_predictions(project, "mine")
    write_all_classes(project, "together")
    project.run(TABLE)
    return project


def steps(planned):
    return [m for m in planned if m.startswith(("Fitting", "Scoring", "Importing", "Encoding"))]


def test_both_are_in_the_table_beside_the_methods_of_the_project(extended):
    text = (extended.folder / TABLE).read_text()
    for name in ("Nearest", "mine", "together", "Random Forest"):
        assert name in text
    for name in ("mine", "together"):
        scores = (extended.folder / f"results/digits/seed0/scores/{name}.csv").read_text()
        # Hypotheses on the right side of 1/2 everywhere, by construction.
        accuracy = [line for line in scores.splitlines() if ",accuracy," in line]
        assert len(accuracy) == 3
        assert all(",accuracy,1.0," in line for line in accuracy)


@pytest.mark.parametrize(
    ("file", "change"),
    [("nearest.py", ("0.1, 0.1", "0.2, 0.2")), ("encoder.py", ("** 2", "** 4"))],
)
def test_editing_the_own_method_reruns_it_alone(extended, tmp_path, file, change):
    project = extended.copy(tmp_path / "work")
    path = project.folder / "own" / file
    path.write_text(path.read_text().replace(*change))
    assert steps(project.planned(TABLE)) == [
        "Fitting nearest on digits, seed 0",
        "Scoring nearest on digits, seed 0",
    ]


def test_new_predictions_are_imported_alone(extended, tmp_path):
    project = extended.copy(tmp_path / "work")
    arrays = predictions(project, "3")
    arrays["hypotheses"] = arrays["hypotheses"] / 2
    np.savez(project.folder / "preds/mine_digits_0_3.npz", **arrays)
    assert steps(project.planned(TABLE)) == [
        "Importing the predictions of mine on digits, seed 0",
        "Scoring mine on digits, seed 0",
    ]


@pytest.mark.fault
def test_wrong_predictions_are_refused_with_their_file_named(extended, tmp_path):
    project = extended.copy(tmp_path / "work")
    tables = project.tables()
    y_true = predictions(project, "0")["y_true"]
    n = len(y_true)
    write_predictions(project, "permuted", y_true=y_true[::-1])
    write_predictions(project, "undefined", hypotheses=np.full((n, 8), np.nan))
    write_predictions(project, "beyond", hypotheses=np.full((n, 8), 1.5))
    write_predictions(project, "short", hypotheses=np.zeros((n - 1, 8)))
    write_predictions(project, "unlabelled", y_true=None)
    (project.folder / "preds/unreadable_digits_0_0.npz").write_bytes(b"PK no")
    done = project.run(TABLE, check=False)
    screen = done.stdout + done.stderr
    assert done.returncode != 0
    for expected in (
        "preds/permuted_digits_0_0.npz: y_true differs from the labels of task 0 in",
        "preds/undefined_digits_0_0.npz: ",
        "values that are NaN or infinite",
        "preds/beyond_digits_0_0.npz: ",
        "hypotheses lies in [1.5, 1.5], expected values in [0, 1]",
        "preds/short_digits_0_0.npz: ",
        f"hypotheses has shape ({n - 1}, 8), expected ({n}, n_hypotheses)",
        "preds/unlabelled_digits_0_0.npz: lacks y_true",
    ):
        assert expected in screen
    assert project.tables() == tables


@pytest.mark.fault
def test_missing_predictions_are_named_before_anything_runs(extended, tmp_path):
    project = extended.copy(tmp_path / "work")
    (project.folder / "preds/mine_digits_0_8.npz").unlink()
    done = project.run(TABLE, "--dry-run", check=False)
    screen = done.stdout + done.stderr
    assert done.returncode != 0
    assert "preds/mine_digits_0_8.npz" in screen


@pytest.mark.fault
def test_missing_predictions_of_a_new_method_are_no_success(extended, tmp_path):
    project = extended.copy(tmp_path / "work")
    entry = {"predictions": "none/{task}.npz", "datasets": ["digits"]}
    project.configure(lambda c: c["methods"].update(absent=entry))
    done = project.run(TABLE, check=False)
    assert done.returncode != 0
    assert "methods.absent.predictions: no such file: none/0.npz" in done.stdout + done.stderr
