"""Training many small networks in lock step.

The networks are multilayer perceptrons with ReLU, two logits and, unless another loss is given,
cross-entropy, trained by Adam (Kingma & Ba 2015). One of them is too small to occupy a processor:
most of its time goes into calling the library, not into arithmetic. Here all networks of several
tasks take their minibatch steps together, as batched matrix products on preallocated arrays.

Every network has its own seed for its initial weights, its order of samples and its masks, so
its result depends on its data and its seed only, not on the networks it is trained with. On the
CPU this holds bit for bit, but for hidden layers of one unit, whose products libraries may hand
to other kernels when there are few networks. Libraries may round a number differently where it
is not aligned in memory, or in the remainder that vectorised code leaves to scalar code; so each
network's arrays are padded with zeros, which add nothing, to a size that keeps its neighbours
aligned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.optim.sgd import sgd

from epistemic_calibration.device import resolve_device
from epistemic_calibration.methods.kernels.masks import DropConnect, Dropout, Masks
from epistemic_calibration.methods.kernels.minibatches import (
    ALIGNMENT,
    Loss,
    Minibatches,
    MinibatchStep,
    Networks,
    backward_of_relu,
    bit_generator,
    check_arguments,
    cross_entropy,
    groups,
    initial_weights,
    rounded_up,
    training_mode,
)


@dataclass(frozen=True)
class ConstantRate:
    """Epochs of stochastic gradient descent with momentum after those of Adam.

    The weights at the end of each of the ``n_epochs`` are kept. ``momentum`` is that of
    Polyak's heavy ball, in [0, 1).
    """

    n_epochs: int
    learning_rate: float
    momentum: float


def train_networks(
    X: np.ndarray,
    labels: np.ndarray,
    *,
    seeds: Sequence[int],
    hidden_sizes: Sequence[int] = (100, 20),
    n_epochs: int = 20,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
    noise: Dropout | DropConnect | None = None,
    loss: Loss = cross_entropy,
    constant_rate: ConstantRate | None = None,
    device: str = "auto",
    group_size: int | None = None,
) -> Networks:
    """Train one network for each row of ``labels``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Inputs that all networks share.
    labels : ndarray of shape (n_networks, n_samples)
        Labels in {0, 1} of each network.
    seeds : sequence of int
        Of each network: its initial weights, order of samples and masks.
    group_size : int or None
        Networks that take their steps together; None for what suits the cache. Results do
        not depend on it.

    Raises
    ------
    ValueError
        If an argument has a wrong shape or value, or CUDA is asked for and absent.
    FloatingPointError
        If a network's loss stops being finite.
    """
    torch_device = resolve_device(device)
    X, labels = check_arguments(X, labels, seeds, hidden_sizes)
    if isinstance(noise, Dropout):
        noise.check(len(hidden_sizes))
    layer_sizes = (X.shape[1], *hidden_sizes, 2)
    # Weights of a feature that is always zero have no gradient and never move, and many latent
    # units of a ReLU encoder are such: they need no arithmetic.
    active = X.any(axis=0)
    inputs = _with_constant(
        torch.from_numpy(X[:, active]).to(torch_device),
        _padded_rows(np.count_nonzero(active) + 1, layer_sizes[1]),
    )
    rows = np.append(active, True)
    per_network = [initial_weights(layer_sizes, seed) for seed in seeds]
    weights = [np.stack(layer) for layer in zip(*per_network, strict=True)]
    losses = np.empty(len(seeds))
    n_iterates = 0 if constant_rate is None else constant_rate.n_epochs
    iterates = [np.repeat(w[:, None], n_iterates, axis=1) for w in weights if n_iterates]

    n_weights = rows.sum() * layer_sizes[1] + sum(w[0].size for w in weights[1:])
    n_floats = (6 if isinstance(noise, DropConnect) else 4) * n_weights
    with training_mode():
        for group in groups(len(seeds), group_size, n_floats=n_floats, device=torch_device):
            training = _LockStepTraining(
                inputs,
                labels[group],
                [weights[0][group][:, rows], *(w[group] for w in weights[1:])],
                seeds=[seeds[k] for k in group],
                batch_size=batch_size,
                learning_rate=learning_rate,
                noise=noise,
                loss=loss,
            )
            position = (group[0] + 1, len(seeds))
            for _ in training.run_epochs(1, n_epochs, position):
                pass
            if constant_rate is not None:
                training.start_constant_rate(constant_rate)
                for t, _ in enumerate(training.run_epochs(n_epochs + 1, n_iterates, position)):
                    training.copy_weights([w[:, t] for w in iterates], group, rows)
            losses[group] = training.losses
            training.copy_weights(weights, group, rows)
    return Networks(tuple(weights), losses, tuple(iterates))


class _LockStepTraining(Minibatches):
    """Networks of weights of their own, trained by Adam.

    All weights lie in one flat array, layer by layer and within a layer network by network, so
    that one fused Adam step serves all and every layer is one batched matrix. Biases are the
    last row of the weights, met by a constant 1 at the end of each layer's input: products
    then yield their gradients too, in an order of summation that does not depend on the
    number of networks.
    """

    def __init__(
        self,
        inputs: torch.Tensor,
        labels: np.ndarray,
        weights: Sequence[np.ndarray],
        *,
        seeds: Sequence[int],
        batch_size: int,
        learning_rate: float,
        noise: Dropout | DropConnect | None,
        loss: Loss,
    ) -> None:
        super().__init__(
            inputs,
            labels,
            seeds=seeds,
            batch_size=batch_size,
            learning_rate=learning_rate,
            loss=loss,
        )
        self.n_rows = [w.shape[1] for w in weights]
        padded_rows = [_padded_rows(*w.shape[1:]) for w in weights]
        self.noise = noise
        self.mask_bits = [bit_generator(s, "masks") for s in seeds]
        #: Momentum of stochastic gradient descent; None while Adam moves the weights.
        self.momentum = None

        shapes = [
            (self.n_networks, rows, w.shape[2])
            for rows, w in zip(padded_rows, weights, strict=True)
        ]
        n_padded = rounded_up(sum(math.prod(shape) for shape in shapes), ALIGNMENT)
        self.allocate(n_padded)
        self.weights = _views(self.parameters, shapes)
        self.weight_gradients = _views(self.gradients, shapes)
        for view, values in zip(self.weights, weights, strict=True):
            view[:, : values.shape[1]].copy_(torch.from_numpy(values))

        self.effective_weights = self.weights
        if isinstance(noise, DropConnect):
            n_masked = noise.n_masked_layers(len(weights))
            self.weight_masks = Masks(
                [shape[1:] for shape in shapes[:n_masked]],
                [noise.probability] * n_masked,
                n_networks=self.n_networks,
                device=inputs.device,
            )
            masked = slice(self.weight_masks.flat.numel())
            self.masked_parameters = self.parameters[masked]
            self.masked_gradients = self.gradients[masked]
            self.products = torch.empty_like(self.masked_parameters)
            self.effective_weights = [
                *_views(self.products, shapes[:n_masked]),
                *self.weights[n_masked:],
            ]
        self.steps = {size: _Step(self, size) for size in self.step_sizes}

    def copy_weights(
        self, layers: Sequence[np.ndarray], group: np.ndarray, rows: np.ndarray
    ) -> None:
        """Write the weights to those of all networks; ``rows`` are the first layer's trained."""
        first, *others = (
            w[:, :n].cpu().numpy() for w, n in zip(self.weights, self.n_rows, strict=True)
        )
        layers[0][np.ix_(group, rows)] = first
        for layer, trained in zip(layers[1:], others, strict=True):
            layer[group] = trained

    def start_constant_rate(self, constant_rate: ConstantRate) -> None:
        """Go on by stochastic gradient descent."""
        self.learning_rate = constant_rate.learning_rate
        self.momentum = constant_rate.momentum
        # From here on the velocity; the second moments have no part.
        self.moments[0].zero_()

    def move_weights(self) -> None:
        """Move all weights by their gradients."""
        if self.momentum is None:
            super().move_weights()
        else:
            sgd(
                [self.parameters],
                [self.gradients],
                [self.moments[0]],
                fused=True,
                weight_decay=0,
                momentum=self.momentum,
                lr=self.learning_rate,
                dampening=0,
                nesterov=False,
                maximize=False,
            )


class _Step(MinibatchStep):
    def __init__(self, training: _LockStepTraining, size: int) -> None:
        super().__init__(training, size)
        device, n_networks = training.inputs.device, training.n_networks

        def empty(*shape: int) -> torch.Tensor:
            return torch.empty((n_networks, self.padded_size, *shape), device=device)

        widths = [w.shape[2] for w in training.weights]
        self.layer_inputs = [empty(training.inputs.shape[1])]
        self.gathered = self.layer_inputs[0].view(n_networks * self.padded_size, -1)
        for width, weights in zip(widths[:-1], training.weights[1:], strict=True):
            activations = _with_constant(empty(width), weights.shape[1])
            self.layer_inputs.append(activations)
        self.activations = [
            a[:, :, :width] for a, width in zip(self.layer_inputs[1:], widths[:-1], strict=True)
        ]
        self.pre_activations = [empty(width) for width in widths]
        self.deltas = [empty(width) for width in widths]

        self.inputs_transposed = [a.transpose(1, 2) for a in self.layer_inputs]
        self.weights_transposed = [
            w[:, :width].transpose(1, 2)
            for w, width in zip(training.effective_weights[1:], widths[:-1], strict=True)
        ]
        self.dropout_masks = None
        if isinstance(training.noise, Dropout):
            self.dropout_masks = Masks(
                [(self.padded_size, width) for width in widths[:-1]],
                training.noise.probabilities,
                n_networks=n_networks,
                device=device,
            )

    def compute_gradients(
        self, indices: torch.Tensor, targets: torch.Tensor, losses: torch.Tensor
    ) -> None:
        """Write the losses, and the gradients of their mean."""
        training = self.training
        weights, gradients = training.effective_weights, training.weight_gradients
        z, deltas, last = self.pre_activations, self.deltas, len(weights) - 1
        if isinstance(training.noise, DropConnect):
            training.weight_masks.draw(training.mask_bits)
            torch.mul(training.masked_parameters, training.weight_masks.flat, out=training.products)
        elif self.dropout_masks is not None:
            self.dropout_masks.draw(training.mask_bits)

        torch.index_select(training.inputs, 0, indices.view(-1), out=self.gathered)
        for i in range(last):
            torch.bmm(self.layer_inputs[i], weights[i], out=z[i])
            self._activate(i)
        torch.bmm(self.layer_inputs[last], weights[last], out=z[last])
        self.differentiate_loss(z[last], targets, losses, deltas[last])
        for i in range(last, 0, -1):
            torch.bmm(self.inputs_transposed[i], deltas[i], out=gradients[i])
            self._propagate(i)
        torch.bmm(self.inputs_transposed[0], deltas[0], out=gradients[0])
        if isinstance(training.noise, DropConnect):
            training.masked_gradients.mul_(training.weight_masks.flat)

    def _activate(self, i: int) -> None:
        """Make the inputs of layer i + 1 of the products of layer i."""
        if self.dropout_masks is not None:
            # Masks are not negative: the order of mask and ReLU does not matter.
            self.pre_activations[i].mul_(self.dropout_masks.blocks[i])
        torch.clamp_min(self.pre_activations[i], 0, out=self.activations[i])

    def _propagate(self, i: int) -> None:
        """Make the gradients with respect to the products of layer i - 1 of those of layer i."""
        delta = self.deltas[i - 1]
        torch.bmm(self.deltas[i], self.weights_transposed[i - 1], out=delta)
        backward_of_relu(delta, self.pre_activations[i - 1], 0, grad_input=delta)
        if self.dropout_masks is not None:
            delta.mul_(self.dropout_masks.blocks[i - 1])


def _padded_rows(n_rows: int, n_columns: int) -> int:
    """Return how many rows make a matrix of whole aligned blocks."""
    return rounded_up(n_rows, ALIGNMENT // math.gcd(ALIGNMENT, n_columns))


def _with_constant(values: torch.Tensor, n_columns: int) -> torch.Tensor:
    """Return a copy with a column of ones after the last, and zeros up to ``n_columns``."""
    width = values.shape[-1]
    padded = values.new_zeros((*values.shape[:-1], n_columns))
    padded[..., :width] = values
    padded[..., width] = 1
    return padded


def _views(flat: torch.Tensor, shapes: Sequence[Sequence[int]]) -> list[torch.Tensor]:
    sizes = [math.prod(shape) for shape in shapes]
    parts = flat[: sum(sizes)].split(sizes)
    return [part.view(*shape) for part, shape in zip(parts, shapes, strict=True)]
