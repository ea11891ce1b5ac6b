"""The ledger vouches for a result only where its fingerprint, its content and its file agree."""

import os
import shutil
from pathlib import Path

import pytest

from epistemic_calibration.workflow import ledger as module
from epistemic_calibration.workflow.ledger import Ledger
from epistemic_calibration.workflow.provenance import receipt_path, write_receipt

A, B = "a" * 64, "b" * 64
PATH = "results/digits/seed0/latents.npz"


def make(fingerprint, content=b"latents", path=PATH):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content)
    write_receipt(path, fingerprint)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def opened(monkeypatch):
    """Paths that are opened to look at their content or their receipt."""
    paths = []
    for name in ("read_receipt", "file_digest"):
        original = getattr(module, name)

        def counting(path, *arguments, original=original):
            paths.append(str(path))
            return original(path, *arguments)

        monkeypatch.setattr(module, name, counting)
    return paths


def remembered():
    """A ledger that has seen the result, been saved, and read again."""
    ledger = Ledger()
    assert ledger.state(PATH, A) == "current"
    ledger.save()
    return Ledger()


def test_states():
    assert Ledger().state(PATH, A) == "missing"
    make(A)
    assert Ledger().state(PATH, A) == "current"
    assert Ledger().state(PATH, B) == "stale"
    receipt_path(PATH).unlink()
    assert Ledger().state(PATH, A) == "stale"


@pytest.mark.fault
def test_a_lost_receipt_makes_a_known_result_stale():
    make(A)
    ledger = remembered()
    receipt_path(PATH).unlink()
    assert ledger.state(PATH, A) == "stale"


def test_what_the_ledger_knows_is_not_opened(opened):
    make(A)
    ledger = remembered()
    opened.clear()
    assert ledger.state(PATH, A) == "current"
    assert ledger.state(PATH, B) == "stale"
    assert opened == []


@pytest.mark.fault
def test_a_result_of_other_settings_that_was_moved_here_is_stale(folder):
    # Configuration A, moved aside, configuration B, moved aside, A moved back.
    make(A)
    remembered()
    (folder / "results").rename(folder / "a")
    make(B)
    ledger = Ledger()
    assert ledger.state(PATH, B) == "current"
    ledger.save()
    (folder / "results").rename(folder / "b")
    (folder / "a").rename(folder / "results")
    assert Ledger().state(PATH, B) == "stale"
    assert Ledger().state(PATH, A) == "current"


def test_a_copy_is_current_where_its_content_is(folder, opened):
    make(A)
    remembered()
    shutil.copytree(folder / "results", folder / "copied")
    shutil.rmtree(folder / "results")
    (folder / "copied").rename(folder / "results")
    opened.clear()
    ledger = Ledger()
    assert ledger.state(PATH, A) == "current"
    assert opened
    ledger.save()
    opened.clear()
    assert Ledger().state(PATH, A) == "current"
    assert opened == []


@pytest.mark.fault
@pytest.mark.parametrize("seen", [True, False])
def test_an_edit_that_keeps_size_and_time_is_damage(folder, seen):
    make(A)
    if seen:
        remembered()
    stat = Path(PATH).stat()
    (folder / PATH).write_bytes(b"lAtents")
    os.utime(PATH, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert Ledger().state(PATH, A) == "damaged"


def test_touching_is_no_damage():
    make(A)
    remembered()
    os.utime(PATH)
    Path(PATH).chmod(0o640)
    assert Ledger().state(PATH, A) == "current"


@pytest.mark.fault
@pytest.mark.parametrize(
    "content", ["", "{", "nonsense", "[]", '{"results/x.csv": 3}', '{"x": {}}']
)
def test_a_damaged_ledger_is_only_slower(folder, content):
    make(A)
    remembered()
    (folder / "results/ledger.json").write_text(content)
    assert Ledger().state(PATH, A) == "current"


@pytest.mark.fault
def test_a_ledger_that_cannot_be_written_is_no_error(folder, monkeypatch):
    make(A)
    ledger = Ledger()
    ledger.state(PATH, A)
    monkeypatch.setattr(module, "write_text", lambda *_: (_ for _ in ()).throw(OSError("full")))
    ledger.save()
    assert not (folder / "results/ledger.json").exists()


def test_states_of_many():
    make(A)
    make(B, path="results/other.csv")
    found = Ledger().states([(PATH, A), ("results/other.csv", A), ("results/none.csv", A)])
    assert found == {
        "current": [PATH],
        "stale": ["results/other.csv"],
        "missing": ["results/none.csv"],
        "damaged": [],
    }
