"""The figures of a data set: what they show of its scores, and that files are the same bytes."""

import itertools
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.text import Annotation
from PIL import Image

from epistemic_calibration.registry import load
from epistemic_calibration.report import FIGURES
from epistemic_calibration.report._metrics import metric_label
from epistemic_calibration.report._saving import save_figure
from epistemic_calibration.report.figures import (
    calibration_bars,
    calibration_map,
    calibration_maps,
    eece_parts,
    error_against_uncertainty,
    two_questions,
)
from epistemic_calibration.report.style import COLUMN_WIDTH, PAPER_METHODS, method_styles

ROOT = Path(__file__).parents[2]
METHODS = {
    "mine": {"label": "Mine", "family": "active"},
    "random_forest": {"label": "Random Forest", "family": "active"},
    "centroids": {"label": "Centroids", "family": "illustrative"},
    "base_rate": {"label": "Base rate", "family": "control"},
}
MEANS = {"mine": 0.002, "random_forest": 0.03, "centroids": 0.1, "base_rate": 0.0}


def make_scores(n_seeds=2, corrected=True, shift=0.0005):
    """Scores with zeros (the control) and negative corrected estimates (mine)."""
    rng = np.random.default_rng(0)
    rows = []
    for seed, task, (method, mean) in itertools.product(range(n_seeds), "0123", MEANS.items()):
        eece = mean * rng.uniform(0.8, 1.2)
        values = {
            "ece": 2 * eece,
            "eece": eece,
            "eece_calibration": 0.3 * eece,
            "eece_dispersion": 0.7 * eece,
        }
        if corrected:
            estimate = 0.2 * eece - shift
            values |= {
                "tece_corrected": estimate,
                "tece_corrected_low": estimate - 0.001,
                "tece_corrected_high": estimate + 0.001,
                "tece_noise_floor": 0.0008,
                "eece_noise_floor": 0.0008,
            }
        rows += [("toy", seed, method, task, metric, v) for metric, v in values.items()]
    columns = ["dataset", "seed", "method", "task", "metric", "value"]
    return pd.DataFrame(rows, columns=columns).assign(scope="task")


SHARES = {"mine": 0.04, "random_forest": 0.9, "centroids": 3.0, "base_rate": 0.0}


def size_scores(estimated, methods=SHARES, n_bins=5):
    """What is estimated of all tasks together, from several labels or as bounds from one."""
    rows = []
    for method in methods:
        share, tece = SHARES[method], 0.2 * MEANS[method] + 1e-4
        values = {"tece_corrected": tece}
        values |= {"tece_corrected_low": 0.5 * tece, "tece_corrected_high": 2 * tece}
        if estimated:
            values |= {"reported_share": share}
            values |= {"reported_share_low": 0.8 * share, "reported_share_high": 1.2 * share}
        else:
            values["reported_share_at_least"] = 0.5 * share
            values["reported_share_at_most"] = np.inf if method == "mine" else 2 * share
        rows += [("all_tasks", method, None, metric, value) for metric, value in values.items()]
        prefix, ends = ("curve", ("error_low", "error_high"))
        if not estimated:
            prefix, ends = ("bounds_curve", ("at_least", "at_most"))
        for number in range(n_bins):
            error = 10.0 ** -(n_bins - number)
            values = {"uncertainty": share * error, ends[0]: 0.5 * error, ends[1]: 2 * error}
            if estimated:
                values["error"] = error
            for name, value in values.items():
                rows.append(("bin", method, number, f"{prefix}_{name}", value))
    columns = ["scope", "method", "bin", "metric", "value"]
    return pd.DataFrame(rows, columns=columns).assign(dataset="toy", seed=0, task=None)


def labels_of(figure):
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    texts = [text for ax in figure.axes for text in ax.texts if isinstance(text, Annotation)]
    return {text.get_text(): text.get_window_extent(renderer) for text in texts}


def test_metric_labels():
    assert metric_label("eece") == "EECE"
    assert metric_label("my_metric") == "my metric"


@pytest.mark.parametrize(("n_seeds", "corrected"), [(1, False), (3, True)])
def test_figures_of_scores_draw(n_seeds, corrected):
    scores = make_scores(n_seeds, corrected)
    for draw in (calibration_bars.draw, calibration_map.draw, eece_parts.draw):
        figure = draw(scores, "toy", METHODS)
        figure.draw_without_rendering()
        texts = [text.get_text() for ax in figure.axes for text in ax.texts]
        ticks = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        assert {entry["label"] for entry in METHODS.values()} <= {*texts, *ticks}
    assert len(figure.axes) == 1 + corrected


def test_one_task_and_one_seed():
    scores = make_scores().query("task == '0' and seed == 0")
    for draw in (calibration_bars.draw, calibration_maps.draw, eece_parts.draw):
        draw(scores, "toy", METHODS).draw_without_rendering()


def test_bars_start_at_zero_and_end_at_the_mean():
    scores = make_scores()
    figure = calibration_bars.draw(scores, "toy", METHODS)
    assert figure.get_figwidth() == COLUMN_WIDTH
    assert [ax.get_xlabel() for ax in figure.axes] == ["ECE", "EECE"]
    means = scores[scores["metric"] == "eece"].groupby("method")["value"].mean().sort_values()
    bars = figure.axes[1].patches
    np.testing.assert_allclose([bar.get_width() for bar in bars], means)
    assert {bar.get_x() for bar in bars} == {0}
    assert figure.axes[1].get_xlim()[0] == 0
    colors = [bar.get_facecolor()[:3] for bar in bars]
    styles = method_styles(METHODS)
    assert colors == [to_rgb(styles[name].color) for name in means.index]


def test_a_method_without_scores_keeps_its_row():
    scores = make_scores().query("method != 'centroids'")
    figure = calibration_bars.draw(scores, "toy", METHODS)
    assert "Centroids" in [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert sum("no scores" in text.get_text() for text in figure.axes[0].texts) == 1
    parts = eece_parts.draw(scores, "toy", METHODS)
    assert [text.get_text() for text in parts.axes[0].texts].count("—") == 3
    assert "Centroids" not in labels_of(calibration_map.draw(scores, "toy", METHODS))


def test_map_shows_what_has_no_logarithm():
    figure = calibration_map.draw(make_scores(), "toy", METHODS, x_metric="tece_corrected")
    (ax,) = figure.axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Corrected TECE", "ECE")
    points = [line for line in ax.lines if line.get_marker() not in ("None", None, "")]
    assert len(points) == len(METHODS)
    hollow = {line.get_markeredgecolor() for line in points if line.get_mfc() == "white"}
    # 0.2 * 0.002 - 0.0005 < 0, and the control is at 0.
    styles = method_styles(METHODS)
    assert hollow == {styles["mine"].color, styles["base_rate"].color}
    left, right = ax.get_xlim()
    bottom, top = ax.get_ylim()
    for line in points:
        assert left < line.get_xdata()[0] < right
        assert bottom < line.get_ydata()[0] < top
    edges = [patch.get_x() + patch.get_width() for patch in ax.patches if patch.get_x() == left]
    drawn_left = [p.get_xdata()[0] for p in points if p.get_markeredgecolor() in hollow]
    assert max(drawn_left) < max(edge for edge in edges if edge < right)


def test_map_without_such_values_has_no_margin():
    scores = make_scores().query("method != 'base_rate'")
    (ax,) = calibration_map.draw(scores, "toy", METHODS).axes
    assert not any("<" in text.get_text() for text in ax.texts)
    means = scores[scores["metric"] == "eece"].groupby("method")["value"].mean()
    drawn = [line.get_xdata()[0] for line in ax.lines if line.get_marker() not in ("None", "")]
    np.testing.assert_allclose(sorted(drawn), sorted(means))


def test_map_of_zeros_only():
    scores = make_scores().assign(value=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = labels_of(calibration_map.draw(scores, "toy", METHODS))
    assert set(labels) == {entry["label"] for entry in METHODS.values()}


def test_labels_of_crowded_points_do_not_overlap():
    names = list(PAPER_METHODS)
    methods = {name: {"label": name.replace("_", " "), "family": "active"} for name in names}
    rng = np.random.default_rng(1)
    rows = [
        ("toy", 0, name, "0", metric, 0.01 * np.exp(rng.normal(0, 0.3)))
        for name, metric in itertools.product(names, ["ece", "eece"])
    ]
    columns = ["dataset", "seed", "method", "task", "metric", "value"]
    scores = pd.DataFrame(rows, columns=columns).assign(scope="task")
    figure = calibration_map.draw(scores, "toy", methods)
    boxes = labels_of(figure)
    assert len(boxes) == len(names)
    for a, b in itertools.combinations(boxes.values(), 2):
        common = a.intersection(a, b)
        assert common is None or common.width * common.height < 0.03 * a.width * a.height


def test_maps_share_axes():
    figure = calibration_maps.draw(make_scores(), "toy", METHODS)
    first, second = figure.axes
    assert first.get_xlim() == second.get_xlim()
    assert first.get_ylim() == second.get_ylim()
    assert (first.get_xlabel(), second.get_xlabel()) == ("EECE", "Corrected TECE")


def test_parts_are_shares_of_their_sum():
    (ax, _) = eece_parts.draw(make_scores(), "toy", METHODS).axes
    widths = [bar.get_width() for bar in ax.patches]
    # Three methods; the control has neither part, so no bar.
    np.testing.assert_allclose(widths, [0.3, 0.7] * 3)


def test_missing_metrics_are_named():
    scores = make_scores(corrected=False)
    with pytest.raises(ValueError, match="tece_corrected"):
        calibration_maps.draw(scores, "toy", METHODS)
    with pytest.raises(ValueError, match="eece_dispersion"):
        eece_parts.draw(scores.query("metric != 'eece_dispersion'"), "toy", METHODS)
    with pytest.raises(ValueError, match="'elsewhere' has no scores"):
        calibration_bars.draw(scores, "elsewhere", METHODS)


def test_saved_files_are_the_same_bytes_each_time(tmp_path):
    for folder in ("one", "two"):
        figure = calibration_map.draw(make_scores(), "toy", METHODS)
        paths = save_figure(figure, tmp_path / folder / "map")
        assert [path.name for path in paths] == ["map.png", "map.pdf"]
    for name in ("map.png", "map.pdf"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    pdf = (tmp_path / "one" / "map.pdf").read_bytes()
    assert b"/FontFile2" in pdf  # TrueType, embedded
    assert b"Type3" not in pdf
    assert not re.search(rb"CreationDate|Producer|Creator", pdf)
    png = (tmp_path / "one" / "map.png").read_bytes()
    width = int.from_bytes(png[16:20], "big")
    assert width == round(200 * COLUMN_WIDTH)
    with Image.open(tmp_path / "one" / "map.png") as image:
        assert image.text == {}
    assert not re.search(rb"Keywords", pdf)


def test_registered_figures():
    assert {"calibration_bars", "calibration_map", "calibration_maps", "eece_parts"} <= {*FIGURES}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_can_be_drawn_and_has_a_caption(name):
    draw = load("epistemic_calibration.report.figures", name).draw
    for estimated in (False, True):
        scores = pd.concat([make_scores(), size_scores(estimated)])
        draw(scores, "toy", METHODS).draw_without_rendering()
    assert (ROOT / "report" / f"{name}.rst").is_file()


@pytest.mark.parametrize("estimated", [False, True])
def test_the_two_questions_are_where_they_should_be(estimated):
    figure = two_questions.draw(size_scores(estimated), "toy", METHODS)
    (ax,) = figure.axes
    assert set(labels_of(figure)) == {entry["label"] for entry in METHODS.values()}
    points = {
        line.get_markerfacecolor(): line.get_xydata()[0]
        for line in ax.lines
        if line.get_marker() not in ("None", None, "")
    }
    for name in ("random_forest", "centroids"):
        x, y = points[method_styles(METHODS)[name].color]
        assert x == pytest.approx(0.2 * MEANS[name] + 1e-4)
        assert y == pytest.approx(SHARES[name])
    # What is right is always in sight.
    assert ax.get_ylim()[0] < 1 < ax.get_ylim()[1]


def test_the_two_questions_need_both_answers():
    scores = size_scores(True).query("metric != 'reported_share'")
    with pytest.raises(ValueError, match="no method of dataset='toy' has both tece_corrected and"):
        two_questions.draw(scores, "toy", METHODS)


def test_a_panel_of_error_against_uncertainty_is_a_method():
    scores = size_scores(True, methods=("mine", "centroids"))
    figure = error_against_uncertainty.draw(scores, "toy", METHODS)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_title() for ax in shown] == ["Centroids", "Mine"]
    color = method_styles(METHODS)["centroids"].color
    (line,) = [line for line in shown[0].lines if line.get_color() == color]
    error = 10.0 ** -np.arange(5, 0, -1)
    np.testing.assert_allclose(line.get_ydata(), error)
    np.testing.assert_allclose(line.get_xdata(), 3 * error)
    (whiskers,) = shown[0].collections
    ends = np.array([segment[:, 1] for segment in whiskers.get_segments()])
    np.testing.assert_allclose(ends, np.clip(error[:, None] * [0.5, 2], 1e-5, None))
    with pytest.raises(ValueError, match="no method of dataset='toy' has bounds_curve"):
        error_against_uncertainty.draw(make_scores(), "toy", METHODS)


def test_parts_show_the_interval_of_all_tasks():
    scores = make_scores()
    limits = scores[scores["metric"].isin(["tece_corrected_low", "tece_corrected_high"])]
    together = limits[limits["task"] == "0"].assign(scope="all_tasks", task=np.nan)
    ends = {"tece_corrected_low": 0.25, "tece_corrected_high": 0.75}
    together["value"] = together["metric"].map(ends)
    (_, ax) = eece_parts.draw(pd.concat([scores, together]), "toy", METHODS).axes
    intervals = [line.get_xdata() for line in ax.lines if line.get_linewidth() == 1.8]
    assert [list(interval) for interval in intervals] == [[0.25, 0.75]] * len(METHODS)
