"""Training and evaluating many small networks in lock step.

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
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from epistemic_calibration.device import resolve_device

logger = logging.getLogger("epistemic_calibration")

#: Weights, gradients, Adam's two moments and masks of the networks trained together, in bytes:
#: they are read at each step, and should stay in the processor's cache beside the data.
GROUP_BYTES = {"cpu": 4 * 2**20, "cuda": 2**30}
#: Floats that one iteration of vectorised code handles, AVX-512 included; twice a cache line.
ALIGNMENT = 32
#: Rows evaluated at once in prediction.
_CHUNK = 2048
#: Levels of the 16 random bits that decide about one mask entry.
_LEVELS = 2**16


@dataclass(frozen=True)
class Dropout:
    """Inverse-scaled dropout on the hidden activations (Srivastava et al. 2014).

    Attributes
    ----------
    probabilities : tuple of float
        Probability of zeroing an activation, in [0, 1), one for each hidden layer.
    """

    probabilities: tuple[float, ...]


@dataclass(frozen=True)
class DropConnect:
    """Inverse-scaled Bernoulli masks on weights and biases (Wan et al. 2013).

    One mask serves all samples of a minibatch, and each step has a new one.

    Attributes
    ----------
    probability : float
        Probability of zeroing a weight, in [0, 1).
    output_layer : bool
        Whether the output layer is masked too, beside the hidden ones.
    """

    probability: float
    output_layer: bool = False

    def n_masked_layers(self, n_layers: int) -> int:
        """Return how many layers, from the input on, have masks."""
        return n_layers if self.output_layer else n_layers - 1


@dataclass(frozen=True)
class ConstantRate:
    """Epochs of stochastic gradient descent with momentum after those of Adam.

    Attributes
    ----------
    n_epochs : int
        The weights at the end of each are kept.
    learning_rate : float
    momentum : float
        Of Polyak's heavy ball, in [0, 1).
    """

    n_epochs: int
    learning_rate: float
    momentum: float


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
        return Networks(
            tuple(w[index] for w in self.weights),
            self.losses[index],
            tuple(w[index] for w in self.iterates),
        )


def initial_weights(layer_sizes: Sequence[int], seed: int) -> list[np.ndarray]:
    """Draw the initial weights of one network as ``torch.nn.Linear`` does by default.

    Parameters
    ----------
    layer_sizes : sequence of int
        Numbers of inputs, of units of each hidden layer, of outputs.
    seed : int

    Returns
    -------
    list of ndarray of shape (fan_in + 1, fan_out)
        Uniform on ±1 / sqrt(fan_in); the last row is the bias.
    """
    generator = np.random.Generator(bit_generator(seed, "weights"))
    weights = []
    for fan_in, fan_out in itertools.pairwise(layer_sizes):
        bound = 1 / math.sqrt(fan_in)
        uniform = generator.random((fan_in + 1, fan_out), dtype=np.float32)
        weights.append((2 * uniform - 1) * np.float32(bound))
    return weights


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
    hidden_sizes : sequence of int
        Units of each hidden layer.
    n_epochs, batch_size : int
        The last minibatch of an epoch is smaller where the sizes do not divide.
    learning_rate : float
        Adam's step.
    noise : Dropout, DropConnect or None
        Masks during training.
    loss : callable
        As `Loss`.
    constant_rate : ConstantRate or None
        Epochs after those of Adam.
    device : {"auto", "cpu", "cuda"}
        ``auto`` is CUDA where there is one. Random numbers are the same on each.
    group_size : int or None
        Networks that take their steps together; None for what suits the cache. Results do
        not depend on it.

    Returns
    -------
    Networks

    Raises
    ------
    ValueError
        If an argument has a wrong shape or value, or CUDA is asked for and absent.
    FloatingPointError
        If a network's loss stops being finite.
    """
    torch_device = resolve_device(device)
    X, labels = check_data(X, labels, seeds)
    check_settings(hidden_sizes, n_epochs, batch_size, learning_rate, noise, group_size)
    _check_constant_rate(constant_rate)
    layer_sizes = (X.shape[1], *hidden_sizes, 2)

    active = active_features(X)
    inputs = _with_constant(
        torch.from_numpy(X[:, active]).to(torch_device),
        _padded_rows(np.count_nonzero(active) + 1, layer_sizes[1]),
    )

    per_network = [initial_weights(layer_sizes, seed) for seed in seeds]
    weights = [np.stack(layer) for layer in zip(*per_network, strict=True)]
    trained_rows = np.append(active, True)
    losses = np.empty(len(seeds))
    n_iterates = 0 if constant_rate is None else constant_rate.n_epochs
    iterates = [np.repeat(w[:, None], n_iterates, axis=1) for w in weights if n_iterates]

    if group_size is None:
        n_weights = np.count_nonzero(trained_rows) * layer_sizes[1] + sum(
            w[0].size for w in weights[1:]
        )
        n_arrays = 6 if isinstance(noise, DropConnect) else 4
        group_size = max(1, GROUP_BYTES[torch_device.type] // (n_arrays * 4 * n_weights))
    n_groups = -(-len(seeds) // group_size)
    with torch.inference_mode(), denormals_flushed():
        for group in np.array_split(np.arange(len(seeds)), n_groups):
            training = _LockStepTraining(
                inputs,
                labels[group],
                [weights[0][group][:, trained_rows], *(w[group] for w in weights[1:])],
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
                    first, *others = training.trained_weights()
                    iterates[0][np.ix_(group, [t], trained_rows)] = first[:, None]
                    for layer, trained in zip(iterates[1:], others, strict=True):
                        layer[group, t] = trained
            losses[group] = training.losses
            first, *others = training.trained_weights()
            weights[0][np.ix_(group, trained_rows)] = first
            for layer, trained in zip(weights[1:], others, strict=True):
                layer[group] = trained
    return Networks(tuple(weights), losses, tuple(iterates))


def active_features(X: np.ndarray) -> np.ndarray:
    """Return which features are not zero at all inputs, bool of shape (n_features,).

    Weights of a feature that is always zero have no gradient and never move, and many latent
    units of a ReLU encoder are such: they need no arithmetic.
    """
    return X.any(axis=0)


def predict_proba(networks: Networks, X: np.ndarray, *, device: str = "auto") -> np.ndarray:
    """Return P(Y = 1 | x) of each network, float32 of shape (n_samples, n_networks)."""
    with torch.inference_mode():
        evaluation = _Evaluation(X, resolve_device(device))
        columns = []
        for k in range(len(networks)):
            weights = evaluation.load(networks, k)
            columns.append(evaluation.positive_probability(weights))
        return _as_columns(columns)


def last_hidden_activations(
    networks: Networks, X: np.ndarray, *, device: str = "auto"
) -> np.ndarray:
    """Return what the output layers see, float32 of shape (n_networks, n_samples, n_units)."""
    with torch.inference_mode():
        evaluation = _Evaluation(X, resolve_device(device))
        return np.stack(
            [
                evaluation.activations(evaluation.load(networks, k)[:-1]).cpu().numpy()
                for k in range(len(networks))
            ]
        )


def dropconnect_hypotheses(
    networks: Networks,
    X: np.ndarray,
    noise: DropConnect,
    *,
    n_hypotheses: int,
    seed: int,
    device: str = "auto",
) -> np.ndarray:
    """Evaluate one network under random masks of its weights.

    A pass has one mask for all inputs, and is thus a function of x: that of a given seed and
    number is the same whatever the inputs.

    Parameters
    ----------
    networks : Networks
        A single one.
    X : ndarray of shape (n_samples, n_features)
    noise : DropConnect
        As in training.
    n_hypotheses : int
        Number of passes.
    seed : int
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    ndarray of shape (n_samples, n_hypotheses)
        P(Y = 1 | x) of each pass, float32.
    """
    with torch.inference_mode():
        evaluation = _Evaluation(X, resolve_device(device))
        weights = [torch.tensor(w[0], device=evaluation.device) for w in networks.weights]
        n_masked = noise.n_masked_layers(len(weights))
        masks = _Masks(
            [w.shape for w in weights[:n_masked]],
            [noise.probability] * n_masked,
            n_networks=1,
            device=evaluation.device,
        )
        bits = bit_generator(seed, "passes")
        columns = []
        for _ in range(n_hypotheses):
            masks.draw([bits])
            masked = [w * m[0] for w, m in zip(weights, masks.blocks, strict=False)]
            masked[0] = masked[0][evaluation.rows]
            columns.append(evaluation.positive_probability(masked + weights[n_masked:]))
        return _as_columns(columns)


def dropout_hypotheses(
    networks: Networks,
    X: np.ndarray,
    noise: Dropout,
    *,
    n_hypotheses: int,
    shared_masks: bool,
    seed: int,
    device: str = "auto",
) -> np.ndarray:
    """Evaluate one network under random masks of its hidden activations.

    Parameters
    ----------
    networks : Networks
        A single one.
    X : ndarray of shape (n_samples, n_features)
    noise : Dropout
        As in training.
    n_hypotheses : int
        Number of passes.
    shared_masks : bool
        Whether one mask serves all inputs of a pass, so that the pass is a function of x;
        otherwise each input has its own.
    seed : int
    device : {"auto", "cpu", "cuda"}

    Returns
    -------
    ndarray of shape (n_samples, n_hypotheses)
        P(Y = 1 | x) of each pass, float32.
    """
    with torch.inference_mode():
        evaluation = _Evaluation(X, resolve_device(device))
        first, *others = evaluation.load(networks, 0)
        first_activations = evaluation.activations([first])
        sizes = [first.shape[1], *(w.shape[1] for w in others[:-1])]
        bits = bit_generator(seed, "passes")

        def masks_for(n_rows: int) -> _Masks:
            return _Masks(
                [(n_rows, size) for size in sizes],
                noise.probabilities,
                n_networks=1,
                device=evaluation.device,
            )

        chunks = first_activations.split(_CHUNK)
        masks_by_rows = {n: masks_for(n) for n in {1 if shared_masks else len(c) for c in chunks}}
        columns = []
        for _ in range(n_hypotheses):
            if shared_masks:
                masks_by_rows[1].draw([bits])
            column = []
            for chunk in chunks:
                masks = masks_by_rows[1 if shared_masks else len(chunk)]
                if not shared_masks:
                    masks.draw([bits])
                hidden = chunk * masks.blocks[0][0]
                for w, mask in zip(others[:-1], masks.blocks[1:], strict=True):
                    hidden = torch.addmm(w[-1], hidden, w[:-1]).clamp_min_(0).mul_(mask[0])
                column.append(_positive_probability(hidden, others[-1]))
            columns.append(torch.cat(column))
        return _as_columns(columns)


class _Masks:
    """Inverse-scaled Bernoulli masks of several networks.

    ``blocks`` holds one tensor (n_networks, *shape) for each of ``shapes``; ``flat`` is the
    memory of all blocks, one after the other.
    """

    def __init__(
        self,
        shapes: Sequence[Sequence[int]],
        probabilities: Sequence[float],
        *,
        n_networks: int,
        device: torch.device,
    ) -> None:
        sizes = [math.prod(shape) for shape in shapes]
        n_total = n_networks * sum(sizes)
        # An entry is kept where 16 random bits, as an integer, reach this: probabilities are
        # rounded to multiples of 2**-16, and scales fit the rounded ones, so that a mask's
        # expectation is 1. It is several times faster than drawing floats.
        self._thresholds = [min(round(p * _LEVELS), _LEVELS - 1) for p in probabilities]
        self._scales = [_LEVELS / (_LEVELS - t) for t in self._thresholds]
        self._n_draws = -(-sum(sizes) // 4)
        self._bits = np.empty((n_networks, sum(sizes)), dtype=np.uint16)
        self._kept = np.empty(n_total, dtype=bool)
        host = torch.empty(n_total)
        self._host, self._host_values = host, host.numpy()
        self.flat = host if device.type == "cpu" else host.to(device)

        self.blocks, self._comparisons, begin, column = [], [], 0, 0
        for shape, size, threshold in zip(shapes, sizes, self._thresholds, strict=True):
            end = begin + n_networks * size
            self.blocks.append(self.flat[begin:end].view(n_networks, *shape))
            kept = self._kept[begin:end].reshape(n_networks, size)
            self._comparisons.append((self._bits[:, column : column + size], threshold, kept))
            begin, column = end, column + size
        same_scale = len(set(self._scales)) == 1
        self._scaled = (
            [(self.flat, self._scales[0])]
            if same_scale
            else list(zip(self.blocks, self._scales, strict=True))
        )

    def draw(self, bit_generators: Sequence[np.random.BitGenerator]) -> None:
        """Draw new masks, each network's from its own generator."""
        n = self._bits.shape[1]
        for row, bits in zip(self._bits, bit_generators, strict=True):
            row[:] = bits.random_raw(self._n_draws).view(np.uint16)[:n]
        for values, threshold, kept in self._comparisons:
            np.greater_equal(values, threshold, out=kept)
        np.copyto(self._host_values, self._kept)
        if self.flat is not self._host:
            self.flat.copy_(self._host)
        for block, scale in self._scaled:
            block.mul_(scale)


class Minibatches:
    """Networks that take their minibatch steps together, each with its own minibatch.

    A subclass fills ``steps``: by size of a minibatch, a function of indices, targets and an
    array for the losses, each (n_networks, padded_size), which takes one step.

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

    def __init__(
        self,
        inputs: torch.Tensor,
        labels: np.ndarray,
        *,
        seeds: Sequence[int],
        batch_size: int,
        learning_rate: float,
        loss: Loss,
    ) -> None:
        self.inputs = inputs
        self.labels = torch.from_numpy(labels.astype(np.float32)).to(inputs.device)
        self.batch_size = min(batch_size, len(inputs))
        self.learning_rate = learning_rate
        self.loss = loss
        self.n_networks = len(seeds)
        self.orders = [np.random.Generator(bit_generator(s, "order")) for s in seeds]
        self.losses: np.ndarray
        self.steps: dict[int, MinibatchStep]

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

    @property
    def step_sizes(self) -> set[int]:
        """Sizes of the minibatches of an epoch."""
        return {self.batch_size, len(self.inputs) % self.batch_size} - {0}

    def run_epochs(self, first: int, n_epochs: int, position: tuple[int, int]) -> Iterator[int]:
        """Visit all samples ``n_epochs`` times, yielding the number of each epoch when done.

        Parameters
        ----------
        first, n_epochs : int
            Number of the first epoch, and of epochs.
        position : tuple of int
            Number of the first of these networks among all, and of all, for messages.

        Raises
        ------
        FloatingPointError
            If a network's loss stops being finite.
        """
        begin, n_all = position
        last = first + n_epochs - 1
        for epoch in range(first, last + 1):
            started = time.perf_counter()
            self.epoch = epoch
            self.losses = self.run_epoch()
            logger.info(
                "networks %d-%d of %d, epoch %d/%d: mean loss %.5f, %.1f s",
                *(begin, begin + self.n_networks - 1, n_all, epoch, last),
                *(self.losses.mean(), time.perf_counter() - started),
            )
            if not np.isfinite(self.losses).all():
                raise FloatingPointError(
                    f"a network's loss is {self.losses.max()} in epoch {epoch}: "
                    f"learning_rate={self.learning_rate} may be too high for these inputs"
                )
            yield epoch

    def run_epoch(self) -> np.ndarray:
        """Visit all samples once; return each network's mean loss."""
        n_samples, size = len(self.inputs), self.batch_size
        orders = torch.from_numpy(np.stack([g.permutation(n_samples) for g in self.orders]))
        orders = orders.to(self.inputs.device)
        n_full = n_samples // size * size
        losses = self._run_steps(orders[:, :n_full], size)
        if n_full < n_samples:
            losses += self._run_steps(orders[:, n_full:], n_samples - n_full)
        return losses / n_samples

    def _run_steps(self, orders: torch.Tensor, size: int) -> np.ndarray:
        step = self.steps[size]
        # (n_networks, n_steps * size) -> (n_steps, n_networks, padded size); sample 0 pads.
        indices = orders.new_zeros((orders.shape[1] // size, self.n_networks, step.padded_size))
        indices[:, :, :size] = orders.view(self.n_networks, -1, size).transpose(0, 1)
        targets = self.labels.gather(1, indices.transpose(0, 1).flatten(1))
        targets = targets.view(self.n_networks, -1, step.padded_size).transpose(0, 1).contiguous()
        # Summed once an epoch.
        losses = torch.empty_like(targets)
        for arguments in zip(indices.unbind(), targets.unbind(), losses.unbind(), strict=True):
            step(*arguments)
        return losses[:, :, :size].double().sum((0, 2)).cpu().numpy()


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
            self.weight_masks = _Masks(
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

    def trained_weights(self) -> list[np.ndarray]:
        """Return the weights of each layer, (n_networks, fan_in + 1, fan_out)."""
        return [w[:, :n].cpu().numpy() for w, n in zip(self.weights, self.n_rows, strict=True)]

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


class MinibatchStep:
    """One minibatch step, with arrays for minibatches of one size.

    A subclass has ``compute_gradients``.

    Parameters
    ----------
    training : Minibatches
    size : int
        Samples of a minibatch.
    n_minibatches : int, default 1
        Minibatches that a loss is the mean over.
    """

    def __init__(self, training: Minibatches, size: int, n_minibatches: int = 1) -> None:
        self.training = training
        self.padded_size = rounded_up(size, ALIGNMENT)
        # Factors of a mean over the minibatches; padding has no part in it.
        self.mean_factors = torch.zeros((self.padded_size, 1), device=training.inputs.device)
        self.mean_factors[:size] = 1 / (size * n_minibatches)

    def __call__(self, indices: torch.Tensor, targets: torch.Tensor, losses: torch.Tensor) -> None:
        self.compute_gradients(indices, targets, losses)
        self.training.move_weights()


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
            self.dropout_masks = _Masks(
                [(self.padded_size, width) for width in widths[:-1]],
                training.noise.probabilities,
                n_networks=n_networks,
                device=device,
            )

    def compute_gradients(
        self, indices: torch.Tensor, targets: torch.Tensor, losses: torch.Tensor
    ) -> None:
        """Write the gradients of the mean loss of the minibatches.

        Parameters
        ----------
        indices, targets : tensor of shape (n_networks, padded_size)
            Samples of each network's minibatch, and their labels; what is beyond the
            minibatch's size does not matter.
        losses : tensor of shape (n_networks, padded_size)
            Filled with those of the samples.
        """
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
        backward_of_relu(delta, self.pre_activations[i - 1], 0, grad_input=delta)
        if self.dropout_masks is not None:
            delta.mul_(self.dropout_masks.blocks[i - 1])


backward_of_relu = torch.ops.aten.threshold_backward.grad_input


class _Evaluation:
    """Inputs on a device, and networks evaluated on them."""

    def __init__(self, X: np.ndarray, device: torch.device) -> None:
        X = np.asarray(X, dtype=np.float32)
        # Features that are zero at all inputs add nothing.
        active = X.any(axis=0)
        #: Rows of the first layer's weights that matter, the bias among them.
        self.rows = torch.from_numpy(np.flatnonzero(np.append(active, True))).to(device)
        self.chunks = torch.tensor(X[:, active], device=device).split(_CHUNK)
        self.device = device

    def load(self, networks: Networks, k: int) -> list[torch.Tensor]:
        """Return the weights of network ``k``, with the rows of the first layer that matter."""
        # Copies, which are aligned whatever k.
        first, *others = (torch.tensor(w[k], device=self.device) for w in networks.weights)
        return [first[self.rows], *others]

    def activations(self, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the activations after the given layers, (n_samples, n_units)."""
        return torch.cat([_activations(chunk, weights) for chunk in self.chunks])

    def positive_probability(self, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return P(Y = 1 | x), shape (n_samples,)."""
        return torch.cat(
            [
                _positive_probability(_activations(chunk, weights[:-1]), weights[-1])
                for chunk in self.chunks
            ]
        )


def _activations(X: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
    for w in weights:
        X = torch.addmm(w[-1], X, w[:-1]).clamp_min_(0)
    return X


def _positive_probability(hidden: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    logits = torch.addmm(weights[-1], hidden, weights[:-1])
    return torch.sigmoid(logits[:, 1] - logits[:, 0])


def _as_columns(columns: Sequence[torch.Tensor]) -> np.ndarray:
    return np.ascontiguousarray(torch.stack(list(columns)).cpu().numpy().T)


def rounded_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def _check_constant_rate(constant_rate: ConstantRate | None) -> None:
    if constant_rate is None:
        return
    rate, momentum = constant_rate.learning_rate, constant_rate.momentum
    if constant_rate.n_epochs < 1:
        raise ValueError(f"n_epochs={constant_rate.n_epochs} at a constant rate, must be >= 1")
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"the constant learning_rate={rate} must be positive and finite")
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum={momentum} must be in [0, 1)")


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
    views, begin = [], 0
    for shape in shapes:
        end = begin + math.prod(shape)
        views.append(flat[begin:end].view(*shape))
        begin = end
    return views


def bit_generator(seed: int, purpose: str) -> np.random.SFC64:
    # One stream for each purpose: a network has the same initial weights and order of samples
    # with masks as without.
    purposes = ("weights", "order", "masks", "passes", "signs")
    return np.random.SFC64([seed, purposes.index(purpose)])


@contextlib.contextmanager
def denormals_flushed() -> Iterator[None]:
    """Treat denormal floats as zero, which they are but for speed.

    Adam's moments of a weight without gradients decay into them, where arithmetic is many
    times slower.
    """
    were_flushed = torch.full((), 1e-40).mul(1).item() == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(were_flushed)


def check_data(
    X: np.ndarray, labels: np.ndarray, seeds: Sequence[int]
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
    return X, labels


def check_settings(
    hidden_sizes: Sequence[int],
    n_epochs: int,
    batch_size: int,
    learning_rate: float,
    noise: Dropout | DropConnect | None,
    group_size: int | None,
) -> None:
    counts = {"n_epochs": n_epochs, "batch_size": batch_size}
    if group_size is not None:
        counts["group_size"] = group_size
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name}={value} must be at least 1")
    if len(hidden_sizes) == 0 or min(hidden_sizes) < 1:
        raise ValueError(
            f"hidden_sizes={list(hidden_sizes)} must be one or more numbers of units >= 1"
        )
    if not (math.isfinite(learning_rate) and learning_rate > 0):
        raise ValueError(f"learning_rate={learning_rate} must be positive and finite")
    if isinstance(noise, Dropout):
        if len(noise.probabilities) != len(hidden_sizes):
            raise ValueError(
                f"drop_probabilities={list(noise.probabilities)} must be one for each of the "
                f"{len(hidden_sizes)} hidden layers"
            )
        probabilities = noise.probabilities
    else:
        probabilities = () if noise is None else (noise.probability,)
    for p in probabilities:
        if not 0 <= p < 1:
            raise ValueError(f"a drop probability is {p}, must be in [0, 1)")
