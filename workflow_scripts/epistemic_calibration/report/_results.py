"""What figures and pages are made of: everything that is known of a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_TITLES = {
    "breast_cancer": "Breast cancer",
    "cifar10": "CIFAR-10",
    "cifar10h": "CIFAR-10H",
    "digits": "Digits",
    "fashion_mnist": "Fashion-MNIST",
    "kmnist": "KMNIST",
    "mnist": "MNIST",
}


@dataclass(frozen=True)
class DatasetResults:
    """What there is of a data set.

    Attributes
    ----------
    name : str
    scores : DataFrame
        Tidy, with bounds; of one data set or more.
    methods : mapping
        By name in the configuration: ``{"label": ..., "family": ...}``, family one of active,
        illustrative, control.
    differences : DataFrame, optional
        Pairs of methods, as returned by `compare_methods`.
    diagnostics : mapping of str to mapping
        By method: what `diagnose` returns, with what a reader sees of its inputs.
    tasks : sequence of str
    seeds : sequence of int
    confidence_level : float
    warnings : sequence of str
        What a reader must know before any number.
    """

    name: str
    scores: pd.DataFrame
    methods: Mapping[str, Mapping[str, str]]
    differences: pd.DataFrame | None = None
    diagnostics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tasks: Sequence[str] = ()
    seeds: Sequence[int] = (0,)
    confidence_level: float = 0.95
    warnings: Sequence[str] = ()

    @property
    def title(self) -> str:
        """What readers see of the data set."""
        return _TITLES.get(self.name, self.name)
