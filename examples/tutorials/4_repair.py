"""
4 Repair the mean and the spread
================================

An error of the mean, and an uncertainty of the wrong size, can be repaired after training, on
inputs that were not used for it. This needs several labels per input for the spread, and one for
the mean.
"""

# %%
# A forest and the labels of five people, as in :doc:`3_several_labels`. Half of the labelled
# inputs repair, the other half judge.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from epistemic_calibration import evaluate, hypotheses_of, metrics

rng = np.random.default_rng(0)
X = rng.normal(size=(7000, 6))
truth = 1 / (1 + np.exp(-(2.5 * X[:, 0] + 2 * X[:, 1] * X[:, 2])))
y = rng.binomial(1, truth)
forest = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X[:1000], y[:1000])

n_labels = 5
n_positive = rng.binomial(n_labels, truth)
fit, judge = slice(1000, 4000), slice(4000, 7000)
before = hypotheses_of(forest, X[judge])

# %%
# Four numbers move the mean, one scales the spread. ``fit`` takes labels and repairs the mean
# alone; ``fit_counts`` repairs both.

recalibrator = metrics.SecondOrderRecalibrator()
recalibrator.fit_counts(n_positive[fit], n_labels, hypotheses_of(forest, X[fit]))
after = recalibrator.transform(before)
print(f"spread multiplied by {recalibrator.dispersion_:.2f} on the logit scale")

# %%
# Before and after, on the other half:

labels = {"n_positive": n_positive[judge], "n_labels": n_labels}
y_judge = rng.binomial(1, n_positive[judge] / n_labels)
for name, hypotheses in {"before": before, "after": after}.items():
    result = evaluate(y_judge, hypotheses, **labels)
    print(f"{name}\n  {result.judgement['mean']}\n  {result.judgement['size']}")

# %%
# And to see: the frequency of label 1 against the prediction, and the squared error against the one
# that is reported. Both should lie on the diagonal.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for name, hypotheses in {"before": before, "after": after}.items():
    reliability = metrics.calibration_curve(y_judge, hypotheses.mean(axis=1))
    left.plot(reliability.predicted, reliability.frequency, "o-", label=name)
    size = metrics.second_order_curve(n_positive[judge], n_labels, hypotheses)
    right.plot(size.uncertainty, size.error, "o-", label=name)
left.axline((0, 0), slope=1, color="gray", lw=1)
right.axline((0, 0), slope=1, color="gray", lw=1)
left.set(xlabel="Prediction", ylabel="Frequency of label 1", title="Mean")
right.set(xlabel="Squared error that is reported", ylabel="Squared error", title="Spread")
left.legend()
plt.show()
