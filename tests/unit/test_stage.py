"""A step runs on checked inputs, and what it has written gets a receipt, or nothing does."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from epistemic_calibration.files import file_digest, write_text
from epistemic_calibration.workflow.provenance import (
    canonical_json,
    fingerprint,
    read_receipt,
    receipt_path,
    spec_path,
    write_receipt,
)
from epistemic_calibration.workflow.sources import SCRIPTS, STAGES, source_hashes

SCRIPT = """\
\"\"\"Copy a number, scaled.\"\"\"
import os
from pathlib import Path

from epistemic_calibration.workflow.stage import Needs, Stage, logger


def step(job):
    logger.info("scaling by %g", job.settings.factor)
    number = float(Path(job.inputs.number).read_text())
    os.makedirs(job.outputs.scaled, exist_ok=True)
    for k in range(2):
        Path(job.outputs.scaled, f"{{k}}.txt").write_text(str(number * job.settings.factor + k))
    {line}


STAGE = Stage(None, step, inputs=("number", "more*"), outputs=("scaled",))
"""
BEFORE, UPSTREAM = "images/digits", "c" * 64
JOB, INPUT, OUTPUT = "scale/digits", "results/number.txt", "results/scaled"


class Folder:
    """A working folder with an input, and a stage outside of the project, as of a user's."""

    def __init__(self, path, forget_sources):
        self.path, self.forget_sources = path, forget_sources
        write_text(INPUT, "2.5")
        write_receipt(BEFORE, UPSTREAM, [INPUT])
        self.write_script("pass")

    def write_script(self, line):
        (self.path / "scale.py").write_text(SCRIPT.format(line=line))

    def spec(self, *depends_on, **changes):
        self.forget_sources()
        spec = {
            "stage": "scale",
            "where": {"dataset": "digits"},
            "threads": 1,
            "settings": {"factor": 3.0},
            "sources": source_hashes(self.path, self.path / "scale.py", *depends_on),
            "inputs": {"number": {BEFORE: UPSTREAM}, "more": {}},
        }
        return {**spec, **changes}

    def run(self, spec, *arguments):
        write_text(spec_path(JOB), canonical_json(spec))
        module = "epistemic_calibration.workflow.run"
        command = [sys.executable, "-m", module, "scale.py", "--spec", spec_path(JOB)]
        # As a rule does it.
        with Path("log.txt").open("wb") as log:
            return subprocess.run(
                [*command, *(arguments or ["--number", INPUT, "--more", "--scaled", OUTPUT])],
                cwd=self.path,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
            ).returncode

    def run_script(self, line):
        self.write_script(line)
        return self.run(self.spec())

    def log(self):
        return (self.path / "log.txt").read_text()

    def last(self):
        """Return the last line of the log, less time and level."""
        return self.log().splitlines()[-1].split(maxsplit=3)[3]


@pytest.fixture
def folder(tmp_path, monkeypatch, forget_sources):
    # Not in the folder of temporary files, whose files are no user's.
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path, forget_sources)


def test_a_job_writes_its_outputs_and_one_receipt_of_all_of_them(folder):
    spec = folder.spec()
    assert folder.run(spec) == 0, folder.log()
    values = [float(Path(OUTPUT, f"{k}.txt").read_text()) for k in range(2)]
    assert values == [7.5, 8.5]
    receipt = read_receipt(JOB)
    assert receipt["fingerprint"] == fingerprint(spec)
    assert receipt["outputs"] == {
        path: file_digest(path) for path in (f"{OUTPUT}/0.txt", f"{OUTPUT}/1.txt")
    }
    assert "scaling by 3" in folder.log()
    assert folder.last().startswith("done in ")


@pytest.mark.fault
def test_a_failing_step_leaves_no_receipt_and_its_reason_at_the_end_of_the_log(folder):
    assert folder.run_script('raise RuntimeError("out of luck")') == 1
    assert "Traceback" in folder.log()
    # In one line, with the line to blame.
    lines = (folder.path / "scale.py").read_text().splitlines()
    line = 1 + lines.index('    raise RuntimeError("out of luck")')
    assert folder.last() == f"FAILED: scale.py, line {line}: RuntimeError: out of luck"
    assert read_receipt(JOB) is None


def edit_input_with_its_time_kept(folder):
    stat = Path(INPUT).stat()
    Path(INPUT).write_text("2.6")
    os.utime(INPUT, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("changes", "edit", "message"),
    [
        (
            {"inputs": {"number": {BEFORE: "d" * 64}}},
            lambda folder: None,
            "results/number.txt was made from other settings",
        ),
        ({}, edit_input_with_its_time_kept, "results/number.txt is not what its job has written"),
        (
            {},
            lambda folder: folder.write_script("job.settings.factor"),
            "scale.py was edited since the run began. Run snakemake again",
        ),
    ],
)
def test_what_is_not_as_asked_for_is_refused_before_the_step(folder, changes, edit, message):
    spec = folder.spec(**changes)
    edit(folder)
    assert folder.run(spec) == 1
    assert message in folder.log()
    assert not Path(OUTPUT).exists()


@pytest.mark.fault
@pytest.mark.parametrize("name", ["scale.py", INPUT])
def test_what_is_edited_and_restored_while_the_job_runs_leaves_no_receipt(folder, name):
    line = f"p = Path({name!r}); t = p.read_text(); p.write_text(t + ' '); p.write_text(t)"
    assert folder.run_script(line) == 1
    assert f"{name} was changed while the job ran" in folder.log()
    assert read_receipt(JOB) is None


@pytest.mark.fault
def test_a_job_that_is_killed_leaves_no_receipt_of_an_earlier_one(folder):
    assert folder.run(folder.spec()) == 0
    assert Path(receipt_path(JOB)).exists()
    assert folder.run_script("os._exit(9)") == 9
    assert not Path(receipt_path(JOB)).exists()


def test_what_inputs_were_made_with_is_handed_on(folder):
    write_receipt(BEFORE, UPSTREAM, [INPUT], (), {"numpy": ["1.0"], "device": ["A GPU"]})
    assert folder.run_script("import numpy") == 0
    made = read_receipt(JOB)["made_with"]
    assert made["device"] == ["A GPU"]
    assert made["numpy"] == ["1.0", version("numpy")]


WARNING = """\
import warnings
    for _ in range(3):
        warnings.warn("the chain has not converged", RuntimeWarning)
        warnings.warn("soon gone", DeprecationWarning)
    logger.warning("%d before", len(job.warnings))
"""


def test_warnings_of_a_job_and_of_those_before_are_in_its_receipt_and_counted(folder):
    before = {"job": BEFORE, "stage": "images", "where": {}, "text": "no better", "count": 1}
    write_receipt(BEFORE, UPSTREAM, [INPUT], [before])
    assert folder.run_script(WARNING) == 0
    lines = (folder.path / "scale.py").read_text().splitlines()
    line = 1 + next(k for k, text in enumerate(lines) if "converged" in text)
    origin = {"job": JOB, "stage": "scale", "where": {"dataset": "digits"}}
    chain = f"RuntimeWarning: the chain has not converged (scale.py, line {line})"
    assert read_receipt(JOB)["warnings"] == [
        before,
        {**origin, "text": "1 before", "count": 1},
        {**origin, "text": chain, "count": 3},
    ]


def test_threads_are_those_of_the_spec(folder):
    folder.write_script("print('threads:', os.environ['OMP_NUM_THREADS'])")
    assert folder.run(folder.spec(threads=3)) == 0
    assert "\nthreads: 3\n" in folder.log()


# --- Files that a user's method reads and nothing declares

READ = {
    "by open": "open({file!r}).read()",
    "by Path": "Path({file!r}).read_bytes()",
    "by an import": "import sys; sys.path.append({place!r}); __import__('helper_far_away')",
}


@pytest.mark.fault
@pytest.mark.parametrize("how", READ)
@pytest.mark.parametrize("inside", [True, False])
def test_a_file_that_nothing_declares_is_warned_of(folder, tmp_path_factory, how, inside):
    place = folder.path / "data" if inside else tmp_path_factory.mktemp("elsewhere")
    place.mkdir(exist_ok=True)
    file, module = place / "numbers.csv", place / "helper_far_away.py"
    file.write_text("1,2\n")
    module.write_text("VALUE = 3\n")
    text = READ[how].format(file=str(file), module=str(module), place=str(place))
    read = file if str(file) in text else module
    assert folder.run_script(text) == 0, folder.log()
    warned = f"{read} was read, but no `depends_on` has it: changes rerun nothing"
    assert [w["text"] for w in read_receipt(JOB)["warnings"]] == [warned]
    # Once it is declared, there is nothing to warn of.
    assert folder.run(folder.spec(read)) == 0
    assert read_receipt(JOB)["warnings"] == []


NO_USERS = {
    "written": "Path('a').write_text('1'); Path('a').read_text(); Path('b').touch()",
    "library": "import json, inspect; inspect.getsource(json)",
    "system": "Path('/proc/cpuinfo').read_text()",
    "temporary": "import tempfile; f = tempfile.NamedTemporaryFile(); open(f.name).read()",
    "project": f"from epistemic_calibration import seeds; open({str(STAGES / 'scores.py')!r})",
    "results": "Path('results/receipts/images/digits.json').read_text()",
    "hidden": "os.system('echo 1 > .hidden'); Path('.hidden').read_text()",
}


@pytest.mark.parametrize("whose", NO_USERS)
def test_files_that_are_no_users_are_not_warned_of(folder, whose):
    assert folder.run_script(NO_USERS[whose]) == 0, folder.log()
    assert read_receipt(JOB)["warnings"] == []
