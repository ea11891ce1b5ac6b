"""What the kinds of tests share: the real workflow on small real data, in a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from filelock import FileLock
from shipped import ROOT, SHIPPED

# Tests run on one thread each: what they check must not depend on the machine.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Each test starts dozens of processes on the same copies of the sources.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

PARTS = (
    *("Snakefile", "rules", "config", "envs", "profiles"),
    *("workflow_scripts", "resources", "report"),
)

#: Scikit-learn's digits, few images, three tasks, cheap methods of each kind.
SMALL = {
    "data_dir": "data",
    "benchmark": ["digits"],
    "seeds": [0],
    "datasets": {
        "digits": {
            "source": "sklearn",
            "name": "load_digits",
            "tasks": ["0", "3", "8"],
            "max_train": 300,
            "max_test": 200,
            "autoencoder": {"n_epochs": 2, "min_steps": 1, "latent_size": 8},
            "scores": {"n_bins": 10},
        }
    },
    "methods": {
        "random_forest": {"n_estimators": 5},
        "eknn": {"n_hypotheses": 20},
        "mc_dropout": {"n_epochs": 2, "min_steps": 1, "n_hypotheses": 10},
    },
    "controls": {"base_rate": {}},
    "toy": {
        "seeds": [0],
        "dataset": {"n_samples": 50},
        "eece_vs_noise": {
            "methods": ["random_forest"],
            "noise_levels": [0, 0.5],
            "n_train": 20,
            "n_test": 300,
            "n_bins": 10,
        },
    },
}


#: The kinds of tests, those first that wait most, for SLURM and for Snakemake.
KINDS = ("cluster", "workflow", "browser", "unit")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: KINDS.index(item.path.relative_to(ROOT / "tests").parts[0]))


def pytest_xdist_auto_num_workers():
    """One more than there are cores, of which those are idle whose tests wait."""
    return 1 + len(os.sched_getaffinity(0))


@dataclass
class Project:
    """A copy of the project and its results, in a folder of its own."""

    folder: Path

    def run(self, *arguments, check=True, timeout=1800, env=None):
        """Run Snakemake in the folder and return the finished process."""
        command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
        if check and done.returncode != 0:
            pytest.fail(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        return done

    def failed(self, *arguments):
        """Run Snakemake, which must not succeed, and return what the screen says."""
        done = self.run(*arguments, check=False)
        assert done.returncode != 0
        return done.stdout + done.stderr

    def planned(self, *arguments):
        """Return the messages of the jobs that a run would execute, but for targets."""
        done = self.run("--dry-run", *arguments)
        text = done.stdout + done.stderr
        return sorted(re.findall(r"^Job \d+: (.*(?<! complete))$", text, flags=re.MULTILINE))

    @staticmethod
    def steps(messages):
        """Leave out what only aggregates: it must run whenever a score does."""
        kinds = ("Reading", "Training", "Encoding", "Finding", "Fitting", "Scoring", "Running")
        return [m for m in messages if m.startswith((*kinds, "Importing"))]

    def configure(self, change):
        """Apply ``change`` to the configuration and write it back."""
        path = self.folder / "config.yaml"
        config = yaml.safe_load(path.read_text())
        change(config)
        path.write_text(yaml.safe_dump(config, sort_keys=False))

    def copy(self, folder):
        """Return a copy with results and metadata."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Project(folder)

    def tables(self):
        """Return the content of every table, by name."""
        folder = self.folder / "results" / "tables"
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def copy_of_the_project(folder):
    """Make a fresh copy of the project with the small configuration."""
    folder.mkdir(parents=True)
    # Bytecode and compiled loops come along, but for files that another process is writing.
    ignore = shutil.ignore_patterns("*.pyc.*", "*.tmp.*")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=ignore)
        else:
            shutil.copy2(source, folder / part)
    # Blocks that SMALL does not name keep what the project ships.
    config = yaml.safe_dump({**SHIPPED, **SMALL}, sort_keys=False)
    (folder / "config.yaml").write_text(config)
    return Project(folder)


@pytest.fixture(scope="session")
def new_project(tmp_path_factory):
    """Return a function that makes a fresh copy of the project with the small configuration."""

    def make(name="project"):
        return copy_of_the_project(tmp_path_factory.mktemp(name) / "work")

    return make


@pytest.fixture(scope="session")
def finished(tmp_path_factory, worker_id):
    """A project whose small benchmark has run; tests copy it and leave it as it is."""
    own = tmp_path_factory.getbasetemp()
    # All workers of a session share one, in the folder above their own.
    shared = (own if worker_id == "master" else own.parent) / "finished"
    shared.mkdir(exist_ok=True)
    with FileLock(shared / "lock"):
        if not (shared / "done").exists():
            shutil.rmtree(shared / "work", ignore_errors=True)
            done = copy_of_the_project(shared / "work").run()
            (shared / "stdout").write_text(done.stdout)
            (shared / "stderr").write_text(done.stderr)
            (shared / "done").touch()
    return Project(shared / "work")


@pytest.fixture(scope="session")
def screen(finished):
    """What the run of the finished project printed: standard output, standard error."""
    shared = finished.folder.parent
    return (shared / "stdout").read_text(), (shared / "stderr").read_text()


@pytest.fixture
def project(finished, tmp_path):
    """A finished project of the test's own."""
    return finished.copy(tmp_path / "work")
