"""
5 Deep ensemble, MC-Dropout, Laplace
====================================

Three ways to get hypotheses from networks in PyTorch: train several, leave dropout on, or draw from
a Gaussian around the weights. ``hypotheses_of`` reads all three.
"""

# %%
# One data set, one way to train.

import warnings

import matplotlib.pyplot as plt
import numpy as np
import torch
from laplace import Laplace
from sklearn.datasets import make_classification

from epistemic_calibration import evaluate, hypotheses_of

warnings.filterwarnings("ignore", module="laplace|torch")
X, y = make_classification(4000, flip_y=0.1, random_state=0)
X = X.astype("float32")
inputs, target = torch.tensor(X[:1000]), torch.tensor(y[:1000])
X_test, y_test = X[1000:], y[1000:]


def trained(seed, dropout=0.0):
    torch.manual_seed(seed)
    net = torch.nn.Sequential(
        torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(50, 2)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(inputs), target).backward()
        optimizer.step()
    return net


# %%
# A list of networks is an ensemble. A network with dropout is asked a hundred times. A fitted
# ``Laplace`` gives draws of its predictive.

laplace = Laplace(trained(0), "classification", "last_layer", "full")
data = torch.utils.data.TensorDataset(inputs, target)
laplace.fit(torch.utils.data.DataLoader(data, batch_size=100))
laplace.optimize_prior_precision(method="marglik")
models = {
    "Deep ensemble": [trained(seed) for seed in range(5)],
    "MC-Dropout": trained(0, dropout=0.3),
    "Laplace": laplace,
}
results = {name: evaluate(y_test, hypotheses_of(m, X_test)) for name, m in models.items()}

# %%
# What to conclude of each:

for name, result in results.items():
    print(f"{name}: {result.judgement['mean']}")
    print(f"{'':{len(name)}}  {result.judgement['size']}")

# %%
# The calibration error with its 95 % interval, in points:

rows = np.array([(r.tece.estimate, r.tece.ci_low, r.tece.ci_high) for r in results.values()])
middle, low, high = 100 * np.sqrt(rows.clip(0)).T
figure, axes = plt.subplots(figsize=(7, 2.5), layout="constrained")
axes.errorbar(middle, range(3), xerr=[middle - low, high - middle], fmt="o")
axes.set(xlabel="Calibration error, points", yticks=range(3), yticklabels=list(results))
axes.set(xlim=(0, None), ylim=(2.5, -0.5))
plt.show()
