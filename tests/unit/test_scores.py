import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from epistemic_calibration import metrics
from epistemic_calibration import scores as of_metrics
from epistemic_calibration.scores import (
    METRICS,
    Scorer,
    bounds,
    ranking,
    recalibration,
    rows_of_all_tasks,
    rows_of_methods,
    second_order,
)

SETTINGS = {
    "n_bins": 12,
    "binning": "kmeans",
    "ece_n_bins": 7,
    "corrected_n_bins": 18,
    "corrected_binning": "nested",
    "confidence_level": 0.9,
    "n_resamples": 49,
    "recalibration": True,
    "random_state": 3,
}


OF_CORRECTED = ("noise_floor", "minimum_detectable", "dropped_mass")
COLUMNS = ["scope", "bin", "metric", "value", "n_bins", "n_hypotheses", "binning"]


def arrays(n=300, h=6, *, seed=0, dtype=np.float32, reported=False, prediction=False):
    rng = np.random.default_rng(seed)
    centre = rng.beta(0.7, 3, n)
    hypotheses = np.clip(centre[:, None] + 0.1 * rng.standard_normal((n, h)), 0, 1).astype(dtype)
    result = {"y_true": (rng.random(n) < centre).astype(np.uint8), "hypotheses": hypotheses}
    if reported:
        result["epistemic_uncertainty"] = rng.uniform(0, 0.2, n).astype(dtype)
    if prediction:
        result["prediction"] = (0.8 * hypotheses.mean(axis=1)).astype(dtype)
    return result


def values_of(given, settings=SETTINGS):
    return {row["metric"]: row["value"] for row in Scorer(given, settings).rows()}


def limits(name, found):
    return {name: found.estimate, f"{name}_low": found.ci_low, f"{name}_high": found.ci_high}


def expected_values(given, settings):
    """Every score by a direct call with plain arrays."""
    y, hypotheses = given["y_true"], given["hypotheses"]
    reported = given.get("epistemic_uncertainty")
    mean = hypotheses.mean(axis=1, dtype=np.float64)
    prediction = given.get("prediction", mean)
    seed, level = settings["random_state"], settings["confidence_level"]
    spread = hypotheses.var(axis=1, dtype=np.float64) if reported is None else reported
    eece = metrics.decompose_eece(
        y,
        hypotheses,
        epistemic_uncertainty=reported,
        n_bins=settings["n_bins"],
        binning=settings["binning"],
        random_state=seed,
    )
    bins = {name: settings[f"corrected_{name}"] for name in ("n_bins", "binning")}
    bins |= {"random_state": seed}
    corrected = metrics.corrected_epistemic_calibration_error(
        y, hypotheses, confidence_level=level, **bins
    )
    reporting = metrics.reported_uncertainty_error(
        y, hypotheses, epistemic_uncertainty=reported, confidence_level=level, **bins
    ).lower
    split = metrics.split_epistemic_calibration_error(
        y, hypotheses, n_bins=bins["n_bins"], random_state=seed, confidence_level=level
    )
    bound = metrics.cross_fitted_lower_bound(
        y, hypotheses, random_state=seed, confidence_level=level
    )
    at_least = corrected if reported is None else reporting
    drawn = {"n_resamples": settings["n_resamples"], "random_state": seed}
    half, double = (
        metrics.corrected_epistemic_calibration_error(y, hypotheses, **{**bins, "n_bins": n})
        for n in (bins["n_bins"] // 2, 2 * bins["n_bins"])
    )
    calibration = metrics.epistemic_calibration_test(y, hypotheses, **(bins | drawn))
    of_mean = metrics.mean_calibration_test(y, hypotheses, **drawn)
    independence = metrics.epistemic_independence_test(
        y, hypotheses, epistemic_uncertainty=reported, **drawn
    )
    values = {
        "accuracy": metrics.accuracy(y, prediction),
        "brier": metrics.brier_score(y, prediction),
        "log_loss": metrics.log_loss(y, prediction),
        "auroc": metrics.auroc(y, prediction),
        "ece": metrics.expected_calibration_error(y, prediction, n_bins=settings["ece_n_bins"]),
        "mean_epistemic_uncertainty": np.mean(spread, dtype=np.float64),
        "eece": eece.eece,
        "eece_calibration": eece.calibration,
        "eece_dispersion": eece.dispersion,
        "eece_noise_floor": eece.noise_floor,
        **limits("tece_corrected", corrected),
        **{f"tece_{n}": getattr(corrected, n) for n in OF_CORRECTED},
        "tece_corrected_half_bins": half.estimate,
        "tece_corrected_double_bins": double.estimate,
        "tece_reported": at_least.estimate,
        "tece_reported_low": at_least.ci_low,
        "mean_miscalibration": split.mean_miscalibration.estimate,
        "epistemic_dependence": split.epistemic_dependence.estimate,
        "tece_cross_fitted": bound.estimate,
        "tece_cross_fitted_low": bound.ci_low,
        "p_epistemic_calibration": calibration.p_value,
        "p_mean_calibration": of_mean.p_value,
        "p_epistemic_independence": independence.p_value,
    }
    if settings["recalibration"]:
        fitted_on, scored_on = train_test_split(
            np.arange(len(y)), test_size=0.5, random_state=seed, stratify=y
        )
        model = metrics.SecondOrderRecalibrator().fit(y[fitted_on], hypotheses[fitted_on])
        before = hypotheses[scored_on]
        for when, rows in (("before", before), ("after", model.transform(before))):
            values[f"tece_corrected_{when}_recalibration"] = (
                metrics.corrected_epistemic_calibration_error(y[scored_on], rows, **bins).estimate
            )
            values[f"log_loss_{when}_recalibration"] = metrics.log_loss(
                y[scored_on], rows.mean(axis=1, dtype=np.float64)
            )
    values |= {"n_samples": len(y), "n_positive": int(np.sum(y))}
    return values | expected_ranking([given], settings)


def expected_ranking(tasks, settings):
    """Return the scores of the ranking of errors, of all tasks together."""
    y, rows = (np.concatenate([t[name] for t in tasks]) for name in ("y_true", "hypotheses"))
    found = metrics.error_ranking(
        y,
        rows,
        prediction=tasks[0].get("prediction"),
        epistemic_uncertainty=tasks[0].get("epistemic_uncertainty"),
        groups=np.tile(np.arange(len(tasks[0]["y_true"])), len(tasks)),
        confidence_level=settings["confidence_level"],
    )
    values = {"error_rate": found.error.estimate}
    for name in [m.name for m in ranking.METRICS if hasattr(found.difference, m.name)]:
        by_eu, by_prediction = (
            getattr(order, name) for order in (found.by_uncertainty, found.by_prediction)
        )
        values[name] = getattr(by_eu, "estimate", by_eu)
        if name == "kept_error_90":
            values |= limits(name, by_eu)
        values[f"{name}_by_prediction"] = getattr(by_prediction, "estimate", by_prediction)
        if name in ("kept_error_90", "augrc", "auroc_of_errors"):
            values |= limits(f"{name}_difference", getattr(found.difference, name))
    return values


# --- Scores of one task


@pytest.mark.parametrize(
    ("reported", "prediction", "change"),
    [
        (False, False, {}),
        (True, True, {"corrected_binning": "quantile", "recalibration": False}),
        (False, True, {"binning": "nested", "n_bins": 18, "corrected_binning": "kmeans"}),
    ],
)
def test_scores_are_those_of_direct_calls(reported, prediction, change):
    given, settings = arrays(reported=reported, prediction=prediction), SETTINGS | change
    found = values_of(given, settings)
    # To the last bit, and in this order.
    assert list(found.items()) == list(expected_values(given, settings).items())


#: Scored only of inputs with several labels each.
CONTROL = re.compile("squared|_of_(product|constant|shuffled)")
OF_SEVERAL_LABELS = {"share_before_recalibration", "share_after_recalibration"}


def test_every_metric_is_described_and_within_its_range():
    for seed, reported, dtype in itertools.product(
        range(3), (False, True), (np.float32, np.float64)
    ):
        found = values_of(arrays(seed=seed, reported=reported, dtype=dtype))
        alone = {m.name for m in METRICS.values()}
        alone -= {m.name for m in (*second_order.METRICS, *bounds.METRICS)}
        alone -= OF_SEVERAL_LABELS | {"confidence_level"}
        alone -= {name for name in alone if CONTROL.search(name)}
        assert set(found) == alone
        for name, value in found.items():
            low, high = METRICS[name].range
            assert low <= value <= high, name


@pytest.mark.parametrize("exchangeable", [True, False])
def test_the_share_of_the_error_before_and_after_recalibration(exchangeable):
    rng = np.random.default_rng(5)
    given = arrays(n=1200, h=5)
    rows = given["hypotheses"].astype(np.float64)
    # The error is larger than the hypotheses say.
    p = np.clip(rows.mean(axis=1) + 0.1 * rng.standard_normal(1200), 0, 1)
    k = rng.integers(0, 6, 1200)
    s = rng.binomial(k, p)
    given |= {"hypotheses": rows, "n_positive": s, "n_labels": k, "exchangeable": exchangeable}
    inputs = Scorer(given, SETTINGS)._inputs
    found = {row.metric: row.value for row in recalibration.rows(inputs)}
    assert {metric.name for metric in recalibration.METRICS} == set(found)
    a, b = train_test_split(
        np.arange(1200), test_size=0.5, random_state=3, stratify=given["y_true"]
    )
    model = metrics.SecondOrderRecalibrator()
    model.fit_counts(s[a], k[a], rows[a], exchangeable=exchangeable)
    factor = 6 / 4 if exchangeable else 1
    kept = b[k[b] >= 2]
    pairs = s[kept] * (s[kept] - 1) / (k[kept] * (k[kept] - 1))
    for when, hypotheses in (("before", rows[kept]), ("after", model.transform(rows[kept]))):
        mean = hypotheses.mean(axis=1)
        error = np.mean(pairs - 2 * mean * s[kept] / k[kept] + mean**2)
        share = factor * hypotheses.var(axis=1).mean() / error
        assert found[f"share_{when}_recalibration"] == pytest.approx(share)


def test_rows_are_tidy():
    rows = {row["metric"]: row for row in Scorer(arrays(), SETTINGS).rows({"acceptance": 1})}
    for row in rows.values():
        assert list(row) == COLUMNS
        assert (row["scope"], row["n_hypotheses"]) == ("task", 6)
        assert type(row["value"]) is float
    bins = {name: (row["binning"], row["n_bins"]) for name, row in rows.items()}
    assert bins["brier"] == bins["tece_cross_fitted"] == (None, None)
    assert bins["ece"] == ("uniform", 7)
    assert bins["eece"] == bins["eece_noise_floor"] == ("kmeans", 12)
    assert bins["tece_corrected"] == bins["p_epistemic_calibration"] == ("nested", 18)
    assert bins["p_mean_calibration"] == ("quantile", None)
    assert rows["diagnostic_acceptance"]["value"] == 1
    assert list(rows)[-1] == "diagnostic_acceptance"


def test_what_methods_are_compared_with():
    given = arrays(prediction=True)
    compared = Scorer(given, SETTINGS).compared()
    # The mean of the hypotheses, not the prediction.
    expected = given["hypotheses"].mean(axis=1, dtype=np.float64)
    np.testing.assert_array_equal(compared["mean_prediction"], expected)
    bins = metrics.assign_bins(given["hypotheses"], n_bins=18, binning="nested", random_state=3)
    np.testing.assert_array_equal(compared["bins"], bins)
    # Six draws: what they say of the error is 7/5 of their variance.
    variance = given["hypotheses"].var(axis=1, dtype=np.float64)
    np.testing.assert_allclose(compared["uncertainty"], variance * 7 / 5, rtol=1e-12)
    # The mean of three draws misses by 1/3 of the variance of the law, that of six by 1/6.
    said = compared["uncertainty_compared"].mean()
    assert said == pytest.approx(variance.mean() * 7 / 5, rel=0.1)
    assert (compared["uncertainty_compared"] != compared["uncertainty_chosen_by"]).all()
    # What a method reports is taken as it is, and the variance of what are no draws.
    fixed = Scorer(given | {"exchangeable": np.array(False)}, SETTINGS).compared()
    np.testing.assert_allclose(fixed["uncertainty"], variance, rtol=1e-12)
    given = arrays(reported=True)
    compared = Scorer(given, SETTINGS).compared()
    for name in ("uncertainty", "uncertainty_chosen_by", "uncertainty_compared"):
        np.testing.assert_array_equal(compared[name], given["epistemic_uncertainty"])


# --- Several labels per input


def counted(seed=0, n_labels=3, **options):
    given = arrays(seed=seed, **options)
    rng = np.random.default_rng(10 + seed)
    p = given["hypotheses"].mean(axis=1)
    return given | {"n_positive": rng.binomial(n_labels, p), "n_labels": np.full(len(p), n_labels)}


SECOND_ORDER = {
    "reducible_error": "reducible",
    "reported_error": "uncertainty",
    "size_gap": "gap",
    "reported_share": "share",
    "size_slope": "slope",
    "size_error": "size_error",
    "tece_all_labels": "calibration_error",
    "variance_in_bins": "variance_in_bins",
    "aleatoric_uncertainty": "aleatoric",
}


def second_order_options(given):
    return {
        "epistemic_uncertainty": given.get("epistemic_uncertainty"),
        "exchangeable": bool(given.get("exchangeable", True)),
        "n_bins": 18,
        "random_state": 3,
        "confidence_level": 0.9,
    }


FUNCTIONS = {"exchangeable": np.array(False)}


@pytest.mark.parametrize(
    "given", [counted(), counted(h=20), counted(reported=True), counted() | FUNCTIONS]
)
def test_several_labels_are_scored_as_by_direct_calls(given):
    found = values_of(given)
    counts = given["n_positive"], given["n_labels"]
    result = metrics.second_order_error(*counts, given["hypotheses"], **second_order_options(given))
    for name, attribute in SECOND_ORDER.items():
        for row, value in limits(name, getattr(result, attribute)).items():
            np.testing.assert_array_equal(found[row], value)
    for name in ("size_gap", "reported_share", "size_slope", "size_error"):
        if result.law is None:
            assert f"{name}_of_law_low" not in found
        else:
            of_law = getattr(result.law, SECOND_ORDER[name])
            assert found[f"{name}_of_law_low"] == of_law.ci_low
            assert found[f"{name}_of_law_high"] == of_law.ci_high
    order = metrics.within_label_correlation(
        given["y_true"], given["hypotheses"].mean(axis=1, dtype=float), *counts
    )
    assert found["within_label_correlation"] == pytest.approx(order.estimate, abs=1e-12)
    assert found["labels_per_input"] == 3
    exchangeable = second_order_options(given)["exchangeable"]
    if "epistemic_uncertainty" in given or (exchangeable and given["hypotheses"].shape[1] < 19):
        # Fewer members that are functions reject nothing.
        assert "p_second_order" not in found
    else:
        drawn = {"exchangeable": exchangeable, "n_resamples": 49, "random_state": 3}
        test = metrics.second_order_test(*counts, given["hypotheses"], **drawn)
        assert found["p_second_order"] == test.p_value
    # The rest is what it is without them.
    alone = {k: v for k, v in given.items() if k not in ("n_positive", "n_labels")}
    assert {name: found[name] for name in values_of(alone)} == values_of(alone)


def test_several_labels_of_all_tasks():
    given = [counted(seed=seed) for seed in range(3)]
    summaries = [Scorer(task, SETTINGS).summaries() for task in given]
    rows = list(rows_of_all_tasks(summaries, SETTINGS))
    values = {row["metric"]: row["value"] for row in rows if row["scope"] == "all_tasks"}
    positive, hypotheses = ([task[n] for task in given] for n in ("n_positive", "hypotheses"))
    result = metrics.mean_second_order_error(positive, 3, hypotheses, **second_order_options({}))
    for name, attribute in SECOND_ORDER.items():
        assert values[name] == getattr(result, attribute).estimate
    curve = [row for row in rows if row["scope"] == "bin"]
    assert {row["metric"] for row in curve} == {
        f"curve_{name}" for name in ("uncertainty", "error", "error_low", "error_high")
    }
    error = [row["value"] for row in curve if row["metric"] == "curve_error"]
    assert [row["bin"] for row in curve if row["metric"] == "curve_error"] == list(range(10))
    # Controls report as much as the method, or Δ(1 − Δ), and know nothing.
    assert values["share_of_constant"] == pytest.approx(values["reported_share"])
    assert values["share_of_shuffled"] == pytest.approx(values["reported_share"])
    means = np.concatenate([task["hypotheses"].mean(axis=1, dtype=float) for task in given])
    product = np.mean(means * (1 - means)) / values["reducible_error"]
    assert values["share_of_product"] == pytest.approx(product)
    # The bins are of equal size, and their mean is that of all.
    assert np.mean(error) == pytest.approx(result.reducible.estimate, abs=2e-3)


def test_methods_are_bounded_by_the_best():
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 2, (2, 2000))
    y_true = list((rng.random(p.shape) < p).astype(np.uint8))

    def compared(prediction, uncertainty):
        said = np.full(p.shape, uncertainty)
        found = {"uncertainty": said, "uncertainty_chosen_by": p, "uncertainty_compared": said}
        return found | {"mean_prediction": prediction}

    methods = {"right": compared(p, 0.0), "off": compared(0.8 * p + 0.2, 0.005)}
    truth = np.mean((0.2 - 0.2 * p) ** 2)
    rows = list(rows_of_methods(y_true, methods, SETTINGS))
    values = {(r["method"], r["metric"]): r["value"] for r in rows if r["scope"] == "all_tasks"}
    for name, true in (("reducible_error", truth), ("reported_share", 0.005 / truth)):
        assert values["off", f"{name}_at_least"] < true < values["off", f"{name}_at_most"]
    assert values["off", "brier_above_best"] == pytest.approx(truth, rel=0.3)
    assert values["right", "brier_above_best"] == 0
    # Of an error that may be 0, any uncertainty may be larger.
    assert values["right", "reported_share_at_most"] == np.inf
    bins = [r for r in rows if r["method"] == "off" and r["metric"] == "bounds_curve_at_least"]
    assert [row["bin"] for row in bins] == list(range(10))
    # The error is largest where p is least, which the bins are ordered by.
    assert bins[0]["value"] > bins[-1]["value"]


# --- Scores of all tasks


def test_rows_of_all_tasks_are_those_of_a_direct_call():
    given = [arrays(seed=seed) for seed in range(3)]
    scorers = [Scorer(task, SETTINGS) for task in given]
    compared = [scorer.compared() for scorer in scorers]
    expected = metrics.mean_corrected_error(
        [task["y_true"] for task in given],
        [task["mean_prediction"] for task in compared],
        [task["bins"] for task in compared],
        confidence_level=0.9,
        random_state=3,
    )
    rows = list(rows_of_all_tasks([scorer.summaries() for scorer in scorers], SETTINGS))
    ranked = {metric.name for metric in ranking.METRICS}
    for row in rows:
        assert list(row) == COLUMNS
        assert (row["scope"], row["n_hypotheses"]) == ("all_tasks", None)
        bins = (None, None) if row["metric"] in ranked else ("nested", 18)
        if row["metric"] != "confidence_level":
            assert (row["binning"], row["n_bins"]) == bins
    values = {row["metric"]: row["value"] for row in rows}
    assert expected_ranking(given, SETTINGS).items() <= values.items()
    assert {n: v for n, v in values.items() if n not in ranked} == {
        **limits("tece_corrected", expected),
        **{f"tece_{n}": getattr(expected, n) for n in OF_CORRECTED},
        "confidence_level": 0.9,
    }


# --- Descriptions


@pytest.mark.fault
def test_a_row_that_nothing_describes_is_an_error(monkeypatch):
    new = SimpleNamespace(rows=lambda inputs: [of_metrics.Row("forgotten", 0.5)])
    monkeypatch.setattr(of_metrics, "_FAMILIES", (new,))
    with pytest.raises(ValueError, match="no family of scores describes 'forgotten'"):
        list(Scorer(arrays(), SETTINGS).rows())
