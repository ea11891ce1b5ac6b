"""Which results Snakemake knows of, and which command lines make it forget."""

import base64
import json
import os
import shlex
import time
from hashlib import sha256
from pathlib import Path

import pytest

from epistemic_calibration.stale import recorded_files, touches


@pytest.mark.parametrize("name", ["results/digits/images.npz", f"results/{'long_' * 48}.csv"])
def test_records_are_found_as_snakemake_names_them(tmp_path, name):
    coded = base64.urlsafe_b64encode(name.encode()).decode()
    pieces = [coded[k : k + 254] for k in range(0, len(coded), 254)]
    path = tmp_path.joinpath(".snakemake", "metadata", *(f"@{p}" for p in pieces[:-1]), pieces[-1])
    path.parent.mkdir(parents=True)
    result = tmp_path / name
    result.parent.mkdir(parents=True)
    result.write_text("")
    path.write_text("{}")
    assert recorded_files(tmp_path) == {Path(name)}


def test_what_came_after_its_record_must_be_what_the_record_says(tmp_path):
    name, spec = "results/tables/digits.md", '{"stage":"tables"}'
    record = tmp_path / ".snakemake" / "metadata" / base64.urlsafe_b64encode(name.encode()).decode()
    record.parent.mkdir(parents=True)
    command = f"python make_tables.py --spec {shlex.quote(spec)} --log some.log"
    record.write_text(json.dumps({"shellcmd": command}))
    result = tmp_path / name
    result.parent.mkdir(parents=True)
    time.sleep(0.02)
    for fingerprint, expected in (
        (sha256(spec.encode()).hexdigest(), {Path(name)}),
        ("0" * 64, set()),
    ):
        result.write_text(f"<!-- fingerprint: {fingerprint} -->")
        # Whatever modification time it brought along.
        os.utime(result, ns=(0, 0))
        assert recorded_files(tmp_path) == expected


def test_no_records(tmp_path):
    assert recorded_files(tmp_path) == set()
    (tmp_path / ".snakemake" / "metadata").mkdir(parents=True)
    (tmp_path / ".snakemake" / "metadata" / "no name").write_text("")
    assert recorded_files(tmp_path) == set()


@pytest.mark.parametrize("argument", ["-t", "--touch", "--tou", "-nt", "-Ft"])
def test_commands_that_touch(argument):
    assert touches(["snakemake", "--cores", "1", argument])


@pytest.mark.parametrize("argument", ["-n", "-T", "toy", "results/-t", "--target-jobs", "-c1"])
def test_commands_that_do_not(argument):
    assert not touches(["snakemake", argument])
