"""The tables of a data set: what is in them, in which order, and as which text."""

import io
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from epistemic_calibration.registry import load
from epistemic_calibration.report import TABLES
from epistemic_calibration.report.tables import drivers, paper, size, summary
from epistemic_calibration.report.tables._selection import (
    all_tasks_scores,
    dataset_scores,
    missing_cells,
)
from epistemic_calibration.scoring import METRICS, Metric

ROOT = Path(__file__).parents[2]

METHODS = {
    "mine": {"label": "50% R&D_net {x}", "family": "active"},
    "random_forest": {"label": "Random Forest", "family": "active"},
    "centroids": {"label": "Centroids", "family": "illustrative"},
    "base_rate": {"label": "Base rate", "family": "control"},
}
TASKS = ["airplane", "cat", "truck"]
SEEDS = [0, 7]
PAPER_METRICS = ["accuracy", "ece", "eece"]


def make_scores(metrics=("accuracy", "ece", "eece"), methods=METHODS, dataset="cifar10"):
    cells = itertools.product(SEEDS, methods, TASKS, metrics)
    rows = [(dataset, seed, method, task, metric) for seed, method, task, metric in cells]
    table = pd.DataFrame(rows, columns=["dataset", "seed", "method", "task", "metric"])
    values = np.random.default_rng(0).uniform(0.1, 0.9, len(table))
    return table.assign(scope="task", value=values, n_bins=100, n_hypotheses=10, binning="kmeans")


def drop(scores, **where):
    matches = np.logical_and.reduce([scores[name] == value for name, value in where.items()])
    return scores[~matches]


def test_paper_table_has_the_layout_of_the_paper():
    scores = make_scores()
    table = paper.make(scores, "cifar10", METHODS).cells
    assert list(table.columns) == ["centroids", "random_forest", "mine", "base_rate"]
    rows = [*TASKS, "(mean)", "(sd)"]
    assert list(table.index) == list(itertools.product(["accuracy", "ece", "eece"], rows))
    cell = scores.query("method == 'mine' and metric == 'ece'")["value"].to_numpy()
    by_task = cell.reshape(len(SEEDS), len(TASKS))
    np.testing.assert_allclose(table.loc["ece", "mine"][TASKS], by_task.sum(axis=0) / 2)
    assert table.loc[("ece", "(mean)"), "mine"] == pytest.approx(cell.sum() / 6)
    deviation = np.sqrt(((cell - cell.mean()) ** 2).sum() / 5)
    assert table.loc[("ece", "(sd)"), "mine"] == pytest.approx(deviation)


def test_paper_table_adds_the_parts_of_eece_where_there_are_any():
    metrics = ["auroc", "eece_dispersion", "accuracy", "eece_calibration", "ece", "eece"]
    table = paper.make(make_scores(metrics), "cifar10", METHODS)
    assert list(table.cells.index.unique(level=0)) == [
        "accuracy",
        "ece",
        "eece",
        "eece_calibration",
        "eece_dispersion",
        "auroc",
    ]


def test_missing_cells_are_shown_and_named():
    scores = drop(make_scores(), method="mine")
    scores = drop(scores, method="centroids", task="cat")
    scores = drop(scores, method="random_forest", task="truck", seed=7, metric="ece")
    table = paper.make(scores, "cifar10", METHODS)
    assert table.cells["mine"].isna().all()
    assert np.isnan(table.cells.loc[("ece", "cat"), "centroids"])
    assert np.isfinite(table.cells.loc[("ece", "(mean)"), "centroids"])
    assert table.text.loc[("ECE", "cat"), "Centroids"] == "—"
    assert table.text.loc[("ECE", "truck"), "Random Forest"].endswith("*")
    assert not table.text.loc[("EECE", "truck"), "Random Forest"].endswith("*")
    (note,) = table.notes
    assert "Partial: 25 scores missing" in note  # 18 + 6 + 1
    assert "Random Forest: truck (seed 7: ece)" in note
    assert "Centroids: cat (seed 0, 7)" in note
    assert note in table.to_markdown()
    assert "---" in table.to_latex()


def test_missing_cells_counts_what_was_expected():
    scores = make_scores()
    assert missing_cells(scores, "cifar10", METHODS, metrics=PAPER_METRICS).empty
    missing = missing_cells(
        scores, "cifar10", METHODS, tasks=[*TASKS, "ship"], seeds=[*SEEDS, 9], metrics=["ece"]
    )
    # One task more at three seeds, one seed more at three tasks, for four methods.
    assert len(missing) == 4 * (3 + 3)
    table = paper.make(scores, "cifar10", METHODS, tasks=[*TASKS, "ship"])
    assert table.cells.loc[("ece", "ship")].isna().all()


def test_a_score_that_is_not_finite_is_missing():
    scores = make_scores()
    scores.loc[(scores["method"] == "mine") & (scores["task"] == "cat"), "value"] = np.nan
    assert len(missing_cells(scores, "cifar10", METHODS, metrics=PAPER_METRICS)) == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: pd.concat([s, s.iloc[:1]]), "more than one value"),
        (lambda s: s.drop(columns="task"), r"lacks the columns \['task'\]"),
        (lambda s: s.drop(columns="scope"), r"lacks the columns \['scope'\]"),
        (lambda s: s.assign(dataset="mnist"), "'cifar10' has no scores"),
        (lambda s: s.assign(method="unheard_of"), "unheard_of"),
    ],
)
def test_bad_scores_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataset_scores(change(make_scores()), "cifar10", METHODS)


def test_latex_escapes_labels_and_keeps_the_structure():
    metrics = ["accuracy", "ece", "eece", "brier"]
    latex = paper.make(make_scores(metrics), "cifar10", METHODS).to_latex()
    assert r"\rotatebox{75}{50\% R\&D\_net \{x\}}" in latex
    assert latex.count(r"\multirow{3}{*}") == 4
    # Three blocks fill a page, the fourth continues on another.
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 2
    assert latex.count(r"\begin{tabular}{llrrrr}") == latex.count(r"\end{tabular}") == 2
    for rule in (r"\toprule", r"\bottomrule"):
        assert latex.count(rule) == 2
    assert latex.count(r"\midrule") == latex.count(r"\cmidrule(l){2-6}") == 4
    assert latex.isascii()
    for line in [line for line in latex.splitlines() if line.endswith(r"\\")]:
        assert line.replace(r"\&", "").count("&") == 5
    plain = latex.replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")


def test_decimals_and_signs():
    scores = make_scores().assign(value=-0.00004)
    assert "0.00" in paper.make(scores, "cifar10", METHODS).text["Centroids"].to_list()
    text = paper.make(scores.assign(value=-0.1236), "cifar10", METHODS, decimals=3).text
    assert text.loc[("ECE", "cat"), "Centroids"] == "−0.124"


def test_two_methods_may_share_a_label():
    methods = {name: {**entry, "label": "same"} for name, entry in METHODS.items()}
    table = paper.make(make_scores(), "cifar10", methods)
    assert table.text.shape == (15, 4)
    assert table.to_latex().count(r"\rotatebox{75}{same}") == 4
    assert table.to_markdown().count("same") == 4


def test_summary_ranks_by_eece_and_leaves_controls_unranked():
    scores = make_scores(["accuracy", "ece", "eece", "diagnostic_r_hat"])
    eece = {"centroids": 0.3, "random_forest": 0.1, "base_rate": 0.0, "mine": 0.2}
    where = scores["metric"] == "eece"
    scores.loc[where, "value"] = scores.loc[where, "method"].map(eece)
    table = summary.make(scores, "cifar10", METHODS)
    assert list(table.cells.index) == ["base_rate", "random_forest", "mine", "centroids"]
    ranks = table.cells["rank_eece"]
    assert pd.isna(ranks["base_rate"])
    assert list(ranks[1:]) == [1, 2, 3]
    assert list(table.text["Rank"]) == ["—", "1", "2", "3"]
    values = scores.query("method == 'mine' and metric == 'ece'")["value"].to_numpy()
    assert table.cells.loc["mine", "ece_mean"] == pytest.approx(values.mean())
    assert table.cells.loc["mine", "ece_sd"] == pytest.approx(values.std(ddof=1))
    assert "diagnostic_r_hat_mean" in table.cells
    assert not any("r hat" in name for name in table.text)


def test_summary_keeps_a_method_without_scores():
    table = summary.make(drop(make_scores(), method="mine"), "cifar10", METHODS)
    assert table.cells.index[-1] == "mine"
    assert table.cells.loc["mine", "n_tasks"] == 0
    assert table.text.loc[METHODS["mine"]["label"], "EECE"] == "—"
    assert "Partial: 18 scores missing" in table.notes[-1]


def test_summary_of_one_task_and_seed_has_no_spread():
    scores = make_scores().query("task == 'cat' and seed == 0")
    table = summary.make(scores, "cifar10", METHODS)
    assert table.cells["ece_sd"].isna().all()
    assert not table.text["ECE"].str.contains("±").any()


def test_summary_counts_rejections_instead_of_averaging_p_values():
    scores = make_scores(["eece", "p_epistemic_calibration"])
    tests = scores["metric"] == "p_epistemic_calibration"
    scores.loc[tests, "value"] = 1.0
    # With 12 tests of a seed, 0.05 / 12 = 0.00417 is the bound of the smallest p value.
    scores.loc[tests & (scores["method"] == "centroids"), "value"] = 0.004
    scores.loc[tests & (scores["method"] == "mine"), "value"] = 0.006
    cells = summary.make(scores, "cifar10", METHODS).cells
    counts = cells["p_epistemic_calibration_rejected"]
    assert counts["centroids"] == 6
    assert counts["mine"] == 0  # 0.006 * 9 = 0.054
    assert "p_epistemic_calibration_mean" not in cells


def test_drivers_say_so_when_no_test_can_reject():
    scores = make_scores(["eece", "p_epistemic_calibration"])
    enough = drivers.make(scores, "cifar10", METHODS, n_resamples=239)
    assert not any("can be rejected" in note for note in enough.notes)
    assert all("/" in cell for cell in enough.text["Rejected: epistemic calibration"])
    few = drivers.make(scores, "cifar10", METHODS, n_resamples=238)
    # Twelve tests of a seed: the smallest p is 1/239 > 0.05/12.
    assert any("with 238 resamples none of 12 tests can be rejected" in note for note in few.notes)
    assert any("n_resamples to 239 or more" in note for note in few.notes)
    assert set(few.text["Rejected: epistemic calibration"]) == {"—"}
    assert few.cells["p_epistemic_calibration_rejected"].isna().all()


def test_a_test_that_draws_nothing_can_always_reject():
    scores = make_scores(["eece", "p_epistemic_independence"])
    scores.loc[scores["metric"] == "p_epistemic_independence", "value"] = 1e-6
    table = drivers.make(scores, "cifar10", METHODS, n_resamples=9)
    assert set(table.text["Rejected: epistemic independence"]) == {"6/6"}
    assert not any("can be rejected" in note for note in table.notes)


def test_the_table_of_sizes_leaves_rejections_out_that_cannot_be():
    scores = make_scores(["p_second_order"])
    column = "Rejected: p* is distributed as the hypotheses"
    few = size.make(scores, "cifar10", METHODS, n_resamples=238)
    assert set(few.text[column]) == {"—"}
    assert any("none of 12 tests can be rejected" in note for note in few.notes)
    enough = size.make(scores, "cifar10", METHODS, n_resamples=239)
    assert all("/" in cell for cell in enough.text[column])


def test_markdown_rows_have_as_many_cells_as_the_heading():
    methods = {**METHODS, "mine": {"label": "a|b", "family": "active"}}
    lines = paper.make(make_scores(), "cifar10", methods).to_markdown().splitlines()
    table = [line.replace(r"\|", "") for line in lines if line.startswith("|")]
    assert len(table) == 2 + 15
    assert {line.count("|") for line in table} == {7}


def test_estimates_of_all_tasks_stand_in_no_mean_over_tasks():
    scores = make_scores(metrics=("eece", "tece_corrected"))
    together = make_scores(metrics=("tece_corrected_low", "tece_corrected_high"))
    together = together[together["task"] == "cat"].assign(scope="all_tasks", task=np.nan)
    both = pd.concat([scores, together.assign(value=[0.25, 0.75] * (len(together) // 2))])
    assert len(dataset_scores(both, "cifar10", METHODS)) == len(scores)
    table = drivers.make(both, "cifar10", METHODS)
    expected = scores.query("metric == 'tece_corrected'").groupby("method")["value"].mean()
    cells = table.cells.loc["mine"]
    assert cells["tece_corrected_mean"] == pytest.approx(expected["mine"])
    assert cells["tece_corrected_low_all_tasks"] == 0.25
    label = METHODS["mine"]["label"]
    text = table.text.loc[label, "Corrected TECE"]
    assert text == f"{expected['mine']:.4f} [0.2500, 0.7500]"


def test_contents_keep_full_precision():
    table = paper.make(make_scores(), "cifar10", METHODS)
    contents = table.contents()
    assert list(contents) == [".csv", ".md", ".tex"]
    again = pd.read_csv(io.StringIO(contents[".csv"]), index_col=["metric", "task"])
    pd.testing.assert_frame_equal(again, table.cells, check_exact=True, check_names=False)
    assert "| Acc." in contents[".md"]
    assert (contents[".md"], contents[".tex"]) == (table.to_markdown(), table.to_latex())
    assert not any("fingerprint" in text for text in contents.values())


def together(values):
    rows = [
        ("all_tasks", method, metric, value)
        for method, of_method in values.items()
        for metric, value in of_method.items()
    ]
    columns = ["scope", "method", "metric", "value"]
    return pd.DataFrame(rows, columns=columns).assign(dataset="pets", seed=0, task=None)


def test_the_size_table_orders_by_how_far_the_share_is_from_1():
    shares = {"mine": (0.5, 0.4, 0.7), "centroids": (np.nan, 1.5, np.inf), "base_rate": (0, 0, 0)}
    names = ("reported_share", "reported_share_low", "reported_share_high")
    scores = together({m: dict(zip(names, v, strict=True)) for m, v in shares.items()})
    p_values = pd.DataFrame(
        [("mine", task, p) for task, p in zip("0123", (0.001, 0.5, 0.5, 0.5), strict=True)],
        columns=["method", "task", "value"],
    ).assign(dataset="pets", seed=0, scope="task", metric="p_second_order")
    methods = {name: METHODS[name] for name in shares}
    table = size.make(pd.concat([scores, p_values]), "pets", methods)
    shown = table.text["Share of the error that is reported"]
    assert shown.to_dict() == {
        METHODS["mine"]["label"]: "0.500 [0.400, 0.700]",
        METHODS["base_rate"]["label"]: "0.000 [0.000, 0.000]",
        METHODS["centroids"]["label"]: "— [1.500, ∞]",
    }
    assert next(iter(shown)) == "0.500 [0.400, 0.700]"
    assert list(shown)[-1] == "— [1.500, ∞]"
    rejected = table.text["Rejected: p* is distributed as the hypotheses"]
    assert list(rejected) == ["1/4", "—", "—"]
    assert table.cells.loc["mine", "reported_share_low"] == 0.4


def test_the_size_table_of_one_label_per_image_shows_bounds():
    bounds = {"reported_share_at_least": 0.1, "reported_share_at_most": np.inf}
    bounds |= {"reducible_error_at_least": 0.0, "reducible_error_at_most": 0.02}
    bounds |= {"brier_of_mean": 0.015, "brier_above_best": -0.0003}
    methods = {name: METHODS[name] for name in ("mine", "base_rate")}
    scores = pd.concat([together({"mine": bounds}), make_scores().assign(dataset="pets")])
    text = size.make(scores, "pets", METHODS).text
    row = text.loc[METHODS["mine"]["label"]]
    assert row["Share of the error that is reported"] == "[0.100, ∞]"
    assert row["Reducible error"] == "[0.0000, 0.0200]"
    assert row["Brier score of the mean less that of the best method"] == "−0.0003"
    # Also where they are missing there is a row.
    assert text.loc[METHODS["base_rate"]["label"], "Reducible error"] == "—"
    assert len(size.make(make_scores(), "cifar10", methods | METHODS).text.columns) == 2


def test_registered_tables():
    suffixes = {n: load("epistemic_calibration.report.tables", n).SUFFIX for n in TABLES}
    assert suffixes.items() >= {"drivers": "_drivers", "paper": "", "summary": "_summary"}.items()
    # No table overwrites another.
    assert len({*suffixes.values()}) == len(suffixes)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_can_be_made_and_has_a_caption(name):
    make = load("epistemic_calibration.report.tables", name).make
    table = make(make_scores(), "cifar10", METHODS, tasks=TASKS, seeds=SEEDS, n_resamples=99)
    assert all(table.contents().values())
    assert (ROOT / "report" / f"{name}.rst").is_file()


def test_the_order_of_metrics_is_that_of_the_tables():
    names = list(METRICS)
    paper_blocks = paper.make(make_scores(names), "cifar10", METHODS).cells.index.unique(level=0)
    assert list(paper_blocks) == [
        "accuracy",
        "ece",
        "eece",
        "eece_calibration",
        "eece_dispersion",
        "tece_corrected",
        "tece_reported",
        "brier",
        "log_loss",
        "auroc",
    ]
    columns = summary.make(make_scores(names), "cifar10", METHODS).text.columns
    assert list(columns[:11]) == [
        "Rank",
        "Family",
        "Accuracy",
        "Brier score",
        "Log loss",
        "AUROC",
        "ECE",
        "EECE",
        "EECE: calibration part g²",
        "EECE: dispersion part W",
        "Mean epistemic uncertainty",
    ]
    columns = drivers.make(make_scores(names), "cifar10", METHODS).text.columns
    assert list(columns[2:]) == [
        "EECE",
        "EECE: calibration part g²",
        "EECE: dispersion part W",
        "Mean epistemic uncertainty",
        "Corrected TECE",
        "Corrected TECE, half the bins",
        "Corrected TECE, twice the bins",
        "TECE with the reported uncertainty, at least",
        "Noise floor of g²",
        "Mean miscalibration",
        "Epistemic dependence",
        "Cross-fitted lower bound of TECE",
        "Rejected: epistemic calibration",
        "Rejected: mean calibration",
        "Rejected: epistemic independence",
    ]


def test_a_new_metric_is_in_the_tables_that_it_names(monkeypatch):
    new = Metric("new", "New", 2, "lower", tables={"paper": 99, "summary": 99}, short_label="N.")
    monkeypatch.setitem(METRICS, "new", new)
    scores = make_scores([*PAPER_METRICS, "new"])
    assert "N." in paper.make(scores, "cifar10", METHODS).text.index.unique(level=0)
    table = summary.make(scores, "cifar10", METHODS)
    mean, sd = table.cells.loc["mine", ["new_mean", "new_sd"]]
    assert table.text.loc[METHODS["mine"]["label"], "New"] == f"{mean:.2f} ± {sd:.2f}"
    assert "New" not in drivers.make(scores, "cifar10", METHODS).text


def test_all_tasks_scores_are_means_over_seeds():
    scores = make_scores(["tece_corrected"])
    together = scores[scores["task"] == "cat"].assign(scope="all_tasks", task=np.nan)
    assert all_tasks_scores(scores, "cifar10").empty
    table = all_tasks_scores(pd.concat([scores, together]), "cifar10")
    expected = together[together["method"] == "mine"]["value"].to_numpy()
    assert table.loc["mine", "tece_corrected"] == pytest.approx(expected.sum() / 2)


def test_planning_loads_no_heavy_library():
    # The workflow loads every table for its SUFFIX, before any job runs.
    code = (
        "import sys\n"
        "from epistemic_calibration.registry import available, load\n"
        "package = 'epistemic_calibration.report.tables'\n"
        "for name in available(package):\n"
        "    load(package, name).SUFFIX\n"
        "print(sorted({'pandas', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "workflow_scripts")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
