"""Which of two files of predictions of the same inputs errs less."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epistemic_calibration import metrics
from epistemic_calibration._evaluation_text import in_points, interval, number
from epistemic_calibration.evaluation import LEAST_SAMPLES, check_n_bins, default_n_bins
from epistemic_calibration.metrics import CorrectedError, ErrorDifference


@dataclass(frozen=True, repr=False)
class Comparison:
    """Corrected TECE of two predictors of the same inputs, and their difference.

    Attributes
    ----------
    errors : dict of str to CorrectedError
        By name, in the order given.
    brier : dict of str to float
        Of the means of the hypotheses.
    difference : ErrorDifference
        First less second.
    n_samples, n_bins : int
    """

    errors: dict[str, CorrectedError]
    brier: dict[str, float]
    difference: ErrorDifference
    n_samples: int
    n_bins: int

    @property
    def judgement(self) -> str:
        """One sentence: which errs less, or that it cannot be told."""
        first, second = self.errors
        d = self.difference
        if d.ci_low <= 0 <= d.ci_high:
            return (
                f"Which of the two errs less cannot be told with {self.n_samples:,} inputs "
                f"(p = {d.p_value:.2g})."
            )
        better, worse = (first, second) if d.estimate < 0 else (second, first)
        return f"{better} errs less than {worse} (p = {d.p_value:.2g})."

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return dataclasses.asdict(self) | {"judgement": self.judgement}

    def __repr__(self) -> str:
        d = self.difference
        width = max(len(name) for name in [*self.errors, "Difference, first less second"]) + 2
        lines = [f"{'':<{width}}{'Brier':>8}{'Corrected TECE':>16}  {'interval':<19} in points"]
        lines += [
            f"{name:<{width}}{number(self.brier[name]):>8}{number(error.estimate):>16}  "
            f"{interval(error):<19} {in_points(error)}"
            for name, error in self.errors.items()
        ]
        lines += [
            f"{'Difference, first less second':<{width}}{'':>8}{number(d.estimate):>16}  "
            f"{interval(d)}",
            f"→ {self.judgement}",
            f"Settings: {self.n_samples:,} inputs, {self.n_bins} nested bins each, "
            f"{100 * d.confidence_level:g} % intervals",
        ]
        return "\n".join(lines)


def compare(
    predictors: Mapping[str, Mapping[str, np.ndarray]],
    *,
    n_bins: int | None = None,
    confidence_level: float = 0.95,
    random_state: int = 0,
) -> Comparison:
    """Compare two predictors by the corrected TECE.

    Parameters
    ----------
    predictors : mapping from name to mapping
        Two, each with ``y_true`` (n_samples,) and ``hypotheses`` (n_samples, n_hypotheses).
    n_bins, confidence_level, random_state
        As in `evaluate`.

    Raises
    ------
    ValueError
        If they have other labels, or fewer than 11 inputs.
    """
    (first, a), (second, b) = predictors.items()
    n = len(a["y_true"])
    if len(b["y_true"]) != n:
        raise ValueError(
            f"{first} has {n} inputs and {second} has {len(b['y_true'])}: they must be the same"
        )
    differ = np.count_nonzero(a["y_true"] != b["y_true"])
    if differ:
        raise ValueError(
            f"{first} and {second} differ in {differ} of {n} labels: they must have the same "
            f"inputs in the same order"
        )
    if n < LEAST_SAMPLES:
        raise ValueError(f"a comparison takes {LEAST_SAMPLES} inputs or more, got {n}")
    n_bins = default_n_bins(n) if n_bins is None else check_n_bins(n_bins, n)
    samples = {name: metrics.Sample(p["y_true"], p["hypotheses"]) for name, p in predictors.items()}
    bins = {
        name: sample.bins(n_bins=n_bins, binning="nested", random_state=random_state)
        for name, sample in samples.items()
    }
    differences = metrics.compare_mean_corrected_errors(
        [a["y_true"]],
        {name: [sample.mean] for name, sample in samples.items()},
        {name: [labels] for name, labels in bins.items()},
        confidence_level=confidence_level,
        random_state=random_state,
    )
    return Comparison(
        errors={
            name: metrics.corrected_epistemic_calibration_error(
                sample, bins=bins[name], confidence_level=confidence_level
            )
            for name, sample in samples.items()
        },
        brier={name: metrics.brier_score(s.y, s.mean) for name, s in samples.items()},
        difference=differences[first, second],
        n_samples=n,
        n_bins=n_bins,
    )
