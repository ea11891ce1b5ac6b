"""One call evaluates a predictor: with the numbers of the single metrics, on one screen."""

import json
import math

import numpy as np
import pytest
from page_data import SETTINGS
from scipy.special import expit
from shipped import python
from sklearn.metrics import accuracy_score, brier_score_loss

from epistemic_calibration import evaluate, metrics
from epistemic_calibration.evaluation._plot import reliability
from epistemic_calibration.evaluation._text import shown
from epistemic_calibration.scores import Scorer


def predictor(n, *, n_hypotheses=20, slope=1.0, n_labels=0, seed=0):
    """Return labels and draws from the law of p*, bolder where the slope is above 1."""
    rng = np.random.default_rng(seed)
    logit, spread = rng.normal(-1, 1.5, n), 0.4
    p, *draws = (logit + spread * rng.standard_normal(n) for _ in range(n_hypotheses + 1))
    p, rows = expit(p), expit(slope * np.stack(draws, axis=1))
    counts = {"n_positive": rng.binomial(n_labels, p), "n_labels": n_labels} if n_labels else {}
    return (rng.random(n) < p).astype(int), rows, counts


@pytest.fixture(scope="module")
def result():
    return evaluate(*predictor(2000, slope=1.8)[:2])


def test_numbers_are_those_of_the_single_metrics():
    y, rows, counts = predictor(2000, slope=1.8, n_labels=3)
    found = evaluate(y, rows, **counts)
    mean = rows.mean(axis=1)
    assert found.accuracy.estimate == accuracy_score(y, mean > 0.5)
    assert found.brier.estimate == pytest.approx(brier_score_loss(y, mean), rel=1e-12)
    split = metrics.split_epistemic_calibration_error(y, rows)
    assert found.tece == split.total
    assert found.mean_miscalibration == split.mean_miscalibration
    assert found.epistemic_dependence == split.epistemic_dependence
    assert found.eece.eece == metrics.expected_epistemic_calibration_error(y, rows)
    assert found.tests["epistemic_calibration"] == metrics.epistemic_calibration_test(y, rows)
    assert found.tests["mean_calibration"] == metrics.mean_calibration_test(y, rows)
    assert found.tests["epistemic_independence"] == metrics.epistemic_independence_test(y, rows)
    assert found.second_order == metrics.second_order_error(**counts, hypotheses=rows)
    assert found.tests["second_order"] == metrics.second_order_test(**counts, hypotheses=rows)
    # (H + 1)/(H - 1) of the variance.
    assert found.reported_error.estimate == pytest.approx(21 / 19 * rows.var(axis=1).mean())
    bound = metrics.bounds_from_one_label(y, mean, mean).upper
    assert found.reducible_at_most.estimate == pytest.approx(bound.estimate)
    assert found.reducible_at_most.ci_high == pytest.approx(bound.ci_high)


def test_the_frame_agrees_with_the_scores_of_the_benchmark():
    y, rows, counts = predictor(2000, slope=1.8, n_labels=3)
    counts["n_labels"] = np.full(2000, counts["n_labels"])
    settings = SETTINGS | {"n_bins": 100, "binning": "kmeans", "corrected_n_bins": 50}
    settings["n_resamples"] = 999
    scored = Scorer({"y_true": y, "hypotheses": rows, **counts}, settings).rows()
    scored = {row["metric"]: row["value"] for row in scored}
    frame = evaluate(y, rows, **counts).to_frame().set_index("metric")
    both = frame.index.intersection(list(scored))
    assert len(both) >= 24
    for name in both:
        assert frame.loc[name, "value"] == pytest.approx(scored[name], rel=1e-12), name
        if f"{name}_low" in scored:
            assert frame.loc[name, "ci_low"] == pytest.approx(scored[f"{name}_low"])
            assert frame.loc[name, "ci_high"] == pytest.approx(scored[f"{name}_high"])
    tece = frame.loc["tece_corrected"]
    assert tece["points"] == pytest.approx(100 * math.sqrt(tece["value"]))


def test_the_interval_of_the_accuracy_is_wilsons():
    # 8 of 10 at 95 %: (0.8 + z²/20 ± z·sqrt(0.016 + z²/400)) / (1 + z²/10)
    found = evaluate([1] * 10, [[0.9]] * 8 + [[0.1]] * 2).accuracy
    assert (found.estimate, found.ci_low, found.ci_high) == pytest.approx(
        (0.8, 0.490162, 0.943318), abs=1e-6
    )


@pytest.mark.parametrize(
    ("n", "n_bins", "expected"),
    [
        (11, None, (1, 1)),
        (60, None, (3, 6)),
        (999, None, (49, 99)),
        (10_000, None, (50, 100)),
        (60, 30, (30, 60)),
        (60, 2, (2, 4)),
    ],
)
def test_bins_follow_the_number_of_inputs(n, n_bins, expected):
    found = evaluate(np.arange(n) % 2, np.full((n, 2), 0.5), n_bins=n_bins)
    assert (found.n_bins, found.eece_n_bins) == expected


@pytest.mark.fault
@pytest.mark.parametrize("n", [1, 2, 10])
def test_of_few_inputs_it_says_what_cannot_be_said(n):
    y, rows, counts = predictor(n, n_labels=3)
    found = evaluate(y, rows, **counts)
    assert found.tece is found.eece is found.second_order is None and found.tests == {}
    assert found.brier.estimate == pytest.approx(np.mean((y - rows.mean(axis=1)) ** 2))
    assert 0 <= found.brier.ci_low <= found.brier.estimate <= found.brier.ci_high <= 1
    assert f"Nothing can be said of calibration from {n} input" in str(found)
    assert evaluate(*predictor(11)[:2]).tece is not None


def test_the_size_of_a_known_error_is_told():
    # Half of the labels are 1 where 0.3 is predicted: off by 20 points.
    y = np.arange(4000) % 2
    found = evaluate(y, np.full((4000, 3), 0.3))
    assert "off by about 20.0 points" in found.judgement["mean"]
    assert "mostly in the mean" in found.judgement["mean"]
    # Of all inputs 50 % are 1: that is a shift, which the choice of inputs may have made.
    assert "30.0 % are predicted and 50.0 % seen" in found.judgement["mean"]
    # The hypotheses agree, so the method says that it is not off at all.
    assert "too small: it says 0 points" in found.judgement["size"]


def test_dependence_is_told_from_miscalibration():
    # The mean is right, but where the hypotheses disagree the label is always 1.
    y = np.repeat([1, 0], 1000)
    rows = np.repeat([[0.25, 0.75, 0.5], [0.5, 0.5, 0.5]], 1000, axis=0)
    found = evaluate(y, rows)
    assert "off by about 50.0 points" in found.judgement["mean"]
    assert "mostly where the spread tells" in found.judgement["mean"]


def test_absence_of_evidence_is_told():
    found = evaluate(np.arange(500) % 2, np.full((500, 4), 0.5))
    unseen = 100 * math.sqrt(found.tece.minimum_detectable)
    assert "No error of the probabilities is seen with 500 inputs" in found.judgement["mean"]
    assert f"an error of less than {unseen:.1f} points" in found.judgement["mean"]
    assert f"least that can be seen       {unseen:.1f} points" in str(found)


def test_an_uncertainty_above_the_brier_score_is_too_large():
    # Hypotheses of 0 and 1: the variance is 1/4, with its factor 5/12, and the Brier score 1/4.
    rows = np.tile([0.0, 1.0, 0.0, 1.0], (200, 1))
    found = evaluate(np.arange(200) % 2, rows)
    assert found.reported_error.estimate == pytest.approx(5 / 12)
    assert "too large" in found.judgement["size"]
    law = evaluate(np.arange(200) % 2, rows, exchangeable=False)
    assert law.reported_error.estimate == pytest.approx(1 / 4)


def test_with_several_labels_the_size_is_judged():
    y, rows, counts = predictor(4000, n_labels=10)
    assert "cannot be told from right" in evaluate(y, rows, **counts).judgement["size"]
    mean = rows.mean(axis=1, keepdims=True)
    half = evaluate(y, mean + (rows - mean) / np.sqrt(2), **counts)
    assert half.second_order.share.estimate == pytest.approx(0.5, abs=0.1)
    assert half.judgement["size"].startswith("The uncertainty is too small: it reports ")
    assert "slope" in half.judgement["size"] and "fit_counts can repair" in half.judgement["size"]
    double = evaluate(y, np.clip(mean + (rows - mean) * 1.5, 0, 1), **counts)
    assert double.judgement["size"].startswith("The uncertainty is too large: it reports ")


def test_a_reported_uncertainty_is_what_is_judged():
    y, rows, counts = predictor(1000, n_labels=5)
    found = evaluate(y, rows, epistemic_uncertainty=np.full(1000, 0.2), **counts)
    assert found.reported_error.estimate == pytest.approx(0.2)
    assert found.second_order.uncertainty.estimate == pytest.approx(0.2)
    assert "second_order" not in found.tests
    assert "too large" in found.judgement["size"]


def test_one_hypothesis_has_no_uncertainty():
    y, rows, counts = predictor(500, n_labels=5)
    found = evaluate(y, rows[:, :1], **counts)
    assert found.reported_error is found.second_order is None
    assert "no uncertainty to judge" in str(found)
    assert found.tece.estimate == pytest.approx(
        metrics.corrected_epistemic_calibration_error(y, rows[:, :1], n_bins=25).estimate
    )


def test_what_weakens_the_numbers_is_said():
    y, rows, _ = predictor(200)
    many = evaluate(y, rows, n_bins=100)
    assert many.eece.dispersion < 1e-3
    assert any("W is near 0 by construction" in line for line in many.warnings)
    assert not any("W is near 0" in line for line in evaluate(y, rows).warnings)
    rare = np.zeros(200, dtype=int)
    rare[:5] = 1
    assert any("Only 5 inputs have the label 1" in w for w in evaluate(rare, rows).warnings)
    assert any("All labels are 0" in w for w in evaluate(rare * 0, rows).warnings)
    few = evaluate(y, rows, n_positive=y, n_labels=np.r_[[2] * 10, [1] * 190])
    assert few.second_order is None
    assert any("Only 10 inputs have two labels" in line for line in few.warnings)


@pytest.mark.parametrize("n", [1, 11, 500])
@pytest.mark.parametrize("n_labels", [0, 2])
@pytest.mark.parametrize("n_hypotheses", [1, 2, 20])
@pytest.mark.parametrize("rare", [False, True])
def test_the_summary_is_one_screen(n, n_labels, n_hypotheses, rare):
    y, rows, counts = predictor(n, n_hypotheses=n_hypotheses, n_labels=n_labels, slope=3)
    found = evaluate(y * (1 - rare), rows, **counts)
    lines = str(found).splitlines()
    assert len(lines) <= 50 and max(map(len, lines)) <= 80 and "nan" not in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_summary_is_as_wide_as_the_terminal(result, monkeypatch):
    assert repr(result) == str(result)
    for columns, widest in (("66", 66), ("200", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        assert widest - 15 < max(map(len, str(result).splitlines())) <= widest


def test_two_figures_of_the_interval_are_shown():
    for ends, expected in (
        ((6.42, 5.2, 7.7), "6.4 [5.2, 7.7]"),
        ((-0.01, 0, 0.012), "0.000 [0, 0.012]"),
        ((-0.3, -1.2, 0.6), "−0.3 [−1.2, 0.6]"),
        ((72, 40, 130), "72 [40, 130]"),
        ((2, 1.5, math.inf), "2.0 [1.5, ∞]"),
    ):
        assert shown(metrics.Estimate(ends[0], 1.0, *ends[1:], 0.95)) == expected


def test_the_ranking_is_that_of_the_metric():
    y, rows, counts = predictor(1000, n_labels=3)
    own = rows.mean(axis=1) ** 2
    found = evaluate(y, rows, prediction=own, **counts)
    assert found.ranking == metrics.error_ranking(y, rows, prediction=own, **counts)
    entropy = evaluate(y, rows, kind_of_uncertainty="mutual_information")
    expected = metrics.error_ranking(y, rows, kind_of_uncertainty="mutual_information")
    assert entropy.ranking == expected and "mutual information" in str(entropy)
    # What a mutual information is has no size.
    reported = evaluate(
        y, rows, epistemic_uncertainty=own * 9, kind_of_uncertainty="mutual_information"
    )
    assert reported.reported_error == entropy.reported_error
    by_own = metrics.error_ranking(y, rows, epistemic_uncertainty=own)
    kept = [r.by_uncertainty.kept_error_80.estimate for r in (reported.ranking, by_own)]
    assert kept[0] == kept[1]


def ranked_by(uncertainty, y, rows):
    # A variance of a probability is at most 1/4.
    variance = uncertainty / (4 * np.max(uncertainty))
    return evaluate(y, rows, epistemic_uncertainty=variance).judgement["ranking"]


def test_the_order_of_the_uncertainty_is_judged():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 1, 4000)
    y = (rng.random(4000) < p).astype(int)
    rows = np.clip(p[:, None] + [-0.01, 0.01], 0, 1)
    assert "tells where it errs, as well as" in ranked_by(p * (1 - p), y, rows)
    less = p * (1 - p) + rng.uniform(0, 0.2, 4000)
    assert "but less well than the prediction itself" in ranked_by(less, y, rows)
    assert "and better than the prediction" in ranked_by(abs(y - p), y, rows)
    assert "cannot be seen" in ranked_by(rng.random(4000), y, rows)
    # Half of the sure ones in another order: at 90 % nothing changes.
    other = np.where(p * (1 - p) < 0.15, rng.uniform(0, 0.15, 4000), p * (1 - p))
    judged = ranked_by(other, y, rows)
    assert "but less well than the prediction itself over all coverages" in judged
    assert "small where it errs" in ranked_by(1 - p * (1 - p), y, rows)
    assert "No prediction is wrong" in ranked_by(p, (p > 0.5).astype(int), rows)


def test_controls_report_as_much_and_know_nothing():
    y, rows, counts = predictor(4000, n_labels=10)
    found = evaluate(y, rows, **counts)
    mean, share = rows.mean(axis=1), found.second_order.share.estimate
    error = found.second_order.reducible.estimate
    product = found.controls["product"]
    assert product["share"].estimate == pytest.approx(np.mean(mean * (1 - mean)) / error)
    for name in ("constant", "shuffled"):
        assert found.controls[name]["share"].estimate == pytest.approx(share)
    slope = found.controls["shuffled"]["slope"]
    assert slope.ci_low < 0 < slope.ci_high < 1
    assert math.isnan(found.controls["constant"]["slope"].estimate)
    shuffled = np.random.default_rng(1).permutation(rows.var(axis=1))
    wrong = evaluate(y, rows, epistemic_uncertainty=shuffled * 21 / 19, **counts)
    assert wrong.judgement["size"].startswith("The uncertainty is on the wrong inputs: its slope")


def test_an_uncertainty_of_the_prediction_alone_is_told():
    # Labels are nearly certain, so that Δ(1 − Δ) is about the squared error.
    rng = np.random.default_rng(2)
    p = (rng.random(3000) < 0.5) * 0.98 + 0.01
    mean = np.where(rng.random(3000) < 0.8, p, 1 - p) * 0.6 + 0.2
    votes = (rng.random((3000, 40)) < mean[:, None]).astype(float)
    found = evaluate(p > 0.5, votes, n_positive=rng.binomial(4, p), n_labels=4)
    assert found.warnings[0].startswith("All hypotheses are votes of 0 or 1")
    assert any("Whoever reports Δ(1 − Δ)" in line for line in found.warnings)


def test_an_own_prediction_is_what_is_judged_and_the_hypotheses_size_is_theirs(result):
    y, rows, _ = predictor(2000, slope=1.8)
    q = np.random.default_rng(0).uniform(0.1, 0.4, 2000)
    own = evaluate(y, rows, prediction=q)
    assert own.brier.estimate == pytest.approx(np.mean((y - q) ** 2))
    assert own.reducible_at_most == result.reducible_at_most
    assert own.reported_error == result.reported_error and own.eece.eece == result.eece.eece
    sample = metrics.Sample(y, rows, prediction=q)
    assert own.tece == metrics.split_epistemic_calibration_error(sample).total
    assert own.tests["mean_calibration"] == metrics.mean_calibration_test(sample)
    assert "1 Are the probabilities right? (of the prediction given)" in str(own)
    assert "and the error may be 0 to" in own.judgement["size"]
    # That of the mean of the hypotheses is theirs without one.
    assert evaluate(y, rows, prediction=rows.mean(axis=1)).tece.estimate == pytest.approx(
        result.tece.estimate
    )


@pytest.mark.fault
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_positive": [1] * 20}, "n_labels is missing"),
        ({"n_positive": [1] * 19, "n_labels": 2}, r"n_positive has shape \(19,\)"),
        ({"n_positive": [3] * 20, "n_labels": 2}, "n_positive must be at most n_labels"),
        ({"prediction": [0.5] * 19}, r"prediction has shape \(19,\)"),
        ({"epistemic_uncertainty": [-1.0] * 20}, "epistemic_uncertainty .* values >= 0"),
        ({"confidence_level": 1}, "confidence_level must lie between"),
        ({"n_bins": 0}, "n_bins must be"),
        ({"n_bins": 11}, "n_bins must be at most 10"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        evaluate(np.arange(20) % 2, np.full((20, 2), 0.5), **arguments)


def test_reliability_has_frequencies_and_wilsons_intervals():
    y = np.r_[[1] * 8, [0] * 2, [0] * 10]
    predicted, frequency, low, high = reliability(y, np.repeat([0.7, 0.1], 10), 2, 0.95)
    np.testing.assert_allclose(predicted, [0.1, 0.7])
    np.testing.assert_allclose(frequency, [0, 0.8])
    np.testing.assert_allclose(low, [0, 0.490162], atol=1e-6)
    np.testing.assert_allclose(high, [0.277533, 0.943318], atol=1e-6)


@pytest.mark.parametrize(("n", "n_labels", "n_hypotheses"), [(1, 3, 3), (2000, 0, 20), (15, 0, 1)])
def test_the_figure_has_a_panel_for_each_question(tmp_path, n, n_labels, n_hypotheses):
    y, rows, counts = predictor(n, n_labels=n_labels, n_hypotheses=n_hypotheses)
    path = tmp_path / "figure.png"
    axes = evaluate(y, rows, **counts).plot(path).axes
    assert path.stat().st_size > 10_000
    assert len(axes) == 3
    if n == 2000:
        _, middle, right = axes
        assert middle.get_xlim() == middle.get_ylim()
        errors = 100 * np.mean((rows.mean(axis=1) > 0.5) != y)
        assert right.lines[0].get_xydata()[-1] == pytest.approx([100, errors])
        assert right.lines[0].get_xdata()[0] == pytest.approx(100 / n)


HOOK = """
import sys
class Forbid:
    names = "torch snakemake pydantic laplace matplotlib yaml PIL tabulate".split()
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"{name} is forbidden", name=name)
sys.meta_path.insert(0, Forbid())
import numpy as np
from epistemic_calibration import cli, evaluate, metrics, predictions
assert not {"scipy", "sklearn", "pandas"} & set(sys.modules)
result = evaluate(np.arange(100) % 2, np.full((100, 3), 0.5), n_positive=[1] * 100, n_labels=2)
print(result)
result.to_frame()
from epistemic_calibration.methods import load_method
from epistemic_calibration.methods._check import check_method
assert not any(o.fault for o in check_method(load_method("random_forest")))
try:
    result.plot("figure.png")
except ModuleNotFoundError as error:
    print(error)
"""


def test_metrics_predictions_and_the_command_need_no_heavy_library():
    assert "matplotlib is forbidden" in python("-c", HOOK).stdout
