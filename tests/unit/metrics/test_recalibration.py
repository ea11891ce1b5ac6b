import numpy as np
import pytest

from epistemic_calibration import metrics


def test_recalibration_finds_the_parameters_of_the_distortion():
    from scipy.special import expit, logit

    rng = np.random.default_rng(0)
    n, h = 20_000, 8
    logits = rng.normal(0, 1.5, n)[:, None] + rng.choice([0.3, 1.2], n)[:, None] * (
        rng.standard_normal((n, h))
    )
    mean, spread = logits.mean(axis=1), logits.std(axis=1)
    shift = 0.6 * mean + 0.3 - 0.5 * spread + 0.2 * mean * spread - mean
    true = expit(logits + shift[:, None])
    y = rng.random(n) < true.mean(axis=1)
    fitted = metrics.SecondOrderRecalibrator().fit(y, expit(logits))
    found = [fitted.scale_, fitted.shift_, fitted.spread_, fitted.interaction_]
    # Maximum likelihood errs by the inverse of Fisher's information.
    design = np.stack([mean, np.ones(n), spread, mean * spread], axis=1)
    p, slope = true.mean(axis=1), (true * (1 - true)).mean(axis=1)
    information = design.T @ (design * (slope**2 / (p * (1 - p)))[:, None])
    error = np.sqrt(np.linalg.inv(information).diagonal())
    np.testing.assert_array_less(np.abs(np.subtract(found, [0.6, 0.3, -0.5, 0.2])), 4 * error)
    # The dispersion of the logits is kept.
    after = logit(fitted.transform(expit(logits)))
    np.testing.assert_allclose(
        after - after.mean(axis=1, keepdims=True), logits - mean[:, None], atol=1e-10
    )


@pytest.mark.parametrize("change", [{"mean_error": 0.5}, {"dependence": 0.6}])
def test_recalibration_lowers_the_error_on_other_data(change, predictor):
    y, hypotheses, _ = predictor(4000, seed=1, **change)
    fitted = metrics.SecondOrderRecalibrator().fit(y, hypotheses)
    y, hypotheses, _ = predictor(4000, seed=2, **change)
    # Intervals that miss what they estimate once in 10 000 times.
    before, after = (
        metrics.corrected_epistemic_calibration_error(y, h, confidence_level=1 - 1e-4)
        for h in (hypotheses, fitted.transform(hypotheses))
    )
    assert after.ci_high < before.ci_low
    assert metrics.epistemic_calibration_test(y, hypotheses, n_resamples=99).p_value == 0.01


def test_recalibration_of_certain_and_separable_predictions():
    y = np.arange(200) % 2
    certain = np.repeat(y[:, None], 3, axis=1).astype(np.float32)
    after = metrics.SecondOrderRecalibrator().fit(y, certain).transform(certain)
    assert np.isfinite(after).all()
    assert metrics.brier_score(y, after.mean(axis=1)) < 1e-4


def test_recalibration_refuses_one_class():
    with pytest.raises(ValueError, match="both classes, got only 1"):
        metrics.SecondOrderRecalibrator().fit([1, 1], [[0.5], [0.6]])
    with pytest.raises(ValueError, match="clip must"):
        metrics.SecondOrderRecalibrator(clip=0.0)
