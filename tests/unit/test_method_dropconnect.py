"""DropConnect: a pass is a function, drawn by masks of the weights."""

import numpy as np
import pytest

from epistemic_calibration.methods.deep_ensemble import DeepEnsemble
from epistemic_calibration.methods.dropconnect import DropConnect
from epistemic_calibration.methods.kernels.minibatches import bit_generator
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


@pytest.mark.parametrize("layers", ["hidden", "all"])
def test_a_pass_is_a_function_of_the_input(data, layers):
    X, y = data
    method = DropConnect(**FAST, layers=layers, n_hypotheses=20).fit(X, y)
    hypotheses = method.sample_hypotheses(X)
    order = np.random.default_rng(1).permutation(len(X))[:50]
    np.testing.assert_allclose(method.sample_hypotheses(X[order]), hypotheses[order], atol=1e-6)
    # One input at a time: features that are zero at all inputs are left out of the arithmetic.
    one = X[:1].copy()
    one[0, 2] = 0
    np.testing.assert_allclose(
        method.sample_hypotheses(one), method.sample_hypotheses(np.r_[one, X])[:1], atol=1e-6
    )


@pytest.mark.parametrize("layers", ["hidden", "all"])
def test_a_pass_is_the_network_with_masked_weights(data, layers):
    X, y = data
    method = DropConnect(**FAST, layers=layers, n_hypotheses=3, random_state=5).fit(X, y)
    weights = [w[0] for w in method.networks_.weights]
    bits = bit_generator(derive_seed(5, 0), "passes")
    n_masked = 3 if layers == "all" else 2
    n_entries = sum(w.size for w in weights[:n_masked])
    for j in range(3):
        drawn = bits.random_raw(-(-n_entries // 4)).view(np.uint16)[:n_entries]
        kept = drawn >= round(0.3 * 65536)
        hidden = X.astype(float)
        for i, w in enumerate(weights):
            if i < n_masked:
                mask, kept = kept[: w.size].reshape(w.shape), kept[w.size :]
                w = w * mask / 0.7
            hidden = hidden @ w[:-1] + w[-1]
            if i < 2:
                hidden = np.maximum(hidden, 0)
        expected = 1 / (1 + np.exp(hidden[:, 0] - hidden[:, 1]))
        np.testing.assert_allclose(method.sample_hypotheses(X)[:, j], expected, atol=1e-4)


def test_more_passes_begin_with_the_same(data):
    X, y = data
    few, many = (DropConnect(**FAST, n_hypotheses=n).fit(X, y).sample_hypotheses(X) for n in (3, 8))
    assert np.array_equal(few, many[:, :3])


def test_dropping_nothing_leaves_one_deterministic_network(data):
    X, y = data
    method = DropConnect(**FAST, drop_probability=0, n_hypotheses=4).fit(X, y)
    network = DeepEnsemble(**FAST, n_members=1).fit(X, y)
    np.testing.assert_allclose(
        method.sample_hypotheses(X), np.repeat(network.sample_hypotheses(X), 4, axis=1), atol=1e-6
    )
