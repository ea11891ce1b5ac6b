"""Which results Snakemake knows of, and which command lines make it forget."""

import base64
from pathlib import Path

import pytest

from epistemic_calibration.stale import recorded_files, touches


@pytest.mark.parametrize("name", ["results/digits/images.npz", f"results/{'long_' * 60}.csv"])
def test_records_are_found_as_snakemake_names_them(tmp_path, name):
    coded = base64.urlsafe_b64encode(name.encode()).decode()
    pieces = [coded[k : k + 254] for k in range(0, len(coded), 254)]
    path = tmp_path.joinpath(".snakemake", "metadata", *(f"@{p}" for p in pieces[:-1]), pieces[-1])
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert recorded_files(tmp_path) == {Path(name)}


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
