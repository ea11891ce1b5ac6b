"""The three answers of a data set, a row per method: numbers, words, and one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from epistemic_calibration.report._groups import letters
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.tables._table import MISSING, Table
from epistemic_calibration.scores._resamples import LEVEL

if TYPE_CHECKING:
    import pandas as pd

TOO_SMALL, RIGHT, TOO_LARGE, UNKNOWN = "too small", "about right", "too large", "cannot be told"
#: In which order families stand.
FAMILIES = ("active", "illustrative", "control")
_SPACE = "\N{NO-BREAK SPACE}"
# An uncertainty known to be within this factor of the right size is called so.
_FACTOR = 2.0
# Column of the answers, metric, and its scale.
_ENDS = ("", "_low", "_high")
_PERCENT = {
    "share": "reported_share",
    "error": "error_rate",
    "kept": "kept_error_90",
    "kept_by_prediction": "kept_error_90_by_prediction",
    "kept_difference": "kept_error_90_difference",
    "share_of_product": "share_of_product",
}


def answers(results: DatasetResults) -> pd.DataFrame:
    """Return the three answers, a row per method.

    Active methods first, then illustrative ones and controls, each by the calibration error.
    Columns: ``label``, ``family``, ``group`` (letters; methods that share one cannot be told
    apart), ``points`` (calibration error, 100 · √ corrected TECE), ``share`` (of the squared error
    that is reported, in %; NaN where only bounds are known), ``slope``, ``gap`` (squared error less
    what is reported), ``verdict`` on the size, ``error`` and ``kept`` (errors among all inputs and
    among the 90 % of least EU, in %), ``kept_by_prediction`` (of least 1 − max p), ``brier``.
    Numbers with an interval have columns NAME_low and NAME_high; NaN where it is not known.
    """
    import pandas as pd

    methods, names, scores = results.methods, results.order, results.together
    found = pd.DataFrame(
        {
            "label": [methods[name]["label"] for name in names],
            "family": [methods[name]["family"] for name in names],
        },
        index=pd.Index(names, name="method"),
    )
    for end in _ENDS:
        found[f"points{end}"] = 100 * np.sqrt(_column(scores, f"tece_corrected{end}").clip(lower=0))
        found[f"slope{end}"] = _column(scores, f"size_slope{end}")
        found[f"gap{end}"] = _column(scores, f"size_gap{end}")
        for name, metric in _PERCENT.items():
            found[f"{name}{end}"] = 100 * _column(scores, f"{metric}{end}")
    # Noise may put an estimate below the limit that is known to hold.
    found["points"] = found["points"].clip(lower=found["points_low"].fillna(0))
    bounded = found["share_low"].isna()
    for end, limit in (("low", "least"), ("high", "most")):
        bounds = 100 * _column(scores, f"reported_share_at_{limit}")
        found.loc[bounded, f"share_{end}"] = bounds[bounded]
    found["verdict"] = [_verdict(row) for row in found.itertuples()]
    briers = results.rows[results.rows["metric"] == "brier"].groupby("method")["value"]
    found["brier"] = briers.mean().reindex(names)
    found["family_order"] = found["family"].map(FAMILIES.index)
    found = found.sort_values(["family_order", "points"], kind="stable", na_position="last")
    found.insert(2, "group", groups(found, results.differences))
    return found.drop(columns="family_order")


def _column(scores: pd.DataFrame, name: str) -> pd.Series:
    return scores.reindex(columns=[name])[name].astype(float)


def _verdict(row) -> str:
    low, high = row.share_low, row.share_high
    if math.isnan(low) or math.isnan(high):
        # Where the error may be 0 it has no share; what it lacks is known still.
        if math.isnan(row.gap):
            return ""
        return TOO_SMALL if row.gap_low > 0 else TOO_LARGE if row.gap_high < 0 else UNKNOWN
    if high < 100:
        return TOO_SMALL
    if low > 100:
        return TOO_LARGE
    # The size may be right on average and wrong at every input.
    if row.slope_high < 1 or row.slope_low > 1:
        return f"slope {_digits(row.slope, 'slope')}, not 1"
    return RIGHT if low >= 100 / _FACTOR and high <= 100 * _FACTOR else UNKNOWN


def groups(
    found: pd.DataFrame, differences: pd.DataFrame | None, p_values: str = "p_holm"
) -> list[str]:
    """Return the letters of each row; controls, which are not ranked, have none."""
    if differences is None:
        return [""] * len(found)
    ranked = list(found.index[(found["family"] != "control") & found["points"].notna()])
    ranked.sort(key=lambda name: found.loc[name, "points"])
    apart = differences[differences[p_values] <= LEVEL]
    shared = letters(ranked, apart[["method", "other"]].itertuples(index=False, name=None))
    return [shared.get(name, "") for name in found.index]


def headline(found: pd.DataFrame) -> str:
    """Return whether any active method passes: no calibration error seen, size about right."""
    judged = found[found["family"] == "active"]
    passed = judged[(judged["points_low"] == 0) & (judged["verdict"] == RIGHT)]
    if len(passed):
        some = len(passed) > 1
        return (
            f"{listed(list(passed['label']))} {'pass' if some else 'passes'}: no calibration error "
            f"is seen, and {'their' if some else 'its'} uncertainty has about the right size."
        )
    n, counts = len(judged), judged["verdict"].value_counts()
    small, large = (int(counts.get(word, 0)) for word in (TOO_SMALL, TOO_LARGE))
    off = int((judged["points_low"] > 0).sum())
    elsewhere = int(judged["verdict"].str.startswith("slope").sum())
    words = [
        ("probabilities off", off),
        ("uncertainty too small", small),
        ("too large" if small else "uncertainty too large", large),
        ("uncertainty on the wrong inputs", elsewhere),
        ("size of the uncertainty unknown", int(counts.get(UNKNOWN, 0))),
    ]
    reasons = [f"{word} for {_of(k, n)}" if n > 1 else word for word, k in words if k]
    fails = off or small or large or elsewhere
    if n > 1:
        who = "No method passes" if fails else "No method is shown to pass"
    else:
        who = f"{judged.iloc[0]['label']} {'does not pass' if fails else 'is not shown to pass'}"
    return f"{who}: {', '.join(reasons) or 'too little is known'}."


def sentences(found: pd.DataFrame) -> Iterator[str]:
    """Yield what the three columns say, a sentence each; illustrative methods are left out."""
    judged = found[found["family"] == "active"]
    if len(judged) > 1 and judged["points"].notna().any():
        first = judged.iloc[0]
        alike = [
            other.label
            for other in judged.iloc[1:].itertuples()
            if set(first["group"]) & set(other.group)
        ]
        text = f"Best calibrated: {first['label']}, off by {interval(first, 'points', ' points')}"
        yield text + (f"; {listed(alike)} cannot be told from it." if alike else ".")
    if not judged["kept"].notna().any():
        yield "Whether EU knows the errors is not among these scores."
    else:
        best = judged.loc[judged["kept"].idxmin()]
        kept, of_all = (_digits(best[name], name) for name in ("kept", "error"))
        what, who = ("Fewest errors", f"{best['label']}, ") if len(judged) > 1 else ("Errors", "")
        yield (
            f"{what} when the 10{_SPACE}% of largest EU are set aside: {who}"
            f"{kept} instead of {of_all}{_SPACE}%."
        )
    low, high = judged["kept_difference_low"], judged["kept_difference_high"]
    if n := int(high.notna().sum()):
        better, worse = int((high < 0).sum()), int((low > 0).sum())
        if n > 1:
            yield (
                f"EU finds errors better than the prediction itself (1 − max p) for "
                f"{_of(better, n)}, worse for {_of(worse, n)}."
            )
        else:
            word = "better than" if better else "worse than" if worse else "about as well as"
            yield f"EU finds errors {word} the prediction itself (1 − max p)."


def answers_table(found: pd.DataFrame, results: DatasetResults) -> Table:
    """Return the answers as a table for readers, from what `answers` returns."""
    import pandas as pd

    def cells(name: str) -> list[str]:
        return [interval(row, name) for _, row in found.iterrows()]

    columns = {}
    if found["group"].any():
        columns["Group"] = [group or MISSING for group in found["group"]]
    columns["Calibration error, points"] = cells("points")
    if found["share_low"].notna().any():
        columns["Share reported, %"] = [share(row) for _, row in found.iterrows()]
    if found["slope"].notna().any():
        columns["Slope"] = cells("slope")
    if found["verdict"].any():
        columns["Uncertainty"] = [word or MISSING for word in found["verdict"]]
    if found["error"].notna().any():
        columns |= {"Errors, %": cells("error"), "kept at 90 %": cells("kept")}
        columns["by 1 − max p"] = cells("kept_by_prediction")
    columns["Brier score"] = [_digits(value, "brier") for value in found["brier"]]
    labels = [
        label if family == "active" else f"{label} ({family})"
        for label, family in zip(found["label"], found["family"], strict=True)
    ]
    return Table(
        cells=found,
        text=pd.DataFrame(columns, index=pd.Index(labels, name="Method")),
        caption=f"{results.title}: can the epistemic uncertainty (EU) be trusted?",
        notes=tuple(_notes(found, results)),
        words=("Group", "Uncertainty"),
    )


def _notes(found: pd.DataFrame, results: DatasetResults) -> Iterator[str]:
    level = f"{100 * results.confidence_level:g}{_SPACE}%"
    yield (
        f"Calibration error: by how many percentage points the probabilities are off (100 · √ "
        f"corrected TECE, root mean square) [{level} interval]."
        + (" Methods that share a letter cannot be told apart." if found["group"].any() else "")
    )
    if found["share_low"].notna().any():
        bounded = found["share"].isna().all()
        yield (
            f"Share: how much of the squared error at one input the reported uncertainty makes up; "
            f"100{_SPACE}% is right."
            + (" With one label per input it is known between bounds only." if bounded else "")
        )
    if found["slope"].notna().any():
        yield "Slope of the squared error on EU: 1 where it grows as EU does, 0 where it does not."
    if found["error"].notna().any():
        yield (
            f"Errors kept at 90{_SPACE}%: among the inputs that are left when the 10{_SPACE}% of "
            f"largest EU are set aside, and when those of largest 1 − max p are."
        )


def interval(row, name: str, unit: str = "") -> str:
    """Return a number of a row of answers with its interval in words: "3.9 points [2.7, 5.1]"."""
    value, low, high = (_digits(row.get(f"{name}{end}", math.nan), name) for end in _ENDS)
    return f"{value}{unit}" + (f" [{low}, {high}]" if MISSING not in (value, low, high) else "")


def share(row, unit: str = "") -> str:
    """Return the share of a row of answers in words: an estimate, or bounds."""
    if not math.isnan(row["share"]):
        return interval(row, "share", unit)
    low, high = (_digits(row[f"share_{end}"], "share") for end in ("low", "high"))
    if MISSING in (low, high):
        return MISSING
    if high == "∞":
        return f"{low}{unit} or more"
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them: "A, B and C"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _digits(value: float, name: str) -> str:
    """Return a number in the digits that its column has."""
    if not math.isfinite(value):
        return MISSING if math.isnan(value) else "∞" if value > 0 else "−∞"
    large = abs(value) >= 9.95
    digits = {"points": 1, "slope": 0 if large else 2, "brier": 4}.get(name, 0 if large else 1)
    if name.startswith(("error", "kept")):
        digits = 2 if abs(value) < 0.95 else 1
    if name.startswith("share") and abs(value) >= 1000:
        value = float(f"{value:.2g}")
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def _of(k: int, n: int) -> str:
    return "none" if k == 0 else "both" if k == n == 2 else f"all {n}" if k == n else f"{k} of {n}"
