"""Venn–Abers prediction, a control: two hypotheses, of which one is calibrated by a theorem."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from epistemic_calibration.methods.base import Method
from epistemic_calibration.parameters import parameter


@dataclass(kw_only=True, eq=False)
class VennAbersPredictor(Method):
    """The inductive Venn–Abers predictor over logistic regression (Vovk & Petej 2014).

    Part of the training set, drawn at random, is held out as the calibration set. Logistic
    regression on standardised features, fitted on the rest, scores every input. The hypotheses
    at x are p_0 and p_1, p_0 ≤ p_1: the values at x of two isotonic regressions of label on
    score, of the calibration set with x labelled 0, and with x labelled 1. They are computed by
    the package venn-abers.

    **The guarantee.** If calibration set and test point are exchangeable, then P(Y = 1 | p_Y) =
    p_Y, where p_Y is the hypothesis that the true label Y selects: one of the two is perfectly
    calibrated, whatever the scores. It is not known which, and it holds over draws of the
    calibration set and the test point together.

    **What TECE then says.** The prediction judged is the mean (p_0 + p_1)/2, which is
    (p_1 − p_0)/2 away from p_Y at every input. It has no guarantee of its own, and TECE is of one
    calibration set, whose isotonic regression is off by chance: about n^(-1/3) for n points near
    a score. So TECE should be small, not 0, and smaller for larger training sets. A large one
    speaks against the exchangeability of training and test set, or against the estimator: this
    is what makes the method a control. That p_1 − p_0 is much smaller than that error shows that
    it is no measure of it.

    Notes
    -----
    The hypotheses are the two ends of an interval, not draws, hence ``exchangeable = False``.
    Both are step functions of one score: many inputs have the same two hypotheses, and the
    number of distinct rows is far below that of inputs. Scores are log-odds, not probabilities,
    which would be equal to 1, and tied, far from the boundary. Where the rest of the training
    set holds one class, all scores are 0 and both hypotheses are about the base rate.

    References
    ----------
    Vovk, Petej, "Venn–Abers predictors", UAI 2014, arXiv 1211.0025.
    Vovk, Petej, Fedorova, "Large-scale probabilistic predictors with and without guarantees of
    validity", NeurIPS 2015, arXiv 1511.00213: the inductive predictor and its algorithm.
    """

    label: ClassVar[str] = "Venn–Abers"
    family: ClassVar[str] = "control"
    exchangeable: ClassVar[bool] = False
    required_packages: ClassVar[dict[str, str]] = {"venn_abers": "epistemic-calibration[extended]"}

    calibration_fraction: float = parameter(
        1 / 3, gt=0, lt=1, description="share of the training set held out to calibrate"
    )
    inverse_regularization: float = parameter(
        1.0, gt=0, description="C of scikit-learn's logistic regression"
    )

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit the scorer on one part of the training set, and score the other part.

        Raises
        ------
        ValueError
            If there are fewer than two training points.
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        if len(X) < 2:
            raise ValueError(f"{len(X)} training point(s); Venn–Abers prediction needs 2")
        # Not stratified: that would make the calibration set and a test point less exchangeable.
        order = np.random.default_rng(self.random_state).permutation(len(X))
        n_held_out = min(max(round(self.calibration_fraction * len(X)), 1), len(X) - 1)
        held_out, proper = order[:n_held_out], order[n_held_out:]
        self.scorer_ = None
        if y[proper].min() != y[proper].max():
            regression = LogisticRegression(
                C=self.inverse_regularization, solver="newton-cholesky", max_iter=1000
            )
            self.scorer_ = make_pipeline(StandardScaler(), regression).fit(X[proper], y[proper])
        self.calibration_scores_ = self._scores(X[held_out])
        self.calibration_labels_ = y[held_out]
        return self

    def _scores(self, X: np.ndarray) -> np.ndarray:
        if self.scorer_ is None:
            return np.zeros(len(X))
        return self.scorer_.decision_function(np.asarray(X, dtype=np.float64))

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return p_0 and p_1, shape (n_samples, 2)."""
        # Its import changes how NumPy treats divisions by zero, everywhere.
        with np.errstate():
            from venn_abers import VennAbers

        predictor = VennAbers()
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="All-NaN slice encountered")
            # It takes two columns of probabilities, of which it uses the order of the second.
            predictor.fit(_two_columns(self.calibration_scores_), self.calibration_labels_)
            _, hypotheses = predictor.predict_proba(_two_columns(self._scores(X)))
        return np.clip(hypotheses, 0.0, 1.0)


def _two_columns(scores: np.ndarray) -> np.ndarray:
    return np.column_stack([-scores, scores])
