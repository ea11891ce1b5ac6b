"""What the validation modules share: a study, and its rows of the table."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, norm

LEVEL = 0.05
#: Chance that a range that is right is said not to hold, for each measure on either side.
_ERROR = 5e-4

Draw = Callable[[np.random.Generator], Mapping[str, float]]


@dataclass(frozen=True)
class Study:
    """A claim of the documentation, and the simulations that show it.

    Attributes
    ----------
    name : str
    claim : str
        One sentence.
    scenarios : mapping from str to function
        Each returns the measures of one draw of data, made with the generator it is given:
        numbers, whose mean is reported, and booleans, whose share is. ``truth`` is what is
        estimated, known exactly.
    claimed : mapping from str to (float, float)
        Within which the mean or share of a measure is, by its name, or of one scenario alone by
        ``scenario: measure``; measures without are only reported.
    draws : int
        Of each scenario; a quick run has the first tenth of them.
    """

    name: str
    claim: str
    scenarios: Mapping[str, Draw]
    claimed: Mapping[str, tuple[float, float]]
    draws: int

    def rows(self, *, quick: bool) -> Iterator[dict[str, object]]:
        """Yield a row for each measure of each scenario."""
        n = max(self.draws // 10, 4) if quick else self.draws
        for scenario, draw in self.scenarios.items():
            measures: dict[str, list[float]] = {}
            for k in range(n):
                for name, value in draw(generator(self.name, scenario, k)).items():
                    measures.setdefault(name, []).append(value)
            truth = float(np.mean(measures.pop("truth", [np.nan])))
            for name, values in measures.items():
                of_all = self.claimed.get(name, (-np.inf, np.inf))
                low, high = self.claimed.get(f"{scenario}: {name}", of_all)
                values = np.asarray(values)
                # What a draw has no value of (a share of nothing) is left out.
                values = values[~np.isnan(values)] if values.dtype != bool else values
                yield {
                    "study": self.name,
                    "claim": self.claim,
                    "scenario": scenario,
                    "truth": truth,
                    "measure": name,
                    "value": float(np.mean(values)),
                    "claimed_low": low,
                    "claimed_high": high,
                    "holds": _holds(values, low, high),
                    "draws": len(values),
                    "percent": values.dtype == bool,
                }


def _holds(values: np.ndarray, low: float, high: float) -> bool:
    """Return whether the draws are compatible with a mean in the range."""
    n = len(values)
    if values.dtype == bool:
        k, low, high = values.sum(), max(low, 0.0), min(high, 1.0)
        return bool(binom.cdf(k, n, low) >= _ERROR and binom.sf(k - 1, n, high) >= _ERROR)
    noise = norm.isf(_ERROR) * values.std(ddof=1) / np.sqrt(n)
    return bool(low - noise <= values.mean() <= high + noise)


def generator(*key: object) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


def seen(error: np.ndarray, bins: np.ndarray, groups: np.ndarray | None = None) -> float:
    """Return the mean over labels of the corrected estimate, of labels with these mean errors.

    ``error`` has shape (n_samples,) or (n_samples, n_classes); pairs are of different groups.
    """
    groups = np.arange(len(error)) if groups is None else groups
    cell = np.unique(bins * (groups.max() + 1) + groups, return_inverse=True)[1]
    of_bin = np.zeros(cell.max() + 1, dtype=int)
    of_bin[cell] = bins
    n = np.bincount(bins)
    pairs = n**2 - np.bincount(of_bin, weights=np.bincount(cell) ** 2)
    products = np.zeros(len(n))
    for e in np.reshape(error, (len(error), -1)).T:
        sums = np.bincount(cell, weights=e)
        products += np.bincount(bins, weights=e) ** 2 - np.bincount(of_bin, weights=sums**2)
    used = pairs > 0
    return float(np.average(products[used] / pairs[used], weights=n[used]))


def inside(estimate: object, truth: float) -> bool:
    """Return whether the interval of an estimate holds a value."""
    return bool(estimate.ci_low <= truth <= estimate.ci_high)
