import numpy as np
import pytest
from scipy.stats import chi2

from epistemic_calibration import metrics
from epistemic_calibration.metrics.binning import group_equal_rows, row_moments

BINNINGS = ["kmeans", "sorted_kmeans", "nested", "quantile", "grid"]
SORTED = ("sorted_kmeans", "nested")


# --- EECE and its parts


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("reported", [False, True])
def test_eece_agrees_with_loops(binning, reported, predictor):
    y, hypotheses, _ = predictor(600, h=3)
    trust = np.linspace(0, 0.3, len(y)) if reported else hypotheses.var(axis=1)
    bins = metrics.assign_bins(hypotheses, n_bins=12, binning=binning)
    value = metrics.expected_epistemic_calibration_error(
        y,
        hypotheses,
        epistemic_uncertainty=trust if reported else None,
        n_bins=12,
        binning=binning,
    )
    rows = np.sort(hypotheses, axis=1) if binning in SORTED else hypotheses
    # Equation 9 word by word.
    expected = 0.0
    for m in np.unique(bins):
        inside = bins == m
        accuracy = y[inside].mean()
        squares = [(accuracy - h[inside].mean()) ** 2 for h in rows.T]
        expected += inside.mean() * abs(np.mean(squares) - trust[inside].mean())
    assert value == pytest.approx(expected, abs=1e-14)


def test_parts_of_bins_agree_with_numpy(predictor):
    y, hypotheses, _ = predictor(600, h=4)
    bins = metrics.assign_bins(hypotheses, n_bins=9)
    b = metrics.decompose_eece(y, hypotheses, bins=bins).bins
    for m in range(9):
        inside = bins == m
        rows = hypotheses[inside]
        centred = rows - rows.mean(axis=1, keepdims=True)
        assert b.count[m] == inside.sum()
        assert b.accuracy[m] == pytest.approx(y[inside].mean())
        assert b.confidence[m] == pytest.approx(rows.mean())
        assert b.trust[m] == b.variance[m] == pytest.approx(rows.var(axis=1).mean())
        assert b.dispersion[m] == pytest.approx(centred.var(axis=0).mean(), abs=1e-15)
        assert b.calibration[m] == pytest.approx((y[inside].mean() - rows.mean()) ** 2, abs=1e-15)


def test_blocks_do_not_change_sums(monkeypatch, predictor):
    y, hypotheses, _ = predictor(101, h=4)
    expected = metrics.decompose_eece(y, hypotheses, n_bins=5)
    monkeypatch.setattr(metrics._validation, "_ROW_BLOCK_SIZE", 7)
    found = metrics.decompose_eece(y, hypotheses, n_bins=5)
    for name in ("eece", "calibration", "dispersion"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-15)


def test_some_binnings_ignore_numbering_at_each_input(predictor):
    y, hypotheses, _ = predictor(600, h=6)
    shuffled = np.random.default_rng(1).permuted(hypotheses, axis=1)
    for binning in (*SORTED, "quantile"):
        np.testing.assert_array_equal(
            metrics.assign_bins(hypotheses, n_bins=30, binning=binning),
            metrics.assign_bins(shuffled, n_bins=30, binning=binning),
        )
    for binning in SORTED:
        value, other = (
            metrics.decompose_eece(y, rows, n_bins=30, binning=binning)
            for rows in (hypotheses, shuffled)
        )
        assert other.eece == pytest.approx(value.eece, abs=1e-15)
        assert other.dispersion == pytest.approx(value.dispersion, abs=1e-15)


def test_sorting_takes_exchangeable_scatter_out_of_eece():
    """A calibrated predictor whose hypotheses are independent draws at every input.

    They are uniform, of width w = 0.6. Less their mean, H such numbers have the variance
    w²(1 − 1/H)/12 each, and their order statistics on average w²(1/(6(H + 1)) − 1/(12 H)),
    which is 1/(H + 1) of it.
    """
    rng = np.random.default_rng(0)
    n, h, m = 4000, 50, 40
    centre = np.sort(rng.uniform(0.3, 0.7, n))
    hypotheses = centre[:, None] + 0.6 * (rng.random((n, h)) - 0.5)
    p = hypotheses.mean(axis=1)
    y = rng.random(n) < p
    bins = np.arange(n) // (n // m)
    raw, by_law = (
        metrics.decompose_eece(y, hypotheses, bins=bins, binning=binning)
        for binning in ("kmeans", "sorted_kmeans")
    )
    expected = 0.6**2 / 12 * (1 - 1 / h) * (1 - m / n)
    for parts, dispersion in ((raw, expected), (by_law, expected / (h + 1))):
        error = parts.bins.dispersion.std(ddof=1) / np.sqrt(m)
        assert abs(parts.dispersion - dispersion) < 4 * error
    # The labels add g², in each bin its mean times χ²_1.
    noise = np.mean(p * (1 - p)) * chi2.ppf(1 - 5e-4, m) / n
    assert by_law.eece < by_law.dispersion + noise < raw.dispersion - noise < raw.eece


def test_variance_does_not_cancel():
    hypotheses = np.full((3, 4), 0.7) + np.array([-1e-9, 1e-9, -1e-9, 1e-9])
    np.testing.assert_allclose(row_moments(hypotheses)[1], 1e-18, rtol=1e-6)


# --- Truth


def test_tece_of_injective_predictions_is_the_squared_error_of_the_mean():
    rng = np.random.default_rng(0)
    p, hypotheses = rng.random(50), rng.random((50, 4))
    value = metrics.true_epistemic_calibration_error(p, hypotheses)
    literal = np.mean(
        np.abs(((p[:, None] - hypotheses) ** 2).mean(axis=1) - hypotheses.var(axis=1))
    )
    assert value == pytest.approx(literal, abs=1e-15)
    assert value == pytest.approx(np.mean((p - hypotheses.mean(axis=1)) ** 2), abs=1e-15)


def test_tece_averages_over_level_sets():
    p = [0.2, 0.6, 0.9]
    hypotheses = [[0.3, 0.5], [0.3, 0.5], [0.5, 0.3]]
    assert metrics.true_epistemic_calibration_error(p, hypotheses) == pytest.approx(0.25 / 3)
    # With a reported uncertainty (r − Δ)² + variance − reported = 0 + 0.01 − 0.05.
    value = metrics.true_epistemic_calibration_error(
        [0.4], [[0.3, 0.5]], epistemic_uncertainty=[0.05]
    )
    assert value == pytest.approx(0.04)


def test_equal_rows_are_found_among_signed_zeros():
    first, second, third = group_equal_rows(np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]]))
    assert first == second != third


# --- Wrong input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_true": [-1, 1]}, "y_true must be labels"),
        ({"y_true": [0, 1, 1]}, "hypotheses has 2 samples"),
        ({"hypotheses": [0.1, 0.2]}, "hypotheses must have shape"),
        ({"hypotheses": [[0.1, np.nan], [0.2, 0.3]]}, "1 values that are NaN"),
        ({"hypotheses": [[0.1, 1.2], [0.2, 0.3]]}, r"hypotheses must be in \[0, 1\]"),
        ({"hypotheses": [["a"], ["b"]]}, "hypotheses must be real numbers"),
        ({"hypotheses": np.zeros((2, 0))}, "hypotheses must have shape"),
        ({"epistemic_uncertainty": [0.1]}, "epistemic_uncertainty has 1 samples"),
        ({"epistemic_uncertainty": [0.1, -0.1]}, "epistemic_uncertainty must be finite and >= 0"),
        ({"epistemic_uncertainty": [0.1, np.inf]}, "epistemic_uncertainty must be finite"),
        ({"bins": [0]}, "bins has 1 samples"),
        ({"bins": [0.0, 1.0]}, "bins must be integers"),
        ({"binning": "voronoi"}, "binning must be one of .*sorted_kmeans.* 'voronoi'"),
        ({"n_bins": 0}, "n_bins must be an integer >= 1"),
    ],
)
def test_wrong_arguments(change, message):
    arguments = {"y_true": [0, 1], "hypotheses": [[0.1, 0.2], [0.3, 0.4]]} | change
    y, hypotheses = arguments.pop("y_true"), arguments.pop("hypotheses")
    with pytest.raises(ValueError, match=message):
        metrics.expected_epistemic_calibration_error(y, hypotheses, **arguments)


def test_truth_must_be_a_probability():
    with pytest.raises(ValueError, match="p_true must be in"):
        metrics.true_epistemic_calibration_error([1.5], [[0.5]])
    with pytest.raises(ValueError, match="hypotheses has 1 samples"):
        metrics.true_epistemic_calibration_error([0.5, 0.5], [[0.5]])


def test_noise_floor_is_the_mean_calibration_part_of_a_calibrated_predictor():
    rng = np.random.default_rng(0)
    hypotheses = rng.beta(2, 3, (600, 5))
    p = hypotheses.mean(axis=1)
    # Of very different sizes, as bins of K-means are.
    bins = np.searchsorted([0.25, 0.3, 0.5], p)
    parts = [metrics.decompose_eece(rng.random(600) < p, hypotheses, bins=bins) for _ in range(400)]
    drawn = np.array([part.calibration for part in parts])
    error = drawn.std(ddof=1) / np.sqrt(len(drawn))
    # Four standard errors of the mean of the draws.
    assert abs(drawn.mean() - parts[0].noise_floor) < 4 * error
