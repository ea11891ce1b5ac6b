"""
3 Several labels per input
==========================

Is the uncertainty *large enough*? One label per input cannot tell: a label 1 where 0.7 was
predicted is as likely with a perfect predictor as with a poor one. Two labels per input tell,
because their agreement shows how random the labels themselves are.
"""

# %%
# Five people label each test input. Here the probability of their labels is known, so that we can
# check the answer. Twenty models with squares and products of the features learn from resamples of
# the training inputs, which have one label each.

import numpy as np
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from epistemic_calibration import evaluate, hypotheses_of

rng = np.random.default_rng(0)
X = rng.normal(size=(3600, 6))
truth = 1 / (1 + np.exp(-(1.5 * X[:, 0] + X[:, 1] * X[:, 2] - 2 * np.abs(X[:, 3]) + 1.5)))
train, test = slice(600), slice(600, None)

model = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000))
bag = BaggingClassifier(model, 20, random_state=0).fit(X[train], rng.binomial(1, truth[train]))
hypotheses = hypotheses_of(bag, X[test])

# %%
# Give the number of positive labels and of labels. ``y_true`` is one of them, drawn at random.

n_labels = 5
n_positive = rng.binomial(n_labels, truth[test])
y_true = rng.binomial(1, n_positive / n_labels)

result = evaluate(y_true, hypotheses, n_positive=n_positive, n_labels=n_labels)
print(result)

# %%
# The *share* is how much of its squared error the bag reports: 100 % is right. The exact value
# needs the truth, which only a simulation has.

error = np.mean((truth[test] - hypotheses.mean(axis=1)) ** 2)
reported = np.mean(hypotheses.var(axis=1, ddof=1)) * (1 + 1 / hypotheses.shape[1])
share = result.second_order.share.estimate
print(f"share: {100 * share:.0f} %, exact: {100 * reported / error:.0f} %")

# %%
# In the second panel, points on the diagonal are inputs whose error is as large as is reported.
# Above it, EU would be too small. Points that rise show that EU knows *where* the error is large.

figure = result.plot()
