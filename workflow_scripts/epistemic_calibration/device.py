"""Where networks are trained and evaluated."""

from __future__ import annotations

import torch


def resolve_device(device: str) -> torch.device:
    """Return the torch device of ``auto``, ``cpu`` or ``cuda``.

    Raises
    ------
    ValueError
        If ``device`` is none of these, or ``cuda`` and there is none.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device={device!r}; it must be one of auto, cpu, cuda")
    available = torch.cuda.is_available()
    if device == "cuda" and not available:
        raise ValueError("device='cuda', but PyTorch finds no GPU here; use 'auto' or 'cpu'")
    return torch.device("cuda" if device != "cpu" and available else "cpu")
