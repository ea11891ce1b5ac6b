"""From inputs to latents: encoders, and what is done with the features they return.

An *encoder* is a file of this folder that says how an input becomes a vector of features:
see `epistemic_calibration.latents.base.Encoder`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from epistemic_calibration import registry

if TYPE_CHECKING:
    from epistemic_calibration.latents.base import Encoder

__all__ = ["available_encoders", "load_encoder"]


def available_encoders() -> tuple[str, ...]:
    """Return the names of the encoders, sorted.

    Examples
    --------
    >>> available_encoders()
    ('autoencoder', 'none', 'pca')
    """
    return registry.available(__name__)


def load_encoder(name: str) -> type[Encoder]:
    """Return the class of an encoder.

    Raises
    ------
    ValueError
        If there is no encoder of that name, or its file does not define exactly one.

    Examples
    --------
    >>> load_encoder("autoencoder")(n_epochs=60).batch_size
    128
    """
    module = registry.load(__name__, name)
    # By name, not by a statement: importing the neighbours alone runs this file, and what they
    # give must not become stale with the encoders' code.
    return registry.only_class(module, importlib.import_module(f"{__name__}.base").Encoder)
