from pathlib import Path
from typing import Annotated, get_args

import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.text import Text
from scipy.stats import binom, norm

from epistemic_calibration import metrics
from epistemic_calibration.methods import Predictions, available_methods, load_method
from epistemic_calibration.metrics.binning import Binning, group_equal_rows
from epistemic_calibration.paper.toy import (
    _mixture,
    available_experiments,
    binning_study,
    calibration_plots,
    eece_per_method,
    eece_vs_noise,
    eece_vs_training_size,
    load_experiment,
    size_of_uncertainty,
    smooth_calibration,
    uncertainty_maps,
)
from epistemic_calibration.paper.toy._data import ExperimentData, Oracle
from epistemic_calibration.paper.toy._mixture import (
    mixture_density,
    sample_mixture,
    sample_training_set,
    true_probability,
)
from epistemic_calibration.paper.toy.eece_vs_noise import corrupt_inputs
from epistemic_calibration.paper.toy.uncertainty_maps import MAP_LIMIT, uncertainty_and_error
from epistemic_calibration.paper.toy_drawing import draw
from epistemic_calibration.parameters import BOUNDS
from epistemic_calibration.registry import module_path
from epistemic_calibration.seeds import derive_seed
from epistemic_calibration.workflow.sources import source_files

SMALL = {"n_test": 400, "n_bins": 10}
FOREST = {"n_estimators": 10, "min_samples_leaf": 2}


def test_true_probability_is_bayes_rule():
    X = np.random.default_rng(0).uniform(-6, 6, (200, 2))
    negative, positive = (
        np.exp(-((X - mean) ** 2).sum(axis=1) / (2 * 3.0)) for mean in ((2.5, 2.5), (-2.5, -2.5))
    )
    np.testing.assert_allclose(true_probability(X), positive / (positive + negative), rtol=1e-12)


def test_true_probability_matches_frequencies():
    """Observed positives lie within 4.5 standard deviations of the sum of p, per cell."""
    X, y = sample_mixture(400_000, random_state=1)
    p = true_probability(X)
    # Cells of x, not of p: a p that is wrong must not choose its own cells.
    cells = np.floor(X[:, 0]).astype(int) * 100 + np.floor(X[:, 1]).astype(int)
    _, cells = np.unique(cells, return_inverse=True)
    excess = np.bincount(cells, weights=y - p)
    variance = np.bincount(cells, weights=p * (1 - p))
    informative = variance > 10
    assert informative.sum() > 30
    assert np.all(np.abs(excess[informative]) < 4.5 * np.sqrt(variance[informative]))


def test_mixture_has_the_stated_moments():
    n = 200_000
    X, y = sample_mixture(n, random_state=2)
    assert X.dtype == np.float32
    assert X.shape == (n, 2)
    assert abs(y.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(n)
    for label, mean in ((0, 2.5), (1, -2.5)):
        part = X[y == label].astype(np.float64)
        tolerance = 4.5 * np.sqrt(3 / len(part))
        np.testing.assert_allclose(part.mean(axis=0), mean, atol=tolerance)
        # Var of a sample variance: 2σ⁴/n; of a sample covariance of independents: σ⁴/n.
        np.testing.assert_allclose(
            np.cov(part.T), 3 * np.eye(2), atol=4.5 * 3 * np.sqrt(2 / len(part))
        )


def test_density_integrates_to_one_and_weighs_the_classes():
    axis, step = np.linspace(-14, 14, 401, retstep=True)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    density = mixture_density(grid) * step**2
    assert density.sum() == pytest.approx(1, abs=1e-8)
    assert density @ true_probability(grid) == pytest.approx(0.5, abs=1e-8)


def test_samples_follow_the_seed():
    first, again, other = (sample_mixture(50, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


def test_training_sets_have_both_classes():
    # A draw of two points lacks a class with probability 1/2, so some of 20 are redrawn.
    labels = [sample_training_set(2, seed)[1] for seed in range(20)]
    assert all(sorted(y) == [0, 1] for y in labels)


def test_a_training_set_is_redrawn_until_both_classes_are_there(monkeypatch):
    draws = []

    def sample(n_samples, random_state):
        draws.append(random_state)
        y = np.zeros(n_samples, dtype=np.uint8)
        y[0] = len(draws) > 2
        return np.full((n_samples, 2), len(draws), dtype=np.float32), y

    monkeypatch.setattr(_mixture, "sample_mixture", sample)
    X, y = sample_training_set(10, 0)
    assert len(set(draws)) == 3
    assert y.sum() == 1
    assert X[0, 0] == 3


@pytest.mark.fault
@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: sample_mixture(0, 0), "n_samples"),
        (lambda: sample_training_set(1, 0), "n_samples"),
        (lambda: corrupt_inputs(np.zeros((2, 2)), 1.5, 0), r"noise_level.*\[0, 1\].*1.5"),
        (lambda: corrupt_inputs(np.zeros((2, 2)), -0.1, 0), "noise_level"),
        (lambda: uncertainty_maps.run("no_such_method", seed=0, n_grid=2), "no_such_method"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()


@pytest.mark.parametrize("noise_level", [0, 0.1, 0.5, 0.95, 1])
def test_noise_replaces_the_stated_fraction_within_the_range(noise_level):
    X, _ = sample_mixture(50, random_state=5)
    original = X.copy()
    noisy = corrupt_inputs(X, noise_level, random_state=6)
    np.testing.assert_array_equal(X, original)
    assert noisy.dtype == X.dtype
    assert np.count_nonzero(noisy != X) == round(noise_level * X.size)
    assert np.all((noisy >= X.min(axis=0)) & (noisy <= X.max(axis=0)))


def test_noise_is_uniform_over_the_range_of_each_feature():
    X = np.stack([np.linspace(0, 1, 4000), np.linspace(-50, 50, 4000) ** 3], axis=1)
    noisy = corrupt_inputs(X, 1.0, random_state=7)
    unit = (noisy - X.min(axis=0)) / np.ptp(X, axis=0)
    # Kolmogorov's statistic of 4000 draws exceeds 1.95/√n with probability 0.001.
    for column in np.sort(unit, axis=0).T:
        assert np.abs(column - np.arange(0.5, 4000) / 4000).max() < 1.95 / np.sqrt(4000)


def test_more_noise_keeps_what_less_noise_replaced():
    X, _ = sample_mixture(50, random_state=5)
    little, much = (corrupt_inputs(X, level, random_state=6) for level in (0.2, 0.6))
    replaced = little != X
    np.testing.assert_array_equal(little[replaced], much[replaced])


def _known_predictor(p, delta, n_hypotheses=4):
    """Hypotheses around p + delta with a spread that says nothing of the truth."""
    offsets = np.tile([-1, 1], n_hypotheses // 2)
    return p[:, None] + delta + 2.0**-4 * offsets


@pytest.mark.parametrize("level_sets", [True, False])
def test_tece_of_known_predictors_is_exact(level_sets):
    # Dyadic numbers make every sum exact.
    p = np.array([0.25, 0.5, 0.625, 0.5, 0.25])
    for delta in (0.0, 2.0**-3):
        hypotheses = _known_predictor(p, delta)
        tece = metrics.true_epistemic_calibration_error(p, hypotheses, level_sets=level_sets)
        assert tece == delta**2


def test_tece_of_a_constant_on_cells_is_judged_by_the_mean_over_the_cell():
    p = np.array([0.25, 0.75, 0.5])
    hypotheses = np.full((3, 2), 0.5)
    assert metrics.true_epistemic_calibration_error(p, hypotheses) == 0
    assert metrics.true_epistemic_calibration_error(p, hypotheses, level_sets=False) == (
        2 * 0.25**2 / 3
    )


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_eece_goes_to_tece(delta):
    """Theorem 3 on a predictor whose error is known, at growing N and M.

    The error of the mean is ±delta by the side of p = 1/2, where h jumps, so that h tells
    them apart; the centred hypotheses do not depend on x, so W = 0 in any bin and EECE is the
    mean of g². In a bin of n samples g is d + ε, with d the mean of the errors, which is delta
    but in the one bin that may lie across the jump, and v/n the variance of ε. So EECE has mean
    Σ n/N (d² + v/n), which is TECE plus v·M/N less what that bin hides, and variance
    Σ (4 n d² v + 2 v²) / N².
    """
    for n_samples, n_bins in ((300, 10), (3_000, 25), (30_000, 50)):
        X, _ = sample_mixture(n_samples, random_state=8)
        p = 0.2 + 0.6 * true_probability(X)
        y = np.random.default_rng(9).random(n_samples) < p
        error = delta * np.where(p > 0.5, 1, -1)
        hypotheses = _known_predictor(p, error[:, None])
        tece = metrics.true_epistemic_calibration_error(p, hypotheses)
        assert tece == pytest.approx(delta**2, abs=1e-12)
        bins = metrics.assign_bins(hypotheses, n_bins=n_bins)
        eece = metrics.expected_epistemic_calibration_error(y, hypotheses, bins=bins)
        n = np.bincount(bins)
        d, v = (np.bincount(bins, weights=x) / n for x in (error, p * (1 - p)))
        mean = (n @ d**2 + v.sum()) / n_samples
        deviation = np.sqrt(4 * n @ (d**2 * v) + 2 * v @ v) / n_samples
        assert abs(eece - mean) < 4.5 * deviation


def test_the_oracle_is_calibrated_with_and_without_spread():
    X, _ = sample_mixture(300, random_state=10)
    p = true_probability(X)
    sure, spread = (
        Oracle(spread=spread, n_hypotheses=9).fit(X, None).sample_hypotheses(X) for spread in (0, 1)
    )
    np.testing.assert_array_equal(sure, np.repeat(p[:, None], 9, axis=1))
    np.testing.assert_allclose(spread.mean(axis=1), p, rtol=1e-12)
    assert spread.min() >= 0
    assert spread.max() <= 1
    # u evenly spaced on [-1, 1] at 9 points has variance 5/12.
    np.testing.assert_allclose(spread.var(axis=1), np.minimum(p, 1 - p) ** 2 * 5 / 12, rtol=1e-6)
    for hypotheses in (sure, spread):
        assert metrics.true_epistemic_calibration_error(p, hypotheses) < 1e-30


def test_the_map_weighs_level_sets_by_the_density():
    predictions = Predictions(np.array([[0.0, 1.0], [0.0, 1.0], [0.25, 0.25]]))
    p_true, weights = np.array([0.0, 0.8, 0.5]), np.array([3.0, 1.0, 1.0])
    uncertainty, error = uncertainty_and_error(p_true, predictions, weights=weights)
    np.testing.assert_allclose(uncertainty, [0.25, 0.25, 0])
    # P(Y = 1 | first level set) = 0.8/4 = 0.2: (0.2² + 0.8²)/2.
    np.testing.assert_allclose(error, [0.34, 0.34, 0.0625])


def test_the_map_shows_the_reported_uncertainty():
    reported = np.array([0.125, 0.5])
    predictions = Predictions(np.array([[0.0, 1.0], [0.5, 0.5]]), epistemic_uncertainty=reported)
    uncertainty, error = uncertainty_and_error(
        np.array([0.5, 0.0]), predictions, weights=np.ones(2)
    )
    np.testing.assert_array_equal(uncertainty, reported)
    np.testing.assert_allclose(error, [0.25, 0.25])


def test_uncertainty_maps_of_a_forest():
    table = uncertainty_maps.run("random_forest", seed=0, parameters=FOREST, n_grid=12)
    grid, training = table[table["kind"] == "grid"], table[table["kind"] == "training"]
    assert len(grid) == 144
    assert len(training) == 10
    assert set(training["y"]) == {0, 1}
    assert grid["y"].isna().all()
    assert grid[["x1", "x2"]].abs().to_numpy().max() == MAP_LIMIT
    # Proposition 1: the expected squared error is never below the variance of the hypotheses.
    assert (grid["expected_squared_error"] >= grid["epistemic_uncertainty"]).all()
    # A forest is constant on cells, and so is the truth that it is held against.
    data = ExperimentData("uncertainty_maps", 0, 10, 0)
    rows = data.fit_predict("random_forest", None, FOREST, grid[["x1", "x2"]].to_numpy()).hypotheses
    cells = grid.groupby(group_equal_rows(rows))
    assert 1 < cells.ngroups < len(grid)
    assert (cells["expected_squared_error"].nunique() == 1).all()


@pytest.mark.parametrize(
    ("method", "parameters"),
    [("random_forest", FOREST), ("centroids", {"n_hypotheses": 20}), ("oracle", {"spread": 0.5})],
)
def test_eece_per_method(method, parameters):
    table = eece_per_method.run(method, seed=1, parameters=parameters, **SMALL)
    assert not table.duplicated("metric").any()
    assert np.isfinite(table["value"]).all()
    value = table.set_index("metric")["value"]
    # One of the two features alone is right with this probability, ...
    assert 400 * value["accuracy"] >= binom.ppf(1e-3, 400, norm.cdf(2.5 / np.sqrt(3)))
    if method == "oracle":
        # ... and both with this one.
        low, high = binom.ppf([5e-4, 1 - 5e-4], 400, norm.cdf(2.5 * np.sqrt(2 / 3)))
        assert low <= 400 * value["accuracy"] <= high
        assert value["tece"] < 1e-30
    else:
        assert value["tece"] > 0
    assert set(table["n_train"]) == {50}
    assert set(table["n_test"]) == {400}
    again = eece_per_method.run(method, seed=1, parameters=parameters, **SMALL)
    pd.testing.assert_frame_equal(table, again)


def test_binning_says_whether_hypotheses_are_sorted():
    settings = {"seed": 0, "parameters": FOREST, **SMALL, "binning": "sorted_kmeans"}
    table = eece_per_method.run("random_forest", **settings).set_index("metric")["value"]
    data = ExperimentData("eece_per_method", 0, 50, SMALL["n_test"])
    hypotheses = data.fit_predict("random_forest", None, FOREST).hypotheses
    parts = metrics.decompose_eece(
        data.y_test,
        hypotheses.astype(np.float32),
        n_bins=SMALL["n_bins"],
        binning="sorted_kmeans",
        random_state=derive_seed(*data.key, "bins"),
    )
    assert table["eece"] == pytest.approx(parts.eece, rel=1e-5)
    assert table["eece_dispersion"] == pytest.approx(parts.dispersion, rel=1e-5)


def test_methods_of_an_experiment_share_their_data():
    tables = [
        eece_per_method.run(name, seed=2, implementation="oracle", **SMALL)
        for name in ("oracle", "another")
    ]
    tables.append(eece_per_method.run("random_forest", seed=2, parameters=FOREST, **SMALL))
    accuracies = [table.set_index("metric")["value"]["accuracy"] for table in tables]
    assert accuracies[0] == accuracies[1]
    # Where the two differ one of them errs, and the oracle at no more than half of these inputs.
    n_errors = 400 * (2 - accuracies[0] - accuracies[2])
    assert 400 * (accuracies[0] - accuracies[2]) > -4 * np.sqrt(n_errors)


def test_the_implementation_may_have_another_name_in_the_table():
    table = eece_per_method.run("mine", seed=0, implementation="oracle", **SMALL)
    assert set(table["method"]) == {"mine"}


def test_eece_vs_noise_starts_from_the_clean_data():
    # If noise did nothing, ten of ten seeds would have a larger TECE with chance 2^-10.
    settings = {"parameters": {**FOREST, "n_estimators": 3}, "n_test": 100, "n_bins": 2}
    for seed in range(10):
        table = eece_vs_noise.run(seed=seed, noise_levels=[0, 0.9], **settings)
        value = table.pivot(index="noise_level", columns="metric", values="value")
        assert value.loc[0.9, "tece"] > value.loc[0, "tece"]
    alone = eece_vs_noise.run(seed=9, noise_levels=[0.9], **settings)
    expected = table[table["noise_level"] == 0.9].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone.astype(expected.dtypes), expected)


def test_eece_vs_training_size():
    table = eece_vs_training_size.run(seed=0, parameters=FOREST, training_sizes=[4, 400], **SMALL)
    value = table.pivot(index="n_train", columns="metric", values="value")
    assert value.loc[400, "tece"] < value.loc[4, "tece"]


def test_binning_study():
    table = binning_study.run(
        "random_forest", seed=0, parameters=FOREST, bin_numbers=[2, 20], n_test=400
    )
    value = table.pivot(index="n_bins", columns="metric", values="value")
    assert value["tece"].nunique() == 1
    np.testing.assert_allclose(
        value["absolute_difference"], np.abs(value["eece"] - value["tece"]), rtol=1e-12
    )


def test_calibration_plots_of_variants():
    variants = {"deep": {**FOREST, "min_samples_leaf": 1}, "stump": {**FOREST, "max_depth": 1}}
    table = calibration_plots.run(seed=0, variants=variants, n_test=400)
    assert list(table["variant"].unique()) == list(variants)
    for _, curve in table.groupby("variant"):
        assert curve["count"].sum() == 400
        ece = np.average(np.abs(curve["frequency"] - curve["predicted"]), weights=curve["count"])
        assert curve["ece"].to_numpy() == pytest.approx(ece)


def test_smooth_calibration_of_the_oracle_is_that_of_a_calibrated_predictor():
    table = smooth_calibration.run("oracle", seed=0, n_test=20_000)
    # Weighted means over a neighbourhood of t of labels with the same probabilities: where
    # the kernel's effective sample is over 1000, they differ by less than 4.5·sqrt(2/4000).
    middle = table[table["predicted"].between(0.02, 0.98)]
    difference = middle["frequency"] - middle["frequency_if_calibrated"]
    assert difference.abs().max() < 4.5 * np.sqrt(2 / 4000)


def _fixed_predictions(monkeypatch, predictions):
    monkeypatch.setattr(ExperimentData, "fit_predict", lambda self, *_: predictions)


def _by_labels(table):
    return table.pivot(index="metric", columns="n_labels", values="value")


@pytest.mark.filterwarnings("ignore:each hypothesis is given 2 times")
def test_size_of_uncertainty_from_p_is_exact(monkeypatch):
    data = ExperimentData("size_of_uncertainty", 0, 50, 200)
    p = true_probability(data.X_test)
    side = np.where(p > 0.5, 1, -1)
    hypotheses = np.clip(_known_predictor(p * 0.5 + 0.25, 2.0**-5 * side[:, None]), 0, 1)
    error = (p - hypotheses.mean(axis=1)) ** 2
    # Of its four hypotheses two are copies: as draws there are two, of which EU is a third.
    for reported, uncertainty in ((None, 3 * 2.0**-8), (error / 4, error.mean() / 4)):
        _fixed_predictions(monkeypatch, Predictions(hypotheses, epistemic_uncertainty=reported))
        table = size_of_uncertainty.run("mine", seed=0, n_test=200, n_labels=(2,))
        value = _by_labels(table)[0]
        assert value["reducible_error"] == pytest.approx(error.mean(), rel=1e-12)
        assert value["reported_share"] == pytest.approx(uncertainty / error.mean(), rel=1e-12)
        assert value["second_order_gap"] == pytest.approx(error.mean() - uncertainty, rel=1e-12)
    assert value["slope"] == pytest.approx(4, rel=1e-9)


@pytest.mark.parametrize("method", [*available_methods(), "oracle"])
def test_size_of_uncertainty_from_labels_agrees_with_the_exact_one(method, monkeypatch):
    """Given the inputs, the estimate of (p − Δ)² has variance 4δ²v/k + 2v²/(k(k − 1))."""
    n_test, n_labels = 1500, (2, 10)
    data = ExperimentData("size_of_uncertainty", 3, 50, n_test)
    predictions = data.fit_predict(method, None, None)
    _fixed_predictions(monkeypatch, predictions)
    table = size_of_uncertainty.run(method, seed=3, n_test=n_test, n_labels=n_labels)
    value = _by_labels(table)
    p, rows = true_probability(data.X_test), predictions.hypotheses
    delta, v = p - rows.mean(axis=1, dtype=np.float64), p * (1 - p)
    exact = value[0]
    assert exact["reducible_error"] == pytest.approx(np.mean(delta**2), rel=1e-6, abs=1e-15)
    for k in n_labels:
        deviation = np.sqrt(np.sum(4 * delta**2 * v / k + 2 * v**2 / (k * (k - 1)))) / n_test
        difference = value[k] - exact
        assert 0 < abs(difference["reducible_error"]) < 4 * deviation
        assert difference["second_order_gap"] == pytest.approx(difference["reducible_error"])
        if exact["reported_share"] > 0:
            # Labels say nothing of the uncertainty.
            shares, errors = value.loc["reported_share", [0, k]], value.loc["reducible_error"]
            assert shares[k] * errors[k] == pytest.approx(shares[0] * errors[0], rel=1e-9)
            assert value.loc["reported_share_low", k] < shares[k]
            assert value.loc["reported_share_high", k] > shares[k]
        assert value.loc["reducible_error_low", k] <= value.loc["reducible_error_high", k]
        # Of the others the stated errors hold, from other labels.
        found = metrics.second_order_error(
            np.random.default_rng(0).binomial(k, p),
            k,
            rows,
            epistemic_uncertainty=predictions.epistemic_uncertainty,
            exchangeable=getattr(predictions, "exchangeable", True),
        )
        for name in ("size_error", "calibration_error", "slope"):
            standard_error = getattr(found, name).standard_error
            if np.isfinite(standard_error):
                assert abs(difference[name]) < 4 * standard_error


def test_half_the_uncertainty_is_half_the_share(monkeypatch):
    predictions = ExperimentData("size_of_uncertainty", 0, 50, 300).fit_predict(
        "random_forest", None, FOREST
    )
    reported = predictions.hypotheses.var(axis=1)
    values = []
    for uncertainty in (reported, reported / 2):
        changed = Predictions(predictions.hypotheses, epistemic_uncertainty=uncertainty)
        _fixed_predictions(monkeypatch, changed)
        table = size_of_uncertainty.run("random_forest", seed=0, n_test=300)
        values.append(table.set_index(["metric", "n_labels"])["value"])
    whole, half = values
    assert (half["reported_share"] == whole["reported_share"] / 2).all()
    assert (half["reducible_error"] == whole["reducible_error"]).all()
    for limit in ("reported_share_low", "reported_share_high"):
        np.testing.assert_allclose(half[limit], whole[limit] / 2, rtol=1e-9)


def test_size_of_uncertainty_follows_the_seed_and_shares_its_labels():
    settings = {"parameters": FOREST, "n_test": 150}
    table, again, other = (
        size_of_uncertainty.run("random_forest", seed=seed, **settings) for seed in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(table, again)
    assert list(table) == [
        *("method", "seed", "metric", "value"),
        *("n_labels", "n_hypotheses", "n_train", "n_test"),
    ]
    assert not table.duplicated(["metric", "n_labels"]).any()
    values = ["reducible_error", "reported_share", "second_order_gap", "size_error", "slope"]
    limits = {f"{name}_{end}" for name in values[:2] for end in ("low", "high")}
    for k, metric in table.groupby("n_labels")["metric"]:
        extra = {"tece"} if k == 0 else limits
        assert set(metric) == {*values, "calibration_error"} | extra
    assert set(table["n_labels"]) == {0, 2, 10}
    # Every estimate is of labels and a training set of its own; limits may both be 0 or infinite.
    estimates, others = (t[~t["metric"].str.endswith(("_low", "_high"))] for t in (table, other))
    assert not np.isin(estimates["value"], others["value"]).any()
    alone = size_of_uncertainty.run("random_forest", seed=0, n_labels=(10,), **settings)
    pd.testing.assert_frame_equal(
        alone, table[table["n_labels"] != 2].reset_index(drop=True), check_like=True
    )
    # The oracle's errors are those of the labels alone.
    oracle, mine = (
        size_of_uncertainty.run(name, seed=0, implementation="oracle", n_test=150)
        for name in ("oracle", "mine")
    )
    pd.testing.assert_frame_equal(mine, oracle.assign(method="mine"))


def test_shares_of_nothing():
    """No error and no uncertainty; uncertainty alone; an error alone."""
    settings = {"seed": 0, "n_test": 300}
    value = _by_labels(size_of_uncertainty.run("oracle", **settings))
    assert value.loc["reducible_error", 0] == 0
    assert np.isnan(value.loc["reported_share", 0])
    spread = size_of_uncertainty.run("oracle", parameters={"spread": 0.5}, **settings)
    assert _by_labels(spread).loc["reported_share", 0] == np.inf
    constant = _by_labels(size_of_uncertainty.run("base_rate", **settings))
    shares = constant.loc[["reported_share", "reported_share_low", "reported_share_high"]]
    assert (shares[[2, 10]] == 0).all(axis=None)
    assert shares.loc["reported_share", 0] == 0
    for k in (2, 10):
        # Whether the oracle has an error its labels cannot tell: any share may be right.
        assert value.loc["reported_share_low", k] == 0
        assert value.loc["reported_share_high", k] == np.inf


def test_the_figure_of_the_size_of_uncertainty_orders_methods_by_their_share():
    shares = {"sure": 0.25, "right": 1.0, "cautious": 4.0, "certain": 0.0, "perfect": np.nan}
    shares["timid"] = np.inf
    rows = [
        {"method": method, "seed": seed, "metric": metric, "value": value, "n_labels": k}
        for method, share in shares.items()
        for seed in range(3)
        for k, end in ((0, ""), (2, ""), (2, "_low"), (2, "_high"))
        for metric, value in ((f"reported_share{end}", share), ("tece", 0.01))
        if metric != "tece" or k == 0
    ]
    figure = draw(size_of_uncertainty.EXPERIMENT, pd.DataFrame(rows))
    panel, plane = figure.axes
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert names == ["Certain", "Sure", "Right", "Cautious", "Timid", "Perfect"]
    large = [c for c in panel.collections if c.get_sizes()[0] == 26]
    exact = [float(points.get_offsets()[0][0]) for points in large[::2]]
    left, right = panel.get_xlim()
    np.testing.assert_allclose(exact, [left, 0.25, 1, 4, right])
    assert plane.get_ylim() == (left, right)
    texts = {text.get_text() for text in panel.texts}
    assert texts == {"0", "∞", "no error, and none reported"}


def test_figures_show_what_the_tables_hold():
    seeds = (0, 1)
    maps = uncertainty_maps.run("random_forest", seed=0, parameters=FOREST, n_grid=8)
    figure = draw(uncertainty_maps.EXPERIMENT, maps, labels={"random_forest": "Forest"})
    images = [ax.collections[0] for ax in figure.axes[:2]]
    assert images[0].get_clim() == images[1].get_clim()
    grid = maps[maps["kind"] == "grid"]
    # What is less than the scale shows has its darkest colour, 0 among it.
    errors = np.sort(grid["expected_squared_error"].clip(lower=images[1].get_clim()[0]))
    np.testing.assert_allclose(np.sort(images[1].get_array().ravel()), errors)
    assert len(np.unique(errors)) > 2
    assert "Forest" in figure.axes[0].get_ylabel()

    errors = pd.concat(
        [
            eece_per_method.run(method, seed=seed, parameters=parameters, **SMALL)
            for method, parameters in (("random_forest", FOREST), ("oracle", {}))
            for seed in seeds
        ]
    )
    ax = draw(eece_per_method.EXPERIMENT, errors).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Oracle", "Random forest"]

    study = pd.concat(
        [
            binning_study.run(
                "random_forest", seed=seed, parameters=FOREST, bin_numbers=[2, 20], n_test=400
            )
            for seed in seeds
        ]
    )
    difference = study[study["metric"] == "absolute_difference"]
    best = difference.groupby("n_bins")["value"].mean().idxmin()
    assert str(best) in draw(binning_study.EXPERIMENT, study).axes[0].get_title()

    noise = eece_vs_noise.run(seed=0, parameters=FOREST, noise_levels=[0, 0.5], **SMALL)
    ax = draw(eece_vs_noise.EXPERIMENT, noise).axes[0]
    assert "%" in ax.get_xlabel()
    np.testing.assert_allclose(ax.get_lines()[0].get_xdata(), [0, 50])


@pytest.mark.fault
def test_figures_say_what_is_wrong_with_a_table():
    with pytest.raises(ValueError, match="noise_level"):
        draw(eece_vs_noise.EXPERIMENT, pd.DataFrame({"method": ["a"], "seed": [0]}))
    maps = uncertainty_maps.run("oracle", seed=0, n_grid=3)
    with pytest.raises(ValueError, match="one seed"):
        draw(uncertainty_maps.EXPERIMENT, pd.concat([maps, maps.assign(seed=1)]))


def test_every_file_is_an_experiment_with_settings_that_a_configuration_can_check():
    for name in available_experiments():
        assert module_path("epistemic_calibration.paper.toy", name).is_file()
        experiment = load_experiment(name)
        # Without a method its table is that of its only control.
        assert experiment.methods or len(experiment.controls) == 1
        for setting, (_, default, metadata) in experiment.settings().items():
            assert setting not in ("method", "seed", "parameters", "implementation")
            assert metadata.pop("description")
            assert set(metadata) <= set(BOUNDS)
            assert default is not None
    with pytest.raises(ValueError, match=r"no_such.*eece_per_method"):
        load_experiment("no_such")


def test_settings_have_their_bounds_and_those_of_their_items():
    settings = eece_vs_noise.EXPERIMENT.settings()
    assert list(settings) == ["noise_levels", "n_train", "n_test", "n_bins", "binning"]
    annotation, default, metadata = settings["noise_levels"]
    assert annotation == tuple[Annotated[float, {"ge": 0, "le": 1}], ...]
    assert max(default) == 0.95
    assert metadata["min_length"] == 1
    assert settings["n_train"] == (int, 50, {"ge": 2, "description": "training points"})
    assert get_args(settings["binning"][0]) == get_args(Binning)
    assert calibration_plots.EXPERIMENT.settings()["variants"][1] is ...


def test_the_configuration_has_an_entry_for_every_experiment_and_no_unknown_setting():
    config = yaml.safe_load((Path(__file__).parents[2] / "config.yaml").read_text())["toy"]
    config.pop("seeds")
    assert set(config) == set(available_experiments())
    for name, block in config.items():
        experiment = load_experiment(name)
        assert ("methods" in block) == experiment.methods
        assert set(block) - {"methods", "seeds"} <= set(experiment.settings())


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("binning_study", {"bin_numbers": [2], "n_test": 50}),
        ("calibration_plots", {"variants": {"a": {"min_samples_leaf": 3}}, "n_test": 50}),
        ("dataset", {"n_samples": 20}),
        ("eece_per_method", {"n_test": 50, "n_bins": 2}),
        ("eece_vs_noise", {"noise_levels": [0, 0.5], "n_test": 50, "n_bins": 2}),
        ("eece_vs_training_size", {"training_sizes": [5, 9], "n_test": 50, "n_bins": 2}),
        ("size_of_uncertainty", {"n_labels": [2], "n_test": 50}),
        ("smooth_calibration", {"n_test": 50}),
        ("uncertainty_maps", {"n_grid": 4}),
    ],
)
def test_every_experiment_runs_and_is_drawn_as_the_workflow_does_it(name, settings):
    experiment = load_experiment(name)
    entry = {"implementation": "random_forest", "parameters": FOREST, "label": "My forest"}
    runs = experiment.runs(["mine"])
    assert runs == [*(["mine"] if experiment.methods else []), *experiment.controls]
    tables = []
    for method in runs:
        arguments = experiment.arguments(settings, method, entry if method == "mine" else None)
        table = experiment.run(seed=0, **arguments)
        assert set(table.get("method", [method])) == {method}
        tables.append(table)
    figure = draw(experiment, pd.concat(tables), {"mine": "My forest"})
    texts = [text.get_text() for text in figure.findobj(Text)]
    assert any("My forest" in text for text in texts) == experiment.methods


def test_variants_change_the_parameters_of_the_method():
    settings = {"seed": 0, "n_test": 200}
    whole = calibration_plots.run(variants={"a": {**FOREST, "max_depth": 1}}, **settings)
    changes = calibration_plots.run(
        variants={"a": {"max_depth": 1}}, parameters={**FOREST, "max_depth": 5}, **settings
    )
    pd.testing.assert_frame_equal(whole, changes)


def test_running_an_experiment_imports_nothing_of_its_figure():
    """What the file imports, the workflow takes for a source of its fits."""
    for name in available_experiments():
        sources = {
            path.name for path in source_files(module_path("epistemic_calibration.paper.toy", name))
        }
        # What it does count shows that the figure would.
        assert f"{name}.py" in sources
        if name.startswith("eece"):
            assert "binning.py" in sources
        assert not sources & {"toy_drawing.py", "style.py"}


def test_networks_make_their_epochs_and_no_more():
    data = ExperimentData("eece_per_method", 0, 50, 20)
    settings = {"n_epochs": 3, "n_members": 2, "device": "cpu"}
    found = data.fit_predict("deep_ensemble", None, {**settings, "min_steps": 500})
    method = load_method("deep_ensemble")(
        **settings, min_steps=1, random_state=derive_seed(*data.key, "deep_ensemble")
    )
    expected = method.fit(data.X_train, data.y_train).predict(data.X_test)
    np.testing.assert_array_equal(found.hypotheses, expected.hypotheses)
