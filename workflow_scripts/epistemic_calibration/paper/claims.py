"""The paper's statements, checked: each with a rule, our numbers and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("claim", "source", "paper", "ours", "verdict", "rule")

#: Methods whose uncertainty is the variance of their hypotheses (paper, section 4).
ACTIVE_METHODS = (
    "bayesian_logistic_regression",
    "laplace",
    "deep_ensemble",
    "random_forest",
    "dropconnect",
    "mc_dropout",
)
#: Methods that the paper includes for illustration (section 4).
ILLUSTRATIVE_METHODS = ("centroids", "likelihood", "eknn")
_ALL = ACTIVE_METHODS + ILLUSTRATIVE_METHODS

#: An error below this prints as 0.00 in the paper's tables.
ZERO = 0.005

_BLR, _FOREST = "bayesian_logistic_regression", "random_forest"
_SHORT = {
    _BLR: "BLR",
    "laplace": "Laplace",
    "deep_ensemble": "ensemble",
    _FOREST: "forest",
    "dropconnect": "DropConnect",
    "mc_dropout": "MC-Dropout",
    "eknn": "EK-NN",
}
_CLEARLY = "the mean paired difference to the runner-up exceeds twice its standard error"


def claims(
    scores: pd.DataFrame | None = None, toy: Mapping[str, pd.DataFrame] | None = None
) -> pd.DataFrame:
    """Check the paper's statements on results of the benchmark.

    Parameters
    ----------
    scores : DataFrame, optional
        Tidy scores of single tasks of the image data sets (scope ``task``), columns dataset,
        seed, method, task, metric, value. The paper's data sets are ``mnist`` and ``cifar10``,
        its methods those of `ACTIVE_METHODS` and `ILLUSTRATIVE_METHODS`; others are ignored.
    toy : mapping of str to DataFrame, optional
        Tables of the experiments of `epistemic_calibration.paper.toy` by name, joined over
        seeds and methods.

    Raises
    ------
    ValueError
        If a cell of a table has two values, e.g. EECE with two numbers of bins.

    Returns
    -------
    DataFrame with columns claim, source, paper, ours, verdict, rule
        One row per statement. ``verdict`` is what ``rule`` makes of the results: "holds",
        "holds in part", "does not hold", or, where results are missing, "not measured"; then
        ``ours`` lists what is missing.
    """
    import pandas as pd

    results = _Results(scores, toy or {})
    rows = []
    for text, source, paper, rule, check in CLAIMS:
        try:
            holds, in_part, ours = check(results)
            verdict = "holds" if holds else "holds in part" if in_part else "does not hold"
        except _NotMeasured as missing:
            verdict, ours = "not measured", str(missing)
        rows.append((text, source, paper, ours, verdict, rule))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def to_markdown(table: pd.DataFrame) -> str:
    """Return the table of `claims` as Markdown."""
    escaped = table.map(lambda text: text.replace("|", r"\|"))
    return escaped.to_markdown(index=False) + "\n"


#: Statements in the order of the paper: text, where it stands, the paper's numbers, the rule in
#: words, and the rule itself: results -> (whether it holds, whether in part, our numbers).
CLAIMS: list[tuple[str, str, str, str, Callable[[_Results], tuple[bool, bool, str]]]] = []


def _claim(text: str, source: str, paper: str, rule: str) -> Callable[[Callable], Callable]:
    """Add a claim that the decorated function checks."""

    def added(check: Callable) -> Callable:
        CLAIMS.append((text, source, paper, rule, check))
        return check

    return added


class _NotMeasured(Exception):
    """Results that a claim needs are missing; the message says which."""


class _Results:
    def __init__(self, scores: pd.DataFrame | None, toy: Mapping[str, pd.DataFrame]) -> None:
        self._scores, self._toy = scores, toy

    def toy(self, experiment: str) -> pd.DataFrame:
        table = self._toy.get(experiment)
        if table is None or table.empty:
            raise _NotMeasured(f"no results of the toy experiment {experiment}")
        return table

    def toy_metric(
        self, experiment: str, metric: str, methods: Sequence[str], column: str = "method"
    ) -> pd.DataFrame:
        """Return values of a metric by seed (rows) and ``column``."""
        table = self.toy(experiment)
        chosen = table[(table["metric"] == metric) & table["method"].isin(methods)]
        return _pivot(chosen, methods, ["seed"], column, f"toy experiment {experiment}, {metric}")

    def images(
        self, dataset: str, metric: str = "eece", methods: Sequence[str] = ACTIVE_METHODS
    ) -> pd.DataFrame:
        """Return values of a metric by (seed, task) (rows) and method."""
        if self._scores is None:
            raise _NotMeasured(f"no scores of {dataset}")
        of_metric = self._scores.query("dataset == @dataset and metric == @metric")
        chosen = of_metric[of_metric["method"].isin(methods)]
        return _pivot(chosen, methods, ["seed", "task"], "method", f"{dataset}, {metric}")


def _pivot(
    chosen: pd.DataFrame, methods: Sequence[str], index: list[str], column: str, where: str
) -> pd.DataFrame:
    found = set(chosen["method"])
    missing = [method for method in methods if method not in found]
    if missing:
        raise _NotMeasured(f"{where}: no results of {_names(missing)}")
    key = [*index, column]
    if chosen.duplicated(key).any():
        raise ValueError(f"{where}: more than one value of the same {', '.join(key)}")
    wide = chosen.pivot(index=index, columns=column, values="value")
    if wide.isna().any(axis=None):
        gaps = wide.columns[wide.isna().any()]
        raise _NotMeasured(f"{where}: not finished, with gaps at {column} {_names(gaps)}")
    return wide


def _names(methods: Sequence[str]) -> str:
    return ", ".join(str(_SHORT.get(method, method)) for method in methods)


def _spread(by_seed: pd.Series) -> str:
    """Return mean ± standard deviation over seeds."""
    if len(by_seed) == 1:
        return f"{by_seed.iloc[0]:.4f} (1 seed)"
    return f"{by_seed.mean():.4f} ± {by_seed.std():.4f} ({len(by_seed)} seeds)"


def _ranking(values: pd.DataFrame) -> str:
    """Return methods and their means over all rows, least first."""
    means = values.mean().sort_values()
    return ", ".join(f"{_names([method])} {mean:.4f}" for method, mean in means.items())


def _worst(values: pd.DataFrame, method: str) -> tuple[bool, bool, int]:
    """Return whether a method has the largest mean, and clearly so; in how many rows it is it."""
    others = values.drop(columns=method).mean()
    largest = bool(values[method].mean() > others.max())
    difference = values[method] - values[others.idxmax()]
    # One difference has no standard error.
    clear = difference.mean() > 2 * difference.std() / np.sqrt(len(difference))
    n_worst = int((values.idxmax(axis=1) == method).sum())
    return largest, largest and len(difference) > 1 and bool(clear), n_worst


@_claim(
    "Regularising a random forest, by depth or leaf size, improves its calibration",
    "section 2.1, figure 1a",
    "two plots, no numbers",
    "Toy ECE averaged over seeds. Holds: each regularised forest is below the unregularised one. "
    "In part: some are.",
)
def _regularised_forest(results):
    table = results.toy("calibration_plots")
    ece = table.pivot_table(index="seed", columns="variant", values="ece", sort=False)
    reference, *regularised = table["variant"].unique()
    if not regularised:
        raise _NotMeasured(f"toy experiment calibration_plots has one variant, {reference!r}")
    better = [ece[variant].mean() < ece[reference].mean() for variant in regularised]
    ours = "; ".join(f"{variant}: ECE {_spread(ece[variant])}" for variant in ece)
    return all(better), any(better), ours


@_claim(
    "Bayesian logistic regression is almost perfectly epistemically calibrated on the toy data",
    "section 4.1, figures 3a and 6a",
    "no numbers",
    f"Holds: mean EECE and mean TECE over seeds are below {ZERO}, which prints as 0.00. In part: "
    f"one of them is.",
)
def _toy_regression(results):
    eece, tece = (
        results.toy_metric("eece_per_method", metric, (_BLR,))[_BLR] for metric in ("eece", "tece")
    )
    zero = [eece.mean() < ZERO, tece.mean() < ZERO]
    return all(zero), any(zero), f"EECE {_spread(eece)}; TECE {_spread(tece)}"


@_claim(
    "The random forest is the worst active method on the toy data",
    "sections 4.1 and 4.2, figure 3a",
    "no numbers",
    f"Holds: by EECE and by TECE it has the largest mean over seeds, and {_CLEARLY}. In part: it "
    f"has the largest mean by one of them, or not clearly.",
)
def _toy_forest(results):
    verdicts, texts = [], []
    for metric in ("eece", "tece"):
        values = results.toy_metric("eece_per_method", metric, ACTIVE_METHODS)
        *found, n_worst = _worst(values, _FOREST)
        verdicts.append(found)
        worst = f"forest worst in {n_worst} of {len(values)} seeds"
        texts.append(f"{metric.upper()}: {_ranking(values)}; {worst}")
    largest, clear = zip(*verdicts, strict=True)
    return all(clear), any(largest), "; ".join(texts)


def _illustrative_last(values):
    last = values.mean().sort_values().index[-len(ILLUSTRATIVE_METHODS) :]
    n_last = len(set(last) & set(ILLUSTRATIVE_METHODS))
    return n_last == len(ILLUSTRATIVE_METHODS), n_last >= 2, f"EECE: {_ranking(values)}"


@_claim(
    "The illustrative methods come last on the toy data",
    "sections 4.1 and 4.2, figure 3a",
    "no numbers",
    "Holds: the three largest of the nine means of EECE over seeds are theirs. In part: two of the "
    "three largest are.",
)
def _toy_illustrative(results):
    return _illustrative_last(results.toy_metric("eece_per_method", "eece", _ALL))


@_claim(
    "The forest's EECE grows about tenfold from 0 to 95 % input noise",
    "section 4.2, figure 3b left",
    "×10",
    "Ratio of the means over seeds at the highest (at least 90 %) and at zero noise. Holds: "
    "between 5 and 20. In part: above 2.",
)
def _noise(results):
    values = results.toy_metric("eece_vs_noise", "eece", (_FOREST,), "noise_level")
    low, high = values.columns.min(), values.columns.max()
    if low > 0 or high < 0.9:
        raise _NotMeasured(
            f"toy experiment eece_vs_noise has noise from {low:g} to {high:g}; it needs 0 and at "
            f"least 0.9"
        )
    ratio = values[high].mean() / values[low].mean()
    ratios = values[high] / values[low]
    ours = (
        f"×{ratio:.1f}, from {_spread(values[low])} to {_spread(values[high])}; "
        f"single seeds ×{ratios.min():.1f} to ×{ratios.max():.1f}"
    )
    return 5 <= ratio <= 20, ratio > 2, ours


def _by_training_size(results):
    """Return EECE of the forest at 10 points, and at each size above 50."""
    values = results.toy_metric("eece_vs_training_size", "eece", (_FOREST,), "n_train")
    if 10 not in values or values.columns.max() <= 50:
        sizes = ", ".join(f"{size:g}" for size in values)
        raise _NotMeasured(
            f"toy experiment eece_vs_training_size has sizes {sizes}; it needs 10, and sizes "
            f"above 50"
        )
    return values[10], values.loc[:, values.columns > 50]


@_claim(
    "The forest's EECE falls from about 0.07 at 10 training points to about 0.007 above 50",
    "section 4.2, figure 3b right",
    "0.07 at 10; 0.007 above 50",
    "Means over seeds, above 50 also over sizes. Holds: both are within a factor of 2 of the "
    "paper's. In part: one is, and EECE falls.",
)
def _training_size(results):
    small, large = _by_training_size(results)
    large = large.mean(axis=1)
    near = [0.035 <= small.mean() <= 0.14, 0.0035 <= large.mean() <= 0.014]
    ours = f"{_spread(small)} at 10 points; {_spread(large)} above 50"
    return all(near), any(near) and small.mean() > large.mean(), ours


@_claim(
    "Above 50 training points the forest's EECE is on a plateau",
    "section 4.2, figure 3b right",
    "0.007 at all sizes above 50",
    "Largest over smallest of the means over seeds at sizes above 50. Holds: at most 2. "
    "In part: at most 4.",
)
def _plateau(results):
    _, values = _by_training_size(results)
    ratio = values.mean().max() / values.mean().min()
    shown = ", ".join(f"{size:g}: {_spread(values[size])}" for size in values)
    return ratio <= 2, ratio <= 4, f"×{ratio:.1f} between sizes above 50: {shown}"


@_claim(
    "The binning error of the deep ensemble is least near 200 bins",
    "appendix B.2, figure 5",
    "about 200 bins at 10,000 test points",
    "Holds: |EECE − TECE| averaged over seeds is least between 100 and 400 bins, and so it is "
    "in at least half of the single seeds. In part: one of the two.",
)
def _best_number_of_bins(results):
    values = results.toy_metric(
        "binning_study", "absolute_difference", ("deep_ensemble",), "n_bins"
    )
    low, high = 100, 400
    if values.columns.min() >= low or values.columns.max() <= high or 200 not in values:
        numbers = ", ".join(f"{n:g}" for n in values)
        raise _NotMeasured(
            f"toy experiment binning_study has {numbers} bins; it needs 200, and numbers "
            f"below {low} and above {high}"
        )
    best, best_by_seed = values.mean().idxmin(), values.idxmin(axis=1)
    counts = best_by_seed.value_counts().sort_index()
    of_seeds = ", ".join(f"{n:g} ({count}×)" for n, count in counts.items())
    ours = (
        f"{best:g} bins on average, |EECE − TECE| {_spread(values[best])}; at 200 bins "
        f"{_spread(values[200])}; best of single seeds: {of_seeds}"
    )
    inside, half = low <= best <= high, best_by_seed.between(low, high).mean() >= 0.5
    return inside and half, inside or half, ours


@_claim(
    "The random forest is the worst active method on CIFAR-10",
    "section 4.3, figure 4a",
    "EECE 0.039 (mean of ten tasks); next BLR 0.024, of which one task is 0.24",
    f"Holds: it has the largest mean EECE, {_CLEARLY}, and it is the worst in at least half of "
    f"the tasks. In part: it has the largest mean or is the worst in half of the tasks.",
)
def _cifar_forest(results, metric="eece"):
    values = results.images("cifar10", metric)
    largest, clear, n_worst = _worst(values, _FOREST)
    most = n_worst >= len(values) / 2
    ours = (
        f"forest {_spread(values.groupby('seed').mean()[_FOREST])}, worst in {n_worst} of "
        f"{len(values)} tasks; {_ranking(values)}"
    )
    return clear and most, largest or most, ours


@_claim(
    "The same by the bias-corrected TECE, which the binning does not inflate",
    "our check of section 4.3",
    "not in the paper",
    "As for EECE.",
)
def _cifar_forest_corrected(results):
    return _cifar_forest(results, "tece_corrected")


@_claim(
    "Bayesian logistic regression is the second worst active method on CIFAR-10",
    "section 4.3, figure 4a",
    "EECE 0.024; 0.000 without the one task at 0.24",
    "Rank of its mean EECE over tasks and seeds. Holds: second. In part: first or third.",
)
def _cifar_regression_second(results):
    values = results.images("cifar10")
    rank = int(values.mean().rank(ascending=False)[_BLR])
    return rank == 2, rank in (1, 3), f"rank {rank} from the worst; {_ranking(values)}"


@_claim(
    "Bayesian logistic regression has the highest variance of the active methods on CIFAR-10",
    "section 4.3, figure 4a",
    "standard deviation over tasks 0.076; the others at most 0.004",
    "Standard deviation of EECE over tasks. Holds: the largest in every seed. In part: "
    "the largest on average or in some seeds.",
)
def _cifar_regression_variance(results):
    sd_by_seed = results.images("cifar10").groupby("seed").std()
    if sd_by_seed.isna().any(axis=None):
        raise _NotMeasured("cifar10: a standard deviation needs at least two tasks")
    n_first, n_seeds = int((sd_by_seed.idxmax(axis=1) == _BLR).sum()), len(sd_by_seed)
    first = sd_by_seed.mean().idxmax() == _BLR
    ours = (
        f"standard deviation over tasks: {_ranking(sd_by_seed)}; BLR first in {n_first} of "
        f"{n_seeds} seeds"
    )
    return first and n_first == n_seeds, first or n_first > 0, ours


@_claim(
    "DropConnect and MC-Dropout are the best calibrated active methods on CIFAR-10",
    "section 4.3, figure 4b",
    "EECE 0.000 and 0.008; ensemble 0.009, Laplace 0.010",
    "Mean EECE over tasks and seeds. Holds: they are the two best. In part: one of them "
    "is the best.",
)
def _cifar_dropouts(results):
    values = results.images("cifar10")
    ranks = values.mean().rank()[["dropconnect", "mc_dropout"]]
    return ranks.max() <= 2, ranks.min() == 1, f"EECE: {_ranking(values)}"


@_claim(
    "The illustrative methods come last on CIFAR-10",
    "section 4.3, figure 4a",
    "EECE 0.067, 0.086, 0.144; the worst active 0.039",
    "Holds: the three largest of the nine means of EECE are theirs. In part: two of the three "
    "largest are.",
)
def _cifar_illustrative(results):
    return _illustrative_last(results.images("cifar10", methods=_ALL))


@_claim(
    "Active methods differ much in epistemic calibration despite similar accuracy",
    "abstract, sections 3.2 and 4.3",
    "CIFAR-10: EECE 0.000 to 0.039",
    "CIFAR-10, means over tasks and seeds. Holds: accuracies within 0.03, and the largest EECE "
    "at least 4 times the least. In part: one of the two.",
)
def _cifar_similar_accuracy(results):
    accuracy, eece = (results.images("cifar10", name).mean() for name in ("accuracy", "eece"))
    ratio = eece.max() / eece.min()
    ours = (
        f"accuracy {accuracy.min():.3f} to {accuracy.max():.3f}; "
        f"EECE {eece.min():.4f} to {eece.max():.4f}, ×{ratio:.1f}"
    )
    similar, different = accuracy.max() - accuracy.min() <= 0.03, ratio >= 4
    return similar and different, similar or different, ours


@_claim(
    "On MNIST some models have almost no epistemic calibration error",
    "section 4.3, appendix B",
    "five of six active methods print 0.00; forest 0.015",
    f"Mean EECE over tasks and seeds. Holds: at least five of the six active methods are below "
    f"{ZERO}. In part: at least three are.",
)
def _mnist(results):
    values = results.images("mnist")
    n_zero = int((values.mean() < ZERO).sum())
    ours = f"{n_zero} of {len(ACTIVE_METHODS)} active methods below {ZERO}; {_ranking(values)}"
    return n_zero >= 5, n_zero >= 3, ours
