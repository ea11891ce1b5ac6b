"""Bayesian additive regression trees for labels, by probit regression.

Chipman, George & McCulloch, "BART: Bayesian additive regression trees", Annals of Applied
Statistics 4, 2010. Needs its own package: pip install stochtree
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epistemic_calibration.methods import Method
from epistemic_calibration.parameters import parameter


@dataclass(kw_only=True, eq=False)
class Bart(Method):
    """P(Y = 1 | x) = Φ(sum of trees); each posterior draw of the trees is a hypothesis."""

    label = "BART"
    required_packages: ClassVar = {"stochtree": "stochtree"}

    n_hypotheses: int = parameter(100, ge=1, description="posterior draws kept")
    n_trees: int = parameter(50, ge=1, description="trees; 200 in the paper")
    n_warm_start: int = parameter(
        10, ge=0, description="draws of the faster, greedy sampler at first; discarded"
    )
    n_burn_in: int = parameter(100, ge=0, description="draws of the MCMC discarded")

    def fit(self, X, y):
        from stochtree import BARTModel, OutcomeModel

        self.model_ = BARTModel()
        self.model_.sample(
            X_train=np.array(X, dtype=np.float64),
            y_train=np.array(y, dtype=np.float64),
            num_gfr=self.n_warm_start,
            num_burnin=self.n_burn_in,
            num_mcmc=self.n_hypotheses,
            general_params={
                "random_seed": self.random_state % 2**31,
                "num_threads": 1,
                "outcome_model": OutcomeModel(outcome="binary", link="probit"),
            },
            mean_forest_params={
                "num_trees": self.n_trees,
                # Its default, 5, is refused where there are no more than twice as many points.
                "min_samples_leaf": max(min(5, (len(X) - 1) // 2), 1),
            },
        )
        return self

    def sample_hypotheses(self, X):
        return self.model_.predict(
            X=np.array(X, dtype=np.float64), terms="y_hat", type="posterior", scale="probability"
        )
