"""What networks that are trained together share: seeds, groups, minibatches, steps of Adam."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.optim.adam import adam

logger = logging.getLogger("epistemic_calibration")

#: Weights, gradients, Adam's two moments and masks of the networks trained together, in bytes:
#: they are read at each step, and should stay in the processor's cache beside the data.
_GROUP_BYTES = {"cpu": 4 * 2**20, "cuda": 2**30}
#: Floats that one iteration of vectorised code handles, AVX-512 included; twice a cache line.
ALIGNMENT = 32

#: What networks minimise the mean of. Given the logits of the classes 0 and 1 (..., 2), the
#: labels in {0, 1} (...) and the epoch, counted from 1, it returns the losses of the samples
#: (...) and their gradients with respect to the logits (..., 2), which autograd would find too,
#: in a fifth of the time of a whole step.
Loss = Callable[[torch.Tensor, torch.Tensor, int], tuple[torch.Tensor, torch.Tensor]]


def cross_entropy(
    logits: torch.Tensor, targets: torch.Tensor, epoch: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the cross-entropy of the softmax of two logits, in nats, and its gradients."""
    log_odds = logits[..., 1] - logits[..., 0]
    residuals = torch.sigmoid(log_odds) - targets
    losses = torch.nn.functional.softplus(log_odds) - targets * log_odds
    return losses, torch.stack([-residuals, residuals], dim=-1)


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


def bit_generator(seed: int, purpose: str) -> np.random.SFC64:
    """Return the stream of a purpose: with masks, weights and order are as without."""
    purposes = ("weights", "order", "masks", "passes", "signs")
    return np.random.SFC64([seed, purposes.index(purpose)])


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


def groups(
    n: int, group_size: int | None, *, n_floats: int, device: torch.device
) -> list[np.ndarray]:
    """Split the numbers below ``n`` into groups of a size, or of one that suits the cache."""
    if group_size is None:
        group_size = max(1, _GROUP_BYTES[device.type] // (4 * n_floats))
    return np.array_split(np.arange(n), -(-n // group_size))


class Minibatches:
    """Networks that take their minibatch steps together, each with its own minibatch.

    A subclass fills ``steps``, by size of a minibatch.

    Parameters
    ----------
    inputs : tensor of shape (n_samples, n_columns)
    labels : ndarray of shape (n_networks, n_samples)
    seeds : sequence of int
        Of each network's order of samples.
    batch_size : int
    learning_rate : float
    loss : Loss
    """

    steps: dict[int, MinibatchStep]
    losses: np.ndarray
    epoch: int

    def __init__(
        self,
        inputs: torch.Tensor,
        labels: np.ndarray,
        *,
        seeds: Sequence[int],
        batch_size: int,
        learning_rate: float,
        loss: Loss = cross_entropy,
    ) -> None:
        self.inputs = inputs
        self.labels = torch.from_numpy(labels.astype(np.float32)).to(inputs.device)
        self.batch_size = min(batch_size, len(inputs))
        self.learning_rate = learning_rate
        self.loss = loss
        self.n_networks = len(seeds)
        self.orders = [np.random.Generator(bit_generator(s, "order")) for s in seeds]
        self.step_sizes = {self.batch_size, len(inputs) % self.batch_size} - {0}

    def allocate(self, *shape: int) -> None:
        """Make all that is trained, its gradients, and what Adam keeps; all are 0."""
        device = self.inputs.device
        self.parameters, self.gradients, *self.moments = torch.zeros((4, *shape), device=device)
        self.n_steps = torch.zeros((), device=device)

    def move_weights(self) -> None:
        """Move all that is trained by its gradients, by one step of Adam."""
        # The class of torch.optim would import a second of PyTorch that nothing else needs.
        first_moments, second_moments = self.moments
        adam(
            [self.parameters],
            [self.gradients],
            [first_moments],
            [second_moments],
            [],
            [self.n_steps],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=0,
            eps=1e-8,
            maximize=False,
        )

    def run_epochs(self, first: int, n_epochs: int, position: tuple[int, int]) -> Iterator[int]:
        """Visit all samples ``n_epochs`` times, yielding the number of each epoch when done.

        ``first`` is the number of the first epoch; ``position`` are the number of the first of
        these networks among all, and that of all, for messages.

        Raises
        ------
        FloatingPointError
            If a network's loss stops being finite.
        """
        begin, n_all = position
        last = first + n_epochs - 1
        for self.epoch in range(first, last + 1):
            started = time.perf_counter()
            self.losses = self._run_epoch()
            logger.info(
                "networks %d-%d of %d, epoch %d/%d: mean loss %.5f, %.1f s",
                *(begin, begin + self.n_networks - 1, n_all, self.epoch, last),
                *(self.losses.mean(), time.perf_counter() - started),
            )
            if not np.isfinite(self.losses).all():
                raise FloatingPointError(
                    f"a network's loss is {self.losses.max()} in epoch {self.epoch}: "
                    f"learning_rate={self.learning_rate} may be too high for these inputs"
                )
            yield self.epoch

    def _run_epoch(self) -> np.ndarray:
        n_samples, size = len(self.inputs), self.batch_size
        orders = torch.from_numpy(np.stack([g.permutation(n_samples) for g in self.orders]))
        orders = orders.to(self.inputs.device)
        n_full = n_samples // size * size
        losses = self._run_steps(orders[:, :n_full], size)
        if n_full < n_samples:
            losses += self._run_steps(orders[:, n_full:], n_samples - n_full)
        return losses / n_samples

    def _run_steps(self, orders: torch.Tensor, size: int) -> np.ndarray:
        """Return the sum of each network's losses."""
        step = self.steps[size]
        # (n_networks, n_steps * size) -> (n_steps, n_networks, padded size); sample 0 pads.
        indices = orders.new_zeros((orders.shape[1] // size, self.n_networks, step.padded_size))
        indices[:, :, :size] = orders.view(self.n_networks, -1, size).transpose(0, 1)
        targets = self.labels.gather(1, indices.transpose(0, 1).flatten(1))
        targets = targets.view(self.n_networks, -1, step.padded_size).transpose(0, 1).contiguous()
        losses = torch.empty_like(targets)
        for arguments in zip(indices.unbind(), targets.unbind(), losses.unbind(), strict=True):
            step.compute_gradients(*arguments)
            self.move_weights()
        return losses[:, :, :size].double().sum((0, 2)).cpu().numpy()


class MinibatchStep:
    """One minibatch step, with arrays for minibatches of one size.

    A subclass has ``compute_gradients``, which takes each network's samples, their labels and
    an array for their losses, each of shape (n_networks, padded_size), and writes the gradients
    of the mean loss of ``n_minibatches`` minibatches. What is beyond their size does not matter.
    """

    def __init__(self, training: Minibatches, size: int, n_minibatches: int = 1) -> None:
        self.training = training
        self.padded_size = rounded_up(size, ALIGNMENT)
        # Factors of a mean over the minibatches; padding has no part in it.
        self.mean_factors = torch.zeros((self.padded_size, 1), device=training.inputs.device)
        self.mean_factors[:size] = 1 / (size * n_minibatches)

    def differentiate_loss(
        self, logits: torch.Tensor, targets: torch.Tensor, losses: torch.Tensor, out: torch.Tensor
    ) -> None:
        """Write the losses, and the gradients of their mean with respect to the logits."""
        of_samples, slopes = self.training.loss(logits, targets, self.training.epoch)
        losses.copy_(of_samples)
        torch.mul(slopes, self.mean_factors, out=out)


backward_of_relu = torch.ops.aten.threshold_backward.grad_input


def rounded_up(n: int, multiple: int) -> int:
    """Return the least multiple that is not below ``n``."""
    return -(-n // multiple) * multiple


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


def check_arguments(
    X: np.ndarray, labels: np.ndarray, seeds: Sequence[int], hidden_sizes: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return X as float32 and the labels as an array, both checked."""
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
    if len(hidden_sizes) == 0:
        raise ValueError("hidden_sizes is empty: one hidden layer is needed at least")
    return X, labels
