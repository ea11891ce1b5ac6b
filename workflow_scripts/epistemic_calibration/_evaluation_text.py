"""An `Evaluation` in words: a summary of one screen, and what to conclude from it."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from epistemic_calibration.evaluation import ECE_N_BINS, LEAST_SAMPLES
from epistemic_calibration.metrics import CorrectedError, Estimate

if TYPE_CHECKING:
    from epistemic_calibration._class_evaluation import ClassEvaluation
    from epistemic_calibration.evaluation import Evaluation

#: Columns of the summary.
WIDTH = 100

_TEST_LABELS = {
    "epistemic_calibration": "calibrated",
    "mean_calibration": "mean calibrated",
    "epistemic_independence": "spread tells nothing more",
}


def summary(e: Evaluation) -> str:
    """Return at most 30 lines of at most 100 columns."""
    level = f"{100 * e.confidence_level:g} %"
    hypotheses = "hypothesis" if e.n_hypotheses == 1 else "hypotheses"
    lines = [
        f"Evaluation of {inputs_of(e)} ({100 * e.positive_share:.1f} % {_positive(e)}), "
        f"{e.n_hypotheses:,} {hypotheses} each; {level} intervals",
        "",
        row("Accuracy", e.accuracy, points=False, indent=""),
        row("Brier score", e.brier, points=False, indent=""),
        f"{'ECE':<34}{number(e.ece):>9}  in {ECE_N_BINS} bins, noise of the labels included",
        "",
        f"{'Is the mean right?':<36}{'squared':>7}  {'interval':<19} off by, in points",
    ]
    if e.tece is not None:
        detectable, floor = e.tece.minimum_detectable, e.eece.noise_floor
        eece = e.eece
        lines += [
            row("Corrected TECE", e.tece),
            row("  mean miscalibration", e.mean_miscalibration),
            row("  epistemic dependence", e.epistemic_dependence),
            f"{'  Smallest error that can be seen':<34}{number(detectable):>9}"
            f"  {'':<19} {points(detectable)}",
            f"{'  Noise floor of the uncorrected':<34}{number(e.tece.noise_floor):>9}"
            f"  {'':<19} {points(e.tece.noise_floor)}",
            "  p-values: "
            + ", ".join(
                f"{label} {p_value(e.tests[name].p_value)}"
                for name, label in _TEST_LABELS.items()
                if name in e.tests
            ),
            f"  EECE {number(eece.eece)}: g² {number(eece.calibration)}, of which label noise "
            f"makes {number(floor)}; W {number(eece.dispersion)}"
            + (f"; not the variance {number(eece.reporting)}" if eece.reporting else ""),
        ]
    lines += sentences(on_mean(e))
    lines += ["", "Is the uncertainty of the right size?"]
    second = e.second_order
    if second is not None:
        lines += [
            row("Error of the mean, (p* − Δ)²", second.reducible),
            row("Error that is reported", second.uncertainty),
            row("Share that is reported", second.share, points=False) + " 1 where right",
        ]
        if not math.isnan(second.slope.estimate):
            lines.append(row("Slope of error on uncertainty", second.slope, points=False))
            lines[-1] += " 1 where right"
        if "second_order" in e.tests:
            lines.append(f"  p-value: right size {p_value(e.tests['second_order'].p_value)}")
    else:
        lines += bounds_of_size(e)
    lines += sentences(on_size(e))
    lines += closing(e, f"{e.n_bins} nested bins (TECE), {e.eece_n_bins} K-means bins (EECE)")
    return "\n".join(line.rstrip() for line in lines)


def too_few(e: Evaluation | ClassEvaluation) -> str:
    """Return what to say where there are too few inputs to say anything."""
    return (
        f"Nothing can be said of calibration from {inputs_of(e)}: it takes {LEAST_SAMPLES}, and "
        f"some hundreds to see an error of ten points."
    )


def bounds_of_size(e: Evaluation | ClassEvaluation) -> list[str]:
    """Return what one label per input says of the size of the uncertainty."""
    lines = [row("Error of the mean, at most", e.reducible_at_most)]
    if e.reported_error is not None:
        lines.append(row("Error that is reported", e.reported_error))
    return lines


def closing(e: Evaluation | ClassEvaluation, bins: str) -> list[str]:
    """Return the warnings and the settings."""
    draws = "" if e.exchangeable else ", hypotheses are no draws"
    settings = f"Settings: {bins}, random_state {e.random_state}{draws}"
    return [*(f"! {warning}" for warning in e.warnings), settings]


def on_mean(e: Evaluation) -> str:
    """Return what to conclude of the mean prediction."""
    if e.tece is None:
        return too_few(e)
    tece, p = e.tece, e.tests["epistemic_calibration"].p_value
    # Finer bins are used only where labels show that these see more: that is a test, too.
    rejected = p <= 1 - e.confidence_level or tece.refined
    unseen = (
        f"an error of less than {points(tece.minimum_detectable)} points would often go unseen, "
        f"and one of any size that cancels in each of {tece.n_bins:,} bins always"
    )
    if tece.ci_low > 0 and rejected:
        where = f", as {tece.n_bins:,} bins see it" if tece.refined else ""
        return (
            f"The predictions are off by about {points(tece.estimate)} points "
            f"({points(tece.ci_low)} to {points(tece.ci_high)}, root mean square{where}), "
            f"{_part(e)}."
        )
    if tece.ci_low > 0 or rejected:
        interval = "excludes 0" if tece.ci_low > 0 else "reaches 0"
        return (
            f"Weak evidence of miscalibration: the interval {interval}, the test says "
            f"p = {p_value(p)}; {unseen}."
        )
    return (
        f"No miscalibration is seen with {inputs_of(e)}; what the bins see may be up to "
        f"{points(tece.ci_high)} points, {unseen}."
    )


def on_size(e: Evaluation, several_labels: str = "n_positive, n_labels") -> str:
    """Return what to conclude of the size of the uncertainty; several labels are given so."""
    if e.reported_error is None:
        return "With one hypothesis for each input there is no uncertainty to judge."
    if e.tece is None:
        return f"Nothing can be said of its size from {inputs_of(e)}."
    if e.second_order is not None:
        return _on_size_seen(e)
    said = e.reported_error
    at_least, at_most = e.tece.ci_low, e.reducible_at_most
    if said.ci_low > at_most.ci_high:
        return (
            f"It is too large: it says {points(said.estimate)} points, more than the whole Brier "
            f"score allows ({points(at_most.ci_high)})."
        )
    if at_least > said.ci_high:
        return (
            f"It is too small: it says {points(said.estimate)} points, but calibration alone "
            f"makes the mean off by {points(at_least)} or more."
        )
    return (
        f"Cannot be told from one label per input: it says {points(said.estimate)} points, and "
        f"the error may be {points(at_least)} to {points(at_most.ci_high)}. Several labels "
        f"({several_labels}) would tell."
    )


def _on_size_seen(e: Evaluation) -> str:
    second = e.second_order
    share = second.share
    if second.gap.ci_low > 0 and not math.isnan(share.estimate):
        return (
            f"It is too small: it reports {_percent(share.estimate)} % of the squared error "
            f"({_percent(share.ci_low)} to {_percent(share.ci_high)} %)."
        )
    if second.gap.ci_high < 0:
        if math.isnan(share.estimate) or math.isinf(share.ci_high):
            return (
                f"It is too large: it reports {points(second.uncertainty.estimate)} points, the "
                f"error is at most {points(second.reducible.ci_high)}."
            )
        return (
            f"It is too large: it reports {share.estimate:.2g} times the squared error "
            f"({share.ci_low:.2g} to {share.ci_high:.2g})."
        )
    limits = f"between {share.ci_low:.2g} and {share.ci_high:.2g} of the squared error"
    if math.isinf(share.ci_high):
        limits = f"at least {share.ci_low:.2g} of the squared error, which may be 0"
    test = e.tests.get("second_order")
    slope = second.slope
    if test is not None and test.p_value <= 1 - e.confidence_level:
        return (
            f"Its mean cannot be told from right (it reports {limits}), but it is not distributed "
            f"as the truth is (p = {p_value(test.p_value)})."
        )
    n_rare = e.n_samples * min(e.positive_share, 1 - e.positive_share)
    # Its interval is too narrow where one label is rare.
    if n_rare >= 100 and (slope.ci_low > 1 or slope.ci_high < 1):
        return (
            f"Its mean cannot be told from right (it reports {limits}), but it is on the wrong "
            f"inputs: see the slope."
        )
    return f"It cannot be told from right: it reports {limits}."


def _part(e: Evaluation) -> str:
    mean, dependence = e.mean_miscalibration, e.epistemic_dependence
    of_mean, of_dependence = max(mean.estimate, 0), max(dependence.estimate, 0)
    test = e.tests.get("epistemic_independence")
    # Bins of the mean may pass for dependence what the test, which regresses on it, does not.
    if test is None:
        within = "within inputs of like mean"
    elif test.p_value <= 1 - e.confidence_level:
        within = "where the spread tells what the mean does not"
    else:
        within = "within inputs of like mean, though no trend with the spread is seen"
    if of_mean >= 2 * of_dependence and mean.ci_low > 0:
        return "mostly in the mean, which recalibration can repair"
    if of_dependence >= 2 * of_mean and dependence.ci_low > 0:
        return f"mostly {within}"
    if mean.ci_low > 0 and dependence.ci_low > 0:
        return f"both in the mean and {within}"
    return "in which of its two parts cannot be told"


def number(value: float) -> str:
    """Return a number in about two significant digits or four decimals."""
    if not math.isfinite(value):
        return "—" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0 or abs(value) >= 0.001:
        return f"{value:.4f}" if value else "0"
    return f"{value:.1e}" if abs(value) < 1e-4 else f"{value:.5f}"


def points(squared: float) -> str:
    """Return the root of a squared error of a probability, in points."""
    return f"{100 * math.sqrt(squared):.1f}" if squared > 0 else "0"


def interval(value: Estimate | CorrectedError) -> str:
    return f"[{number(value.ci_low)}, {number(value.ci_high)}]"


def row(
    label: str, value: Estimate | CorrectedError, *, points: bool = True, indent: str = "  "
) -> str:
    line = f"{indent + label:<34}{number(value.estimate):>9}  {interval(value):<19}"
    return f"{line} {in_points(value)}" if points else line


def in_points(value: Estimate | CorrectedError) -> str:
    """Return a squared error and its interval in points."""
    return f"{points(value.estimate)} [{points(value.ci_low)}, {points(value.ci_high)}]"


def p_value(value: float) -> str:
    return f"{value:.2g}" if value >= 0.001 else "< 0.001"


def _percent(value: float) -> str:
    return "∞" if math.isinf(value) else f"{100 * value:.0f}"


def inputs_of(e: Evaluation) -> str:
    """Return how many inputs there are, and in how many groups."""
    n = "1 input" if e.n_samples == 1 else f"{e.n_samples:,} inputs"
    return n if e.n_groups is None else f"{n} in {e.n_groups:,} groups"


def _positive(e: Evaluation) -> str:
    return "positive" if e.class_names is None else repr(e.class_names[1])


def sentences(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="→ ", subsequent_indent="  ")
