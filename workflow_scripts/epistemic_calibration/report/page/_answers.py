"""The two answers of a data set in a sentence each, from its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from epistemic_calibration._evaluation_text import points
from epistemic_calibration.report.page._scores import ALL_TASKS, SHARE, TECE, Number


def answer_on_mean(
    numbers: Mapping[tuple[str, str, str], Number],
    labels: Mapping[str, str],
    alike: Mapping[str, Sequence[str]],
) -> str:
    """Return whose mean can be trusted.

    Parameters
    ----------
    numbers : mapping
        As returned by `numbers`.
    labels : mapping of str to str
        The methods that are judged.
    alike : mapping of str to sequence of str
        Methods that cannot be told from a method by the corrected TECE, where that is known.

    Examples
    --------
    >>> errors = {"a": Number(0.0004, 0.0001, 0.0009, "interval"), "b": Number(0.04)}
    >>> numbers = {("all tasks", m, "tece_corrected"): n for m, n in errors.items()}
    >>> print(answer_on_mean(numbers, {"a": "A", "b": "B"}, {}))
    The mean of A can be trusted most: its predictions are off by 2.0 points (1.0 to 3.0, root \
mean square); that of B least: off by 20.0 points.
    """
    found = _of_all(numbers, labels, TECE)
    if not found:
        return "Whose mean can be trusted is not known: no method has a corrected TECE."
    order = sorted(found, key=lambda name: found[name].value)
    best, worst = order[0], order[-1]
    text = (
        f"The mean of {labels[best]} can be trusted most: its predictions are off by "
        f"{_points(found[best], 'root mean square')}"
    )
    others = [labels[name] for name in order if name in alike.get(best, ())]
    if others:
        text += f"; {listed(others)} cannot be told from it"
    if worst != best and worst not in alike.get(best, ()):
        text += f"; that of {labels[worst]} least: off by {_points(found[worst])}"
    return text + "."


def answer_on_size(
    numbers: Mapping[tuple[str, str, str], Number], labels: Mapping[str, str]
) -> str:
    """Return whose uncertainty has the right size.

    Parameters
    ----------
    numbers, labels : mapping
        As in `answer_on_mean`.

    Examples
    --------
    >>> shares = {"a": Number(0.5, 0.4, 0.6, "interval"), "b": Number(1.1, 0.9, 1.3, "interval")}
    >>> numbers = {("all tasks", m, "reported_share"): n for m, n in shares.items()}
    >>> print(answer_on_size(numbers, {"a": "A", "b": "B"}).replace("\N{NO-BREAK SPACE}", " "))
    The uncertainty of B has the right size, as far as can be told: it reports 110 % (90 to 130 %) \
of its squared error; too small: A, 50 % (40 to 60 %).
    """
    found = _of_all(numbers, labels, SHARE)
    if not found:
        return "Whose uncertainty has the right size is not known: there is no share of the error."
    order = sorted(found, key=lambda name: abs(math.log(max(found[name].shown, 1e-12))))
    bounded = any(number.kind == "bounds" for number in found.values())
    small = [name for name in order if found[name].high < 1]
    large = [name for name in order if found[name].low > 1]
    right = [name for name in order if name not in (*small, *large)]

    def shares(names: Sequence[str]) -> str:
        return ", ".join(f"{labels[name]}, {_share(found[name])}" for name in names)

    parts = []
    if bounded:
        parts.append(
            "With one label per input the share of the squared error that an uncertainty reports "
            "is known between bounds only"
        )
        if right:
            parts.append(f"the right size, 100 %, is possible for {shares(right)}")
        else:
            parts.append("none has the right size, 100 %")
    elif right:
        first, *more = right
        parts.append(
            f"The uncertainty of {labels[first]} has the right size, as far as can be told: it "
            f"reports {_share(found[first])} of its squared error"
        )
        if more:
            parts.append(f"so it may be for {shares(more)}")
    else:
        parts.append(
            f"No uncertainty has the right size; nearest is that of {labels[order[0]]}, which "
            f"reports {_share(found[order[0]])} of its squared error"
        )
        small, large = ([n for n in names if n != order[0]] for names in (small, large))
    if small:
        parts.append(f"too small: {shares(small)}")
    if large:
        parts.append(f"too large: {shares(large)}")
    return "; ".join(parts) + "."


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them.

    Examples
    --------
    >>> listed(["A"]), listed(["A", "B", "C"])
    ('A', 'A, B and C')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _of_all(
    numbers: Mapping[tuple[str, str, str], Number], labels: Mapping[str, str], metric: str
) -> dict[str, Number]:
    found = {name: numbers.get((ALL_TASKS, name, metric)) for name in labels}
    return {name: number for name, number in found.items() if number is not None}


def _points(number: Number, what: str = "") -> str:
    inside = [what] if what else []
    if number.kind == "interval":
        inside.insert(0, f"{points(number.low)} to {points(number.high)}")
    return f"{points(number.value)} points" + (f" ({', '.join(inside)})" if inside else "")


def _share(number: Number) -> str:
    low, high = percent(number.low), percent(number.high)
    if number.kind == "bounds":
        return (
            f"{low} to {high}\N{NO-BREAK SPACE}%"
            if math.isfinite(number.high)
            else f"{low}\N{NO-BREAK SPACE}% or more"
        )
    if number.kind == "interval":
        ends = (
            f"{low} to {high}\N{NO-BREAK SPACE}%"
            if math.isfinite(number.high)
            else f"{low}\N{NO-BREAK SPACE}% or more"
        )
        return f"{percent(number.value)}\N{NO-BREAK SPACE}% ({ends})"
    return f"{percent(number.value)}\N{NO-BREAK SPACE}%"


def percent(share: float) -> str:
    """Return a share in per cent, in two significant digits or whole numbers.

    Examples
    --------
    >>> percent(0.0612), percent(0.71), percent(12)
    ('6.1', '71', '1200')
    """
    value = 100 * share
    return f"{value:.0f}" if value >= 9.95 else f"{value:.2g}"
