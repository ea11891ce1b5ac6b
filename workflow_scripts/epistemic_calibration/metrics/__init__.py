"""Metrics of epistemic calibration, in the conventions of scikit-learn.

``y_true`` first, samples on axis 0, options by keyword; everything is computed in float64.
Where several metrics are computed from the same labels and hypotheses, a `Sample` in place of
both saves repeated checks, moments and bins.
"""

from epistemic_calibration.metrics._sample import Sample
from epistemic_calibration.metrics.binning import assign_bins
from epistemic_calibration.metrics.calibration import (
    CalibrationCurve,
    SmoothCalibrationCurve,
    accuracy,
    auroc,
    brier_score,
    calibration_curve,
    expected_calibration_error,
    log_loss,
    smooth_calibration_curve,
)
from epistemic_calibration.metrics.corrected import (
    CorrectedError,
    ErrorSplit,
    LowerBound,
    corrected_epistemic_calibration_error,
    cross_fitted_lower_bound,
    split_epistemic_calibration_error,
)
from epistemic_calibration.metrics.eece import (
    BinStatistics,
    EECEParts,
    decompose_eece,
    expected_epistemic_calibration_error,
    true_epistemic_calibration_error,
)
from epistemic_calibration.metrics.hypothesis_tests import (
    HypothesisTest,
    epistemic_calibration_test,
    epistemic_independence_test,
    holm_correction,
    mean_calibration_test,
)
from epistemic_calibration.metrics.over_tasks import (
    ErrorDifference,
    compare_mean_corrected_errors,
    mean_corrected_error,
)
from epistemic_calibration.metrics.recalibration import SecondOrderRecalibrator

__all__ = [
    "BinStatistics",
    "CalibrationCurve",
    "CorrectedError",
    "EECEParts",
    "ErrorDifference",
    "ErrorSplit",
    "HypothesisTest",
    "LowerBound",
    "Sample",
    "SecondOrderRecalibrator",
    "SmoothCalibrationCurve",
    "accuracy",
    "assign_bins",
    "auroc",
    "brier_score",
    "calibration_curve",
    "compare_mean_corrected_errors",
    "corrected_epistemic_calibration_error",
    "cross_fitted_lower_bound",
    "decompose_eece",
    "epistemic_calibration_test",
    "epistemic_independence_test",
    "expected_calibration_error",
    "expected_epistemic_calibration_error",
    "holm_correction",
    "log_loss",
    "mean_calibration_test",
    "mean_corrected_error",
    "smooth_calibration_curve",
    "split_epistemic_calibration_error",
    "true_epistemic_calibration_error",
]
