"""Faults of every kind: what the screen says, and that no finished result is lost or wrong."""

import ast
import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml
from shipped import ROOT
from user_method import text

SEED = Path("results", "digits", "seed0")

FAULTS = {
    "undefined": ("good[7] = np.nan; return good", "hypotheses has 4 values that are NaN"),
    "beyond": ("return good + 1", "hypotheses lies in [1."),
    "short": ("return good[:-1]", "hypotheses has shape (199, 4), expected (200, n_hypotheses)"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "digits/seed0/hypotheses/killed.log"),
    "raised": (
        "raise RuntimeError('out of luck')",
        "FAILED: raised.py, line 17: RuntimeError: out of luck",
    ),
}


def contents(folder):
    """Return the bytes of every result file below a folder, by path; logs and timings are none."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in (".npz", ".csv", ".safetensors")
    }


def test_methods_that_fail_spoil_no_other_results_and_leave_them_their_tables(project):
    before = contents(project.folder / "results" / "digits")
    codes = {name: code for name, (code, _) in FAULTS.items()} | {"healthy": "return good"}
    for name, code in codes.items():
        good = f"good = np.full((len(X), 4), 0.5)\n{code}"
        (project.folder / f"{name}.py").write_text(text(label="pass", predict=good))
    entries = {name: {"file": f"{name}.py"} for name in codes}
    entries["mc_dropout"] = {"n_hypotheses": 10}
    (project.folder / "own.yaml").write_text(yaml.safe_dump({"methods": entries}))
    own = ("--configfile", "own.yaml")
    said = project.failed("digits", *own)
    for name, (_, message) in FAULTS.items():
        assert message in said, name
        assert not (project.folder / SEED / "hypotheses" / name).exists()
    assert "--config 'methods={NAME: null}'" in said
    after = contents(project.folder / "results" / "digits")
    # They compare every method with all others.
    for found in (before, after):
        found.pop(Path("seed0", "bounds.csv"), None)
    assert {path: after[path] for path in before if path in after} == before
    assert (project.folder / SEED / "scores" / "healthy.csv").is_file()
    without = ", ".join(f"{name}: null" for name in FAULTS)
    target = "results/tables/digits.md"
    project.run(target, *own, "--config", f"methods={{{without}}}")
    table = (project.folder / target).read_text()
    # Those of another file come after those of config.yaml, wherever it names one of these again.
    places = [table.index(n) for n in ("Random Forest", "MC-Dropout", "healthy")]
    assert places == sorted(places) and "killed" not in table


def test_broken_data_sets_are_named_and_leave_the_others_alone(project):
    data = project.folder / "data"
    rng = np.random.default_rng(0)
    images = {
        "x_train": rng.integers(0, 256, (40, 8, 8), dtype=np.uint8),
        "y_train": np.arange(39) % 2,
        "x_test": rng.integers(0, 256, (20, 8, 8), dtype=np.uint8),
        "y_test": np.arange(20) % 2,
    }
    for folder in ("train/cat", "train/dog", "test/cat", "test/dog"):
        (data / "pictures" / folder).mkdir(parents=True)
        (data / "pictures" / folder / "1.png").write_bytes(b"no picture")
    np.savez(data / "lengths.npz", **images)
    (data / "table.csv").write_text("a,label\n" + "1,x\n2,y\n" * 20)
    blocks = {
        "lengths": {"source": "npz", "path": "lengths.npz"},
        "pictures": {"source": "image_folder", "path": "pictures"},
        "lost": {"source": "image_folder", "path": "lost"},
    }
    project.configure(lambda c: c["datasets"].update(blocks))
    said = project.failed("results/lengths/images.npz", "results/pictures/images.npz")
    assert "lengths.npz: x_train has 40 inputs, but y_train 39 labels" in said
    assert "pictures: cannot be read as images: train/cat/1.png (cannot identify" in said
    assert not list(project.folder.glob("results/[!d]*/images.npz"))
    lost = project.failed("--dry-run", "lost")
    assert "datasets.lost: no such folder: data/lost" in lost
    assert project.planned("digits") == [
        "Making the page results/digits/report.html",
        "Writing the resolved configuration",
    ]
    table = {"source": "table", "path": "table.csv", "label": "sold"}
    project.configure(lambda c: c["datasets"].update(table=table))
    said = project.failed("--dry-run", "table")
    assert "datasets.table: data/table.csv has no column 'sold'" in said


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


def test_a_full_disk_loses_nothing(project):
    results, aside = project.folder / "results", project.folder / "aside"
    results.rename(aside)
    results.mkdir()
    # 500 trees on 200 images and three tasks: over a megabyte of hypotheses.
    entry = {"method": "random_forest", "n_estimators": 500}
    project.configure(lambda c: c["methods"].update(forest=entry))
    target = str(SEED / "scores/forest.csv")
    with mounted(results, "-t", "tmpfs", "-o", "size=64m", "tmpfs"):
        shutil.copytree(aside, results, dirs_exist_ok=True)
        disk = os.statvfs(results)
        used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
        resize = ["mount", "-o", f"remount,size={used + 400_000}", str(results)]
        subprocess.run(resize, check=True)
        before = contents(results)
        assert "No space left on device" in project.failed(target)
        after = contents(results)
        assert {path: after[path] for path in before} == before
        # What a job could not finish is not there.
        assert not (results / "digits/seed0/hypotheses/forest").exists()
        assert not list(results.rglob(".*.npz"))
        subprocess.run(["mount", "-o", "remount,size=64m", str(results)], check=True)
        project.run(target)


@pytest.mark.fault
def test_faults_of_the_configuration_are_all_named_before_anything_runs(new_project):
    project = new_project("misconfigured")

    def spoil(config):
        config["thread"] = 2
        config["datasets"]["digits"]["scores"] = {"n_bins": 0}
        config["methods"]["lost"] = {"file": "nowhere.py"}

    project.configure(spoil)
    said = project.failed("--dry-run")
    for fault in (
        "thread: unknown key, did you mean 'threads'?",
        "scores.n_bins: Input should be greater than or equal to 1, got 0",
        "methods.lost: no such method file: nowhere.py",
    ):
        assert fault in said
    assert "Traceback" not in said
    with (project.folder / "config.yaml").open("a") as file:
        file.write("seeds: [1]\n")
    assert "seeds is given twice" in project.failed("--dry-run")


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
