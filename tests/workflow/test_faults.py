"""Faults of every kind: what the screen says, and that no finished result is lost or wrong."""

import ast
import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

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

    def __init__(self, *, random_state=0):
        self.random_state = random_state

    def fit(self, X, y):
        self.p_ = y.mean()
        return self

    def sample_hypotheses(self, X):
        good = np.full((len(X), 4), self.p_)
        {fault}
"""
FAULTS = {
    "undefined": "good[7] = np.nan; return good",
    "beyond": "return good + 1",
    "short": "return good[:-1]",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
}
SAYS = {
    "undefined": ["hypotheses has 4 values that are NaN or infinite"],
    "beyond": ["hypotheses lies in [1.", "expected values in [0, 1]"],
    "short": ["hypotheses has shape (199, 4), expected (200, n_hypotheses)"],
    "killed": ["results/logs/digits/seed0/hypotheses/killed.log"],
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
    before = contents(project.folder / "results" / "digits")
    for name, fault in FAULTS.items():
        own_method(project, name, fault)
    own_method(project, "healthy", "return good")
    done = project.run("digits", check=False)
    assert done.returncode != 0
    for name, messages in SAYS.items():
        for message in messages:
            assert message in screen(done), name
        assert not (project.folder / SEED / "hypotheses" / name).exists()
    after = contents(project.folder / "results" / "digits")
    # They compare every method with all others.
    for found in (before, after):
        found.pop(SEED.relative_to("results/digits") / "bounds.csv", None)
    assert {path: after[path] for path in before if path in after} == before
    assert (project.folder / SEED / "scores" / "healthy.csv").is_file()


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
        # What a job could not finish is not there.
        assert not (results / "digits/seed0/hypotheses/forest").exists()
        assert not list(results.rglob(".*.npz"))

        subprocess.run(["mount", "-o", "remount,size=64m", str(results)], check=True)
        project.run(TABLES)
        assert "forest" in (project.folder / TABLES).read_text()


@pytest.mark.fault
def test_a_second_run_in_the_same_folder_is_refused(project):
    own_method(project, "waiting", "Path('begun').touch(); time.sleep(600)")
    target = f"{SEED}/scores/waiting.csv"
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1", target],
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 300
        while not (project.folder / "begun").exists():
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        done = project.run(target, check=False)
        assert done.returncode != 0
        assert "cannot be locked" in screen(done)
    finally:
        os.killpg(process.pid, 15)
        process.wait()


@pytest.mark.fault
def test_faults_of_the_configuration_are_all_named_before_anything_runs(project):
    def spoil(config):
        config["thread"] = 2
        config["seeds"] = [0, 0]
        config["datasets"]["digits"]["scores"] = {"n_bins": 0}
        config["methods"]["random_forest"]["n_estimators"] = 0.5
        config["methods"]["lost"] = {"file": "nowhere.py"}
        config["methods"]["eknns"] = {}

    project.configure(spoil)
    done = project.run("--dry-run", check=False)
    assert done.returncode != 0
    for key in (
        "thread: unknown key, did you mean 'threads'?",
        "seeds: ",
        "scores.n_bins: Input should be greater than or equal to 1, got 0",
        "methods.random_forest.n_estimators: ",
        "methods.lost: no such method file: nowhere.py",
        "methods.eknns: no method 'eknns', did you mean 'eknn'?",
    ):
        assert key in screen(done)
    assert "Traceback" not in screen(done)


@pytest.mark.fault
def test_a_name_given_twice_is_refused(project):
    path = project.folder / "config.yaml"
    text = yaml.safe_dump(yaml.safe_load(path.read_text()))
    path.write_text(text + "seeds: [1]\n")
    done = project.run("--dry-run", check=False)
    assert done.returncode != 0
    assert "seeds: given twice" in screen(done)


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
