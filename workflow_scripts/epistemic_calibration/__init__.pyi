from epistemic_calibration import adapters as adapters
from epistemic_calibration import metrics as metrics
from epistemic_calibration.adapters import hypotheses_of as hypotheses_of
from epistemic_calibration.evaluation import Evaluation as Evaluation
from epistemic_calibration.evaluation import evaluate as evaluate
from epistemic_calibration.evaluation._slices import Slices as Slices

__version__: str
__all__ = [
    "Evaluation",
    "Slices",
    "__version__",
    "adapters",
    "evaluate",
    "hypotheses_of",
    "metrics",
]
