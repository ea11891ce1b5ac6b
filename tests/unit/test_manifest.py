"""The manifest says which code ran where, and keeps what it has said."""

import json
import subprocess
from pathlib import Path

import numpy as np

from epistemic_calibration.workflow.manifest import append_manifest


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_event_is_one_line_and_none_is_rewritten(tmp_path):
    path = tmp_path / "results" / "manifest.jsonl"
    append_manifest(path, "start", "run 1", threads=2)
    first = path.read_text()
    append_manifest(path, "success", "run 1")
    assert path.read_text().startswith(first)
    start, success = lines(path)
    assert (start["event"], success["event"]) == ("start", "success")
    assert start["run_id"] == success["run_id"] == "run 1"
    assert start["threads"] == 2
    assert start["versions"]["numpy"] == np.__version__
    assert start["machine"]["cores"] >= 1


def test_the_commit_is_named(tmp_path):
    path = tmp_path / "manifest.jsonl"
    append_manifest(path, "start", "run")
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    done = subprocess.run(git, capture_output=True, text=True)
    expected = done.stdout.strip() if done.returncode == 0 else None
    assert lines(path)[0]["commit"] == expected
    assert lines(path)[0]["dirty"] in ((True, False) if expected else (None,))
