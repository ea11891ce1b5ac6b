"""Names of what a file of predictions holds, and the words for what is wrong with it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

#: What there may be beside y_true and the hypotheses: what a model reports,
OPTIONAL_ARRAYS = ("epistemic_uncertainty", "prediction")
#: and several labels per input.
COUNTS = ("n_positive", "n_labels")
#: Which samples belong together.
GROUPS = "groups"

# What other libraries and people call these.
_MEANT = {
    "label": "y_true",
    "labels": "y_true",
    "target": "y_true",
    "y": "y_true",
    "class": "y_true",
    "y_test": "y_true",
    "y_pred": "prediction",
    "y_prob": "prediction",
    "y_proba": "prediction",
    "y_score": "prediction",
    "score": "prediction",
    "prob": "prediction",
    "proba": "prediction",
    "p": "prediction",
    "mean": "prediction",
    "predicted": "prediction",
    "var": "epistemic_uncertainty",
    "variance": "epistemic_uncertainty",
    "uncertainty": "epistemic_uncertainty",
    "epistemic": "epistemic_uncertainty",
    "probs": "hypotheses",
    "probas": "hypotheses",
    "samples": "hypotheses",
    "members": "hypotheses",
    "predictions": "hypotheses",
    "classes": "class_names",
    "cluster": "groups",
    "clusters": "groups",
}
_DEVIATIONS = ("std", "sd", "sigma", "stddev", "standard_deviation")


class PredictionsError(ValueError):
    """Predictions are not what they must be; the message names the file, if there is one."""

    __module__ = "epistemic_calibration.predictions"


def listed(names: Iterable[object], limit: int = 10) -> str:
    """Return names in quotes, no more than ``limit`` of them and none of them long."""
    names = [str(name) for name in names]
    shown = ", ".join(
        repr(name if len(name) <= 40 else f"{name[:37]}...") for name in names[:limit]
    )
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def meant(name: object, known: Collection[str]) -> str | None:
    """Return the known name that another one stands for, if there is one."""
    plain = str(name).strip().casefold().replace(" ", "_").replace("-", "_")
    if _MEANT.get(plain) in known:
        return _MEANT[plain]
    return similar(plain, known)


def similar(name: object, known: Collection[str]) -> str | None:
    """Return the known name that another one is a slip of the pen for, if there is one."""
    close = difflib.get_close_matches(str(name).strip().casefold(), known, n=1, cutoff=0.75)
    return close[0] if close else None


def with_hint(name: object, known: Collection[str]) -> str:
    """Return a name in quotes with the known name that it may stand for."""
    if str(name).strip().casefold() in _DEVIATIONS and "epistemic_uncertainty" in known:
        return f"{listed([name])} (its square may be 'epistemic_uncertainty')"
    close = meant(name, known)
    return f"{listed([name])} (did you mean {close!r}?)" if close else listed([name])


def with_hints(names: Collection[object], known: Collection[str], limit: int = 10) -> str:
    """Return `with_hint` of at most ``limit`` names."""
    shown = ", ".join(with_hint(name, known) for name in list(names)[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
