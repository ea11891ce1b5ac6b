"""What a method returns is checked before it becomes a file of hypotheses."""

import re

import numpy as np
import pytest

from epistemic_calibration.methods import Predictions
from epistemic_calibration.methods.base import MethodError, check_predictions

HYPOTHESES = np.random.default_rng(0).random((6, 4))


def changed(**changes):
    return Predictions(**{"hypotheses": HYPOTHESES, **changes})


def with_value(value, shape=(6, 4)):
    array = np.full(shape, 0.5)
    array[(0,) * len(shape)] = value
    return array


def test_arrays_are_those_that_the_method_gave_as_float32():
    uncertainty, prediction = np.linspace(0, 3, 6), np.linspace(0, 1, 6)
    arrays = check_predictions(
        changed(epistemic_uncertainty=uncertainty, prediction=prediction), n_samples=6, task="a"
    )
    assert list(arrays) == ["hypotheses", "epistemic_uncertainty", "prediction"]
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(arrays["hypotheses"], HYPOTHESES.astype(np.float32))
    np.testing.assert_array_equal(arrays["epistemic_uncertainty"], uncertainty.astype(np.float32))
    np.testing.assert_array_equal(arrays["prediction"], prediction.astype(np.float32))


@pytest.mark.parametrize(
    "hypotheses",
    [
        HYPOTHESES.tolist(),
        np.eye(6, 4, dtype=int),
        np.ones((6, 1)),
    ],
)
def test_lists_integers_one_hypothesis_and_the_ends_of_the_range_are_accepted(hypotheses):
    arrays = check_predictions(changed(hypotheses=hypotheses), n_samples=6, task="a")
    # What is not reported is left out.
    assert list(arrays) == ["hypotheses"]
    np.testing.assert_array_equal(arrays["hypotheses"], np.asarray(hypotheses, dtype=np.float32))


@pytest.mark.fault
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hypotheses": HYPOTHESES[:5]}, "hypotheses has shape (5, 4), expected (6, n_hypotheses)"),
        ({"hypotheses": HYPOTHESES[:, 0]}, "hypotheses has shape (6,), expected (6, n_hypotheses)"),
        ({"hypotheses": HYPOTHESES[:, :0]}, "hypotheses has shape (6, 0), expected (6, n_hyp"),
        (
            {"prediction": HYPOTHESES[:, :2]},
            "prediction has shape (6, 2), expected (6,); give the column [:, 1]",
        ),
        (
            {"epistemic_uncertainty": np.zeros(7)},
            "epistemic_uncertainty has shape (7,), expected (6,)",
        ),
        ({"hypotheses": HYPOTHESES > 0.5}, "hypotheses has dtype bool, expected numbers"),
        ({"hypotheses": HYPOTHESES + 0j}, "hypotheses has dtype complex128, expected numbers"),
        (
            {"hypotheses": with_value(np.nan)},
            "hypotheses has 1 values that are NaN or infinite, of 24",
        ),
        (
            {"epistemic_uncertainty": with_value(np.nan, (6,))},
            "epistemic_uncertainty has 1 values that are NaN or infinite, of 6",
        ),
        ({"hypotheses": with_value(-0.5)}, "hypotheses lies in [-0.5, 0.5], expected values in [0"),
        ({"prediction": with_value(2, (6,))}, "prediction lies in [0.5, 2.0], expected values in"),
        (
            {"epistemic_uncertainty": with_value(-1, (6,))},
            "epistemic_uncertainty goes down to -1.0, expected values >= 0",
        ),
    ],
)
def test_faults_name_the_task_the_array_and_what_is_expected(changes, message):
    with pytest.raises(MethodError, match=re.escape(f"task cat: {message}")) as caught:
        check_predictions(changed(**changes), n_samples=6, task="cat")
    # Said of probabilities of both classes only.
    assert ("column" in str(caught.value)) == ("column" in message)
