"""Modules of PyTorch: ensembles, dropout (Gal & Ghahramani 2016), and what draws by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Literal

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler

from epistemic_calibration.adapters.base import ModelError, name_of, stack
from epistemic_calibration.metrics._classes import SUM_TOLERANCE
from epistemic_calibration.seeds import derive_seed

LABEL = "PyTorch"
Outputs = Literal["logits", "probabilities"]

# Layers of PyTorch, torchvision, timm, fairseq and transformers that drop in training mode.
_DROPS = re.compile(r"drop(out|path|block|connect)|stochasticdepth", re.IGNORECASE)
# With fewer, logits may happen to lie in [0, 1].
_MIN_OUTPUTS = 20


def handles(model: Any) -> bool:
    """Return whether a model is a module."""
    return isinstance(model, torch.nn.Module)


def from_model(
    model: torch.nn.Module,
    X: Any,
    *,
    n_hypotheses: int | None,
    random_state: int,
    outputs: Outputs | None = None,
    batch_size: int = 1024,
) -> tuple[np.ndarray, np.ndarray]:
    """Return passes with the layers that drop, and only those, in training mode."""
    if isinstance(model, torch.nn.ModuleList):
        seeds = {"n_hypotheses": n_hypotheses, "random_state": random_state}
        return from_list(list(model), X, **seeds, outputs=outputs, batch_size=batch_size)
    passes = []
    with asked(model), _dropping(model) as drops:
        for j in range(100 if n_hypotheses is None else n_hypotheses):
            seed(model, derive_seed(random_state, j))
            found, outputs = _forward(model, X, batch_size, outputs)
            passes.append(found)
            if j == 1 and not drops and not _differ(*passes):
                raise ModelError(
                    f"{name_of(model)} has no dropout layers and says the same twice, so it is one "
                    f"hypothesis: give a list of modules trained apart, or a fitted laplace.Laplace"
                )
    return _probabilities(stack(passes, n_hypotheses, name=name_of(model)), outputs, model)


def from_list(
    models: Sequence[torch.nn.Module],
    X: Any,
    *,
    n_hypotheses: int | None,
    random_state: int,
    outputs: Outputs | None = None,
    batch_size: int = 1024,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what each module says in evaluation mode."""
    members = []
    for j, model in enumerate(models):
        with asked(model):
            seed(model, derive_seed(random_state, j))
            found, outputs = _forward(model, X, batch_size, outputs)
            members.append(found)
            again, _ = _forward(model, X, batch_size, outputs, first=True)
            if _differ(found[: len(again)], again):
                raise ModelError(
                    f"module {j} of the list draws in evaluation mode, too, so that it is many "
                    f"hypotheses: call hypotheses_of for one at a time, and concatenate on axis 1"
                )
    return _probabilities(stack(members, n_hypotheses, name=name_of(models)), outputs, models)


def _differ(first: np.ndarray, second: np.ndarray) -> bool:
    # Sums on a GPU may be added up in another order.
    return not np.allclose(first, second, rtol=1e-4, atol=1e-6)


@contextmanager
def asked(model: torch.nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode; give modes and random states back at the end."""
    devices = {tensor.device for tensor in chain(model.parameters(), model.buffers())}
    strange = {device.type for device in devices} - {"cpu", "cuda"}
    if strange:
        raise ModelError(
            f"{name_of(model)} is on {', '.join(sorted(strange))}: move it to cpu or cuda"
        )
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with (
            torch.no_grad(),
            torch.random.fork_rng(devices=[d for d in devices if d.type == "cuda"]),
        ):
            yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def _dropping(model: torch.nn.Module) -> Iterator[bool]:
    """Switch on what drops; yield whether there is anything."""
    layers = [module for module in model.modules() if _drops(module)]
    of_keras = _drawing_layers_of_keras(model)
    states = [np.asarray(layer.seed_generator.state).copy() for layer in of_keras]
    for layer in layers:
        # Not train(), which would take along what is inside an attention layer.
        layer.training = True
    for layer in of_keras:
        layer.call = _in_training(layer.call)
    # A transformer layer in evaluation mode takes a path that leaves out its dropout layers,
    # whatever their mode.
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield bool(layers or of_keras)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for layer, state in zip(of_keras, states, strict=True):
            del layer.call
            layer.seed_generator.state.assign(state)


def _drawing_layers_of_keras(model: Any) -> list[Any]:
    # They are no modules of it, have a random state of their own, and ask for an argument.
    layers = getattr(model, "_flatten_layers", model.modules)()
    return [layer for layer in layers if getattr(layer, "seed_generator", None) is not None]


def _in_training(call: Any) -> Any:
    return lambda *args, **keywords: call(*args, **{**keywords, "training": True})


def _drops(module: torch.nn.Module) -> bool:
    # These drop by themselves and hold no dropout layer; training mode changes nothing else.
    if isinstance(module, (torch.nn.RNNBase, torch.nn.MultiheadAttention)):
        return module.dropout > 0
    rates = (getattr(module, name, None) for name in ("p", "drop_prob", "rate"))
    return bool(_DROPS.search(type(module).__name__)) and next(
        (rate > 0 for rate in rates if isinstance(rate, (int, float))), True
    )


def seed(model: torch.nn.Module, value: int) -> None:
    """Seed the generators that a module uses, and no others."""
    torch.default_generator.manual_seed(value)
    for device in {parameter.device for parameter in model.parameters()}:
        if device.type == "cuda":
            torch.cuda.default_generators[device.index].manual_seed(value)
    for k, layer in enumerate(_drawing_layers_of_keras(model)):
        layer.seed_generator.state.assign(np.array([derive_seed(value, k) % 2**31, 0]))


def batches(
    model: torch.nn.Module, X: Any, batch_size: int
) -> Iterator[tuple[torch.Tensor | dict[str, torch.Tensor], torch.device]]:
    """Yield X in parts where the module is, and where that is; arrays of floats get its dtype."""
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ModelError(f"batch_size must be an integer >= 1, got {batch_size!r}")
    tensors = list(chain(model.parameters(), model.buffers()))
    device = tensors[0].device if tensors else torch.device("cpu")
    dtype = next((t.dtype for t in tensors if t.is_floating_point()), torch.float32)
    if isinstance(X, Dataset):
        X = DataLoader(X, batch_size=batch_size)
    if isinstance(X, DataLoader):
        if isinstance(X.sampler, RandomSampler):
            raise ModelError("X is a DataLoader that shuffles: its order must be that of y_true")
        # A loader draws a seed for its workers.
        with torch.random.fork_rng(devices=[]):
            loaded = iter(X)
        for batch in loaded:
            # The labels stand second.
            yield _moved(batch[0] if isinstance(batch, (list, tuple)) else batch, device), device
        return
    many = isinstance(X, Mapping)
    parts = {n: _tensor(v, dtype) for n, v in (X.items() if many else [("X", X)])}
    lengths = {len(part) if part.ndim else 0 for part in parts.values()}
    if len(lengths - {0}) != 1 or 0 in lengths:
        raise ModelError(
            f"X must have samples on axis 0, as many in all parts, got lengths {sorted(lengths)}"
        )
    for start in range(0, lengths.pop(), batch_size):
        batch = {n: part[start : start + batch_size] for n, part in parts.items()}
        yield _moved(batch if many else batch["X"], device), device


def _moved(batch: Any, device: torch.device) -> Any:
    if isinstance(batch, Mapping):
        return {n: v.to(device) for n, v in batch.items() if n not in ("label", "labels")}
    return batch.to(device)


def _tensor(value: Any, dtype: torch.dtype) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "buif":
        raise ModelError(
            f"X has dtype {array.dtype}: give a tensor or an array of numbers, a dictionary of "
            f"them, a Dataset or a DataLoader"
        )
    found = torch.tensor(array)
    return found.to(dtype) if found.is_floating_point() else found


def _forward(
    model: torch.nn.Module, X: Any, batch_size: int, outputs: Outputs | None, *, first: bool = False
) -> tuple[np.ndarray, Outputs | None]:
    """Return what a module gives for X or its first part, (n_samples, n_outputs), and what it is.

    Of images, (n, n_outputs, height, width), pixels are samples, in the order of labels.ravel().
    """
    parts = []
    for batch, _ in batches(model, X, batch_size):
        part = model(**batch) if isinstance(batch, dict) else model(batch)
        n = len(next(iter(batch.values())) if isinstance(batch, dict) else batch)
        if not isinstance(part, torch.Tensor):
            # Those of Hugging Face, also as dictionaries.
            named = part["logits"] if isinstance(part, Mapping) and "logits" in part else None
            part, outputs = getattr(part, "logits", named), outputs or "logits"
        if not isinstance(part, torch.Tensor):
            raise ModelError(
                f"{name_of(model)} returns neither a tensor of logits or probabilities, nor what "
                f"has logits: wrap it in a module that returns one"
            )
        part = part[:, None] if part.ndim == 1 else part
        if part.ndim not in (2, 4) or len(part) != n:
            raise ModelError(
                f"{name_of(model)} returns shape {tuple(part.shape)} for {n} inputs, expected "
                f"({n}, n_classes) or ({n},), or, of images, ({n}, n_classes, height, width)"
            )
        if part.ndim == 4:
            part = part.movedim(1, -1).flatten(0, 2)
        parts.append(part.detach().cpu().double())
        if first:
            break
    return torch.cat(parts).numpy(), outputs


def _probabilities(
    values: np.ndarray, outputs: Outputs | None, model: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of the classes, (n_samples, n_members, n_classes), and classes."""
    name = name_of(model)
    if outputs not in (None, "logits", "probabilities"):
        raise ModelError(f"outputs must be 'logits' or 'probabilities', got {outputs!r}")
    if n_bad := np.count_nonzero(np.isnan(values)):
        raise ModelError(f"{name} gives {n_bad} outputs that are NaN, of {values.size}")
    one = values.shape[2] == 1
    inside = (values >= 0) & (values <= 1 + SUM_TOLERANCE)
    if outputs == "logits" and inside.all() and values.size >= _MIN_OUTPUTS:
        raise ModelError(
            f"outputs='logits', but all outputs of {name} lie in [0, 1]: say "
            f"outputs='probabilities', or give evaluate() their expit or softmax"
        )
    if outputs is None:
        if one:
            raise ModelError(
                f"{name} gives one output per input: say outputs='logits' or 'probabilities'"
            )
        inside = inside.all(axis=(0, 2))
        sums = np.abs(values.sum(axis=2) - 1).max(axis=0) <= SUM_TOLERANCE
        outputs = "probabilities" if (inside & sums).all() else "logits"
        if outputs == "logits" and inside.any():
            raise ModelError(
                f"{name} gives outputs in [0, 1] that do not add up to 1 over the "
                f"{values.shape[2]} classes: neither logits nor probabilities"
            )
    if outputs == "logits":
        tensor = torch.from_numpy(values)
        # The sigmoid of a logit, and of its negative, keep the digits of either tail.
        values = (
            torch.cat([torch.sigmoid(-tensor), torch.sigmoid(tensor)], dim=2)
            if one
            else torch.softmax(tensor, dim=2)
        ).numpy()
    elif one:
        values = np.concatenate([1 - values, values], axis=2)
    return values, np.arange(values.shape[2])
