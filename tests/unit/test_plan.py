"""Specs hold what a job depends on, and nothing else; their times tell what is current."""

import copy
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from shipped import ROOT, SHIPPED

from epistemic_calibration.metrics import holm_correction
from epistemic_calibration.scores._resamples import (
    LEVEL,
    adequate_resamples,
    resamples_needed,
)
from epistemic_calibration.workflow.config import resolve_config
from epistemic_calibration.workflow.plan import Plan, stages
from epistemic_calibration.workflow.provenance import write_receipt

DIGITS = {"dataset": "digits", "seed": 0}


def plan(change=lambda config: None, base_dir=ROOT):
    config = copy.deepcopy(SHIPPED)
    change(config)
    return Plan(resolve_config(config, base_dir), base_dir)


def fingerprint(planned, stage, **where):
    return next(iter(planned.made_by(stage, **where).values()))


# --- Specs


@pytest.mark.parametrize("stage", stages())
def test_a_spec_has_the_script_and_exactly_the_inputs_of_its_stage(stage, one_job_per_stage):
    planned, jobs = one_job_per_stage
    spec, found = planned.spec(stage, **jobs[stage]), stages()[stage]
    assert set(spec["inputs"]) == {name.rstrip("*") for name in found.inputs}
    assert f"workflow_scripts/stages/{stage}.py" in spec["sources"]
    # What must be there once is made by one job.
    once = {name for name in found.inputs if not name.endswith("*")}
    assert {name for name in once if len(spec["inputs"][name]) != 1} == set()


def test_threads_are_in_the_specs_of_the_stages_that_use_them(one_job_per_stage):
    _, jobs = one_job_per_stage
    del jobs["predictions"]
    planned = plan(lambda c: c.update(threads=3))
    threads = {stage: planned.spec(stage, **where)["threads"] for stage, where in jobs.items()}
    assert threads == {stage: 3 if stages()[stage].threads else 1 for stage in jobs}
    assert 3 in threads.values()


@pytest.fixture
def of_digits(tmp_path, monkeypatch):
    """A plan in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda: plan(base_dir=tmp_path)


def test_the_time_of_a_spec_tells_whether_its_job_must_run(of_digits):
    job, where = "neighbors/digits-0", ("neighbors", DIGITS)
    begun = time.time() - 10
    path = of_digits().write_spec(where[0], **where[1])
    assert path == f"results/specs/{job}.json"
    assert json.loads(Path(path).read_text()) == of_digits().spec(where[0], **where[1])
    assert Path(path).stat().st_mtime > begun

    Path("results/neighbors.npz").write_text("")
    write_receipt(job, fingerprint(of_digits(), where[0], **where[1]), ["results/neighbors.npz"])
    os.utime(path)
    of_digits().write_spec(where[0], **where[1])
    assert Path(path).stat().st_mtime == 0

    # Lost, or made from another spec.
    Path("results/neighbors.npz").unlink()
    of_digits().write_spec(where[0], **where[1])
    assert Path(path).stat().st_mtime > begun
    Path("results/neighbors.npz").write_text("")
    write_receipt(job, "0" * 64, ["results/neighbors.npz"])
    os.utime(path, (0, 0))
    of_digits().write_spec(where[0], **where[1])
    assert Path(path).stat().st_mtime > begun


@pytest.mark.fault
def test_a_spec_that_was_edited_is_written_anew(of_digits):
    path = Path(of_digits().write_spec("neighbors", **DIGITS))
    text = path.read_text()
    path.write_text(text.replace("12", "13"))
    assert path.read_text() != text
    of_digits().write_spec("neighbors", **DIGITS)
    assert path.read_text() == text


# --- Seeds


@pytest.mark.parametrize("shared", [True, False])
def test_all_seeds_read_the_latents_of_the_first_unless_each_has_its_own_encoder(shared):
    planned = plan(lambda c: c.update(share_encoder=shared))
    seeds = planned.seeds("digits")
    where = {"dataset": "digits", "method": "eknn"}
    specs = {seed: planned.spec("hypotheses", seed=seed, **where) for seed in seeds}
    read = {seed: set(spec["inputs"]["latents"]) for seed, spec in specs.items()}
    asked = {seed: {f"latents/digits-{seeds[0] if shared else seed}"} for seed in seeds}
    assert read == asked
    assert planned.has_one_encoder("digits") == shared


def test_a_method_with_more_seeds_is_trained_with_them_and_the_others_are_not():
    planned = plan(lambda c: c["methods"]["eknn"].update(more_seeds=[7]))
    assert planned.seeds("wine") == [0, 7]
    trainings = planned.trainings("wine")
    assert [method for seed, method in trainings if seed == 7] == ["eknn"]
    assert [method for seed, method in trainings if seed == 0] == planned.methods("wine")


# --- What the configuration says of data sets, tasks and methods


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


def test_features_are_scaled_and_not_encoded():
    assert binary().encoding("tumours") == ("none", {}, "standard")
    images = plan().encoding("digits")
    assert (images.encoder, images.encoder_parameters["min_steps"]) == ("autoencoder", 480)
    assert images.scaling == "none"
    named = plan(lambda c: c["latents"].update(encoder="autoencoder", scaling="none"))
    assert named.encoding("digits") == images
    # So that writing down what "auto" means reruns nothing.
    for stage in ("encoder", "latents"):
        assert fingerprint(named, stage, **DIGITS) == fingerprint(plan(), stage, **DIGITS)


@pytest.mark.fault
def test_an_encoder_of_images_is_refused_for_features():
    words = r"datasets\.wine\.latents\.encoder: pca encodes images, .*none or auto"
    with pytest.raises(ValueError, match=words):
        plan(lambda c: c["latents"].update(encoder="pca")).encoding("wine")


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


def test_predictions_are_told_by_content(tmp_path):
    def use(config):
        pattern = "{dataset}-{seed}-{task}.npz"
        config["methods"]["mine"] = {"predictions": pattern, "datasets": ["digits"]}
        config["datasets"]["digits"]["tasks"] = ["0"]

    path = tmp_path / "digits-0-0.npz"
    with pytest.raises(ValueError, match=r"methods\.mine\.predictions: no such file"):
        fingerprint(plan(use, tmp_path), "predictions", method="mine", **DIGITS)
    found = []
    for value in (0.1, 0.2, 0.1):
        np.savez(path, hypotheses=np.full((3, 2), value), y_true=[0, 1, 0])
        found.append(fingerprint(plan(use, tmp_path), "scores", method="mine", **DIGITS))
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


@pytest.mark.parametrize("n_tests", [1, 149, 150, 151, 999, 2400])
def test_with_adequate_resamples_holm_can_reject(n_tests):
    n = adequate_resamples(n_tests)
    least = np.full(n_tests, 1 / (n + 1))
    assert (holm_correction(least) <= LEVEL).all()
    assert n_tests <= 0.05 * (n + 1)
    needed = resamples_needed(n_tests)
    assert needed <= n
    assert n_tests <= 0.05 * (needed + 1)
    assert n_tests > 0.05 * needed


@pytest.mark.fault
def test_a_data_set_that_is_not_there_is_told_from_one_that_is_wrong():
    lost = {"source": "npz", "path": "nowhere/lost.npz"}
    unavailable = plan(lambda c: c["datasets"].update(lost=lost)).unavailable
    assert unavailable["lost"].startswith("datasets.lost: no such file: ")
    assert "digits" not in unavailable
    with pytest.raises(ValueError, match=r"datasets\.digits\.tasks: no class 'ten'"):
        _ = plan(lambda c: c["datasets"]["digits"].update(tasks=["ten"])).unavailable
