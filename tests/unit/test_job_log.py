"""The last line of a job's log names the line to blame."""

import importlib.util
import logging

import pytest

from epistemic_calibration.workflow.job_log import failed_line
from epistemic_calibration.workflow.job_warnings import WarningCollector

OWN = """\
import numpy as np
from epistemic_calibration.metrics import accuracy

def invert():
    return np.linalg.inv(np.zeros((2, 2)))

def score():
    return accuracy([0, 1], [0.5, 7.0])

def wrapped():
    try:
        invert()
    except ValueError as error:
        raise RuntimeError("no inverse") from error
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("invert", "own_method.py, line 5: LinAlgError: Singular matrix"),
        # Also where the library, or this project, is where it was raised.
        ("score", "own_method.py, line 8: ValueError: "),
        ("wrapped", "own_method.py, line 5: RuntimeError: no inverse"),
    ],
)
def test_the_line_to_blame_is_the_users(tmp_path, name, expected):
    path = tmp_path / "own_method.py"
    path.write_text(OWN)
    spec = importlib.util.spec_from_file_location("own_method", path)
    own = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(own)
    with pytest.raises(Exception) as caught:
        getattr(own, name)()
    # Without the frame of this test, which is no user's file.
    error = caught.value.with_traceback(caught.value.__traceback__.tb_next)
    assert failed_line(error).startswith(f"FAILED: {expected}")


@pytest.mark.fault
def test_a_long_or_broken_message_is_one_line():
    said = failed_line(ValueError("a\nb " + "x" * 100 + " y" * 5000))
    assert "\n" not in said
    assert len(said) < 2020
    assert said.endswith(" …")


def test_only_warnings_of_python_are_read_as_such():
    collector = WarningCollector()
    for name in ("py.warnings", "epistemic_calibration"):
        text = "/home/me/x.py:3: DeprecationWarning: old\n  call()"
        collector.emit(logging.LogRecord(name, logging.WARNING, "", 0, text, None, None))
    assert list(collector.counts) == ["/home/me/x.py:3: DeprecationWarning: old call()"]
