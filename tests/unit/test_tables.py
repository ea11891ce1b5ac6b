import io
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from epistemic_calibration.scores import COLUMNS, read_scores
from epistemic_calibration.style import PAPER_METHODS
from epistemic_calibration.tables import (
    comparison_markdown,
    comparisons_table,
    dataset_scores,
    drivers_table,
    missing_cells,
    paper_comparison,
    paper_comparison_means,
    paper_table,
    read_published,
    summary_table,
    write_comparison,
    write_table,
)

PUBLISHED = Path(__file__).parents[2] / "resources" / "published_tables.csv"
METHODS = {
    "mine": {"label": "50% R&D_net {x}", "family": "active"},
    "random_forest": {"label": "Random Forest", "family": "active"},
    "centroids": {"label": "Centroids", "family": "illustrative"},
    "base_rate": {"label": "Base rate", "family": "control"},
}
TASKS = ["airplane", "cat", "truck"]
SEEDS = [0, 7]


def make_scores(metrics=("accuracy", "ece", "eece"), methods=METHODS, dataset="cifar10"):
    cells = itertools.product(SEEDS, methods, TASKS, metrics)
    rows = [(dataset, seed, method, task, metric) for seed, method, task, metric in cells]
    table = pd.DataFrame(rows, columns=["dataset", "seed", "method", "task", "metric"])
    values = np.random.default_rng(0).uniform(0.1, 0.9, len(table))
    return table.assign(value=values, n_bins=100, n_hypotheses=10, binning="kmeans")


def drop(scores, **where):
    matches = np.logical_and.reduce([scores[name] == value for name, value in where.items()])
    return scores[~matches]


def published_scores(offset=0.0, dataset="cifar10"):
    published = read_published(PUBLISHED)
    table = published[published["dataset"] == dataset].copy()
    table["value"] = table["value"].fillna(0.5) + offset
    return table.assign(seed=0)


def test_paper_table_has_the_layout_of_the_paper():
    scores = make_scores()
    table = paper_table(scores, "cifar10", METHODS).cells
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
    table = paper_table(make_scores(metrics), "cifar10", METHODS)
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
    table = paper_table(scores, "cifar10", METHODS)
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
    assert missing_cells(scores, "cifar10", METHODS).empty
    missing = missing_cells(
        scores, "cifar10", METHODS, tasks=[*TASKS, "ship"], seeds=[*SEEDS, 9], metrics=["ece"]
    )
    # One task more at three seeds, one seed more at three tasks, for four methods.
    assert len(missing) == 4 * (3 + 3)
    table = paper_table(scores, "cifar10", METHODS, tasks=[*TASKS, "ship"])
    assert table.cells.loc[("ece", "ship")].isna().all()


def test_a_score_that_is_not_finite_is_missing():
    scores = make_scores()
    scores.loc[(scores["method"] == "mine") & (scores["task"] == "cat"), "value"] = np.nan
    assert len(missing_cells(scores, "cifar10", METHODS)) == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: pd.concat([s, s.iloc[:1]]), "more than one value"),
        (lambda s: s.drop(columns="task"), r"lacks the columns \['task'\]"),
        (lambda s: s.assign(dataset="mnist"), "'cifar10' has no scores"),
        (lambda s: s.assign(method="unheard_of"), "unheard_of"),
    ],
)
def test_bad_scores_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataset_scores(change(make_scores()), "cifar10", METHODS)


def test_latex_escapes_labels_and_keeps_the_structure():
    metrics = ["accuracy", "ece", "eece", "brier"]
    latex = paper_table(make_scores(metrics), "cifar10", METHODS).to_latex()
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
    assert "0.00" in paper_table(scores, "cifar10", METHODS).text["Centroids"].to_list()
    text = paper_table(scores.assign(value=-0.1236), "cifar10", METHODS, decimals=3).text
    assert text.loc[("ECE", "cat"), "Centroids"] == "−0.124"


def test_two_methods_may_share_a_label():
    methods = {name: {**entry, "label": "same"} for name, entry in METHODS.items()}
    table = paper_table(make_scores(), "cifar10", methods)
    assert table.text.shape == (15, 4)
    assert table.to_latex().count(r"\rotatebox{75}{same}") == 4
    assert table.to_markdown().count("same") == 4


def test_summary_ranks_by_eece_and_leaves_controls_unranked():
    scores = make_scores(["accuracy", "ece", "eece", "diagnostic_r_hat"])
    eece = {"centroids": 0.3, "random_forest": 0.1, "base_rate": 0.0, "mine": 0.2}
    where = scores["metric"] == "eece"
    scores.loc[where, "value"] = scores.loc[where, "method"].map(eece)
    table = summary_table(scores, "cifar10", METHODS)
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
    table = summary_table(drop(make_scores(), method="mine"), "cifar10", METHODS)
    assert table.cells.index[-1] == "mine"
    assert table.cells.loc["mine", "n_tasks"] == 0
    assert table.text.loc[METHODS["mine"]["label"], "EECE"] == "—"
    assert "Partial: 18 scores missing" in table.notes[-1]


def test_summary_of_one_task_and_seed_has_no_spread():
    scores = make_scores().query("task == 'cat' and seed == 0")
    table = summary_table(scores, "cifar10", METHODS)
    assert table.cells["ece_sd"].isna().all()
    assert not table.text["ECE"].str.contains("±").any()


def test_summary_counts_rejections_instead_of_averaging_p_values():
    scores = make_scores(["eece", "p_epistemic_calibration"])
    tests = scores["metric"] == "p_epistemic_calibration"
    scores.loc[tests, "value"] = 1.0
    # With 12 tests of a seed, 0.05 / 12 = 0.00417 is the bound of the smallest p value.
    scores.loc[tests & (scores["method"] == "centroids"), "value"] = 0.004
    scores.loc[tests & (scores["method"] == "mine"), "value"] = 0.006
    cells = summary_table(scores, "cifar10", METHODS).cells
    counts = cells["p_epistemic_calibration_rejected"]
    assert counts["centroids"] == 6
    assert counts["mine"] == 0  # 0.006 * 9 = 0.054
    assert "p_epistemic_calibration_mean" not in cells


def test_drivers_say_so_when_no_test_can_reject():
    scores = make_scores(["eece", "p_epistemic_calibration"])
    enough = drivers_table(scores, "cifar10", METHODS, n_resamples=239)
    assert not any("Too few resamples" in note for note in enough.notes)
    few = drivers_table(scores, "cifar10", METHODS, n_resamples=238)
    # Twelve tests of a seed: the smallest p is 1/239 > 0.05/12.
    assert any("none of 12 tests can be rejected" in note for note in few.notes)
    assert any("n_resamples to 479 or more" in note for note in few.notes)


def test_comparisons_name_what_cannot_be_told_apart():
    scores = make_scores(["tece_corrected"])
    values = {"mine": 0.1, "centroids": 0.3, "random_forest": 0.2, "base_rate": 0.0}
    scores["value"] = scores["method"].map(values)
    names = list(METHODS)
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    alike = {"mine", "random_forest"}
    differences = pd.DataFrame(pairs, columns=["method", "other"]).assign(
        difference=0.1, p_holm=[0.06 if set(pair) == alike else 0.05 for pair in pairs]
    )
    table = comparisons_table(differences, scores, "cifar10", METHODS)
    order = ["base_rate", "mine", "random_forest", "centroids"]
    assert list(table.text.index) == [METHODS[name]["label"] for name in order]
    assert list(table.text["Cannot be told from"]) == [
        "—",
        METHODS["random_forest"]["label"],
        METHODS["mine"]["label"],
        "—",
    ]
    assert "by Holm over 6 pairs" in table.notes[0]


def test_write_table_keeps_full_precision(tmp_path):
    table = paper_table(make_scores(), "cifar10", METHODS)
    paths = write_table(table, tmp_path / "sub" / "cifar10", "0" * 64)
    assert [path.name for path in paths] == ["cifar10.csv", "cifar10.md", "cifar10.tex"]
    again = pd.read_csv(paths[0], index_col=["metric", "task"])
    pd.testing.assert_frame_equal(again, table.cells, check_exact=True, check_names=False)
    assert "| Acc." in paths[1].read_text(encoding="utf-8")
    assert sorted(tmp_path.joinpath("sub").iterdir()) == sorted(paths)


def test_markdown_rows_have_as_many_cells_as_the_heading():
    methods = {**METHODS, "mine": {"label": "a|b", "family": "active"}}
    lines = paper_table(make_scores(), "cifar10", methods).to_markdown().splitlines()
    table = [line.replace(r"\|", "") for line in lines if line.startswith("|")]
    assert len(table) == 2 + 15
    assert {line.count("|") for line in table} == {7}


def test_published_tables_are_complete():
    published = read_published(PUBLISHED)
    assert len(published) == 2 * 3 * 10 * 9
    assert set(published["method"]) == set(PAPER_METHODS)
    assert published.groupby("dataset")["task"].nunique().to_dict() == {"mnist": 10, "cifar10": 10}
    assert "automobile" in set(published["task"])
    assert published["value"].between(0, 1).sum() == 500
    unpublished = published[published["value"].isna()]
    assert set(unpublished["metric"]) == {"accuracy"}
    assert set(unpublished["dataset"]) == {"cifar10"}
    assert set(unpublished["method"]) == {
        "random_forest",
        "mc_dropout",
        "deep_ensemble",
        "laplace",
    }
    assert unpublished["note"].str.startswith("unpublished").all()


def test_misprinted_accuracies_stand_beside_the_methods_they_belong_to():
    published = read_published(PUBLISHED)
    cells = published.query("dataset == 'cifar10' and metric == 'accuracy'")
    # The printed row: .71 .71 .93 .93 .91 .91 .92 .92 .92
    airplane = cells[cells["task"] == "airplane"].set_index("method")
    assert airplane["value"].dropna().to_dict() == {
        "centroids": 0.71,
        "dropconnect": 0.93,
        "bayesian_logistic_regression": 0.91,
        "likelihood": 0.92,
        "eknn": 0.92,
    }
    # The row that tells likelihood and EK-NN apart: .64 .64 .92 .92 .90 .90 .90 .90 .91
    frog = cells[cells["task"] == "frog"].set_index("method")["value"]
    assert (frog["likelihood"], frog["eknn"]) == (0.90, 0.91)
    assert airplane["printed_method"][:5].to_dict() == {
        "centroids": "Centroids",
        "dropconnect": "Bayesian Log. Reg.",
        "bayesian_logistic_regression": "EK-NN",
        "likelihood": "MC-Dropout",
        "eknn": "Bayesian Deep",
    }
    assert airplane["note"][:5].str.startswith("misprint").all()
    # Nothing else is misprinted.
    assert published["note"].str.startswith("misprint").sum() == 50


def test_read_published_refuses_two_rows_of_a_cell(tmp_path):
    lines = PUBLISHED.read_text(encoding="utf-8").splitlines()
    path = tmp_path / "twice.csv"
    path.write_text("\n".join([*lines, lines[1]]), encoding="utf-8")
    with pytest.raises(ValueError, match="two rows"):
        read_published(path)
    path.write_text("dataset,task\nmnist,0\n", encoding="utf-8")
    with pytest.raises(ValueError, match="lacks the columns"):
        read_published(path)


def test_comparison_of_the_published_values_with_themselves():
    comparison = paper_comparison(published_scores(), read_published(PUBLISHED))
    assert len(comparison) == 270
    assert comparison["status"].value_counts().to_dict() == {"compared": 230, "unpublished": 40}
    compared = comparison[comparison["status"] == "compared"]
    assert (compared["difference"] == 0).all()
    assert compared["within_rounding"].all()
    unpublished = comparison[comparison["status"] == "unpublished"]
    assert unpublished["within_rounding"].isna().all()
    assert unpublished["difference"].isna().all()
    assert (unpublished["ours"] == 0.5).all()


@pytest.mark.parametrize(
    ("offset", "within"), [(0.005, True), (-0.005, True), (0.0051, False), (-0.0051, False)]
)
def test_comparison_knows_rounding(offset, within):
    comparison = paper_comparison(published_scores(offset), read_published(PUBLISHED))
    compared = comparison[comparison["status"] == "compared"]
    np.testing.assert_allclose(compared["difference"].astype(float), offset, atol=1e-12)
    assert (compared["within_rounding"] == within).all()


def test_comparison_averages_over_seeds_and_says_what_was_not_run():
    scores = pd.DataFrame(
        [("mnist", seed, "eknn", "3", "ece", value) for seed, value in [(0, 0.02), (1, 0.06)]],
        columns=["dataset", "seed", "method", "task", "metric", "value"],
    )
    comparison = paper_comparison(scores, read_published(PUBLISHED))
    assert set(comparison["dataset"]) == {"mnist"}
    (row,) = comparison[comparison["status"] == "compared"].to_dict("records")
    assert (row["task"], row["method"], row["metric"]) == ("3", "eknn", "ece")
    assert row["ours"] == pytest.approx(0.04)
    assert row["ours_sd"] == pytest.approx(0.04 / np.sqrt(2))
    assert row["n_seeds"] == 2
    assert row["difference"] == pytest.approx(0.04 - 0.03)
    assert (comparison["status"] == "not run").sum() == 269


def test_means_leave_out_the_published_chain_that_failed():
    comparison = paper_comparison(published_scores(), read_published(PUBLISHED))
    means = paper_comparison_means(comparison)
    rows = means[means["method"] == "bayesian_logistic_regression"]
    rows = rows.set_index(["metric", "tasks"])["published"]
    # EECE: nine times 0.00 and once 0.24; accuracy: 8.14 over nine tasks, and 0.69.
    assert rows["eece", "all"] == pytest.approx(0.024)
    assert rows["eece", "all but truck"] == 0.0
    assert rows["accuracy", "all"] == pytest.approx((8.14 + 0.69) / 10)
    assert rows["accuracy", "all but truck"] == pytest.approx(8.14 / 9)
    assert (means["tasks"] == "all but truck").sum() == 3


def test_means_are_over_common_tasks():
    scores = published_scores().query("task in ['cat', 'dog']")
    means = paper_comparison_means(paper_comparison(scores, read_published(PUBLISHED)))
    row = means.query("method == 'centroids' and metric == 'accuracy'").iloc[0]
    assert row["n_tasks"] == row["n_within_rounding"] == 2
    assert row["published"] == pytest.approx((0.67 + 0.68) / 2)
    forest = means.query("method == 'random_forest' and metric == 'accuracy'").iloc[0]
    assert forest["status"] == "unpublished"
    assert np.isnan(forest["published"])
    assert forest["ours"] == pytest.approx(0.5)


def test_comparison_markdown_speaks_of_the_misprint_and_marks_differences():
    published = read_published(PUBLISHED)
    scores = published_scores()
    changed = (scores["method"] == "eknn") & (scores["task"] == "cat") & (scores["metric"] == "ece")
    scores.loc[changed, "value"] += 0.02
    comparison = paper_comparison(scores, published)
    text = comparison_markdown(comparison, paper_comparison_means(comparison), METHODS)
    assert "misprinted" in text
    assert text.count("**0.030** (0.01)") == 1
    assert text.count("**") == 4  # the legend's and this one
    assert "229 of 230 cells agree within rounding; 40 are unpublished, 0 were not run." in text
    assert "bayesian_logistic_regression (all but truck)" in text
    mnist = paper_comparison(published_scores(dataset="mnist"), published)
    text = comparison_markdown(mnist, paper_comparison_means(mnist), METHODS)
    assert "misprint" not in text


def test_write_comparison(tmp_path):
    comparison = paper_comparison(published_scores(), read_published(PUBLISHED))
    paths = write_comparison(comparison, tmp_path / "paper_comparison", METHODS, "0" * 64)
    assert [path.name for path in paths] == [
        "paper_comparison.csv",
        "paper_comparison_means.csv",
        "paper_comparison.md",
    ]
    again = pd.read_csv(io.StringIO(paths[0].read_text(encoding="utf-8")))
    assert len(again) == 270
    other = paper_comparison(published_scores().assign(dataset="digits"), read_published(PUBLISHED))
    write_comparison(other, tmp_path / "none", METHODS, "0" * 64)
    assert "none of the data sets" in (tmp_path / "none.md").read_text(encoding="utf-8")


def test_estimates_of_all_tasks_stand_in_no_mean_over_tasks():
    scores = make_scores(metrics=("eece", "tece_corrected"))
    together = make_scores(metrics=("tece_corrected_low", "tece_corrected_high"))
    together = together[together["task"] == "cat"].assign(task="(all)")
    both = pd.concat([scores, together.assign(value=[0.25, 0.75] * (len(together) // 2))])
    assert len(dataset_scores(both, "cifar10", METHODS)) == len(scores)
    table = drivers_table(both, "cifar10", METHODS)
    expected = scores.query("metric == 'tece_corrected'").groupby("method")["value"].mean()
    cells = table.cells.loc["mine"]
    assert cells["tece_corrected_mean"] == pytest.approx(expected["mine"])
    assert cells["tece_corrected_low_all_tasks"] == 0.25
    label = METHODS["mine"]["label"]
    text = table.text.loc[label, "Corrected TECE"]
    assert text == f"{expected['mine']:.4f} [0.2500, 0.7500]"


def test_names_that_read_as_missing_values_are_names(tmp_path):
    path = tmp_path / "digits" / "seed0" / "scores" / "NA.csv"
    path.parent.mkdir(parents=True)
    rows = [
        ("digits", 0, "NA", task, metric, value, None, 3, None, "abc")
        for task in ("None", "nan", "1")
        for metric, value in (("ece", 0.1), ("auroc", np.nan))
    ]
    pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(path, index=False)
    table = read_scores([path], {"digits/seed0/NA": "abc"})
    assert list(table["task"]) == ["None", "None", "nan", "nan", "1", "1"]
    assert set(table["method"]) == {"NA"}
    assert table["value"].isna().tolist() == [False, True] * 3
