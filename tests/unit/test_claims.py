import numpy as np
import pandas as pd
import pytest

from epistemic_calibration.paper.claims import (
    ACTIVE_METHODS,
    CLAIMS,
    COLUMNS,
    ILLUSTRATIVE_METHODS,
    claims,
)

SEEDS = (0, 1, 2)
TASKS = ("a", "b", "c", "d")
# The paper's picture of CIFAR-10.
CIFAR = {
    "bayesian_logistic_regression": 0.02,
    "laplace": 0.010,
    "deep_ensemble": 0.009,
    "random_forest": 0.04,
    "dropconnect": 0.002,
    "mc_dropout": 0.008,
    "centroids": 0.07,
    "likelihood": 0.14,
    "eknn": 0.09,
}


def scores(means=CIFAR, *, dataset="cifar10", metric="eece", jitter=0.0002, more=None):
    """Tidy scores with the given means; ``more`` adds to single tasks of a method."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "dataset": dataset,
            "seed": seed,
            "method": method,
            "task": task,
            "metric": metric,
            "value": mean + jitter * rng.standard_normal() + (more or {}).get((method, task), 0),
        }
        for method, mean in means.items()
        for seed in SEEDS
        for task in TASKS
    )


def toy_table(values, column="method", *, metric="eece", method="random_forest", jitter=0.0001):
    """Tidy toy results with the given means by method, or of one method by ``column``."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "method": method,
            "seed": seed,
            "metric": metric,
            "value": value + jitter * rng.standard_normal(),
            column: key,
        }
        for key, value in values.items()
        for seed in SEEDS
    )


def row(claim, **results):
    table = claims(**results)
    (found,) = table[table["claim"].str.contains(claim, regex=False)].to_dict("records")
    return found


def verdict(claim, **results):
    return row(claim, **results)["verdict"]


def test_without_results_nothing_is_measured():
    table = claims()
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == len(CLAIMS) == len(CASES)
    assert set(table["verdict"]) == {"not measured"}
    assert table["ours"].str.contains("no scores|no results").all()
    assert not table["claim"].duplicated().any()
    assert set(CIFAR) == {*ACTIVE_METHODS, *ILLUSTRATIVE_METHODS}


@pytest.mark.fault
def test_what_is_missing_is_named_and_not_averaged_over():
    partial = scores({k: v for k, v in CIFAR.items() if k != "laplace"})
    whole = scores()
    lost = (whole["method"] == "laplace") & (whole["task"] == "a")
    for table in (partial, whole[~lost]):
        found = row(FOREST, scores=table)
        assert found["verdict"] == "not measured"
        assert "Laplace" in found["ours"]


def test_two_values_of_a_cell_are_an_error():
    with pytest.raises(ValueError, match="cifar10, eece: more than one value"):
        claims(pd.concat([scores(), scores()]))


def test_other_methods_do_not_matter():
    table = pd.concat([scores(), scores({"my_method": 0.9, "base_rate": 0.0})])
    pd.testing.assert_frame_equal(claims(table), claims(scores()))


BLR = "bayesian_logistic_regression"


def images(changes=None, **options):
    return {"scores": scores({**CIFAR, **(changes or {})}, **options)}


def cifar_forest(metric):
    # In part: worst but for one outlier of another method; or worst by no more than chance.
    outlier = images(metric=metric, more={(BLR, "a"): 0.5})
    unclear = images({BLR: 0.0402}, metric=metric, jitter=0.002)
    beaten = images({"random_forest": 0.019}, metric=metric)
    return [images(metric=metric)], [outlier, unclear], [beaten]


def last(make):
    return (
        [make(CIFAR)],
        [make({**CIFAR, "centroids": 0.03})],
        [make({**CIFAR, "centroids": 0.001, "eknn": 0.001})],
    )


def similar(worst_accuracy, forest):
    accuracy = dict.fromkeys(ACTIVE_METHODS, 0.92) | {"laplace": worst_accuracy}
    eece = dict.fromkeys(ACTIVE_METHODS, 0.008) | {"random_forest": forest}
    return {"scores": pd.concat([scores(accuracy, metric="accuracy", jitter=0), scores(eece)])}


def first_in_some_seeds():
    table = scores()
    seeds = {BLR: table["seed"] == 0, "laplace": table["seed"] > 0}
    for (method, of_seeds), more in zip(seeds.items(), (0.2, 0.01), strict=True):
        table.loc[(table["method"] == method) & (table["task"] == "a") & of_seeds, "value"] += more
    return {"scores": table}


def mnist(n_zero):
    means = {method: 0.001 if k < n_zero else 0.02 for k, method in enumerate(ACTIVE_METHODS)}
    return {"scores": scores(means, dataset="mnist")}


def toy_of(experiment, *args, **options):
    return {"toy": {experiment: toy_table(*args, **options)}}


def noise(high, level=0.95):
    return toy_of("eece_vs_noise", {0.0: 0.02, 0.5: 0.03, level: high}, "noise_level", jitter=0)


def sizes(*values):
    by_size = dict(zip((10, 50, 100, 1000), values, strict=True))
    return toy_of("eece_vs_training_size", by_size, "n_train")


def bins(values, shifted=()):
    options = {"metric": "absolute_difference", "method": "deep_ensemble", "jitter": 0}
    table = toy_table(values, "n_bins", **options)
    table.loc[table["seed"].isin(shifted) & (table["n_bins"] == 20), "value"] = 0.0009
    return {"toy": {"binning_study": table}}


def both(eece, tece, method=BLR, others=(), jitter=0.0):
    values = {"eece": eece, "tece": tece}.items()
    table = pd.concat(toy_table({**dict(others), method: v}, metric=m) for m, v in values)
    # Large and balanced between seeds: the means stay, their order is no longer clear.
    chosen = table["method"] == method
    table.loc[chosen, "value"] += jitter * (table.loc[chosen, "seed"] - 1)
    return {"toy": {"eece_per_method": table}}


def variants(**ece):
    rows = [(v, seed, value) for v, value in ece.items() for seed in SEEDS for _ in range(3)]
    table = pd.DataFrame(rows, columns=["variant", "seed", "ece"])
    return {"toy": {"calibration_plots": table}}


FOREST, NOISE = "forest is the worst active method on CIFAR-10", "input noise"
VARIANCE, BINS, REGULARISED = "highest variance", "near 200 bins", "Regularising"
TOY_FOREST = "worst active method on the toy"
TWO_HUNDRED = {20: 0.01, 100: 0.004, 200: 0.001, 400: 0.003, 1000: 0.01}
# By claim: results of which it holds, holds in part, and does not hold.
CASES = {
    FOREST: cifar_forest("eece"),
    "bias-corrected TECE": cifar_forest("tece_corrected"),
    "second worst active method": (
        [images()],
        [images({BLR: 0.05}), images({BLR: 0.0095})],
        [images({BLR: 0.001})],
    ),
    VARIANCE: (
        [images(more={(BLR, "a"): 0.2})],
        [first_in_some_seeds()],
        [images(more={("laplace", "a"): 0.2})],
    ),
    "DropConnect and MC-Dropout": (
        [images()],
        [images({"laplace": 0.005})],
        [images({"laplace": 0.0005, "deep_ensemble": 0.0005})],
    ),
    "come last on CIFAR-10": last(images),
    "come last on the toy data": last(lambda means: toy_of("eece_per_method", means)),
    "despite similar accuracy": (
        [similar(0.90, 0.04)],
        [similar(0.80, 0.04), similar(0.90, 0.012)],
        [similar(0.80, 0.012)],
    ),
    "almost no epistemic calibration error": ([mnist(6), mnist(5)], [mnist(3)], [mnist(2)]),
    NOISE: ([noise(0.2)], [noise(0.06), noise(0.9)], [noise(0.03)]),
    "falls from about 0.07": (
        [sizes(0.07, 0.02, 0.008, 0.007)],
        [sizes(0.03, 0.02, 0.012, 0.004)],
        [sizes(0.02, 0.02, 0.1, 0.02), sizes(0.07, 0.02, 0.2, 0.2)],
    ),
    "on a plateau": (
        [sizes(0.07, 0.02, 0.008, 0.007), sizes(0.07, 0.02, 0.2, 0.2)],
        [sizes(0.03, 0.02, 0.012, 0.004)],
        [sizes(0.02, 0.02, 0.1, 0.02)],
    ),
    BINS: (
        [bins(TWO_HUNDRED)],
        [bins(TWO_HUNDRED, shifted=(1, 2))],
        [bins({20: 0.001, 100: 0.004, 200: 0.005, 400: 0.006, 1000: 0.01})],
    ),
    "almost perfectly": ([both(0.001, 0.001)], [both(0.01, 0.001)], [both(0.01, 0.02)]),
    TOY_FOREST: (
        [both(0.04, 0.04, "random_forest", CIFAR)],
        [
            both(0.04, 0.001, "random_forest", CIFAR),
            both(0.04, 0.04, "random_forest", CIFAR, jitter=0.2),
        ],
        [both(0.001, 0.001, "random_forest", CIFAR)],
    ),
    REGULARISED: (
        [variants(unregularised=0.05, depth=0.02, leaf=0.03)],
        [variants(unregularised=0.05, depth=0.02, leaf=0.06)],
        [variants(unregularised=0.01, depth=0.02, leaf=0.06)],
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_the_verdict_of_each_claim(claim):
    for expected, cases in zip(
        ("holds", "holds in part", "does not hold"), CASES[claim], strict=True
    ):
        assert [verdict(claim, **results) for results in cases] == [expected] * len(cases)


@pytest.mark.parametrize(
    ("claim", "results"),
    [
        (VARIANCE, {"scores": scores().query("task == 'a'")}),
        (NOISE, noise(0.2, level=0.6)),
        (BINS, bins({100: 0.01, 200: 0.001})),
        (REGULARISED, variants(unregularised=0.01)),
    ],
)
def test_what_a_claim_needs_is_not_guessed(claim, results):
    assert verdict(claim, **results) == "not measured"


def test_one_seed_shows_no_order_clearly():
    results = both(0.04, 0.04, "random_forest", CIFAR)
    table = results["toy"]["eece_per_method"]
    toy = {"eece_per_method": table[table["seed"] == 0]}
    assert verdict(TOY_FOREST, toy=toy) == "holds in part"
