"""Steps of Adam on the processor."""

from __future__ import annotations

import math

import numpy as np

from epistemic_calibration.methods._compiled import compiled

#: Decay of the two moments, and what keeps the step finite, as in PyTorch and the paper.
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Adam (Kingma & Ba 2015), without weight decay.

    The formula is PyTorch's, in one pass over the memory with one division and one square root
    per parameter; PyTorch's has three divisions. Each operation is rounded on its own, in
    whatever order parameters are visited, so that a parameter's path does not depend on the
    others, or on the machine.

    Parameters
    ----------
    parameters, gradients : ndarray of float32
        Of equal shape, contiguous; the parameters are changed in place.
    first_moments, second_moments : ndarray of float32
        Likewise; zeros at the start.
    """

    def __init__(
        self,
        parameters: np.ndarray,
        gradients: np.ndarray,
        first_moments: np.ndarray,
        second_moments: np.ndarray,
    ) -> None:
        arrays = (parameters, gradients, first_moments, second_moments)
        if any(a.dtype != np.float32 or not a.flags.c_contiguous for a in arrays):
            raise ValueError("Adam needs contiguous arrays of float32")
        self._arrays = [array.reshape(-1) for array in arrays]
        self.n_steps = 0

    def step(self, learning_rate: float) -> None:
        """Move the parameters by the gradients."""
        self.n_steps += 1
        first = 1 - BETA_1**self.n_steps
        second = math.sqrt(1 - BETA_2**self.n_steps)
        # The corrections of both moments, moved to one factor and the constant.
        _step(
            *self._arrays, np.float32(learning_rate * second / first), np.float32(EPSILON * second)
        )


_KEEP_1, _NEW_1 = np.float32(BETA_1), np.float32(1 - BETA_1)
_KEEP_2, _NEW_2 = np.float32(BETA_2), np.float32(1 - BETA_2)


@compiled
def _step(parameters, gradients, first_moments, second_moments, rate, epsilon):
    for i in range(len(parameters)):
        gradient = gradients[i]
        first = _KEEP_1 * first_moments[i] + _NEW_1 * gradient
        second = _KEEP_2 * second_moments[i] + _NEW_2 * (gradient * gradient)
        first_moments[i] = first
        second_moments[i] = second
        parameters[i] -= rate * first / (np.sqrt(second) + epsilon)
