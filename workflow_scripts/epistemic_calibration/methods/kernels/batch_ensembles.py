"""Training many ensembles whose members share weights but for factors of rank one.

Member m of an ensemble has in each layer the weights W ∘ (r_m s_mᵀ), W being shared, and a bias
of its own (Wen, Tran & Ba 2020). They are never formed in training:
xᵀ(W ∘ (r sᵀ)) = ((x ∘ r)ᵀ W) ∘ s, so that one product serves the minibatches of all members, and
a batched one those of all ensembles, which take their steps together. As in `networks`, an
ensemble's result does not depend on the others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch

from epistemic_calibration.device import resolve_device
from epistemic_calibration.methods.kernels.minibatches import (
    ALIGNMENT,
    Minibatches,
    MinibatchStep,
    Networks,
    backward_of_relu,
    bit_generator,
    check_arguments,
    groups,
    initial_weights,
    rounded_up,
    training_mode,
)


def train_batch_ensembles(
    X: np.ndarray,
    labels: np.ndarray,
    *,
    seeds: Sequence[int],
    n_members: int,
    minibatches: Literal["split", "tiled"] = "split",
    hidden_sizes: Sequence[int] = (100, 20),
    n_epochs: int = 20,
    batch_size: int = 32,
    learning_rate: float = 1e-3,
    device: str = "auto",
    group_size: int | None = None,
) -> Networks:
    """Train one ensemble for every ``n_members`` rows of ``labels``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Inputs that all ensembles share.
    labels : ndarray of shape (n_ensembles * n_members, n_samples)
        Labels in {0, 1}, one row for each member.
    seeds : sequence of int
        Of each member: its signs and order of samples. That of the first is also the seed of
        the shared weights and of the biases that all members start from.
    minibatches : {"split", "tiled"}
        Whether each member has an order of samples of its own, or all have that of the first.

    Other parameters and errors are those of `train_networks`; ``batch_size`` is that of one
    member, and ``group_size`` counts ensembles. Returned are the networks of all members, with
    weights W ∘ (r sᵀ).
    """
    torch_device = resolve_device(device)
    X, labels = check_arguments(X, labels, seeds, hidden_sizes)
    layer_sizes = (X.shape[1], *hidden_sizes, 2)
    # A matrix needs a row at least.
    active = X.any(axis=0)
    active[0] |= not active.any()
    inputs = torch.from_numpy(X[:, active]).to(torch_device)

    members = np.arange(len(seeds)).reshape(-1, n_members)
    shared = _stacked([initial_weights(layer_sizes, seeds[first]) for first in members[:, 0]])
    signs = [_random_signs(layer_sizes, seed) for seed in seeds]
    factors = [
        tuple(v.reshape(-1, n_members, v.shape[1]) for v in _stacked(layer))
        for layer in zip(*signs, strict=True)
    ]
    trained = [np.empty((len(seeds), *w.shape[1:]), dtype=np.float32) for w in shared]
    losses = np.empty(len(seeds))
    # Weights, gradients and moments. Activations take more, but smaller groups of them are slower.
    n_floats = 4 * sum(w[0].size for w in shared)
    with training_mode():
        for group in groups(len(members), group_size, n_floats=n_floats, device=torch_device):
            rows = members[group].ravel()
            first_rows = np.repeat(members[group, 0], n_members)
            start = [
                (w[group, :-1], r[group], s[group], w[group, -1:])
                for w, (r, s) in zip(shared, factors, strict=True)
            ]
            (w, r, s, b), *others = start
            training = _Training(
                inputs,
                labels[rows],
                [(w[:, active], r[:, :, active], s, b), *others],
                seeds=[seeds[k] for k in (rows if minibatches == "split" else first_rows)],
                batch_size=batch_size,
                learning_rate=learning_rate,
            )
            for _ in training.run_epochs(1, n_epochs, (rows[0] + 1, len(seeds))):
                pass
            losses[rows] = training.losses
            layers = [[v.cpu().numpy() for v in layer] for layer in training.layers]
            # Of features that are always zero W and r stay as drawn.
            w[:, active], r[:, :, active] = layers[0][:2]
            layers[0][:2] = w, r
            for out, layer in zip(trained, layers, strict=True):
                out[rows] = _formed(*layer)
    return Networks(tuple(trained), losses)


def _formed(w: np.ndarray, r: np.ndarray, s: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return each member's W ∘ (r sᵀ), and its bias below, (n_networks, fan_in + 1, fan_out)."""
    weights = w[:, None] * r[..., None] * s[:, :, None]
    return np.concatenate([weights, b[:, :, None]], axis=2).reshape(-1, w.shape[1] + 1, w.shape[2])


def _random_signs(layer_sizes: Sequence[int], seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw a member's r (fan_in,) and s (fan_out,) of each layer, entries ±1."""
    rng = np.random.Generator(bit_generator(seed, "signs"))
    return [
        tuple(rng.choice(np.float32([-1, 1]), size) for size in sizes)
        for sizes in itertools.pairwise(layer_sizes)
    ]


def _stacked(items: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    return [np.stack(arrays) for arrays in zip(*items, strict=True)]


class _Training(Minibatches):
    """Ensembles that take their minibatch steps together.

    ``layers`` starts from each layer's W (n_ensembles, fan_in, fan_out), r (…, n_members,
    fan_in), s (…, n_members, fan_out) and biases (…, 1, fan_out). All that is trained lies in
    one array with a row for each ensemble, in blocks of whole vectors.
    """

    def __init__(
        self,
        inputs: torch.Tensor,
        labels: np.ndarray,
        layers: Sequence[tuple[np.ndarray, ...]],
        **settings: Any,
    ) -> None:
        super().__init__(inputs, labels, **settings)
        self.n_ensembles, self.n_members = layers[0][1].shape[:2]
        start = []
        for w, r, s, b in layers:
            # All members start from the same biases.
            start += [w, r, s, np.repeat(b, self.n_members, axis=1)]
        sizes = [rounded_up(math.prod(values.shape[1:]), ALIGNMENT) for values in start]
        self.allocate(self.n_ensembles, sum(sizes))

        def blocks(flat: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
            views = [
                columns[:, : math.prod(values.shape[1:])].unflatten(1, values.shape[1:])
                for columns, values in zip(flat.split(sizes, dim=1), start, strict=True)
            ]
            return [tuple(views[i : i + 4]) for i in range(0, len(views), 4)]

        #: Of each layer: W, and each member's r, s and bias.
        self.layers, self.layer_gradients = blocks(self.parameters), blocks(self.gradients)
        flat_views = (view for layer in self.layers for view in layer)
        for view, values in zip(flat_views, start, strict=True):
            view.copy_(torch.from_numpy(values))
        self.steps = {size: _Step(self, size) for size in self.step_sizes}


class _Step(MinibatchStep):
    def __init__(self, training: _Training, size: int) -> None:
        super().__init__(training, size, training.n_members)
        device = training.inputs.device

        def empty(width: int) -> torch.Tensor:
            shape = (training.n_ensembles, training.n_members, self.padded_size, width)
            return torch.empty(shape, device=device)

        fan_in = [w.shape[1] for w, *_ in training.layers]
        fan_out = [w.shape[2] for w, *_ in training.layers]
        # Of each layer: input, input times r, product, pre-activation, and the gradients with
        # respect to pre-activation, product and input.
        self.inputs, self.scaled = ([empty(n) for n in fan_in] for _ in range(2))
        self.products, self.pre_activations = ([empty(n) for n in fan_out] for _ in range(2))
        self.deltas, self.product_deltas = ([empty(n) for n in fan_out] for _ in range(2))
        self.input_deltas = [empty(n) for n in fan_in]
        self.sums = [(empty(a), empty(b)) for a, b in zip(fan_in, fan_out, strict=True)]

    def compute_gradients(
        self, indices: torch.Tensor, targets: torch.Tensor, losses: torch.Tensor
    ) -> None:
        """Write the losses, and the gradients of the mean over the members' minibatches."""
        training, last = self.training, len(self.inputs) - 1
        gathered = self.inputs[0].view(-1, self.inputs[0].shape[-1])
        torch.index_select(training.inputs, 0, indices.view(-1), out=gathered)
        for i, (w, r, s, b) in enumerate(training.layers):
            torch.mul(self.inputs[i], r.unsqueeze(2), out=self.scaled[i])
            torch.bmm(_joined(self.scaled[i]), w, out=_joined(self.products[i]))
            z = torch.mul(self.products[i], s.unsqueeze(2), out=self.pre_activations[i])
            z.add_(b.unsqueeze(2))
            if i < last:
                torch.clamp_min(z, 0, out=self.inputs[i + 1])

        logits, delta = (v[last].flatten(0, 1) for v in (self.pre_activations, self.deltas))
        self.differentiate_loss(logits, targets, losses, delta)
        for i in range(last, -1, -1):
            w, r, s, _ = training.layers[i]
            of_w, of_r, of_s, of_b = training.layer_gradients[i]
            delta, (sum_in, sum_out) = self.deltas[i], self.sums[i]
            torch.sum(delta, 2, out=of_b)
            torch.sum(torch.mul(delta, self.products[i], out=sum_out), 2, out=of_s)
            torch.mul(delta, s.unsqueeze(2), out=self.product_deltas[i])
            product_delta = _joined(self.product_deltas[i])
            torch.bmm(_joined(self.scaled[i]).transpose(1, 2), product_delta, out=of_w)
            input_delta = self.input_deltas[i]
            torch.bmm(product_delta, w.transpose(1, 2), out=_joined(input_delta))
            torch.sum(torch.mul(input_delta, self.inputs[i], out=sum_in), 2, out=of_r)
            if i > 0:
                input_delta.mul_(r.unsqueeze(2))
                below = self.deltas[i - 1]
                backward_of_relu(input_delta, self.pre_activations[i - 1], 0, grad_input=below)


def _joined(values: torch.Tensor) -> torch.Tensor:
    """Return the minibatches of an ensemble's members as one."""
    return values.flatten(1, 2)
