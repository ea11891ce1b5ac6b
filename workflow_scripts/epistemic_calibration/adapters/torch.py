"""Modules of PyTorch: ensembles of them, and dropout in prediction (Gal & Ghahramani 2016)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.modules.dropout import _DropoutNd

from epistemic_calibration.adapters.base import (
    Adapter,
    ClassProbabilities,
    ModelError,
    check_number,
    name_of,
    stack,
)
from epistemic_calibration.metrics._classes import SUM_TOLERANCE
from epistemic_calibration.seeds import derive_seed

Outputs = Literal["logits", "probabilities"]


class TorchAdapter(Adapter):
    """A list of modules is an ensemble; one module with dropout is asked many times."""

    label = "PyTorch"

    def handles(self, model: Any) -> bool:
        """Return whether a model is a module."""
        return isinstance(model, torch.nn.Module)

    def from_model(
        self,
        model: torch.nn.Module,
        X: Any,
        *,
        n_hypotheses: int | None,
        random_state: int,
        outputs: Outputs | None = None,
        batch_size: int = 1024,
    ) -> ClassProbabilities:
        """Return passes with the dropout layers, and only those, in training mode."""
        options = {"outputs": outputs, "batch_size": batch_size}
        seeds = {"n_hypotheses": n_hypotheses, "random_state": random_state}
        if isinstance(model, torch.nn.ModuleList):
            return self.from_list(list(model), X, **seeds, **options)
        layers = [module for module in model.modules() if _drops(module)]
        if not layers:
            raise ModelError(
                f"{name_of(model)} is one module without dropout layers, so one hypothesis: give a "
                f"list of modules trained apart, or a fitted laplace.Laplace of it"
            )
        passes = []
        with evaluating(model), _without_fused_attention(), private_random_state(model):
            for layer in layers:
                # Not train(), which would take along what is inside an attention layer.
                layer.training = True
            for j in range(100 if n_hypotheses is None else n_hypotheses):
                seed(model, derive_seed(random_state, j))
                passes.append(_forward(model, X, batch_size))
        values = _probabilities(passes, outputs, name=name_of(model))
        if (values == values[:, :1]).all():
            raise ModelError(
                f"all passes of {name_of(model)} are equal, though it has dropout layers: forward "
                f"does not use them. Give a list of modules, or a fitted laplace.Laplace"
            )
        return ClassProbabilities(values, np.arange(values.shape[2]))

    def from_list(
        self,
        models: Sequence[torch.nn.Module],
        X: Any,
        *,
        n_hypotheses: int | None,
        random_state: int,
        outputs: Outputs | None = None,
        batch_size: int = 1024,
    ) -> ClassProbabilities:
        """Return one pass of each module, in evaluation mode."""
        name = name_of(models)
        check_number(n_hypotheses, len(models), name=name)
        members = []
        for j, model in enumerate(models):
            with evaluating(model), private_random_state(model):
                # Nothing is drawn, unless a module draws in evaluation mode, too.
                seed(model, derive_seed(random_state, j))
                members.append(_forward(model, X, batch_size))
        values = _probabilities(members, outputs, name=name)
        return ClassProbabilities(values, np.arange(values.shape[2]))


def _drops(module: torch.nn.Module) -> bool:
    if isinstance(module, _DropoutNd):
        return module.p > 0
    # These drop by themselves and hold no dropout layer; training mode changes nothing else.
    kinds = (torch.nn.RNNBase, torch.nn.MultiheadAttention)
    return isinstance(module, kinds) and module.dropout > 0


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode; give each part its own mode back at the end."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def _without_fused_attention() -> Iterator[None]:
    # A transformer layer in evaluation mode takes a path that leaves out its dropout layers,
    # whatever their mode.
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@contextmanager
def private_random_state(model: torch.nn.Module) -> Iterator[None]:
    """Give the states of the random generators that a module uses back at the end.

    Raises
    ------
    ModelError
        If it is on a device whose generator cannot be given back.
    """
    devices = {tensor.device for tensor in chain(model.parameters(), model.buffers())}
    strange = {device.type for device in devices} - {"cpu", "cuda"}
    if strange:
        raise ModelError(
            f"{name_of(model)} is on {', '.join(sorted(strange))}: move it to cpu or cuda"
        )
    with torch.random.fork_rng(devices=[d for d in devices if d.type == "cuda"]):
        yield


def seed(model: torch.nn.Module, value: int) -> None:
    """Seed the generators that a module uses, and no others."""
    torch.default_generator.manual_seed(value)
    for device in {parameter.device for parameter in model.parameters()}:
        if device.type == "cuda":
            torch.cuda.default_generators[device.index].manual_seed(value)


def batches(model: torch.nn.Module, X: Any, batch_size: int) -> Iterator[torch.Tensor]:
    """Yield X in parts, as tensors where the module is; arrays of floats get its dtype.

    Raises
    ------
    ModelError
        If X is no tensor or array of numbers, or has no samples.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ModelError(f"batch_size must be an integer >= 1, got {batch_size!r}")
    tensors = list(chain(model.parameters(), model.buffers()))
    device = tensors[0].device if tensors else torch.device("cpu")
    if not isinstance(X, torch.Tensor):
        array = np.asarray(X)
        if array.dtype.kind not in "buif":
            raise ModelError(f"X has dtype {array.dtype}: give a tensor or an array of numbers")
        X = torch.tensor(array)
        if X.is_floating_point():
            floats = [t.dtype for t in tensors if t.is_floating_point()]
            X = X.to(floats[0] if floats else torch.float32)
    if X.ndim == 0 or len(X) == 0:
        raise ModelError(f"X must have samples on axis 0, got shape {tuple(X.shape)}")
    for start in range(0, len(X), batch_size):
        yield X[start : start + batch_size].to(device)


def _forward(model: torch.nn.Module, X: Any, batch_size: int) -> np.ndarray:
    """Return what a module gives for X, shape (n_samples, n_outputs), float64."""
    parts = []
    for batch in batches(model, X, batch_size):
        part = model(batch)
        if not isinstance(part, torch.Tensor):
            raise ModelError(
                f"{name_of(model)} returns a {type(part).__name__}, expected a tensor of logits or "
                f"probabilities: wrap it in a module that returns one"
            )
        part = part[:, None] if part.ndim == 1 else part
        if part.ndim != 2 or len(part) != len(batch):
            raise ModelError(
                f"{name_of(model)} returns shape {tuple(part.shape)} for {len(batch)} inputs, "
                f"expected ({len(batch)}, n_classes) or ({len(batch)},)"
            )
        parts.append(part.detach().cpu().double())
    return torch.cat(parts).numpy()


def _probabilities(
    members: Sequence[np.ndarray], outputs: Outputs | None, *, name: str
) -> np.ndarray:
    """Return the probabilities of the classes, (n_samples, n_members, n_classes)."""
    if outputs not in (None, "logits", "probabilities"):
        raise ModelError(f"outputs must be 'logits' or 'probabilities', got {outputs!r}")
    values = stack(members, name=name)
    if np.isnan(values).any():
        n_bad = np.count_nonzero(np.isnan(values))
        raise ModelError(f"{name} gives {n_bad} outputs that are NaN, of {values.size}")
    one = values.shape[2] == 1
    if outputs is None:
        if one:
            raise ModelError(
                f"{name} gives one output per input: say outputs='logits' or "
                f"outputs='probabilities'"
            )
        outputs = _told(values, name=name)
    tensor = torch.from_numpy(values)
    if outputs == "logits":
        # The sigmoid of a logit, and of its negative, keep the digits of either tail.
        return (
            torch.cat([torch.sigmoid(-tensor), torch.sigmoid(tensor)], dim=2)
            if one
            else torch.softmax(tensor, dim=2)
        ).numpy()
    return np.concatenate([1 - values, values], axis=2) if one else values


def _told(values: np.ndarray, *, name: str) -> Outputs:
    """Return what outputs are, by whether they add up to 1."""
    inside = (values >= 0).all(axis=(0, 2)) & (values <= 1 + SUM_TOLERANCE).all(axis=(0, 2))
    sums = np.abs(values.sum(axis=2) - 1).max(axis=0) <= SUM_TOLERANCE
    if (inside & sums).all():
        return "probabilities"
    if inside.any():
        raise ModelError(
            f"{name} gives outputs in [0, 1] that do not add up to 1 over the "
            f"{values.shape[2]} classes: neither logits nor probabilities, unless you say "
            f"outputs='logits'"
        )
    return "logits"
