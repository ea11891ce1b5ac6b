"""Fingerprints depend on content alone; files are whole or absent, and checked when read."""

import builtins
import json
import platform
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from epistemic_calibration.files import atomic_path
from epistemic_calibration.workflow.provenance import (
    StaleResultError,
    canonical_json,
    check_inputs,
    file_digest,
    fingerprint,
    made_with,
    merged_with,
    read_npz,
    read_receipt,
    read_spec,
    receipt_path,
    spec_path,
    unlike,
    write_npz,
    write_receipt,
    write_spec,
)

SPEC = {
    "stage": "latents",
    "where": {"dataset": "digits", "seed": "0"},
    "settings": {"a": 1, "b": 2},
    "inputs": {},
    "sources": {},
}


def test_fingerprint_ignores_the_order_of_keys():
    reordered = dict(reversed(SPEC.items())) | {"settings": {"b": 2, "a": 1}}
    assert fingerprint(reordered) == fingerprint(SPEC)


def test_fingerprint_sees_swapped_values():
    swapped = {**SPEC, "settings": {"a": 2, "b": 1}}
    assert fingerprint(swapped) != fingerprint(SPEC)


@pytest.mark.fault
def test_canonical_json_refuses_nan():
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": float("nan")})


def test_a_spec_is_kept_under_a_name_for_people_and_its_own_fingerprint(tmp_path):
    write_spec(SPEC, tmp_path)
    path = tmp_path / spec_path(SPEC)
    assert path.parent == tmp_path / "results/specs/latents"
    assert path.name == f"digits-0-{fingerprint(SPEC)[:16]}.json"
    assert read_spec(path) == SPEC


@pytest.mark.fault
def test_an_edited_or_lost_spec_is_refused(tmp_path):
    write_spec(SPEC, tmp_path)
    path = tmp_path / spec_path(SPEC)
    path.write_text(path.read_text().replace('"a": 1', '"a": 3'))
    with pytest.raises(StaleResultError, match="is not what its name says"):
        read_spec(path)
    path.write_text(path.read_text()[:40])
    with pytest.raises(StaleResultError, match="cannot be read"):
        read_spec(path)
    write_spec(SPEC, tmp_path)
    assert read_spec(path) == SPEC
    path.unlink()
    with pytest.raises(StaleResultError, match="cannot be read"):
        read_spec(path)


def test_round_trip(tmp_path):
    path = tmp_path / "folder" / "x.npz"
    write_npz(path, {"x": np.arange(5), "names": np.array(["a", "bé"])}, SPEC, task="a")
    arrays, record = read_npz(path)
    np.testing.assert_array_equal(arrays["x"], np.arange(5))
    assert list(arrays["names"]) == ["a", "bé"]
    assert record["task"] == "a"
    assert record["spec"] == SPEC
    assert record["fingerprint"] == fingerprint(SPEC)
    assert [p.name for p in path.parent.iterdir()] == ["x.npz"]
    assert set(read_npz(path, ["x", "absent"])[0]) == {"x"}


def test_the_same_content_makes_the_same_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, {"x": np.arange(5)}, SPEC)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.fault
@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_truncated_file_is_refused(tmp_path, keep):
    path = tmp_path / "x.npz"
    write_npz(path, {"x": np.random.default_rng(0).random(1000)}, SPEC)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep) if keep < 1 else keep])
    with pytest.raises(StaleResultError, match=r"x\.npz cannot be read"):
        read_npz(path)


@pytest.mark.fault
def test_a_flipped_bit_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    write_npz(path, {"x": np.random.default_rng(0).random(1000)}, SPEC)
    content = bytearray(path.read_bytes())
    content[2000] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(StaleResultError, match=r"x\.npz cannot be read"):
        read_npz(path)


@pytest.mark.fault
def test_a_foreign_npz_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.arange(3))
    with pytest.raises(StaleResultError, match="not a result of this workflow"):
        read_npz(path)


@pytest.mark.fault
def test_pickles_are_not_loaded(tmp_path):
    path = tmp_path / "x.npz"
    record = np.array(canonical_json({"spec": SPEC}))
    np.savez(path, x=np.array([{"a": 1}], dtype=object), provenance=record)
    with pytest.raises(StaleResultError, match="pickle"):
        read_npz(path)


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")

    def write_half():
        with atomic_path(path) as temporary:
            temporary.write_text("ne")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]


@pytest.fixture
def result(tmp_path, monkeypatch):
    """A finished result, as a job sees it: relative to the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results" / "digits").mkdir(parents=True)
    path = "results/digits/scores.csv"
    (tmp_path / path).write_text("metric,value\neece,0.25\n")
    write_receipt(path, "f" * 64)
    return path


def test_a_receipt_holds_how_a_result_was_made_and_what_is_in_it(result):
    receipt = read_receipt(result)
    assert receipt["fingerprint"] == "f" * 64
    assert receipt["sha256"] == file_digest(result)
    assert check_inputs([result], ["f" * 64]) == [receipt]


def test_a_receipt_holds_what_last_digits_depend_on(result):
    made = made_with()
    assert made["numpy"] == [np.__version__]
    machine = platform.machine()
    blas = [pool for pool in threadpool_info() if "numpy" in pool["filepath"]]
    assert made["processor"] in [[f"{machine} {pool['architecture']}"] for pool in blas]
    # One kind of machine and versions.
    assert unlike(merged_with([made, made_with()])) == ""
    write_receipt(result, "f" * 64, (), made)
    assert read_receipt(result)["made_with"] == made
    assert receipt_path(result).stat().st_size < 1200


def test_the_device_is_told_where_networks_ran(monkeypatch):
    monkeypatch.delitem(sys.modules, "epistemic_calibration.device", raising=False)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert "device" not in made_with()
    monkeypatch.setitem(sys.modules, "epistemic_calibration.device", SimpleNamespace())
    assert made_with()["device"] == ["cpu"]
    gpu = SimpleNamespace(is_initialized=lambda: True, get_device_name=lambda: "A GPU")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=gpu))
    assert made_with()["device"] == ["A GPU"]


@pytest.mark.fault
def test_a_file_that_must_not_be_read_is_no_damaged_one(result, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied", result)

    monkeypatch.setattr(builtins, "open", refused)
    monkeypatch.setattr(Path, "read_text", refused)
    for read in (read_receipt, read_spec):
        with pytest.raises(PermissionError, match="Permission denied"):
            read(result)
    monkeypatch.setattr(np, "load", refused)
    with pytest.raises(PermissionError, match="Permission denied"):
        read_npz(result)


@pytest.mark.fault
def test_a_result_of_another_spec_is_refused_with_the_file_named(result):
    with pytest.raises(StaleResultError, match=r"scores\.csv was made from other settings"):
        check_inputs([result], ["0" * 64])


@pytest.mark.fault
def test_a_result_without_a_receipt_of_its_own_is_refused(result, tmp_path):
    # As if it had been put in the place of another, receipt and all.
    other = "results/digits/other.csv"
    (tmp_path / other).write_bytes((tmp_path / result).read_bytes())
    receipt_path(other).write_bytes(receipt_path(result).read_bytes())
    assert read_receipt(other) is None
    with pytest.raises(StaleResultError, match=r"other\.csv was made from other settings"):
        check_inputs([other], ["f" * 64])


@pytest.mark.fault
def test_one_digit_that_was_edited_is_found(result, tmp_path):
    path = tmp_path / result
    path.write_text(path.read_text().replace("0.25", "0.26"))
    with pytest.raises(StaleResultError, match=r"scores\.csv is not what the job that made it"):
        check_inputs([result], ["f" * 64])


@pytest.mark.fault
def test_a_missing_input_is_found(result):
    with pytest.raises(StaleResultError, match="1 of the files to be read are not among"):
        check_inputs([result], ["f" * 64, "e" * 64])


@pytest.mark.fault
@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"path": 1})])
def test_a_damaged_receipt_is_none(result, content):
    receipt_path(result).write_text(content)
    assert read_receipt(result) is None
