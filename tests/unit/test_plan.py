"""Specs hold what a job depends on, and nothing else."""

import copy
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import yaml

from epistemic_calibration.metrics import holm_correction
from epistemic_calibration.scoring._resamples import (
    LEVEL,
    adequate_resamples,
    can_reject,
    resamples_needed,
)
from epistemic_calibration.workflow.config import resolve_config
from epistemic_calibration.workflow.plan import Plan, stages
from epistemic_calibration.workflow.provenance import write_receipt
from epistemic_calibration.workflow.status import MethodStatus

ROOT = Path(__file__).parents[2]
SHIPPED = yaml.safe_load((ROOT / "config.yaml").read_text())
DIGITS = {"dataset": "digits", "seed": 0}


def plan(change=lambda config: None, base_dir=ROOT):
    config = copy.deepcopy(SHIPPED)
    change(config)
    return Plan(resolve_config(config, base_dir), base_dir)


def fingerprints(plan):
    found = {"images": plan.fingerprint("images", dataset="digits")}
    for stage in ("encoder", "latents", "neighbors"):
        found[stage] = plan.fingerprint(stage, **DIGITS)
    for method in ("random_forest", "eknn"):
        for stage in ("hypotheses", "scores"):
            found[f"{stage} {method}"] = plan.fingerprint(stage, method=method, **DIGITS)
    found["tables"] = plan.fingerprint("tables", dataset="digits")
    found["figures"] = plan.fingerprint("figures", dataset="digits")
    return found


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda c: c["datasets"]["digits"].update(tasks_per_job=3), set()),
        (lambda c: c.update(data_dir="elsewhere"), set()),
        (lambda c: c["datasets"].pop("mnist") and c.update(benchmark=["digits"]), set()),
        (
            lambda c: c["methods"]["eknn"].update(alpha=0.5),
            {"hypotheses eknn", "scores eknn", "tables", "figures"},
        ),
        (
            lambda c: c["scores"].update(ece_n_bins=11),
            {"scores eknn", "scores random_forest", "tables", "figures"},
        ),
        (lambda c: c["methods"]["eknn"].update(label="EKNN"), {"tables", "figures"}),
        (lambda c: c.update(seeds=[0, 1]), {"tables", "figures"}),
        (
            lambda c: c["latents"].update(n_neighbors=15),
            {"neighbors", "hypotheses eknn", "scores eknn", "tables", "figures"},
        ),
        (
            lambda c: c["latents"].update(scaling="standard"),
            set(fingerprints(plan())) - {"images", "encoder"},
        ),
        (
            lambda c: c["latents"].update(encoder="pca"),
            set(fingerprints(plan())) - {"images"},
        ),
        (lambda c: c["datasets"]["digits"].update(split_seed=1), set(fingerprints(plan()))),
        (lambda c: c.update(threads=2), set(fingerprints(plan()))),
    ],
)
def test_a_change_reaches_what_depends_on_it(change, changed):
    before, after = fingerprints(plan()), fingerprints(plan(change))
    assert {name for name in before if before[name] != after[name]} == changed


@pytest.mark.parametrize("stage", stages())
def test_a_job_reads_its_settings_back_as_they_were_planned(stage, one_job_per_stage):
    planned, jobs = one_job_per_stage
    spec = planned.spec(stage, **jobs[stage])
    settings = stages()[stage].settings(**spec["settings"])
    assert dataclasses.asdict(settings) == spec["settings"]
    # What the step reads of the settings, it has.
    assert set(spec["inputs"]) <= {name.rstrip("*") for name in stages()[stage].inputs}
    assert f"workflow_scripts/{stage}.py" in spec["sources"]


@pytest.mark.fault
@pytest.mark.parametrize("left_out", ["latents", "labels"])
def test_an_input_that_a_stage_forgets_fails_when_the_plan_is_made(left_out, monkeypatch):
    stage = {"latents": "neighbors", "labels": "scores"}[left_out]
    where = {**DIGITS, "method": "eknn"} if stage == "scores" else DIGITS
    planned, needs = plan(), stages()[stage].needs

    def forgetful(*args, **kwargs):
        found = needs(*args, **kwargs)
        kept = {name: value for name, value in found.inputs.items() if name != left_out}
        return dataclasses.replace(found, inputs=kept)

    broken = dataclasses.replace(stages()[stage], needs=forgetful)
    monkeypatch.setitem(stages(), stage, broken)
    with pytest.raises(TypeError, match=rf"{stage}\.py: {left_out} must be both in `inputs`"):
        planned.spec(stage, **where)


def test_the_path_of_a_spec_tells_people_and_specs_apart():
    first, second = (
        plan(lambda c, n=n: c["scores"].update(ece_n_bins=n)).spec_path(
            "scores", method="eknn", **DIGITS
        )
        for n in (10, 11)
    )
    assert first != second
    for path in (first, second):
        assert path.startswith("results/specs/scores/digits-eknn-0-")
        assert len(path) < 100


def test_a_hundred_seeds_and_data_sets_are_no_longer_a_command_line():
    def many(config):
        config["seeds"] = list(range(100))

    planned = plan(many)
    assert len(planned.spec_path("tables", dataset="digits")) < 100
    assert len(planned.spec("tables", dataset="digits")["inputs"]["scores"]) == 100 * (10 + 1)


def test_tasks_are_the_classes_in_their_order():
    assert plan().tasks("digits") == {str(k): k for k in range(10)}
    chosen = plan(lambda c: c["datasets"]["digits"].update(tasks=["8", "0"]))
    assert chosen.tasks("digits") == {"8": 8, "0": 0}


def binary(tasks="all"):
    block = {"source": "sklearn", "name": "load_breast_cancer", "tasks": tasks}
    return plan(lambda c: c["datasets"].update(tumours=block))


def test_two_classes_are_one_task():
    # The second of the classes, unless the other is named.
    assert binary().tasks("tumours") == {"benign": 1}
    assert binary(["malignant"]).tasks("tumours") == {"malignant": 0}
    with pytest.raises(ValueError, match=r"datasets\.tumours\.tasks: with two classes .*name one"):
        binary(["malignant", "benign"]).tasks("tumours")
    assert len(binary().task_chunks("tumours")) == 1


def test_features_are_scaled_and_not_encoded():
    assert binary().encoding("tumours") == ("none", {}, "standard")
    images = plan().encoding("digits")
    assert (images.encoder, images.encoder_parameters["min_steps"]) == ("autoencoder", 480)
    assert images.scaling == "none"
    named = plan(lambda c: c["latents"].update(encoder="autoencoder", scaling="none"))
    assert named.encoding("digits") == images
    # So that writing down what "auto" means reruns nothing.
    for stage in ("encoder", "latents"):
        assert named.fingerprint(stage, **DIGITS) == plan().fingerprint(stage, **DIGITS)


@pytest.mark.fault
@pytest.mark.parametrize("encoder", ["autoencoder", "pca"])
@pytest.mark.parametrize("top_level", [True, False])
def test_an_encoder_of_images_is_refused_for_features(encoder, top_level):
    def change(config):
        block = config["latents"] if top_level else config["datasets"]["wine"]
        block.update({"encoder": encoder} if top_level else {"latents": {"encoder": encoder}})

    words = rf"datasets\.wine\.latents\.encoder: {encoder} encodes images, .*none or auto"
    with pytest.raises(ValueError, match=words):
        plan(change).encoding("wine")


@pytest.mark.fault
def test_an_unknown_task_is_named():
    wrong = plan(lambda c: c["datasets"]["digits"].update(tasks=["ten"]))
    with pytest.raises(ValueError, match=r"datasets\.digits\.tasks: no class 'ten'; the classes"):
        wrong.tasks("digits")


@pytest.mark.parametrize(("size", "n_chunks"), [(1, 10), (3, 4), (10, 1), (99, 1)])
def test_chunks_cover_all_tasks_once(size, n_chunks):
    def configure(config):
        config["datasets"]["digits"]["tasks_per_job"] = size

    chunks = plan(configure).task_chunks("digits")
    assert len(chunks) == n_chunks
    assert [task for chunk in chunks for task in chunk] == [str(k) for k in range(10)]


def test_a_data_set_may_have_its_own_number_of_tasks_per_job():
    def configure(config):
        config["tasks_per_job"] = 1
        config["datasets"]["digits"]["tasks_per_job"] = 4
        config["datasets"]["others"] = {"source": "sklearn", "name": "load_digits"}

    own = plan(configure)
    assert list(map(len, own.task_chunks("digits"))) == [4, 4, 2]
    assert list(own.fits("digits")) == ["0", "1", "2"]
    assert list(own.fits("others")) == [str(k) for k in range(10)]


def test_tasks_are_labelled_where_their_paths_have_other_names(tmp_path):
    images, y = np.zeros((6, 4, 4), np.uint8), np.arange(6) % 3
    arrays = {"x_train": images, "x_test": images, "y_train": y, "y_test": y}
    path = tmp_path / "pets.npz"
    np.savez(path, **arrays, class_names=["cat", "a dog", "<b>"])

    def change(config):
        config["datasets"]["pets"] = {"source": "npz", "path": str(path)}

    labels = plan(change, tmp_path).task_labels("pets")
    assert sorted(labels.values()) == ["<b>", "a dog"]
    assert labels.keys() < plan(change, tmp_path).tasks("pets").keys()


def test_finished_scores_are_those_that_are_current(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    of_digits = plan(base_dir=tmp_path)
    folder = Path("results/digits/seed0/scores")
    folder.mkdir(parents=True)
    for method, others in (("eknn", ""), ("laplace", "0"), ("centroids", None)):
        (folder / f"{method}.csv").write_text("task,metric,value\n")
        if others is not None:
            asked = of_digits.fingerprint("scores", method=method, **DIGITS)
            write_receipt(folder / f"{method}.csv", others + asked)
    # The second was made from another spec, the third by a job that did not finish.
    assert of_digits.finished_scores("digits") == {(0, "eknn"): f"{folder}/eknn.csv"}


def test_failures_are_those_of_methods_that_have_failed(tmp_path, monkeypatch):
    states = {"eknn": "failed", "laplace": "done", "centroids": "stopped"}
    monkeypatch.setattr(
        "epistemic_calibration.workflow.status.dataset_status",
        lambda plan, dataset: [
            MethodStatus(name, 0, state, 0, 10, reason=f"{name}'s")
            for name, state in states.items()
        ],
    )
    assert plan(base_dir=tmp_path).failures("digits") == {"eknn": "eknn's"}


@pytest.mark.parametrize(("size", "parts"), [(1, "5 6 7"), (2, "0 1"), (9, "0")])
def test_logs_of_fits_have_the_number_of_a_chunk_or_the_task_that_it_is(size, parts):
    def configure(config):
        config["datasets"]["digits"]["tasks_per_job"] = size
        config["datasets"]["digits"]["tasks"] = ["5", "6", "7"]

    fits = plan(configure).fits("digits")
    assert " ".join(fits) == parts
    assert list(fits.values()) == plan(configure).task_chunks("digits")


def test_predictions_are_told_by_content(tmp_path):
    def use(config):
        pattern = "{dataset}-{seed}-{task}.npz"
        config["methods"]["mine"] = {"predictions": pattern, "datasets": ["digits"]}
        config["datasets"]["digits"]["tasks"] = ["0"]

    path = tmp_path / "digits-0-0.npz"
    with pytest.raises(ValueError, match=r"methods\.mine\.predictions: no such file"):
        plan(use, tmp_path).fingerprint("predictions", method="mine", **DIGITS)
    found = []
    for value in (0.1, 0.2, 0.1):
        np.savez(path, hypotheses=np.full((3, 2), value), y_true=[0, 1, 0])
        found.append(plan(use, tmp_path).fingerprint("scores", method="mine", **DIGITS))
    assert found[0] == found[2] != found[1]
    assert "mine" in plan(use, tmp_path).methods("digits")
    assert "mine" not in plan(use, tmp_path).methods("mnist")


def more_methods(n):
    names = [f"forest_{k}" for k in range(n)]
    entries = {name: {"method": "random_forest"} for name in names}
    return lambda config: config["methods"].update(entries)


def test_resamples_follow_from_the_number_of_tests():
    shipped = plan()
    # Ten methods and controls, ten tasks each.
    assert len(shipped.methods("digits")) == 10
    assert shipped.score_settings("digits")["n_resamples"] == 2999
    assert plan(more_methods(5)).score_settings("digits")["n_resamples"] == 2999
    assert plan(more_methods(6)).score_settings("digits")["n_resamples"] == 5999
    given = plan(lambda c: (more_methods(6)(c), c["scores"].update(n_resamples=99)))
    assert given.score_settings("digits")["n_resamples"] == 99
    assert plan(lambda c: c["scores"].pop("n_resamples")).score_settings("digits") == (
        shipped.score_settings("digits")
    )


def test_a_further_method_leaves_the_scores_of_the_others_alone():
    before, after = fingerprints(plan()), fingerprints(plan(more_methods(1)))
    assert {name for name in before if before[name] != after[name]} == {"tables", "figures"}


@pytest.mark.parametrize("n_tests", [1, 149, 150, 151, 999, 2400])
def test_with_adequate_resamples_holm_can_reject(n_tests):
    n = adequate_resamples(n_tests)
    least = np.full(n_tests, 1 / (n + 1))
    assert (holm_correction(least) <= LEVEL).all()
    assert can_reject(n_tests, n)
    needed = resamples_needed(n_tests)
    assert needed <= n
    assert can_reject(n_tests, needed)
    assert not can_reject(n_tests, needed - 1)


# --- What the workflow asks the plan


@pytest.mark.fault
def test_a_data_set_that_is_not_there_is_told_from_one_that_is_wrong():
    lost = {"source": "npz", "path": "nowhere/lost.npz"}
    unavailable = plan(lambda c: c["datasets"].update(lost=lost)).unavailable
    assert unavailable["lost"].startswith("datasets.lost: no such file: ")
    assert "digits" not in unavailable
    with pytest.raises(ValueError, match=r"datasets\.digits\.tasks: no class 'ten'"):
        _ = plan(lambda c: c["datasets"]["digits"].update(tasks=["ten"])).unavailable
    encoded = {"latents": {"encoder": "pca"}}
    with pytest.raises(ValueError, match=r"datasets\.wine\.latents\.encoder"):
        _ = plan(lambda c: c["datasets"]["wine"].update(encoded)).unavailable


def imported(config):
    pattern = "{dataset}-{seed}-{task}.npz"
    config["methods"]["mine"] = {"predictions": pattern, "datasets": ["digits"]}
    config["datasets"]["digits"]["tasks"] = ["0", "3"]
    config["seeds"] = [0, 1]


@pytest.mark.fault
def test_missing_predictions_are_those_of_the_data_sets_that_a_method_names(tmp_path):
    (tmp_path / "digits-0-3.npz").write_bytes(b"")
    missing = plan(imported, tmp_path).missing_predictions()
    names = ("digits-0-0.npz", "digits-1-0.npz", "digits-1-3.npz")
    assert missing == [tmp_path / name for name in names]


def test_methods_are_fitted_here_or_imported(tmp_path):
    planned = plan(imported, tmp_path)
    assert planned.imported == ["mine"]
    assert "eknn" in planned.fitted and "mine" not in planned.fitted
    assert planned.fit_stage("mine") == "predictions"
    assert planned.fit_stage("eknn") == "hypotheses"


def test_the_plan_knows_which_specs_were_asked_for():
    planned = plan()
    path = planned.spec_path("scores", method="eknn", **DIGITS)
    assert planned.asked == {path: ("scores", {"dataset": "digits", "method": "eknn", "seed": "0"})}


def test_contents_of_pages():
    planned = plan()
    assert planned.page_contents("all") == (SHIPPED["benchmark"], "toy")
    assert planned.page_contents("demo") == (["digits"], "toy_demo")
    assert planned.page_contents("wine") == (["wine"], None)


def test_fingerprints_of_tables_are_by_seed_and_method():
    planned = plan(lambda c: c.update(seeds=[0, 1]))
    methods = planned.methods("digits")
    expected = [
        planned.fingerprint("scores", dataset="digits", seed=seed, method=method)
        for seed in (0, 1)
        for method in methods
    ]
    assert len(set(expected)) == 2 * len(methods)
    assert planned.score_fingerprints("digits") == expected
    assert planned.score_fingerprints("digits", [1]) == expected[len(methods) :]
    bounds = [planned.fingerprint("bounds", dataset="digits", seed=seed) for seed in (0, 1)]
    assert planned.table_fingerprints("digits") == [*expected, *bounds]


def test_a_spec_has_one_fingerprint_or_several_in_an_order_of_their_own():
    planned = plan()
    latents = planned.spec("hypotheses", method="eknn", **DIGITS)["inputs"]["latents"]
    assert latents == planned.fingerprint("latents", **DIGITS)
    scores = planned.spec("tables", dataset="digits")["inputs"]["scores"]
    assert scores == sorted(planned.table_fingerprints("digits"))


def test_the_file_of_a_method_is_the_project_s_or_in_the_working_folder(tmp_path):
    example = (ROOT / "workflow_scripts/epistemic_calibration/methods/base_rate.py").read_text()
    (tmp_path / "mine.py").write_text(example)
    planned = plan(lambda c: c["methods"].update(mine={"file": "mine.py"}), tmp_path)
    assert planned.method_source("mine") == tmp_path / "mine.py"
    assert planned.method_source("eknn").samefile(
        ROOT / "workflow_scripts/epistemic_calibration/methods/eknn.py"
    )
