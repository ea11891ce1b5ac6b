"""Names that people chose, such as labels and classes, as text that figures can draw."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache


def drawable(name: object) -> str:
    r"""Return a name as one line of text that matplotlib draws as it is.

    Dollar signs, which would begin a formula, are escaped; line breaks and other white space
    become single spaces. Characters that the font of the figures lacks are written by their
    numbers, so that two names that differ also differ in the figure.

    Examples
    --------
    >>> drawable("50 % <b>\n"), drawable("a_$x$")
    ('50 % <b>', 'a_\\$x\\$')
    >>> drawable("\u65e5"), drawable("\u0434\u0430")
    ('\\u65e5', 'да')
    """
    line = " ".join(str(name).split())
    known = "".join(c if _in_font(c) else ascii(c)[1:-1] for c in line)
    return known.replace("$", r"\$")


def drawable_labels(methods: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the labels of methods by name, as text that matplotlib draws as it is."""
    return {name: drawable(method["label"]) for name, method in methods.items()}


@cache
def _in_font(character: str) -> bool:
    from matplotlib.font_manager import findfont, get_font

    from epistemic_calibration.report.style import rc_params

    font = get_font(findfont(rc_params()["font.family"]))
    return character.isprintable() and font.get_char_index(ord(character)) != 0
