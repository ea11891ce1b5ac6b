"""Faults of every kind: what the screen says, and that no finished result is lost or wrong."""

import ast
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml

from epistemic_calibration.workflow.provenance import read_npz

ROOT = Path(__file__).parents[2]
SEED = Path("results", "digits", "seed0")
TABLES = "results/tables/digits.md"

METHOD = """\
import os, signal, time
from pathlib import Path
import numpy as np
from epistemic_calibration.methods import Method

class Own(Method):
    label = "own"
    n_calls = 0

    def __init__(self, *, random_state=0):
        self.random_state = random_state

    def fit(self, X, y):
        self.p_ = y.mean()
        return self

    def sample_hypotheses(self, X):
        Own.n_calls += 1
        good = np.full((len(X), 4), self.p_)
        {fault}
"""
FAULTS = {
    "raising": "raise RuntimeError('out of luck')",
    "undefined": "good[7] = np.nan; return good",
    "beyond": "return good + 1",
    "short": "return good[:-1]",
    # In the middle of a job: one of its files is written, the other is not.
    "killed": "if Own.n_calls == 2 and Path('armed').exists(): "
    "os.kill(os.getpid(), signal.SIGKILL)\n        return good",
}
SAYS = {
    "raising": ["RuntimeError: out of luck"],
    "undefined": ["hypotheses has 4 values that are NaN or infinite"],
    "beyond": ["hypotheses lies in [1.", "expected values in [0, 1]"],
    "short": ["hypotheses has shape (199, 4), expected (200, n_hypotheses)"],
    "killed": ["SIGKILL"],
}


def screen(done):
    return done.stdout + done.stderr


def contents(folder):
    """Return the bytes of every result file below a folder, by path; logs and timings are none."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in (".npz", ".csv", ".safetensors")
    }


def own_method(project, name, fault):
    (project.folder / f"{name}.py").write_text(METHOD.format(fault=fault))
    project.configure(lambda c: c["methods"].update({name: {"file": f"{name}.py"}}))


def wait_for(condition, process=None, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end or (process is not None and process.poll() is not None):
            output = process.communicate(timeout=5)[0] if process else ""
            pytest.fail(f"what the test waits for did not happen: {output}")
        time.sleep(0.1)


def start(project, *arguments):
    """Start a run and leave it running."""
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@contextlib.contextmanager
def mounted(folder, *options):
    """Mount something on a folder, or skip the test where that is not allowed."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine allows no mount: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.fault
def test_broken_methods_and_a_killed_job_spoil_nobody_elses_results(project):
    project.configure(lambda c: c.update(tasks_per_job=10))
    before = contents(project.folder / "results" / "digits")
    for name, fault in FAULTS.items():
        own_method(project, name, fault)
    own_method(project, "healthy", "return good")
    (project.folder / "armed").touch()

    done = project.run("digits", check=False)
    assert done.returncode != 0
    for name, messages in SAYS.items():
        for message in messages:
            assert message in screen(done), name
        # What a job has finished stays, and no half of a file is left behind.
        left = list((project.folder / SEED / "hypotheses").glob(f"{name}/*.npz"))
        assert [path.name for path in left] == (["0.npz"] if name == "killed" else [])
        for path in left:
            read_npz(path)
    after = contents(project.folder / "results" / "digits")
    # They compare every method with all others.
    for found in (before, after):
        found.pop(Path(SEED).relative_to("results/digits") / "bounds.csv")
    assert {path: after[path] for path in before} == before
    assert (project.folder / SEED / "scores" / "healthy.csv").is_file()

    project.run("collect")
    partial = (project.folder / "results/partial/digits_summary.md").read_text()
    assert "healthy" in partial
    assert "Random Forest" in partial
    assert "missing" in partial.lower()
    for name in FAULTS:
        assert name in partial

    (project.folder / "armed").unlink()
    project.configure(lambda c: [c["methods"].pop(n) for n in FAULTS if n != "killed"])
    project.run(TABLES)
    final = contents(project.folder / "results" / "digits")
    assert {path: final[path] for path in after} == after
    for task in ("0", "3", "8"):
        with np.load(project.folder / SEED / f"hypotheses/killed/{task}.npz") as file:
            assert np.allclose(file["hypotheses"], file["hypotheses"][0, 0])
            assert 0 < file["hypotheses"][0, 0] < 1
    assert "killed" in (project.folder / TABLES).read_text()


@pytest.mark.fault
def test_a_task_that_fails_takes_no_finished_one_with_it(project):
    project.configure(lambda c: c.update(tasks_per_job=1))
    fails = "if Path('armed').exists(): raise RuntimeError('out of luck')\n        return good"
    own_method(project, "fickle", fails)
    files = [f"{SEED}/hypotheses/fickle/{task}.npz" for task in ("0", "3", "8")]
    project.run(*files)
    whole = {name: (project.folder / name).read_bytes() for name in files}

    # Now one job is to make the missing one of the three.
    project.configure(lambda c: c.update(tasks_per_job=10))
    (project.folder / files[1]).unlink()
    (project.folder / "armed").touch()
    done = project.run(*files, check=False)
    assert done.returncode != 0
    assert "out of luck" in screen(done)
    for name in (files[0], files[2]):
        assert (project.folder / name).read_bytes() == whole[name]
    (project.folder / "armed").unlink()
    project.run(*files)
    for name in files:
        assert (project.folder / name).read_bytes() == whole[name]
    log = (project.folder / "results/logs/digits/seed0/hypotheses/fickle.0.log").read_text()
    assert f"finished before: {files[0]}, {files[2]}" in log
    # Whoever asks for a job gets all of it.
    project.run("--force", files[0])
    log = (project.folder / "results/logs/digits/seed0/hypotheses/fickle.0.log").read_text()
    assert "finished before" not in log


@pytest.mark.fault
def test_files_dated_in_the_future_are_as_good_as_others(project):
    future = time.time() + 1e6
    for path in (project.folder / SEED / "latents.npz", project.folder / "rules" / "common.smk"):
        os.utime(path, (future, future))
    assert project.planned() == []
    project.configure(lambda c: c["methods"]["random_forest"].update(n_estimators=6))
    project.run(f"{SEED}/hypotheses/random_forest/0.npz")
    project.run(f"{SEED}/hypotheses/random_forest/8.npz")
    assert (project.folder / SEED / "hypotheses/random_forest/0.npz").is_file()


@pytest.mark.fault
def test_a_data_set_that_is_not_there_stops_no_other(project):
    block = {"source": "image_folder", "path": "lost"}
    project.configure(lambda c: c["datasets"].update(my_images=block))
    assert project.planned("digits") == [
        "Making the page results/digits/report.html",
        "Writing the resolved configuration",
    ]
    for target in ("my_images", "results/my_images/images.npz"):
        done = project.run("--dry-run", target, check=False)
        assert done.returncode != 0
        assert "datasets.my_images: no such folder: data/lost" in screen(done)
        assert "Traceback" not in screen(done)
    project.configure(lambda c: c["benchmark"].append("my_images"))
    assert "datasets.my_images: no such folder" in refused(project)


@pytest.mark.fault
def test_the_workflow_is_no_module_of_another(project):
    other = project.folder.parent / "other"
    other.mkdir()
    (other / "Snakefile").write_text(
        f"module calibration:\n    snakefile: {str(project.folder / 'Snakefile')!r}\n"
        "    config: config\n"
        "use rule * from calibration\n"
    )
    done = type(project)(other).run("--dry-run", check=False)
    assert done.returncode != 0
    assert "this workflow cannot be a module or a part of another" in screen(done)


@pytest.mark.fault
def test_the_results_of_somebody_else_are_told_in_one_line(project):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("running as another user needs root and setpriv")
    # Whatever else the folder has may be read.
    for path in (project.folder, *project.folder.parents):
        if path.is_relative_to(Path("/tmp")) and path != Path("/tmp"):
            path.chmod(0o755)
    (project.folder / ".snakemake").mkdir(exist_ok=True)
    for path in (project.folder / ".snakemake", *(project.folder / ".snakemake").rglob("*")):
        os.chown(path, 65534, 65534)
    before = contents(project.folder / "results")
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "results/tables/digits.md"]
    project.configure(lambda c: c["datasets"]["digits"]["scores"].update(n_bins=11))
    options = ["--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run(
        ["setpriv", *options, *command],
        cwd=project.folder,
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(project.folder / ".snakemake")},
    )
    if "No module named" in screen(done):
        pytest.skip("another user must not read this Python")
    assert done.returncode != 0
    assert "Traceback" not in screen(done)
    assert re.search(
        r"results/\S+ (cannot be written: Permission denied|cannot be read)", screen(done)
    ) or ("Write-protected" in screen(done))
    assert contents(project.folder / "results") == before


@pytest.mark.fault
def test_a_killed_run_says_how_to_go_on_and_its_remains_are_removed(project):
    waits = "Path('started').touch()\n        while not Path('go').exists(): time.sleep(0.05)"
    own_method(project, "waiting", f"{waits}\n        return good")
    file = f"{SEED}/hypotheses/waiting/8.npz"
    process = start(project, file)
    wait_for((project.folder / "started").exists, process)
    process.kill()
    process.wait()
    # Its job goes on, and must not get a second one beside it, with or without the lock.
    (pid,) = fits_at_work(project)
    refused = [project.run(file, check=False)]
    project.run("--unlock")
    refused.append(project.run(file, check=False))
    for done in refused:
        assert done.returncode != 0
        assert f"make results that this one would make, too: processes {pid}." in screen(done)
        assert f"\n  kill {pid}\nThen type\n  snakemake --unlock\n" in screen(done)
        assert "common.smk" not in screen(done)
    (project.folder / "go").touch()
    wait_for(lambda: not fits_at_work(project))
    old = project.folder / SEED / ".8.npz.abcd_123.npz"
    old.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert "1 temporary files of a run that was killed are removed" in screen(project.run(file))
    assert not old.exists()


def fits_at_work(project):
    """Return the numbers of the processes that fit a method in the project."""
    found, here = [], str(project.folder.resolve())
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if "workflow_scripts/hypotheses.py" in process.cmdline() and process.cwd() == here:
                found.append(process.pid)
    return found


@pytest.mark.fault
def test_a_run_whose_terminal_is_closed_leaves_no_lock(project):
    waits = "Path('started').touch()\n        while not Path('go').exists(): time.sleep(0.05)"
    own_method(project, "waiting", f"{waits}\n        return good")
    file = f"{SEED}/hypotheses/waiting/8.npz"
    process = start(project, file)
    wait_for((project.folder / "started").exists, process)
    process.send_signal(signal.SIGHUP)
    (project.folder / "go").touch()
    process.communicate(timeout=120)
    locks = project.folder / ".snakemake" / "locks"
    assert not locks.is_dir() or not list(locks.iterdir())
    project.run(file)


@pytest.mark.fault
def test_a_method_that_worked_and_now_fails_is_left_out_of_the_partial_tables(project):
    project.configure(lambda c: c.update(tasks_per_job=10))
    own_method(project, "fickle", "return good")
    project.run(TABLES)
    own_method(project, "fickle", FAULTS["raising"])
    assert project.run(TABLES, check=False).returncode != 0
    project.run("collect")
    partial = (project.folder / "results/partial/digits_summary.md").read_text()
    assert "Random Forest" in partial
    assert "Missing: own" in partial and "| own |" not in partial, partial


def damage(path, contents):
    """Overwrite a file as a failing disk does: nothing looks newer."""
    stat = path.stat()
    path.write_bytes(contents)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.fault
def test_a_truncated_file_is_named_before_anything_runs(project):
    latents = project.folder / SEED / "latents.npz"
    whole = latents.read_bytes()
    damage(latents, whole[: len(whole) // 2])
    project.configure(lambda c: c["methods"]["random_forest"].update(n_estimators=6))
    tables = project.tables()
    done = project.run(TABLES, check=False)
    assert done.returncode != 0
    assert "cannot be read as what was written: truncated, or changed since" in screen(done)
    assert str(SEED / "latents.npz") in screen(done)
    assert project.tables() == tables

    latents.unlink()
    project.run(TABLES)
    assert latents.read_bytes() == whole


@pytest.mark.fault
def test_a_file_with_a_flipped_bit_is_named_before_anything_runs(project):
    hypotheses = project.folder / SEED / "hypotheses" / "eknn" / "3.npz"
    whole = hypotheses.read_bytes()
    damaged = bytearray(whole)
    damaged[len(damaged) // 3] ^= 0x10
    damage(hypotheses, damaged)
    project.configure(lambda c: c["datasets"]["digits"]["scores"].update(n_bins=11))
    before = contents(project.folder / "results")
    done = project.run(TABLES, check=False)
    assert done.returncode != 0
    assert f"{SEED}/hypotheses/eknn/3.npz cannot be read" in screen(done)
    assert "Delete it; it is made again, as it was, when a job needs it" in screen(done)
    assert contents(project.folder / "results") == before

    hypotheses.unlink()
    project.run(TABLES)
    assert ",11.0," in (project.folder / SEED / "scores/eknn.csv").read_text()
    assert hypotheses.read_bytes() == whole


@pytest.mark.fault
@pytest.mark.parametrize("name", ["latents.npz", "encoder.safetensors", "hypotheses/eknn/3.npz"])
def test_a_file_that_was_damaged_and_looks_newer_costs_no_other(project, name):
    damaged = project.folder / SEED / name
    whole = damaged.read_bytes()
    before = contents(project.folder / "results")
    damaged.write_bytes(whole[: len(whole) // 2])
    done = project.run(check=False)
    assert done.returncode != 0
    assert f"{SEED / name} cannot be read" in screen(done)
    assert "Delete it" in screen(done)
    damaged.unlink()
    project.run(str(SEED / name))
    after = contents(project.folder / "results")
    # The losses come with the seconds that each epoch took.
    changed = {path for path in before if after[path] != before[path]}
    assert changed <= {Path("digits", "seed0", "encoder_loss.csv")}


def small_images(**changes):
    rng = np.random.default_rng(0)
    arrays = {
        "x_train": rng.integers(0, 256, (40, 8, 8), dtype=np.uint8),
        "y_train": np.arange(40) % 2,
        "x_test": rng.integers(0, 256, (20, 8, 8), dtype=np.uint8),
        "y_test": np.arange(20) % 2,
    }
    return {**arrays, **changes}


@pytest.mark.fault
def test_broken_data_sets_are_named_and_leave_the_others_alone(project):
    folder = project.folder / "data"
    folder.mkdir()
    nan = small_images()["x_train"] / np.float32(255)
    nan[3, 2, 2] = np.nan
    broken = {
        "missing_class": small_images(y_test=np.zeros(20, dtype=int)),
        "lengths": small_images(y_train=np.arange(39) % 2),
        "not_a_number": small_images(x_train=nan, x_test=np.zeros((20, 8, 8), np.float32)),
        "shape": small_images(x_train=np.zeros((40, 64), np.uint8)),
        "sizes": small_images(x_test=np.zeros((20, 9, 8), np.uint8)),
    }
    blocks = {}
    for name, arrays in broken.items():
        np.savez(folder / f"{name}.npz", **arrays)
        blocks[name] = {"source": "npz", "path": f"{name}.npz"}
    for part in ("train", "test"):
        for k in ("cat", "dog"):
            (folder / "pictures" / part / k).mkdir(parents=True)
            (folder / "pictures" / part / k / "1.png").write_bytes(b"no picture")
    blocks["pictures"] = {"source": "image_folder", "path": "pictures"}
    project.configure(lambda c: c["datasets"].update(blocks))

    done = project.run("digits", *(f"results/{name}/images.npz" for name in blocks), check=False)
    assert done.returncode != 0
    for expected in (
        "missing_class.npz: the test set has no input of class 1",
        "lengths.npz: x_train has 40 inputs, but y_train 39 labels",
        "not_a_number.npz: x_train has pixels that are NaN, first in image 3",
        "shape.npz: x_train has 64 features, but x_test images of (8, 8, 1)",
        "sizes.npz: x_train has images of (8, 8, 1) (height, width, channels), but x_test images "
        "of (9, 8, 1)",
        "pictures: 4 files cannot be read as images: train/cat/1.png",
    ):
        assert expected in screen(done)
    assert not list(project.folder.glob("results/[!d]*/images.npz"))
    project.configure(lambda c: [c["datasets"].pop(name) for name in blocks])
    assert project.planned("digits") == [
        "Making the page results/digits/report.html",
        "Writing the resolved configuration",
    ]


@pytest.mark.fault
def test_a_single_class_is_refused_before_anything_runs(project):
    (project.folder / "data").mkdir()
    labels = {"y_train": np.zeros(40, dtype=int), "y_test": np.zeros(20, dtype=int)}
    np.savez(project.folder / "data" / "one.npz", **small_images(**labels))
    block = {"source": "npz", "path": "one.npz"}
    project.configure(lambda c: c["datasets"].update(one=block))
    done = project.run("--dry-run", check=False)
    assert done.returncode != 0
    assert "at least two are needed" in screen(done)
    assert "datasets.one: the data set has the classes" in screen(done)
    assert "Traceback" not in screen(done)


@pytest.mark.fault
def test_a_full_disk_loses_nothing(project):
    results, aside = project.folder / "results", project.folder / "aside"
    results.rename(aside)
    results.mkdir()
    # 500 trees on 200 images and three tasks: over a megabyte of hypotheses.
    entry = {"method": "random_forest", "n_estimators": 500}
    project.configure(lambda c: c["methods"].update(forest=entry))
    with mounted(results, "-t", "tmpfs", "-o", "size=64m", "tmpfs"):
        shutil.copytree(aside, results, dirs_exist_ok=True)
        disk = os.statvfs(results)
        used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
        resize = ["mount", "-o", f"remount,size={used + 400_000}", str(results)]
        subprocess.run(resize, check=True)
        before = contents(results)
        done = project.run(TABLES, check=False)
        assert done.returncode != 0
        assert "No space left on device" in screen(done)
        after = contents(results)
        assert {path: after[path] for path in before} == before
        # What a job could finish is whole; what it could not is not there.
        for path in results.glob("digits/seed0/hypotheses/forest/*.npz"):
            read_npz(path)
        assert not list(results.rglob(".*.npz"))

        subprocess.run(["mount", "-o", "remount,size=64m", str(results)], check=True)
        project.run(TABLES)
        assert "forest" in (project.folder / TABLES).read_text()


@pytest.mark.fault
def test_read_only_results_are_named_and_stay(project):
    results = project.folder / "results"
    before = contents(results)
    project.configure(lambda c: c["datasets"]["digits"]["scores"].update(n_bins=11))
    with mounted(results, "--bind", str(results)):
        remount = ["mount", "-o", "remount,bind,ro", str(results)]
        done = subprocess.run(remount, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"this machine allows no read-only mount: {done.stderr.strip()}")
        done = project.run(TABLES, check=False)
        assert done.returncode != 0
        assert "Write-protected output files" in screen(done)
        # Of whichever job Snakemake looks at first.
        assert re.search(r"results/(digits/seed0|tables)/", screen(done))
        assert contents(results) == before
    project.run(f"{SEED}/scores/eknn.csv")


@pytest.mark.fault
def test_a_second_run_in_the_same_folder_is_refused(project):
    waits = "Path('started').touch()\n        while not Path('go').exists(): time.sleep(0.05)"
    own_method(project, "waiting", f"{waits}\n        return good")
    project.configure(lambda c: c.update(tasks_per_job=10))
    first = start(project, TABLES)
    try:
        wait_for((project.folder / "started").exists, first)
        second = project.run(TABLES, check=False)
    finally:
        (project.folder / "go").touch()
        output, _ = first.communicate(timeout=120)
    assert second.returncode != 0
    assert "This folder is locked" in screen(second)
    assert first.returncode == 0, output
    assert " own " in (project.folder / TABLES).read_text()


def refused(project):
    done = project.run("--dry-run", check=False)
    assert done.returncode != 0
    assert "Traceback" not in screen(done)
    return screen(done)


@pytest.mark.fault
def test_faults_of_form_in_the_configuration_are_all_named(project):
    def spoil(config):
        config["scores"]["n_bin"] = 10
        config["seeds"] = "0"
        config["device"] = "gpu"
        config["datasets"]["../escaped"] = config["datasets"]["digits"]
        config["methods"]["a/b"] = {"method": "random_forest"}

    project.configure(spoil)
    said = refused(project)
    assert "scores.n_bin: unknown key, did you mean 'n_bins'?" in said
    assert "seeds: '0' should be a valid list" in said
    assert "device: 'gpu' should be 'auto', 'cpu' or 'cuda'" in said
    assert "'../escaped' does not match" in said
    assert "'a/b' does not match" in said
    assert not (project.folder / "escaped").exists()


@pytest.mark.fault
def test_faults_of_meaning_in_the_configuration_are_all_named(project):
    def spoil(config):
        config["benchmark"].append("digit")
        config["methods"]["random_forst"] = {}
        config["methods"]["Random_Forest"] = {"method": "random_forest"}
        config["methods"]["eknn"]["alpa"] = 0.3
        config["methods"]["elsewhere"] = {"file": "no/such.py"}
        config["controls"]["base_rate"]["datasets"] = ["mnsit"]
        config["datasets"]["tables"] = config["datasets"]["digits"]

    project.configure(spoil)
    said = refused(project)
    assert "benchmark: 'digit' is not a data set, did you mean 'digits'?" in said
    assert "no method 'random_forst', did you mean 'random_forest'?" in said
    assert "methods.Random_Forest: the name is taken by methods.random_forest" in said
    assert "methods.eknn.alpa: unknown key, did you mean 'alpha'?" in said
    assert "no such method file: no/such.py" in said
    assert "controls.base_rate.datasets: 'mnsit' is not a data set" in said
    assert "datasets.tables: the name is reserved" in said


@pytest.mark.fault
def test_a_name_given_twice_is_refused(project):
    path = project.folder / "config.yaml"
    text = path.read_text()
    assert yaml.safe_load(text)["methods"]["eknn"]
    path.write_text(text.replace("\nmethods:\n", "\nmethods:\n  eknn: {n_hypotheses: 30}\n"))
    said = refused(project)
    assert "eknn" in said
    assert "twice" in said


@pytest.mark.fault
def test_no_pickle_is_loaded_anywhere():
    banned = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    for path in sorted((ROOT / "workflow_scripts").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                assert not banned & {a.name.split(".")[0] for a in node.names}, where
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in banned, where
            elif isinstance(node, ast.Call):
                given = {k.arg: k.value for k in node.keywords}
                called = ast.unparse(node.func)
                assert called not in ("pd.read_pickle", "pandas.read_pickle"), where
                allowed = given.get("allow_pickle", ast.Constant(False))
                assert ast.unparse(allowed) == "False", where
                if called == "torch.load":
                    assert ast.unparse(given.get("weights_only", ast.Constant(False))) == "True", (
                        where
                    )
