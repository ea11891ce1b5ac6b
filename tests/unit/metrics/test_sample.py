from dataclasses import asdict

import numpy as np
import pytest

from epistemic_calibration import metrics

FUNCTIONS = [
    metrics.corrected_epistemic_calibration_error,
    metrics.split_epistemic_calibration_error,
    metrics.cross_fitted_lower_bound,
    metrics.epistemic_calibration_test,
    metrics.mean_calibration_test,
    metrics.epistemic_independence_test,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_kinds_of_input(function, predictor):
    y, hypotheses, _ = predictor(300, h=4)
    hypotheses = hypotheses.astype(np.float32)
    hypotheses[:3] = [[0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1]]
    frozen = hypotheses.copy()
    frozen.flags.writeable = False
    expected = function(y, hypotheses.astype(np.float64))
    assert function(y.astype(bool), frozen) == expected
    strided = np.repeat(hypotheses, 2, axis=0)[::2]
    assert function(y.astype(np.uint8), strided) == expected


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("h", [1, 2])
def test_one_class_and_few_hypotheses(function, h, predictor):
    _, hypotheses, _ = predictor(200, h=h)
    result = function(np.zeros(200), hypotheses)
    numbers = vars(result).values()
    assert all(np.isfinite(v) for v in numbers if isinstance(v, float))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_wrong_input(function):
    with pytest.raises(ValueError, match="y_true must be labels"):
        function([-1, 1], [[0.1], [0.2]])
    with pytest.raises(ValueError, match="hypotheses must be in"):
        function([0, 1], [[0.1], [1.2]])
    with pytest.raises(ValueError, match="hypotheses has 1 samples"):
        function([0, 1], [[0.1]])


def test_wrong_numbers_of_resamples():
    with pytest.raises(ValueError, match="n_resamples must be an integer >= 1"):
        metrics.mean_calibration_test([0, 1], [[0.1], [0.2]], n_resamples=0)
    with pytest.raises(ValueError, match="n_resamples must be an integer >= 2"):
        metrics.mean_corrected_error([[0, 1]], [[0.1, 0.2]], [[0, 0]], n_resamples=1)


# --- A sample in place of labels and hypotheses

OF_A_SAMPLE = [
    *FUNCTIONS,
    metrics.decompose_eece,
    metrics.expected_epistemic_calibration_error,
]


def equal(a, b):
    if isinstance(a, float):
        return a == b
    a, b = asdict(a), asdict(b)
    parts = (a.pop("bins", {}), b.pop("bins", {}))
    return a == b and all(np.array_equal(parts[0][k], parts[1][k]) for k in parts[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", OF_A_SAMPLE)
def test_a_sample_gives_what_its_arrays_give(function, dtype, predictor):
    y, hypotheses, _ = predictor(400, h=7, dependence=0.3)
    hypotheses = hypotheses.astype(dtype)
    sample = metrics.Sample(y, hypotheses)
    # Twice: the second time the moments and bins are there.
    for _ in range(2):
        assert equal(function(sample), function(y, hypotheses))


@pytest.mark.parametrize("function", OF_A_SAMPLE[-3:])
def test_a_sample_holds_the_reported_uncertainty(function, predictor):
    y, hypotheses, _ = predictor(400, h=7)
    reported = np.linspace(0, 0.2, 400, dtype=np.float32)
    sample = metrics.Sample(y, hypotheses, epistemic_uncertainty=reported)
    expected = function(y, hypotheses, epistemic_uncertainty=reported)
    assert equal(function(sample), expected)
    assert not equal(function(metrics.Sample(y, hypotheses)), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_are_those_of_numpy(dtype, predictor):
    _, hypotheses, _ = predictor(50, h=9)
    hypotheses = hypotheses.astype(dtype)
    sample = metrics.Sample(np.arange(50) % 2, hypotheses)
    # To the last bit: the mean is stored and compared between methods.
    np.testing.assert_array_equal(sample.mean, hypotheses.mean(axis=1, dtype=np.float64))
    np.testing.assert_allclose(sample.variance, hypotheses.var(axis=1, dtype=np.float64))
    assert sample.y.dtype == sample.mean.dtype == sample.variance.dtype == np.float64
    assert sample.uncertainty is sample.variance
    assert sample.hypotheses is hypotheses
    assert len(sample) == 50


def test_means_stay_probabilities():
    largest, smallest = np.nextafter(1, 0), np.nextafter(0, 1)
    for value in (1.0, largest, 0.0, smallest):
        for h in (3, 7, 1000):
            mean = metrics.Sample([1], np.full((1, h), value)).mean
            assert 0 <= mean[0] <= 1


@pytest.mark.parametrize("binning", ["kmeans", "sorted_kmeans", "nested", "quantile", "grid"])
def test_bins_are_those_of_assign_bins(binning, predictor):
    y, hypotheses, _ = predictor(300)
    sample = metrics.Sample(y, hypotheses)
    options = {"n_bins": 9, "binning": binning, "random_state": 3}
    bins = sample.bins(**options)
    np.testing.assert_array_equal(bins, metrics.assign_bins(hypotheses, **options))
    assert sample.bins(**options) is bins
    assert not np.array_equal(sample.bins(**options | {"n_bins": 4}), bins)
    with pytest.raises(ValueError, match="read-only"):
        bins[0] = 1


@pytest.mark.parametrize("function", OF_A_SAMPLE)
def test_a_sample_stands_alone(function, predictor):
    y, hypotheses, _ = predictor(50)
    with pytest.raises(ValueError, match="a Sample has its own hypotheses"):
        function(metrics.Sample(y, hypotheses), hypotheses)
    with pytest.raises(ValueError, match="hypotheses must be given"):
        function(y)
