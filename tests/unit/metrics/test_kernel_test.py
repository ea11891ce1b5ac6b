import numpy as np
import pytest

from epistemic_calibration import metrics
from epistemic_calibration.metrics import kernel_test


def by_definition(y, mean, around):
    """The statistic as a sum over pairs of samples."""
    n = len(y)
    a = np.abs(mean[:, None] - mean)
    b = np.array([[np.sqrt(np.mean((p - q) ** 2)) for q in around] for p in around])
    upper = np.triu_indices(n, 1)
    d = np.sqrt((a / np.median(a[upper])) ** 2 + (b / np.median(b[upper])) ** 2)
    total = 0.0
    for i in range(n):
        for k in range(n):
            if i != k:
                kernel = (np.exp(-d[i, k]) + np.exp(-4 * d[i, k])) / 2
                total += (y[i] - mean[i]) * (y[k] - mean[k]) * kernel
    return total / (n * (n - 1))


def test_the_statistic_is_the_mean_over_pairs():
    rng = np.random.default_rng(0)
    rows, y = rng.beta(2, 2, (40, 6)), rng.integers(0, 2, 40)
    mean = rows.mean(axis=1)
    found = metrics.kernel_calibration_test(y, rows, n_resamples=1)
    around = np.sort(rows, axis=1) - mean[:, None]
    assert found.statistic == pytest.approx(by_definition(y, mean, around))
    found = metrics.kernel_calibration_test(y, rows, features="moments", n_resamples=1)
    assert found.statistic == pytest.approx(by_definition(y, mean, rows.std(axis=1)[:, None]))
    reported = rng.uniform(0, 0.1, 40)
    found = metrics.kernel_calibration_test(
        y, rows, features="moments", epistemic_uncertainty=reported, n_resamples=1
    )
    assert found.statistic == pytest.approx(by_definition(y, mean, np.sqrt(reported)[:, None]))


def test_neither_the_numbering_nor_the_name_of_the_classes_matters():
    rng = np.random.default_rng(0)
    rows, y = rng.beta(2, 3, (80, 5)), rng.integers(0, 2, 80)
    first = metrics.kernel_calibration_test(y, rows, n_resamples=1).statistic
    permuted = rng.permuted(rows, axis=1)
    assert metrics.kernel_calibration_test(y, permuted, n_resamples=1).statistic == pytest.approx(
        first
    )
    assert metrics.kernel_calibration_test(1 - y, 1 - rows, n_resamples=1).statistic == (
        pytest.approx(first)
    )


@pytest.mark.parametrize("features", ["rows", "moments"])
def test_size_and_power(features, predictor):
    def rejected(**error):
        p_values = []
        for seed in range(200):
            y, rows, _ = predictor(120, h=5, seed=seed, **error)
            test = metrics.kernel_calibration_test(
                y, rows, features=features, n_resamples=99, random_state=seed
            )
            p_values.append(test.p_value)
        return np.mean(np.array(p_values) <= 0.1)

    # Exact: binomial with probability 0.1.
    assert abs(rejected() - 0.1) < 4 * np.sqrt(0.1 * 0.9 / 200)
    assert rejected(mean_error=0.6) > 0.5
    assert rejected(dependence=0.8) > 0.5


def test_blocks_and_subsets(monkeypatch, predictor):
    y, rows, _ = predictor(300, mean_error=0.3)
    whole = metrics.kernel_calibration_test(y, rows, n_resamples=20)
    monkeypatch.setattr(kernel_test, "BLOCK_SIZE", 7 * 300)
    blocks = metrics.kernel_calibration_test(y, rows, n_resamples=20)
    assert blocks.statistic == pytest.approx(whole.statistic, rel=1e-9)
    assert blocks.p_value == whole.p_value
    subset = metrics.kernel_calibration_test(y, rows, n_resamples=20, max_samples=100)
    other = metrics.kernel_calibration_test(
        y, rows, n_resamples=20, max_samples=100, random_state=1
    )
    # The seed is one of labels: which samples are tested does not hang on it.
    assert subset.statistic == other.statistic != whole.statistic


@pytest.mark.parametrize("features", ["rows", "moments"])
def test_neither_order_nor_copies_nor_precision_matter(features, predictor):
    y, rows, _ = predictor(400, mean_error=0.2)
    # Equal rows with other labels.
    rows[::4] = rows[0]
    options = {"features": features, "n_resamples": 199, "max_samples": 150}
    found = metrics.kernel_calibration_test(y, rows, **options)
    assert 0.005 < found.p_value < 0.9
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(400)
        again = metrics.kernel_calibration_test(y[order], rows[order], **options)
        assert again.statistic == pytest.approx(found.statistic, rel=1e-9)
        assert again.p_value == found.p_value
    others = np.concatenate([rows, rows], axis=1), rows.astype(np.float32)
    for tolerance, other in zip((1e-9, 1e-4), others, strict=True):
        again = metrics.kernel_calibration_test(y, other, **options)
        assert again.statistic == pytest.approx(found.statistic, rel=tolerance)
        assert again.p_value == pytest.approx(found.p_value, abs=0.011)


def test_equal_draws_count_as_equal():
    # Whatever is drawn, Σe is one of few values, and the statistic seen is the smallest.
    y = np.arange(20) % 2
    assert metrics.kernel_calibration_test(y, np.full((20, 3), 0.5)).p_value == 1
    # Certain and right: nothing else can be drawn.
    certain = np.repeat(y[:, None], 3, axis=1)
    assert metrics.kernel_calibration_test(y, certain).p_value == 1
    assert metrics.kernel_calibration_test(1 - y, certain).p_value == 0.001


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="features must be one of"):
        metrics.kernel_calibration_test([0, 1], [[0.5], [0.5]], features="bins")
    with pytest.raises(ValueError, match="two samples"):
        metrics.kernel_calibration_test([0], [[0.5]])
    with pytest.raises(ValueError, match="max_samples must be an integer >= 2"):
        metrics.kernel_calibration_test([0, 1], [[0.5], [0.5]], max_samples=1)
