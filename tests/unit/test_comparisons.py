"""Which methods differ in the corrected TECE."""

import itertools

import numpy as np
import pandas as pd
from page_data import TABLE_METHODS as METHODS

from epistemic_calibration import metrics
from epistemic_calibration.report.comparisons import COLUMNS, compare_methods, comparisons_table
from epistemic_calibration.report.results import DatasetResults


def test_comparisons_name_what_cannot_be_told_apart():
    values = {"mine": 0.1, "centroids": 0.3, "random_forest": 0.2, "base_rate": 0.0}
    scores = pd.DataFrame({"method": values.keys(), "value": values.values()}).assign(
        dataset="cifar10", seed=0, scope="task", task="cat", metric="tece_corrected"
    )
    pairs = list(itertools.combinations(METHODS, 2))
    alike = {"mine", "random_forest"}
    differences = pd.DataFrame(pairs, columns=["method", "other"]).assign(
        difference=0.1,
        p_holm=[0.06 if set(pair) == alike else 0.05 for pair in pairs],
        p_holm_fixed=0.05,
        seeds_needed=[7 if set(pair) == alike else None for pair in pairs],
    )
    results = DatasetResults(scores, "cifar10", METHODS, differences=differences)
    table = comparisons_table(results)
    order = ["base_rate", "mine", "random_forest", "centroids"]
    assert list(table.text.index) == [METHODS[name]["label"] for name in order]
    assert list(table.text["Cannot be told from"]) == [
        "—",
        METHODS["random_forest"]["label"] + "* (7)",
        METHODS["mine"]["label"] + "* (7)",
        "—",
    ]
    assert "by Holm over 6 pairs" in table.notes[0]
    assert table.notes[1].startswith("5 of 6 pairs differ as methods; 1 more, marked *, only as")


RNG = np.random.default_rng(0)
TRUTH = RNG.uniform(size=300)
LABELS = [RNG.uniform(size=300) < TRUTH for _ in range(2)]
PREDICTIONS = {
    "second": np.array([[TRUTH, TRUTH], [TRUTH**1.2, TRUTH**1.1]]),
    "first": np.array([[TRUTH**2, TRUTH**2]]),
    "third": np.array([[TRUTH, TRUTH**1.1]] * 3),
}
BINS = {name: (8 * p).astype(int) for name, p in PREDICTIONS.items()}


def test_pairs_are_those_of_the_metric_in_the_order_of_the_methods():
    settings = {"confidence_level": 0.9, "random_state": 3}
    table = compare_methods(LABELS, PREDICTIONS, BINS, **settings)
    expected = metrics.compare_mean_corrected_errors(LABELS, PREDICTIONS, BINS, **settings)
    assert tuple(table.columns) == COLUMNS
    assert table["n_seeds"].to_list() == [2, 2, 1]
    assert table["n_seeds_other"].to_list() == [1, 3, 3]
    pairs = list(table[["method", "other"]].itertuples(index=False, name=None))
    assert pairs == [("second", "first"), ("second", "third"), ("first", "third")]
    assert pairs == list(expected)
    table = table.rename(columns={"difference": "estimate"})
    for name in ("estimate", "ci_low", "ci_high", "p_value"):
        assert table[name].to_list() == [getattr(d, name) for d in expected.values()]
    np.testing.assert_array_equal(table["p_holm"], metrics.holm_correction(table["p_value"]))
    fixed = [d.p_value_fixed for d in expected.values()]
    np.testing.assert_allclose(table["p_holm_fixed"], metrics.holm_correction(fixed))


def test_one_method_has_nothing_to_be_compared_with():
    alone = {"second": PREDICTIONS["second"]}, {"second": BINS["second"]}
    table = compare_methods(LABELS, *alone, confidence_level=0.95, random_state=0)
    assert table.empty
    assert "p_holm" in table
