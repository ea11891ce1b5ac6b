"""The toy experiments: a mixture of two Gaussians, where the truth is known.

Every experiment is one function. Each call fits one method for one seed, so that a further
method or seed adds calls and changes none; where an experiment has several settings (noise
levels, training sizes, numbers of bins), the call goes through all of them. All methods of
an experiment see the same training and test sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from epistemic_calibration.methods import Method, Predictions, load_method
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    import pandas as pd

#: Means of the negative and of the positive class (paper, appendix B.1.2).
MEANS = np.array([[2.5, 2.5], [-2.5, -2.5]])
#: Variance of each coordinate within a class (paper, appendix B.1.2).
VARIANCE = 3.0
#: Half the side of the square that the maps show: both classes to three standard deviations.
MAP_LIMIT = 8.0

# Seeds tried for a training set with both classes: a balanced draw of two points misses a
# class every second time, and all tries miss with probability 2^-100.
_MAX_DRAWS = 100


class Oracle(Method):
    """The true P(Y = 1 | x) of the toy mixture, a control: it needs no training.

    Its TECE is 0, also with spread: epistemic calibration asks for the right mean in every
    level set, and takes any dispersion around it.

    Parameters
    ----------
    spread : float in [0, 1]
        The hypotheses are p(x) + spread · min(p(x), 1 − p(x)) · u_j with u_j evenly spaced
        on [−1, 1], whose mean is p(x); 0 makes them all p(x).
    n_hypotheses : int
    random_state : int
        Not used.
    """

    label: ClassVar[str] = "Oracle"
    family: ClassVar = "control"
    parameter_schema: ClassVar = {
        "spread": {"type": "number", "minimum": 0, "maximum": 1},
        "n_hypotheses": {"type": "integer", "minimum": 2},
    }

    def __init__(
        self, *, spread: float = 0.0, n_hypotheses: int = 100, random_state: int = 0
    ) -> None:
        self.spread = spread
        self.n_hypotheses = n_hypotheses
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Do nothing."""
        return self

    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return hypotheses around the truth, shape (n_samples, n_hypotheses)."""
        p = true_probability(X)[:, None]
        offsets = np.linspace(-1, 1, self.n_hypotheses)
        return p + self.spread * np.minimum(p, 1 - p) * offsets


def sample_mixture(n_samples: int, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw inputs and labels from the mixture.

    Parameters
    ----------
    n_samples : int
        At least 1.
    random_state : int

    Returns
    -------
    X : ndarray of shape (n_samples, 2), float32
    y : ndarray of shape (n_samples,), uint8
        1 with probability 1/2; then x has mean (−2.5, −2.5), else (2.5, 2.5), and
        covariance 3·I.

    Raises
    ------
    ValueError
        If ``n_samples`` is less than 1.
    """
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, got {n_samples!r}")
    rng = np.random.default_rng(random_state)
    y = rng.integers(2, size=n_samples, dtype=np.uint8)
    X = MEANS[y] + np.sqrt(VARIANCE) * rng.standard_normal((n_samples, 2))
    return X.astype(np.float32), y


def sample_training_set(n_samples: int, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw from the mixture, again and again until both classes are there.

    Parameters, returns and errors as of `sample_mixture`, but ``n_samples`` is at least 2.
    """
    if n_samples < 2:
        raise ValueError(f"n_samples must be at least 2, one of each class; got {n_samples!r}")
    for draw in range(_MAX_DRAWS):
        X, y = sample_mixture(n_samples, derive_seed(random_state, draw))
        if 0 < np.count_nonzero(y) < n_samples:
            return X, y
    raise RuntimeError(f"no training set of {n_samples} points had both classes")


def true_probability(X: np.ndarray) -> np.ndarray:
    """Return P(Y = 1 | x) at ``X`` of shape (n_samples, 2), shape (n_samples,), float64.

    With equal priors and covariances the log odds are linear in x: those of the mixture
    are −5/3 · (x_1 + x_2).
    """
    from scipy.special import expit

    negative, positive = MEANS
    direction = (positive - negative) / VARIANCE
    return expit((np.asarray(X, dtype=np.float64) - MEANS.mean(axis=0)) @ direction)


def mixture_density(X: np.ndarray) -> np.ndarray:
    """Return the density of the mixture at ``X`` of shape (n_samples, 2), shape (n_samples,)."""
    from scipy.spatial.distance import cdist

    squares = cdist(np.asarray(X, dtype=np.float64), MEANS, "sqeuclidean")
    return np.exp(-squares / (2 * VARIANCE)).mean(axis=1) / (2 * np.pi * VARIANCE)


def corrupt_inputs(X: np.ndarray, noise_level: float, random_state: int) -> np.ndarray:
    """Replace a fraction of the input values by uniform draws over their range.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    noise_level : float in [0, 1]
        Fraction of the n_samples · n_features values, to the nearest whole number of
        them, that is replaced by draws between the least and the largest value of
        their feature.
    random_state : int
        With the same seed, what a lower level replaces a higher one replaces too, by the
        same values.

    Returns
    -------
    ndarray of the shape and dtype of ``X``, which is left as it is

    Raises
    ------
    ValueError
        If ``noise_level`` is not in [0, 1].

    Notes
    -----
    The paper says that "noise is introduced by randomly corrupting input values", from 0 to
    95 %; the uniform draws are this project's reading.
    """
    if not 0 <= noise_level <= 1:
        raise ValueError(f"noise_level must be in [0, 1], got {noise_level!r}")
    rng = np.random.default_rng(random_state)
    order = rng.permutation(X.size)
    draws = rng.uniform(X.min(axis=0), X.max(axis=0), size=X.shape)
    chosen = order[: round(noise_level * X.size)]
    corrupted = np.array(X)
    corrupted.flat[chosen] = draws.flat[chosen]
    return corrupted


def dataset(*, seed: int, n_samples: int = 500) -> pd.DataFrame:
    """Return a sample of the mixture (figure 1b).

    Returns
    -------
    DataFrame with columns seed, x1, x2, y, p_true
    """
    import pandas as pd

    X, y = sample_mixture(n_samples, derive_seed("toy", "dataset", seed))
    return pd.DataFrame(
        {"seed": seed, "x1": X[:, 0], "x2": X[:, 1], "y": y, "p_true": true_probability(X)}
    )


def calibration_plots(
    method: str = "random_forest",
    *,
    seed: int,
    variants: Mapping[str, Mapping[str, Any]],
    implementation: str | None = None,
    n_train: int = 50,
    n_test: int = 40_000,
    n_bins: int = 10,
) -> pd.DataFrame:
    """Return binned calibration curves of variants of a method (figure 1a).

    Parameters
    ----------
    method : str
        Name in the table.
    seed : int
    variants : mapping of str to mapping
        Parameters of the method, by the name of the variant in the table.
    implementation : str, optional
        Registered name or file of the method; by default ``method``.
    n_train, n_test : int
    n_bins : int
        Bins of equal width on [0, 1].

    Returns
    -------
    DataFrame with columns method, variant, seed, bin, predicted, frequency, count, ece
        One row a bin with points; ``ece`` is that of the whole variant.
    """
    import pandas as pd

    from epistemic_calibration.metrics import calibration_curve, expected_calibration_error

    data = _Data("calibration_plots", seed, n_train, n_test)
    tables = []
    for variant, parameters in variants.items():
        predictions = data.fit_predict(method, implementation, parameters)
        prediction = _point_prediction(predictions)
        curve = calibration_curve(data.y_test, prediction, n_bins=n_bins)
        table = pd.DataFrame(curve._asdict())
        table.insert(0, "bin", np.arange(len(table)))
        table.insert(0, "seed", seed)
        table.insert(0, "variant", variant)
        table.insert(0, "method", method)
        table["ece"] = expected_calibration_error(data.y_test, prediction, n_bins=n_bins)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def smooth_calibration(
    method: str = "bayesian_logistic_regression",
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    n_train: int = 50,
    n_test: int = 40_000,
    bandwidth: float = 0.2,
) -> pd.DataFrame:
    """Return the smooth calibration curve of a method (figure 1c).

    Parameters
    ----------
    method, seed, implementation, n_train, n_test
        As of `calibration_plots`.
    parameters : mapping, optional
        Parameters of the method; by default its own defaults.
    bandwidth : float
        Of the Beta kernel; 0.2 in the paper.

    Returns
    -------
    DataFrame with columns method, seed, predicted, frequency, frequency_if_calibrated
        The last is the curve of labels drawn from the predictions: what the smoother makes
        of a calibrated predictor with these predictions. Its distance from the diagonal is
        the bias of the kernel.
    """
    import pandas as pd

    from epistemic_calibration.metrics import smooth_calibration_curve

    data = _Data("smooth_calibration", seed, n_train, n_test)
    prediction = _point_prediction(data.fit_predict(method, implementation, parameters))
    curve = smooth_calibration_curve(data.y_test, prediction, bandwidth=bandwidth)
    rng = np.random.default_rng(derive_seed(*data.key, method, "labels"))
    labels = rng.random(n_test) < prediction
    calibrated = smooth_calibration_curve(labels, prediction, bandwidth=bandwidth)
    return pd.DataFrame(
        {
            "method": method,
            "seed": seed,
            **curve._asdict(),
            "frequency_if_calibrated": calibrated.frequency,
        }
    )


def uncertainty_maps(
    method: str,
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    n_train: int = 10,
    n_grid: int = 100,
) -> pd.DataFrame:
    """Return epistemic uncertainty and expected squared error on a grid (figures 2 and 6).

    Parameters
    ----------
    method, seed, parameters, implementation
        As of `smooth_calibration`.
    n_train : int
        10 in the paper.
    n_grid : int
        Points of the grid along each axis, from −`MAP_LIMIT` to `MAP_LIMIT`.

    Returns
    -------
    DataFrame with columns method, seed, kind, x1, x2, y, p_true, epistemic_uncertainty, \
expected_squared_error
        Rows of kind ``grid`` have no y; those of kind ``training`` are the training points
        and have no uncertainty and no error.

    Notes
    -----
    The expected squared error is E_j (P(Y = 1 | Π(x)) − h_j(x))². The grid points at which
    all hypotheses agree are a level set of Π, and P(Y = 1 | Π(x)) is the mean of p over
    them, weighted by the density of the mixture: p itself where Π is injective on the grid.
    """
    import pandas as pd

    data = _Data("uncertainty_maps", seed, n_train, 0)
    axis = np.linspace(-MAP_LIMIT, MAP_LIMIT, n_grid)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    p_true = true_probability(grid)
    predictions = data.fit_predict(method, implementation, parameters, X=grid.astype(np.float32))
    uncertainty, error = uncertainty_and_error(p_true, predictions, weights=mixture_density(grid))
    table = pd.DataFrame(
        {
            "kind": "grid",
            "x1": grid[:, 0],
            "x2": grid[:, 1],
            "p_true": p_true,
            "epistemic_uncertainty": uncertainty,
            "expected_squared_error": error,
        }
    )
    training = pd.DataFrame(
        {
            "kind": "training",
            "x1": data.X_train[:, 0],
            "x2": data.X_train[:, 1],
            "y": data.y_train,
            "p_true": true_probability(data.X_train),
        }
    )
    table = pd.concat([table, training], ignore_index=True).assign(method=method, seed=seed)
    columns = ["method", "seed", "kind", "x1", "x2", "y", "p_true"]
    return table[[*columns, "epistemic_uncertainty", "expected_squared_error"]]


def uncertainty_and_error(
    p_true: np.ndarray, predictions: Predictions, *, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return EU(x) and E_j (P(Y = 1 | Π(x)) − h_j(x))², each of shape (n_samples,).

    Parameters
    ----------
    p_true : ndarray of shape (n_samples,)
        P(Y = 1 | x_n) in [0, 1].
    predictions : Predictions
        At the same points.
    weights : ndarray of shape (n_samples,)
        Density of X at the points, up to a factor; positive.
    """
    from epistemic_calibration.metrics.binning import group_equal_rows, row_moments

    mean, variance = row_moments(predictions.hypotheses)
    level_sets = group_equal_rows(predictions.hypotheses)
    mass = np.bincount(level_sets, weights=weights)
    frequency = (np.bincount(level_sets, weights=weights * p_true) / mass)[level_sets]
    reported = predictions.epistemic_uncertainty
    return variance if reported is None else reported, (frequency - mean) ** 2 + variance


def eece_per_method(
    method: str,
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    n_train: int = 50,
    n_test: int = 40_000,
    n_bins: int = 100,
    binning: str = "kmeans",
) -> pd.DataFrame:
    """Return EECE, what it is made of, and the truth behind it (figure 3a).

    Parameters
    ----------
    method, seed, parameters, implementation
        As of `smooth_calibration`.
    n_train, n_test : int
        50 and 40,000 in the paper.
    n_bins, binning
        Of EECE.

    Returns
    -------
    DataFrame with columns method, seed, metric, value, n_train, n_test, n_bins, \
n_hypotheses, binning
        Metrics: accuracy, ece, eece, eece_calibration, eece_dispersion, tece,
        tece_corrected (of the mean prediction, from the labels alone),
        mean_epistemic_uncertainty.

    Notes
    -----
    TECE takes P(Y = 1 | Π(x)) as the mean of p over the test points with the same hypotheses.
    Methods that draw hypotheses anew at every input have no two such points, even where their
    Π is not injective; their TECE then uses p(x) itself and is, if anything, too large.
    """
    data = _Data("eece_per_method", seed, n_train, n_test)
    predictions = data.fit_predict(method, implementation, parameters)
    rows = _score(data, predictions, n_bins=n_bins, binning=binning, all_metrics=True)
    return _tidy(rows, method=method, seed=seed, n_train=n_train, n_test=n_test)


def eece_vs_noise(
    method: str = "random_forest",
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    noise_levels: Sequence[float] = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
    n_train: int = 50,
    n_test: int = 40_000,
    n_bins: int = 100,
    binning: str = "kmeans",
) -> pd.DataFrame:
    """Return EECE and TECE against the noise in the training inputs (figure 3b, left).

    Parameters
    ----------
    noise_levels : sequence of float in [0, 1]
        As of `corrupt_inputs`. All levels of a seed start from the same training set.

    The others are those of `eece_per_method`.

    Returns
    -------
    DataFrame with columns method, seed, noise_level, metric, value, n_train, n_test, \
n_bins, n_hypotheses, binning
        Metrics: eece, tece.
    """
    data = _Data("eece_vs_noise", seed, n_train, n_test)
    clean, rows = data.X_train, []
    for noise_level in noise_levels:
        data.X_train = corrupt_inputs(clean, noise_level, derive_seed(*data.key, "noise"))
        predictions = data.fit_predict(method, implementation, parameters)
        scores = _score(data, predictions, n_bins=n_bins, binning=binning)
        rows += [{"noise_level": noise_level, **row} for row in scores]
    return _tidy(rows, method=method, seed=seed, n_train=n_train, n_test=n_test)


def eece_vs_training_size(
    method: str = "random_forest",
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    training_sizes: Sequence[int] = (10, 20, 30, 50, 70, 100, 200, 300, 500, 700, 1000),
    n_test: int = 40_000,
    n_bins: int = 100,
    binning: str = "kmeans",
) -> pd.DataFrame:
    """Return EECE and TECE against the size of the training set (figure 3b, right).

    Parameters
    ----------
    training_sizes : sequence of int
        At least 2 each. Every size has a training set of its own.

    The others are those of `eece_per_method`.

    Returns
    -------
    DataFrame with columns method, seed, n_train, metric, value, n_test, n_bins, \
n_hypotheses, binning
        Metrics: eece, tece.
    """
    rows = []
    for n_train in training_sizes:
        data = _Data("eece_vs_training_size", seed, n_train, n_test)
        predictions = data.fit_predict(method, implementation, parameters)
        scores = _score(data, predictions, n_bins=n_bins, binning=binning)
        rows += [{"n_train": n_train, **row} for row in scores]
    return _tidy(rows, method=method, seed=seed, n_test=n_test)


def binning_study(
    method: str = "deep_ensemble",
    *,
    seed: int,
    parameters: Mapping[str, Any] | None = None,
    implementation: str | None = None,
    bin_numbers: Sequence[int] = (10, 20, 50, 100, 200, 300, 400, 600),
    n_train: int = 20,
    n_test: int = 10_000,
    binning: str = "kmeans",
) -> pd.DataFrame:
    """Return |EECE − TECE| against the number of bins (figure 5).

    Parameters
    ----------
    bin_numbers : sequence of int
        Numbers of bins.
    n_train, n_test : int
        20 and 10,000 in the paper.

    The others are those of `eece_per_method`.

    Returns
    -------
    DataFrame with columns method, seed, metric, value, n_train, n_test, n_bins, \
n_hypotheses, binning
        Metrics, each for every number of bins: eece, tece (which has no bins and is the
        same on all rows of a seed) and absolute_difference, |EECE − TECE|.
    """
    data = _Data("binning_study", seed, n_train, n_test)
    predictions = data.fit_predict(method, implementation, parameters)
    tece, rows = _tece(data, predictions), []
    for n_bins in bin_numbers:
        scores = _score(data, predictions, n_bins=n_bins, binning=binning, tece=tece)
        eece = next(row["value"] for row in scores if row["metric"] == "eece")
        difference = {**scores[0], "metric": "absolute_difference", "value": abs(eece - tece)}
        rows += [*scores, difference]
    return _tidy(rows, method=method, seed=seed, n_train=n_train, n_test=n_test)


class _Data:
    """Training and test set of one experiment and seed, the same for all methods."""

    def __init__(self, experiment: str, seed: int, n_train: int, n_test: int) -> None:
        self.key = ("toy", experiment, seed)
        self.X_train, self.y_train = sample_training_set(
            n_train, derive_seed(*self.key, "training", n_train)
        )
        if n_test:
            self.X_test, self.y_test = sample_mixture(n_test, derive_seed(*self.key, "test"))

    def fit_predict(
        self,
        method: str,
        implementation: str | None,
        parameters: Mapping[str, Any] | None,
        X: np.ndarray | None = None,
    ) -> Predictions:
        implementation = implementation or method
        cls = Oracle if implementation == "oracle" else load_method(implementation)
        fitted = cls(**(parameters or {}), random_state=derive_seed(*self.key, method))
        return fitted.fit(self.X_train, self.y_train).predict(self.X_test if X is None else X)


def _point_prediction(predictions: Predictions) -> np.ndarray:
    if predictions.prediction is not None:
        return predictions.prediction
    return predictions.hypotheses.mean(axis=1, dtype=np.float64)


def _tece(data: _Data, predictions: Predictions) -> float:
    from epistemic_calibration.metrics import true_epistemic_calibration_error

    return true_epistemic_calibration_error(
        true_probability(data.X_test),
        predictions.hypotheses,
        epistemic_uncertainty=predictions.epistemic_uncertainty,
    )


def _score(
    data: _Data,
    predictions: Predictions,
    *,
    n_bins: int,
    binning: str,
    all_metrics: bool = False,
    tece: float | None = None,
) -> list[dict[str, Any]]:
    from epistemic_calibration import metrics

    y_true, hypotheses = data.y_test, predictions.hypotheses
    reported = predictions.epistemic_uncertainty
    # In the precision in which the benchmark stores hypotheses, and twice as fast.
    bins = metrics.assign_bins(
        hypotheses.astype(np.float32),
        n_bins=n_bins,
        binning=binning,
        random_state=derive_seed(*data.key, "bins"),
    )
    values = {"tece": _tece(data, predictions) if tece is None else tece}
    if all_metrics:
        parts = metrics.decompose_eece(
            y_true, hypotheses, epistemic_uncertainty=reported, binning=binning, bins=bins
        )
        prediction = _point_prediction(predictions)
        uncertainty = hypotheses.var(axis=1) if reported is None else reported
        corrected = metrics.corrected_epistemic_calibration_error(y_true, hypotheses, bins=bins)
        values |= {
            "accuracy": metrics.accuracy(y_true, prediction),
            "ece": metrics.expected_calibration_error(y_true, prediction),
            "eece": parts.eece,
            "eece_calibration": parts.calibration,
            "eece_dispersion": parts.dispersion,
            "tece_corrected": corrected.estimate,
            "mean_epistemic_uncertainty": np.mean(uncertainty, dtype=np.float64),
        }
    else:
        values["eece"] = metrics.expected_epistemic_calibration_error(
            y_true, hypotheses, epistemic_uncertainty=reported, binning=binning, bins=bins
        )
    shape = {"n_bins": n_bins, "n_hypotheses": hypotheses.shape[1], "binning": binning}
    return [{"metric": name, "value": float(value), **shape} for name, value in values.items()]


def _tidy(rows: list[dict[str, Any]], **context: Any) -> pd.DataFrame:
    import pandas as pd

    table = pd.DataFrame(rows)
    first = {name: context.pop(name) for name in ("method", "seed")}
    for name, value in reversed(first.items()):
        table.insert(0, name, value)
    return table.assign(**context)
