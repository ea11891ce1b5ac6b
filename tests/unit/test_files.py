"""Files are whole or absent, and what is broken or foreign is not read."""

import numpy as np
import pytest

from epistemic_calibration.files import DamagedFileError, atomic_path, read_npz, write_npz

X = np.random.default_rng(0).random(1000)


def test_arrays_and_their_record_come_back(tmp_path):
    path = tmp_path / "folder" / "x.npz"
    write_npz(path, {"x": X, "names": np.array(["a", "bé"])}, task="a")
    arrays, record = read_npz(path)
    np.testing.assert_array_equal(arrays["x"], X)
    assert list(arrays["names"]) == ["a", "bé"]
    assert record == {"task": "a"}
    assert [p.name for p in path.parent.iterdir()] == ["x.npz"]
    assert set(read_npz(path, ["x", "absent"])[0]) == {"x"}


def test_the_same_content_makes_the_same_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, {"x": X}, task="a")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def flipped(content):
    return content[:2000] + bytes([content[2000] ^ 1]) + content[2001:]


@pytest.mark.fault
@pytest.mark.parametrize(
    "damage",
    [lambda c: b"", lambda c: c[:10], lambda c: c[:4000], lambda c: c[:-80], flipped],
    ids=["empty", "start", "half", "most", "bit"],
)
def test_a_truncated_or_altered_file_is_refused(tmp_path, damage):
    path = tmp_path / "x.npz"
    write_npz(path, {"x": X})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedFileError, match=r"x\.npz cannot be read .* Delete it and run again"):
        read_npz(path)


@pytest.mark.fault
def test_foreign_files_and_pickles_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=X)
    with pytest.raises(DamagedFileError, match="not a result of this workflow"):
        read_npz(path)
    np.savez(path, x=np.array([{"a": 1}], dtype=object), provenance=np.array("{}"))
    with pytest.raises(DamagedFileError, match="pickle"):
        read_npz(path)


@pytest.mark.fault
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
