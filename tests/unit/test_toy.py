import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text
from scipy.stats import binom, norm
from shipped import SHIPPED

from epistemic_calibration import metrics
from epistemic_calibration.methods import Predictions, load_method
from epistemic_calibration.metrics.binning import group_equal_rows
from epistemic_calibration.paper.toy import available_experiments, load_experiment
from epistemic_calibration.paper.toy._drawing import draw
from epistemic_calibration.paper.toy._mixture import (
    mixture_density,
    sample_mixture,
    sample_training_set,
    true_probability,
)
from epistemic_calibration.paper.toy.base import Toy
from epistemic_calibration.paper.toy.eece_vs_noise import corrupt_inputs
from epistemic_calibration.paper.toy.uncertainty_maps import MAP_LIMIT, uncertainty_and_error
from epistemic_calibration.registry import module_path
from epistemic_calibration.seeds import derive_seed
from epistemic_calibration.workflow.sources import source_files

SMALL = {"n_test": 400, "n_bins": 10}
FOREST = {"n_estimators": 10, "min_samples_leaf": 2}


def run(name, method="random_forest", seed=0, **settings):
    if method == "random_forest":
        settings.setdefault("parameters", FOREST)
    return load_experiment(name).run(method=method, seed=seed, **settings)


def test_true_probability_is_bayes_rule():
    X = np.random.default_rng(0).uniform(-6, 6, (200, 2))
    negative, positive = (
        np.exp(-((X - mean) ** 2).sum(axis=1) / (2 * 3.0)) for mean in ((2.5, 2.5), (-2.5, -2.5))
    )
    np.testing.assert_allclose(true_probability(X), positive / (positive + negative), rtol=1e-12)


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


def test_training_sets_have_both_classes():
    # A draw of two points lacks a class with probability 1/2, so some of 20 are redrawn.
    labels = [sample_training_set(2, seed)[1] for seed in range(20)]
    assert all(sorted(y) == [0, 1] for y in labels)


@pytest.mark.parametrize("noise_level", [0, 0.1, 0.5, 0.95, 1])
def test_noise_replaces_the_stated_fraction_within_the_range(noise_level):
    X, _ = sample_mixture(50, random_state=5)
    original = X.copy()
    noisy = corrupt_inputs(X, noise_level, random_state=6)
    np.testing.assert_array_equal(X, original)
    assert np.count_nonzero(noisy != X) == round(noise_level * X.size)
    assert np.all((noisy >= X.min(axis=0)) & (noisy <= X.max(axis=0)))


def test_noise_is_uniform_over_the_range_of_each_feature():
    X = np.stack([np.linspace(0, 1, 4000), np.linspace(-50, 50, 4000) ** 3], axis=1)
    noisy = corrupt_inputs(X, 1.0, random_state=7)
    unit = (noisy - X.min(axis=0)) / np.ptp(X, axis=0)
    # Kolmogorov's statistic of 4000 draws exceeds 1.95/√n with probability 0.001.
    for column in np.sort(unit, axis=0).T:
        assert np.abs(column - np.arange(0.5, 4000) / 4000).max() < 1.95 / np.sqrt(4000)


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
        hypotheses = (p + error)[:, None] + 2.0**-4 * np.array([-1, 1, -1, 1])
        tece = metrics.true_epistemic_calibration_error(p, hypotheses)
        assert tece == pytest.approx(delta**2, abs=1e-12)
        bins = metrics.assign_bins(hypotheses, n_bins=n_bins)
        eece = metrics.expected_epistemic_calibration_error(y, hypotheses, bins=bins)
        n = np.bincount(bins)
        d, v = (np.bincount(bins, weights=x) / n for x in (error, p * (1 - p)))
        mean = (n @ d**2 + v.sum()) / n_samples
        deviation = np.sqrt(4 * n @ (d**2 * v) + 2 * v @ v) / n_samples
        assert abs(eece - mean) < 4.5 * deviation


def test_the_map_weighs_level_sets_by_the_density():
    predictions = Predictions(np.array([[0.0, 1.0], [0.0, 1.0], [0.25, 0.25]]))
    p_true, weights = np.array([0.0, 0.8, 0.5]), np.array([3.0, 1.0, 1.0])
    uncertainty, error = uncertainty_and_error(p_true, predictions, weights=weights)
    np.testing.assert_allclose(uncertainty, [0.25, 0.25, 0])
    # P(Y = 1 | first level set) = 0.8/4 = 0.2: (0.2² + 0.8²)/2.
    np.testing.assert_allclose(error, [0.34, 0.34, 0.0625])


def test_uncertainty_maps_of_a_forest():
    table = run("uncertainty_maps", n_grid=12)
    grid, training = table[table["kind"] == "grid"], table[table["kind"] == "training"]
    assert (len(grid), len(training)) == (144, 10)
    assert set(training["y"]) == {0, 1} and grid["y"].isna().all()
    assert grid[["x1", "x2"]].abs().to_numpy().max() == MAP_LIMIT
    # Proposition 1: the expected squared error is never below the variance of the hypotheses.
    assert (grid["expected_squared_error"] >= grid["epistemic_uncertainty"]).all()
    # A forest is constant on cells, and so is the truth that it is held against.
    toy = Toy("uncertainty_maps", 0, "random_forest", parameters=FOREST)
    toy.draw(10)
    rows = toy.fit_predict(grid[["x1", "x2"]].to_numpy()).hypotheses
    cells = grid.groupby(group_equal_rows(rows))
    assert 1 < cells.ngroups < len(grid)
    assert (cells["expected_squared_error"].nunique() == 1).all()


@pytest.mark.parametrize(
    ("method", "parameters"),
    [("random_forest", FOREST), ("centroids", {"n_hypotheses": 20}), ("oracle", {})],
)
def test_eece_per_method(method, parameters):
    table = run("eece_per_method", method, seed=1, parameters=parameters, **SMALL)
    assert np.isfinite(table["value"]).all()
    value = table.set_index("metric")["value"]
    # One of the two features alone is right with this probability, ...
    assert 400 * value["accuracy"] >= binom.ppf(1e-3, 400, norm.cdf(2.5 / np.sqrt(3)))
    if method == "oracle":
        # ... and both with this one.
        low, high = binom.ppf([5e-4, 1 - 5e-4], 400, norm.cdf(2.5 * np.sqrt(2 / 3)))
        assert low <= 400 * value["accuracy"] <= high
    assert (value["tece"] < 1e-30) == (method == "oracle")
    assert (set(table["n_train"]), set(table["n_test"])) == ({50}, {400})
    again = run("eece_per_method", method, seed=1, parameters=parameters, **SMALL)
    pd.testing.assert_frame_equal(table, again)


def test_methods_of_an_experiment_share_their_data():
    first, second = (
        run("eece_per_method", name, seed=2, implementation="oracle", **SMALL)
        for name in ("oracle", "another")
    )
    pd.testing.assert_series_equal(first["value"], second["value"])


def test_more_noise_and_fewer_points_make_a_larger_error():
    # If noise did nothing, ten of ten seeds would have a larger TECE with chance 2^-10.
    settings = {"parameters": {**FOREST, "n_estimators": 3}, "n_test": 100, "n_bins": 2}
    for seed in range(10):
        table = run("eece_vs_noise", seed=seed, noise_levels=[0, 0.9], **settings)
        value = table.pivot(index="noise_level", columns="metric", values="value")
        assert value.loc[0.9, "tece"] > value.loc[0, "tece"]
    # Each level starts from the clean data.
    alone = run("eece_vs_noise", seed=9, noise_levels=[0.9], **settings)
    expected = table[table["noise_level"] == 0.9].reset_index(drop=True)
    pd.testing.assert_frame_equal(alone.astype(expected.dtypes), expected)
    table = run("eece_vs_training_size", training_sizes=[4, 400], **SMALL)
    value = table.pivot(index="n_train", columns="metric", values="value")
    assert value.loc[400, "tece"] < value.loc[4, "tece"]


def test_smooth_calibration_of_the_oracle_is_that_of_a_calibrated_predictor():
    table = run("smooth_calibration", "oracle", n_test=20_000)
    # Weighted means over a neighbourhood of t of labels with the same probabilities: where
    # the kernel's effective sample is over 1000, they differ by less than 4.5·sqrt(2/4000).
    middle = table[table["predicted"].between(0.02, 0.98)]
    difference = middle["frequency"] - middle["frequency_if_calibrated"]
    assert difference.abs().max() < 4.5 * np.sqrt(2 / 4000)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("binning_study", {"bin_numbers": [2], "n_test": 50}),
        ("calibration_plots", {"variants": {"a": {"min_samples_leaf": 3}}, "n_test": 50}),
        ("dataset", {"n_samples": 20}),
        ("eece_per_method", {"n_test": 50, "n_bins": 2}),
        ("eece_vs_noise", {"noise_levels": [0, 0.5], "n_test": 50, "n_bins": 2}),
        ("eece_vs_training_size", {"training_sizes": [5, 9], "n_test": 50, "n_bins": 2}),
        ("smooth_calibration", {"n_test": 50}),
        ("uncertainty_maps", {"n_grid": 4}),
    ],
)
def test_every_experiment_runs_and_is_drawn_as_the_workflow_does_it(name, settings):
    assert name in SHIPPED["toy"]
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
        assert not sources & {"_drawing.py", "style.py"}


def test_networks_make_their_epochs_and_no_more():
    settings = {"n_epochs": 3, "n_members": 2, "device": "cpu"}
    data = Toy("eece_per_method", 0, "deep_ensemble", parameters={**settings, "min_steps": 500})
    data.draw(50, 20)
    found = data.fit_predict()
    method = load_method("deep_ensemble")(
        **settings, min_steps=1, random_state=derive_seed(*data.key, "deep_ensemble")
    )
    expected = method.fit(data.X_train, data.y_train).predict(data.X_test)
    np.testing.assert_array_equal(found.hypotheses, expected.hypotheses)
