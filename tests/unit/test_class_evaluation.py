"""One call evaluates a predictor of several classes: the numbers of the metrics, on one screen."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from epistemic_calibration import evaluate, metrics
from epistemic_calibration.evaluation._comparison import Comparison, compare
from epistemic_calibration.predictions import as_predictions

NAMES = ["cat", "dog", "eel"]


def predictor(n, *, n_hypotheses=6, exponent=1.0, n_labels=0, seed=0):
    """Return labels and draws from the law of p*, bolder where the exponent is above 1."""
    rng = np.random.default_rng(seed)
    base = rng.dirichlet([2, 1, 1], n)[:, None]
    draws = rng.standard_gamma(np.repeat(20 * base, n_hypotheses + 1, axis=1)) + 1e-9
    draws /= draws.sum(axis=2, keepdims=True)
    p, rows = draws[:, 0], draws[:, 1:] ** exponent
    rows = rows / rows.sum(axis=2, keepdims=True)
    y = (rng.random((n, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return y, rows, rng.multinomial(n_labels, p)


Y, ROWS, COUNTS = predictor(700, exponent=1.8, n_labels=4)
#: Each input twice, in any order.
OF_COPY = np.random.default_rng(0).permutation(np.repeat(np.arange(700), 2))


@pytest.fixture(scope="module")
def result():
    return evaluate(Y, ROWS, class_names=NAMES, label_counts=COUNTS)


def test_numbers_are_those_of_the_single_metrics(result):
    mean = ROWS.mean(axis=1)
    assert result.accuracy.estimate == accuracy_score(Y, mean.argmax(axis=1))
    assert result.confidence == pytest.approx(mean.max(axis=1).mean())
    distances = np.square(np.eye(3)[Y] - mean).sum(axis=1)
    assert result.brier.estimate == pytest.approx(distances.mean())
    assert result.reducible_at_most.estimate == pytest.approx(distances.mean() / 3)
    options = {"n_bins": result.n_bins}
    assert result.n_bins == 35
    task = metrics.top_label_task(Y, ROWS, **options)
    second = metrics.classwise_second_order_error(COUNTS, ROWS, **options).mean
    single = {
        "tece": metrics.classwise_epistemic_calibration_error(Y, ROWS, **options).mean,
        "top_label": metrics.top_label_epistemic_calibration_error(Y, ROWS, **options),
    }
    tests = {
        "canonical": metrics.canonical_epistemic_calibration_test(Y, ROWS, **options),
        "top_label": metrics.epistemic_calibration_test(
            task.y_true, task.hypotheses, bins=task.bins
        ),
    }
    pairs = [(getattr(result, name), error) for name, error in single.items()]
    pairs += [(result.tests[f"{name}_calibration"], test) for name, test in tests.items()]
    pairs += [(getattr(result.second_order, n), getattr(second, n)) for n in ("share", "gap")]
    # Probabilities are normalised twice, which may move the last digit.
    for found, expected in pairs:
        assert asdict(found) == pytest.approx(asdict(expected), rel=1e-9, abs=1e-15)
    joint = metrics.canonical_epistemic_calibration_error(Y, ROWS, **options)
    # It cannot be smaller than its parts, which are surely above 0 here.
    parts = joint.estimate, result.top_label.estimate, 3 * result.tece.estimate
    assert min(result.top_label.ci_low, result.tece.ci_low) > 0
    assert result.canonical.estimate == pytest.approx(max(parts))
    # (H + 1)/(H − 1) of the variance.
    assert result.reported_error.estimate == pytest.approx(7 / 5 * ROWS.var(axis=1).mean())


def test_classes_are_evaluations_of_each_against_the_others(result):
    """The intake of several classes normalises probabilities, so that the last digits differ."""
    frame = result.to_frame()
    for c, name in enumerate(NAMES):
        single = evaluate(
            (c == Y).astype(int),
            ROWS[:, :, c],
            n_positive=COUNTS[:, c],
            n_labels=COUNTS.sum(axis=1),
        )
        found = result.tece_of_classes[name]
        assert found.estimate == pytest.approx(single.tece.estimate, abs=1e-12)
        assert found.ci_high == pytest.approx(single.tece.ci_high, abs=1e-12)
        sizes = result.second_order_of_classes[name]
        assert sizes.share.estimate == pytest.approx(single.second_order.share.estimate)
        of_class = frame[frame["class"] == name].set_index("metric")
        assert of_class.loc["tece_corrected", "value"] == found.estimate
    estimates = [error.estimate for error in result.tece_of_classes.values()]
    assert result.worst_class == NAMES[int(np.argmax(estimates))]
    # Of three classes at 95 % together.
    assert result.worst.estimate == max(estimates)
    assert result.worst.confidence_level == pytest.approx(1 - 0.05 / 3)
    assert result.worst.ci_low < result.tece_of_classes[result.worst_class].ci_low


def test_two_classes_are_the_binary_evaluation():
    y, rows = (Y > 0).astype(int), ROWS[:, :, 1:].sum(axis=2)
    counts = np.stack([COUNTS[:, 0], COUNTS[:, 1:].sum(axis=1)], axis=1)
    binary = evaluate(y, rows, n_positive=counts[:, 1], n_labels=counts.sum(axis=1))
    two = np.stack([1 - rows, rows], axis=2)
    names = np.array(["no", "yes"])
    found = evaluate(names[y], two.transpose(1, 0, 2), class_names=names, label_counts=counts)
    assert "% 'yes')" in str(found).splitlines()[0]
    assert str(found).splitlines()[2:] == str(binary).splitlines()[2:]
    pd.testing.assert_frame_equal(found.to_frame(), binary.to_frame())


@pytest.mark.parametrize("several_labels", [True, False])
def test_the_summary_is_one_screen_and_names_the_classes(several_labels):
    counts = COUNTS if several_labels else None
    found = evaluate(Y, ROWS, class_names=NAMES, label_counts=counts)
    lines = str(found).splitlines()
    assert len(lines) <= 50 and max(map(len, lines)) <= 80
    assert f"the worst, '{found.worst_class}'" in str(found)
    assert "too sure on average" in found.judgement["mean"]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["class_names"] == NAMES


def test_groups_reach_every_interval_of_several_classes():
    y, rows, counts = Y[OF_COPY], ROWS[OF_COPY], COUNTS[OF_COPY]
    copied = evaluate(y, rows, label_counts=counts, groups=OF_COPY)
    assert (copied.n_groups, copied.n_bins) == (700, 35)
    options = {"n_bins": 35, "groups": OF_COPY}
    top = metrics.top_label_epistemic_calibration_error(y, rows, **options)
    assert asdict(copied.top_label) == pytest.approx(asdict(top), nan_ok=True)
    once = evaluate(Y, ROWS, label_counts=COUNTS)
    for found, expected in (
        (copied.brier, once.brier),
        (copied.reported_error, once.reported_error),
        (copied.second_order.share, once.second_order.share),
    ):
        assert found.ci_high == pytest.approx(expected.ci_high, rel=1e-6)


def test_binary_groups_reach_every_interval_and_test():
    y, rows = (Y == 0).astype(int), ROWS[:, :, 0]
    counts = {"n_positive": COUNTS[:, 0], "n_labels": COUNTS.sum(axis=1)}
    once = evaluate(y, rows, **counts)
    copied = evaluate(
        y[OF_COPY], rows[OF_COPY], **{n: c[OF_COPY] for n, c in counts.items()}, groups=OF_COPY
    )
    assert set(copied.tests) == {"epistemic_calibration", "mean_calibration"}
    kept = (e.ranking.difference.kept_error_90 for e in (copied, once))
    assert len({round(k.standard_error, 3) for k in kept}) == 1
    split = metrics.split_epistemic_calibration_error(
        y[OF_COPY], rows[OF_COPY], n_bins=35, groups=OF_COPY
    )
    for found, expected in (
        (copied.tece, split.total),
        (copied.epistemic_dependence, split.epistemic_dependence),
    ):
        assert asdict(found) == pytest.approx(asdict(expected), nan_ok=True)
    assert copied.second_order.share.ci_low == pytest.approx(once.second_order.share.ci_low)
    assert copied.brier.ci_high == pytest.approx(once.brier.ci_high)
    assert "1,400 inputs in 700 groups" in str(copied)
    copied.plot()


def test_few_inputs_and_one_hypothesis():
    found = evaluate(Y[:9], ROWS[:9, :1], label_counts=COUNTS[:9])
    assert found.tece is found.top_label is found.second_order is None
    assert "Nothing can be said of calibration from 9 inputs" in str(found)
    assert "no uncertainty to judge" in str(found)
    assert "tece_classwise" not in found.to_frame()["metric"].tolist()
    one = evaluate(Y, ROWS[:, :1])
    assert one.reported_error is None and one.top_label is not None


@pytest.mark.fault
def test_rare_and_absent_classes_are_named():
    y = np.where(Y == 2, 1, Y)
    y[:5] = 2
    assert "Fewer than 30 inputs have the label 'eel'" in str(evaluate(y, ROWS, class_names=NAMES))
    y[:5] = 0
    assert "No input has the label 'eel'." in str(evaluate(y, ROWS, class_names=NAMES))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_positive": Y, "n_labels": Y}, "several labels per input are label_counts"),
        ({"prediction": Y}, "prediction is not taken with several classes"),
        ({"label_counts": COUNTS[:, :2]}, "label_counts has shape"),
        ({"axes": "hnc"}, "axes='hnc' its axis 1 is the samples"),
        ({"class_names": ["a"]}, "it has 3 classes; class_names has 1"),
        ({"n_bins": 351}, "n_bins must be at most 350"),
        ({"groups": np.zeros(700)}, "without two groups"),
        ({"hypotheses": ROWS[:, :, 0], "axes": "nhc"}, "axes is for hypotheses of three axes"),
    ],
)
def test_what_several_classes_do_not_take(changes, words):
    with pytest.raises(ValueError, match=words):
        evaluate(**{"y_true": Y, "hypotheses": ROWS, **changes})


@pytest.mark.parametrize("several_labels", [True, False])
def test_the_figure_shows_reliability_size_and_ranking(tmp_path, several_labels):
    found = evaluate(Y, ROWS, class_names=NAMES, label_counts=COUNTS if several_labels else None)
    _, middle, right = found.plot(tmp_path / "f.png").axes
    assert ("Range" in middle.get_ylabel()) != several_labels
    wrong = 100 * np.mean(ROWS.mean(axis=1).argmax(axis=1) != Y)
    assert [line.get_ydata()[-1] for line in right.lines] == pytest.approx([wrong, wrong])
    assert (tmp_path / "f.png").stat().st_size > 5000
    evaluate(Y[:9], ROWS[:9]).plot(tmp_path / "few.svg")


def test_the_ranking_of_classes_is_that_of_the_metric(result):
    expected = metrics.error_ranking(Y, ROWS, label_counts=COUNTS)
    for name in ("kept_error_90", "augrc", "auroc_of_errors"):
        a, b = (getattr(r.difference, name) for r in (result.ranking, expected))
        assert asdict(a) == pytest.approx(asdict(b), nan_ok=True)
    # All of the squared error is what the second question calls the error at one input.
    squared, error = result.ranking.squared.error, result.second_order.reducible
    assert squared.estimate == pytest.approx(error.estimate)


# Comparisons.


def compared(files) -> Comparison:
    """Compare predictions, which give what `evaluate` takes."""
    return compare({name: evaluate(**p) for name, p in files.items()})


def test_comparison_is_that_of_the_tasks():
    y, better, _ = predictor(700)
    files = {
        "a": as_predictions(y, better),
        "b": as_predictions(y, better**3 / np.sum(better**3, axis=2, keepdims=True)),
    }
    found = compared(files)
    assert "a is better calibrated than b, on average over classes" in found.judgement[0]
    tasks = [(y == c).astype(int) for c in range(3)]
    rows = {n: p["hypotheses"].astype(float) for n, p in files.items()}
    rows = {n: r / r.sum(axis=2, keepdims=True) for n, r in rows.items()}
    means = {n: list(r.mean(axis=1).T) for n, r in rows.items()}
    loss = {n: np.square(np.eye(3)[y] - r.mean(axis=1)).sum(axis=1) for n, r in rows.items()}
    pair = found.pairs["a", "b"]
    assert found.evaluations["a"].brier.estimate == pytest.approx(loss["a"].mean(), rel=1e-6)
    assert pair.brier.estimate == pytest.approx((loss["a"] - loss["b"]).mean(), rel=1e-5)
    kept = [found.evaluations[n].ranking.by_uncertainty.kept_error_90.estimate for n in "ab"]
    assert pair.kept_error_90.estimate == pytest.approx(kept[0] - kept[1])
    bins = {
        n: [metrics.assign_bins(r[:, :, c], n_bins=35, binning="nested") for c in range(3)]
        for n, r in rows.items()
    }
    expected = metrics.compare_mean_corrected_errors(tasks, means, bins)["a", "b"]
    assert pair.calibration.estimate == pytest.approx(expected.estimate, rel=0.02)


def test_to_be_calibrated_is_not_to_err_less():
    # A constant is calibrated, and knows nothing.
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = (rng.random(3000) < p).astype(int)
    sharp = np.clip(p[:, None] + [-0.2, 0.0, 0.2] + 0.1 * np.sign(p - 0.5)[:, None], 0, 1)
    files = {"sharp": sharp, "constant": np.full((3000, 3), 0.5)}
    found = compared({n: as_predictions(y, rows) for n, rows in files.items()})
    (sentence,) = found.judgement
    assert sentence.startswith("constant is better calibrated than sharp")
    assert "but sharp has the lower Brier score" in sentence and "errs less" not in str(found)


@pytest.mark.fault
def test_comparison_knows_groups_and_refuses_others():
    of_copy = np.repeat(np.arange(350), 2)
    y, rows, _ = predictor(350)
    y, rows = y[of_copy], rows[of_copy]
    first = as_predictions(y, rows, groups=of_copy)
    second = as_predictions(y, rows[:, :3], groups=np.arange(350)[::-1][of_copy])
    found = compared({"a": first, "b": second})
    assert "700 inputs in 350 groups" in str(found)
    other = as_predictions(y, rows, groups=np.arange(700) // 4)
    with pytest.raises(ValueError, match="a and b differ in which inputs are of one group"):
        compared({"a": first, "b": other})
    named = as_predictions(y, rows, groups=of_copy, class_names=NAMES)
    with pytest.raises(ValueError, match=r"the classes of a are .*'cat'"):
        compared({"a": named, "b": first})
    binary = as_predictions((y > 0).astype(int), rows[:, :, 0], groups=of_copy)
    with pytest.raises(ValueError, match="a has 3 classes and b has 2"):
        compared({"a": first, "b": binary})
    assert compared({"a": binary, "b": binary | {}}).evaluations["b"].n_groups == 350
