"""The published tables, and the comparison with them."""

import numpy as np
import pandas as pd
import pytest
from page_data import TABLE_METHODS
from shipped import ROOT

from epistemic_calibration.paper.published import (
    comparison_markdown,
    paper_comparison,
    paper_comparison_means,
    read_published,
)
from epistemic_calibration.report.style import PAPER_METHODS

TABLE = ROOT / "resources" / "published_tables.csv"
PUBLISHED = read_published(TABLE)


def published_scores(offset=0.0, dataset="cifar10"):
    table = PUBLISHED[PUBLISHED["dataset"] == dataset].copy()
    table["value"] = table["value"].fillna(0.5) + offset
    return table.assign(seed=0, scope="task")


def test_published_tables_are_complete():
    assert len(PUBLISHED) == 2 * 3 * 10 * 9
    assert set(PUBLISHED["method"]) == set(PAPER_METHODS)
    assert PUBLISHED.groupby("dataset")["task"].nunique().to_dict() == {"mnist": 10, "cifar10": 10}
    assert "automobile" in set(PUBLISHED["task"])
    assert PUBLISHED["value"].between(0, 1).sum() == 500
    unpublished = PUBLISHED[PUBLISHED["value"].isna()]
    assert set(zip(unpublished["dataset"], unpublished["metric"], strict=True)) == {
        ("cifar10", "accuracy")
    }
    unknown = {"random_forest", "mc_dropout", "deep_ensemble", "laplace"}
    assert set(unpublished["method"]) == unknown
    assert unpublished["note"].str.startswith("unpublished").all()


def test_misprinted_accuracies_stand_beside_the_methods_they_belong_to():
    cells = PUBLISHED.query("dataset == 'cifar10' and metric == 'accuracy'")
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
    assert airplane["printed_method"]["likelihood"] == "MC-Dropout"
    assert airplane["note"][:5].str.startswith("misprint").all()
    # Nothing else is misprinted.
    assert PUBLISHED["note"].str.startswith("misprint").sum() == 50


@pytest.mark.fault
def test_read_published_refuses_two_rows_of_a_cell(tmp_path):
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    path = tmp_path / "twice.csv"
    path.write_text("\n".join([*lines, lines[1]]), encoding="utf-8")
    with pytest.raises(ValueError, match="two rows"):
        read_published(path)
    path.write_text("dataset,task\nmnist,0\n", encoding="utf-8")
    with pytest.raises(ValueError, match="lacks the columns"):
        read_published(path)


@pytest.mark.parametrize(
    ("offset", "within"),
    [(0.0, True), (0.005, True), (-0.005, True), (0.0051, False), (-0.0051, False)],
)
def test_comparison_knows_rounding(offset, within):
    comparison = paper_comparison(published_scores(offset), PUBLISHED)
    compared = comparison[comparison["status"] == "compared"]
    np.testing.assert_allclose(compared["difference"].astype(float), offset, atol=1e-12)
    assert (compared["within_rounding"] == within).all()


def test_comparison_averages_over_seeds_and_says_what_was_not_run():
    runs = [(0, "task", 0.02), (1, "task", 0.06), (0, "all_tasks", 0.9)]
    scores = pd.DataFrame(runs, columns=["seed", "scope", "value"]).assign(
        dataset="mnist", method="eknn", task="3", metric="ece"
    )
    comparison = paper_comparison(scores, PUBLISHED)
    assert set(comparison["dataset"]) == {"mnist"}
    (row,) = comparison[comparison["status"] == "compared"].to_dict("records")
    assert (row["task"], row["method"], row["metric"]) == ("3", "eknn", "ece")
    assert row["ours"] == pytest.approx(0.04)
    assert row["ours_sd"] == pytest.approx(0.04 / np.sqrt(2))
    assert row["n_seeds"] == 2
    assert row["difference"] == pytest.approx(0.04 - 0.03)
    assert (comparison["status"] == "not run").sum() == 269


def test_means_leave_out_the_published_chain_that_failed():
    comparison = paper_comparison(published_scores(), PUBLISHED)
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
    means = paper_comparison_means(paper_comparison(scores, PUBLISHED))
    row = means.query("method == 'centroids' and metric == 'accuracy'").iloc[0]
    assert row["n_tasks"] == row["n_within_rounding"] == 2
    assert row["published"] == pytest.approx((0.67 + 0.68) / 2)
    forest = means.query("method == 'random_forest' and metric == 'accuracy'").iloc[0]
    assert forest["status"] == "unpublished"
    assert np.isnan(forest["published"])
    assert forest["ours"] == pytest.approx(0.5)


def test_comparison_markdown_speaks_of_the_misprint_and_marks_differences():
    scores = published_scores()
    changed = (scores["method"] == "eknn") & (scores["task"] == "cat") & (scores["metric"] == "ece")
    scores.loc[changed, "value"] += 0.02
    comparison = paper_comparison(scores, PUBLISHED)
    text = comparison_markdown(comparison, paper_comparison_means(comparison), TABLE_METHODS)
    assert "misprinted" in text
    assert text.count("**0.030** (0.01)") == 1
    assert text.count("**") == 4  # the legend's and this one
    assert "229 of 230 cells agree within rounding; 40 are unpublished, 0 were not run." in text
    assert "bayesian_logistic_regression (all but truck)" in text
