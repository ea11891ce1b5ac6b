"""Fingerprints depend on content alone; a receipt speaks for whole files made as asked, or none."""

import json
import platform
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from epistemic_calibration.files import file_digest, write_text
from epistemic_calibration.report.warning_text import unlike
from epistemic_calibration.workflow.provenance import (
    StaleResultError,
    canonical_json,
    check_inputs,
    damaged,
    fingerprint,
    is_current,
    made_with,
    merged_with,
    read_receipt,
    read_spec,
    receipt_path,
    spec_path,
    write_receipt,
)
from epistemic_calibration.workflow.verify import faults, main

SPEC = {"stage": "latents", "settings": {"a": 1, "b": 2}, "inputs": {}, "sources": {}}


@pytest.mark.fault
def test_canonical_json_refuses_nan():
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": float("nan")})


@pytest.mark.fault
@pytest.mark.parametrize("content", [None, "", '{"stage": '])
def test_a_lost_or_broken_spec_is_refused(tmp_path, content):
    path = tmp_path / "spec.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(StaleResultError, match=r"spec\.json cannot be read .* Run snakemake again"):
        read_spec(path)


JOB, MADE = "hypotheses/digits-eknn-0", "f" * 64
FOLDER, TABLE = "results/fits/eknn", "results/fits/eknn.csv"


@pytest.fixture
def result(tmp_path, monkeypatch):
    """What a finished job has made, a folder and a file, as another job sees it."""
    monkeypatch.chdir(tmp_path)
    Path(FOLDER, "deeper").mkdir(parents=True)
    for name in ("1.npz", "0.npz", "deeper/2.npz", ".unfinished"):
        Path(FOLDER, name).write_text(name)
    Path(TABLE).write_text("metric,value\neece,0.25\n")
    write_receipt(JOB, MADE, [FOLDER, TABLE], [{"text": "no better"}], {"numpy": ["1.0"]})
    return {"fits": {JOB: MADE}}, {"fits": [FOLDER, TABLE]}


def test_a_receipt_lists_all_files_of_folders_and_what_is_in_them(result):
    paths = [f"{FOLDER}/{name}" for name in ("0.npz", "1.npz", "deeper/2.npz")] + [TABLE]
    receipt = {
        "fingerprint": MADE,
        "outputs": {path: file_digest(path) for path in paths},
        "warnings": [{"text": "no better"}],
        "made_with": {"numpy": ["1.0"]},
    }
    assert read_receipt(JOB) == receipt
    assert check_inputs(*result) == [receipt]
    assert damaged(receipt["outputs"]) == []


@pytest.mark.fault
def test_a_result_is_current_while_its_files_are_there_and_its_spec_is_asked_for(result):
    assert is_current(JOB, MADE)
    assert not is_current(JOB, "0" * 64)
    assert not is_current("hypotheses/digits-other-0", MADE)
    Path(FOLDER, "0.npz").unlink()
    assert not is_current(JOB, MADE)


@pytest.mark.fault
@pytest.mark.parametrize("content", [None, "", "{", "[]", json.dumps({"fingerprint": MADE})])
def test_a_result_without_a_whole_receipt_is_refused(result, content):
    path = Path(receipt_path(JOB))
    path.write_text(content) if content is not None else path.unlink()
    assert read_receipt(JOB) is None
    assert not is_current(JOB, MADE)
    with pytest.raises(StaleResultError, match=rf"{FOLDER} was made from other settings"):
        check_inputs(*result)


@pytest.mark.fault
def test_all_stale_damaged_and_lost_files_are_named_at_once_with_the_remedy(result):
    inputs, paths = result
    stale = {"labels": {"images/digits": "0" * 64}}
    Path("results/labels.npz").write_text("")
    write_receipt("images/digits", MADE, ["results/labels.npz"])
    # One digit, a lost file, and a foreign file that no job has made.
    Path(TABLE).write_text(Path(TABLE).read_text().replace("0.25", "0.26"))
    Path(FOLDER, "deeper", "2.npz").unlink()
    # Its name begins like that of a folder of the job.
    Path(f"{FOLDER}2").write_text("")
    paths = {"fits": [*paths["fits"], f"{FOLDER}2"], "labels": ["results/labels.npz"]}
    with pytest.raises(StaleResultError) as caught:
        check_inputs({**inputs, **stale}, paths)
    other = "was made from other settings, code or inputs than asked for"
    changed = "is not what its job has written: changed, or lost"
    assert str(caught.value).split("; ") == [
        f"{FOLDER}/deeper/2.npz {changed}",
        f"{TABLE} {changed}",
        f"{FOLDER}2 {other}",
        f"results/labels.npz {other}",
        "delete it and run again",
    ]


@pytest.mark.fault
def test_verifying_names_every_result_that_is_not_as_its_job_has_written_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main() == 1
    for name in ("a", "b", "c"):
        write_text(f"results/{name}.csv", name)
        write_text(spec_path(f"tables/{name}"), canonical_json({**SPEC, "where": name}))
        made = fingerprint({**SPEC, "where": name})
        write_receipt(f"tables/{name}", made, [f"results/{name}.csv"])
    assert list(faults()) == []
    assert main() == 0
    Path("results/a.csv").write_text("b")
    write_text(spec_path("tables/b"), canonical_json(SPEC))
    Path(receipt_path("tables/c")).write_text("{")
    assert [fault.partition(":")[0] for fault in faults()] == [
        "results/a.csv",
        "tables/b",
        "results/receipts/tables/c.json",
    ]
    assert main() == 1


def test_a_receipt_holds_what_last_digits_depend_on():
    made = made_with()
    assert made["numpy"] == [np.__version__]
    machine = platform.machine()
    blas = [pool for pool in threadpool_info() if "numpy" in pool["filepath"]]
    assert made["processor"] in [[f"{machine} {pool['architecture']}"] for pool in blas]
    # One kind of machine and versions.
    assert unlike(merged_with([made, made_with()])) == ""
    assert unlike(merged_with([made, {"numpy": ["1.0"]}])).startswith("parts were made with numpy")


def test_the_device_is_told_where_networks_ran(monkeypatch):
    monkeypatch.delitem(sys.modules, "epistemic_calibration.device", raising=False)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert "device" not in made_with()
    monkeypatch.setitem(sys.modules, "epistemic_calibration.device", SimpleNamespace())
    assert made_with()["device"] == ["cpu"]
    gpu = SimpleNamespace(is_initialized=lambda: True, get_device_name=lambda: "A GPU")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=gpu))
    assert made_with()["device"] == ["A GPU"]
