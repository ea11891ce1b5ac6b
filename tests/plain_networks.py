"""Networks as plain PyTorch would train them, one at a time; a small problem for them."""

import numpy as np
import torch
from torch import nn

from epistemic_calibration.methods.kernels.minibatches import bit_generator
from epistemic_calibration.methods.kernels.networks import initial_weights

#: Parameters of methods of networks, and of the encoder, that are quickly fitted.
FAST = {
    "hidden_sizes": [10, 5],
    "n_epochs": 5,
    "min_steps": 1,
    "learning_rate": 0.01,
    "device": "cpu",
}
AUTOENCODER = {"n_epochs": 2, "min_steps": 1, "batch_size": 32, "latent_size": 8, "device": "cpu"}


def problem(n_samples=200, *, dead=False):
    """Inputs of four features, of which one may be 0, and labels that depend on the first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 4)).astype(np.float32)
    X[:, 2] *= not dead
    return X, (X[:, 0] + 0.5 * rng.normal(size=n_samples) > 0.3).astype(np.uint8)


class PlainNetwork:
    """A network with the initial weights and the order of samples of a seed."""

    def __init__(self, layer_sizes, seed):
        layers = []
        for w in initial_weights(layer_sizes, seed):
            linear = nn.Linear(len(w) - 1, w.shape[1])
            with torch.no_grad():
                linear.weight.copy_(torch.tensor(w[:-1].T))
                linear.bias.copy_(torch.tensor(w[-1]))
            layers += [linear, nn.ReLU()]
        self.module = nn.Sequential(*layers[:-1])
        self.order = np.random.Generator(bit_generator(seed, "order"))

    def run_epoch(self, X, y, optimizer, loss=nn.functional.cross_entropy, batch_size=32):
        """Visit all samples once; return the mean loss."""
        inputs, labels, total = torch.from_numpy(X), torch.from_numpy(y).long(), 0.0
        for batch in torch.from_numpy(self.order.permutation(len(X))).split(batch_size):
            value = loss(self.module(inputs[batch]), labels[batch])
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            total += value.item() * len(batch)
        return total / len(X)

    def assert_weights(self, weights, k, **tolerances):
        """Compare with those of network k, (n_networks, fan_in + 1, fan_out) of each layer."""
        for ours, layer in zip(weights, self.module[::2], strict=True):
            theirs = np.vstack([layer.weight.detach().T, layer.bias.detach()])
            np.testing.assert_allclose(ours[k], theirs, **tolerances)
