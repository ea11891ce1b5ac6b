"""What trained networks say of inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from epistemic_calibration.device import resolve_device
from epistemic_calibration.methods.kernels.masks import DropConnect, Dropout, Masks
from epistemic_calibration.methods.kernels.minibatches import bit_generator
from epistemic_calibration.methods.kernels.networks import Networks

#: Rows evaluated at once.
_CHUNK = 2048


def predict_proba(networks: Networks, X: np.ndarray, *, device: str = "auto") -> np.ndarray:
    """Return P(Y = 1 | x) of each network, float32 of shape (n_samples, n_networks)."""
    with torch.inference_mode():
        inputs = _Inputs(X, device)
        return _as_columns(
            [inputs.probabilities(inputs.weights(networks, k)) for k in range(len(networks))]
        )


def last_hidden_activations(
    networks: Networks, X: np.ndarray, *, device: str = "auto"
) -> np.ndarray:
    """Return what the output layers see, float32 of shape (n_networks, n_samples, n_units)."""
    with torch.inference_mode():
        inputs = _Inputs(X, device)
        of_networks = (inputs.weights(networks, k)[:-1] for k in range(len(networks)))
        return np.stack([inputs.activations(weights).cpu().numpy() for weights in of_networks])


def dropconnect_hypotheses(
    networks: Networks,
    X: np.ndarray,
    noise: DropConnect,
    *,
    n_hypotheses: int,
    seed: int,
    device: str = "auto",
) -> np.ndarray:
    """Evaluate the first network under random masks of its weights.

    A pass has one mask for all inputs, and is thus a function of x: that of a given seed and
    number is the same whatever the inputs. Returns P(Y = 1 | x) of each pass, float32 of shape
    (n_samples, n_hypotheses).
    """
    with torch.inference_mode():
        inputs = _Inputs(X, device)
        weights = [torch.tensor(w[0], device=inputs.device) for w in networks.weights]
        n_masked = noise.n_masked_layers(len(weights))
        masks = Masks(
            [w.shape for w in weights[:n_masked]],
            [noise.probability] * n_masked,
            n_networks=1,
            device=inputs.device,
        )
        bits = bit_generator(seed, "passes")
        columns = []
        for _ in range(n_hypotheses):
            masks.draw([bits])
            masked = [w * m[0] for w, m in zip(weights, masks.blocks, strict=False)]
            masked[0] = masked[0][inputs.rows]
            columns.append(inputs.probabilities(masked + weights[n_masked:]))
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
    """Evaluate the first network under random masks of its hidden activations.

    With ``shared_masks`` one mask serves all inputs of a pass, which is then a function of x;
    otherwise each input has its own. Returns P(Y = 1 | x) of each pass, float32 of shape
    (n_samples, n_hypotheses).
    """
    with torch.inference_mode():
        inputs = _Inputs(X, device)
        first, *others = inputs.weights(networks, 0)
        sizes = [first.shape[1], *(w.shape[1] for w in others[:-1])]
        bits = bit_generator(seed, "passes")
        chunks = inputs.activations([first]).split(_CHUNK)
        masks_of = {
            n: Masks(
                [(n, size) for size in sizes],
                noise.probabilities,
                n_networks=1,
                device=inputs.device,
            )
            for n in {1 if shared_masks else len(chunk) for chunk in chunks}
        }
        columns = []
        for _ in range(n_hypotheses):
            column = []
            for i, chunk in enumerate(chunks):
                masks = masks_of[1 if shared_masks else len(chunk)]
                if i == 0 or not shared_masks:
                    masks.draw([bits])
                hidden = chunk * masks.blocks[0][0]
                for w, mask in zip(others[:-1], masks.blocks[1:], strict=True):
                    hidden = _layer(hidden, w).mul_(mask[0])
                column.append(_probabilities(hidden, others[-1]))
            columns.append(torch.cat(column))
        return _as_columns(columns)


class _Inputs:
    """Inputs on a device, on which networks are evaluated."""

    def __init__(self, X: np.ndarray, device: str) -> None:
        self.device = resolve_device(device)
        X = np.asarray(X, dtype=np.float32)
        # Features that are zero at all inputs add nothing.
        active = X.any(axis=0)
        #: Rows of the first layer's weights that matter, the bias among them.
        self.rows = torch.from_numpy(np.flatnonzero(np.append(active, True))).to(self.device)
        self.chunks = torch.tensor(X[:, active], device=self.device).split(_CHUNK)

    def weights(self, networks: Networks, k: int) -> list[torch.Tensor]:
        """Return those of network ``k``, with the rows of the first layer that matter."""
        # Copies, which are aligned whatever k.
        first, *others = (torch.tensor(w[k], device=self.device) for w in networks.weights)
        return [first[self.rows], *others]

    def activations(self, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the activations after the given layers, (n_samples, n_units)."""
        return torch.cat([_layers(chunk, weights) for chunk in self.chunks])

    def probabilities(self, weights: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return P(Y = 1 | x), shape (n_samples,)."""
        return torch.cat(
            [_probabilities(_layers(chunk, weights[:-1]), weights[-1]) for chunk in self.chunks]
        )


def _layer(X: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.addmm(w[-1], X, w[:-1]).clamp_min_(0)


def _layers(X: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
    for w in weights:
        X = _layer(X, w)
    return X


def _probabilities(hidden: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    logits = torch.addmm(weights[-1], hidden, weights[:-1])
    return torch.sigmoid(logits[:, 1] - logits[:, 0])


def _as_columns(columns: Sequence[torch.Tensor]) -> np.ndarray:
    return np.ascontiguousarray(torch.stack(list(columns)).cpu().numpy().T)
