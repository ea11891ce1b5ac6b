"""
7 A method of your own
======================

A method is one class in one file. With it, every table and figure of the benchmark has one more
row.
"""

# %%
# ``fit`` sees features and labels 0 and 1; ``sample_hypotheses`` returns one column per hypothesis.
# Fields are the parameters. This one is a bag of linear models.

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from epistemic_calibration import evaluate
from epistemic_calibration.methods import Method
from epistemic_calibration.parameters import parameter


@dataclass(kw_only=True, eq=False)
class LinearBag(Method):
    label = "Linear bag"
    n_models: int = parameter(30, ge=2, description="models, one hypothesis each")

    def fit(self, X, y):
        rng = np.random.default_rng(self.random_state)
        self.models_ = []
        while len(self.models_) < self.n_models:
            rows = rng.choice(len(y), len(y))
            if len(np.unique(y[rows])) == 2:
                self.models_.append(LogisticRegression(max_iter=1000).fit(X[rows], y[rows]))
        return self

    def sample_hypotheses(self, X):
        return np.stack([model.predict_proba(X)[:, 1] for model in self.models_], axis=1)


# %%
# Try it on a task: is the digit a 3?

X, y = load_digits(return_X_y=True)
X, y = X / 16, (y == 3).astype(int)
method = LinearBag(n_models=30, random_state=0).fit(X[:900], y[:900])
result = evaluate(y[900:], method.sample_hypotheses(X[900:]))
print(result)

# %%
# The picture, as of any other model:

figure = result.plot()

# %%
# **Into the benchmark.** Save the class as ``linear_bag.py``, check it, and name the file under
# ``methods:`` in ``config.yaml``:
#
# .. code-block:: sh
#
#    epistemic-calibration check-method linear_bag.py
#
# .. code-block:: yaml
#
#    linear_bag: {file: linear_bag.py, n_models: 50}
#
# ``check-method`` tells what is wrong and what to do about it. ``.venv/bin/snakemake --cores all
# digits`` then fits the new method and draws every table and figure anew, and fits nothing else.
