"""A `ClassEvaluation` in words: a summary of one screen, and what to conclude from it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from epistemic_calibration import _evaluation_text as binary
from epistemic_calibration._evaluation_text import (
    bounds_of_size,
    closing,
    in_points,
    inputs_of,
    interval,
    number,
    p_value,
    points,
    row,
    sentences,
    too_few,
)
from epistemic_calibration.metrics import CorrectedError

if TYPE_CHECKING:
    from epistemic_calibration._class_evaluation import ClassEvaluation


def summary(e: ClassEvaluation) -> str:
    """Return at most 30 lines of at most 100 columns."""
    level = f"{100 * e.confidence_level:g} %"
    hypotheses = "hypothesis" if e.n_hypotheses == 1 else "hypotheses"
    n_classes = len(e.class_names)
    lines = [
        f"Evaluation of {inputs_of(e)}, {n_classes} classes, "
        f"{e.n_hypotheses:,} {hypotheses} each; {level} intervals",
        "",
        row("Accuracy", e.accuracy, points=False, indent="") + f" claimed: {e.confidence:.4f}",
        row("Brier score", e.brier, points=False, indent="") + " sum over classes",
        "",
        f"{'Is the mean right?':<27}{'TECE':>8}  {'interval':<18} {'off by, in points':<18}"
        f"{'noise floor':>12}{'detectable':>12}",
    ]
    if e.classwise is not None:
        lines += [
            _corrected(f"Each class, mean of {n_classes}", e.classwise.mean),
            _corrected(f"  the worst, {_short(e.worst_class)}", e.worst),
            _corrected("The predicted class", e.top_label),
            _corrected("All classes jointly", e.canonical),
            f"  p-values: predicted class calibrated {p_value(e.tests['top_label'].p_value)}, "
            f"all classes jointly {p_value(e.tests['canonical'].p_value)}",
        ]
    lines += sentences(on_mean(e))
    lines += ["", "Is the uncertainty of the right size? (means over classes)"]
    if e.second_order is not None:
        second = e.second_order.mean
        lines += [
            row("Error of the mean, (p* − Δ)²", second.reducible),
            row("Error that is reported", second.uncertainty),
            row("Share that is reported", second.share, points=False) + " 1 where right",
            row("Slope of error on uncertainty", second.slope, points=False) + " 1 where right",
        ]
        share = {
            name: of_class.share.estimate
            for name, of_class in zip(e.class_names, e.second_order.classes, strict=True)
            if of_class.share.estimate == of_class.share.estimate
        }
        if share:
            least, most = min(share, key=share.get), max(share, key=share.get)
            lines.append(
                f"  Share by class: from {share[least]:.2g} ({_short(least)}) to "
                f"{share[most]:.2g} ({_short(most)})"
            )
    else:
        lines += bounds_of_size(e)
    lines += sentences(on_size(e))
    lines += closing(e, f"{e.n_bins} nested bins of each class and jointly")
    return "\n".join(line.rstrip() for line in lines)


def on_mean(e: ClassEvaluation) -> str:
    """Return what to conclude of the mean prediction."""
    if e.classwise is None:
        return too_few(e)
    alpha = 1 - e.confidence_level
    rejected = {name: test.p_value <= alpha for name, test in e.tests.items()}
    top, joint, each = e.top_label, e.canonical, e.classwise.mean
    said = []
    if top.ci_low > 0 and (rejected["top_label"] or top.refined):
        much = f"right in {100 * e.accuracy.estimate:.1f} %, claimed in {100 * e.confidence:.1f} %"
        tendency = "on average "
        if e.confidence > e.accuracy.ci_high:
            tendency = "too sure on average: "
        elif e.confidence < e.accuracy.ci_low:
            tendency = "too cautious on average: "
        said.append(
            f"The predicted class is off by about {_about(top)} points, root mean square "
            f"({tendency}{much})"
        )
    else:
        said.append(
            f"No error of the predicted class is seen with {inputs_of(e)} (up to "
            f"{points(top.ci_high)} points of what the bins see)"
        )
    if each.ci_low > 0:
        worst = ""
        if e.worst.ci_low > 0:
            worst = f", most {_short(e.worst_class)} ({points(e.worst.estimate)})"
        said.append(f"single classes are off by {_about(each)}{worst}")
    if joint.ci_low > 0 and rejected["canonical"]:
        said.append(f"all jointly by {_about(joint)}, as far as the bins see")
    elif rejected["canonical"]:
        said.append("all jointly are off, by the test")
    elif each.ci_low <= 0:
        said.append(
            f"nor is one of single classes or of all jointly, of which less than "
            f"{points(joint.minimum_detectable)} points would often go unseen, and what cancels in "
            f"each of {joint.n_bins:,} bins always"
        )
    return "; ".join(said) + "."


def on_size(e: ClassEvaluation) -> str:
    """Return what to conclude of the size of the uncertainty, on average over classes."""
    share = min(e.class_shares.values())
    one = SimpleNamespace(
        n_samples=e.n_samples,
        n_groups=e.n_groups,
        positive_share=share,
        confidence_level=e.confidence_level,
        tece=None if e.classwise is None else e.classwise.mean,
        reported_error=e.reported_error,
        reducible_at_most=e.reducible_at_most,
        second_order=None if e.second_order is None else e.second_order.mean,
        tests={},
    )
    return binary.on_size(one, several_labels="label_counts")


def _about(value: CorrectedError) -> str:
    return f"{points(value.estimate)} ({points(value.ci_low)} to {points(value.ci_high)})"


def _corrected(label: str, value: CorrectedError) -> str:
    return (
        f"{'  ' + label:<26}{number(value.estimate):>9}  {interval(value):<18} "
        f"{in_points(value):<18}{number(value.noise_floor):>12}"
        f"{points(value.minimum_detectable) + ' points':>12}"
    )


def _short(name: str) -> str:
    return repr(name if len(name) <= 12 else name[:11] + "…")
