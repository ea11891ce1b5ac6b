"""Laplace approximations of laplace-torch (Daxberger et al. 2021)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from laplace import BaseLaplace
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from epistemic_calibration.adapters.base import ModelError, name_of
from epistemic_calibration.adapters.torch import asked, batches, seed
from epistemic_calibration.seeds import derive_seed

LABEL = "laplace-torch"


def handles(model: Any) -> bool:
    """Return whether a model is a Laplace approximation."""
    return isinstance(model, BaseLaplace)


def from_model(
    model: BaseLaplace,
    X: Any,
    *,
    n_hypotheses: int | None,
    random_state: int,
    pred_type: Literal["glm", "nn"] = "glm",
    batch_size: int = 256,
) -> tuple[np.ndarray, np.ndarray]:
    """Return draws of the predictive; draw j is made of the same noise at all inputs."""
    name = name_of(model)
    if model.likelihood != "classification":
        raise ModelError(
            f"{name} has the likelihood {str(model.likelihood)!r}, expected 'classification'"
        )
    if pred_type not in ("glm", "nn"):
        raise ModelError(f"pred_type must be 'glm' or 'nn', got {pred_type!r}")
    # An approximation that has seen no data would draw from the prior.
    if model.n_data == 0 or not getattr(model, "_fitted", True):
        raise ModelError(f"{name} is not fitted: call fit first")
    weights = parameters_to_vector(model.model.parameters()).detach().clone()
    value = derive_seed(random_state, "laplace")
    parts = []
    with asked(model.model):
        try:
            for batch, device in batches(model.model, X, batch_size):
                seed(model.model, value)
                draws = model.predictive_samples(
                    batch,
                    pred_type=pred_type,
                    n_samples=100 if n_hypotheses is None else n_hypotheses,
                    generator=torch.Generator(device).manual_seed(value),
                )
                parts.append(draws.detach().cpu().double())
        finally:
            # Drawing writes draws into the network.
            vector_to_parameters(weights, model.model.parameters())
    values = torch.cat(parts, dim=1).permute(1, 0, 2).numpy()
    return values, np.arange(values.shape[2])
