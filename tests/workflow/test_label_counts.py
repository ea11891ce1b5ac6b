"""Several labels per image: what giving them reruns, and what comes out."""

import numpy as np
import pandas as pd


def counts_of(project, k=4, seed=0):
    """Counts of k people for the whole test set of the small configuration's digits."""
    from epistemic_calibration.data import load_dataset

    source = {"source": "sklearn", "name": "load_digits"}
    labels = load_dataset(source, project.folder).y_test
    p = np.full((len(labels), 10), 0.02)
    p[np.arange(len(labels)), labels] = 0.82
    rng = np.random.default_rng(seed)
    return np.stack([rng.multinomial(k, row) for row in p])


def test_counts_are_scored_and_fit_nothing(project):
    folder = project.folder
    (folder / "data").mkdir(exist_ok=True)
    np.save(folder / "data" / "counts.npy", counts_of(project))
    project.configure(lambda c: c["datasets"]["digits"].update(label_counts="counts.npy"))
    planned = project.planned()
    # No image is read, and no method is fitted again.
    assert not [m for m in planned if m.startswith(("Reading the inputs", "Training", "Fitting"))]
    assert "Reading the several labels of each test input of digits" in planned
    assert sum(m.startswith("Scoring") for m in planned) == 4
    project.run()
    assert project.planned() == []

    scores = pd.read_csv(folder / "results/digits/seed0/scores/random_forest.csv")
    values = scores.set_index(["scope", "metric"])["value"]
    assert set(values["task", "labels_per_input"]) == {4.0}
    assert values["all_tasks", "reported_share_low"] < values["all_tasks", "reported_share"]
    curve = scores[scores["metric"] == "curve_error"]
    assert set(curve["scope"]) == {"bin"}
    table = (folder / "results/tables/digits_size.md").read_text()
    assert "Share of the error that is reported" in table
    assert "From several labels per image" in table
    assert (folder / "results/figures/digits/error_against_uncertainty.png").is_file()

    # Other counts score again; a part of the tests keeps its own rows.
    np.save(folder / "data" / "counts.npy", counts_of(project, seed=1))
    planned = project.planned()
    assert sum(m.startswith("Scoring") for m in planned) == 4
    assert not [m for m in planned if m.startswith("Fitting")]
    project.configure(lambda c: c["datasets"]["digits"].pop("label_counts"))
    project.run("results/tables/digits_size.md")
    assert "With one label per image" in (folder / "results/tables/digits_size.md").read_text()


def test_counts_of_other_images_end_the_run_and_name_the_file(project):
    counts = counts_of(project)
    (project.folder / "data").mkdir(exist_ok=True)
    np.save(project.folder / "data" / "counts.npy", np.roll(counts, 3, axis=1))
    project.configure(lambda c: c["datasets"]["digits"].update(label_counts="counts.npy"))
    done = project.run("digits", check=False)
    assert done.returncode != 0
    assert "label_counts: counts.npy: the class that most people gave is" in (
        done.stdout + done.stderr
    )
    assert not (project.folder / "results/digits/label_counts.npz").exists()


def test_annotations_make_a_data_set_of_held_out_images(new_project):
    project = new_project("annotated")
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 3
    images = np.zeros((240, 8, 8), np.uint8)
    images[np.arange(240), labels, :] = 200
    images += rng.integers(0, 50, images.shape).astype(np.uint8)
    people = np.repeat(labels[:, None], 3, axis=1)
    wrong = rng.random(people.shape) < 0.2
    people[wrong] = rng.integers(0, 3, wrong.sum())
    (project.folder / "data").mkdir(exist_ok=True)
    arrays = {"x_train": images, "y_train": labels, "x_test": images[:6], "y_test": labels[:6]}
    np.savez(project.folder / "data" / "bars.npz", **arrays)
    np.save(project.folder / "data" / "people.npy", people)
    bars = {"source": "npz", "path": "bars.npz", "annotations": "people.npy"}
    bars |= {"latents": {"encoder": "none"}, "scores": {"n_bins": 5, "corrected_n_bins": 5}}
    project.configure(lambda c: c["datasets"].update(bars=bars))
    project.run("bars")
    scores = pd.read_csv(project.folder / "results/bars/seed0/scores/random_forest.csv")
    values = scores.set_index(["scope", "metric"])["value"]
    assert set(values["task", "labels_per_input"]) == {3.0}
    with np.load(project.folder / "results/bars/labels.npz") as file:
        assert len(file["y_test"]) == 48
        np.testing.assert_array_equal(file["y_test"], people[file["test_rows"], 0])
