"""An `Evaluation` in words: what to conclude, and the numbers behind it, on one screen.

People read points, 100·√ of a squared error of a probability, and percent.
"""

from __future__ import annotations

import math
import re
import shutil
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from epistemic_calibration.evaluation._estimates import ECE_N_BINS, LEAST_SAMPLES
from epistemic_calibration.metrics.law_test import MIN_MEMBERS

if TYPE_CHECKING:
    from epistemic_calibration.evaluation import Evaluation

_LABEL = 30
_GLUE = "\N{NO-BREAK SPACE}"
_TEST_LABELS = {
    "epistemic_calibration": "calibrated",
    "mean_calibration": "mean calibrated",
    "epistemic_independence": "the spread tells nothing more",
    "top_label_calibration": "predicted class calibrated",
    "canonical_calibration": "all classes jointly",
}
_KINDS = {
    "variance": "EU",
    "mutual_information": "mutual information",
    "expected_entropy": "expected entropy",
}


def summary(e: Evaluation) -> str:
    """Return the summary, as wide as the terminal, from 66 to 100 columns."""
    lines = [*sentences(_title(e), ""), ""]
    for text in e.judgement.values():
        lines += sentences(text)
    lines += ["", *_probabilities(e), "", *_size(e)]
    if e.ranking is not None:
        lines += ["", *_ranking(e)]
    lines += ["", *(line for warning in e.warnings for line in sentences(warning, "! "))]
    bins = f"{e.n_bins} nested bin{'s' * (e.n_bins > 1)}"
    of = "of each class and jointly" if e.n_classes > 2 else "(TECE)"
    eece = "" if e.eece_n_bins is None else f", {e.eece_n_bins} K-means (EECE)"
    draws = "" if e.exchangeable else ", hypotheses are no draws"
    lines += sentences(f"Settings: {bins} {of}{eece}, random_state {e.random_state}{draws}", "")
    return "\n".join(line.rstrip() for line in lines)


def _title(e: Evaluation) -> str:
    what = f"{e.n_classes} classes"
    if e.n_classes == 2:
        positive = "positive" if e.class_names is None else repr(e.class_names[1])
        what = f"{100 * e.positive_share:.1f} % {positive}"
    return (
        f"Evaluation of {inputs_of(e)} ({what}), {e.n_hypotheses:,} "
        f"hypothes{'i' if e.n_hypotheses == 1 else 'e'}s each; "
        f"{100 * e.confidence_level:g} % intervals"
    )


def _probabilities(e: Evaluation) -> Iterator[str]:
    of = "" if not e._inputs.has_own_prediction else f" (of the {e.predictor})"
    yield f"1 Are the probabilities right?{of}"
    if e.tece is not None:
        if e.n_classes > 2:
            yield _line("Calibration error of a class", in_points(e.tece) + " on average")
            yield _line(f"  the worst, {_short(e.worst_class)}", in_points(e.worst))
            yield _line("  of the predicted class", in_points(e.top_label))
            yield _line("  of all classes jointly", in_points(e.canonical))
        else:
            yield _line("Calibration error", in_points(e.tece))
            yield _line("  in the mean", in_points(e.mean_miscalibration))
            yield _line("  among inputs of like mean", in_points(e.epistemic_dependence))
            if e.second_order is not None and not e._inputs.has_own_prediction:
                yield _line("  by all labels", in_points(e.second_order.calibration_error))
        least = (e.canonical or e.tece).minimum_detectable
        yield _line("  least that can be seen", f"{points(least)} points")
        tests = [
            f"{label} {p_value(e.tests[name].p_value)}"
            for name, label in _TEST_LABELS.items()
            if name in e.tests
        ]
        yield _line("  p", ", ".join(tests))
    claimed = f", claimed {percent(e.confidence)}" if e.n_classes > 2 else ""
    yield _line("Accuracy", in_percent(e.accuracy) + claimed)
    yield _line("Brier score", shown(e.brier) + (", sum over classes" if e.n_classes > 2 else ""))
    if e.ece is not None:
        eece = "" if e.eece is None else f"; EECE {number(e.eece.eece)}"
        yield _line("ECE", f"{number(e.ece)} in {ECE_N_BINS} bins, noise included{eece}")


def _size(e: Evaluation) -> Iterator[str]:
    yield "2 Is the uncertainty of the right size?"
    second, said = e.second_order, e.reported_error
    if second is not None:
        yield _line("Error at one input", in_points(second.reducible))
    elif e.tece is not None:
        low, high = points(_at_least(e)), points(e.reducible_at_most.ci_high)
        yield _line("Error at one input", f"{low} to {high} points, from one label")
    if said is None:
        return
    factor = ""
    if e._inputs.are_draws:
        factor = f" ({e.n_hypotheses:,} draws: × {e._inputs.factor:.3g})"
    yield _line("  that is reported", in_points(said) + factor)
    if second is None:
        if e.share_bounds is not None:
            share = _range(*e.share_bounds)
            yield _line("Share that is reported", f"{share} (100 % is right)")
        return
    yield _line("Share that is reported", f"{in_percent(second.share)} (100 % is right)")
    if second.law is not None:
        yield _line("  by others of the same law", in_percent(second.law.share))
    if not math.isnan(second.slope.estimate):
        yield _line("Slope of the error on EU", f"{shown(second.slope)} (1 is right)")
    if e.second_order_of_classes:
        share = {k: v.share.estimate for k, v in e.second_order_of_classes.items()}
        if share := {k: v for k, v in share.items() if not math.isnan(v)}:
            least, most = min(share, key=share.get), max(share, key=share.get)
            ends = (f"{_share(share[c])} ({_short(c)})" for c in (least, most))
            yield _line("  share by class", " to ".join(ends))
    if "second_order" in e.tests:
        yield _line("  p: the truth is one more draw", p_value(e.tests["second_order"].p_value))
    product = e.controls["product"]
    slope = f"slope {_signed(product['slope'].estimate, 1)}"
    yield _line("Control: EU = Δ(1 − Δ)", f"share {_share(product['share'].estimate)}, {slope}")


def _ranking(e: Evaluation) -> Iterator[str]:
    yield "3 Does it know where it errs?"
    r, kind = e.ranking, _KINDS[e.kind_of_uncertainty]
    of = "" if kind == "EU" else f"; EU is the {kind}"
    yield _line("Errors", in_percent(r.error) + of)
    yield f"{'':<20}{'by EU':<9}{'by 1 − max p':<14}difference"
    for coverage in (90, 80, 50):
        name = f"kept_error_{coverage}"
        values = (getattr(o, name) for o in (r.by_uncertainty, r.by_prediction, r.difference))
        yield _three(f"  kept at {coverage} %", *values, unit=100.0)
    orders = r.by_uncertainty, r.by_prediction, r.difference
    if not math.isnan(r.difference.auroc_of_errors.estimate):
        yield _three("  AUROC of errors", *(o.auroc_of_errors for o in orders))
    yield _three("  AUGRC, in %", *(o.augrc for o in orders), unit=100.0, percent=False)
    if r.squared is not None:
        s = r.squared
        eu, doubt = (points(o.kept_error_90.estimate) for o in (s.by_uncertainty, s.by_prediction))
        kept = f"{eu} points by EU, {doubt} by 1 − max p"
        yield _line("Error at one input, at 90 %", kept)


def _three(
    label: str, first: Any, second: Any, apart: Any, *, unit: float = 1.0, percent: bool = True
) -> str:
    digits = decimals(unit * apart.ci_low, unit * apart.ci_high)
    sign = " %" if unit > 1 and percent else ""
    a, b = (f"{_signed(unit * v.estimate, digits)}{sign}" for v in (first, second))
    return f"{label:<20}{a:<9}{b:<14}{shown(apart, unit)}"


# --- Sentences


def for_a_paper(e: Evaluation) -> str:
    """Return what a paper would say of the three questions, with intervals."""
    if e.tece is None:
        return too_few(e)
    level = f"{100 * e.confidence_level:g} % confidence interval"
    said = [
        f"On {inputs_of(e)}, probabilities are off by {in_points(e.tece)} ({level}; root mean "
        f"square; bias-corrected TECE over {e.tece.n_bins:,} bins)."
    ]
    if e.second_order is not None and not math.isnan(e.second_order.share.estimate):
        said.append(
            f"The epistemic uncertainty reports {in_percent(e.second_order.share)} of the squared "
            f"error at one input."
        )
    elif e.share_bounds is not None:
        said.append(
            f"With one label per input, the share of the squared error that the epistemic "
            f"uncertainty reports is {_range(*e.share_bounds)}."
        )
    if e.ranking is not None:
        kept = e.ranking.by_uncertainty.kept_error_90
        doubt = e.ranking.by_prediction.kept_error_90
        said.append(
            f"Of {in_percent(e.ranking.error)} errors, {in_percent(kept)} are left among the 90 % "
            f"of least epistemic uncertainty, and {in_percent(doubt)} of surest prediction."
        )
    return "\n".join(said)


def too_few(e: Evaluation) -> str:
    return (
        f"Nothing can be said of calibration from {inputs_of(e)}: it takes {LEAST_SAMPLES}, and "
        f"some hundreds to see an error of ten points."
    )


def on_mean(e: Evaluation) -> str:
    """Return what to conclude of the probabilities."""
    if e.tece is None:
        return too_few(e)
    if e.n_classes > 2:
        return _on_classes(e)
    tece, p = e.tece, e.tests["epistemic_calibration"].p_value
    # Finer bins are used only where labels show that these see more: that is a test, too.
    rejected = p <= 1 - e.confidence_level or tece.refined
    unseen = (
        f"an error of less than {points(tece.minimum_detectable)} points would often go unseen, "
        f"and one of any size that cancels in each of {tece.n_bins:,} bins always"
    )
    if tece.ci_low > 0 and rejected:
        where = f", as {tece.n_bins:,} bins see it" if tece.refined else ""
        return f"The probabilities are off by about {_about(tece, ' points')}{where}{_part(e)}."
    if tece.ci_low > 0 or rejected:
        interval = "excludes 0" if tece.ci_low > 0 else "reaches 0"
        return (
            f"Weak evidence that the probabilities are off: the interval {interval}, the test says "
            f"p {p_value(p, '=')}; {unseen}."
        )
    return (
        f"No error of the probabilities is seen with {inputs_of(e)}; what the bins see may be up "
        f"to {points(tece.ci_high)} points, {unseen}."
    )


def _part(e: Evaluation) -> str:
    mean, dependence = e.mean_miscalibration, e.epistemic_dependence
    of_mean, of_dependence = max(mean.estimate, 0), max(dependence.estimate, 0)
    test = e.tests.get("epistemic_independence")
    # Bins of the mean may pass for dependence what the test, which regresses on it, does not.
    if test is None:
        within = "among inputs of like mean"
    elif test.p_value <= 1 - e.confidence_level:
        within = "where the spread tells what the mean does not"
    else:
        within = "among inputs of like mean, though no trend with the spread is seen"
    if of_mean >= 2 * of_dependence and mean.ci_low > 0:
        return f", mostly in the mean{_repair(e)}"
    if of_dependence >= 2 * of_mean and dependence.ci_low > 0:
        return f", mostly {within}"
    if mean.ci_low > 0 and dependence.ci_low > 0:
        return f", both in the mean and {within}"
    return "; in which of its two parts cannot be told"


def _repair(e: Evaluation) -> str:
    """Return what repairs the mean, unless the inputs or their labels are at fault."""
    second = e.second_order
    if second is not None and not e._inputs.has_own_prediction:
        error = second.calibration_error
        if error.ci_high < e.tece.ci_low:
            return (
                f"; by all labels they are off by {points(error.estimate)} points: y_true is not "
                f"one of them at random, and to recalibrate to it would do harm"
            )
    claimed = float(e._inputs.prediction.mean())
    if (claimed - e.positive_share) ** 2 > e.mean_miscalibration.estimate / 2:
        return (
            f": {percent(claimed)} are predicted and {percent(e.positive_share)} seen. If inputs "
            f"were chosen by their label, that is why; if not, SecondOrderRecalibrator().fit on "
            f"other inputs repairs it"
        )
    return ", which SecondOrderRecalibrator().fit on other inputs can repair"


def _on_classes(e: Evaluation) -> str:
    top, joint, each = e.top_label, e.canonical, e.tece
    of_top, of_joint = (
        e.tests[f"{name}_calibration"].p_value <= 1 - e.confidence_level
        for name in ("top_label", "canonical")
    )
    if top.ci_low > 0 and (of_top or top.refined):
        tendency = "on average "
        if not e.accuracy.ci_low <= e.confidence <= e.accuracy.ci_high:
            much = "sure" if e.confidence > e.accuracy.ci_high else "cautious"
            tendency = f"too {much} on average: "
        said = [
            f"The probability of the predicted class is off by about {_about(top, ' points')} "
            f"({tendency}right in {percent(e.accuracy.estimate)}, claimed in "
            f"{percent(e.confidence)})"
        ]
    else:
        said = [
            f"No error of the predicted class is seen with {inputs_of(e)} (up to "
            f"{points(top.ci_high)} points of what the bins see)"
        ]
    if each.ci_low > 0:
        worst = ""
        if e.worst.ci_low > 0:
            worst = f", most {_short(e.worst_class)} ({points(e.worst.estimate)})"
        said.append(f"single classes are off by {_about(each)}{worst}")
    if of_joint and joint.ci_low > 0:
        said.append(f"all jointly by {_about(joint)}, as far as the bins see")
    elif of_joint:
        said.append("all jointly are not right, by the test")
    elif each.ci_low <= 0:
        said.append(
            f"of single classes or of all jointly no error is seen; less than "
            f"{points(joint.minimum_detectable)} points would often go unseen, and what cancels in "
            f"each of {joint.n_bins:,} bins always"
        )
    return "; ".join(said) + "."


def _at_least(e: Evaluation) -> float:
    """Return what calibration alone shows of the error of the mean of the hypotheses."""
    return 0.0 if e._inputs.has_own_prediction else e.tece.ci_low


def on_size(e: Evaluation) -> str:
    """Return what to conclude of the size of the uncertainty."""
    if e.reported_error is None:
        return "With one hypothesis for each input there is no uncertainty to judge."
    if e.tece is None:
        return f"Nothing can be said of its size from {inputs_of(e)}."
    if e.second_order is not None:
        return _on_size_seen(e)
    said = e.reported_error
    at_least, at_most = _at_least(e), e.reducible_at_most
    if said.ci_low > at_most.ci_high:
        return (
            f"The uncertainty is too large: it says {points(said.estimate)} points at one input, "
            f"more than the whole Brier score allows ({points(at_most.ci_high)})."
        )
    if at_least > said.ci_high:
        return (
            f"The uncertainty is too small: it says {points(said.estimate)} points at one input, "
            f"but calibration alone shows {points(at_least)} or more."
        )
    several = "label_counts" if e.n_classes > 2 else "n_positive, n_labels"
    return (
        f"The size of the uncertainty cannot be told from one label per input: it says "
        f"{points(said.estimate)} points at one input, and the error may be {points(at_least)} to "
        f"{points(at_most.ci_high)}, a share of {_range(*e.share_bounds)}. Several labels "
        f"({several}) would tell."
    )


def _on_size_seen(e: Evaluation) -> str:
    second, slope_is_known = e.second_order, not math.isnan(e.second_order.slope.estimate)

    def numbers(found: Any) -> str:
        slope = f", slope {shown(found.slope)}" if slope_is_known else ""
        return f"it reports {_share_of_error(found.share)}{slope}"

    small = second.gap.ci_low > 0 and not math.isnan(second.share.estimate)
    if small or second.gap.ci_high < 0:
        found = f"{numbers(second)}; SecondOrderRecalibrator().fit_counts can repair it"
        if not small and not second.share.ci_high < math.inf:
            found = (
                f"it reports {points(second.uncertainty.estimate)} points at one input, the error "
                f"is at most {points(second.reducible.ci_high)}"
            )
        doubt = _doubt(e)
        here, but = (" for this truth", f" {doubt}") if doubt else ("", "")
        return f"The uncertainty is too {'small' if small else 'large'}{here}: {found}.{but}"
    # The sentences below find nothing wrong with the law.
    of_law = second.law or second
    slope = of_law.slope
    # Its interval is too narrow where one label is rare.
    n_rare = e.n_samples * min(e.class_shares)
    if slope_is_known and n_rare >= 100 and (slope.ci_low > 1 or slope.ci_high < 1):
        return (
            f"The uncertainty is on the wrong inputs: its slope is {shown(slope)}, and 1 is "
            f"right, although its size cannot be told from right on average: it reports "
            f"{_share_of_error(of_law.share)}."
        )
    test = e.tests.get("second_order")
    if test is not None and test.p_value <= 1 - e.confidence_level:
        return (
            f"The size of the uncertainty cannot be told from right on average "
            f"({numbers(of_law)}), but it is not distributed as the truth is "
            f"(p {p_value(test.p_value, '=')})."
        )
    return f"The size of the uncertainty cannot be told from right: {numbers(of_law)}."


def _doubt(e: Evaluation) -> str:
    """Return why a law of functions may be right although these members are not, if it may."""
    law, test = e.second_order.law, e.tests.get("second_order")
    if law is None:
        return ""
    if law.gap.ci_low <= 0 <= law.gap.ci_high:
        return f"Other hypotheses of the same law may report {in_percent(law.share)} of the error."
    if test is None:
        why = "is not tested here"
        if e.n_hypotheses < MIN_MEMBERS:
            why = f"takes {MIN_MEMBERS} hypotheses to tell"
        return f"Whether a function of a right law would err so {why}."
    if test.p_value > 1 - e.confidence_level:
        return f"A function of a right law may err so (p {p_value(test.p_value, '=')})."
    return ""


def _share_of_error(share: Any) -> str:
    if math.isinf(share.ci_high):
        return f"at least {_share(share.ci_low)} of the squared error, which may be 0"
    return f"{in_percent(share)} of the squared error"


def on_ranking(e: Evaluation) -> str:
    """Return what to conclude of the order of the uncertainty."""
    r = e.ranking
    if r is None:
        return "There is no uncertainty that could tell where it errs."
    kind = _KINDS[e.kind_of_uncertainty]
    if r.error.estimate == 0:
        return "No prediction is wrong: whether the uncertainty tells errors cannot be seen."
    both = r.by_uncertainty.kept_error_90, r.by_prediction.kept_error_90
    d = r.difference.kept_error_90
    digits = decimals(100 * d.ci_low, 100 * d.ci_high)
    kept, doubt = (f"{100 * v.estimate:.{digits}f} %" for v in both)
    numbers = (
        f"of {percent(r.error.estimate)} errors {kept} are left among the 90 % of least {kind}, "
        f"and {doubt} where the prediction is surest (1 − max p)"
    )
    auroc = r.by_uncertainty.auroc_of_errors
    if auroc.ci_high < 0.5:
        return f"The uncertainty is small where it errs: {numbers}."
    if not auroc.ci_low > 0.5:
        return f"That the uncertainty tells errors from what is right cannot be seen: {numbers}."
    # Signs of differences that their intervals know, or 0.
    at_90, over_all = ((v.ci_low > 0) - (v.ci_high < 0) for v in (d, r.difference.augrc))
    than = "as well as the prediction itself, as far as can be told"
    if at_90 or over_all:
        where = "" if at_90 == over_all else " at 90 %" if at_90 else " over all coverages"
        how = "but less well than" if (at_90 or over_all) > 0 else "and better than"
        than = f"{how} the prediction itself{where}"
    return f"The uncertainty tells where it errs, {than}: {numbers}."


# --- Numbers


def number(value: float) -> str:
    """Return a number in about two significant digits or four decimals."""
    if not math.isfinite(value):
        return "—" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0 or abs(value) >= 0.001:
        return f"{value:.4f}" if value else "0"
    return f"{value:.1e}" if abs(value) < 1e-4 else f"{value:.5f}"


def decimals(low: float, high: float) -> int:
    """Return the decimals that show two significant figures of an interval.

    Examples
    --------
    >>> decimals(5.2, 7.7), decimals(-0.01, 0.02), decimals(40, 90)
    (1, 3, 0)
    """
    width = high - low if math.isfinite(high - low) else abs(low if math.isfinite(low) else high)
    if not math.isfinite(width) or width <= 0:
        return 2
    return min(max(1 - math.floor(math.log10(width)), 0), 5)


def _signed(value: float, digits: int) -> str:
    """Return a number with so many decimals, and 0 without a sign."""
    if not math.isfinite(value):
        return number(value)
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def shown(value: Any, unit: float = 1.0, sign: str = "") -> str:
    """Return an estimate, within its interval, and the interval."""
    low, high = unit * value.ci_low, unit * value.ci_high
    middle = unit * value.estimate
    if math.isfinite(middle) and low <= high:
        middle = min(max(middle, low), high)
    digits = decimals(low, high)
    low_text, high_text = ("0" if v == 0 else _signed(v, digits) for v in (low, high))
    return f"{_signed(middle, digits)}{sign} [{low_text}, {high_text}]"


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def in_percent(value: Any) -> str:
    """Return an estimate and its interval in percent."""
    return shown(value, 100.0, " %")


def _share(value: float) -> str:
    if not math.isfinite(value):
        return "∞" if value > 0 else "—"
    return f"{float(f'{100 * value:.3g}'):,.0f} %" if value >= 0.1 else f"{100 * value:.2g} %"


def _range(low: float, high: float) -> str:
    return f"{_share(low)} {'or more' if math.isinf(high) else f'to {_share(high)}'}"


def points(squared: float) -> str:
    """Return the root of a squared error of a probability, in points."""
    return f"{100 * math.sqrt(squared):.1f}" if squared > 0 else "0"


def in_points(value: Any) -> str:
    """Return a squared error, within its interval, and the interval in points."""
    if not math.isfinite(value.ci_high):
        return f"{points(value.estimate)} points"
    interval = f"[{points(value.ci_low)}, {points(value.ci_high)}]"
    return f"{points(max(value.estimate, value.ci_low))} points {interval}"


def _about(value: Any, unit: str = "") -> str:
    return f"{points(value.estimate)}{unit} ({points(value.ci_low)} to {points(value.ci_high)})"


def p_value(value: float, sign: str = "") -> str:
    """Return a p-value; 999 label sets drawn say no more than that it is at most 0.001."""
    return "≤ 0.001" if value <= 0.001 else f"{sign} {value:.2g}".strip()


# --- Lines


def width() -> int:
    return min(max(shutil.get_terminal_size((80, 24)).columns, 66), 100)


def inputs_of(e: Any) -> str:
    """Return how many inputs there are, and in how many groups."""
    n = "1 input" if e.n_samples == 1 else f"{e.n_samples:,} inputs"
    return n if e.n_groups is None else f"{n} in {e.n_groups:,} groups"


def sentences(text: str, start: str = "→ ", indent: int = 2) -> list[str]:
    """Return the lines of a text; signs stay beside their numbers, and intervals are not broken."""
    glued = re.sub(r" %|\[[^]]*\]|\bp [=≤] ", lambda found: found[0].replace(" ", _GLUE), text)
    lines = textwrap.wrap(
        glued, width(), initial_indent=start, subsequent_indent=" " * indent, break_on_hyphens=False
    )
    return [line.replace(_GLUE, " ") for line in lines]


def _line(label: str, text: str) -> str:
    return "\n".join(sentences(f"{'  ' + label:<{_LABEL + 2}} {text}", "", _LABEL + 3))


def _short(name: str) -> str:
    return repr(name if len(name) <= 12 else name[:11] + "…")
