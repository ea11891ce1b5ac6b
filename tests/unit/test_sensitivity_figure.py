"""The figure of how estimates change with the numbers of bins and hypotheses."""

import itertools

import numpy as np
import pandas as pd
import pytest

from epistemic_calibration.report.sensitivity import sensitivity

METHODS = {name: {"label": name, "family": "active"} for name in ("mine", "random_forest")}


def make_sensitivity():
    axes = {"n_bins": [10, 100], "n_hypotheses": [5, 50]}
    rows = [
        ("toy", method, task, axis, value, metric, 0.01 * value / 100 - (metric != "eece") * 0.002)
        for method, task, axis in itertools.product(METHODS, "01", axes)
        for value, metric in itertools.product(axes[axis], ["eece", "tece_corrected"])
    ]
    columns = ["dataset", "method", "task", "axis", "axis_value", "metric", "value"]
    return pd.DataFrame(rows, columns=columns)


def test_sensitivity_has_a_panel_for_each_metric_and_axis():
    figure = sensitivity(make_sensitivity(), "toy", METHODS)
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
        sensitivity(make_sensitivity(), "elsewhere", METHODS)
