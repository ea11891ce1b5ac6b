"""How many inputs, and how many members? The tables of read_your_result.md.

python docs/how_many.py
"""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from epistemic_calibration import evaluate, hypotheses_of, metrics

N_SUBSETS = 20


def points(squared: float) -> float:
    """Return the root of a squared error of a probability, in points."""
    return 100 * np.sqrt(max(squared, 0))


def main() -> None:
    X, y = make_classification(6000, flip_y=0.1, random_state=0)
    forest = RandomForestClassifier(50, min_samples_leaf=5, random_state=0).fit(X[:3000], y[:3000])
    hypotheses, y = hypotheses_of(forest, X[3000:]), y[3000:]

    print("inputs  least error that can be seen, points")
    rng = np.random.default_rng(0)
    for n in (100, 200, 500, 1000, 3000):
        chosen = (rng.permutation(len(y))[:n] for _ in range(N_SUBSETS))
        least = [evaluate(y[i], hypotheses[i]).tece.minimum_detectable for i in chosen]
        print(f"{n:6}  {points(np.median(least)):.1f}")

    print("\nmembers  calibration error, points  EU is multiplied by")
    for n in (2, 3, 5, 10, 50):
        found = evaluate(y, hypotheses[:, :n]).tece
        low, middle, high = map(points, (found.ci_low, found.estimate, found.ci_high))
        factor = metrics.finite_draws_factor(n)
        print(f"{n:7}  {middle:.1f} [{low:.1f}, {high:.1f}]  {factor:.2f}")


if __name__ == "__main__":
    main()
