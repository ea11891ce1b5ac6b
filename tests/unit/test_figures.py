import itertools
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.text import Annotation
from PIL import Image

from epistemic_calibration import figures
from epistemic_calibration.style import (
    COLUMN_WIDTH,
    PAPER_METHODS,
    method_styles,
    metric_label,
)

CONTROLS = ("oracle", "base_rate", "label_shuffled_ensemble")
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
    return pd.DataFrame(rows, columns=["dataset", "seed", "method", "task", "metric", "value"])


def make_sensitivity():
    axes = {"n_bins": [10, 100], "n_hypotheses": [5, 50]}
    rows = [
        ("toy", method, task, axis, value, metric, 0.01 * value / 100 - (metric != "eece") * 0.002)
        for method, task, axis in itertools.product(METHODS, "01", axes)
        for value, metric in itertools.product(axes[axis], ["eece", "tece_corrected"])
    ]
    columns = ["dataset", "method", "task", "axis", "axis_value", "metric", "value"]
    return pd.DataFrame(rows, columns=columns)


def labels_of(figure):
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    texts = [text for ax in figure.axes for text in ax.texts if isinstance(text, Annotation)]
    return {text.get_text(): text.get_window_extent(renderer) for text in texts}


# Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}


def lab(color, matrix):
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    xyz = to_xyz @ np.clip(matrix @ linear, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colors_can_be_told_apart(kind):
    names = [*PAPER_METHODS, *CONTROLS]
    styles = method_styles(names)
    assert list(styles) == names
    assert len({style.marker for style in styles.values()}) == len(names)
    seen = [lab(style.color, BLINDNESS[kind]) for style in styles.values()]
    # A difference of 2.3 is just noticeable side by side.
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 10


def test_styles_do_not_depend_on_the_company():
    everything = method_styles([*CONTROLS, "a_new_one", *reversed(PAPER_METHODS)])
    for name, style in everything.items():
        assert method_styles([name])[name] == style


def test_further_methods_have_styles_of_their_own():
    names = [*PAPER_METHODS, *CONTROLS, *(f"user_{i}" for i in range(20))]
    styles = method_styles(names)
    assert len({(style.color, style.marker) for style in styles.values()}) == len(names)
    fixed = {styles[name].color for name in (*PAPER_METHODS, *CONTROLS)}
    assert not fixed & {styles[f"user_{i}"].color for i in range(20)}
    with pytest.raises(ValueError, match="21 names"):
        method_styles([*names, "one_too_many"])


def test_metric_labels():
    assert metric_label("eece") == "EECE"
    assert metric_label("my_metric") == "my metric"


@pytest.mark.parametrize(("n_seeds", "corrected"), [(1, False), (3, True)])
def test_figures_of_scores_draw(n_seeds, corrected):
    scores = make_scores(n_seeds, corrected)
    for draw in (figures.calibration_bars, figures.calibration_map, figures.eece_parts):
        figure = draw(scores, "toy", METHODS)
        figure.draw_without_rendering()
        texts = [text.get_text() for ax in figure.axes for text in ax.texts]
        ticks = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        assert {entry["label"] for entry in METHODS.values()} <= {*texts, *ticks}
    assert len(figure.axes) == 1 + corrected


def test_one_task_and_one_seed():
    scores = make_scores().query("task == '0' and seed == 0")
    for draw in (figures.calibration_bars, figures.calibration_maps, figures.eece_parts):
        draw(scores, "toy", METHODS).draw_without_rendering()


def test_bars_start_at_zero_and_end_at_the_mean():
    scores = make_scores()
    figure = figures.calibration_bars(scores, "toy", METHODS)
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
    figure = figures.calibration_bars(scores, "toy", METHODS)
    assert "Centroids" in [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert sum("no scores" in text.get_text() for text in figure.axes[0].texts) == 1
    parts = figures.eece_parts(scores, "toy", METHODS)
    assert [text.get_text() for text in parts.axes[0].texts].count("—") == 3
    assert "Centroids" not in labels_of(figures.calibration_map(scores, "toy", METHODS))


def test_map_shows_what_has_no_logarithm():
    figure = figures.calibration_map(make_scores(), "toy", METHODS, x_metric="tece_corrected")
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
    (ax,) = figures.calibration_map(scores, "toy", METHODS).axes
    assert not any("<" in text.get_text() for text in ax.texts)
    means = scores[scores["metric"] == "eece"].groupby("method")["value"].mean()
    drawn = [line.get_xdata()[0] for line in ax.lines if line.get_marker() not in ("None", "")]
    np.testing.assert_allclose(sorted(drawn), sorted(means))


def test_map_of_zeros_only():
    scores = make_scores().assign(value=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = labels_of(figures.calibration_map(scores, "toy", METHODS))
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
    figure = figures.calibration_map(pd.DataFrame(rows, columns=columns), "toy", methods)
    boxes = labels_of(figure)
    assert len(boxes) == len(names)
    for a, b in itertools.combinations(boxes.values(), 2):
        common = a.intersection(a, b)
        assert common is None or common.width * common.height < 0.03 * a.width * a.height


def test_maps_share_axes():
    figure = figures.calibration_maps(make_scores(), "toy", METHODS)
    first, second = figure.axes
    assert first.get_xlim() == second.get_xlim()
    assert first.get_ylim() == second.get_ylim()
    assert (first.get_xlabel(), second.get_xlabel()) == ("EECE", "Corrected TECE")


def test_parts_are_shares_of_their_sum():
    (ax, _) = figures.eece_parts(make_scores(), "toy", METHODS).axes
    widths = [bar.get_width() for bar in ax.patches]
    # Three methods; the control has neither part, so no bar.
    np.testing.assert_allclose(widths, [0.3, 0.7] * 3)


def test_missing_metrics_are_named():
    scores = make_scores(corrected=False)
    with pytest.raises(ValueError, match="tece_corrected"):
        figures.calibration_maps(scores, "toy", METHODS)
    with pytest.raises(ValueError, match="eece_dispersion"):
        figures.eece_parts(scores.query("metric != 'eece_dispersion'"), "toy", METHODS)
    with pytest.raises(ValueError, match="'elsewhere' has no scores"):
        figures.calibration_bars(scores, "elsewhere", METHODS)


def test_sensitivity_has_a_panel_for_each_metric_and_axis():
    figure = figures.sensitivity(make_sensitivity(), "toy", METHODS)
    figure.draw_without_rendering()
    assert len(figure.axes) == 4
    assert [ax.get_ylabel() for ax in figure.axes[::2]] == ["EECE", "Corrected TECE"]
    assert [ax.get_xlabel() for ax in figure.axes[2:]] == [
        "Number of bins",
        "Number of hypotheses",
    ]
    lines = [line for line in figure.axes[3].lines if line.get_marker() not in ("None", "")]
    assert len(lines) == len(METHODS)
    np.testing.assert_allclose(lines[0].get_xdata(), [5, 50])
    np.testing.assert_allclose(lines[0].get_ydata(), [0.0005 - 0.002, 0.005 - 0.002])
    with pytest.raises(ValueError, match="'elsewhere' has no finite value"):
        figures.sensitivity(make_sensitivity(), "elsewhere", METHODS)


def test_loss_curve():
    history = pd.DataFrame({"epoch": [1, 2, 3], "loss": [0.03, 0.01, 0.009]})
    (ax,) = figures.loss_curve(history).axes
    np.testing.assert_allclose(ax.lines[0].get_ydata(), history["loss"])
    assert ax.get_ylim()[0] == 0
    with pytest.raises(ValueError, match="epoch and loss"):
        figures.loss_curve(history.rename(columns={"loss": "mse"}))


@pytest.mark.parametrize(
    "shape", [(2, 8, 8), (2, 1, 8, 8), (2, 8, 8, 1), (2, 3, 8, 8), (2, 8, 8, 3)]
)
def test_reconstructions_of_grey_and_colour_images(shape):
    images = np.random.default_rng(0).uniform(size=shape)
    figure = figures.reconstructions(images, images * 0.5, ["cat", "dog"])
    figure.draw_without_rendering()
    assert [ax.get_title() for ax in figure.axes] == ["cat", "dog", "", ""]
    shown = figure.axes[1].images[0].get_array()
    assert shown.shape == ((8, 8, 3) if 3 in shape else (8, 8))
    second = images[1]
    expected = second.transpose(1, 2, 0) if shape[1] == 3 else second.reshape(shown.shape)
    np.testing.assert_allclose(shown, expected)


def test_reconstructions_refuse_other_shapes():
    with pytest.raises(ValueError, match="same shape"):
        figures.reconstructions(np.zeros((2, 8, 8)), np.zeros((2, 8, 9)), ["cat", "dog"])
    with pytest.raises(ValueError, match="not grey or colour"):
        figures.reconstructions(np.zeros((2, 64)), np.zeros((2, 64)), ["cat", "dog"])


def test_saved_files_are_the_same_bytes_each_time(tmp_path):
    for folder in ("one", "two"):
        figure = figures.calibration_map(make_scores(), "toy", METHODS)
        paths = figures.save_figure(figure, tmp_path / folder / "map", "ab" * 32)
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
        assert image.text == {"fingerprint": "ab" * 32}
    assert b"fingerprint: " + b"ab" * 32 in pdf
