"""The answers of `evaluate` for parts of the inputs, beside each other."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration import metrics
from epistemic_calibration.evaluation import evaluate_inputs, plain
from epistemic_calibration.predictions._arrays import to_groups, to_numpy

if TYPE_CHECKING:
    import pandas as pd

    from epistemic_calibration.evaluation import Evaluation
    from epistemic_calibration.predictions._intake import Inputs


@dataclass(frozen=True, repr=False)
class Slices:
    """What `evaluate` finds of each part of the inputs, by the name of the part.

    Attributes
    ----------
    parts : dict of str to Evaluation
        Intervals and sentences are those of the part alone, not corrected for their number.
    p_values : dict of str to float
        Of the test that the predictor of the part is calibrated (of several classes, the predicted
        class), corrected by Holm for their number; NaN where a part has too few inputs.
    auroc_of_uncertainty : float or None
        Of two parts, in how many pairs the input of the second has the larger epistemic
        uncertainty, ties as one half: whether it tells shifted inputs.
    """

    parts: dict[str, Evaluation]
    p_values: dict[str, float]
    auroc_of_uncertainty: float | None

    def __repr__(self) -> str:
        lines = [f"Evaluation of {len(self.parts)} parts; p-values are Holm's for all of them"]
        for name, found in self.parts.items():
            p = self.p_values[name]
            shown = "" if np.isnan(p) else f", p = {p:.2g}"
            lines.append(f"\n{name}: {found.n_samples:,} inputs{shown}")
            for sentence in found.judgement.values():
                lines += textwrap.wrap(sentence, 100, initial_indent="→ ", subsequent_indent="  ")
        if self.auroc_of_uncertainty is not None:
            pairs = (
                f"{100 * self.auroc_of_uncertainty:.0f} % of pairs of {' and '.join(self.parts)}"
            )
            lines.append(f"\nEU orders {pairs} rightly (AUROC)")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        parts = {name: found.to_dict() for name, found in self.parts.items()}
        auroc = self.auroc_of_uncertainty
        return {"parts": parts, "p_values": plain(self.p_values), "auroc_of_uncertainty": auroc}

    def to_frame(self) -> pd.DataFrame:
        """Return the frames of the parts below each other, with a column ``part`` in front."""
        import pandas as pd

        frames = {name: found.to_frame() for name, found in self.parts.items()}
        return pd.concat(frames, names=["part"]).reset_index("part").reset_index(drop=True)


def evaluate_by(inputs: Inputs, by: ArrayLike, **settings: Any) -> Slices:
    """Evaluate every part of the inputs, in the order of the names of the parts."""
    labels = to_numpy("by", by)
    # As groups are checked.
    to_groups(labels, len(inputs.y_true), name="by")
    labels = labels.ravel()
    parts = {
        str(name): evaluate_inputs(inputs.take(np.flatnonzero(labels == name)), **settings)
        for name in np.unique(labels).tolist()
    }
    found = {
        name: next(iter(part.tests.values())).p_value for name, part in parts.items() if part.tests
    }
    corrected = metrics.holm_correction(list(found.values())) if found else []
    p_values = dict.fromkeys(parts, float("nan"))
    p_values |= dict(zip(found, np.asarray(corrected).tolist(), strict=True))
    auroc = None
    if len(parts) == 2:
        variance = inputs.hypotheses.var(axis=1, dtype=np.float64).reshape(len(labels), -1)
        own = inputs.epistemic_uncertainty
        auroc = metrics.auroc(
            labels == np.unique(labels)[1], variance.mean(axis=1) if own is None else own
        )
    return Slices(parts, p_values, auroc)
