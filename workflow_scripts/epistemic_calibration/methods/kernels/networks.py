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

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from epistemic_calibration.device import resolve_device
from epistemic_calibration.methods.kernels.masks import DropConnect, Dropout
from epistemic_calibration.methods.kernels.minibatches import (
    LockStepTraining,
    Loss,
    bit_generator,
    cross_entropy,
    padded_rows,
    with_constant,
)

#: Weights, gradients, Adam's two moments and masks of the networks trained together, in bytes:
#: they are read at each step, and should stay in the processor's cache beside the data.
_GROUP_BYTES = {"cpu": 4 * 2**20, "cuda": 2**30}


@dataclass(frozen=True)
class Networks:
    """Trained networks of one architecture.

    Attributes
    ----------
    weights : tuple of ndarray of shape (n_networks, fan_in + 1, fan_out)
        Of each layer, float32; the last row is the bias.
    losses : ndarray of shape (n_networks,)
        Mean loss over the last epoch's minibatches, masks included; cross-entropy is in nats.
    iterates : tuple of ndarray of shape (n_networks, n_iterates, fan_in + 1, fan_out)
        Weights of each layer after each epoch at a constant rate; empty without such epochs.
    """

    weights: tuple[np.ndarray, ...]
    losses: np.ndarray
    iterates: tuple[np.ndarray, ...] = ()

    def __len__(self) -> int:
        return len(self.losses)

    def __getitem__(self, index: slice) -> Networks:
        weights, iterates = (tuple(w[index] for w in v) for v in (self.weights, self.iterates))
        return Networks(weights, self.losses[index], iterates)


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
    X, labels = _checked(X, labels, seeds, hidden_sizes)
    if isinstance(noise, Dropout):
        noise.check(len(hidden_sizes))
    layer_sizes = (X.shape[1], *hidden_sizes, 2)
    # Weights of a feature that is always zero have no gradient and never move, and many latent
    # units of a ReLU encoder are such: they need no arithmetic.
    active = X.any(axis=0)
    inputs = with_constant(
        torch.from_numpy(X[:, active]).to(torch_device),
        padded_rows(np.count_nonzero(active) + 1, layer_sizes[1]),
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
        for group in _groups(len(seeds), group_size, n_floats=n_floats, device=torch_device):
            training = LockStepTraining(
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
                training.start_constant_rate(constant_rate.learning_rate, constant_rate.momentum)
                for t, _ in enumerate(training.run_epochs(n_epochs + 1, n_iterates, position)):
                    training.copy_weights([w[:, t] for w in iterates], group, rows)
            losses[group] = training.losses
            training.copy_weights(weights, group, rows)
    return Networks(tuple(weights), losses, tuple(iterates))


def _groups(
    n: int, group_size: int | None, *, n_floats: int, device: torch.device
) -> list[np.ndarray]:
    """Split the numbers below ``n`` into groups of a size, or of one that suits the cache."""
    if group_size is None:
        group_size = max(1, _GROUP_BYTES[device.type] // (4 * n_floats))
    return np.array_split(np.arange(n), -(-n // group_size))


def initial_weights(layer_sizes: Sequence[int], seed: int) -> list[np.ndarray]:
    """Draw the initial weights of one network as ``torch.nn.Linear`` does by default.

    ``layer_sizes`` are the numbers of inputs, of units of each hidden layer, and of outputs.
    Each layer has an array (fan_in + 1, fan_out), uniform on ±1 / sqrt(fan_in), whose last row
    is the bias.
    """
    generator = np.random.Generator(bit_generator(seed, "weights"))
    weights = []
    for fan_in, fan_out in itertools.pairwise(layer_sizes):
        uniform = generator.random((fan_in + 1, fan_out), dtype=np.float32)
        weights.append((2 * uniform - 1) * np.float32(1 / math.sqrt(fan_in)))
    return weights


@contextlib.contextmanager
def training_mode() -> Iterator[None]:
    """Leave out what autograd needs, and treat denormal floats as zero.

    Adam's moments of a weight without gradients decay into them, where arithmetic is many
    times slower.
    """
    were_flushed = torch.full((), 1e-40).mul(1).item() == 0
    torch.set_flush_denormal(True)
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_flush_denormal(were_flushed)


def _checked(
    X: np.ndarray, labels: np.ndarray, seeds: Sequence[int], hidden_sizes: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    X, labels = np.asarray(X, dtype=np.float32), np.asarray(labels)
    if X.ndim != 2 or X.size == 0:
        raise ValueError(f"X has shape {X.shape}, expected (n_samples, n_features), not empty")
    if not np.isfinite(X).all():
        raise ValueError("X has values that are NaN or infinite")
    if labels.shape != (len(seeds), len(X)) or len(seeds) == 0:
        raise ValueError(
            f"labels has shape {labels.shape}, expected (n_networks, n_samples) = "
            f"({len(seeds)}, {len(X)}), with one network at least"
        )
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(f"labels must be 0 or 1, found {np.unique(labels)[:5]}")
    if len(hidden_sizes) == 0 or min(hidden_sizes) < 1:
        raise ValueError(f"hidden_sizes={list(hidden_sizes)} must be one number >= 1 or more")
    return X, labels
