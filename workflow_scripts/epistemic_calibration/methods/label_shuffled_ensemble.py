"""A deep ensemble that has nothing to learn, a control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epistemic_calibration.methods.deep_ensemble import DeepEnsemble
from epistemic_calibration.seeds import derive_seed


@dataclass(kw_only=True, eq=False)
class LabelShuffledEnsemble(DeepEnsemble):
    """The deep ensemble, trained on labels permuted at random.

    The base rate is kept, and what the inputs say of the labels is not: the best that the
    members can predict is the base rate, and whatever they disagree about is noise. All
    members share one permutation. The parameters are those of the deep ensemble.
    """

    label: ClassVar[str] = "Label-shuffled ensemble"
    family: ClassVar[str] = "control"

    def training_labels(self, y: np.ndarray) -> np.ndarray:
        """Return a random permutation of the labels, (n_samples,)."""
        return np.random.default_rng(derive_seed(self.random_state, "labels")).permutation(y)
