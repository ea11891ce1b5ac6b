"""Random masks of networks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

#: Levels of the 16 random bits that decide about one mask entry.
_LEVELS = 2**16


@dataclass(frozen=True)
class Dropout:
    """Inverse-scaled dropout on the hidden activations (Srivastava et al. 2014).

    ``probabilities`` are those of zeroing an activation, in [0, 1), one for each hidden layer.
    """

    probabilities: tuple[float, ...]

    def check(self, n_layers: int) -> None:
        """Raise a ValueError unless there is a probability for each of the hidden layers."""
        if len(self.probabilities) != n_layers or not all(0 <= p < 1 for p in self.probabilities):
            raise ValueError(
                f"drop_probabilities={list(self.probabilities)} must be one in [0, 1) for each of "
                f"the {n_layers} hidden layers"
            )


@dataclass(frozen=True)
class DropConnect:
    """Inverse-scaled Bernoulli masks on weights and biases (Wan et al. 2013).

    ``probability`` is that of zeroing a weight, in [0, 1); the output layer is masked as well
    where ``output_layer`` is true. One mask serves all samples of a minibatch.
    """

    probability: float
    output_layer: bool = False

    def n_masked_layers(self, n_layers: int) -> int:
        """Return how many layers, from the input on, have masks."""
        return n_layers if self.output_layer else n_layers - 1


class Masks:
    """Inverse-scaled Bernoulli masks of several networks.

    ``blocks`` holds one tensor (n_networks, *shape) for each of ``shapes``; ``flat`` is the
    memory of all blocks, one after the other.

    An entry is kept where 16 random bits, as an integer, reach a threshold: probabilities are
    rounded to multiples of 2**-16, and scales fit the rounded ones, so that a mask's expectation
    is 1. It is several times faster than drawing floats.
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
        self.flat = torch.empty(n_networks * sum(sizes), device=device)
        blocks = self.flat.split([n_networks * size for size in sizes])
        self.blocks = [b.view(n_networks, *s) for b, s in zip(blocks, shapes, strict=True)]
        self._bits = np.empty((n_networks, sum(sizes)), dtype=np.uint16)
        columns = np.split(self._bits, np.cumsum(sizes)[:-1], axis=1)
        thresholds = [min(round(p * _LEVELS), _LEVELS - 1) for p in probabilities]
        self._parts = list(zip(self.blocks, columns, thresholds, strict=True))

    def draw(self, bit_generators: Sequence[np.random.BitGenerator]) -> None:
        """Draw new masks, each network's from its own generator."""
        n = self._bits.shape[1]
        for row, bits in zip(self._bits, bit_generators, strict=True):
            row[:] = bits.random_raw(-(-n // 4)).view(np.uint16)[:n]
        for block, values, threshold in self._parts:
            kept = torch.from_numpy(values >= threshold).view(block.shape)
            block.copy_(kept).mul_(_LEVELS / (_LEVELS - threshold))
