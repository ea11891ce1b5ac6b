"""Tests that p* is distributed as the hypotheses are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration.metrics._label_counts import (
    check_counts,
    check_inputs,
    moments,
    squared_error,
    warn_of_stopping,
    with_two_labels,
)
from epistemic_calibration.metrics._members import canonical_members, parts_of_draws
from epistemic_calibration.metrics._validation import check_positive_integer
from epistemic_calibration.metrics.binning import canonical_order, quantile_bins, row_moments
from epistemic_calibration.metrics.calibration_tests import HypothesisTest
from epistemic_calibration.metrics.law_error import Draws, check_draws

#: Members from which on p* may be the first of 20.
MIN_MEMBERS = 19
#: Members that functions are compared with; of more, as many evenly chosen ones.
_MAX_COMPARED = 200
#: Times that each way to halve draws is tried, with labels of the others drawn anew.
_N_POOLS = 3
#: Standard deviations of labels up to which ratios are compared linearly, inverse.
_HALF = 0.5


def second_order_test(
    n_positive: ArrayLike,
    n_labels: ArrayLike,
    hypotheses: ArrayLike,
    *,
    exchangeable: bool = True,
    draws: Draws = "functions",
    n_bins: int = 10,
    n_resamples: int = 999,
    random_state: int = 0,
) -> HypothesisTest:
    """Test that p* is distributed as the hypotheses are.

    With ``draws="functions"`` the hypothesis is that p* is one more function of the law that the
    members were drawn from. Each member in turn takes the place of p*: labels are drawn from it,
    both it and p* are compared with the others, and the p-value is the rank of p* among all,
    (1 + #{T_j >= T}) / (H + 1), its median over the labels drawn. It is at least 1/(H + 1): fewer
    than 19 members reject nothing at 0.05.

    With ``draws="inputs"`` p* is one more draw at each input, independent of the other inputs,
    which finds more but is wrong where hypotheses are functions: there it rejects right laws.
    One half of the draws gives Δ and EU, the others are exchangeable with p*, and what is drawn at
    random for each input is which one of {p*, the others} its labels are of.

    The statistic sees wrong sizes of EU, overall or by EU: for functions it is the square, over
    bins of EU, of a logarithm of the error that is seen over the one that is reported, in units of
    its standard deviation over members and labels; for inputs Σ (Σ v)²/Σ Var(v), where v is q
    less its mean under the hypothesis.

    Parameters
    ----------
    n_positive, n_labels, hypotheses, exchangeable, draws
        As in :func:`second_order_error`; two hypotheses or more, and three or more members that
        are functions. If not ``exchangeable``, p* is one of the hypotheses. Labels given an
        input must be independent: there are no ``groups``.
    n_bins : int, default 10
        Quantiles of EU; 1 tests the mean size alone, and is the best at that.
    n_resamples : int >= 1, default 999
        Sets of labels drawn, at least one from each member; for each way to halve them where they
        are drawn anew at each input, and three times then.
    random_state : int, default 0
        Seed of what is drawn, which stands for inputs in an order of their rows.

    Raises
    ------
    ValueError
        As there.

    Notes
    -----
    For functions, members are compared by pairs, as in the jackknife+ (Barber et al., 2021), whose
    bound is P(p <= α) <= 2α; in simulations it is about α, 2 to 6 % at .05. For inputs, the
    p-value of each way to halve the draws is exact for any N, k and H, and twice the median of
    several holds.

    References
    ----------
    Barber, Candès, Ramdas and Tibshirani, 2021, "Predictive inference with the jackknife+".
    Vovk and Wang, 2020, "Combining p-values via averaging".

    Examples
    --------
    >>> import numpy as np
    >>> from epistemic_calibration import metrics
    >>> rng = np.random.default_rng(0)
    >>> p, *rows = rng.beta(2, 2, (21, 500))
    >>> n_positive, rows = rng.binomial(3, p), np.stack(rows, axis=1)
    >>> metrics.second_order_test(n_positive, 3, rows).p_value > 0.05
    True
    >>> round(metrics.second_order_test(n_positive, 3, 0.5 + (rows - 0.5) / 2).p_value, 3)
    0.048
    """
    n_bins = check_positive_integer(n_bins, name="n_bins")
    n_resamples = check_positive_integer(n_resamples, name="n_resamples")
    check_draws(draws)
    n_positive, n_labels = check_counts(n_positive, n_labels)
    kept = with_two_labels(n_labels)
    warn_of_stopping(n_positive, n_labels)
    rows, _ = check_inputs(hypotheses, kept, exchangeable=False)
    s, k = n_positive[kept], n_labels[kept]
    if exchangeable:
        rows = canonical_members(rows)
    least, words = (3, "three") if exchangeable and draws == "functions" else (2, "two")
    if rows.shape[1] < least:
        raise ValueError(f"hypotheses must be {words} or more, got {rows.shape[1]}")
    # Of equal rows, those with the same counts are the same input.
    by_counts = np.lexsort((s, k))
    order = by_counts[canonical_order(rows[by_counts], *row_moments(rows[by_counts]))]
    rows, s, k = rows[order].astype(np.float64), s[order], k[order]
    generator = np.random.default_rng(random_state)
    if draws == "functions":
        test = _one_more_function if exchangeable else _one_of_the_functions
        return test(s, k, rows, n_bins, n_resamples, generator)
    if not exchangeable:
        return _at_each_input(s, k, rows, None, n_bins, n_resamples, generator)
    of_halves = [
        _at_each_input(s, k, rows[:, half], rows[:, ~half], n_bins, n_resamples, generator)
        for half, _ in parts_of_draws(rows.shape[1])
        for _ in range(_N_POOLS)
    ]
    statistic, p_value = np.median([(test.statistic, test.p_value) for test in of_halves], axis=0)
    return HypothesisTest(float(statistic), min(2 * float(p_value), 1.0))


def can_reject(n_hypotheses: int, *, exchangeable: bool, draws: Draws) -> bool:
    """Return whether there are enough hypotheses for p-values of 0.05."""
    return n_hypotheses >= (MIN_MEMBERS if exchangeable and draws == "functions" else 2)


# --- Functions


def _one_more_function(
    s: np.ndarray,
    k: np.ndarray,
    rows: np.ndarray,
    n_bins: int,
    n_resamples: int,
    generator: np.random.Generator,
) -> HypothesisTest:
    h = rows.shape[1]
    n_compared = min(h, _MAX_COMPARED)
    compared = (np.arange(n_compared) * h) // n_compared
    n_draws = -(-n_resamples // n_compared)
    seen, n_larger = 0.0, np.ones(1)
    for j in compared.tolist():
        others = np.delete(rows, j, axis=1)
        statistic = _SizeOfFunctions(others, k, n_bins, 1 + 1 / (h - 1))
        of_truth = statistic(s[None])[0]
        of_member = statistic(generator.binomial(k, rows[:, j], (n_draws, len(k))))
        larger = float(np.mean(of_member >= of_truth * (1 - 1e-9)))
        n_larger = np.convolve(n_larger, [1 - larger, larger])
        seen += of_truth / n_compared
    # The law of the number of members that exceed p*, where each has one set of labels.
    median = int(np.count_nonzero(np.cumsum(n_larger) < 0.5 - 1e-9))
    return HypothesisTest(float(seen), (1 + median) / (n_compared + 1))


def _one_of_the_functions(
    s: np.ndarray,
    k: np.ndarray,
    rows: np.ndarray,
    n_bins: int,
    n_resamples: int,
    generator: np.random.Generator,
) -> HypothesisTest:
    h = rows.shape[1]
    statistic = _SizeOfFunctions(rows, k, n_bins, 1 - 1 / h)
    seen = statistic(s[None])[0]
    n_larger = 0
    chosen = np.sort(generator.permuted(np.arange(n_resamples) % h))
    for j, n_draws in zip(*np.unique(chosen, return_counts=True), strict=True):
        drawn = statistic(generator.binomial(k, rows[:, j], (n_draws, len(k))))
        n_larger += int(np.count_nonzero(drawn >= seen * (1 - 1e-9)))
    return HypothesisTest(float(seen), (1 + n_larger) / (n_resamples + 1))


class _SizeOfFunctions:
    """How far the error of a function of which there are labels is from what members say.

    In a bin of EU, r is the error seen over that said. Its standard deviation is about
    √(s² + τ²r²), s that of the labels, which make r negative at times, and τ that of log r over
    functions: asinh(r/2s) is linear in r where labels are what matters, else logarithmic.
    """

    def __init__(self, members: np.ndarray, k: np.ndarray, n_bins: int, factor: float) -> None:
        h = members.shape[1]
        self.mean = members.mean(axis=1)
        squares = np.square(members - self.mean[:, None])
        variance = squares.sum(axis=1) / (h - 1)
        labels = np.unique(quantile_bins(variance, n_bins), return_inverse=True)[1]
        self.order = np.argsort(labels, kind="stable")
        self.starts = np.flatnonzero(np.diff(labels[self.order], prepend=-1))
        self.k = k
        noise = self.mean * (1 - self.mean)
        of_labels = 4 * variance * noise / k + 2 * noise**2 / (k * (k - 1.0))
        # Where members agree the error is compared with what labels alone would make of it.
        spread = np.sqrt(self._in_bins(of_labels) + 1e-12)
        self.said = np.maximum(self._in_bins(variance) * factor, 1e-6 * spread)
        of_members = np.log(self._in_bins(squares.T) + 1e-300)
        scale = spread / self.said
        self.slope = _HALF / scale
        self.weight = (1 + self.slope**2) / (_HALF**2 + (self.slope * of_members.std(axis=0)) ** 2)

    def _in_bins(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values[..., self.order], self.starts, axis=-1)

    def __call__(self, counts: np.ndarray) -> np.ndarray:
        """Return the statistic of each row of counts, shape (n_draws,)."""
        ratio = self._in_bins(squared_error(*moments(counts, self.k), self.mean)) / self.said
        z = np.arcsinh(self.slope * ratio) - np.arcsinh(self.slope)
        return np.einsum("rb,b->r", z**2, self.weight)


# --- Draws anew at each input


def _at_each_input(
    s: np.ndarray,
    k: np.ndarray,
    rows: np.ndarray,
    others: np.ndarray | None,
    n_bins: int,
    n_resamples: int,
    generator: np.random.Generator,
) -> HypothesisTest:
    """Return the test that p* is one of ``rows``, or, where there are others, one more of them."""
    prediction, variance = row_moments(rows)
    if others is not None:
        counts = np.concatenate([s[:, None], generator.binomial(k[:, None], others)], axis=1)
        pool = squared_error(*moments(counts, k[:, None]), prediction[:, None])
        pool -= pool.mean(axis=1, keepdims=True)
        seen, spread = pool[:, 0], np.mean(pool**2, axis=1)
    else:
        seen = squared_error(*moments(s, k), prediction) - variance
        spread = _variance_of_squared_error(rows, k)
    labels = np.unique(quantile_bins(variance, n_bins), return_inverse=True)[1]
    scale = np.bincount(labels, weights=spread)
    with np.errstate(divide="ignore"):
        scale = np.where(scale > 1e-18 * len(s), 1 / scale, 0)
    of_seen = float(np.bincount(labels, weights=seen) ** 2 @ scale)

    def draw(n: int) -> np.ndarray:
        if others is not None:
            return pool[n, generator.integers(0, pool.shape[1], n_resamples, dtype=np.uint32)]
        chosen = generator.integers(0, rows.shape[1], n_resamples, dtype=np.uint32)
        counts = generator.binomial(k[n], rows[n, chosen])
        return squared_error(*moments(counts, k[n]), prediction[n]) - variance[n]

    # Input by input: what is drawn from is then in the processor's cache.
    sums = np.zeros((len(scale), n_resamples))
    for n, label in enumerate(labels):
        sums[label] += draw(n)
    # Equal draws must count as equal although sums are rounded.
    n_larger = int(np.count_nonzero(scale @ sums**2 >= of_seen - 1e-9 * abs(of_seen)))
    return HypothesisTest(of_seen, (1 + n_larger) / (n_resamples + 1))


def _variance_of_squared_error(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the variance of q where p* is one of the hypotheses at random."""
    prediction, _ = row_moments(rows)
    k = labels[:, None]
    squares, noise = (rows - prediction[:, None]) ** 2, rows * (1 - rows)
    of_labels = 4 * squares * noise / k + 2 * noise**2 / (k * (k - 1.0))
    return of_labels.mean(axis=1) + squares.var(axis=1)
