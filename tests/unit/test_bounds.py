"""The lowest versions that `pyproject.toml` allows do what the library does."""

import os
import re
import subprocess
import venv

import pytest
from shipped import METADATA, ROOT

ENV = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

#: What the library and its methods need; of the workflow's own tools the newest are tested.
EXTRAS = ("benchmark", "extended", "page", "parquet", "plot", "torchmetrics")

CODE = """
import importlib, pkgutil
import numpy as np
import pandas as pd
import epistemic_calibration as e
from epistemic_calibration import metrics
from epistemic_calibration.data import load_dataset

# What is imported by none of these needs an extra.
for module in pkgutil.walk_packages(metrics.__path__, metrics.__name__ + "."):
    importlib.import_module(module.name)
for name in e.__all__:
    getattr(e, name)

rng = np.random.default_rng(0)
law = rng.beta(2, 2, (400, 1))
hypotheses = np.clip(law + rng.normal(0, 0.05, (400, 10)), 0, 1)
y_true = (rng.random(400) < law[:, 0]).astype(int)
e.evaluate(y_true, hypotheses).to_frame()
counts = rng.binomial(5, law[:, 0])
e.evaluate(y_true, hypotheses, n_positive=counts, n_labels=5, groups=np.arange(400) // 2)
half = np.arange(400) < 200
fitted = metrics.SecondOrderRecalibrator().fit(y_true[half], hypotheses[half])
fitted.transform(hypotheses[~half])
classes = rng.dirichlet([2, 2, 2], (400, 10))
e.evaluate(rng.integers(0, 3, 400), classes, axes="nhc").to_frame()

pd.DataFrame({"a": law[:, 0], "b": np.where(y_true, "u", "v"), "y": y_true}).to_csv("t.csv")
table = {"source": "table", "path": "t.csv", "label": "y", "columns": ("a", "b")}
assert load_dataset(table, ".").x_test.shape == (200, 3)
np.savez("a.npz", x_train=law, y_train=y_true, x_test=law, y_test=y_true)
assert load_dataset({"source": "npz", "path": "a.npz"}, ".").x_test.shape == (400, 1)
"""


def requirements(extra=None):
    listed = METADATA["dependencies"] if extra is None else METADATA["optional-dependencies"][extra]
    return dict(re.fullmatch(r"([\w.-]+)(.*)", each).groups() for each in listed)


@pytest.mark.parametrize("extra", [None, *EXTRAS])
def test_what_is_needed_to_run_has_a_lower_bound(extra):
    assert [n for n, bound in requirements(extra).items() if not bound.startswith(">=")] == []


def test_the_library_runs_with_the_lowest_versions(tmp_path):
    venv.create(tmp_path, with_pip=True, symlinks=True)
    lowest = [f"{name}=={bound.removeprefix('>=')}" for name, bound in requirements().items()]
    pip = [tmp_path / "bin" / "pip", "install", "--no-compile"]
    done = subprocess.run([*pip, *lowest], env=ENV, capture_output=True, text=True)
    if "No matching distribution" not in done.stderr and done.returncode:
        pytest.skip(f"no package index can be reached: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, done.stderr
    run = subprocess.run(
        [tmp_path / "bin" / "python", "-W", "error::DeprecationWarning", "-c", CODE],
        env={**ENV, "PYTHONPATH": str(ROOT / "workflow_scripts"), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
