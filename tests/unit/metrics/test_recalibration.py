import numpy as np
import pytest
from scipy.special import expit, logit

from epistemic_calibration import metrics


def test_recalibration_finds_the_parameters_of_the_distortion():
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


# --- Whether to change anything


def parameters(model):
    return model.scale_, model.shift_, model.spread_, model.interaction_, model.dispersion_


@pytest.mark.parametrize("n_positive", [0, 1, 9])
def test_few_positives_change_nothing(n_positive):
    y = np.arange(1000) < n_positive
    # As wrong as can be, and still too few to say so.
    hypotheses = np.stack([y * 0.1 + 0.01, y * 0.2 + 0.01], axis=1).astype(np.float32)
    model = metrics.SecondOrderRecalibrator().fit(y, hypotheses)
    assert not model.changed_
    assert parameters(model) == (1, 0, 0, 0, 1)
    np.testing.assert_array_equal(model.transform(hypotheses), hypotheses)
    assert not metrics.SecondOrderRecalibrator().fit(~y, hypotheses).changed_


def test_a_calibrated_predictor_is_mostly_left_alone(predictor):
    changed = [
        metrics.SecondOrderRecalibrator().fit(*predictor(400, seed=seed)[:2]).changed_
        for seed in range(60)
    ]
    # Of what is fitted to noise, the gain in other folds is below 0 on average, so more than a
    # standard error above it happens in fewer than the 16 % of a normal deviate.
    assert np.mean(changed) < 0.16 + 2 * np.sqrt(0.16 * 0.84 / 60)


def test_rare_events_are_not_clipped_together():
    rng = np.random.default_rng(0)
    hypotheses = expit(rng.normal(-12, 2, (2000, 1)) + rng.normal(0, 0.3, (2000, 4)))
    y = np.arange(2000) % 100 == 0
    model = metrics.SecondOrderRecalibrator().fit(y, hypotheses)
    after = model.transform(hypotheses)
    assert len(np.unique(after)) == after.size
    # By the formula, on logits that nothing has clipped.
    logits = logit(hypotheses)
    m, s = logits.mean(axis=1), logits.std(axis=1)
    scale, shift, spread, interaction, _ = parameters(model)
    change = (scale - 1) * m + shift + spread * s + interaction * m * s
    np.testing.assert_allclose(logit(after), logits + change[:, None], rtol=1e-9)


def test_certain_hypotheses_are_as_certain_as_the_most_extreme_others():
    rng = np.random.default_rng(0)
    hypotheses = rng.uniform(0, 1, (200, 1))
    hypotheses[:3, 0] = 0, 1, 1e-7
    y = rng.random(200) < 0.3 + 0.4 * hypotheses[:, 0]
    model = metrics.SecondOrderRecalibrator().fit(y, hypotheses)
    zero, tiny, beyond, one, clip, half = model.transform(
        [[0.0], [1e-7], [1e-9], [1.0], [1 - 1e-4], [0.5]]
    ).ravel()
    assert zero == tiny == beyond < half < clip <= one < 1


# --- The dispersion


def counted(n, k, *, factor=1.0, h=20, seed=0):
    """Draw counts and hypotheses of Beta laws; the variance of p* is ``factor`` times theirs."""
    rng = np.random.default_rng(seed)
    mean, precision = rng.uniform(0.1, 0.9, n), rng.uniform(5, 20, n)
    of_p = (precision + 1) / factor - 1
    p = rng.beta(mean * of_p, (1 - mean) * of_p)
    rows = rng.beta((mean * precision)[:, None], ((1 - mean) * precision)[:, None], (n, h))
    return rng.binomial(k, p), rows, p


@pytest.mark.parametrize("factor", [0.4, 2.5])
@pytest.mark.parametrize("k", [2, 30])
def test_dispersion_makes_the_share_one_on_other_data(factor, k):
    s, rows, _ = counted(8000, k, factor=factor)
    model = metrics.SecondOrderRecalibrator().fit_counts(s, k, rows)
    # Fitted so that it is exactly that where it was fitted.
    same = metrics.second_order_error(s, k, model.transform(rows), n_bins=5)
    assert same.share.estimate == pytest.approx(1, abs=1e-3)
    other, rows, _ = counted(8000, k, factor=factor, seed=1)
    before = metrics.second_order_error(other, k, rows, n_bins=5).share
    after = metrics.second_order_error(other, k, model.transform(rows), n_bins=5).share
    # Both halves err: two independent errors of this size, once in 10 000.
    assert abs(after.estimate - 1) < 3.9 * np.sqrt(2) * after.standard_error
    assert not before.ci_low < 1 < before.ci_high
    assert (model.dispersion_ > 1) is (factor > 1)


def test_dispersion_keeps_the_means_and_the_order():
    s, rows, _ = counted(3000, 5, factor=2.5)
    rows[:5] = 0.3  # no spread
    rows[5:10, 0], rows[10:15, 0] = 0.0, 1.0
    model = metrics.SecondOrderRecalibrator().fit_counts(s, 5, rows)
    spread = model.transform(rows)
    assert model.dispersion_ > 1.2
    dispersion, model.dispersion_ = model.dispersion_, 1.0
    kept = model.transform(rows)
    np.testing.assert_allclose(spread.mean(axis=1), kept.mean(axis=1), atol=1e-9)
    np.testing.assert_array_equal(np.argsort(spread[15:], axis=1), np.argsort(kept[15:], axis=1))
    # The dispersion of the logits is τ times what it was.
    deviations = [f - f.mean(axis=1, keepdims=True) for f in (logit(spread), logit(kept))]
    np.testing.assert_allclose(deviations[0], dispersion * deviations[1], atol=1e-8)


def test_dispersion_of_the_law_needs_no_factor_for_draws():
    s, rows, _ = counted(4000, 4, factor=1.5, h=3)
    fits = {}
    for exchangeable, factor in ((True, 2.0), (False, 1.0)):
        model = metrics.SecondOrderRecalibrator()
        after = model.fit_counts(s, 4, rows, exchangeable=exchangeable).transform(rows)
        error = np.mean(s * (s - 1) / 12 - s / 2 * after.mean(axis=1) + after.mean(axis=1) ** 2)
        assert factor * after.var(axis=1).mean() == pytest.approx(error, rel=1e-3)
        fits[exchangeable] = model.dispersion_
    assert fits[False] > 1.2 * fits[True]


def test_the_mean_is_fitted_by_all_labels():
    rng = np.random.default_rng(3)
    s, rows, _ = counted(400, 6)
    rows = rows**3
    k = np.where(np.arange(400) < 100, 1, 6)
    s = np.minimum(s, k)
    y = np.concatenate([np.repeat([1, 0], [s[n], k[n] - s[n]]) for n in range(400)])
    order = rng.permutation(len(y))
    repeated = np.repeat(rows, k, axis=0)
    single = metrics.SecondOrderRecalibrator().fit(y[order], repeated[order])
    counts = metrics.SecondOrderRecalibrator().fit_counts(s, k, rows)
    assert single.changed_
    np.testing.assert_allclose(parameters(counts)[:4], parameters(single)[:4], atol=1e-4)
    # Inputs without labels say nothing.
    more = np.concatenate([rows, rows[:7]]), np.append(s, [0] * 7), np.append(k, [0] * 7)
    again = metrics.SecondOrderRecalibrator().fit_counts(more[1], more[2], more[0])
    assert parameters(again) == parameters(counts)


def test_a_right_dispersion_is_mostly_left_alone():
    left = []
    for seed in range(40):
        s, rows, _ = counted(500, 3, seed=seed)
        left.append(metrics.SecondOrderRecalibrator().fit_counts(s, 3, rows).dispersion_ == 1)
    # Within a standard error in 68 % of draws.
    assert np.mean(left) > 0.68 - 3 * np.sqrt(0.68 * 0.32 / 40)


def test_dispersion_that_cannot_be_fitted_stays():
    s, rows, _ = counted(500, 3, factor=2.5)
    one = metrics.SecondOrderRecalibrator().fit_counts(s, 3, rows[:, :1])
    assert one.dispersion_ == 1
    alike = np.repeat(rows[:, :1], 4, axis=1)
    assert metrics.SecondOrderRecalibrator().fit_counts(s, 3, alike).dispersion_ == 1
    with pytest.raises(ValueError, match="two labels or more"):
        metrics.SecondOrderRecalibrator().fit_counts(np.minimum(s, 1), 1, rows)
    # Nearly alike: no dispersion can say what the error is.
    alike[:3] += np.linspace(0, 0.01, 4)
    with pytest.warns(RuntimeWarning, match="the largest tried"):
        model = metrics.SecondOrderRecalibrator().fit_counts(s, 3, np.clip(alike, 0, 1))
    assert model.dispersion_ == 1024


def test_neither_order_nor_copies_nor_precision_of_inputs_matter():
    rng = np.random.default_rng(0)
    centre = rng.normal(0, 1, 400)
    rows = expit(1.4 * centre[:, None] + rng.normal(0, 0.5, (400, 8)))
    # Equal rows with other labels.
    rows[::7] = rows[0]
    s = rng.binomial(3, expit(centre))
    y = (s > 1).astype(int)
    new = rows[:5]

    def fitted(order, rows):
        of_labels = metrics.SecondOrderRecalibrator().fit(y[order], rows[order])
        of_counts = metrics.SecondOrderRecalibrator().fit_counts(s[order], 3, rows[order])
        return [model.transform(new).mean(axis=1) for model in (of_labels, of_counts)]

    first = fitted(np.arange(400), rows)
    np.testing.assert_allclose(fitted(rng.permutation(400), rows), first, rtol=1e-5)
    np.testing.assert_allclose(fitted(np.arange(400), rows.astype(np.float32)), first, rtol=1e-3)
