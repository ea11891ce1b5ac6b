"""Every number and sentence of fixed data is what it was.

Other tests say that estimates are right within their noise, this one that no edit moves one unseen.
``PYTHONPATH=tests python tests/unit/test_numbers.py`` makes `numbers.csv` and `words.txt` anew.
"""

import os
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_data import TABLE_METHODS, run_results, together
from scipy.special import expit

from epistemic_calibration import evaluate, metrics
from epistemic_calibration.evaluation import plain
from epistemic_calibration.evaluation._comparison import compare
from epistemic_calibration.evaluation._text import for_a_paper
from epistemic_calibration.report import _answers
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.tables import ranking, size, summary

NUMBERS, WORDS = (Path(__file__).with_name(name) for name in ("numbers.csv", "words.txt"))
N, H = 300, 12


def binary():
    """Labels, hypotheses that are too bold, and five labels of each input."""
    rng = np.random.default_rng(0)
    logits = 3 * rng.random(N) - 1.5
    spread = 0.2 + rng.random(N)
    rows = expit(1.8 * (logits[:, None] + spread[:, None] * (rng.random((N, H)) - 0.5)))
    p = expit(logits + spread * (rng.random(N) - 0.5))
    return (rng.random(N) < p).astype(int), rows, (rng.random((N, 5)) < p[:, None]).sum(axis=1)


def classes(n_classes=3):
    rng = np.random.default_rng(1)
    logits = 3 * rng.random((N, 1, n_classes))
    rows = np.exp(1.5 * (logits + rng.random((N, H, n_classes))))
    p = np.exp(logits[:, 0] + rng.random((N, n_classes)))
    p /= p.sum(axis=1, keepdims=True)
    drawn = (rng.random((N, 6, 1)) > p.cumsum(axis=1)[:, None]).sum(axis=2)
    counts = np.stack([(drawn[:, 1:] == c).sum(axis=1) for c in range(n_classes)], axis=1)
    return drawn[:, 0], rows / rows.sum(axis=2, keepdims=True), counts


def fine():
    """Labels that go up and down with mean and spread faster than bins of 20 inputs can see."""
    rng = np.random.default_rng(2)
    mean, spread = 0.2 + 0.6 * rng.random(6000), 0.2 * rng.random(6000)
    p = mean + 0.2 * np.sign(np.sin(60 * mean) * np.sin(100 * spread))
    return (rng.random(6000) < p).astype(int), np.stack([mean - spread, mean + spread], axis=1)


Y, ROWS, POSITIVE = binary()
CLASSES, CLASS_ROWS, COUNTS = classes()
GROUPS = np.arange(N) // 3
HALF = np.arange(N) % 2 == 0
NAMES = ["truck", "thirteen char", "twelve chars"]
SEVERAL = {"n_positive": POSITIVE, "n_labels": 5}

EVALUATIONS = {
    "two classes": (Y, ROWS, {}),
    "few inputs": (Y[:40], ROWS[:40], {}),
    "rare positives": (Y * (np.arange(N) % 6 == 0), ROWS / 6, {}),
    "one error": ((ROWS.mean(axis=1) > 0.5) ^ (np.arange(N) == 7), ROWS, {}),
    "two errors": ((ROWS.mean(axis=1) > 0.5) ^ (np.arange(N) % 200 == 7), ROWS, {}),
    "groups": (Y, ROWS, {"groups": GROUPS}),
    "two groups": (Y, ROWS, {"groups": HALF}),
    "groups of like means": (Y, ROWS, {"groups": ROWS.mean(axis=1).argsort().argsort() // 25}),
    "own prediction": (Y, ROWS, {"prediction": np.median(ROWS, axis=1)}),
    "own uncertainty": (Y, ROWS, {"epistemic_uncertainty": 0.7 * ROWS.var(axis=1) + 1e-3}),
    "entropy": (Y, ROWS, {"kind_of_uncertainty": "mutual_information"}),
    "several labels": (Y, ROWS, SEVERAL),
    "draws at inputs": (Y, ROWS, {**SEVERAL, "draws": "inputs"}),
    "no draws": (Y, ROWS, {**SEVERAL, "exchangeable": False}),
    "labels in groups": (Y, ROWS, {**SEVERAL, "groups": GROUPS}),
    "three classes": (CLASSES, CLASS_ROWS, {"axes": "nhc"}),
    "classes in groups": (CLASSES, CLASS_ROWS, {"axes": "nhc", "groups": GROUPS}),
    "counts of classes": (CLASSES, CLASS_ROWS, {"axes": "nhc", "label_counts": COUNTS}),
    "named classes": (
        CLASSES,
        CLASS_ROWS,
        {"axes": "nhc", "label_counts": COUNTS, "class_names": NAMES},
    ),
}


TRUE = expit(3 * np.linspace(-1, 1, 2000))
TRUE_ROWS = TRUE[:, None] + np.where(np.arange(2000) % 2 == 0, 0.01, 0.04)[:, None] * [-1, 0, 1]
TRUE_LABELS = (np.random.default_rng(3).random((2000, 5)) < TRUE[:, None]).astype(int)
SEEN = {"n_positive": TRUE_LABELS.sum(axis=1), "n_labels": 5}
CERTAIN = (TRUE_ROWS > 0.5).astype(float)
DOUBTLESS = 0.1 + 0.8 * CERTAIN[:, 1:2] + 0.1 * np.abs(TRUE[:, None] - 0.5) * [-1, 0, 1]
DEPENDENT = (np.arange(2000) % 2 == 0) ^ (TRUE_LABELS[:, 0] == 1)
SAID_OF = {
    "eight inputs": (Y[:8], ROWS[:8], {}),
    "one hypothesis": (Y, ROWS[:, :1], {}),
    "right": (TRUE_LABELS[:, 0], TRUE_ROWS, {}),
    "right, several labels": (TRUE_LABELS[:, 0], TRUE_ROWS, SEEN),
    "too low": (TRUE_LABELS[:, 0], 0.7 * TRUE_ROWS, {}),
    "too low, several labels": (TRUE_LABELS[:, 0], 0.7 * TRUE_ROWS, SEEN),
    "labels not at random": (TRUE_LABELS.max(axis=1), TRUE_ROWS, SEEN),
    "too large": (TRUE_LABELS[:, 0], 0.1 * TRUE[:, None] + [0.01, 0.5, 0.9], SEEN),
    "too large, one label": (TRUE_LABELS[:, 0], 0.1 * TRUE[:, None] + [0, 0, 0.9], {}),
    "spread tells": (DEPENDENT, TRUE_ROWS, {}),
    "small where it errs": (TRUE_LABELS[:, 0], DOUBTLESS, {}),
    "no error": (CERTAIN[:, 1], TRUE_ROWS, {}),
    "wrong inputs": (TRUE_LABELS[:, 0], TRUE_ROWS + np.linspace(0.1, 0, 2000)[:, None], SEEN),
    "too certain": (TRUE_LABELS[:, 0], expit(7 * np.log(TRUE_ROWS / (1 - TRUE_ROWS))), SEEN),
    "less certain": (TRUE_LABELS[:, 0], expit(4 * np.log(TRUE_ROWS / (1 - TRUE_ROWS))), SEEN),
    "cautious classes": (CLASSES, CLASS_ROWS**0.3, {"axes": "nhc"}),
    "right classes": (CLASSES, np.stack([CLASS_ROWS.mean(axis=1) ** 0.6] * 2, axis=1), {}),
}


def of_trainings():
    """Return differences of a method trained twice and of one trained three times, two tasks."""
    y = [Y, 1 - Y[::-1]]
    runs = [[rows.mean(axis=1), 1 - rows[::-1].mean(axis=1)] for rows in np.split(ROWS, 6, axis=1)]
    bins = [metrics.assign_bins(ROWS, n_bins=10)] * 2
    found = metrics.compare_mean_corrected_errors(
        y,
        {"a": runs[:2], "b": runs[2:5], "c": runs[5:]},
        {"a": [bins] * 2, "b": [bins] * 3, "c": [bins]},
    )
    return {" ".join(pair): difference for pair, difference in found.items()}


BINS = metrics.assign_bins(ROWS, n_bins=15, binning="nested")
law_tested = partial(metrics.second_order_test, POSITIVE, 5)
RESULTS = {
    "lower bound": lambda: metrics.cross_fitted_lower_bound(Y, ROWS),
    "reported uncertainty": lambda: metrics.reported_uncertainty_error(
        Y, ROWS, epistemic_uncertainty=0.7 * ROWS.var(axis=1) + 1e-3
    ),
    "bin of one group": lambda: metrics.split_epistemic_calibration_error(
        Y, ROWS, n_bins=15, bins=BINS, groups=np.where(BINS == 3, 0, GROUPS + 1)
    ),
    "fine bins": lambda: metrics.corrected_epistemic_calibration_error(*fine(), n_bins=20),
    "trainings": of_trainings,
    "law": lambda: metrics.second_order_error(POSITIVE, 5, ROWS).law,
    "bounds": lambda: metrics.bounds_from_one_label(
        Y, ROWS.mean(axis=1), ROWS[:, :2].T, epistemic_uncertainty=ROWS.var(axis=1), n_hypotheses=H
    ),
    "test of the law": lambda: law_tested(ROWS),
    "test of draws at inputs": lambda: law_tested(ROWS[:, :4], draws="inputs"),
    "test of no draws": lambda: law_tested(ROWS[:, :4], draws="inputs", exchangeable=False),
    "curve": lambda: metrics.second_order_curve(POSITIVE, 5, ROWS, n_bins=4),
    "within labels": lambda: metrics.within_label_correlation(Y, ROWS.mean(axis=1), POSITIVE, 5),
}


def flat(value, name=""):
    """Yield the numbers of a result by what they are called."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        for k, item in enumerate(value):
            yield from flat(item, f"{name}.{k}")
    elif isinstance(value, np.ndarray):
        yield from flat(value.tolist(), name)
    elif value is not None and not isinstance(value, str):
        yield name, float(value)


def numbers_of_evaluation(name):
    y, rows, options = EVALUATIONS[name]
    frame = evaluate(y, rows, **options).to_frame()
    for metric, of_class, *values in frame.drop(columns="points").itertuples(index=False):
        for end, value in zip(("", "low", "high"), values, strict=True):
            if not np.isnan(value):
                yield " ".join(filter(None, (metric, of_class, end))), value


CASES = {
    **{name: lambda name=name: numbers_of_evaluation(name) for name in EVALUATIONS},
    **{name: lambda made=made: flat(plain(made())) for name, made in RESULTS.items()},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_numbers_are_what_they_were(name):
    expected = pd.read_csv(NUMBERS, keep_default_na=False, dtype={"value": float})
    expected = expected[expected["case"] == name].set_index("number")["value"]
    found = dict(CASES[name]())
    assert list(found) == list(expected.index)
    for number, value in found.items():
        # Labels are drawn 999 times: another processor may round one of them over an edge.
        is_p = number.split(".")[-1].startswith("p_")
        assert value == pytest.approx(
            expected[number], rel=1e-6, abs=2.1e-3 if is_p else 1e-12, nan_ok=True
        ), number


def of_run(k):
    """What the page and the tables of the three questions say of a data set."""
    results = run_results().datasets[k]
    found = _answers.answers(results)
    said = [_answers.headline(found), *_answers.sentences(found)]
    said += [summary.make(results).to_terminal()]
    return said + [table.make(results).to_markdown() for table in (summary, size, ranking)]


def of_answers():
    """What the page says of one method, and of two, whose three answers are given."""
    right = {"tece_corrected": 0.0001, "tece_corrected_low": 0.0, "tece_corrected_high": 0.0004}
    right |= {"reported_share": 1.0, "reported_share_low": 0.9, "reported_share_high": 1.1}
    right |= {"size_slope": 1.0, "size_slope_low": 0.8, "size_slope_high": 1.3}
    no_share = dict.fromkeys(("reported_share", "reported_share_low", "reported_share_high"))
    cases = [
        right,
        {"tece_corrected": 0.0001, "brier": 0.2},
        right | {"tece_corrected_low": 0.00005},
        right | {"size_slope_low": 0.1, "size_slope": 0.2, "size_slope_high": 0.4},
        right | {"reported_share_low": 0.2, "reported_share_high": 1500.0},
        right | no_share | {"size_gap": 0.02, "size_gap_low": 0.01, "size_gap_high": 0.03},
        right | no_share | {"size_gap": -0.02, "size_gap_low": -0.03, "size_gap_high": -0.01},
        right | {"reported_share_at_least": 0.0, "reported_share_at_most": 0.0} | no_share,
    ]
    said = []
    for k, case in enumerate(cases):
        for values in ({"mine": case}, {"mine": case, "random_forest": cases[k - 1]}):
            methods = {name: TABLE_METHODS[name] for name in values}
            found = _answers.answers(DatasetResults(together(values), "cifar10", methods))
            said += [_answers.headline(found), *_answers.sentences(found)]
            said += [_answers.share(row) for _, row in found.iterrows()]
    return said


def of_evaluation(name):
    y, rows, options = (EVALUATIONS | SAID_OF)[name]
    rows = rows / rows.sum(axis=2, keepdims=True) if rows.ndim == 3 else rows
    found = evaluate(y, rows, **options)
    return [str(found), for_a_paper(found)]


def of_comparison(name):
    y, rows, options = EVALUATIONS[name]
    other = rows[:, ::-1] ** 0.6
    other = other / other.sum(axis=2, keepdims=True) if rows.ndim == 3 else other
    return [str(compare({"a": evaluate(y, rows, **options), "b": evaluate(y, other, **options)}))]


def of_orders():
    """Compare an uncertainty that knows nothing with one that is that of the prediction."""
    doubt = (0.5 - np.abs(TRUE - 0.5))[:, None]
    rows = {"low": 0.7 * TRUE_ROWS, "doubtful": TRUE[:, None] + 0.1 * doubt * [-1, 0, 1]}
    found = {name: evaluate(TRUE_LABELS[:, 0], given) for name, given in rows.items()}
    back = dict(reversed(found.items()))
    return [str(compare(found)), str(compare(back)), str(compare({"a": found["low"], **found}))]


SAID = {
    **{name: lambda name=name: of_evaluation(name) for name in EVALUATIONS | SAID_OF},
    "parts": lambda: [str(evaluate(Y, ROWS, by=HALF))],
    "comparison": lambda: of_comparison("two classes"),
    "comparison of classes": lambda: of_comparison("counts of classes"),
    "comparison of orders": of_orders,
    "answers": of_answers,
    "run with several labels": lambda: of_run(0),
    "run with one label": lambda: of_run(1),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAID)
def test_sentences_are_what_they_were(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    _, *parts = WORDS.read_text("utf-8").split("=== ")
    expected = dict(part.split("\n", 1) for part in parts)
    assert "\n".join(SAID[name]()).strip() == expected[name].strip()


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    rows = [(case, number, f"{value:.10g}") for case in CASES for number, value in CASES[case]()]
    pd.DataFrame(rows, columns=["case", "number", "value"]).to_csv(NUMBERS, index=False)
    told = (f"=== {name}\n" + "\n".join(said()).strip() + "\n" for name, said in SAID.items())
    WORDS.write_text("\n".join(told), "utf-8")
