"""Networks that take their minibatch steps together: their arrays, order of samples and steps."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from epistemic_calibration.methods.kernels.masks import DropConnect, Dropout, Masks

logger = logging.getLogger("epistemic_calibration")

#: Floats that one iteration of vectorised code handles, AVX-512 included; twice a cache line.
_ALIGNMENT = 32

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


def bit_generator(seed: int, purpose: str) -> np.random.SFC64:
    """Return the stream of a purpose: with masks, weights and order are as without."""
    purposes = ("weights", "order", "masks", "passes")
    return np.random.SFC64([seed, purposes.index(purpose)])


class LockStepTraining:
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
        self.inputs = inputs
        self.labels = torch.from_numpy(labels.astype(np.float32)).to(inputs.device)
        self.batch_size = min(batch_size, len(inputs))
        self.learning_rate = learning_rate
        self.loss = loss
        self.n_networks = len(seeds)
        self.orders = [np.random.Generator(bit_generator(s, "order")) for s in seeds]
        self.n_rows = [w.shape[1] for w in weights]
        all_rows = [padded_rows(*w.shape[1:]) for w in weights]
        self.noise = noise
        self.mask_bits = [bit_generator(s, "masks") for s in seeds]
        #: Momentum of stochastic gradient descent; None while Adam moves the weights.
        self.momentum = None

        shapes = [
            (self.n_networks, rows, w.shape[2]) for rows, w in zip(all_rows, weights, strict=True)
        ]
        n_padded = _rounded_up(sum(math.prod(shape) for shape in shapes), _ALIGNMENT)
        # All that is trained, its gradients, and what Adam keeps.
        self.parameters, self.gradients, *self.moments = torch.zeros(
            (4, n_padded), device=inputs.device
        )
        self.n_steps = torch.zeros((), device=inputs.device)
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
        sizes = {self.batch_size, len(inputs) % self.batch_size} - {0}
        self.steps = {size: _Step(self, size) for size in sizes}

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

    def start_constant_rate(self, learning_rate: float, momentum: float) -> None:
        """Go on by stochastic gradient descent."""
        self.learning_rate, self.momentum = learning_rate, momentum
        # From here on the velocity; the second moments have no part.
        self.moments[0].zero_()

    def move_weights(self) -> None:
        """Move all weights by their gradients."""
        if self.momentum is None:
            # The class of torch.optim would import a second of PyTorch that nothing else needs.
            adam(
                [self.parameters],
                [self.gradients],
                [self.moments[0]],
                [self.moments[1]],
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


class _Step:
    """One minibatch step, with arrays for minibatches of one size.

    What is in the arrays beyond that size does not matter.
    """

    def __init__(self, training: LockStepTraining, size: int) -> None:
        self.training = training
        self.padded_size = _rounded_up(size, _ALIGNMENT)
        # Factors of a mean over the minibatch; padding has no part in it.
        self.mean_factors = torch.zeros((self.padded_size, 1), device=training.inputs.device)
        self.mean_factors[:size] = 1 / size
        device, n_networks = training.inputs.device, training.n_networks

        def empty(*shape: int) -> torch.Tensor:
            return torch.empty((n_networks, self.padded_size, *shape), device=device)

        widths = [w.shape[2] for w in training.weights]
        self.layer_inputs = [empty(training.inputs.shape[1])]
        self.gathered = self.layer_inputs[0].view(n_networks * self.padded_size, -1)
        for width, weights in zip(widths[:-1], training.weights[1:], strict=True):
            activations = with_constant(empty(width), weights.shape[1])
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
        of_samples, slopes = training.loss(z[last], targets, training.epoch)
        losses.copy_(of_samples)
        torch.mul(slopes, self.mean_factors, out=deltas[last])
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
        _backward_of_relu(delta, self.pre_activations[i - 1], 0, grad_input=delta)
        if self.dropout_masks is not None:
            delta.mul_(self.dropout_masks.blocks[i - 1])


def padded_rows(n_rows: int, n_columns: int) -> int:
    """Return how many rows make a matrix of whole aligned blocks."""
    return _rounded_up(n_rows, _ALIGNMENT // math.gcd(_ALIGNMENT, n_columns))


def with_constant(values: torch.Tensor, n_columns: int) -> torch.Tensor:
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


def _rounded_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


_backward_of_relu = torch.ops.aten.threshold_backward.grad_input
