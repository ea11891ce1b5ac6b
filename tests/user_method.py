"""A method as the text of a user's file."""


def text(
    base="Method",
    label='label = "My Method"',
    init="self, *, random_state=0",
    fit="pass",
    sample="sample_hypotheses",
    predict="pass",
):
    """Return a method without faults, of which tests change parts; code may have several lines."""
    fit, predict = (code.replace("\n", "\n        ") for code in (fit, predict))
    return f"""\
import numpy as np
from epistemic_calibration.methods import Method


class Mine({base}):
    {label}

    def __init__({init}):
        self.random_state = random_state

    def fit(self, X, y):
        {fit}
        return self

    def {sample}(self, X):
        {predict}
        return np.random.default_rng(self.random_state).random((len(X), 3))
"""
