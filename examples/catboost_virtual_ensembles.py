"""CatBoost's virtual ensembles: an ensemble cut out of one boosted model.

Malinin, Prokhorenkova & Ustimenko, "Uncertainty in gradient boosting via ensembles", ICLR 2021,
arXiv 2006.10562. Needs its own package: pip install catboost
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epistemic_calibration.methods import Method
from epistemic_calibration.parameters import parameter


@dataclass(kw_only=True, eq=False)
class CatBoostVirtualEnsembles(Method):
    """One model boosted with Langevin noise; truncations of its second half are hypotheses.

    Under Langevin noise (``posterior_sampling``) the states of the model along its way are nearly
    draws from a posterior, though one after the other, so they agree more than separate models.
    """

    label = "CatBoost Virtual Ens."
    required_packages: ClassVar = {"catboost": "catboost"}

    n_hypotheses: int = parameter(
        10, ge=2, description="truncated models; 10 in the paper, and CatBoost's default"
    )
    iterations: int = parameter(
        500, ge=20, description="trees, of which the second half are used; 1,000 in the paper"
    )
    depth: int = parameter(6, ge=1, le=16, description="of the trees; CatBoost's default")

    def fit(self, X, y):
        from catboost import CatBoostClassifier

        # CatBoost refuses one class, and features none of which varies: the base rate is left.
        nothing_to_learn = np.ptp(y) == 0 or np.all(np.ptp(X, axis=0) == 0)
        self.constant_ = float(np.mean(y)) if nothing_to_learn else None
        if self.constant_ is None:
            self.model_ = CatBoostClassifier(
                loss_function="Logloss",
                posterior_sampling=True,
                iterations=self.iterations,
                depth=self.depth,
                random_seed=self.random_state % 2**31,
                thread_count=1,
                verbose=False,
                allow_writing_files=False,
            ).fit(np.array(X), np.array(y))
        return self

    def sample_hypotheses(self, X):
        from scipy.special import expit

        if self.constant_ is not None:
            return np.full((len(X), self.n_hypotheses), self.constant_)
        # Log-odds, shape (n_samples, n_hypotheses, 1).
        log_odds = self.model_.virtual_ensembles_predict(
            np.array(X),
            prediction_type="VirtEnsembles",
            virtual_ensembles_count=self.n_hypotheses,
            thread_count=1,
        )
        return expit(log_odds[:, :, 0])
