"""What pages are made of: numbers, sentences, tables and HTML, without a browser."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from epistemic_calibration import metrics
from epistemic_calibration.cli import main
from epistemic_calibration.report.page import _answers, two_runs
from epistemic_calibration.report.page._html import number_cells, read_markdown
from epistemic_calibration.report.page._scores import ALL_TASKS, SHARE, TECE, Number, numbers
from epistemic_calibration.report.page._theme import COLORS, contrast, vega_themes
from epistemic_calibration.report.page.diagnostics import diagnose, reliability, top_bins
from epistemic_calibration.report.page.thumbnails import thumbnail
from epistemic_calibration.report.tables._table import Table
from epistemic_calibration.scoring import METRICS

sys.path.insert(0, str(Path(__file__).parents[1]))
from page_data import IMAGE, SCRIPT, run_results

RNG = np.random.default_rng(0)


def sample(n=400, n_tasks=2):
    p = RNG.beta(1, 2, (n_tasks, n))
    return (RNG.random(p.shape) < p**2).astype(np.uint8), p


# Diagnostics


def test_reliability_is_the_mean_in_bins_of_equal_width():
    (y,), (p,) = sample(n_tasks=1)
    found = reliability(y[None], p[None], confidence_level=0.9)
    bins = np.minimum((10 * p).astype(int), 9)
    assert found["n"] == [int((bins == k).sum()) for k in np.unique(bins)]
    expected = [y[bins == k].mean() for k in np.unique(bins)]
    np.testing.assert_allclose(found["frequency"], expected)
    expected = [p[bins == k].mean() for k in np.unique(bins)]
    np.testing.assert_allclose(found["predicted"], expected)


def test_intervals_of_reliability_are_wilsons():
    from scipy.stats import binomtest

    (y,), (p,) = sample(n_tasks=1)
    found = reliability(y[None], p[None], confidence_level=0.9)
    for frequency, n, low, high in zip(
        *(found[k] for k in ("frequency", "n", "low", "high")), strict=True
    ):
        exact = binomtest(round(frequency * n), n).proportion_ci(0.9, method="wilson")
        assert (low, high) == pytest.approx((exact.low, exact.high))


def test_the_same_input_in_several_tasks_counts_once():
    """Ten copies of a task tell no more than the task does."""
    y, p = sample(n=6000, n_tasks=1)
    once = reliability(y, p, confidence_level=0.95)
    often = reliability(np.repeat(y, 10, 0), np.repeat(p, 10, 0), confidence_level=0.95)
    width = [np.subtract(found["high"], found["low"]) for found in (once, often)]
    np.testing.assert_allclose(width[1], width[0], rtol=0.02)
    assert often["n"] == [10 * n for n in once["n"]]


def test_all_bins_together_are_the_corrected_tece(monkeypatch):
    from epistemic_calibration.report.page import diagnostics

    y, p = sample()
    bins = np.minimum((8 * p).astype(int), 7)
    total = np.mean(
        [
            metrics.corrected_epistemic_calibration_error(*given[:2], bins=given[2]).estimate
            for given in zip(y, p[..., None], bins, strict=True)
        ]
    )
    monkeypatch.setattr(diagnostics, "N_TOP_BINS", 99)
    found = top_bins(y, p, bins, ["a", "b"], uncertainty=p, confidence_level=0.95)
    parts = [carrier["contribution"] for carrier in found]
    assert parts == sorted(parts, reverse=True) and min(parts) > 0
    # Bins below 0, which noise makes, are left out.
    assert sum(parts) == pytest.approx(total, abs=0.005) and sum(parts) >= total


def test_the_inputs_shown_miss_in_the_direction_of_their_bin():
    y, p = sample()
    bins = np.minimum((4 * p).astype(int), 3)
    (first, *_) = top_bins(y, p, bins, ["a", "b"], uncertainty=p, confidence_level=0.95)
    number = "ab".index(first["task"])
    over = first["predicted"][0] > first["frequency"]
    for shown in first["inputs"]:
        row = shown["row"]
        assert shown["label"] == y[number, row] == (0 if over else 1)
        assert shown["predicted"] == p[number, row]
        assert shown["uncertainty"] == pytest.approx(100 * np.sqrt(p[number, row]))
    assert first["low"] < first["frequency"] < first["high"]


def test_diagnostics_are_json_and_count_every_prediction():
    y, p = sample()
    compared = {"mean_prediction": p, "bins": (4 * p).astype(int), "uncertainty": p * (1 - p)}
    found = diagnose(y, compared, ["a", "b"], confidence_level=0.95)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for kind in ("histogram", "reliability"):
        assert len(found[kind]) == 3
    assert sum(map(sum, found["histogram"][0].values())) == y.size
    wrong = sum(found["histogram"][1]["wrong"])
    assert wrong == int(np.sum((p[0] > 0.5) != y[0]))


def test_a_thumbnail_is_the_image():
    import base64
    import io

    from PIL import Image

    pixels = RNG.integers(0, 256, (10, 8, 1), dtype=np.uint8)
    kind, _, content = thumbnail(pixels).partition(";base64,")
    assert kind == "data:image/png"
    decoded = np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))
    np.testing.assert_array_equal(decoded, pixels[..., 0])
    np.testing.assert_array_equal(thumbnail(pixels), thumbnail(pixels / np.float32(255)))
    large = thumbnail(RNG.integers(0, 256, (200, 100, 3), dtype=np.uint8))
    assert Image.open(io.BytesIO(base64.b64decode(large.partition(",")[2]))).size == (32, 64)


# Numbers and sentences


def scored(rows):
    columns = ["scope", "task", "method", "metric", "value"]
    return pd.DataFrame(rows, columns=columns).assign(dataset="pets", seed=0)


def test_a_number_has_the_interval_of_all_tasks_or_their_spread():
    rows = [("task", t, "a", "brier", v) for t, v in (("cat", 0.1), ("dog", 0.3))]
    rows += [("all_tasks", None, "a", f"{TECE}{end}", v) for end, v in LIMITS.items()]
    rows += [("task", "cat", "a", f"{TECE}{end}", v) for end, v in LIMITS.items()]
    found = numbers(scored(rows), "pets", ["a"], ["cat", "dog"])
    assert found[ALL_TASKS, "a", TECE] == Number(0.02, 0.01, 0.04, "interval", 4)
    assert found["cat", "a", TECE] == found[ALL_TASKS, "a", TECE]
    assert found[ALL_TASKS, "a", "brier"].text == "0.200 ± 0.141"
    assert found["dog", "a", "brier"].text == "0.300"
    assert ("dog", "a", TECE) not in found


LIMITS = {"": 0.02, "_low": 0.01, "_high": 0.04}


@pytest.mark.parametrize(("most", "text"), [(2.0, "0.500 to 2.000"), (np.inf, "0.500 or more")])
def test_with_one_label_a_share_lies_between_bounds(most, text):
    rows = [
        ("all_tasks", None, "a", f"{SHARE}_at_least", 0.5),
        ("all_tasks", None, "a", f"{SHARE}_at_most", most),
    ]
    found = numbers(scored(rows), "pets", ["a"], ["cat"])[ALL_TASKS, "a", SHARE]
    assert found.text == text and found.kind == "bounds"


def shares(**of_methods):
    return {
        (ALL_TASKS, name, SHARE): Number(value, low, high, kind)
        for name, (value, low, high, kind) in of_methods.items()
    }


def sentence(found):
    text = _answers.answer_on_size(found, {key[1]: key[1].upper() for key in found})
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_answer_on_size_puts_each_method_where_its_interval_lies():
    found = shares(
        a=(0.05, 0.04, 0.06, "interval"),
        b=(0.9, 0.8, 1.1, "interval"),
        c=(2.0, 1.5, 3.0, "interval"),
    )
    assert sentence(found) == (
        "The uncertainty of B has the right size, as far as can be told: it reports 90 % "
        "(80 to 110 %) of its squared error; too small: A, 5 % (4 to 6 %); too large: C, 200 % "
        "(150 to 300 %)."
    )
    del found[ALL_TASKS, "b", SHARE]
    assert sentence(found).startswith("No uncertainty has the right size; nearest is that of C,")
    bounds = shares(a=(np.nan, 0.1, 0.4, "bounds"), b=(np.nan, 0.5, np.inf, "bounds"))
    assert "possible for B, 50 % or more; too small: A, 10 to 40 %." in sentence(bounds)


def test_the_answer_on_the_mean_names_those_that_cannot_be_told_apart():
    found = {
        (ALL_TASKS, name, TECE): Number(v, v / 4, 4 * v, "interval")
        for name, v in (("a", 0.0001), ("b", 0.0004), ("c", 0.09))
    }
    text = _answers.answer_on_mean(found, {"a": "A", "b": "B", "c": "C"}, {"a": ["b"], "b": ["a"]})
    assert "of A can be trusted most" in text and "B cannot be told from it" in text
    assert text.endswith("that of C least: off by 30.0 points (15.0 to 60.0).")


# Tables and HTML


def test_cells_are_drawn_on_one_scale():
    cells = number_cells([Number(0.25, 0.0, 1.0, "interval"), Number(1.0), None], root=True)
    assert (cells[0].drawn.at, cells[0].drawn.low, cells[0].drawn.high) == (50.0, 0.0, 100.0)
    assert (cells[1].drawn.at, cells[1].drawn.low) == (100.0, None)
    assert cells[2].drawn is None and cells[2].order == ""


def test_a_table_of_the_workflow_is_read_as_it_was_written():
    index = pd.Index(["a | b", SCRIPT], name="Method")
    text = pd.DataFrame({"EECE": ["0.0012", "—"], "With |": ["−0.1 [−0.2, 0]", "x"]}, index=index)
    written = Table(text, text, "A caption", ("First note.", "Second note.")).to_markdown()
    (table,) = read_markdown(written)
    assert table.columns == ["Method", "EECE", "With |"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["a | b", "0.0012", "−0.1 [−0.2, 0]"],
        [SCRIPT, "—", "x"],
    ]
    assert [row[1].order for row in table.rows] == [0.0012, ""]
    assert table.rows[0][2].order == -0.1
    assert table.caption == "A caption" and table.notes == ["First note.", "Second note."]


def test_a_comparison_with_the_paper_is_read_by_chapter():
    """As `paper_comparison.md` is written: several tables, bold where the two differ."""
    text = (
        "# Comparison\n\nA legend.\n\n## mnist\n\n3 of 4 cells agree.\n\n### Accuracy\n\n"
        "| Task | A |\n|:--|--:|\n| 0 | **0.99 (0.98)** |\n|  | 0.9 |\n\n"
        "### ECE\n\n| Task | A |\n|:--|--:|\n| 0 | — |\n\nThe end.\n"
    )
    first, second = read_markdown(text)
    assert (first.caption, second.caption) == ("mnist: Accuracy", "mnist: ECE")
    assert first.notes == ["A legend.", "3 of 4 cells agree."] and second.notes == ["The end."]
    cell = first.rows[0][1]
    assert (cell.text, cell.order, cell.strong) == ("0.99 (0.98)", 0.99, True)
    # The name of a block goes with each of its rows.
    assert [row[0].text for row in first.rows] == ["0", "0"]


@pytest.fixture(scope="module")
def html():
    from epistemic_calibration.report.page.run import run_page

    return run_page(run_results())


@pytest.mark.fault
def test_names_cannot_become_markup(html):
    assert SCRIPT not in html and IMAGE not in html
    escaped = "&lt;script&gt;window.hacked = 1&lt;/script&gt;"
    assert escaped in html and "\\u003cscript\\u003ewindow.hacked = 1\\u003c/script" in html


def test_each_library_is_there_once_and_the_page_is_small(html):
    assert html.count("window.vegaEmbed=") == 1
    assert len(re.findall(r"window\._itables_\w+ = injectModule", html)) == 1
    assert len(html) < 3_000_000


def test_the_page_is_the_same_each_time(html):
    from epistemic_calibration.report.page.run import run_page

    assert run_page(run_results()) == html


def test_every_chart_is_valid_and_names_its_data(html):
    specs = [
        json.loads(text)
        for text in re.findall(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    ]
    assert len(specs) == 6
    for spec in specs:
        assert spec["datasets"]["rows"] and spec["description"]
        assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/v6")


def test_notes_of_tables_that_warn_stand_among_the_answers():
    from epistemic_calibration.report.page.run import run_page

    run = run_results()
    notes = ("a fit has not converged.", "pets: few images of a class.")
    run.datasets[0].tables["summary.md"] += "".join(f"\nWarning: {note}\n" for note in notes)
    answers = run_page(run).partition('id="answers"')[2].partition("</section>")[0]
    assert "pets: a fit has not converged." in answers
    assert "pets: few images of a class." in answers and "pets: pets" not in answers


@pytest.mark.parametrize("theme", COLORS)
def test_what_is_drawn_and_written_stands_out(theme):
    colors = COLORS[theme]
    for background in (colors["paper"], colors["panel"]):
        for text in ("ink", "muted", "link", "warning"):
            assert contrast(colors[text], background) >= 4.5, text
    config = vega_themes(["likelihood", "deep_ensemble", "mc_dropout"])[theme]
    for color in config["range"]["category"]:
        assert contrast(color, colors["paper"]) >= 3


# Two runs


def run_scores(shift):
    rows = [
        ("task", task, "a", metric, value + shift[metric])
        for task, value in (("cat", 0.1), ("dog", 0.2), ("cow", 0.4))
        for metric in ("brier", "eece")
    ]
    return scored(rows)


def test_moves_are_paired_and_sorted():
    from scipy.stats import ttest_rel

    a = run_scores({"brier": 0.0, "eece": 0.0})
    b = run_scores({"brier": 0.01, "eece": 0.0})
    b.loc[(b["metric"] == "brier") & (b["task"] == "dog"), "value"] += 0.02
    found = two_runs.moves(a, b).set_index("metric")
    assert list(found.index) == ["brier", "eece"]
    assert found.loc["eece", ["difference", "relative"]].tolist() == [0, 0]
    assert np.isnan(found.loc["eece", "low"])
    pairs = [run[run["metric"] == "brier"]["value"] for run in (b, a)]
    expected = ttest_rel(*pairs).confidence_interval(0.95)
    assert found.loc["brier", "difference"] == pytest.approx(0.05 / 3)
    assert (found.loc["brier", "low"], found.loc["brier", "high"]) == pytest.approx(
        (expected.low, expected.high)
    )
    # A task that one of them lacks is left out of both.
    found = two_runs.moves(a, b[b["task"] != "dog"]).set_index("metric")
    assert found.loc["brier", "n_pairs"] == 2
    assert found.loc["brier", "a"] == pytest.approx(0.25)
    assert found.loc["brier", "difference"] == pytest.approx(0.01)


def write_run(folder, scores, label="A"):
    path = folder / "pets" / "seed0" / "scores" / "a.csv"
    path.parent.mkdir(parents=True)
    scores.to_csv(path, index=False)
    config = f"methods: {{a: {{label: {label}}}}}\ncontrols: {{}}\n"
    (folder / "config.resolved.yaml").write_text(config)
    return folder


def test_two_folders_make_a_page(tmp_path):
    a = write_run(tmp_path / "a", run_scores({"brier": 0.0, "eece": 0.0}))
    b = write_run(tmp_path / "b", run_scores({"brier": 0.1, "eece": 0.0}), label="B")
    output = tmp_path / "page.html"
    assert main(["page", str(a), str(b), "--output", str(output)]) == 0
    text = output.read_text()
    assert "1 of 2 numbers differ" in text
    assert "methods.a.label" in text


def write_predictions(run, shift, rng):
    """Two tasks of the same 400 inputs, and the corrected errors that they have."""
    truth = np.random.default_rng(0).uniform(0.2, 0.6, 400)
    y_test = np.random.default_rng(1).uniform(size=400) < truth
    bins = np.tile(np.argsort(np.argsort(truth)) // 40, (2, 1))
    mean = np.clip(np.stack([truth + shift, 1 - truth + shift]) + rng.normal(0, 0.01, 400), 0, 1)
    folder = run / "pets" / "seed0" / "scores"
    arrays = {"mean_prediction": mean, "bins": bins}
    tasks = ["dog", "cat"]
    np.savez(folder / "a.npz", **arrays, provenance=json.dumps({"tasks": tasks}))
    labels = {"y_test": np.where(y_test, 1, 0), "class_names": ["cat", "dog"]}
    path = run / "pets" / "labels.npz"
    np.savez(path, **labels, test_rows=np.arange(400), provenance=json.dumps({}))
    return [y_test, ~y_test], list(mean), list(bins)


def test_the_corrected_error_of_the_same_inputs_has_an_interval_over_them(tmp_path):
    from epistemic_calibration.metrics import compare_mean_corrected_errors, mean_corrected_error

    rng, runs, made = np.random.default_rng(2), {}, {}
    for name, shift in (("a", 0.0), ("b", 0.1)):
        rows = [("task", task, "a", "tece_corrected", shift**2) for task in ("dog", "cat")]
        runs[name] = write_run(tmp_path / name, scored(rows))
        made[name] = write_predictions(runs[name], shift, rng)
    found = two_runs.moves_of_runs(*map(two_runs.read_run, runs.values()))
    (row,) = found.itertuples()
    y_true = made["a"][0]
    expected = compare_mean_corrected_errors(
        y_true, {k: made[k][1] for k in "ba"}, {k: made[k][2] for k in "ba"}
    )["b", "a"]
    assert row.interval_over == "inputs"
    assert (row.low, row.high) == (expected.ci_low, expected.ci_high)
    # The truth, 0.1², is within; and each run's error is that of its own bins.
    assert row.low < 0.01 < row.high
    assert mean_corrected_error(*made["b"]).estimate == pytest.approx(0.01, abs=0.005)


@pytest.mark.parametrize("what", ["labels", "tasks", "absent"])
def test_other_inputs_have_no_interval_over_them(what, tmp_path):
    rng, runs = np.random.default_rng(2), []
    for name in "ab":
        rows = [("task", task, "a", "tece_corrected", len(name)) for task in ("dog", "cat")]
        runs.append(write_run(tmp_path / name, scored(rows)))
        write_predictions(runs[-1], 0.1, rng)
    path = runs[1] / "pets" / ("labels.npz" if what == "labels" else "seed0/scores/a.npz")
    arrays = dict(np.load(path))
    if what == "labels":
        arrays["test_rows"] = arrays["test_rows"][::-1]
    else:
        arrays["provenance"] = json.dumps({"tasks": ["cat", "dog"]})
    if what == "absent":
        path.unlink()
    else:
        np.savez(path, **arrays)
    (row,) = two_runs.moves_of_runs(*map(two_runs.read_run, runs)).itertuples()
    assert row.interval_over == "tasks"


@pytest.mark.fault
def test_a_broken_file_of_predictions_is_named(tmp_path):
    runs = []
    for name in "ab":
        rows = [("task", task, "a", "tece_corrected", 0.1) for task in ("dog", "cat")]
        runs.append(write_run(tmp_path / name, scored(rows)))
        write_predictions(runs[-1], 0.1, np.random.default_rng(2))
    path = runs[0] / "pets" / "seed0" / "scores" / "a.npz"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=re.escape(f"{path} cannot be read")):
        two_runs.moves_of_runs(*map(two_runs.read_run, runs))


# The command


@pytest.mark.fault
@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["a.npz", "b.npz"], "page takes one file of predictions, or two folders of results"),
        (["empty"], "page takes one file of predictions, or two folders of results"),
        (["empty", "a.npz"], "page takes one file of predictions, or two folders of results"),
    ],
)
def test_a_wrong_call_is_refused(paths, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert main(["page", *paths, "--output", "page.html"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"epistemic-calibration page: {message}") and said.count("\n") == 1


@pytest.mark.fault
def test_a_folder_without_scores_is_named(tmp_path, capsys):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    paths = [str(tmp_path / name) for name in ("a", "b")]
    assert main(["page", *paths, "--output", str(tmp_path / "page.html")]) == 1
    assert f"{paths[0]}: no scores; a folder of results has" in capsys.readouterr().err


@pytest.mark.fault
def test_a_missing_library_is_named(tmp_path, monkeypatch, capsys):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "altair" else find(name, *a)
    )
    path = tmp_path / "a.npz"
    np.savez(path, hypotheses=RNG.random((20, 3)), y_true=np.arange(20) % 2)
    assert main(["page", str(path), "--output", str(tmp_path / "page.html")]) == 2
    assert capsys.readouterr().err == (
        "epistemic-calibration page: page needs altair: pip install 'epistemic-calibration[page]'\n"
    )


@pytest.mark.parametrize("several_labels", [False, True])
def test_a_file_of_predictions_makes_a_page(several_labels, tmp_path):
    p = RNG.beta(1, 2, 300)
    arrays = {"hypotheses": np.clip(p[:, None] + RNG.normal(0, 0.1, (300, 6)), 0, 1)}
    arrays["y_true"] = (RNG.random(300) < p).astype(int)
    if several_labels:
        arrays |= {"n_positive": RNG.binomial(10, p), "n_labels": np.full(300, 10)}
    np.savez(tmp_path / "mine.npz", **arrays)
    output = tmp_path / "page.html"
    assert main(["page", str(tmp_path / "mine.npz"), "--output", str(output)]) == 0
    text = output.read_text()
    assert "Is the uncertainty of the right size?" in text
    assert METRICS[TECE].label in text
    assert ("known from above only" in text) != several_labels


@pytest.mark.fault
def test_too_few_inputs_make_a_page_that_says_so(tmp_path):
    path = tmp_path / "few.npz"
    np.savez(path, hypotheses=RNG.random((5, 3)), y_true=[0, 1, 0, 1, 1])
    output = tmp_path / "page.html"
    assert main(["page", str(path), "--output", str(output)]) == 0
    assert "Nothing can be said of calibration from 5 inputs" in output.read_text()
