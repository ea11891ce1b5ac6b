"""
2 Several classes
=================

With more than two classes, a prediction is a vector, and "the probabilities are right" has three
meanings: of each class, of the predicted class, and of all classes together.
"""

# %%
# Ten digits. ``hypotheses_of`` gives one probability per input, tree and class.

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from epistemic_calibration import evaluate, hypotheses_of

X, y = load_digits(return_X_y=True)
forest = RandomForestClassifier(50, min_samples_leaf=2, random_state=0).fit(X[:900], y[:900])
hypotheses = hypotheses_of(forest, X[900:])
print(hypotheses.shape)

# %%
# The summary answers all three, and names the class that is worst.

result = evaluate(y[900:], hypotheses)
print(result)

# %%
# The forest claims 67 % where it is right in 92 %: it is far too cautious. Such an error of the
# mean is the easiest to repair.

figure = result.plot()
