import numpy as np

from epistemic_calibration.methods.base_rate import BaseRate


def test_every_hypothesis_is_the_base_rate():
    y = np.array([1, 0, 0, 0], dtype=np.uint8)
    predictions = BaseRate(n_hypotheses=3).fit(np.zeros((4, 2)), y).predict(np.zeros((5, 2)))
    assert np.array_equal(predictions.hypotheses, np.full((5, 3), 0.25))
    assert predictions.epistemic_uncertainty is None
    assert np.array_equal(predictions.hypotheses.var(axis=1), np.zeros(5))
