"""
1 A forest
==========

A random forest says two things of an input: a probability, the mean of its trees, and how much its
trees disagree. Can both be trusted?
"""

# %%
# Fit the forest as always, and keep test inputs that it has not seen.

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from epistemic_calibration import evaluate, hypotheses_of

X, y = make_classification(6000, flip_y=0.1, random_state=0)
forest = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X[:3000], y[:3000])

# %%
# Each tree is a *hypothesis*: an estimate of the probability that the label is 1. The mean of a row
# is the prediction, its variance is the *epistemic uncertainty* (EU).

hypotheses = hypotheses_of(forest, X[3000:])
print(hypotheses.shape)

# %%
# One call says everything that labels can say of the two. Its sentences come with the numbers
# behind them. A *point* is a hundredth of a probability: off by 5 points is 0.35 instead of 0.30.

result = evaluate(y[3000:], hypotheses)
print(result)

# %%
# The picture shows the same. In the first panel, points on the diagonal are right: of the inputs
# with prediction 0.8, four fifths have label 1. This forest is too cautious, as averages of trees
# are: its predictions are closer to one half than the frequencies.
#
# With one label per input the size of EU has bounds only. :doc:`3_several_labels` removes
# them, :doc:`4_repair` repairs the mean.

figure = result.plot()

# %%
# For a report, take the numbers from the result, in squared units of probability, or all of them as
# a table:

print(result.judgement["mean"])
result.to_frame().head(8)
