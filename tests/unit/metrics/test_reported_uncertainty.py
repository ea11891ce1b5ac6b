import dataclasses

import numpy as np
import pytest

from epistemic_calibration import metrics


def reports(rows):
    variance = rows.var(axis=1)
    rng = np.random.default_rng(1)
    return {
        "variance": variance,
        "zero": np.zeros(len(rows)),
        "ten times": 10 * variance,
        "constant": np.full(len(rows), 1 / 6),
        "shuffled": rng.permutation(variance),
    }


def test_parts_by_hand():
    # Two bins: frequencies 3/4 and 1/2, predictions 1/2; V − EU is 1/16 and −1/16.
    y, rows = [1, 1, 1, 0, 1, 1, 0, 0], np.tile([0.25, 0.75], (8, 1))
    reported = np.repeat([0.0, 0.125], 4)
    error = metrics.reported_uncertainty_error(
        y, rows, epistemic_uncertainty=reported, bins=np.repeat([0, 1], 4)
    )
    # Σ_{i≠k} e_i e_k / 12 = ((Σe)² − 1)/12.
    squares = np.array([(1 - 1) / 12, (0 - 1) / 12])
    assert error.calibration.estimate == pytest.approx(squares.mean())
    assert error.reporting.estimate == pytest.approx(0)
    assert error.signed.estimate == pytest.approx(squares.mean())
    gaps = squares + np.array([1 / 16, -1 / 16])
    assert error.binned == pytest.approx(np.abs(gaps).mean())
    assert error.lower.estimate == pytest.approx((gaps[0] - gaps[1]) / 2)
    # Each bin is divided by the sign by default, and one row is one bin.
    same = metrics.reported_uncertainty_error(y, rows, epistemic_uncertainty=reported)
    assert same.binned == pytest.approx(error.binned)


@pytest.mark.parametrize("binning", ["nested", "quantile"])
def test_by_default_it_is_the_corrected_error(binning, predictor):
    y, rows, _ = predictor(2000, mean_error=0.4)
    error = metrics.reported_uncertainty_error(y, rows, binning=binning)
    corrected = metrics.corrected_epistemic_calibration_error(y, rows, binning=binning)
    expected = pytest.approx(dataclasses.asdict(corrected), rel=1e-12)
    assert dataclasses.asdict(error.calibration) == expected
    assert error.reporting.estimate == 0
    assert error.lower == error.signed
    assert error.signed.estimate == corrected.estimate
    # A variance that was rounded to 32 bits is the variance.
    again = metrics.reported_uncertainty_error(
        y, rows, epistemic_uncertainty=rows.var(axis=1).astype(np.float32), binning=binning
    )
    assert again.lower.estimate == pytest.approx(error.lower.estimate, abs=1e-7)


@pytest.mark.parametrize("name", ["variance", "zero", "ten times", "constant", "shuffled"])
@pytest.mark.parametrize("error", [0.0, 0.3])
def test_bounds_and_estimates_against_the_truth(name, error, predictor):
    y, rows, off = predictor(8000, mean_error=error)
    true = rows.mean(axis=1) + off
    reported = reports(rows)[name]
    tece = metrics.true_epistemic_calibration_error(true, rows, epistemic_uncertainty=reported)
    found = metrics.reported_uncertainty_error(
        y, rows, epistemic_uncertainty=reported, confidence_level=1 - 1e-4
    )
    signed = np.mean(off**2 + rows.var(axis=1) - reported)
    assert found.signed.ci_low <= signed <= found.signed.ci_high
    assert found.lower.ci_low <= tece
    assert found.signed.estimate == pytest.approx(
        found.calibration.estimate + found.reporting.estimate
    )
    # Wherever EU is wrong, the bound sees most of it: signs are known, and bins hide little.
    if name != "variance":
        assert found.lower.ci_high >= 0.9 * tece
        assert found.lower.estimate > 0.7 * tece
        # Which the errors of the hypotheses alone do not show.
        assert found.calibration.estimate < 0.5 * tece or error > 0
    assert found.binned > 0.8 * tece


def test_intervals_cover_as_often_as_they_say(predictor):
    covered, above = [], []
    # Of the population: E[(0.3(1/2 − Δ))²] by many draws, and EU is the variance.
    population = np.mean(predictor(200_000, mean_error=0.3, seed=999)[2] ** 2)
    for seed in range(200):
        y, rows, off = predictor(600, mean_error=0.3, seed=seed)
        true = rows.mean(axis=1) + off
        reported = reports(rows)["shuffled"]
        found = metrics.reported_uncertainty_error(
            y,
            rows,
            epistemic_uncertainty=reported,
            binning="quantile",
            n_bins=16,
            confidence_level=0.9,
        )
        covered.append(found.signed.ci_low <= population <= found.signed.ci_high)
        tece = metrics.true_epistemic_calibration_error(true, rows, epistemic_uncertainty=reported)
        above.append(found.lower.ci_low > tece)
    assert abs(np.mean(covered) - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 200)
    assert np.mean(above) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_samples_alone_meet():
    from epistemic_calibration.metrics.reported_uncertainty import _divided

    labels = np.array([0, 0, 1, 1, 1, 2, 3, 3, 3, 3])
    below = np.array([1, 0, 1, 0, 0, 1, 1, 1, 0, 0], dtype=bool)
    divided = _divided(labels, below)
    groups = [set(np.flatnonzero(divided == d)) for d in np.unique(divided)]
    assert sorted(map(sorted, groups)) == [[0, 1], [2, 3, 4], [5], [6, 7], [8, 9]]


def test_arguments_are_checked(predictor):
    y, rows, _ = predictor(50)
    with pytest.raises(ValueError, match="finite and >= 0"):
        metrics.reported_uncertainty_error(y, rows, epistemic_uncertainty=np.full(50, -0.1))
    with pytest.raises(ValueError, match="use fewer bins"):
        metrics.reported_uncertainty_error(y, rows, bins=np.arange(50))
    sample = metrics.Sample(y, rows, epistemic_uncertainty=np.full(50, 0.1))
    by_sample = metrics.reported_uncertainty_error(sample, n_bins=4)
    given = metrics.reported_uncertainty_error(
        y, rows, epistemic_uncertainty=np.full(50, 0.1), n_bins=4
    )
    assert by_sample == given
    assert "lower" in repr(given)
