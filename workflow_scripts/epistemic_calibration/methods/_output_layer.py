"""The output layer of networks that minimise cross-entropy, on the processor."""

from __future__ import annotations

import numpy as np

from epistemic_calibration.methods._compiled import compiled


@compiled
def output_layer_step(
    pre_activations, masks, weights, factors, weight_gradients, deltas, targets, log_odds
):
    """Write the gradients of the output layer and of what is below it, in one pass.

    Its products are so small that calling a library for each takes several times as long as
    the arithmetic. Each network is computed as if it were alone.

    Parameters
    ----------
    pre_activations : ndarray of shape (n_networks, padded_size, n_units)
        Of the last hidden layer, before masks and ReLU.
    masks : ndarray of the same shape, or of size 0
        Factors, at least 0, of the activations; none where empty.
    weights : ndarray of shape (n_networks, n_rows, 2)
        Of the output layer; row n_units is the bias, what follows is padding.
    factors : ndarray of shape (padded_size,)
        Of each sample in the mean loss; zero for padding.
    weight_gradients : ndarray, as ``weights``
        Filled, but for the padding.
    deltas : ndarray, as ``pre_activations``
        Filled with the gradients with respect to these.
    targets : ndarray of shape (n_networks, padded_size)
        Labels in {0, 1}.
    log_odds : ndarray of shape (n_networks, padded_size)
        Filled with those of the positive class.
    """
    n_networks, n_samples, n_units = pre_activations.shape
    masked = masks.size > 0
    # Of two logits only the difference matters.
    slopes = np.empty(n_units, np.float32)
    gradients = np.empty(n_units, np.float32)
    activations = np.empty(n_units, np.float32)
    for k in range(n_networks):
        for j in range(n_units):
            slopes[j] = weights[k, j, 1] - weights[k, j, 0]
            gradients[j] = 0
        bias = weights[k, n_units, 1] - weights[k, n_units, 0]
        bias_gradient = np.float32(0)
        for i in range(n_samples):
            below, delta = pre_activations[k, i], deltas[k, i]
            for j in range(n_units):
                activations[j] = max(below[j], np.float32(0))
            if masked:
                mask = masks[k, i]
                for j in range(n_units):
                    activations[j] *= mask[j]
            odds = bias
            for j in range(n_units):
                odds += activations[j] * slopes[j]
            log_odds[k, i] = odds
            probability = np.float32(1) / (np.float32(1) + np.exp(-odds))
            residual = (probability - targets[k, i]) * factors[i]
            bias_gradient += residual
            for j in range(n_units):
                gradients[j] += residual * activations[j]
                delta[j] = residual * slopes[j] if activations[j] > 0 else np.float32(0)
            if masked:
                for j in range(n_units):
                    delta[j] *= mask[j]
        for j in range(n_units):
            weight_gradients[k, j, 0] = -gradients[j]
            weight_gradients[k, j, 1] = gradients[j]
        weight_gradients[k, n_units, 0] = -bias_gradient
        weight_gradients[k, n_units, 1] = bias_gradient
