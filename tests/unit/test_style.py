"""Colours and markers of methods."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from epistemic_calibration.methods import available_methods
from epistemic_calibration.report.style import PAPER_METHODS, method_styles

CONTROLS = ("oracle", "base_rate", "label_shuffled_ensemble", "venn_abers")
EXTENDED = tuple(name for name in available_methods() if name not in (*PAPER_METHODS, *CONTROLS))

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
    names = [*PAPER_METHODS, *CONTROLS, *EXTENDED]
    assert len(names) >= 17
    styles = method_styles(names)
    assert list(styles) == names
    assert len({style.marker for style in styles.values()}) == len(names)
    seen = [lab(style.color, BLINDNESS[kind]) for style in styles.values()]
    # A difference of 2.3 is just noticeable side by side.
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 10


def test_further_methods_have_styles_of_their_own():
    names = [*PAPER_METHODS, *CONTROLS, *EXTENDED, *(f"user_{i}" for i in range(20))]
    styles = method_styles(names)
    assert len({(style.color, style.marker) for style in styles.values()}) == len(names)
    for name in names[:-19]:
        # In whatever company.
        assert method_styles([name])[name] == styles[name]
    fixed = {styles[name].color for name in (*PAPER_METHODS, *CONTROLS, *EXTENDED)}
    assert not fixed & {styles[f"user_{i}"].color for i in range(20)}
    with pytest.raises(ValueError, match="21 names"):
        method_styles([*names, "one_too_many"])
