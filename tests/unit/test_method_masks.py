"""DropConnect and MC-Dropout: passes drawn by masks of the weights, or of the activations."""

import numpy as np
import pytest
from plain_networks import FAST, problem

from epistemic_calibration.methods.dropconnect import DropConnect
from epistemic_calibration.methods.kernels import prediction
from epistemic_calibration.methods.kernels.minibatches import bit_generator
from epistemic_calibration.methods.mc_dropout import MCDropout
from epistemic_calibration.seeds import derive_seed

X, Y = problem(300)


@pytest.mark.parametrize("layers", ["hidden", "all"])
def test_a_pass_of_dropconnect_is_the_network_with_masked_weights(layers):
    method = DropConnect(**FAST, layers=layers, n_hypotheses=3, random_state=5).fit(X, Y)
    weights = [w[0] for w in method.networks_.weights]
    bits = bit_generator(derive_seed(5, 0), "passes")
    n_masked = 3 if layers == "all" else 2
    n_entries = sum(w.size for w in weights[:n_masked])
    # Features that are zero at all inputs are left out of the arithmetic.
    one = X[:1] * [1, 1, 0, 1]
    for j in range(3):
        drawn = bits.random_raw(-(-n_entries // 4)).view(np.uint16)[:n_entries]
        kept = drawn >= round(0.3 * 65536)
        hidden = np.concatenate([X, one]).astype(float)
        for i, w in enumerate(weights):
            if i < n_masked:
                mask, kept = kept[: w.size].reshape(w.shape), kept[w.size :]
                w = w * mask / 0.7
            hidden = hidden @ w[:-1] + w[-1]
            if i < 2:
                hidden = np.maximum(hidden, 0)
        expected = 1 / (1 + np.exp(hidden[:, 0] - hidden[:, 1]))
        for inputs, at in ((X, expected[:-1]), (one, expected[-1:])):
            np.testing.assert_allclose(method.sample_hypotheses(inputs)[:, j], at, atol=1e-4)


@pytest.mark.parametrize("sizes", [[6], [10, 5], [6, 5, 4]])
def test_a_pass_of_dropout_is_the_network_with_masked_activations(sizes):
    settings = {**FAST, "hidden_sizes": sizes, "drop_probabilities": [0.3, 0.2, 0.1][: len(sizes)]}
    method = MCDropout(**settings, mask_sharing="function", n_hypotheses=3, random_state=5)
    weights = [w[0] for w in method.fit(X, Y).networks_.weights]
    bits = bit_generator(derive_seed(5, 0), "passes")
    for j in range(3):
        drawn = bits.random_raw(-(-sum(sizes) // 4)).view(np.uint16)
        hidden = X.astype(float)
        for w, p in zip(weights[:-1], method.drop_probabilities, strict=True):
            kept, drawn = drawn[: w.shape[1]] >= round(p * 65536), drawn[w.shape[1] :]
            hidden = np.maximum(hidden @ w[:-1] + w[-1], 0) * kept / (1 - p)
        logits = hidden @ weights[-1][:-1] + weights[-1][-1]
        expected = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
        np.testing.assert_allclose(method.sample_hypotheses(X)[:, j], expected, atol=1e-4)


@pytest.fixture(scope="module")
def fitted():
    return {
        sharing: MCDropout(**FAST, mask_sharing=sharing, n_hypotheses=2000).fit(X, Y)
        for sharing in ("point", "function")
    }


@pytest.mark.parametrize("chunk", [100, 2048])
def test_masks_of_their_own_make_equal_inputs_independent(fitted, monkeypatch, chunk):
    monkeypatch.setattr(prediction, "_CHUNK", chunk)
    hypotheses = fitted["point"].sample_hypotheses(np.repeat(X[:1], 250, axis=0))
    # The correlation of 2000 independent pairs has standard deviation 1 / sqrt(2000).
    correlations = np.corrcoef(hypotheses[::50])[np.triu_indices(5, 1)]
    assert (np.abs(correlations) < 5 / np.sqrt(2000)).all()


def test_sharing_does_not_change_what_a_single_input_sees(fitted):
    point, function = (fitted[s].sample_hypotheses(X[:30]) for s in ("point", "function"))
    error = np.sqrt((point.var(axis=1) + function.var(axis=1)) / 2000)
    assert (np.abs(point.mean(axis=1) - function.mean(axis=1)) < 5 * error).all()
    # Kurtosis below 6 bounds the error of a variance by its sqrt(5 / n).
    ratio = point.var(axis=1) / function.var(axis=1)
    assert (np.abs(ratio - 1) < 5 * np.sqrt(2 * 5 / 2000)).all()
