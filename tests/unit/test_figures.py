"""The figures of a data set: what they show of its scores, and that files are the same bytes."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from page_data import TABLE_METHODS, run_results, together
from shipped import ROOT

from epistemic_calibration.registry import load
from epistemic_calibration.report import FIGURES
from epistemic_calibration.report._names import drawable
from epistemic_calibration.report._saving import save_figure
from epistemic_calibration.report.figures import (
    _axes,
    _panels,
    answers,
    eece_parts,
    error_against_uncertainty,
    paper_map,
    reliability,
)
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.style import COLUMN_WIDTH, FULL_WIDTH

METHODS = TABLE_METHODS | {"swag": {"label": "SWAG", "family": "active"}}
# Corrected TECE with its limits, share with its own, errors in all and in those kept.
VALUES = {
    "mine": (0.0004, 0.0, 0.0009, 0.5, np.inf, 0.05, 0.01),
    "random_forest": (0.0025, 0.0016, 0.0036, 0.1, 0.4, 0.06, 0.02),
    "swag": (0.0036, 0.0025, 0.0049, 0.8, 1.2, 0.07, 0.03),
    "centroids": (0.04, 0.0361, 0.0441, 2.0, 4.0, 0.2, 0.2),
    "base_rate": (0.0, 0.0, 0.0001, 0.0, 0.0, 0.1, 0.1),
}


def results():
    names = ["tece_corrected", "tece_corrected_low", "tece_corrected_high"]
    names += ["reported_share_at_least", "reported_share_at_most", "error_rate", "kept_error_90"]
    scores = together({m: dict(zip(names, v, strict=True)) for m, v in VALUES.items()}, "toy")
    return DatasetResults(scores, "toy", METHODS)


@pytest.fixture(scope="module")
def run():
    """Scored results with plain names: of several labels, and of one."""
    plain = {
        n: {"label": n, "family": m["family"]} for n, m in run_results().datasets[0].methods.items()
    }
    return [dataclasses.replace(d, methods=plain) for d in run_results().datasets]


def lines_at(ax, height, marker):
    return [
        float(x)
        for line in ax.lines
        if line.get_marker() == marker
        for x, y in zip(*map(np.atleast_1d, line.get_data()), strict=True)
        if y == height
    ]


def test_methods_stand_by_calibration_error_and_families_apart():
    ax = answers.draw(results()).axes[0]
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == [METHODS[name]["label"] for name in VALUES]
    # A heading takes a row, before illustrative methods and before controls.
    np.testing.assert_array_equal(ax.get_yticks(), [0, -1, -2, -4, -6])
    assert {"Illustrative:", "Controls:"} <= {text.get_text() for text in ax.texts}


def test_answers_show_points_and_no_marker_where_only_bounds_are_known():
    errors, shares, kept = answers.draw(results()).axes
    for height, (tece, *_, error, errors_kept) in zip(
        (0, -1, -2, -4, -6), VALUES.values(), strict=True
    ):
        assert lines_at(errors, height, "o") == pytest.approx([100 * tece**0.5])
        assert sorted(lines_at(kept, height, "o")) == pytest.approx(
            sorted([100 * error, 100 * errors_kept])
        )
        assert lines_at(shares, height, "o") == []
    words = [text.get_text() for text in shares.texts]
    assert words == ["cannot be told", "too small", "about right", "too large", "too small"]
    bars = {bar.get_y() + bar.get_height() / 2: bar for bar in shares.patches}
    assert bars[-1].get_x() == pytest.approx(10) and bars[-1].get_width() == pytest.approx(30)
    # A bar without end stops before the arrow's head, which stands at the axis.
    (arrow,) = lines_at(shares, 0, ">")
    assert bars[0].get_x() + bars[0].get_width() < arrow < shares.get_xlim()[1]
    assert lines_at(shares, -6, "<") and -6 not in bars
    assert lines_at(shares, -1, ">") == lines_at(shares, -1, "<") == []


def test_an_estimated_share_has_a_marker(run):
    ax = answers.draw(run[0]).axes[1]
    shares = answers.answers(run[0])["share"].dropna()
    shown = [float(line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "o"]
    assert shown == pytest.approx(list(shares[shares.between(*ax.get_xlim())]))
    assert shown


@pytest.mark.parametrize(("far", "scale"), [(6.0, "linear"), (27.0, "function")])
def test_an_axis_from_zero_is_of_roots_where_one_value_is_far_off(far, scale):
    ax = Figure().subplots()
    _axes.from_zero(ax, np.array([3.0, 4.0, 5.0, np.nan, far]), least=1.0)
    assert ax.get_xscale() == scale and ax.get_xlim()[0] == 0 and ax.get_xlim()[1] > far
    zero, five, twenty = ax.transData.transform([[x, 0] for x in (0, 5, 20)])[:, 0]
    assert (twenty - zero) / (five - zero) == pytest.approx(4 if scale == "linear" else 2)


def test_panels_of_methods_show_active_ones_first(run):
    several, _ = run
    assert _axes.ranked(several)[-2:] == ["eknn", "base_rate"]
    found = _panels.chosen(several, _panels.diagnosed(several, "reliability"))
    assert set(found) == {"random_forest", "laplace"}


def test_reliability_shows_the_frequencies_and_the_calibration_error(run):
    several, _ = run
    figure = reliability.draw(several)
    name = figure.axes[0].get_title()
    found = several.diagnostics[name]["reliability"]
    (dots,) = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    np.testing.assert_allclose(dots.get_xydata().T, [found["predicted"], found["frequency"]])
    scores = several.scores.query("scope == 'all_tasks' and metric == 'tece_corrected'")
    tece = scores.set_index("method")["value"][name]
    assert [text.get_text() for text in figure.axes[0].texts] == [f"{100 * tece**0.5:.1f} points"]


def test_error_curves_are_in_points_and_one_label_gives_bars(run):
    several, one = run
    curves = _panels.error_curves(several)
    rows = several.scores.query("scope == 'bin' and method == 'laplace' and bin == 3")
    value = rows.set_index("metric")["value"]
    assert curves["laplace"].loc[3, "error"] == pytest.approx(
        100 * max(value["curve_error"], 0) ** 0.5
    )
    bounds = _panels.error_curves(one)["laplace"]
    assert bounds["error"].isna().all() and (bounds["low"] <= bounds["high"]).all()
    ax = error_against_uncertainty.draw(one).axes[0]
    assert ax.get_xlim() == ax.get_ylim() and ax.get_aspect() == 1
    curve = _panels.error_curves(one)[ax.get_title()]
    middles = [bar.get_x() + bar.get_width() / 2 for bar in ax.patches]
    np.testing.assert_allclose(sorted(middles), sorted(curve["uncertainty"]))
    assert [line for line in ax.lines if line.get_marker() == "o"] == []
    for bar in ax.patches:
        x = bar.get_x() + bar.get_width() / 2
        crosses = bar.get_y() <= x <= bar.get_y() + bar.get_height()
        assert (bar.get_facecolor()[:3] == (1, 1, 1)) == crosses


def test_parts_and_map_are_where_their_values_are(run):
    several, _ = run
    means = several.scores.query("scope == 'task'").groupby(["metric", "method"])["value"].mean()
    order = _axes.ranked(several)
    ax = eece_parts.draw(several).axes[0]
    for marker, metric in (("o", "eece_calibration"), ("s", "eece_dispersion"), ("|", "eece")):
        (line,) = [line for line in ax.lines if line.get_marker() == marker]
        np.testing.assert_allclose(line.get_xdata(), means[metric][order])
    ax = paper_map.draw(several).axes[0]
    found = sorted(tuple(line.get_xydata()[0]) for line in ax.lines)
    expected = [(max(means["eece", n], 1e-5), max(means["ece", n], 1e-5)) for n in order]
    np.testing.assert_allclose(found, sorted(expected))


STRANGE = ["a_$x$", "50 %", "<b>", "line\nbreak", "$", r"\$\frac$", "Дождь", "日本", "x^{2", "a\tb"]


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("width", [COLUMN_WIDTH, FULL_WIDTH])
def test_any_label_can_be_drawn_as_it_is(name, width, run):
    module = load("epistemic_calibration.report.figures", name)
    assert (ROOT / "report" / f"{name}.rst").read_text("utf-8") == module.CAPTION + "\n"
    module.draw(run[1], width=width).draw_without_rendering()
    for four in (STRANGE[:4], STRANGE[4:8], STRANGE[6:]):
        methods = {
            n: {"label": label, "family": "active"}
            for n, label in zip(run[0].methods, four, strict=True)
        }
        with warnings.catch_warnings():
            # Such as of a glyph that the font lacks.
            warnings.simplefilter("error")
            figure = module.draw(dataclasses.replace(run[0], methods=methods), width=width)
            figure.draw_without_rendering()
        texts = {text.get_text() for text in figure.findobj(Text)}
        assert {drawable(label) for label in four} <= texts
        assert figure.get_figwidth() == width


def test_saved_files_are_the_same_bytes_each_time(tmp_path):
    for folder in ("one", "two"):
        figure = answers.draw(results(), width=COLUMN_WIDTH)
        paths = save_figure(figure, tmp_path / folder / "map", caption="Words.")
    assert [path.name for path in paths] == ["map.png", "map.pdf", "map.txt"]
    png, pdf, text = (path.read_bytes() for path in paths)
    assert [png, pdf, text] == [(tmp_path / "one" / p.name).read_bytes() for p in paths]
    assert b"/FontFile2" in pdf and b"Type3" not in pdf  # TrueType, embedded
    assert not any(word in pdf for word in (b"CreationDate", b"Producer", b"Creator"))
    assert int.from_bytes(png[16:20], "big") == round(200 * COLUMN_WIDTH)


@pytest.mark.fault
def test_what_is_missing_is_named():
    found = results()
    for module, words in (
        (eece_parts, "eece_dispersion"),
        (paper_map, "both eece and ece"),
        (error_against_uncertainty, "nothing of any method"),
    ):
        task = found.scores.assign(scope="task", task="cat", metric="accuracy").head(1)
        with pytest.raises(ValueError, match=words):
            module.draw(dataclasses.replace(found, scores=pd.concat([found.scores, task])))
    without = found.scores[~found.scores["metric"].str.startswith("tece")]
    with pytest.raises(ValueError, match="no method of dataset='toy' has a corrected TECE"):
        answers.draw(dataclasses.replace(found, scores=without))
