import numpy as np
import pandas as pd
import pytest

from epistemic_calibration.paper.claims import (
    ACTIVE_METHODS,
    CLAIMS,
    COLUMNS,
    ILLUSTRATIVE_METHODS,
    claims,
    to_markdown,
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
            "value": mean
            + jitter * rng.standard_normal()
            + (more or {}).get((method, task), 0)
            + (more or {}).get((method, seed), 0),
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
    found = table[table["claim"].str.contains(claim, regex=False)]
    assert len(found) == 1
    return found.iloc[0]


def verdict(claim, **results):
    return row(claim, **results)["verdict"]


def test_without_results_nothing_is_measured():
    table = claims()
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == len(CLAIMS)
    assert set(table["verdict"]) == {"not measured"}
    assert table["ours"].str.contains("no scores|no results").all()
    assert not table["claim"].duplicated().any()


@pytest.mark.fault
def test_what_is_missing_is_named():
    partial = scores({k: v for k, v in CIFAR.items() if k != "laplace"})
    found = row("forest is the worst active method on CIFAR-10", scores=partial)
    assert found["verdict"] == "not measured"
    assert "Laplace" in found["ours"]
    # A claim about other methods is not held up; one about another data set is.
    assert verdict("almost no epistemic calibration error", scores=scores()) == "not measured"


def test_unfinished_tasks_are_not_averaged_over():
    table = scores()
    lost = (table["method"] == "deep_ensemble") & (table["task"] == "a")
    found = row("forest is the worst active method on CIFAR-10", scores=table[~lost])
    assert found["verdict"] == "not measured"
    assert "ensemble" in found["ours"]


def test_two_values_of_a_cell_are_an_error():
    with pytest.raises(ValueError, match="cifar10, eece: more than one value"):
        claims(pd.concat([scores(), scores()]))


def test_other_methods_do_not_matter():
    table = pd.concat([scores(), scores({"my_method": 0.9, "base_rate": 0.0})])
    pd.testing.assert_frame_equal(claims(table), claims(scores()))


@pytest.mark.parametrize(
    ("changes", "more", "expected"),
    [
        ({}, {}, "holds"),
        # Largest on average by one outlier of another method's making: worst elsewhere.
        ({}, {("bayesian_logistic_regression", "a"): 0.5}, "holds in part"),
        ({"random_forest": 0.019}, {}, "does not hold"),
    ],
)
@pytest.mark.parametrize(
    ("metric", "claim"),
    [
        ("eece", "forest is the worst active method on CIFAR-10"),
        ("tece_corrected", "bias-corrected TECE"),
    ],
)
def test_forest_is_worst(changes, more, expected, metric, claim):
    table = scores({**CIFAR, **changes}, metric=metric, more=more)
    assert verdict(claim, scores=table) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "holds"),
        ({"bayesian_logistic_regression": 0.05}, "holds in part"),
        ({"bayesian_logistic_regression": 0.0095}, "holds in part"),
        ({"bayesian_logistic_regression": 0.001}, "does not hold"),
    ],
)
def test_regression_is_second_worst(changes, expected):
    found = verdict("second worst active method", scores=scores({**CIFAR, **changes}))
    assert found == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({("bayesian_logistic_regression", "a"): 0.2}, "holds"),
        ({("laplace", "a"): 0.2}, "does not hold"),
    ],
)
def test_regression_has_the_highest_variance(more, expected):
    assert verdict("highest variance", scores=scores(more=more)) == expected


def test_highest_variance_in_some_seeds_holds_in_part():
    table = scores()
    chosen = (
        (table["method"] == "bayesian_logistic_regression")
        & (table["task"] == "a")
        & (table["seed"] == 0)
    )
    table.loc[chosen, "value"] += 0.2
    other = (table["method"] == "laplace") & (table["task"] == "a") & (table["seed"] > 0)
    table.loc[other, "value"] += 0.01
    assert verdict("highest variance", scores=table) == "holds in part"


def test_a_variance_needs_two_tasks():
    table = scores()
    assert verdict("highest variance", scores=table[table["task"] == "a"]) == "not measured"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "holds"),
        ({"laplace": 0.005}, "holds in part"),
        ({"laplace": 0.0005, "deep_ensemble": 0.0005}, "does not hold"),
    ],
)
def test_dropouts_are_best(changes, expected):
    assert verdict("DropConnect and MC-Dropout", scores=scores({**CIFAR, **changes})) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "holds"),
        ({"centroids": 0.03}, "holds in part"),
        ({"centroids": 0.001, "eknn": 0.001}, "does not hold"),
    ],
)
def test_illustrative_methods_come_last(changes, expected):
    means = {**CIFAR, **changes}
    assert verdict("come last on CIFAR-10", scores=scores(means)) == expected
    toy = {"eece_per_method": toy_table(means)}
    assert verdict("come last on the toy data", toy=toy) == expected


@pytest.mark.parametrize(
    ("worst_accuracy", "forest", "expected"),
    [
        (0.90, 0.04, "holds"),
        (0.80, 0.04, "holds in part"),
        (0.90, 0.012, "holds in part"),
        (0.80, 0.012, "does not hold"),
    ],
)
def test_similar_accuracy(worst_accuracy, forest, expected):
    accuracy = dict.fromkeys(ACTIVE_METHODS, 0.92) | {"laplace": worst_accuracy}
    eece = dict.fromkeys(ACTIVE_METHODS, 0.008) | {"random_forest": forest}
    table = pd.concat([scores(accuracy, metric="accuracy", jitter=0), scores(eece)])
    assert verdict("despite similar accuracy", scores=table) == expected


@pytest.mark.parametrize(
    ("n_zero", "expected"),
    [(6, "holds"), (5, "holds"), (3, "holds in part"), (2, "does not hold")],
)
def test_mnist(n_zero, expected):
    means = {method: 0.001 if i < n_zero else 0.02 for i, method in enumerate(ACTIVE_METHODS)}
    table = scores(means, dataset="mnist")
    assert verdict("almost no epistemic calibration error", scores=table) == expected


@pytest.mark.parametrize(
    ("high", "expected"),
    [(0.2, "holds"), (0.06, "holds in part"), (0.9, "holds in part"), (0.03, "does not hold")],
)
def test_noise(high, expected):
    toy = {"eece_vs_noise": toy_table({0.0: 0.02, 0.5: 0.03, 0.95: high}, "noise_level", jitter=0)}
    found = row("input noise", toy=toy)
    assert found["verdict"] == expected
    assert found["ours"].startswith(f"×{high / 0.02:.1f}, ")


def test_noise_needs_its_range():
    toy = {"eece_vs_noise": toy_table({0.0: 0.02, 0.5: 0.2}, "noise_level")}
    assert verdict("input noise", toy=toy) == "not measured"


@pytest.mark.parametrize(
    ("values", "falls", "plateau"),
    [
        ({10: 0.07, 50: 0.02, 100: 0.008, 1000: 0.007}, "holds", "holds"),
        ({10: 0.03, 50: 0.02, 100: 0.012, 1000: 0.004}, "holds in part", "holds in part"),
        ({10: 0.02, 50: 0.02, 100: 0.1, 1000: 0.02}, "does not hold", "does not hold"),
        ({10: 0.07, 50: 0.02, 100: 0.2, 1000: 0.2}, "does not hold", "holds"),
    ],
)
def test_training_size(values, falls, plateau):
    toy = {"eece_vs_training_size": toy_table(values, "n_train")}
    assert verdict("falls from about 0.07", toy=toy) == falls
    assert verdict("on a plateau", toy=toy) == plateau


@pytest.mark.parametrize(
    ("values", "shift", "expected"),
    [
        ({20: 0.01, 100: 0.004, 200: 0.001, 400: 0.003, 1000: 0.01}, {}, "holds"),
        (
            {20: 0.01, 100: 0.004, 200: 0.001, 400: 0.003, 1000: 0.01},
            {1: 20, 2: 20},
            "holds in part",
        ),
        ({20: 0.001, 100: 0.004, 200: 0.005, 400: 0.006, 1000: 0.01}, {}, "does not hold"),
    ],
)
def test_best_number_of_bins(values, shift, expected):
    table = toy_table(
        values, "n_bins", metric="absolute_difference", method="deep_ensemble", jitter=0
    )
    for seed, n_bins in shift.items():
        table.loc[(table["seed"] == seed) & (table["n_bins"] == n_bins), "value"] = 0.0009
    found = row("near 200 bins", toy={"binning_study": table})
    assert found["verdict"] == expected


def test_the_best_number_of_bins_must_not_be_at_the_end_of_the_range():
    table = toy_table(
        {100: 0.01, 200: 0.001}, "n_bins", metric="absolute_difference", method="deep_ensemble"
    )
    assert verdict("near 200 bins", toy={"binning_study": table}) == "not measured"


@pytest.mark.parametrize(
    ("eece", "tece", "expected"),
    [
        (0.001, 0.001, "holds"),
        (0.01, 0.001, "holds in part"),
        (0.01, 0.02, "does not hold"),
    ],
)
def test_regression_is_calibrated_on_the_toy_data(eece, tece, expected):
    table = pd.concat(
        [
            toy_table({"bayesian_logistic_regression": eece}),
            toy_table({"bayesian_logistic_regression": tece}, metric="tece"),
        ]
    )
    assert verdict("almost perfectly", toy={"eece_per_method": table}) == expected


@pytest.mark.parametrize(
    ("eece", "tece", "jitter", "expected"),
    [
        (0.04, 0.04, 0.0001, "holds"),
        (0.04, 0.001, 0.0001, "holds in part"),
        (0.04, 0.04, 0.2, "holds in part"),
        (0.001, 0.001, 0.0001, "does not hold"),
    ],
)
def test_forest_is_worst_on_the_toy_data(eece, tece, jitter, expected):
    table = pd.concat(
        [
            toy_table({**CIFAR, "random_forest": eece}, jitter=0.0001),
            toy_table({**CIFAR, "random_forest": tece}, metric="tece", jitter=0.0001),
        ]
    )
    # Large and balanced between seeds: the means stay, their order is no longer clear.
    chosen = table["method"] == "random_forest"
    table.loc[chosen, "value"] += jitter * (table.loc[chosen, "seed"] - 1)
    assert verdict("worst active method on the toy", toy={"eece_per_method": table}) == expected


def test_one_seed_shows_no_order_clearly():
    tables = [toy_table({**CIFAR, "random_forest": 0.04}, metric=m) for m in ("eece", "tece")]
    table = pd.concat(tables)
    toy = {"eece_per_method": table[table["seed"] == 0]}
    assert verdict("worst active method on the toy", toy=toy) == "holds in part"


@pytest.mark.parametrize(
    ("ece", "expected"),
    [
        ({"unregularised": 0.05, "depth": 0.02, "leaf": 0.03}, "holds"),
        ({"unregularised": 0.05, "depth": 0.02, "leaf": 0.06}, "holds in part"),
        ({"unregularised": 0.01, "depth": 0.02, "leaf": 0.06}, "does not hold"),
        ({"unregularised": 0.01}, "not measured"),
    ],
)
def test_regularised_forests(ece, expected):
    table = pd.DataFrame(
        {"method": "random_forest", "variant": variant, "seed": seed, "bin": b, "ece": value}
        for variant, value in ece.items()
        for seed in SEEDS
        for b in range(3)
    )
    assert verdict("Regularising", toy={"calibration_plots": table}) == expected


def test_numbers_carry_their_spread():
    found = row(
        "input noise", toy={"eece_vs_noise": toy_table({0: 0.02, 0.95: 0.2}, "noise_level")}
    )
    assert "0.2000 ± 0.0001 (3 seeds)" in found["ours"]


def test_markdown_has_a_row_a_claim_and_escapes_bars():
    lines = to_markdown(claims(scores())).strip().split("\n")
    assert len(lines) == len(CLAIMS) + 2
    n_bars = {line.replace(r"\|", "").count("|") for line in lines}
    assert n_bars == {len(COLUMNS) + 1}


def test_the_groups_of_methods_are_the_papers():
    assert len(set(ACTIVE_METHODS) | set(ILLUSTRATIVE_METHODS)) == 9
    assert set(CIFAR) == set(ACTIVE_METHODS) | set(ILLUSTRATIVE_METHODS)
