"""Fingerprints depend on content alone; files are whole or absent, and checked when read."""

import json

import numpy as np
import pytest

from epistemic_calibration.provenance import (
    StaleResultError,
    atomic_path,
    canonical_json,
    fingerprint,
    provenance_record,
    read_npz,
    read_provenance_json,
    write_npz,
)

SPEC = {"stage": "latents", "settings": {"a": 1, "b": 2}, "inputs": {}, "sources": {}}


def test_fingerprint_ignores_the_order_of_keys():
    reordered = {"inputs": {}, "sources": {}, "settings": {"b": 2, "a": 1}, "stage": "latents"}
    assert fingerprint(reordered) == fingerprint(SPEC)


def test_fingerprint_sees_swapped_values():
    swapped = {**SPEC, "settings": {"a": 2, "b": 1}}
    assert fingerprint(swapped) != fingerprint(SPEC)


def test_canonical_json_refuses_nan():
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": float("nan")})


def test_round_trip(tmp_path):
    path = tmp_path / "folder" / "x.npz"
    write_npz(path, {"x": np.arange(5), "names": np.array(["a", "bé"])}, SPEC, task="a")
    arrays, record = read_npz(path, expected_fingerprint=fingerprint(SPEC))
    np.testing.assert_array_equal(arrays["x"], np.arange(5))
    assert list(arrays["names"]) == ["a", "bé"]
    assert record["task"] == "a"
    assert record["spec"] == SPEC
    assert [p.name for p in path.parent.iterdir()] == ["x.npz"]


def test_the_same_content_makes_the_same_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, {"x": np.arange(5)}, SPEC)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_another_fingerprint_is_refused_with_the_file_named(tmp_path):
    path = tmp_path / "x.npz"
    write_npz(path, {"x": np.arange(5)}, SPEC)
    with pytest.raises(StaleResultError, match=r"x\.npz was made from other settings"):
        read_npz(path, expected_fingerprint=fingerprint({**SPEC, "stage": "scores"}))


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_truncated_file_is_refused(tmp_path, keep):
    path = tmp_path / "x.npz"
    write_npz(path, {"x": np.random.default_rng(0).random(1000)}, SPEC)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep) if keep < 1 else keep])
    with pytest.raises(StaleResultError, match=r"x\.npz cannot be read"):
        read_npz(path)


def test_a_flipped_bit_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    write_npz(path, {"x": np.random.default_rng(0).random(1000)}, SPEC)
    content = bytearray(path.read_bytes())
    content[2000] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(StaleResultError, match=r"x\.npz cannot be read"):
        read_npz(path)


def test_a_foreign_npz_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.arange(3))
    with pytest.raises(StaleResultError, match="not a result of this workflow"):
        read_npz(path)


def test_pickles_are_not_loaded(tmp_path):
    path = tmp_path / "x.npz"
    record = np.array(canonical_json(provenance_record(SPEC)))
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


def test_json_provenance_is_checked():
    record = json.dumps(provenance_record(SPEC))
    assert read_provenance_json("w", record, fingerprint(SPEC))["spec"] == SPEC
    with pytest.raises(StaleResultError, match="says nothing of its origin"):
        read_provenance_json("w", None, fingerprint(SPEC))
    with pytest.raises(StaleResultError, match="was made from other settings"):
        read_provenance_json("w", record, "0" * 64)
