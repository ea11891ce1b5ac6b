"""What every encoder shares: its contract, its checks of inputs, its file of weights."""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


@dataclass(kw_only=True, eq=False)
class Encoder(ABC):
    """Turns inputs into latents, the features that methods are fitted on.

    An encoder is a file ``NAME.py`` of this folder with one subclass, decorated as this class
    is; its fields, made by `epistemic_calibration.parameters.parameter`, are its parameters
    and the keys of its block in the configuration. It implements ``_fit``, ``_encode``,
    ``_state`` and ``_restore``, and ``_reconstruct`` where ``reconstructs`` is set; they get
    inputs that have been checked. Heavy libraries are imported inside the methods, since the
    class is read whenever a run is planned.

    Attributes
    ----------
    input_shape_ : (height, width, channels) or (n_features,)
        Of the training inputs; set by `fit` and `load`.
    metadata_ : dict of str to str
        What was given to `save`; set by `load`.

    Examples
    --------
    >>> from epistemic_calibration.latents import load_encoder
    >>> images = np.zeros((5, 8, 8, 1), dtype=np.uint8)
    >>> load_encoder("none")().fit(images).encode(images).shape
    (5, 64)
    """

    #: Whether the encoder can turn latents back into images.
    reconstructs: ClassVar[bool] = False

    #: Whether inputs may be features instead of images.
    takes_features: ClassVar[bool] = False

    #: Seed of everything that is drawn.
    random_state: int = 0

    # No annotations, which would make these fields.
    input_shape_ = None
    metadata_ = None
    _history = ()

    def fit(self, x_train: np.ndarray) -> Self:
        """Learn from the training inputs how to encode.

        Parameters
        ----------
        x_train : ndarray of shape (n_samples, height, width, channels)
            Images, uint8 or floating point in [0, 1]; where the encoder ``takes_features``, also
            features of shape (n_samples, n_features). At least one.

        Raises
        ------
        ValueError
            If the inputs are not as above, or a parameter is out of its range.
        FloatingPointError
            If training does not stay finite.
        """
        inputs = self._checked(x_train)
        if len(inputs) == 0:
            raise ValueError("images is empty; at least one input is needed")
        self._fit(inputs)
        self.input_shape_ = inputs.shape[1:]
        return self

    def encode(self, images: np.ndarray) -> np.ndarray:
        """Return the latents of inputs: (n_samples, n_features), of images float32.

        Parameters
        ----------
        images : ndarray of shape (n_samples, height, width, channels)
            Inputs as of `fit`, of the shape of those it was fitted on.

        Raises
        ------
        RuntimeError
            If the encoder is not fitted.
        ValueError
            If the inputs are not as above.
        FloatingPointError
            If a latent is not finite.
        """
        latents = self._encode(self._like_those_fitted_on(images))
        if not np.isfinite(latents).all():
            raise FloatingPointError(
                f"the encoder {self.name()!r} gives latents that are not finite"
            )
        return latents

    def reconstruct(self, images: np.ndarray) -> np.ndarray:
        """Encode images and decode them again: their shape, float32 in [0, 1].

        Parameters and errors are those of `encode`.

        Raises
        ------
        NotImplementedError
            If the encoder does not reconstruct.
        """
        if not self.reconstructs:
            raise NotImplementedError(f"the encoder {self.name()!r} does not reconstruct images")
        return self._reconstruct(self._like_those_fitted_on(images))

    def history(self) -> pd.DataFrame:
        """Return the course of training, one row an epoch.

        The columns are ``epoch`` (from 1), ``loss`` (mean over the epoch) and ``seconds``
        (since training began). There are no rows where nothing is trained in epochs, or where
        the encoder comes from a file.
        """
        import pandas as pd

        return pd.DataFrame(self._history, columns=["epoch", "loss", "seconds"])

    def save(self, path: str | Path, metadata: Mapping[str, str] | None = None) -> None:
        """Write the fitted encoder to a safetensors file, which runs no code when it is read.

        The file holds all parameters but ``device``: where an encoder runs is not what it has
        learnt. Equal encoders and metadata make equal files, byte for byte.

        Parameters
        ----------
        path : path
        metadata : mapping of str to str, optional
            Kept with the encoder.

        Raises
        ------
        RuntimeError
            If the encoder is not fitted.
        """
        from safetensors.numpy import save_file

        self._check_fitted()
        parameters = dataclasses.asdict(self)
        parameters.pop("device", None)
        record = {
            "encoder": self.name(),
            "input_shape": self.input_shape_,
            "metadata": dict(metadata or {}),
            "parameters": parameters,
        }
        state = {name: np.ascontiguousarray(array) for name, array in self._state().items()}
        # One entry: safetensors writes several in random order.
        save_file(state, str(path), metadata={"encoder": json.dumps(record, sort_keys=True)})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an encoder from a file that `save` wrote.

        Raises
        ------
        ValueError
            If the file is truncated, is not one that `save` wrote, or holds another encoder.
        """
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="np") as file:
                record = json.loads((file.metadata() or {})["encoder"])
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            name = record["encoder"]
            if name == cls.name():
                encoder = cls(**record["parameters"])
                encoder.input_shape_ = tuple(record["input_shape"])
                encoder.metadata_ = record["metadata"]
                encoder._restore(state)
                return encoder
        except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"{path} cannot be read ({error}): it is truncated or does not hold an encoder "
                f"of this project"
            ) from error
        raise ValueError(f"{path} holds the encoder {name!r}, not {cls.name()!r}")

    @classmethod
    def name(cls) -> str:
        """Return the name that the configuration knows the encoder by: that of its file."""
        return cls.__module__.rpartition(".")[2]

    @abstractmethod
    def _fit(self, images: np.ndarray) -> None:
        """Fit on checked inputs, at least one; they must not be changed."""

    @abstractmethod
    def _encode(self, images: np.ndarray) -> np.ndarray:
        """Return the latents of checked inputs, those of images as float32."""

    def _reconstruct(self, images: np.ndarray) -> np.ndarray:
        """Return what `reconstruct` is to return."""
        raise NotImplementedError

    @abstractmethod
    def _state(self) -> dict[str, np.ndarray]:
        """Return all that was learnt, as arrays by name."""

    @abstractmethod
    def _restore(self, state: dict[str, np.ndarray]) -> None:
        """Take back what `_state` returned; ``input_shape_`` is set already.

        Raises
        ------
        KeyError, ValueError or RuntimeError
            If an array is missing or has a wrong shape.
        """

    def _check_fitted(self) -> None:
        if self.input_shape_ is None:
            raise RuntimeError(f"the encoder {self.name()!r} is not fitted; call fit first")

    def _checked(self, inputs: Any) -> np.ndarray:
        if self.takes_features and np.ndim(inputs) == 2:
            return checked_features(inputs)
        return checked_images(inputs)

    def _like_those_fitted_on(self, inputs: np.ndarray) -> np.ndarray:
        self._check_fitted()
        inputs = self._checked(inputs)
        if inputs.shape[1:] != self.input_shape_:
            axes = "(height, width, channels)" if len(self.input_shape_) == 3 else "(n_features,)"
            raise ValueError(
                f"images have shape {inputs.shape[1:]}; the encoder {self.name()!r} was fitted on "
                f"{self.input_shape_} {axes}"
            )
        return inputs


def checked_images(images: Any) -> np.ndarray:
    """Return images (n_samples, height, width, channels) as uint8, or as float32 in [0, 1]."""
    images = np.asarray(images)
    if images.ndim != 4:
        raise ValueError(
            f"images has shape {images.shape}; it must be (n_samples, height, width, channels)"
        )
    if images.dtype != np.uint8:
        if images.dtype.kind != "f":
            raise ValueError(f"images has dtype {images.dtype}; it must be uint8 or float")
        images = images.astype(np.float32, copy=False)
        if images.size and not (images.min() >= 0 and images.max() <= 1):
            raise ValueError(
                f"images has values from {images.min()} to {images.max()}; floating-point "
                f"pixels must lie in [0, 1]"
            )
    return images


def checked_features(features: Any) -> np.ndarray:
    """Return features (n_samples, n_features), finite numbers, in the precision that they have.

    It is scaling that brings them to the size that float32 is fit for.
    """
    features = np.asarray(features)
    if features.ndim != 2 or features.dtype.kind != "f":
        raise ValueError(
            f"features have shape {features.shape} and dtype {features.dtype}; they must be "
            f"(n_samples, n_features), floating point"
        )
    if not np.isfinite(features).all():
        raise ValueError("features have values that are NaN or infinite")
    return features


def check_positive_integer(name: str, value: Any, *, or_else: str = "") -> None:
    """Check that a parameter is an integer of at least 1; ``or_else`` names what else it may be."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or value < 1:
        raise ValueError(f"{name}={value!r}; it must be {or_else}an integer of at least 1")
