"""The figures of a data set: what they show of its scores, and that files are the same bytes."""

import itertools
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import is_math_text
from matplotlib.text import Annotation, Text
from PIL import Image

from epistemic_calibration.registry import load
from epistemic_calibration.report import FIGURES
from epistemic_calibration.report._metrics import metric_label
from epistemic_calibration.report._names import drawable
from epistemic_calibration.report._saving import save_figure
from epistemic_calibration.report.figures import (
    calibration_bars,
    calibration_map,
    calibration_maps,
    eece_parts,
    error_against_uncertainty,
    two_questions,
)
from epistemic_calibration.report.style import (
    COLUMN_WIDTH,
    FULL_WIDTH,
    PAPER_METHODS,
    method_styles,
)

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
    # Without their leaders.
    return {text.get_text(): Text.get_window_extent(text, renderer) for text in texts}


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


def test_dots_show_every_task_and_the_mean_within_the_axes():
    scores = make_scores()
    figure = calibration_bars.draw(scores, "toy", METHODS)
    assert figure.get_figwidth() == FULL_WIDTH
    assert [ax.get_xlabel() for ax in figure.axes] == ["ECE", "EECE", "Corrected TECE"]
    assert not any(ax.patches for ax in figure.axes)
    styles = method_styles(METHODS)
    for ax, metric in zip(figure.axes, ("ece", "eece", "tece_corrected"), strict=True):
        chosen = scores[scores["metric"] == metric]
        for name, style in styles.items():
            own = [line for line in ax.lines if line.get_color() == style.color]
            tasks = chosen[chosen["method"] == name].groupby("task")["value"].mean()
            (dots,) = [line for line in own if len(line.get_xdata()) == len(tasks) > 2]
            np.testing.assert_allclose(sorted(dots.get_xdata()), sorted(tasks))
            (mean,) = [line for line in own if line.get_marker() == style.marker]
            np.testing.assert_allclose(mean.get_xdata(), [tasks.mean()])
            # Dots are not hidden by the mean.
            assert mean.get_ydata()[0] - dots.get_ydata()[0] > 0.2
        low, high = ax.get_xlim()
        drawn = np.concatenate([line.get_xdata() for line in ax.lines])
        assert low < drawn.min() and drawn.max() < high


def test_dots_have_intervals_of_all_tasks():
    scores = pd.concat([make_scores(), size_scores(True)])
    ax = calibration_bars.draw(scores, "toy", METHODS).axes[2]
    bars = [list(line.get_xdata()) for line in ax.lines if line.get_linewidth() == 2]
    expected = [[0.5 * t, 2 * t] for t in sorted(0.2 * mean + 1e-4 for mean in MEANS.values())]
    np.testing.assert_allclose(sorted(bars), expected)


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


def map_scores(spread, seed, names=PAPER_METHODS):
    rng = np.random.default_rng(seed)
    rows = [
        ("toy", 0, name, "0", metric, 0.01 * np.exp(rng.normal(0, spread)))
        for name, metric in itertools.product(names, ["ece", "eece"])
    ]
    columns = ["dataset", "seed", "method", "task", "metric", "value"]
    return pd.DataFrame(rows, columns=columns).assign(scope="task")


@pytest.mark.parametrize(("spread", "seed"), [(2, 1), (2, 2), (0.3, 1), (0.01, 1)])
def test_labels_are_nearest_to_their_own_marker_or_in_a_legend(spread, seed):
    methods = {n: {"label": n.replace("_", " "), "family": "active"} for n in PAPER_METHODS}
    figure = calibration_map.draw(map_scores(spread, seed), "toy", methods)
    boxes, (ax,) = labels_of(figure), figure.axes
    if figure.legends:
        assert not boxes
        listed = {text.get_text() for text in figure.legends[0].get_texts()}
        assert listed == {method["label"] for method in methods.values()}
        assert spread < 1
        return
    assert spread > 0.1
    assert len(boxes) == len(methods)
    styles = method_styles(methods)
    places = {
        methods[name]["label"]: ax.transData.transform(line.get_xydata()[0])
        for name, style in styles.items()
        for line in ax.lines
        if line.get_marker() == style.marker
    }

    def distance(box, place):
        gap = np.maximum(
            [box.x0 - place[0], box.y0 - place[1]], [place[0] - box.x1, place[1] - box.y1]
        )
        return np.hypot(*gap.clip(min=0))

    for label, box in boxes.items():
        nearest = min(places, key=lambda other: distance(box, places[other]))
        assert nearest == label
        assert distance(box, places[label]) > 0
    for a, b in itertools.combinations(boxes.values(), 2):
        common = a.intersection(a, b)
        assert common is None or common.width * common.height < 0.03 * a.width * a.height


def test_a_map_has_a_place_for_more_methods_than_the_paper():
    names = [*PAPER_METHODS, "swag", "evidential", *(f"user_{i}" for i in range(6))]
    methods = {name: {"label": name, "family": "active"} for name in names}
    figure = calibration_map.draw(map_scores(0.2, 0, names), "toy", methods)
    before = figure.get_figheight()
    listed = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(listed) == sorted(names)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent(renderer)
    assert legend.y1 < figure.axes[0].get_tightbbox(renderer).y0 + 1
    assert legend.y0 >= 0 and legend.x0 >= 0 and legend.x1 <= figure.bbox.x1
    assert before == figure.get_figheight()


def test_markers_at_the_same_place_are_all_seen():
    scores = make_scores().query("metric in ('ece', 'eece')").assign(value=0.01)
    (ax,) = calibration_map.draw(scores, "toy", METHODS).axes
    styles = method_styles(METHODS).values()
    sizes = [
        line.get_markersize()
        for line in ax.lines
        if line.get_marker() in [style.marker for style in styles]
    ]
    # The first is drawn first, beneath.
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(METHODS)


@pytest.mark.parametrize("draw", [calibration_map.draw, calibration_maps.draw, two_questions.draw])
def test_whiskers_end_within_the_axes(draw):
    scores = pd.concat([make_scores(), size_scores(True)])
    # From a value that no logarithm has.
    scores.loc[(scores["method"] == "centroids") & (scores["task"] == "0"), "value"] = -0.001
    for ax in draw(scores, "toy", METHODS).axes:
        (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
        colors = [style.color for style in method_styles(METHODS).values()]
        whiskers = [line for line in ax.lines if line.get_color() in colors]
        assert len(whiskers) >= 2 * len(METHODS)
        for line in whiskers:
            x, y = line.get_xydata().T
            assert left < x.min() <= x.max() < right
            assert bottom < y.min() <= y.max() < top


def test_a_map_says_what_its_whiskers_are():
    scores = pd.concat([make_scores(), size_scores(True)])
    figure = calibration_maps.draw(scores, "toy", METHODS)
    assert "ECE: smallest to largest" in figure.get_suptitle()
    assert "Corrected TECE: 95 % interval of the mean" in figure.get_suptitle()
    x = 0.2 * MEANS["centroids"] + 1e-4
    color = method_styles(METHODS)["centroids"].color
    ends = [line.get_xdata() for line in figure.axes[1].lines if line.get_color() == color]
    assert any(np.allclose(pair, [0.5 * x, 2 * x]) for pair in ends if len(pair) == 2)
    assert figure.get_suptitle() != calibration_map.draw(scores, "toy", METHODS).get_suptitle()


STRANGE = ["a_$x$", "50 %", "<b>", "line\nbreak", "$", r"\$\frac$", "Дождь", "日本", "x^{2", "a\tb"]


@pytest.mark.parametrize("name", FIGURES)
def test_any_label_can_be_drawn_as_it_is(name):
    draw = load("epistemic_calibration.report.figures", name).draw
    scores = pd.concat([make_scores(), size_scores(True)])
    for four in (STRANGE[:4], STRANGE[4:8], STRANGE[6:]):
        methods = {
            n: {**method, "label": label}
            for (n, method), label in zip(METHODS.items(), four, strict=True)
        }
        with warnings.catch_warnings():
            # Such as of a glyph that the font lacks.
            warnings.simplefilter("error")
            figure = draw(scores, "toy", methods)
            figure.draw_without_rendering()
        texts = {text.get_text() for text in figure.findobj(Text)}
        assert {drawable(label) for label in four} <= texts


def test_names_differ_in_figures_as_they_do_in_the_configuration():
    shown = [drawable(name) for name in STRANGE]
    assert len(set(shown)) == len(STRANGE)
    assert not any(is_math_text(text) for text in shown)
    assert all(len(text.splitlines()) == 1 for text in shown)
    # What is drawn has its dollar signs back.
    assert drawable("a_$x$").replace(r"\$", "$") == "a_$x$"


def test_maps_share_axes():
    figure = calibration_maps.draw(make_scores(), "toy", METHODS)
    first, second = figure.axes
    assert first.get_xlim() == second.get_xlim()
    assert first.get_ylim() == second.get_ylim()
    assert (first.get_xlabel(), second.get_xlabel()) == ("EECE", "Corrected TECE")


def test_parts_are_where_their_values_are_and_nothing_is_no_bar():
    scores = make_scores()
    (ax, _) = eece_parts.draw(scores, "toy", METHODS).axes
    assert not ax.patches
    means = scores.groupby(["metric", "method"])["value"].mean()
    for name, style in method_styles(METHODS).items():
        own = [line for line in ax.lines if line.get_markeredgecolor() == style.color]
        at = {line.get_marker(): float(line.get_xdata()[0]) for line in own}
        assert at["o"] == pytest.approx(means["eece_calibration", name])
        assert at["s"] == pytest.approx(means["eece_dispersion", name])
    low, high = ax.get_xlim()
    drawn = np.concatenate([line.get_xdata() for line in ax.lines])
    assert low < drawn.min() and drawn.max() < high
    # The control has neither part, so nothing off 0.
    row = [line for line in ax.lines if set(line.get_ydata()) == {len(METHODS) - 1}]
    assert {float(x) for line in row for x in line.get_xdata()} == {0.0}


@pytest.mark.fault
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
