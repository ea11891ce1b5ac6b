"""A step runs on checked inputs, and what it has written gets receipts, or nothing does."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

from epistemic_calibration.workflow.code_digests import code_of
from epistemic_calibration.workflow.job_log import Outcome, read_outcome
from epistemic_calibration.workflow.provenance import (
    fingerprint,
    read_receipt,
    spec_path,
    write_receipt,
    write_spec,
)
from epistemic_calibration.workflow.sources import SCRIPTS, code_hash, source_hashes
from epistemic_calibration.workflow.stage import Needs, Stage

SCRIPT = """\
\"\"\"Copy a number, scaled.\"\"\"
from dataclasses import dataclass

from epistemic_calibration.workflow.stage import Needs, Stage, logger


@dataclass(frozen=True, kw_only=True)
class Settings:
    factor: float


def step(job):
    logger.info("scaling by %g", job.settings.factor)
    with open(job.inputs.number) as file:
        number = float(file.read())
    for k, path in enumerate(job.outputs.scaled):
        with open(path, "w") as file:
            file.write(str(number * job.settings.factor + k))
        job.finish(path)
    {fault}


STAGE = Stage(
    Settings, None, step, inputs=("number",), outputs=("scaled*",), one_by_one={one_by_one}
)

if __name__ == "__main__":
    STAGE.run()
"""
UPSTREAM = "c" * 64
INPUT = "results/number.txt"
OUTPUTS = ["results/scaled/0.txt", "results/scaled/1.txt"]


class Folder:
    def __init__(self, path):
        self.path = path
        (path / "results" / "scaled").mkdir(parents=True)
        (path / INPUT).write_text("2.5")
        write_receipt(INPUT, UPSTREAM)
        self.write_script("pass")

    def write_script(self, fault, one_by_one=False):
        text = SCRIPT.format(fault=fault, one_by_one=one_by_one)
        (self.path / "scale.py").write_text(text)

    def spec(self, **changes):
        source_hashes.cache_clear()
        code_hash.cache_clear()
        code_of.cache_clear()
        spec = {
            "stage": "scale",
            "where": {"dataset": "digits"},
            "threads": 1,
            "settings": {"factor": 3.0},
            "sources": source_hashes(self.path, self.path / "scale.py"),
            "inputs": {"number": UPSTREAM},
        }
        return {**spec, **changes}

    def run(self, spec, *arguments):
        write_spec(spec)
        command = [sys.executable, "scale.py", "--spec", spec_path(spec), "--log", "log.txt"]
        paths = ["--number", INPUT, "--scaled", *OUTPUTS]
        return subprocess.run(
            [*command, *(arguments or paths)],
            cwd=self.path,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        )

    def log(self):
        return (self.path / "log.txt").read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def receipts(folder):
    return [path for path in OUTPUTS if read_receipt(path, folder.path)]


def test_a_job_writes_its_outputs_and_their_receipts(folder):
    spec = folder.spec()
    done = folder.run(spec)
    assert done.returncode == 0, done.stderr
    assert [float((folder.path / path).read_text()) for path in OUTPUTS] == [7.5, 8.5]
    for path in OUTPUTS:
        assert read_receipt(path)["fingerprint"] == fingerprint(spec)
    log = (folder.path / "log.txt").read_text()
    assert "scaling by 3" in log
    assert "done in" in log
    assert done.stdout == done.stderr == ""


@pytest.mark.fault
def test_a_failing_step_leaves_no_receipt_and_its_reason_at_the_end_of_the_log(folder):
    folder.write_script('raise RuntimeError("out of luck")')
    done = folder.run(folder.spec())
    assert done.returncode == 1
    assert done.stdout == done.stderr == ""
    assert "Traceback" in folder.log()
    # In one line, with the line to blame, for the screen of the run and for its status.
    line = 1 + (folder.path / "scale.py").read_text().splitlines().index(
        '    raise RuntimeError("out of luck")'
    )
    expected = Outcome("failed", f"scale.py, line {line}: RuntimeError: out of luck")
    assert read_outcome("log.txt") == expected
    assert receipts(folder) == []


@pytest.mark.fault
def test_an_interrupted_step_says_so_without_a_traceback(folder):
    folder.write_script("raise KeyboardInterrupt")
    done = folder.run(folder.spec())
    assert done.returncode == 128 + signal.SIGINT
    assert done.stdout == done.stderr == ""
    assert "interrupted after" in folder.log()
    assert "Traceback" not in folder.log()
    assert receipts(folder) == []


@pytest.mark.fault
def test_an_input_of_another_spec_is_refused_before_the_step(folder):
    done = folder.run(folder.spec(inputs={"number": "d" * 64}))
    assert done.returncode == 1
    assert "results/number.txt was made from other settings" in folder.log()
    assert not (folder.path / OUTPUTS[0]).exists()


@pytest.mark.fault
def test_an_edited_input_is_refused_before_the_step(folder):
    stat = Path(INPUT).stat()
    (folder.path / INPUT).write_text("2.6")
    os.utime(INPUT, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    done = folder.run(folder.spec())
    assert done.returncode == 1
    assert "results/number.txt is not what the job that made it has written" in folder.log()
    assert not (folder.path / OUTPUTS[0]).exists()


@pytest.mark.fault
def test_a_source_edited_since_the_plan_leaves_no_receipt(folder):
    spec = folder.spec()
    folder.write_script("job.settings.factor")
    done = folder.run(spec)
    assert done.returncode == 1
    assert "scale.py was edited since the run began" in folder.log()
    assert not (folder.path / OUTPUTS[0]).exists()


@pytest.mark.fault
@pytest.mark.parametrize("name", ["scale.py", INPUT])
def test_what_is_edited_and_restored_while_the_job_runs_leaves_no_receipt(folder, name):
    folder.write_script(
        f"import pathlib; p = pathlib.Path({name!r}); t = p.read_text(); "
        "p.write_text(t + ' '); p.write_text(t)"
    )
    done = folder.run(folder.spec())
    assert done.returncode == 1
    assert f"{name} was changed while the job ran" in folder.log()
    assert receipts(folder) == []


@pytest.mark.fault
def test_a_job_that_does_not_finish_leaves_no_receipt_of_an_earlier_one(folder):
    assert folder.run(folder.spec()).returncode == 0
    assert receipts(folder) == OUTPUTS
    folder.write_script("import os; os._exit(9)")
    assert folder.run(folder.spec()).returncode == 9
    assert receipts(folder) == []


@pytest.mark.fault
def test_a_job_that_makes_its_outputs_one_by_one_keeps_those_that_are_finished(folder):
    folder.write_script("pass", one_by_one=True)
    script = folder.path / "scale.py"
    finish = "        job.finish(path)\n"
    fault = "        if k and os.path.exists('armed'):\n            raise RuntimeError('no luck')\n"
    text = script.read_text().replace(finish, fault + finish)
    script.write_text(text.replace("from dataclasses", "import os\nfrom dataclasses", 1))
    (folder.path / "armed").touch()
    spec = folder.spec()
    assert folder.run(spec).returncode == 1
    assert receipts(folder) == OUTPUTS[:1]
    first = Path(OUTPUTS[0]).stat().st_ino, Path(OUTPUTS[0]).read_text()
    (folder.path / "armed").unlink()
    assert folder.run(spec).returncode == 0
    assert receipts(folder) == OUTPUTS
    assert (Path(OUTPUTS[0]).stat().st_ino, Path(OUTPUTS[0]).read_text()) == first
    assert f"finished before: {OUTPUTS[0]}" in folder.log()
    # And where all of them are.
    assert folder.run(spec).returncode == 0
    assert receipts(folder) == OUTPUTS


def test_what_inputs_were_made_with_is_handed_on(folder):
    write_receipt(INPUT, UPSTREAM, (), {"numpy": ["1.0"], "device": ["A GPU"]})
    folder.write_script("import numpy")
    assert folder.run(folder.spec()).returncode == 0
    made = read_receipt(OUTPUTS[0])["made_with"]
    assert made["device"] == ["A GPU"]
    assert made["numpy"] == ["1.0", version("numpy")]


WARNING = """\
import warnings
    for _ in range(3):
        warnings.warn(f"the chain has not converged", RuntimeWarning)
        warnings.warn("soon gone", DeprecationWarning)
    logger.warning("the loss is %.2f", 0.5)
"""


def test_what_a_job_warns_of_is_in_its_receipts_and_counted(folder):
    folder.write_script(WARNING)
    assert folder.run(folder.spec()).returncode == 0
    found = read_receipt(OUTPUTS[1])["warnings"]
    assert found == read_receipt(OUTPUTS[0])["warnings"]
    line = 1 + next(
        k
        for k, text in enumerate((folder.path / "scale.py").read_text().splitlines())
        if "converged" in text
    )
    origin = {"job": OUTPUTS[0], "stage": "scale", "where": {"dataset": "digits"}}
    chain = f"RuntimeWarning: the chain has not converged (scale.py, line {line})"
    assert found == [
        {**origin, "text": chain, "count": 3},
        {**origin, "text": "the loss is 0.50", "count": 1},
    ]
    assert folder.log().count("WARNING") == 2


def test_what_the_jobs_before_warned_of_is_handed_on(folder):
    before = {"job": INPUT, "stage": "encoder", "where": {}, "text": "no better", "count": 1}
    write_receipt(INPUT, UPSTREAM, [before])
    folder.write_script("logger.warning('%d before', len(job.warnings))")
    assert folder.run(folder.spec()).returncode == 0
    found = read_receipt(OUTPUTS[0])["warnings"]
    assert [warning["text"] for warning in found] == ["no better", "1 before"]
    assert found[0] == before


@pytest.mark.fault
def test_paths_outside_the_results_are_refused(folder):
    paths = ["--number", INPUT, "--scaled", "elsewhere.txt"]
    done = folder.run(folder.spec(), *paths)
    assert done.returncode == 1
    assert "elsewhere.txt: paths begin with results/" in folder.log()


@pytest.mark.fault
def test_a_spec_of_another_stage_is_refused(folder):
    done = folder.run(folder.spec(stage="shrink"))
    assert done.returncode == 1
    assert "is a spec of the stage shrink" in folder.log()


@pytest.mark.fault
def test_a_setting_that_the_stage_does_not_have_is_refused(folder):
    done = folder.run(folder.spec(settings={"factr": 3.0}))
    assert done.returncode == 1
    assert "factr" in folder.log()


@pytest.mark.fault
def test_missing_options_are_named(folder):
    done = folder.run(folder.spec(), "--scaled", *OUTPUTS)
    assert done.returncode == 2
    assert "--number" in done.stderr


@dataclass(frozen=True, kw_only=True)
class Settings:
    n_bins: int


@dataclass(frozen=True, kw_only=True)
class Others:
    n_bins: int


def test_settings_of_another_type_fail_when_the_plan_is_made():
    stage = Stage(Settings, lambda plan: Needs(Settings(n_bins=3)), lambda job: None)
    assert stage.spec_settings(Settings(n_bins=3)) == {"n_bins": 3}
    with pytest.raises(TypeError, match="settings are"):
        stage.spec_settings(Others(n_bins=3))
    with pytest.raises(TypeError, match="n_bin"):
        Settings(n_bin=3)


def test_threads_are_those_of_the_spec(folder):
    import_numpy = "import os, json; print(json.dumps(os.environ['OMP_NUM_THREADS']))"
    folder.write_script(import_numpy)
    assert folder.run(folder.spec(threads=3)).returncode == 0
    assert '\n"3"\n' in (folder.path / "log.txt").read_text()


def test_what_a_step_prints_goes_to_the_log(folder):
    folder.write_script(
        "import subprocess, sys, os; print('plain'); print('to stderr', file=sys.stderr); "
        "os.write(1, b'native\\n'); subprocess.run(['echo', 'a child'])"
    )
    done = folder.run(folder.spec())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    lines = (folder.path / "log.txt").read_text().splitlines()
    assert {"plain", "to stderr", "native", "a child"} <= set(lines)
    assert lines[-1].partition("INFO ")[2].startswith("done in")


@pytest.mark.fault
def test_a_million_lines_flood_neither_the_screen_nor_the_log(folder):
    folder.write_script("[print('line', k) for k in range(1_000_000)]; raise ValueError('late')")
    done = folder.run(folder.spec())
    assert done.stdout == done.stderr == ""
    assert read_outcome("log.txt").reason.endswith("ValueError: late")
    log = (folder.path / "log.txt").read_text()
    assert "line 100\n" in log
    assert len(log) < 20_000
    # 5 characters, a digit or more, and the end of the line.
    n_printed = sum(len(f"line {k}\n") for k in range(1_000_000))
    assert f"{n_printed - 10_000} characters of what was printed are left out" in log


def test_a_warning_that_comes_ten_times_is_shown_once_with_its_number(folder):
    folder.write_script(
        "import warnings; warnings.simplefilter('always'); "
        "[warnings.warn('not converged') for _ in range(10)]; warnings.warn('another')"
    )
    assert folder.run(folder.spec()).returncode == 0
    log = (folder.path / "log.txt").read_text()
    assert log.count("UserWarning: not converged") == 2
    assert "warned 10 times: " in log
    assert log.count("UserWarning: another") == 1


@pytest.fixture
def elsewhere(tmp_path_factory):
    """A folder outside the working folder, with a module and a file of numbers."""
    path = tmp_path_factory.mktemp("elsewhere")
    (path / "helper_far_away.py").write_text("VALUE = 3\n")
    (path / "numbers.csv").write_text("1,2\n")
    return path


READ = {
    "by open": "open({file!r}).read()",
    "by Path": "import pathlib; pathlib.Path({file!r}).read_bytes()",
    "by numpy": "import numpy; numpy.loadtxt({file!r}, delimiter=',')",
    "by a map": "import numpy; numpy.memmap({file!r})",
    "by pandas": "import pandas; pandas.read_csv({file!r})",
    "by an import": "import sys; sys.path.append({folder!r}); __import__('helper_far_away')",
    "by runpy": "import runpy; runpy.run_path({module!r})",
    "by importlib": "import importlib.util as u; s = u.spec_from_file_location('far', {module!r}); "
    "m = u.module_from_spec(s); s.loader.exec_module(m)",
    "by a variable": "import os; open(os.environ['NUMBERS']).read()",
}


@pytest.mark.fault
@pytest.mark.parametrize("how", READ)
@pytest.mark.parametrize("inside", [True, False])
def test_a_file_that_the_spec_does_not_list_is_refused(folder, elsewhere, monkeypatch, how, inside):
    if inside:
        place = folder.path / "data"
        place.mkdir()
        for path in elsewhere.iterdir():
            path.rename(place / path.name)
    else:
        place = elsewhere
    file, module = place / "numbers.csv", place / "helper_far_away.py"
    monkeypatch.setenv("NUMBERS", str(file))
    time.sleep(0.1)
    folder.write_script(READ[how].format(file=str(file), module=str(module), folder=str(place)))
    done = folder.run(folder.spec())
    used = file if file.name in READ[how].format(file=file, module="", folder="") else module
    used = file if "NUMBERS" in READ[how] else used
    shown = os.path.relpath(used, folder.path)
    assert done.returncode == 1
    assert f"{shown}, which " in folder.log()
    assert f"depends_on: [{shown}]" in folder.log()
    assert receipts(folder) == []
    # Once it is listed, it may be read.
    spec = folder.spec()
    spec["sources"] = source_hashes(folder.path, folder.path / "scale.py", used)
    assert folder.run(spec).returncode == 0


def test_what_the_job_has_made_and_what_belongs_to_libraries_may_be_read(folder):
    folder.write_script(
        "import json, numpy, pandas, tempfile, zoneinfo, inspect; "
        "open('scratch.txt', 'w').write('1'); open('scratch.txt').read(); "
        "inspect.getsource(json); open('/proc/cpuinfo').read(); zoneinfo.ZoneInfo('Europe/Paris'); "
        "f = tempfile.NamedTemporaryFile(); open(f.name).read()"
    )
    done = folder.run(folder.spec())
    assert done.returncode == 0, done.stderr
