"""MC-Dropout: masks of the activations, one for each input or one for each function."""

import numpy as np
import pytest

from epistemic_calibration.methods.deep_ensemble import DeepEnsemble
from epistemic_calibration.methods.kernels import prediction
from epistemic_calibration.methods.kernels.minibatches import bit_generator
from epistemic_calibration.methods.mc_dropout import MCDropout
from epistemic_calibration.seeds import derive_seed

FAST = {
    "hidden_sizes": [10, 5],
    "n_epochs": 5,
    "min_steps": 1,
    "learning_rate": 0.01,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    return X, (X[:, 0] + 0.5 * rng.normal(size=300) > 0).astype(np.uint8)


@pytest.fixture(scope="module")
def fitted(data):
    return {
        sharing: MCDropout(**FAST, mask_sharing=sharing, n_hypotheses=2000).fit(*data)
        for sharing in ("point", "function")
    }


def test_a_shared_mask_makes_a_pass_a_function(data, fitted):
    X, _ = data
    method = fitted["function"]
    hypotheses = method.sample_hypotheses(X)
    order = np.random.default_rng(1).permutation(len(X))[:50]
    np.testing.assert_allclose(method.sample_hypotheses(X[order]), hypotheses[order], atol=1e-6)
    twice = method.sample_hypotheses(np.repeat(X[:1], 2, axis=0))
    assert np.array_equal(twice[0], twice[1])


def test_masks_of_their_own_make_equal_inputs_independent(data, fitted):
    X, _ = data
    twice = fitted["point"].sample_hypotheses(np.repeat(X[:1], 2, axis=0))
    # The correlation of 2000 independent pairs has standard deviation 1 / sqrt(2000).
    assert abs(np.corrcoef(twice)[0, 1]) < 5 / np.sqrt(2000)


def test_sharing_does_not_change_what_a_single_input_sees(data, fitted):
    X, _ = data
    point, function = (fitted[s].sample_hypotheses(X[:30]) for s in ("point", "function"))
    error = np.sqrt((point.var(axis=1) + function.var(axis=1)) / 2000)
    assert (np.abs(point.mean(axis=1) - function.mean(axis=1)) < 5 * error).all()
    # Kurtosis below 6 bounds the error of a variance by its sqrt(5 / n).
    ratio = point.var(axis=1) / function.var(axis=1)
    assert (np.abs(ratio - 1) < 5 * np.sqrt(2 * 5 / 2000)).all()


def test_a_pass_is_the_network_with_masked_activations(data):
    X, y = data
    method = MCDropout(**FAST, mask_sharing="function", n_hypotheses=3, random_state=5).fit(X, y)
    weights = [w[0] for w in method.networks_.weights]
    bits = bit_generator(derive_seed(5, 0), "passes")
    for j in range(3):
        drawn = bits.random_raw(4).view(np.uint16)  # 15 units, of 16
        masks = [
            (drawn[:10] >= round(0.3 * 65536)) / 0.7,
            (drawn[10:15] >= round(0.2 * 65536)) / 0.8,
        ]
        hidden = X.astype(float)
        for w, mask in zip(weights[:-1], masks, strict=True):
            hidden = np.maximum(hidden @ w[:-1] + w[-1], 0) * mask
        logits = hidden @ weights[-1][:-1] + weights[-1][-1]
        expected = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
        np.testing.assert_allclose(method.sample_hypotheses(X)[:, j], expected, atol=1e-4)


def test_inputs_in_several_pieces_get_masks_of_their_own(data, fitted, monkeypatch):
    X, _ = data
    monkeypatch.setattr(prediction, "_CHUNK", 100)
    hypotheses = fitted["point"].sample_hypotheses(np.repeat(X[:1], 250, axis=0))
    correlations = np.corrcoef(hypotheses[::50])[np.triu_indices(5, 1)]
    assert (np.abs(correlations) < 5 / np.sqrt(2000)).all()


def test_dropping_nothing_leaves_one_deterministic_network(data):
    X, y = data
    expected = DeepEnsemble(**FAST, n_members=1).fit(X, y).sample_hypotheses(X)
    for sharing in ("point", "function"):
        method = MCDropout(
            **FAST, drop_probabilities=[0, 0], mask_sharing=sharing, n_hypotheses=4
        ).fit(X, y)
        np.testing.assert_allclose(
            method.sample_hypotheses(X), np.repeat(expected, 4, axis=1), atol=1e-6
        )


def test_one_hidden_layer_and_three(data):
    X, y = data
    for sizes in ([6], [6, 5, 4]):
        method = MCDropout(**{**FAST, "hidden_sizes": sizes}, drop_probabilities=[0.2] * len(sizes))
        assert method.fit(X, y).sample_hypotheses(X).shape == (300, 100)


@pytest.mark.fault
def test_wrong_parameters_are_named(data):
    with pytest.raises(ValueError, match="mask_sharing='batch' must be 'point' or 'function'"):
        MCDropout(mask_sharing="batch")
    with pytest.raises(ValueError, match="drop_probabilities"):
        MCDropout(**FAST, drop_probabilities=[0.3]).fit(*data)
