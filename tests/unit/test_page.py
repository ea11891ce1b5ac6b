"""What pages are made of: diagnostics, answers in words, SVG and HTML, without a browser."""

import dataclasses
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure
from page_data import IMAGE, SCRIPT, run_results, together
from scipy.stats import binomtest

from epistemic_calibration import evaluate
from epistemic_calibration.cli import main
from epistemic_calibration.methods import available_methods
from epistemic_calibration.report._answers import (
    answers,
    headline,
    interval,
    sentences,
    share,
)
from epistemic_calibration.report._diagnostics import (
    diagnose,
    reliability,
    risk_coverage,
    top_bins,
)
from epistemic_calibration.report.page import files
from epistemic_calibration.report.page._svg import inline_svg
from epistemic_calibration.report.page._template import COLORS
from epistemic_calibration.report.page.run import run_page
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.style import method_styles

RNG = np.random.default_rng(0)


def sample(n=400, n_tasks=2):
    p = RNG.beta(1, 2, (n_tasks, n))
    return (RNG.random(p.shape) < p**2).astype(np.uint8), p


# Diagnostics


def test_reliability_is_the_mean_in_bins_of_equal_width_with_wilsons_intervals():
    (y,), (p,) = sample(n_tasks=1)
    found = reliability(y[None], p[None], confidence_level=0.9)
    bins = np.minimum((10 * p).astype(int), 9)
    assert found["n"] == [int((bins == k).sum()) for k in np.unique(bins)]
    expected = [y[bins == k].mean() for k in np.unique(bins)]
    np.testing.assert_allclose(found["frequency"], expected)
    expected = [p[bins == k].mean() for k in np.unique(bins)]
    np.testing.assert_allclose(found["predicted"], expected)
    for frequency, n, low, high in zip(
        *(found[k] for k in ("frequency", "n", "low", "high")), strict=True
    ):
        exact = binomtest(round(frequency * n), n).proportion_ci(0.9, method="wilson")
        assert (low, high) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize("how", ["tasks", "groups"])
def test_what_is_there_ten_times_counts_once(how):
    """Ten copies of a task, or of each input, tell no more than one does."""
    y, p = sample(n=6000, n_tasks=1)
    once = reliability(y, p, confidence_level=0.95)
    axis = 0 if how == "tasks" else 1
    groups = None if how == "tasks" else np.repeat(np.arange(6000), 10)
    often = [np.repeat(values, 10, axis) for values in (y, p)]
    often = reliability(*often, confidence_level=0.95, groups=groups)
    width = [np.subtract(found["high"], found["low"]) for found in (once, often)]
    np.testing.assert_allclose(width[1], width[0], rtol=0.02)
    assert often["n"] == [10 * n for n in once["n"]]


def test_errors_among_those_kept_are_means_over_all_orders_of_ties():
    wrong = RNG.random(40) < 0.3
    order = RNG.integers(0, 5, 40)
    found = risk_coverage(wrong, {"eu": order})
    at = found["coverage"].index(0.5)
    shuffled = []
    for _ in range(4000):
        rows = np.lexsort((RNG.random(40), order))
        shuffled.append(wrong[rows[:20]].mean())
    # Five standard errors of the mean of so many orders.
    assert found["eu"][at] == pytest.approx(np.mean(shuffled), abs=5 * np.std(shuffled) / 4000**0.5)
    rows = RNG.permutation(40)
    assert risk_coverage(wrong[rows], {"eu": order[rows]}) == found
    assert found["eu"][-1] == pytest.approx(wrong.mean())


def test_diagnostics_are_json_and_count_every_prediction():
    y, p = sample()
    bins = (10 * p).astype(int)
    compared = {"mean_prediction": p, "bins": bins, "uncertainty": p * (1 - p)}
    found = diagnose(y, compared, ["cat", "dog"], confidence_level=0.95)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert sum(found["reliability"]["n"]) == y.size
    by = found["risk_coverage"]
    # EU = Δ(1 − Δ) orders as 1 − max p does.
    np.testing.assert_allclose(by["uncertainty"], by["prediction"])
    assert by["uncertainty"][-1] == pytest.approx(((p > 0.5) != y).mean())


@pytest.mark.parametrize("groups", [None, np.arange(400) // 2])
def test_bins_that_carry_the_error_have_their_shares_of_the_corrected_tece(groups):
    y, p = sample()
    bins = (10 * p).astype(int)
    parts = []
    for task, y_k, p_k, bins_k in zip(["cat", "dog"], y, p, bins, strict=True):
        for inside in (bins_k == k for k in range(10)):
            units = (np.arange(400) if groups is None else groups)[inside]
            e, apart = (y_k - p_k)[inside], units[:, None] != units
            part = inside.mean() * np.outer(e, e)[apart].mean()
            parts.append((part, task, inside.sum(), p_k[inside].mean(), y_k[inside].mean()))
    total = sum(part for part, *_ in parts)
    found = top_bins(y, p, bins, ["cat", "dog"], confidence_level=0.9, groups=groups)
    assert len(found) == 4
    for row, (part, *expected) in zip(found, sorted(parts, reverse=True), strict=False):
        assert [row[k] for k in ("task", "n", "predicted", "frequency")] == expected
        assert row["share"] == pytest.approx(part / total)
        assert row["low"] < row["frequency"] < row["high"]


# The three answers


def scored(*, share=(), bounds=(), slope=(), gap=(), tece=(0.0004, 0.0001, 0.0009), ranking=()):
    """Scores of one method by their metrics, from its numbers with their ends."""
    ends = ("", "_low", "_high")
    values = {f"tece_corrected{e}": v for e, v in zip(ends, tece, strict=True)}
    values |= {f"reported_share{e}": v for e, v in zip(ends, share, strict=False)}
    values |= {f"size_slope{e}": v for e, v in zip(ends, slope, strict=False)}
    values |= {f"size_gap{e}": v for e, v in zip(ends, gap, strict=False)}
    values |= {f"reported_share_at_{e}": v for e, v in zip(("least", "most"), bounds, strict=False)}
    names = ("error_rate", "kept_error_90", "kept_error_90_by_prediction")
    return values | dict(zip(names, ranking, strict=False))


def found_of(**of_methods):
    methods = {n: {"label": n.upper(), "family": "active"} for n in of_methods}
    return answers(DatasetResults(together(of_methods, "pets"), "pets", methods))


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({"share": (0.5, 0.4, 0.6)}, "too small"),
        ({"share": (1.5, 1.2, 1.9)}, "too large"),
        ({"share": (1.1, 0.8, 1.4)}, "about right"),
        ({"share": (1.1, 0.2, 4.0)}, "cannot be told"),
        ({"bounds": (0.1, 0.9)}, "too small"),
        ({"bounds": (0.1, np.inf)}, "cannot be told"),
        ({"bounds": (0.6, 1.9)}, "about right"),
        ({"share": (1.0, 0.9, 1.1), "slope": (0.3, 0.2, 0.4)}, "slope 0.30, not 1"),
        ({"share": (1.0, 0.9, 1.1), "slope": (0.9, 0.7, 1.1)}, "about right"),
        ({"gap": (0.02, 0.01, 0.03)}, "too small"),
        ({"gap": (0.02, -0.01, 0.03)}, "cannot be told"),
        ({}, ""),
    ],
)
def test_the_verdict_on_the_size(given, verdict):
    assert found_of(a=scored(**given)).loc["a", "verdict"] == verdict


def test_an_estimate_below_its_own_limit_is_shown_at_it():
    row = found_of(a=scored(tece=(-0.0001, 0.0, 0.0009))).loc["a"]
    assert interval(row, "points") == "0.0 [0.0, 3.0]"
    row = found_of(a=scored(tece=(0.0001, 0.0004, 0.0009))).loc["a"]
    assert interval(row, "points") == "2.0 [2.0, 3.0]"


def test_shares_in_words():
    found = found_of(
        a=scored(share=(0.0512, 0.0401, 1.5)),
        b=scored(bounds=(0.144, np.inf)),
        c=scored(bounds=(0.04, 13.2)),
        d=scored(),
    )
    said = [share(found.loc[name]) for name in "abcd"]
    assert said == ["5.1 [4.0, 150]", "14 or more", "4.0 to 1300", "—"]


def test_the_headline_says_whether_any_method_passes():
    right = scored(share=(1.1, 0.8, 1.4), tece=(0.0001, 0.0, 0.0009))
    off = scored(share=(0.5, 0.4, 0.6))
    unknown = scored(bounds=(0.1, np.inf), tece=(0.0001, 0.0, 0.0009))
    assert headline(found_of(a=off, b=right)).startswith("B passes: no calibration error is seen")
    assert headline(found_of(a=off, b=off)) == (
        "No method passes: probabilities off for both, uncertainty too small for both."
    )
    found = found_of(a=off, b=right)
    found.loc["b", "family"] = "control"
    assert headline(found) == "A does not pass: probabilities off, uncertainty too small."
    said = headline(found_of(a=unknown))
    assert said == "A is not shown to pass: size of the uncertainty unknown."


def test_sentences_name_the_best_and_those_alike():
    first = scored(ranking=(0.05, 0.02, 0.01))
    second = scored(tece=(0.0009, 0.0004, 0.0016), ranking=(0.04, 0.004, 0.004))
    found = found_of(a=first, b=second)
    found["group"] = ["a", "ab"]
    said = [text.replace("\N{NO-BREAK SPACE}", " ") for text in sentences(found)]
    assert said[0] == "Best calibrated: A, off by 2.0 points [1.0, 3.0]; B cannot be told from it."
    assert said[1].endswith("of largest EU are set aside: B, 0.40 instead of 4.0 %.")
    found["kept_difference_low"], found["kept_difference_high"] = [-2.0, 1.0], [-1.0, 2.0]
    assert list(sentences(found))[2] == (
        "EU finds errors better than the prediction itself (1 − max p) for 1 of 2, worse for "
        "1 of 2."
    )
    bare = found_of(a=scored())
    assert list(sentences(bare)) == ["Whether EU knows the errors is not among these scores."]


# The page


@pytest.fixture(scope="module")
def html():
    return run_page(run_results())


@pytest.mark.fault
def test_names_cannot_become_markup(html):
    assert SCRIPT not in html and IMAGE not in html
    assert "&lt;script&gt;window.hacked = 1&lt;/script&gt;" in html


def test_every_figure_is_drawn_and_says_what_it_shows(html):
    figures = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    # Of each data set: answers in two widths, with and without all methods; three of each of
    # four methods.
    assert len(figures) == 2 * (4 + 3 * 4)
    assert html.count("<script>") == 1 and len(html) < 700_000
    assert not re.search(r'(src|href)="(?!#|data:)', html)
    for figure in figures:
        root = ET.fromstring(figure)
        assert root.get("role") == "img" and len(root.get("aria-label")) > 20
        assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 5


def test_tables_say_where_it_goes_wrong_and_what_fits_say_of_themselves(html):
    datasets = run_results().datasets
    carried = [m["top_bins"] for d in datasets for m in d.diagnostics.values()]
    assert html.count("<strong>Where it goes wrong") == len([c for c in carried if c])
    text = re.sub(r"\s*<[^>]+>\s*", "|", html)
    for row in carried[0]:
        numbers = (f"{row[k]:.3f}" for k in ("predicted", "frequency", "low", "high"))
        said = "{}||{} [{}, {}]||".format(*numbers) + f"{100 * row['share']:.0f}\N{NO-BREAK SPACE}%"
        assert f"||{row['n']}||{said}|" in text
    assert text.count("|r hat max||1.25||1.25||1.25|") == 2 * 4


def test_an_svg_has_every_word_and_number_of_its_figure():
    figure = Figure()
    ax = figure.subplots()
    ax.plot([0, 1], [0.123456, 1], color="#1f4fa8")
    ax.set_yticks([0.125, 1.75], ["0.125", "1.75 <&"])
    text = inline_svg(figure, 'Said "so" & so')
    root = ET.fromstring(text)
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"0.125", "1.75 <&", "0.0", "1.0"} <= set(words)
    assert root.get("aria-label") == 'Said "so" & so'
    assert "var(--blue)" in text and "#1f4fa8" not in text


def test_links_of_the_page_lead_somewhere(html):
    ids = re.findall(r' id="([^"]+)"', re.sub(r"<svg.*?</svg>", "", html, flags=re.DOTALL))
    assert len(ids) == len(set(ids))
    links = {link for link in re.findall(r'href="#([^"]+)"', html) if not link.startswith("m")}
    assert links and {x for x in links if "." in x} <= set(ids)


def luminance(color):
    channels = (int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    """The contrast ratio of two colours (WCAG 2)."""
    darker, lighter = sorted(map(luminance, (first, second)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", COLORS)
def test_what_is_drawn_and_written_stands_out(theme):
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    colors = COLORS[theme]
    for background in (colors["paper"], colors["panel"]):
        for text in ("ink", "muted", "blue", "orange"):
            assert contrast(colors[text], background) >= 4.5, text


def test_colors_of_methods_stand_out_on_paper():
    for name, style in method_styles([*available_methods(), *map(str, range(4))]).items():
        assert contrast(style.color, "#ffffff") >= 3, name


# Files of predictions


def write_predictions(path, n=300, classes=0, seed=0, **arrays):
    rng = np.random.default_rng(seed)
    logits = np.random.default_rng(9).normal(0, 1.5, (n, max(classes, 1)))
    noisy = logits[:, None] + rng.normal(0, 0.5, (n, 8, logits.shape[1]))
    if classes:
        p, hypotheses = (np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in (logits, noisy))
        y = np.array([np.random.default_rng(k).choice(classes, p=q) for k, q in enumerate(p)])
    else:
        p, hypotheses = (1 / (1 + np.exp(-x[..., 0])) for x in (logits, noisy))
        y = (np.random.default_rng(8).random(n) < p).astype(int)
    arrays = {name: make(p) for name, make in arrays.items()}
    np.savez(path, hypotheses=hypotheses, y_true=y, **arrays)
    return str(path)


COUNTS = {
    "n_positive": lambda p: RNG.binomial(5, p),
    "n_labels": lambda p: np.full(len(p), 5),
}


@pytest.mark.parametrize(
    ("classes", "arrays", "said"),
    [
        (0, {}, "one label per input"),
        (0, COUNTS, "several labels per input"),
        (0, {"groups": lambda p: np.arange(len(p)) // 2}, "one label per input"),
        (3, {}, "3 one-vs-all tasks"),
        (3, {"label_counts": lambda p: RNG.multinomial(5, p)}, "several labels per input"),
    ],
)
def test_a_page_of_any_file_has_the_numbers_of_evaluate(tmp_path, classes, arrays, said):
    path = write_predictions(tmp_path / "mine.npz", classes=classes, **arrays)
    output = tmp_path / "page.html"
    assert main(["page", path, "--output", str(output)]) == 0
    text = output.read_text("utf-8")
    assert said in text and len(text) < 150_000
    given = dict(np.load(path))
    frame = evaluate(given.pop("y_true"), given.pop("hypotheses"), **given).to_frame()
    frame = frame[frame["metric"] == ("tece_classwise" if classes else "tece_corrected")]
    ends = 100 * np.sqrt(frame[["value", "ci_low", "ci_high"]].clip(lower=0).to_numpy()[0])
    shown = "{:.1f} points [{:.1f}, {:.1f}]".format(max(ends[:2]), *ends[1:])
    assert f"Off by {shown}." in text
    assert text.count("<figure>") >= 3


def test_files_of_one_page_are_compared(tmp_path):
    paths = [write_predictions(tmp_path / f"{name}.npz", seed=k) for k, name in enumerate("abc")]
    output = tmp_path / "page.html"
    assert main(["page", *paths, "--output", str(output)]) == 0
    text = output.read_text("utf-8")
    assert "No method" in text and "cannot be told from it" in text
    assert re.findall(r'<article class="method" id="([^"]+)"', text)[0].startswith(
        "Your-predictions."
    )


def test_bins_of_a_page_of_files_are_those_of_compare_with_groups_too(monkeypatch):
    copies = np.repeat(np.arange(100), np.arange(100) % 9 + 1)
    y, rows = copies % 2, RNG.random((100, 5))[copies]
    given = {"y_true": y, "hypotheses": rows, "groups": copies}
    used = {}
    monkeypatch.setattr(files, "compare_methods", lambda y, p, bins, **_: used.update(bins))
    monkeypatch.setattr(files, "run_page", lambda results: "")
    files.files_page({"a": given, "b": given})
    found = evaluate(y, rows, groups=copies)
    expected = found._inputs.nested_bins(found._inputs.sample, found.n_bins)
    np.testing.assert_array_equal(used["b"][0][0], expected)
    ungrouped = found._inputs.sample.bins(n_bins=found.n_bins, binning="nested", random_state=0)
    assert not np.array_equal(expected, ungrouped)


@pytest.mark.fault
def test_files_that_do_not_belong_together_are_refused(tmp_path, capsys):
    first = write_predictions(tmp_path / "a.npz")
    other = write_predictions(tmp_path / "b.npz", n=200)
    output = str(tmp_path / "page.html")
    assert main(["page", first, other, "--output", output]) != 0
    assert "b has other y_true than a" in capsys.readouterr().err
    assert main(["page", first, first, "--output", output]) != 0
    assert "a file is given twice" in capsys.readouterr().err
    assert main(["page", *[first] * 11, "--output", output]) != 0
    assert "page takes 10 files at most, got 11" in capsys.readouterr().err


def test_results_without_diagnostics_have_a_page_that_is_the_same_each_time():
    run = run_results()
    bare = [dataclasses.replace(run.datasets[0], diagnostics={}, differences=None)]
    run = dataclasses.replace(run, datasets=bare, tables={})
    text = run_page(run)
    assert "<article" not in text and "No method" in text
    assert run_page(run) == text
