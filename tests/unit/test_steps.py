"""What the steps of the stages do, called as a job calls them, on small arrays."""

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from page_data import SETTINGS

from epistemic_calibration import metrics
from epistemic_calibration.data import DataError, raw_inventory
from epistemic_calibration.files import DamagedFileError, file_digest, read_npz, write_npz
from epistemic_calibration.methods.base import MethodError
from epistemic_calibration.predictions import PredictionsError
from epistemic_calibration.result_files import SCORE_COLUMNS, read_tables
from epistemic_calibration.seeds import derive_seed
from epistemic_calibration.workflow.plan import stages
from epistemic_calibration.workflow.stage import Job

RNG = np.random.default_rng(0)
CLASSES = np.array(["cat", "dog", "T-shirt/top"])
Y_TRAIN, Y_TEST = np.arange(60) % 3, np.arange(30)[::-1] % 3
LABELS = {"y_train": Y_TRAIN, "y_test": Y_TEST, "class_names": CLASSES}
WHERE = {"dataset": "pets", "seed": "3", "method": "mine"}

METHOD = """\
import numpy as np
from epistemic_calibration.methods import Method


class Mine(Method):
    label = "Mine"

    def __init__(self, *, shift=0.0, random_state=0):
        self.shift, self.random_state = shift, random_state

    def fit(self, X, y):
        self.p_ = y.mean()
        return self

    def sample_hypotheses(self, X):
        drawn = np.random.default_rng(self.random_state).uniform(0, 0.1, (len(X), 4))
        return drawn + self.p_ + self.shift

    def diagnostics(self):
        return {"p": float(self.p_)}
"""
SCORES = SETTINGS | {"n_bins": 5, "binning": "kmeans", "ece_n_bins": 5, "corrected_n_bins": 4}


def run(stage, settings, inputs=None, outputs=None, where=WHERE):
    made = SimpleNamespace(**settings)
    spec = {"stage": stage, "where": where, "settings": settings}
    namespaces = (SimpleNamespace(**(given or {})) for given in (inputs, outputs))
    stages()[stage].step(Job(made, *namespaces, where, spec))


@pytest.mark.fault
def test_raw_data_that_changed_since_the_plan_are_refused(tmp_path):
    images = np.zeros((4, 8, 8), np.uint8)
    raw = {"x_train": images, "y_train": [0, 1, 0, 1], "x_test": images[:2], "y_test": [0, 1]}
    np.savez(tmp_path / "raw.npz", **raw)
    source = {"source": "npz", "path": "raw.npz"}
    settings = {"source": source, "inventory": raw_inventory(source, tmp_path)}
    outputs = {"images": tmp_path / "images.npz", "labels": tmp_path / "labels.npz"}
    run("images", settings, {"data_dir": tmp_path}, outputs)
    assert read_npz(outputs["labels"])[0]["y_train"].tolist() == [0, 1, 0, 1]

    np.savez(tmp_path / "raw.npz", **{**raw, "y_train": [1, 0, 1, 0]})
    with pytest.raises(DataError, match="the raw data have changed since the run began"):
        run("images", settings, {"data_dir": tmp_path}, outputs)


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "labels.npz"
    write_npz(path, LABELS)
    return str(path)


@pytest.fixture
def latents(tmp_path):
    path = tmp_path / "latents.npz"
    write_npz(path, LABELS | {"x_train": RNG.random((60, 2)), "x_test": RNG.random((30, 2))})
    return str(path)


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("user_method_mine", None)


TASKS = ("dog", "T-shirt_top")


def fit(tmp_path, latents, tasks=TASKS, method=METHOD, **parameters):
    (tmp_path / "mine.py").write_text(method)
    implementation = str(tmp_path / "mine.py")
    run(
        "hypotheses",
        {"implementation": implementation, "parameters": parameters, "tasks": list(tasks)},
        {"latents": latents, "neighbors": []},
        {"hypotheses": str(tmp_path / "fits")},
    )
    return str(tmp_path / "fits")


def test_fitting_writes_each_task_with_its_own_labels_and_seed(tmp_path, latents):
    folder = Path(fit(tmp_path, latents))
    assert sorted(path.stem for path in folder.iterdir()) == sorted(TASKS)
    for task, k in zip(TASKS, (1, 2), strict=True):
        arrays, record = read_npz(folder / f"{task}.npz")
        np.testing.assert_array_equal(arrays["y_true"], k == Y_TEST)
        rng = np.random.default_rng(derive_seed(3, "pets", "mine", task))
        expected = rng.uniform(0, 0.1, (30, 4)) + 20 / 60
        np.testing.assert_array_equal(arrays["hypotheses"], expected.astype(np.float32))
        assert arrays["hypotheses"].dtype == np.float32
        assert record == {"task": task, "diagnostics": {"p": 20 / 60}}
    assert list(Path("results/work").iterdir()) == []


#: Fails at the second fit of a process while there is a file.
FAILING = METHOD.replace(
    "        self.p_ = y.mean()",
    "        from pathlib import Path\n"
    "        with Path('fitted').open('a') as file:\n"
    "            print(y.sum(), self.random_state, file=file)\n"
    "        if Path('armed').exists() and len(Path('fitted').read_text().splitlines()) == 2:\n"
    "            raise RuntimeError('no luck')\n"
    "        self.p_ = y.mean()",
)


@pytest.mark.fault
def test_tasks_finished_before_a_failure_are_not_fitted_again(tmp_path, latents):
    whole = {task: read_npz(f"{fit(tmp_path, latents)}/{task}.npz")[0] for task in TASKS}
    shutil.rmtree(tmp_path / "fits")
    sys.modules.pop("user_method_mine")
    Path("armed").touch()
    with pytest.raises(MethodError, match="no luck"):
        fit(tmp_path, latents, method=FAILING)
    assert not Path("fits").exists()
    (waiting,) = Path("results/work").rglob("*.npz")
    assert waiting.stem == "dog"
    begun = waiting.stat().st_ino

    Path("armed").unlink()
    folder = Path(fit(tmp_path, latents, method=FAILING))
    # The first, the second that failed, and the second alone.
    assert len(Path("fitted").read_text().splitlines()) == 3
    assert (folder / "dog.npz").stat().st_ino == begun
    for task in TASKS:
        arrays, _ = read_npz(folder / f"{task}.npz")
        for name, array in whole[task].items():
            np.testing.assert_array_equal(arrays[name], array)
    assert list(Path("results/work").iterdir()) == []


@pytest.mark.fault
def test_a_method_that_leaves_the_unit_interval_is_refused(tmp_path, latents):
    with pytest.raises(MethodError, match="task dog: hypotheses lies in"):
        fit(tmp_path, latents, shift=0.9)
    assert not (tmp_path / "fits").exists()


@pytest.mark.fault
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("import numpy", "import no_such_package", r"ModuleNotFoundError: .* \(line 1 of mine\.py"),
        ("y.mean()", "1 / 0", r"ZeroDivisionError: .* \(line 12 of mine\.py"),
    ],
)
def test_a_method_that_cannot_be_loaded_or_raises_is_told_with_its_line(
    tmp_path, latents, old, new, expected
):
    with pytest.raises(MethodError, match=rf"mine\.py: {expected}"):
        fit(tmp_path, latents, method=METHOD.replace(old, new))


def test_predictions_are_imported_with_their_task(tmp_path, labels):
    given, output = tmp_path / "given.npz", tmp_path / "imported"
    hypotheses = RNG.random((30, 5))
    np.savez(given, hypotheses=hypotheses, y_true=Y_TEST == 1)
    inputs = {"labels": labels, "predictions": [str(given)]}
    settings = {"digests": {"dog": file_digest(given)}}
    run("predictions", settings, inputs, {"hypotheses": str(output)})
    arrays, record = read_npz(output / "dog.npz")
    np.testing.assert_array_equal(arrays["hypotheses"], hypotheses.astype(np.float32))
    np.testing.assert_array_equal(arrays["y_true"], Y_TEST == 1)
    assert record["task"] == "dog"

    np.savez(given, hypotheses=hypotheses, y_true=Y_TEST == 1, groups=np.arange(30))
    with pytest.raises(PredictionsError, match="has changed since the run began"):
        run("predictions", settings, inputs, {"hypotheses": str(output)})


@pytest.mark.fault
@pytest.mark.parametrize(
    ("y_true", "message"),
    [
        (np.roll(Y_TEST, 1) == 1, "y_true differs from the labels of task dog in 20 of 30 places"),
        (Y_TEST[:20] == 1, "has 20 samples, but the test set of pets has 30"),
    ],
)
def test_predictions_of_other_samples_are_refused(tmp_path, labels, y_true, message):
    changes = {"hypotheses": RNG.random((len(y_true), 5)), "y_true": y_true, "class_names": None}
    with pytest.raises(PredictionsError, match=message):
        of_all_classes(tmp_path, labels, ("dog",), **changes)
    assert not (tmp_path / "imported").exists()


ORDER = [2, 0, 1]


def of_all_classes(tmp_path, labels, tasks=("dog", "T-shirt_top"), **changes):
    """Import one file of all classes, in another order than the data set's."""
    given = tmp_path / "given.npz"
    hypotheses = np.random.default_rng(1).dirichlet([1, 1, 1], (30, 5))
    arrays = {
        "hypotheses": hypotheses,
        "y_true": np.array(CLASSES)[Y_TEST],
        "class_names": np.array(CLASSES)[ORDER],
        **changes,
    }
    np.savez(given, **{name: array for name, array in arrays.items() if array is not None})
    run(
        "predictions",
        {"digests": dict.fromkeys(tasks, file_digest(given))},
        {"labels": labels, "predictions": [str(given)] * len(tasks)},
        {"hypotheses": str(tmp_path / "imported")},
    )
    return hypotheses, [read_npz(tmp_path / "imported" / f"{task}.npz")[0] for task in tasks]


def test_one_file_of_all_classes_becomes_the_tasks(tmp_path, labels):
    hypotheses, tasks = of_all_classes(tmp_path, labels)
    for k, arrays in zip((1, 2), tasks, strict=True):
        assert set(arrays) == {"hypotheses", "y_true"}
        expected = hypotheses[:, :, ORDER.index(k)].astype(np.float32)
        np.testing.assert_array_equal(arrays["hypotheses"], expected)
        np.testing.assert_array_equal(arrays["y_true"], k == Y_TEST)
    # Hypotheses first, and classes that are numbers, in the order of the data set.
    turned = {"hypotheses": hypotheses.transpose(1, 0, 2), "y_true": Y_TEST, "class_names": None}
    _, tasks = of_all_classes(tmp_path, labels, **turned)
    for k, arrays in zip((1, 2), tasks, strict=True):
        expected = hypotheses[:, :, k].astype(np.float32)
        np.testing.assert_array_equal(arrays["hypotheses"], expected)


def test_two_classes_in_one_file_are_the_task_and_its_complement(tmp_path):
    labels = tmp_path / "two.npz"
    y_test = Y_TEST % 2
    write_npz(labels, {"y_test": y_test, "class_names": np.array(["cat", "dog"])})
    h = RNG.random((30, 5))
    both = np.stack([h, 1 - h], axis=2)
    changes = {"hypotheses": both, "y_true": y_test, "class_names": None}
    _, (cat, dog) = of_all_classes(tmp_path, str(labels), ("cat", "dog"), **changes)
    np.testing.assert_allclose(cat["hypotheses"], h, atol=1e-6)
    np.testing.assert_allclose(dog["hypotheses"], 1 - h, atol=1e-6)
    np.testing.assert_array_equal(dog["y_true"], y_test)


def test_a_file_of_one_task_may_have_the_rest_as_a_class(tmp_path, labels):
    h = RNG.random((30, 5))
    changes = {"hypotheses": np.stack([1 - h, h], axis=2), "y_true": Y_TEST == 1}
    changes["class_names"] = None
    _, (dog,) = of_all_classes(tmp_path, labels, ("dog",), **changes)
    assert set(dog) == {"hypotheses", "y_true"}
    np.testing.assert_allclose(dog["hypotheses"], h, atol=1e-6)


@pytest.mark.fault
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_true": np.array(CLASSES)[np.roll(Y_TEST, 1)]}, "labels of pets, class dog, in 20 of"),
        (
            {"class_names": ["a", "b", "c"], "y_true": np.array(["a", "b", "c"])[Y_TEST]},
            r"class_names has \['a', 'b', 'c'\], but the classes of pets are \['",
        ),
        (
            {"hypotheses": np.full((30, 4, 5), 0.2), "class_names": None, "y_true": Y_TEST},
            "has 5 classes, but pets has 3",
        ),
    ],
)
def test_one_file_of_other_classes_is_refused(tmp_path, labels, changes, message):
    with pytest.raises(PredictionsError, match=message):
        of_all_classes(tmp_path, labels, **changes)


def score(fits, labels, tmp_path):
    outputs = {"scores": tmp_path / "scores.csv", "compared": tmp_path / "compared.npz"}
    settings = {"tasks": list(TASKS), "scores": SCORES}
    run("scores", settings, {"hypotheses": fits, "labels": labels}, outputs)
    return outputs


@pytest.fixture
def scored(tmp_path, latents, labels):
    fits = fit(tmp_path, latents)
    outputs = score(fits, labels, tmp_path)
    return fits, pd.read_csv(outputs["scores"], dtype={"task": str}), read_npz(outputs["compared"])


def test_scores_are_tidy_and_those_of_the_metrics(scored):
    fits, table, _ = scored
    assert list(table.columns) == list(SCORE_COLUMNS)
    assert set(table["dataset"]) == {"pets"}
    assert set(table["method"]) == {"mine"}
    assert set(table["seed"]) == {3}
    for task in TASKS:
        arrays, _ = read_npz(f"{fits}/{task}.npz")
        y_true, hypotheses = arrays["y_true"], arrays["hypotheses"]
        rows = table[(table["scope"] == "task") & (table["task"] == task)]
        values = rows.set_index("metric")["value"]
        assert values["brier"] == metrics.brier_score(y_true, hypotheses.mean(1, dtype=np.float64))
        assert values["eece"] == metrics.expected_epistemic_calibration_error(
            y_true, hypotheses, n_bins=5
        )
        corrected = metrics.corrected_epistemic_calibration_error(y_true, hypotheses, n_bins=4)
        assert values["tece_corrected"] == corrected.estimate
        assert values["diagnostic_p"] == 20 / 60
        assert (rows["n_hypotheses"] == 4).all()


def test_what_all_tasks_have_together_has_a_scope_and_no_task(scored):
    _, table, (arrays, record) = scored
    rows = table[table["scope"] == "all_tasks"]
    assert rows["task"].isna().all()
    of_tasks = table[(table["scope"] == "task") & (table["metric"] == "tece_corrected")]
    together = rows.set_index("metric")["value"]["tece_corrected"]
    assert together == pytest.approx(of_tasks["value"].mean(), abs=1e-15)
    assert record["tasks"] == ["dog", "T-shirt_top"]
    assert arrays["mean_prediction"].shape == arrays["bins"].shape == (2, 30)


@pytest.mark.fault
def test_hypotheses_of_another_task_or_other_labels_are_refused(tmp_path, latents, labels):
    fits = fit(tmp_path, latents)
    other = tmp_path / "labels of others.npz"
    write_npz(other, {"y_test": Y_TEST[::-1], "class_names": CLASSES})
    with pytest.raises(DamagedFileError, match="has other labels than"):
        score(fits, other, tmp_path)
    (tmp_path / "swapped").mkdir()
    for source, target in zip(TASKS, reversed(TASKS), strict=True):
        shutil.copyfile(f"{fits}/{source}.npz", tmp_path / "swapped" / f"{target}.npz")
    with pytest.raises(DamagedFileError, match="holds the hypotheses of task 'T-shirt_top'"):
        score(str(tmp_path / "swapped"), labels, tmp_path)


def test_tables_are_joined_in_the_order_of_their_paths_with_names_as_text(tmp_path):
    for name, task in (("NA", "None"), ("A", "0")):
        (tmp_path / f"{name}.csv").write_text(f"method,task,value\n{name},{task},\n")
    table = read_tables([tmp_path / "NA.csv", tmp_path / "A.csv"])
    assert list(table["method"]) == ["A", "NA"]
    assert list(table["task"]) == ["0", "None"]
    assert table["value"].isna().all()
    (tmp_path / "c.csv").write_text("")
    with pytest.raises(DamagedFileError, match=r"c\.csv cannot be read"):
        read_tables([tmp_path / "c.csv"])


def test_sensitivity_leaves_out_what_there_is_not(tmp_path, latents, labels):
    fits = fit(tmp_path, latents)
    output = tmp_path / "sensitivity.csv"
    settings = {
        "tasks": ["dog"],
        "scores": SCORES,
        "n_bins": [2, 5, 30],
        "n_hypotheses": [2, 4, 5],
    }
    run("sensitivity", settings, {"hypotheses": fits, "labels": labels}, {"table": output})
    table = pd.read_csv(output)
    values = table[table["metric"] == "eece"].groupby("axis")["axis_value"].apply(list)
    assert values["n_bins"] == [2, 5]
    assert values["n_hypotheses"] == [2, 4]
    all_hypotheses = table[(table["axis"] == "n_hypotheses") & (table["axis_value"] == 4)]
    arrays, _ = read_npz(f"{fits}/dog.npz")
    order = np.random.default_rng(0).permutation(4)
    expected = metrics.expected_epistemic_calibration_error(
        arrays["y_true"], arrays["hypotheses"][:, order], n_bins=5
    )
    assert all_hypotheses.set_index("metric")["value"]["eece"] == expected


def test_diagnostics_show_the_bins_that_carry_the_error(tmp_path):
    inputs = {"labels": str(tmp_path / "labels.npz"), "compared": [str(tmp_path / "mine.npz")]}
    write_npz(inputs["labels"], LABELS | {"test_rows": np.arange(30)})
    # Right but for the first ten inputs, of which all are said to be dogs.
    mean = np.stack([Y_TEST == 0, Y_TEST == 1]).astype(float)
    mean[1, :10] = 1
    bins = np.tile(np.arange(30) >= 10, (2, 1)).astype(int)
    compared = {"mean_prediction": mean, "bins": bins, "uncertainty": mean / 10}
    write_npz(inputs["compared"][0], compared)
    output = tmp_path / "diagnostics.json"
    settings = {"tasks": ["cat", "dog"], "confidence_level": 0.95}
    run("diagnostics", settings, inputs, {"diagnostics": output}, WHERE)
    found = json.loads(output.read_text())
    assert (found["dataset"], list(found["methods"])) == ("pets", ["mine"])
    (only,) = found["methods"]["mine"]["top_bins"]
    assert (only["task"], only["n"], only["predicted"], only["share"]) == ("dog", 10, 1, 1)
    assert only["frequency"] == pytest.approx((Y_TEST[:10] == 1).mean())
