"""
6 A CSV through all methods
===========================

Which method suits a table of one's own? The benchmark reads a CSV, fits every method on it and
compares them. Here is the same in Python, method by method, and then the command.
"""

# %%
# The table: customers who left or stayed, with numbers, a category and gaps.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from epistemic_calibration import evaluate
from epistemic_calibration.data import load_dataset
from epistemic_calibration.methods import load_method

rng = np.random.default_rng(0)
n = 3000
table = pd.DataFrame(
    {
        "age": rng.integers(18, 80, n).astype(float),
        "months": rng.integers(0, 120, n),
        "charge": rng.gamma(4, 15, n).round(2),
        "plan": rng.choice(["basic", "plus", "family"], n),
    }
)
logit = 1 - 0.03 * table["months"] + 0.02 * table["charge"] - (table["plan"] == "family")
table["left"] = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no")
table.loc[rng.random(n) < 0.02, "age"] = np.nan

folder = tempfile.TemporaryDirectory()
table.to_csv(Path(folder.name) / "customers.csv", index=False)
table.head(3)

# %%
# Read it as the benchmark does. Half of the rows become the test set; what is learnt from data,
# such as the medians that fill gaps, is learnt from the training rows.

settings = {"source": "table", "path": "customers.csv", "label": "left", "missing": "median"}
data = load_dataset(settings, folder.name)
centre, scale = data.x_train.mean(axis=0), data.x_train.std(axis=0)
x_train, x_test = (data.x_train - centre) / scale, (data.x_test - centre) / scale
print(data.x_train.shape, data.x_test.shape, data.class_names)

# %%
# Fit the six methods whose uncertainty is the variance of their hypotheses, and judge each.

names = [
    "deep_ensemble",
    "mc_dropout",
    "dropconnect",
    "laplace",
    "bayesian_logistic_regression",
    "random_forest",
]
results = {}
for name in names:
    method = load_method(name)()
    hypotheses = method.fit(x_train, data.y_train).sample_hypotheses(x_test)
    results[method.label] = evaluate(data.y_test, hypotheses, exchangeable=method.exchangeable)
for label, result in results.items():
    print(f"{label}: {result.judgement['mean']}")

# %%
# The calibration error of each, with its 95 % interval. With 1,500 test rows, most methods cannot
# be told from right, nor from each other:

rows = np.array([(r.tece.estimate, r.tece.ci_low, r.tece.ci_high) for r in results.values()])
middle, low, high = 100 * np.sqrt(rows.clip(0)).T
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.errorbar(middle, range(len(rows)), xerr=[middle - low, high - middle], fmt="o")
axes.set(xlabel="Calibration error, points", yticks=range(len(rows)), yticklabels=list(results))
axes.set(xlim=(0, None), ylim=(len(rows) - 0.5, -0.5))
plt.show()

# %%
# **The same from the shell.** Put the file into ``data/``, add a line under ``datasets:`` in
# ``config.yaml``, and run it by its name:
#
# .. code-block:: yaml
#
#    customers: {source: table, path: customers.csv, label: left, missing: median}
#
# .. code-block:: sh
#
#    .venv/bin/snakemake --cores all customers
#
# The run also compares the methods pair by pair, adds a control and three illustrative methods, and
# writes tables, figures and a page to ``results/``.

folder.cleanup()
