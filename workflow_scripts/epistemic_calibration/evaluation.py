"""Everything that labels and hypotheses say of a predictor, in one call and on one screen."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration import metrics
from epistemic_calibration.metrics import (
    CorrectedError,
    EECEParts,
    Estimate,
    HypothesisTest,
    Sample,
    SecondOrderError,
)
from epistemic_calibration.metrics._classes import ClassSample
from epistemic_calibration.metrics._clusters import mean_of_groups
from epistemic_calibration.metrics._groups import distinct_inputs, nested_bins_of_groups
from epistemic_calibration.metrics._validation import (
    check_fraction,
    check_positive_integer,
    check_probabilities,
)
from epistemic_calibration.metrics.hypothesis_tests import calibration_tests
from epistemic_calibration.metrics.second_order import check_counts
from epistemic_calibration.predictions._classes import (
    class_arrays,
    n_axes,
    to_groups,
    to_label_counts,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from epistemic_calibration._class_evaluation import ClassEvaluation

#: With fewer inputs nothing is said of calibration.
LEAST_SAMPLES = 11

#: Bins of equal width of the ECE.
ECE_N_BINS = 10

#: Names of the tests, as in the scores of the benchmark.
_TESTS = {
    "epistemic_calibration": "p_epistemic_calibration",
    "mean_calibration": "p_mean_calibration",
    "epistemic_independence": "p_epistemic_independence",
    "second_order": "p_second_order",
}

_SECOND_ORDER = {
    "reducible_error": "reducible",
    "size_gap": "gap",
    "reported_share": "share",
    "size_slope": "slope",
    "size_error": "size_error",
    "tece_all_labels": "calibration_error",
    "variance_in_bins": "variance_in_bins",
    "aleatoric_uncertainty": "aleatoric",
}


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation:
    """What `evaluate` finds. Printing it gives a summary of one screen.

    Errors are in squared units of probability: 0.0025 is off by 5 points, root mean square.
    What cannot be said is None: everything about calibration below 11 inputs.

    Attributes
    ----------
    n_samples, n_hypotheses : int
    n_groups : int or None
        Groups of inputs that are independent of each other, where ``groups`` are given.
    class_names : tuple of str or None
        Names of the labels 0 and 1, where they have any.
    positive_share : float
        Share of the inputs with label 1.
    accuracy, brier : Estimate
        Of the prediction: the mean of the hypotheses, unless the method has its own. The
        interval of the accuracy is Wilson's, unless there are groups.
    ece : float
        Classical expected calibration error of the prediction, 10 bins of equal width.
    tece : CorrectedError or None
        The corrected TECE, E[(P(Y = 1 | Π) − Δ)²].
    mean_miscalibration, epistemic_dependence : CorrectedError or None
        Its two parts.
    eece : EECEParts or None
        The paper's EECE and its parts.
    tests : dict of str to HypothesisTest
        ``epistemic_calibration``, ``mean_calibration``, ``epistemic_independence``, and
        ``second_order`` where there are several labels per input. The last two take no groups,
        and are missing where there are any.
    reported_error : Estimate or None
        The squared error that the method says it makes, c_H·E[EU].
    reducible_at_most : Estimate
        Brier score of the mean: an upper bound of E[(p* − Δ)²].
    second_order : SecondOrderError or None
        Where there are several labels per input.
    n_bins, eece_n_bins : int
        Bins of the corrected TECE, and of the EECE.
    exchangeable : bool
    confidence_level : float
    random_state : int
    warnings : tuple of str
        What makes these numbers less than they seem, one line each.
    """

    n_samples: int
    n_hypotheses: int
    n_groups: int | None
    class_names: tuple[str, ...] | None
    positive_share: float
    accuracy: Estimate
    brier: Estimate
    ece: float
    tece: CorrectedError | None
    mean_miscalibration: CorrectedError | None
    epistemic_dependence: CorrectedError | None
    eece: EECEParts | None
    tests: dict[str, HypothesisTest]
    reported_error: Estimate | None
    reducible_at_most: Estimate
    second_order: SecondOrderError | None
    n_bins: int
    eece_n_bins: int
    exchangeable: bool
    confidence_level: float
    random_state: int
    warnings: tuple[str, ...]
    _inputs: _Inputs = field(repr=False)

    def __repr__(self) -> str:
        from epistemic_calibration._evaluation_text import summary

        return summary(self)

    @property
    def judgement(self) -> dict[str, str]:
        """Plain sentences on the ``mean`` and on the ``size`` of the uncertainty."""
        from epistemic_calibration._evaluation_text import on_mean, on_size

        return {"mean": on_mean(self), "size": on_size(self)}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it; what is NaN or infinite is None.

        Examples
        --------
        >>> from epistemic_calibration import evaluate
        >>> evaluate([0, 1] * 50, [[0.4, 0.6]] * 100).to_dict()["tece"]["n_bins"]
        1
        """
        return plain(self) | {"judgement": self.judgement}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per metric, named as in the scores of the benchmark.

        Returns
        -------
        DataFrame
            metric, value, ci_low, ci_high, and points, 100·√value where the value is a squared
            error of a probability.

        Examples
        --------
        >>> from epistemic_calibration import evaluate
        >>> evaluate([0, 1] * 50, [[0.4, 0.6]] * 100).to_frame().loc[0, "metric"]
        'accuracy'
        """
        import pandas as pd

        return pd.DataFrame(
            self._rows(), columns=["metric", "value", "ci_low", "ci_high", "points"]
        )

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw reliability, and the error, or its upper bound, against the uncertainty.

        Parameters
        ----------
        path : path, optional
            Where to save the figure; the ending says how (``.png``, ``.pdf``, ``.svg``).

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed.
        """
        from epistemic_calibration._evaluation_plot import draw

        return draw(self, self._inputs, path)

    def _rows(self) -> list[tuple[str, float, float, float, float]]:
        nan = math.nan

        def number(name: str, value: float, points: float = nan) -> tuple:
            return name, float(value), nan, nan, points

        def squared(name: str, value: float) -> tuple:
            return number(name, value, 100 * math.sqrt(max(value, 0.0)))

        def estimate(name: str, value: Estimate | CorrectedError, *, root: bool = True) -> tuple:
            points = 100 * math.sqrt(max(value.estimate, 0.0)) if root else nan
            return name, value.estimate, value.ci_low, value.ci_high, points

        rows = [
            estimate("accuracy", self.accuracy, root=False),
            estimate("brier", self.brier),
            number("ece", self.ece),
        ]
        if self.tece is not None:
            rows += [
                estimate("tece_corrected", self.tece),
                squared("tece_noise_floor", self.tece.noise_floor),
                squared("tece_minimum_detectable", self.tece.minimum_detectable),
                estimate("mean_miscalibration", self.mean_miscalibration),
                estimate("epistemic_dependence", self.epistemic_dependence),
                number("eece", self.eece.eece),
                squared("eece_calibration", self.eece.calibration),
                number("eece_dispersion", self.eece.dispersion),
                squared("eece_noise_floor", self.eece.noise_floor),
            ]
        if self.reported_error is not None:
            rows.append(estimate("reported_error", self.reported_error))
        rows.append(estimate("reducible_error_at_most", self.reducible_at_most))
        if self.second_order is not None:
            roots = ("reducible", "calibration_error", "variance_in_bins")
            rows += [
                estimate(name, getattr(self.second_order, attribute), root=attribute in roots)
                for name, attribute in _SECOND_ORDER.items()
            ]
        rows += [number(_TESTS[name], test.p_value) for name, test in self.tests.items()]
        sizes = ["n_samples", "n_hypotheses"] + ["n_groups"] * (self.n_groups is not None)
        rows += [number(name, getattr(self, name)) for name in sizes]
        return rows


@dataclass(frozen=True)
class _Inputs:
    """What figures need."""

    sample: Sample
    prediction: np.ndarray
    n_positive: np.ndarray | None
    n_labels: np.ndarray | None
    groups: np.ndarray | None


def evaluate(
    y_true: ArrayLike,
    hypotheses: ArrayLike,
    *,
    epistemic_uncertainty: ArrayLike | None = None,
    prediction: ArrayLike | None = None,
    n_positive: ArrayLike | None = None,
    n_labels: ArrayLike | None = None,
    label_counts: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    class_names: ArrayLike | None = None,
    axes: str | None = None,
    exchangeable: bool = True,
    n_bins: int | None = None,
    confidence_level: float = 0.95,
    random_state: int = 0,
) -> Evaluation | ClassEvaluation:
    """Evaluate a second-order classifier: is its mean right, and its uncertainty?

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), labels in {0, 1}
        Of several classes, 0, 1, ..., or whatever ``class_names`` are.
    hypotheses : array-like of shape (n_samples, n_hypotheses)
        h_j(x_n), estimates of P(Y = 1 | x_n) in [0, 1]. Of several classes an array of three axes,
        samples, hypotheses and classes, whose probabilities add up to 1; of two, the hypotheses
        of the second are evaluated.
    epistemic_uncertainty : array-like of shape (n_samples,), optional
        What the method reports, >= 0; by default the variance of the hypotheses.
    prediction : array-like of shape (n_samples,), optional
        The method's own prediction in [0, 1], for accuracy, Brier score and ECE; by default
        the mean of the hypotheses, of which everything else is.
    n_positive, n_labels : array-like of int, shape (n_samples,), optional
        Several labels per input, independent given the input: how many of how many are
        positive. Only they show whether the uncertainty is of the right size.
    label_counts : array-like of int, shape (n_samples, n_classes), optional
        How many labels of each class an input has, in place of both.
    groups : array-like of shape (n_samples,), optional
        Equal for inputs that are not independent of each other, such as copies of an image; all
        intervals and tests are then of groups. Without it, copies pass for error.
    class_names : array-like of shape (n_classes,), optional
        Of hypotheses with three axes, in the order of the classes.
    axes : str, optional
        Which of three axes is which, such as ``"hnc"`` for hypotheses, samples and classes; by
        default they are told apart by their sums and by the number of samples.
    exchangeable : bool, default True
        The hypotheses are draws from the law that the method means; False where they are that
        law, as in `metrics.second_order_error`.
    n_bins : int, optional
        Bins of the corrected TECE, of which finer ones are used where these see more; the EECE
        has twice as many. By default a bin has 20 inputs or more (copies in a group are one), and
        there are at most 50; that of the EECE has 10, and at most 100.
    confidence_level : float in (0, 1), default 0.95
    random_state : int, default 0
        Seed of K-means, of the labels that tests redraw, and of folds and halves.

    Returns
    -------
    Evaluation or ClassEvaluation
        The latter of three classes or more.

    Raises
    ------
    ValueError
        If labels are not 0 and 1, or not of the classes, axes cannot be told apart, hypotheses
        are not in [0, 1], lengths differ, counts are not integers with 0 <= n_positive <=
        n_labels or lack one of the two, a bin would have fewer than two inputs, or something is
        given that several classes do not take.

    See Also
    --------
    metrics.split_epistemic_calibration_error, metrics.decompose_eece, \
metrics.second_order_error : the estimates one by one.

    Examples
    --------
    Hypotheses that are too bold by a factor of two on the logit scale:

    >>> import numpy as np
    >>> from epistemic_calibration import evaluate
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(0, 1.5, 4000)
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-logits))
    >>> hypotheses = 1 / (1 + np.exp(-2 * (logits[:, None] + rng.normal(0, 0.3, (4000, 20)))))
    >>> result = evaluate(y, hypotheses)
    >>> result.judgement["mean"].startswith("The predictions are off by about 10")
    True
    >>> result.tece.ci_low < result.tece.estimate < result.tece.ci_high
    True
    >>> len(str(result).splitlines()) <= 30
    True
    """
    level = check_fraction(confidence_level, name="confidence_level")
    names = None
    if n_axes(hypotheses) == 3:
        y_true, hypotheses, names = class_arrays(y_true, hypotheses, axes, class_names)
        if hypotheses.shape[2] > 2:
            given = {
                "epistemic_uncertainty": epistemic_uncertainty,
                "prediction": prediction,
                "n_positive": n_positive,
                "n_labels": n_labels,
            }
            return _of_classes(
                y_true,
                hypotheses,
                names,
                given,
                label_counts=label_counts,
                groups=groups,
                exchangeable=bool(exchangeable),
                n_bins=n_bins,
                level=level,
                random_state=random_state,
            )
        hypotheses = hypotheses[:, :, 1]
    elif axes is not None:
        raise ValueError("axes is for hypotheses of three axes")
    elif class_names is not None:
        names = [str(name) for name in class_names]
        if len(names) != 2:
            raise ValueError(f"class_names must be two, as hypotheses have two axes, got {names}")
    sample = Sample(y_true, hypotheses, epistemic_uncertainty=epistemic_uncertainty)
    n, n_hypotheses = len(sample), sample.hypotheses.shape[1]
    of_samples = None if groups is None else to_groups(groups, n)
    n_groups, n_units = units_of(of_samples, n)
    clusters = {"groups": of_samples}
    own = (
        sample.mean
        if prediction is None
        else check_probabilities(prediction, name="prediction", n_samples=n)
    )
    if label_counts is not None:
        if n_positive is not None or n_labels is not None:
            raise ValueError("label_counts takes the place of n_positive and n_labels")
        both = to_label_counts(label_counts, (n, 2))
        n_positive, n_labels = both[:, 1], both.sum(axis=1)
    counts = _check_counts(n_positive, n_labels, n)
    # Intervals and tests are of groups, bins of inputs, of which copies are one.
    n_inputs = len(np.arange(n)[distinct_inputs(sample.hypotheses, of_samples)[0]])
    bins = numbers_of_bins(n_bins, n_inputs)
    seed = {"random_state": random_state}
    exchangeable = bool(exchangeable)

    draws = exchangeable and sample.reported is None
    reported_error = None
    if sample.reported is not None or n_hypotheses > 1:
        factor = metrics.finite_draws_factor(n_hypotheses) if draws else 1.0
        reported_error = mean_of(factor * sample.uncertainty, level, of_samples)

    split = eece = None
    tests = {}
    if n_units >= LEAST_SAMPLES:
        split = metrics.split_epistemic_calibration_error(
            sample, n_bins=bins[0], confidence_level=level, **seed, **clusters
        )
        eece = metrics.decompose_eece(sample, n_bins=bins[1], **seed)
        nested = sample.bins(n_bins=bins[0], binning="nested", **seed)
        if of_samples is not None:
            nested = nested_bins_of_groups(sample, of_samples, bins[0], random_state)[1]
        tests["epistemic_calibration"], tests["mean_calibration"] = calibration_tests(
            sample, bins=nested, n_mean_bins=min(10, max(1, n_inputs // 10)), **seed, **clusters
        )
        if reported_error is not None and of_samples is None:
            tests["epistemic_independence"] = metrics.epistemic_independence_test(sample, **seed)

    second_order = None
    n_kept = 0
    if counts is not None:
        kept = counts[1] >= 2
        n_kept = kept.sum() if of_samples is None else len(np.unique(of_samples[kept]))
    if reported_error is not None and n_kept >= LEAST_SAMPLES:
        second_order = metrics.second_order_error(
            *counts,
            sample.hypotheses,
            epistemic_uncertainty=sample.reported,
            exchangeable=exchangeable,
            n_bins=bins[0],
            confidence_level=level,
            **seed,
            **clusters,
        )
        if sample.reported is None and of_samples is None:
            tests["second_order"] = metrics.second_order_test(
                *counts, sample.hypotheses, exchangeable=exchangeable, **seed
            )

    return Evaluation(
        n_samples=n,
        n_hypotheses=n_hypotheses,
        n_groups=n_groups,
        class_names=None if names is None else tuple(names),
        positive_share=float(sample.y.mean()),
        accuracy=accuracy_of((own > 0.5) == (sample.y == 1), level, of_samples),
        brier=mean_of((sample.y - own) ** 2, level, of_samples, most=1.0),
        ece=metrics.expected_calibration_error(sample.y, own, n_bins=ECE_N_BINS),
        tece=split and split.total,
        mean_miscalibration=split and split.mean_miscalibration,
        epistemic_dependence=split and split.epistemic_dependence,
        eece=eece,
        tests=tests,
        reported_error=reported_error,
        reducible_at_most=mean_of((sample.y - sample.mean) ** 2, level, of_samples, most=1.0),
        second_order=second_order,
        n_bins=bins[0],
        eece_n_bins=bins[1],
        exchangeable=exchangeable,
        confidence_level=level,
        random_state=random_state,
        warnings=tuple(
            _warnings(sample, split and split.total, eece, counts, second_order, of_samples)
        ),
        _inputs=_Inputs(sample, own, *(counts or (None, None)), of_samples),
    )


def default_n_bins(n_samples: int) -> int:
    """Return the bins of the corrected TECE that `evaluate` takes by default.

    Examples
    --------
    >>> [default_n_bins(n) for n in (15, 300, 10_000)]
    [1, 15, 50]
    """
    return min(50, max(1, n_samples // 20))


def check_n_bins(n_bins: int, n_samples: int) -> int:
    """Return a number of bins.

    Raises
    ------
    ValueError
        If it is not an integer >= 1, or bins would have fewer than two of the inputs.
    """
    n_bins = check_positive_integer(n_bins, name="n_bins")
    if n_bins > max(1, n_samples // 2):
        raise ValueError(
            f"n_bins must be at most {max(1, n_samples // 2)}, two inputs in each bin, for "
            f"{n_samples} inputs; got {n_bins}"
        )
    return n_bins


def units_of(groups: np.ndarray | None, n_samples: int) -> tuple[int | None, int]:
    """Return the number of groups 0, 1, ..., if any, and of independent units: them, or inputs."""
    if groups is None:
        return None, n_samples
    n_groups = int(groups.max()) + 1
    return n_groups, n_groups


def numbers_of_bins(n_bins: int | None, n_samples: int) -> tuple[int, int]:
    if n_bins is None:
        return default_n_bins(n_samples), min(100, max(1, n_samples // 10))
    n_bins = check_n_bins(n_bins, n_samples)
    return n_bins, 2 * n_bins


def _check_counts(
    n_positive: ArrayLike | None, n_labels: ArrayLike | None, n_samples: int
) -> tuple[np.ndarray, np.ndarray] | None:
    if n_positive is None and n_labels is None:
        return None
    if n_positive is None or n_labels is None:
        lacking = "n_positive" if n_positive is None else "n_labels"
        raise ValueError(f"n_positive and n_labels go together; {lacking} is missing")
    positive, labels = check_counts(n_positive, n_labels)
    if len(positive) != n_samples:
        raise ValueError(f"n_positive has {len(positive)} samples, y_true has {n_samples}")
    return positive, np.broadcast_to(labels, positive.shape)


def mean_of(
    values: np.ndarray, level: float, groups: np.ndarray | None = None, *, most: float = math.inf
) -> Estimate:
    """Return the mean of values in [0, most]; of one group the interval is all that can be."""
    groups = np.arange(len(values)) if groups is None else groups
    if groups.max() < 1:
        return Estimate(float(values.mean()), math.nan, 0.0, most, level)
    found = mean_of_groups(values, groups, level, least=0.0)
    return dataclasses.replace(found, ci_high=min(found.ci_high, most))


def accuracy_of(right: np.ndarray, level: float, groups: np.ndarray | None = None) -> Estimate:
    """Return the share of predictions that are right, with Wilson's interval, or that of groups."""
    from scipy.stats import binomtest

    if groups is not None:
        # Of groups that are all right, one more may be wrong.
        n_groups = int(groups.max()) + 1
        if not 0 < right.mean() < 1:
            found = accuracy_of(np.full(n_groups, bool(right[0])), level)
            return dataclasses.replace(found, standard_error=0.0)
        return mean_of(right.astype(np.float64), level, groups, most=1.0)
    value = float(right.mean())
    interval = binomtest(int(right.sum()), len(right)).proportion_ci(level, method="wilson")
    standard_error = math.sqrt(value * (1 - value) / len(right))
    return Estimate(value, standard_error, float(interval.low), float(interval.high), level)


def _of_classes(
    y_true: np.ndarray,
    hypotheses: np.ndarray,
    names: list[str],
    given: dict[str, Any],
    *,
    label_counts: ArrayLike | None,
    groups: ArrayLike | None,
    **settings: Any,
) -> ClassEvaluation:
    from epistemic_calibration._class_evaluation import evaluate_classes

    wrong = [name for name, value in given.items() if value is not None]
    if wrong:
        instead = ": give label_counts" if wrong[0].startswith("n_") else ""
        raise ValueError(f"{wrong[0]} is not taken with several classes{instead}")
    n, _, n_classes = hypotheses.shape
    return evaluate_classes(
        ClassSample(y_true, hypotheses),
        names,
        counts=None if label_counts is None else to_label_counts(label_counts, (n, n_classes)),
        groups=None if groups is None else to_groups(groups, n),
        **settings,
    )


def _warnings(
    sample: Sample,
    tece: CorrectedError | None,
    eece: EECEParts | None,
    counts: tuple[np.ndarray, np.ndarray] | None,
    second_order: SecondOrderError | None,
    groups: np.ndarray | None,
) -> list[str]:
    found = []
    n = len(sample)
    if groups is not None:
        found.append(
            "EECE and its noise do not allow for the groups, and tests that cannot are left out."
        )
    n_rare = int(min(sample.y.sum(), n - sample.y.sum()))
    rare = int(sample.y.sum() <= n / 2)
    if n_rare == 0:
        found.append(
            f"All labels are {1 - rare}: how often they would be {rare} is not in the data."
        )
    elif n_rare < 30 and n >= LEAST_SAMPLES:
        found.append(f"Only {n_rare} inputs have the label {rare}: all intervals are rough.")
    if tece is not None and tece.estimate < tece.minimum_detectable:
        found.append(
            f"The estimate lies below the smallest error that {n:,} inputs reliably show "
            f"({100 * math.sqrt(tece.minimum_detectable):.1f} points)."
        )
    if eece is not None:
        n_bins = len(eece.bins.count)
        spread = float(np.sqrt(sample.variance.mean()))
        if n_bins > n / 5 and spread > 0:
            found.append(
                f"EECE has {n_bins:,} bins for {n:,} inputs: its W is near 0 by construction, "
                f"and it is noise."
            )
        elif eece.noise_floor > 0.5 * eece.calibration:
            much = "All" if eece.noise_floor >= eece.calibration else "Most"
            found.append(f"{much} of g² is what the noise of the labels alone would make.")
    if counts is not None:
        n_kept = int(np.count_nonzero(counts[1] >= 2))
        if second_order is None and sample.hypotheses.shape[1] > 1:
            found.append(
                f"Only {n_kept} inputs have two labels or more; the size of the uncertainty takes "
                f"{LEAST_SAMPLES}."
            )
        elif n_kept < n:
            found.append(f"{n - n_kept:,} inputs with fewer than two labels say nothing of size.")
    return found


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it, a dataclass by its public fields."""
    if dataclasses.is_dataclass(value):
        names = (f.name for f in dataclasses.fields(value))
        # Bins are many, and figures have them.
        public = (name for name in names if name != "bins" and name[0] != "_")
        return {name: plain(getattr(value, name)) for name in public}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
