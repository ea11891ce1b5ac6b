import numpy as np
import pytest
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from epistemic_calibration import metrics
from epistemic_calibration.metrics import binning as binning_module
from epistemic_calibration.metrics.binning import (
    canonical_order,
    coarse_bins,
    nested_bins,
    row_moments,
)

BINNINGS = ["kmeans", "sorted_kmeans", "nested", "quantile", "grid"]


def test_kmeans_is_that_of_scikit_learn(predictor):
    # Below 1/2 on average: above, the other class is binned.
    hypotheses = predictor(600)[1] / 2
    order = np.lexsort((hypotheses.var(axis=1), hypotheses.mean(axis=1)))
    with threadpool_limits(1):
        expected = KMeans(15, n_init=1, random_state=3).fit(hypotheses[order])
    np.testing.assert_array_equal(
        metrics.assign_bins(hypotheses, n_bins=15, random_state=3)[order], expected.labels_
    )


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("n_samples", [1, 2, 3, 5, 8, 13])
@pytest.mark.filterwarnings("error")
def test_fewer_samples_than_bins(binning, n_samples, predictor):
    y, hypotheses, _ = predictor(n_samples, h=2)
    bins = metrics.assign_bins(hypotheses, n_bins=100, binning=binning)
    value = metrics.expected_epistemic_calibration_error(y, hypotheses, bins=bins)
    assert 1 <= len(np.unique(bins)) <= n_samples
    assert binning != "nested" or n_samples == 1 or np.bincount(bins).min() >= 2
    assert 0 <= value <= 1


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.filterwarnings("error")
def test_fewer_distinct_rows_than_bins(binning):
    hypotheses = np.tile([[0.1, 0.2], [0.8, 0.9], [0.4, 0.4]], (20, 1))
    bins = metrics.assign_bins(hypotheses, n_bins=50, binning=binning)
    assert np.unique(bins).tolist() == [0, 1, 2]
    assert (bins.reshape(20, 3) == bins[:3]).all()


def test_quantile_bins_are_balanced_and_ordered_by_mean(predictor):
    _, hypotheses, _ = predictor(900, h=7)
    bins = metrics.assign_bins(hypotheses, n_bins=9, binning="quantile")
    assert np.bincount(bins).tolist() == [100] * 9
    mean, spread = hypotheses.mean(axis=1), hypotheses.std(axis=1)
    assert mean[bins < 3].max() <= mean[(bins >= 3) & (bins < 6)].min()
    assert spread[bins == 0].max() <= spread[bins == 1].min()


@pytest.mark.parametrize("binning", ["kmeans", "sorted_kmeans", "nested"])
@pytest.mark.parametrize("n_rows", [5, 400])
def test_blocks_of_rows_do_not_change_the_bins(binning, n_rows, monkeypatch):
    rng = np.random.default_rng(3)
    hypotheses = rng.beta(2, 3, (n_rows, 6))[rng.integers(0, n_rows, 900)]
    monkeypatch.setattr(binning_module, "MAX_KMEANS_ROWS", 100)
    options = {"n_bins": 8, "binning": binning}
    expected = metrics.assign_bins(hypotheses, **options)
    monkeypatch.setattr(binning_module, "_BLOCK_ROWS", 64)
    found = metrics.assign_bins(hypotheses, **options)
    assert np.array_equal(found, expected)
    if n_rows == 5:
        assert len(np.unique(found)) == 5
    elif binning == "kmeans":
        # Most rows are nearest to the mean of their own bin, though a part has placed the centres.
        centres = np.stack([hypotheses[found == m].mean(axis=0) for m in range(8)])
        nearest = ((hypotheses[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        assert (nearest == found).mean() > 0.8


# --- Nested bins


def test_nested_bins_are_nested_and_hold_two_samples(predictor):
    _, hypotheses, _ = predictor(500)
    mean, variance = row_moments(hypotheses)
    order = canonical_order(hypotheses, mean, variance)
    coarse, fine = nested_bins(hypotheses, mean, order, n_bins=50, random_state=0)
    assert len(np.unique(coarse)) == 16
    assert all(len(np.unique(coarse[fine == m])) == 1 for m in np.unique(fine))
    counts = np.bincount(fine)
    assert counts[counts > 0].min() >= 2
    assert 40 <= np.count_nonzero(counts) <= 48


def test_nested_bins_separate_shapes_of_equal_mean_and_variance():
    left = np.array([0.2, 0.2, 0.2, 0.6, 0.3])
    hypotheses = np.where(np.arange(200)[:, None] % 2, left, 2 * left.mean() - left)
    # Two bins are two of the mean, which is one here, and one of the shape.
    bins = metrics.assign_bins(hypotheses, n_bins=2, binning="nested")
    assert len(np.unique(bins)) == 1
    bins = metrics.assign_bins(hypotheses, n_bins=8, binning="nested")
    assert (bins[::2] == bins[0]).all()
    assert (bins[1::2] == bins[1]).all()
    assert bins[0] != bins[1]


def test_coarse_bins_hold_equal_mass_of_the_noise():
    rng = np.random.default_rng(0)
    # Nine of ten are nearly certain.
    logits = np.where(rng.random(5000) < 0.9, rng.normal(-8, 1, 5000), rng.normal(0, 2, 5000))
    mean = 1 / (1 + np.exp(-logits))
    coarse = coarse_bins(mean, 50)
    spread = np.sqrt(mean * (1 - mean))
    mass = np.bincount(coarse, weights=spread)
    # A bin ends between two samples: its mass is off by one of each end at most.
    assert len(mass) == 16
    np.testing.assert_allclose(mass, spread.sum() / 16, atol=spread.max())
    edges = [mean[coarse == k].min() for k in range(16)]
    assert edges == sorted(edges)


def test_a_mean_that_repeats_is_a_coarse_bin():
    rng = np.random.default_rng(0)
    mean = np.concatenate([np.repeat([0.0, 0.3, 0.62], [500, 10, 30]), rng.random(460)])
    mean = np.append(mean, [0.9] * 9)
    coarse = coarse_bins(mean, 50)
    for value in (0.0, 0.3, 0.62):
        inside = mean == value
        assert len(set(coarse[inside])) == 1
        assert not np.isin(coarse[~inside], coarse[inside]).any()
    # Nine are too few.
    assert np.isin(coarse[mean == 0.9], coarse[500:-9][mean[500:-9] != 0.9]).all()


def test_few_uncertain_means_are_not_alone_in_coarse_bins():
    # Three of them have nearly all of the mass.
    mean = np.append(np.linspace(1e-9, 2e-9, 97), [0.3, 0.5, 0.6])
    assert np.bincount(coarse_bins(mean, 50)).min() >= 6
    # One that is left over goes with the nearest that repeat.
    coarse = coarse_bins(np.append(np.repeat([0.2, 0.8], 50), 0.7), 50)
    assert len(set(coarse[:50])) == len(set(coarse[50:])) == 1
    assert coarse[0] != coarse[50]


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("ties", [False, True])
def test_bins_do_not_depend_on_the_order_of_samples(binning, ties, predictor):
    _, hypotheses, _ = predictor(500, h=5)
    if ties:
        hypotheses = np.round(hypotheses, 1)
    bins = metrics.assign_bins(hypotheses, n_bins=12, binning=binning)
    order = np.random.default_rng(1).permutation(500)
    permuted = metrics.assign_bins(hypotheses[order], n_bins=12, binning=binning)
    np.testing.assert_array_equal(permuted, bins[order])


@pytest.mark.parametrize("binning", BINNINGS)
def test_bins_are_the_same_for_the_other_class(binning, predictor):
    # 1 − h is exact for multiples of 1/1024, and no value is an edge of the grid.
    hypotheses = (np.floor(predictor(700, h=4)[1] * 1023) + 0.5) / 1024
    first, second = (
        metrics.assign_bins(h, n_bins=20, binning=binning) for h in (hypotheses, 1 - hypotheses)
    )
    # The same partition, whatever the numbers of its bins.
    assert len(set(zip(first, second, strict=True))) == len(set(first)) == len(set(second))


def test_kmeans_does_not_depend_on_the_numbers_of_hypotheses(predictor):
    _, hypotheses, _ = predictor(400, h=6)
    bins = metrics.assign_bins(hypotheses, n_bins=9)
    other = metrics.assign_bins(hypotheses[:, [3, 1, 5, 0, 2, 4]], n_bins=9)
    assert len(set(zip(bins, other, strict=True))) == len(set(bins)) == len(set(other))


def test_a_prediction_without_mass_at_the_end_has_a_place():
    # It has so little of the mass that its middle is the end, or by rounding beyond.
    for seed in range(20):
        mean = np.append(np.random.default_rng(seed).uniform(0.05, 0.5, 4999), 1.0)
        labels = coarse_bins(mean, 50)
        assert labels[-1] == labels[mean[:-1].argmax()] == labels.max() == 15
