"""The toy experiments: a mixture of two Gaussians, whose P(Y = 1 | x) is known.

Each experiment is one file of this folder, with a function that measures, a function ``plot``
that draws, and an `Experiment` called ``EXPERIMENT``. Nothing else needs to be written for a new
one but its entry in the configuration, under ``toy``.
"""

from __future__ import annotations

from epistemic_calibration import registry
from epistemic_calibration.paper.toy.base import Experiment

__all__ = ["Experiment", "available_experiments", "load_experiment"]


def available_experiments() -> tuple[str, ...]:
    """Return the names of the experiments, sorted.

    Examples
    --------
    >>> available_experiments()[:3]
    ('binning_study', 'calibration_plots', 'dataset')
    """
    return registry.available(__name__)


def load_experiment(name: str) -> Experiment:
    """Return an experiment by name.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists those that exist.

    Examples
    --------
    >>> load_experiment("eece_per_method").controls
    ('oracle',)
    """
    return registry.load(__name__, name).EXPERIMENT
