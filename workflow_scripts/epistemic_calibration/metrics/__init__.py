"""Metrics of epistemic calibration, in the conventions of scikit-learn.

``y_true`` first, samples on axis 0, options by keyword; everything is computed in float64.
Where several metrics are computed from the same labels and hypotheses, a `Sample` in place of
both saves repeated checks, moments and bins.
"""

from epistemic_calibration.metrics._classwise import (
    Classwise,
    classwise_epistemic_calibration_error,
    classwise_second_order_error,
)
from epistemic_calibration.metrics._means import Estimate
from epistemic_calibration.metrics._members import finite_draws_factor
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
from epistemic_calibration.metrics.calibration_tests import (
    HypothesisTest,
    epistemic_calibration_test,
    epistemic_independence_test,
    holm_correction,
    mean_calibration_test,
)
from epistemic_calibration.metrics.class_binning import assign_class_bins
from epistemic_calibration.metrics.corrected import (
    CorrectedError,
    ErrorSplit,
    corrected_epistemic_calibration_error,
    split_epistemic_calibration_error,
)
from epistemic_calibration.metrics.eece import (
    BinStatistics,
    EECEParts,
    decompose_eece,
    expected_epistemic_calibration_error,
    true_epistemic_calibration_error,
)
from epistemic_calibration.metrics.error_curve import SecondOrderCurve, second_order_curve
from epistemic_calibration.metrics.label_collection import (
    LabelCollectionWarning,
    counts_of_first_labels,
)
from epistemic_calibration.metrics.label_order import within_label_correlation
from epistemic_calibration.metrics.law_error import LawError
from epistemic_calibration.metrics.law_test import second_order_test
from epistemic_calibration.metrics.lower_bound import LowerBound, cross_fitted_lower_bound
from epistemic_calibration.metrics.multiclass import (
    TopLabelTask,
    canonical_epistemic_calibration_error,
    canonical_epistemic_calibration_test,
    top_label_epistemic_calibration_error,
    top_label_task,
)
from epistemic_calibration.metrics.one_label import (
    ReducibleErrorBounds,
    bounds_from_one_label,
    mean_bounds_from_one_label,
)
from epistemic_calibration.metrics.over_tasks import (
    ErrorDifference,
    compare_mean_corrected_errors,
    mean_corrected_error,
)
from epistemic_calibration.metrics.ranking import ErrorRanking, RankedErrors, error_ranking
from epistemic_calibration.metrics.recalibration import SecondOrderRecalibrator
from epistemic_calibration.metrics.reported_uncertainty import (
    ReportedUncertaintyError,
    reported_uncertainty_error,
)
from epistemic_calibration.metrics.second_order import (
    SecondOrderError,
    mean_second_order_error,
    second_order_error,
    true_second_order_error,
)

__all__ = [
    "BinStatistics",
    "CalibrationCurve",
    "Classwise",
    "CorrectedError",
    "EECEParts",
    "ErrorDifference",
    "ErrorRanking",
    "ErrorSplit",
    "Estimate",
    "HypothesisTest",
    "LabelCollectionWarning",
    "LawError",
    "LowerBound",
    "RankedErrors",
    "ReducibleErrorBounds",
    "ReportedUncertaintyError",
    "Sample",
    "SecondOrderCurve",
    "SecondOrderError",
    "SecondOrderRecalibrator",
    "SmoothCalibrationCurve",
    "TopLabelTask",
    "accuracy",
    "assign_bins",
    "assign_class_bins",
    "auroc",
    "bounds_from_one_label",
    "brier_score",
    "calibration_curve",
    "canonical_epistemic_calibration_error",
    "canonical_epistemic_calibration_test",
    "classwise_epistemic_calibration_error",
    "classwise_second_order_error",
    "compare_mean_corrected_errors",
    "corrected_epistemic_calibration_error",
    "counts_of_first_labels",
    "cross_fitted_lower_bound",
    "decompose_eece",
    "epistemic_calibration_test",
    "epistemic_independence_test",
    "error_ranking",
    "expected_calibration_error",
    "expected_epistemic_calibration_error",
    "finite_draws_factor",
    "holm_correction",
    "log_loss",
    "mean_bounds_from_one_label",
    "mean_calibration_test",
    "mean_corrected_error",
    "mean_second_order_error",
    "reported_uncertainty_error",
    "second_order_curve",
    "second_order_error",
    "second_order_test",
    "smooth_calibration_curve",
    "split_epistemic_calibration_error",
    "top_label_epistemic_calibration_error",
    "top_label_task",
    "true_epistemic_calibration_error",
    "true_second_order_error",
    "within_label_correlation",
]
