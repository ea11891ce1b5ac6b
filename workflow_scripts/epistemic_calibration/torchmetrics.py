"""The corrected TECE as a metric of torchmetrics, for training loops.

It needs torchmetrics: ``pip install 'epistemic-calibration[torchmetrics]'``.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor

try:
    from torchmetrics import Metric
    from torchmetrics.utilities.data import dim_zero_cat
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "epistemic_calibration.torchmetrics needs torchmetrics: "
        "pip install 'epistemic-calibration[torchmetrics]'",
        name=error.name,
    ) from None

from epistemic_calibration import metrics
from epistemic_calibration.evaluation import evaluate_inputs
from epistemic_calibration.evaluation._estimates import LEAST_SAMPLES, numbers_of_bins
from epistemic_calibration.metrics._validation import check_fraction, check_positive_integer
from epistemic_calibration.predictions._intake import Inputs, intake, labels_and_hypotheses

__all__ = ["EpistemicCalibrationError"]


class EpistemicCalibrationError(Metric):
    """Corrected TECE of a binary classifier, from hypotheses that arrive in batches.

    Bins are made of all inputs together, so the metric keeps all of them, as torchmetrics'
    area under the ROC curve does without thresholds. Distributed processes pool theirs.

    Parameters
    ----------
    details : bool, default False
        Return a dictionary with intervals, the parts of TECE, EECE, and how the variance of the
        hypotheses ranks errors, instead of a number.
    n_bins : int, optional
        Bins, as in `evaluate`, by default as many as there.
    confidence_level : float in (0, 1), default 0.95
    random_state : int, default 0
        Seed of K-means.
    **kwargs
        Those of `torchmetrics.Metric`, such as ``dist_sync_on_step``.

    Raises
    ------
    ValueError
        If an argument is not what it must be. `update` raises it for labels that are not 0 and
        1, hypotheses that are not in [0, 1], and shapes that do not agree; `compute` for what
        `evaluate` refuses of all inputs together, such as labels among the hypotheses.

    See Also
    --------
    metrics.corrected_epistemic_calibration_error, metrics.decompose_eece : the estimates.

    Examples
    --------
    >>> import torch
    >>> from epistemic_calibration.torchmetrics import EpistemicCalibrationError
    >>> metric = EpistemicCalibrationError()
    >>> for _ in range(4):
    ...     metric.update(torch.full((50, 2), 0.5), torch.tensor([0, 1]).repeat(25))
    >>> abs(round(metric.compute().item(), 2))
    0.0
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0

    hypotheses: list[Tensor]
    target: list[Tensor]

    def __init__(
        self,
        *,
        details: bool = False,
        n_bins: int | None = None,
        confidence_level: float = 0.95,
        random_state: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.details = bool(details)
        self.n_bins = None if n_bins is None else check_positive_integer(n_bins, name="n_bins")
        self.confidence_level = check_fraction(confidence_level, name="confidence_level")
        self.random_state = check_positive_integer(random_state, name="random_state", minimum=0)
        self.add_state("hypotheses", default=[], dist_reduce_fx="cat")
        self.add_state("target", default=[], dist_reduce_fx="cat")

    def update(self, hypotheses: Tensor, target: Tensor) -> None:
        """Add a batch.

        Parameters
        ----------
        hypotheses : tensor of shape (n_samples, n_hypotheses), values in [0, 1]
            Estimates of P(Y = 1 | x); as many in every batch.
        target : tensor of shape (n_samples,), labels in {0, 1}
        """
        if len(target) == 0 and len(hypotheses) == 0:
            return
        y, rows, _ = labels_and_hypotheses(target, hypotheses, name="target")
        if rows.ndim == 3:
            raise ValueError("hypotheses of several classes: take one against the rest")
        if self.hypotheses and self.hypotheses[0].shape[1] != rows.shape[1]:
            raise ValueError(
                f"this batch has {rows.shape[1]} hypotheses, those before have "
                f"{self.hypotheses[0].shape[1]}"
            )
        self.hypotheses.append(torch.from_numpy(rows).to(hypotheses.device))
        self.target.append(torch.from_numpy(y).to(target.device, torch.uint8))

    def compute(self) -> Tensor | dict[str, Tensor]:
        """Return the corrected TECE of all batches; NaN where there are 10 inputs or fewer.

        Returns
        -------
        tensor, or dict of str to tensor
            A scalar in float64; with ``details`` those named as in `Evaluation.to_frame`, ends of
            intervals with ``_ci_low`` and ``_ci_high``.
        """
        target = dim_zero_cat(self.target).cpu()
        values = dict.fromkeys(_NAMES, float("nan"))
        if len(target) < LEAST_SAMPLES:
            warnings.warn(
                f"{len(target)} inputs are too few to say anything of calibration: NaN",
                stacklevel=2,
            )
        else:
            values = self._values(intake(target, dim_zero_cat(self.hypotheses).cpu()))
        # The devices of Apple have no double precision.
        dtype = torch.float32 if self.device.type == "mps" else torch.float64
        tensors = {
            name: torch.tensor(value, dtype=dtype, device=self.device)
            for name, value in values.items()
        }
        return tensors if self.details else tensors["tece_corrected"]

    def _values(self, inputs: Inputs) -> dict[str, float]:
        for doubt in inputs.doubts:
            warnings.warn(doubt, stacklevel=4)
        settings = {"random_state": self.random_state, "confidence_level": self.confidence_level}
        if not self.details:
            n_bins = numbers_of_bins(self.n_bins, len(inputs.y_true))[0]
            found = metrics.corrected_epistemic_calibration_error(
                inputs.y_true, inputs.hypotheses, n_bins=n_bins, **settings
            )
            return {"tece_corrected": found.estimate}
        frame = evaluate_inputs(inputs, n_bins=self.n_bins, **settings).to_frame()
        frame = frame.set_index("metric")
        parts = {name: name.partition("_ci_") for name in _NAMES}
        return {
            name: frame.loc[metric, f"ci_{end}" if end else "value"]
            for name, (metric, _, end) in parts.items()
        }


_NAMES = (
    *("error_rate", "kept_error_90", "kept_error_90_by_prediction"),
    *(
        f"{name}{end}"
        for name in ("tece_corrected", "mean_miscalibration", "epistemic_dependence")
        for end in ("", "_ci_low", "_ci_high")
    ),
    *("tece_noise_floor", "tece_minimum_detectable"),
    *("eece", "eece_calibration", "eece_dispersion", "eece_noise_floor"),
)
