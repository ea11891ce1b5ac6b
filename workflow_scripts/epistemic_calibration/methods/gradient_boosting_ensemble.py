"""A bootstrap ensemble of gradient-boosted trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from epistemic_calibration.methods.base import Method
from epistemic_calibration.parameters import parameter
from epistemic_calibration.seeds import derive_seed


@dataclass(kw_only=True, eq=False)
class GradientBoostingEnsemble(Method):
    """Gradient-boosted trees, each member fitted on a bootstrap sample of its own.

    A member is scikit-learn's `HistGradientBoostingClassifier` without early stopping, and is a
    hypothesis. Its bootstrap sample is given as weights, how often each point was drawn, of the
    points that were drawn at all: ``min_samples_leaf`` counts distinct points, and a fit takes
    two thirds of the time that repeated points would. A member whose sample holds one class
    predicts that class everywhere.

    Malinin et al. (2021) ensemble ten such models. Theirs differ by stochastic gradient boosting
    (half of the points for each tree) or by Langevin noise; here they differ by the bootstrap,
    as the trees of a random forest do. They choose depth and learning rate by validation, among
    up to 1,000 trees; the defaults here are this project's, for speed.

    References
    ----------
    Malinin, Prokhorenkova, Ustimenko, "Uncertainty in gradient boosting via ensembles", ICLR
    2021, arXiv 2006.10562.
    Breiman, "Bagging predictors", Machine Learning 24, 1996.
    """

    label: ClassVar[str] = "GBDT Ensemble"

    n_members: int = parameter(
        10, ge=1, description="boosted models, and so hypotheses; 10 in Malinin et al."
    )
    max_iter: int = parameter(50, ge=1, description="trees of each member")
    learning_rate: float = parameter(0.2, gt=0, description="factor on each tree")
    max_leaf_nodes: int = parameter(31, ge=2, description="leaves of each tree, at most")
    min_samples_leaf: int = parameter(
        5, ge=1, description="distinct training points of a leaf, at least"
    )
    l2_regularization: float = parameter(
        0.0, ge=0, description="penalty on the values of the leaves"
    )
    max_bins: int = parameter(
        32, ge=2, le=255, description="bins of each feature, between which trees split"
    )

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit the members."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        X, y = np.asarray(X), np.asarray(y)
        self.members_: list[HistGradientBoostingClassifier | float] = []
        for j in range(self.n_members):
            seed = derive_seed(self.random_state, j)
            rng = np.random.default_rng(seed)
            counts = np.bincount(rng.integers(0, len(X), len(X)), minlength=len(X))
            drawn = np.flatnonzero(counts)
            labels = y[drawn]
            if labels.min() == labels.max():
                self.members_.append(float(labels[0]))
                continue
            model = HistGradientBoostingClassifier(
                max_iter=self.max_iter,
                learning_rate=self.learning_rate,
                max_leaf_nodes=self.max_leaf_nodes,
                min_samples_leaf=self.min_samples_leaf,
                l2_regularization=self.l2_regularization,
                max_bins=self.max_bins,
                early_stopping=False,
                # Bins are made of a draw of the points where there are more than 200,000.
                random_state=seed % 2**32,
            )
            self.members_.append(model.fit(X[drawn], labels, sample_weight=counts[drawn]))
        return self

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return the members' probabilities, shape (n_samples, n_members)."""
        hypotheses = np.empty((len(X), self.n_members))
        for j, member in enumerate(self.members_):
            constant = isinstance(member, float)
            hypotheses[:, j] = member if constant else member.predict_proba(X)[:, 1]
        return hypotheses
