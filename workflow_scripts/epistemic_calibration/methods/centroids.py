"""Distance to class centroids, after DUQ (van Amersfoort et al. 2020) without its network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from epistemic_calibration.methods._gaussian import GaussianMethod
from epistemic_calibration.parameters import parameter


@dataclass(kw_only=True, eq=False)
class Centroids(GaussianMethod):
    """Radial kernels around the class means; far from both, the method is uncertain.

    With e_c(x) = ‖x − μ_c‖² / (2 · length_scale² · divisor), the prediction is the normalised
    kernel h = exp(−e_1) / (exp(−e_0) + exp(−e_1)) = sigmoid(e_0 − e_1). ``divisor`` is the
    number of classes, 2, or, as in equation 1 of DUQ, the dimension of X.

    The reported uncertainty has two definitions, with e = min_c e_c. ``paper`` is
    0.8 · e / (e + 10 · median(e)), the median taken over the inputs given, so that the
    uncertainty of an input depends on the others. ``literature`` is DUQ's 1 − max_c exp(−e_c).

    References
    ----------
    van Amersfoort, Smith, Teh, Gal, "Uncertainty estimation using a single deep
    deterministic neural network", ICML 2020.
    """

    label: ClassVar[str] = "Centroids"

    definition: Literal["paper", "literature"] = parameter(
        "paper",
        description="definition of the uncertainty: the paper's, or that of DUQ (literature)",
    )
    length_scale: float = parameter(
        math.sqrt(10),
        gt=0,
        description="length scale of the kernel, in units of X; √10 in the paper's appendix",
    )
    divisor: Literal["classes", "dimension"] = parameter(
        "classes",
        description="what else the squared distance is divided by: the number of classes, 2, "
        "or the dimension of X",
    )

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Compute the mean of each class.

        Raises
        ------
        ValueError
            If a class has no training point.
        """
        y = np.asarray(y)
        missing = [c for c in (0, 1) if not np.any(y == c)]
        if missing:
            raise ValueError(f"y has no label {missing[0]}: a class without points has no centroid")
        self.centroids_ = np.stack([X[y == c].mean(axis=0, dtype=np.float64) for c in (0, 1)])
        return self

    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return h(x) and EU(x) at ``X``, each of shape (n_samples,)."""
        from scipy.spatial.distance import cdist
        from scipy.special import expit

        divisor = 2 if self.divisor == "classes" else self.centroids_.shape[1]
        exponents = cdist(np.asarray(X, dtype=np.float64), self.centroids_, "sqeuclidean")
        exponents /= 2 * self.length_scale**2 * divisor
        nearest = exponents.min(axis=1)
        if self.definition == "literature":
            uncertainty = -np.expm1(-nearest)
        else:
            scale = nearest + 10 * np.median(nearest)
            # 0/0 only where the input and half of all inputs lie on a centroid.
            uncertainty = 0.8 * np.divide(
                nearest, scale, out=np.zeros_like(nearest), where=scale > 0
            )
        return expit(exponents[:, 0] - exponents[:, 1]), uncertainty
