"""The tables of a data set: what is in them, in which order, and as which text."""

import io
import itertools
import re

import numpy as np
import pandas as pd
import pytest
from page_data import TABLE_METHODS as METHODS
from page_data import together
from scipy.stats import chi2, norm, t
from shipped import ROOT

from epistemic_calibration.registry import load
from epistemic_calibration.report import TABLES
from epistemic_calibration.report._doubts import doubts
from epistemic_calibration.report._groups import letters
from epistemic_calibration.report.results import (
    DatasetResults,
    all_tasks_scores,
)
from epistemic_calibration.report.tables import _table, by_eece, drivers, paper, size, summary
from epistemic_calibration.report.tables._table import WARNING
from epistemic_calibration.scores import METRICS, TABLE_METRICS, Metric

TASKS = ["airplane", "cat", "truck"]
SEEDS = [0, 7]
PAPER_METRICS = ["accuracy", "ece", "eece"]


def make_scores(metrics=PAPER_METRICS):
    cells = itertools.product(["cifar10"], SEEDS, METHODS, TASKS, metrics)
    table = pd.DataFrame(cells, columns=["dataset", "seed", "method", "task", "metric"])
    values = np.random.default_rng(0).uniform(0.1, 0.9, len(table))
    return table.assign(scope="task", value=values, n_bins=100, n_hypotheses=10, binning="kmeans")


def made(module, scores, dataset, methods, **options):
    return module.make(DatasetResults(scores, dataset, methods, **options))


def drop(scores, **where):
    matches = np.logical_and.reduce([scores[name] == value for name, value in where.items()])
    return scores[~matches]


def test_paper_table_has_the_layout_of_the_paper():
    scores = make_scores()
    table = made(paper, scores, "cifar10", METHODS).cells
    assert list(table.columns) == ["centroids", "random_forest", "mine", "base_rate"]
    rows = [*TASKS, "(mean)", "(sd)"]
    assert list(table.index) == list(itertools.product(["accuracy", "ece", "eece"], rows))
    cell = scores.query("method == 'mine' and metric == 'ece'")["value"].to_numpy()
    by_task = cell.reshape(len(SEEDS), len(TASKS))
    np.testing.assert_allclose(table.loc["ece", "mine"][TASKS], by_task.sum(axis=0) / 2)
    assert table.loc[("ece", "(mean)"), "mine"] == pytest.approx(cell.sum() / 6)
    deviation = np.sqrt(((cell - cell.mean()) ** 2).sum() / 5)
    assert table.loc[("ece", "(sd)"), "mine"] == pytest.approx(deviation)


@pytest.mark.fault
def test_missing_cells_are_shown_and_named():
    scores = drop(make_scores(), method="mine")
    scores = drop(scores, method="centroids", task="cat")
    scores = drop(scores, method="random_forest", task="truck", seed=7, metric="ece")
    table = made(paper, scores, "cifar10", METHODS)
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
    # In the order of the columns.
    assert note.index("Centroids") < note.index("Forest") < note.index(METHODS["mine"]["label"])
    assert note in table.to_markdown()
    assert "---" in table.to_latex()


@pytest.mark.fault
def test_missing_cells_counts_what_was_expected():
    scores = make_scores()
    assert DatasetResults(scores, "cifar10", METHODS).missing(PAPER_METRICS).empty
    seeds = {name: [*SEEDS, 9] for name in METHODS}
    missing = DatasetResults(
        scores, "cifar10", METHODS, tasks=[*TASKS, "ship"], seeds=seeds
    ).missing(["ece"])
    # One task more at three seeds, one seed more at three tasks, for four methods.
    assert len(missing) == 4 * (3 + 3)
    table = made(paper, scores, "cifar10", METHODS, tasks=[*TASKS, "ship"])
    assert table.cells.loc[("ece", "ship")].isna().all()
    # What is not finite is missing.
    scores.loc[(scores["method"] == "mine") & (scores["task"] == "cat"), "value"] = np.nan
    assert len(DatasetResults(scores, "cifar10", METHODS).missing(PAPER_METRICS)) == 6


@pytest.mark.fault
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
        DatasetResults(change(make_scores()), "cifar10", METHODS)


def test_by_eece_ranks_by_eece_and_leaves_controls_unranked():
    scores = make_scores(["accuracy", "ece", "eece", "diagnostic_r_hat"])
    eece = {"centroids": 0.3, "random_forest": 0.1, "base_rate": 0.0, "mine": 0.2}
    where = scores["metric"] == "eece"
    scores.loc[where, "value"] = scores.loc[where, "method"].map(eece)
    table = made(by_eece, scores, "cifar10", METHODS)
    assert list(table.cells.index) == ["base_rate", "random_forest", "mine", "centroids"]
    ranks = table.cells["rank_eece"]
    assert pd.isna(ranks["base_rate"])
    assert list(ranks[1:]) == [1, 2, 3]
    assert list(table.text["Rank"]) == ["—", "1", "2", "3"]
    values = scores.query("method == 'mine' and metric == 'ece'")["value"].to_numpy()
    assert table.cells.loc["mine", "ece_mean"] == pytest.approx(values.mean())
    assert table.cells.loc["mine", "ece_sd"] == pytest.approx(values.std(ddof=1))
    # Those of the table, and no others: the rest is in the tidy scores.
    assert not any("r_hat" in name for name in table.cells)


def test_drivers_count_rejections_instead_of_averaging_p_values():
    name = "p_epistemic_calibration"
    scores = make_scores(["eece", name])
    # With 12 tests of a seed, 0.05 / 12 = 0.00417 is the bound of the smallest p value; 0.006 · 9
    # = 0.054 is that of the next.
    p_values = {"centroids": 0.004, "mine": 0.006, "random_forest": 1.0, "base_rate": 1.0}
    tests = scores["metric"] == name
    scores.loc[tests, "value"] = scores.loc[tests, "method"].map(p_values)
    table = made(drivers, scores, "cifar10", METHODS, n_resamples=239)
    assert table.cells[f"{name}_rejected"][["centroids", "mine"]].to_list() == [6, 0]
    assert f"{name}_mean" not in table.cells
    assert not any("can be rejected" in note for note in table.notes)
    # Where the smallest p is 1/239 > 0.05/12, nothing can be rejected.
    scores = make_scores(["eece", name])
    few = made(drivers, scores, "cifar10", METHODS, n_resamples=238)
    (note,) = (note for note in few.notes if "can be rejected" in note)
    assert note.startswith(f"{WARNING} — under Rejected: with 238 resamples none of 12 tests")
    assert "n_resamples to 239 or more" in note
    assert set(few.text["Rejected: epistemic calibration"]) == {"—"}
    assert few.cells[f"{name}_rejected"].isna().all()


def test_drivers_warn_where_bins_hide_error():
    scores = make_scores(["eece", "tece_corrected", "tece_cross_fitted_low"])
    scores.loc[scores["metric"] == "tece_cross_fitted_low", "value"] = 0.02
    limits = {"random_forest": 0.03, "mine": 0.01}
    both = pd.concat([scores, together({n: {"tece_corrected_high": x} for n, x in limits.items()})])
    notes = made(drivers, both, "cifar10", METHODS).notes
    (note,) = (note for note in notes if "bins hide" in note)
    assert note.startswith(f"{WARNING} the bins hide error of {METHODS['mine']['label']}: ")


@pytest.mark.fault
def test_names_cannot_break_a_row():
    nasty = "a\nb|c [x] 5% R&D #1 $x_1 <i>"
    methods = {"centroids": {**METHODS["centroids"], "label": nasty}}
    scores = make_scores()
    scores = scores[scores["method"] == "centroids"]
    table = made(paper, scores, "cifar10", methods)
    task = str(table.text.index[0][1])
    table = table.with_task_labels({task: f"[cat\r\n*]{nasty}"}).with_notes(f"Failed: {nasty}")
    lines = table.to_markdown().splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 2 + len(table.text)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}
    assert not any(re.search(r"(?<!\\)<i>", row) for row in rows)
    assert lines[-1].startswith("Failed: a b|c")
    assert r"5\% R\&D \#1 \$x\_1 \textless{}i" in table.to_latex()
    body = [line for line in table.to_latex().splitlines() if line.endswith(r"\\")]
    assert all(len(re.findall(r"(?<!\\)&", line)) == 2 for line in body)
    assert len(table.to_terminal().splitlines()) == 2 + 2 + len(table.text)


def test_estimates_of_all_tasks_stand_in_no_mean_over_tasks():
    scores = make_scores(metrics=("eece", "tece_corrected"))
    ends = ("tece_corrected", "tece_corrected_low", "tece_corrected_high")
    of_all = make_scores(metrics=ends).query("task == 'cat' and seed == 0")
    of_all = of_all.assign(scope="all_tasks", task=np.nan)
    both = pd.concat([scores, of_all.assign(value=[0.5, 0.25, 0.75] * (len(of_all) // 3))])
    assert len(DatasetResults(both, "cifar10", METHODS).of_tasks) == len(scores)
    table = made(drivers, both, "cifar10", METHODS)
    expected = scores.query("metric == 'tece_corrected'").groupby("method")["value"].mean()
    cells = table.cells.loc["mine"]
    assert cells["tece_corrected_mean"] == pytest.approx(expected["mine"])
    assert cells["tece_corrected_low_all_tasks"] == 0.25
    label = METHODS["mine"]["label"]
    text = table.text.loc[label, "Corrected TECE"]
    # Value and limits are of one estimate.
    assert text == "0.5000 [0.2500, 0.7500]"


def test_a_block_has_its_name_on_its_first_row_and_parts_of_three_in_latex():
    index = pd.MultiIndex.from_product([list("ABCD"), ["x", "y"]], names=["Metric", "Task"])
    text = pd.DataFrame({"Method": [f"{k}" for k in range(8)]}, index=index)
    table = _table.Table(text, text, "What it shows")
    rows = [line.split("|")[1:-1] for line in table.to_markdown().splitlines() if "|" in line]
    named = [[cell.strip() for cell in row[:2]] for row in rows[2:]]
    assert named == [[m if x == "x" else "", x] for m in "ABCD" for x in "xy"]
    latex = table.to_latex("mine")
    captions = re.findall(r"\\caption\{(.*)\}", latex)
    assert captions == ["What it shows.", "What it shows (continued)."]
    assert latex.count(r"\begin{tabular}{llr}") == latex.count(r"\end{tabular}") == 2
    assert [latex.count(rf"\{rule}rule") for rule in ("top", "mid", "bottom")] == [2, 4, 2]
    assert re.findall(r"\\label\{(.*)\}", latex) == ["tab:mine", "tab:mine-2"]


def test_contents_keep_full_precision():
    table = made(paper, make_scores(), "cifar10", METHODS)
    contents = table.contents()
    assert list(contents) == [".csv", ".md", ".tex"]
    again = pd.read_csv(io.StringIO(contents[".csv"]), index_col=["metric", "task"])
    pd.testing.assert_frame_equal(again, table.cells, check_exact=True, check_names=False)
    assert (contents[".md"], contents[".tex"]) == (table.to_markdown(), table.to_latex())


def answers(values):
    """Return scores of the corrected TECE of each method, with limits a tenth beside it."""
    of_tasks = make_scores(["accuracy", "eece", "tece_corrected", "tece_reported"])
    where = of_tasks["metric"] == "tece_corrected"
    of_tasks.loc[where, "value"] = of_tasks.loc[where, "method"].map(values)
    factors = {"": 1, "_low": 0.9, "_high": 1.1}
    ends = {
        m: {f"tece_corrected{end}": x * v for end, x in factors.items()} for m, v in values.items()
    }
    both = [together(ends).assign(seed=seed) for seed in SEEDS]
    return pd.concat([of_tasks, *both])


TECE = {"mine": 0.0004, "random_forest": 0.0009, "centroids": 0.01, "base_rate": 0.0}


def test_the_summary_has_the_answers_by_family_and_calibration_error():
    pairs = pd.DataFrame(itertools.combinations(TECE, 2), columns=["method", "other"])
    pairs = pairs.assign(p_holm=[0.06, *[0.01] * 5], p_holm_fixed=0.01)
    bounds = {"reducible_error_at_least": 0.0, "reducible_error_at_most": 0.09}
    bounds |= {"reported_share_at_least": 0.025, "reported_share_at_most": np.inf}
    scores = pd.concat([answers(TECE), together({"mine": bounds})])
    methods = METHODS | {"mine": {"label": "A name that is much too long", "family": "active"}}
    table = made(summary, scores, "cifar10", methods, differences=pairs)
    assert list(table.cells.index) == ["mine", "random_forest", "centroids", "base_rate"]
    assert list(table.text.index[2:]) == ["Centroids (illustrative)", "Base rate (control)"]
    assert list(table.text["Group"]) == ["a", "a", "b", "—"]
    # 100 √0.0009 = 3, and √0.9, √1.1 = 0.949, 1.049 times that.
    assert table.text["Calibration error, points"].iloc[1] == "3.0 [2.8, 3.1]"
    assert table.text["Share reported, %"].to_list() == ["2.5 or more", "—", "—", "—"]
    row = table.cells.loc["mine"]
    assert row[["points", "error_points_at_most"]].to_list() == pytest.approx([2, 30])
    assert (row["reported_share_at_least"], row["group_of_these_trainings"]) == (0.025, "a")
    text = table.contents()[".txt"]
    assert max(map(len, text.splitlines())) <= 100
    assert "A name that is much too …" in text and "3.0 [2.8, 3.1]" in text


def test_letters_are_shared_by_all_that_do_not_differ_and_by_no_others():
    rng = np.random.default_rng(0)
    for _ in range(50):
        names = list("stuvwxyz")
        pairs = list(itertools.combinations(names, 2))
        different = {pair for pair in pairs if rng.uniform() < rng.choice([0.1, 0.5, 0.9])}
        found = letters(names, different)
        for pair in pairs:
            assert bool(set(found[pair[0]]) & set(found[pair[1]])) == (pair not in different)
        assert found["s"].startswith("a")
        # No letter says what another one says.
        members = [
            {n for n in names if letter in found[n]} for letter in set("".join(found.values()))
        ]
        assert not any(one < other for one in members for other in members)


@pytest.mark.fault
def test_what_so_few_images_cannot_tell_is_not_shown():
    metrics = ["accuracy", "eece", "eece_dispersion", "epistemic_dependence", "n_samples"]
    scores = make_scores(metrics)
    for n_samples, shown in ((999, False), (1000, True)):
        scores.loc[scores["metric"] == "n_samples", "value"] = n_samples
        table = made(drivers, scores, "cifar10", METHODS)
        assert table.cells["epistemic_dependence_mean"].notna().all() == shown
        # They are not missing for want of a run.
        assert not any("Partial" in note for note in table.notes)
        block = made(paper, scores, "cifar10", METHODS).cells.loc["eece_dispersion"]
        assert block.notna().all(axis=None) == shown
        found = list(doubts(DatasetResults(scores, "cifar10", METHODS)))
        assert any("999 test images in 100 bins" in doubt for doubt in found) != shown


@pytest.mark.fault
def test_few_positives_and_methods_at_the_base_rate_are_named():
    scores = make_scores(["brier", "n_samples", "n_positive"]).set_index("metric")
    scores.loc["n_samples", "value"] = 200.0
    scores.loc["n_positive", "value"] = 100.0
    scores.loc["brier", "value"] = 0.2
    scores = scores.reset_index()
    assert list(doubts(DatasetResults(scores, "cifar10", METHODS))) == []
    few = (scores["metric"] == "n_positive") & (scores["task"] == "cat")
    scores.loc[few, "value"] = 189.0
    scores.loc[(scores["metric"] == "brier") & (scores["method"] == "base_rate"), "value"] = 0.25
    found = list(doubts(DatasetResults(scores, "cifar10", METHODS)))
    assert found[0].startswith("Few images of a class: 11 of 200 test images in task cat")
    # 0.2 > 0.055 * 0.945 in that task; of a control it is no news.
    assert sorted(found[1:]) == sorted(
        f"{METHODS[name]['label']}: no better than the base rate (Brier score of a constant) "
        f"in 1 of 3 tasks"
        for name in ("mine", "random_forest", "centroids")
    )


@pytest.mark.parametrize("name", TABLES)
def test_every_table_can_be_made_and_its_latex_fits_a_page(name):
    estimates = {"reducible_error": 0.1, "reported_share": np.inf, "size_error": -np.inf}
    ends = {f"{n}_{end}": v for n, v in estimates.items() for end in ("low", "high")}
    both = together({m: {**estimates, **ends} for m in METHODS})
    module = load("epistemic_calibration.report.tables", name)
    options = {"tasks": TASKS, "seeds": dict.fromkeys(METHODS, SEEDS), "n_resamples": 99}
    assert all(made(module, make_scores(), "cifar10", METHODS, **options).contents().values())
    scores = pd.concat([make_scores(list(METRICS)), both.drop_duplicates(["method", "metric"])])
    table = made(module, scores, "cifar10", METHODS)
    latex = table.with_notes("Δ ≥ √2").contents("cifar10_x")[".tex"]
    assert latex.isascii(), {c for c in latex if not c.isascii()}
    assert latex.startswith("% In the preamble: \\usepackage{booktabs,graphicx}\n")
    assert r"\label{tab:cifar10_x}" in latex
    assert latex.count(r"\resizebox{\ifdim\width>\linewidth") == latex.count(r"\begin{table}")
    plain = latex.replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")
    assert (ROOT / "report" / f"{name}.rst").is_file()


def test_the_size_table_orders_by_how_far_the_share_is_from_1():
    shares = {"mine": (0.5, 0.4, 0.7), "centroids": (np.nan, 1.5, np.inf), "base_rate": (0, 0, 0)}
    names = ("reported_share", "reported_share_low", "reported_share_high")
    scores = together({m: dict(zip(names, v, strict=True)) for m, v in shares.items()}, "pets")
    p_values = pd.DataFrame(
        [("mine", task, p) for task, p in zip("0123", (0.001, 0.5, 0.5, 0.5), strict=True)],
        columns=["method", "task", "value"],
    ).assign(dataset="pets", seed=0, scope="task", metric="p_second_order")
    methods = {name: METHODS[name] for name in shares}
    table = made(size, pd.concat([scores, p_values]), "pets", methods)
    shown = table.text["Share of the error that is reported"]
    assert list(shown.items()) == [
        (METHODS["mine"]["label"], "0.500 [0.400, 0.700]"),
        (METHODS["base_rate"]["label"], "0.000 [0.000, 0.000]"),
        (METHODS["centroids"]["label"], "— [1.500, ∞]"),
    ]
    rejected = table.text["Rejected: p* is distributed as the hypotheses"]
    assert list(rejected) == ["1/4", "—", "—"]
    assert table.cells.loc["mine", "reported_share_low"] == 0.4


def test_the_size_table_of_one_label_per_image_shows_bounds():
    bounds = {"reported_share_at_least": 0.1, "reported_share_at_most": np.inf}
    bounds |= {"reducible_error_at_least": 0.0, "reducible_error_at_most": 0.02}
    bounds |= {"brier_of_mean": 0.015, "brier_above_best": -0.0003}
    scores = pd.concat([together({"mine": bounds}), make_scores()])
    text = made(size, scores, "cifar10", METHODS).text
    row = text.loc[METHODS["mine"]["label"]]
    assert row["Share of the error that is reported"] == "[0.100, ∞]"
    assert row["Reducible error"] == "[0.0000, 0.0200]"
    assert row["Brier score of the mean less that of the best method"] == "−0.0003"
    # Also where they are missing there is a row.
    assert text.loc[METHODS["base_rate"]["label"], "Reducible error"] == "—"


def test_a_new_metric_is_in_the_tables_that_name_it(monkeypatch):
    monkeypatch.setitem(METRICS, "new", Metric("new", "New", 2, short_label="N."))
    for name in ("paper", "by_eece"):
        monkeypatch.setitem(TABLE_METRICS, name, (*TABLE_METRICS[name], "new"))
    scores = make_scores([*PAPER_METRICS, "new"])
    assert "N." in made(paper, scores, "cifar10", METHODS).text.index.unique(level=0)
    table = made(by_eece, scores, "cifar10", METHODS)
    mean, sd = table.cells.loc["mine", ["new_mean", "new_sd"]]
    assert table.text.loc[METHODS["mine"]["label"], "New"] == f"{mean:.2f} ± {sd:.2f}"
    assert "New" not in made(drivers, scores, "cifar10", METHODS).text


@pytest.mark.parametrize("level", [0.95, 0.9])
def test_limits_of_several_seeds_are_over_trainings(level):
    n, half, deviations = 4, 0.01, np.array([-0.03, -0.01, 0.01, 0.03])
    runs = [
        together({"mine": {"x": 0.2 + d, "x_low": 0.2 + d - half, "x_high": 0.2 + d + 2 * half}})
        for d in deviations
    ]
    runs = pd.concat(run.assign(seed=seed) for seed, run in enumerate(runs))
    one = together({"alone": {"x": 0.5, "x_low": 0.1, "x_high": 0.6}})
    told = together({name: {"confidence_level": level} for name in ("mine", "alone")})
    found = all_tasks_scores(pd.concat([runs, one, told]), "cifar10")
    assert list(found.loc["alone", ["x", "x_low", "x_high"]]) == [0.5, 0.1, 0.6]
    assert found.loc["mine", "x"] == pytest.approx(0.2)
    z, of_mean = norm.ppf(0.5 + level / 2), deviations.var(ddof=1) / n
    upper = of_mean * (n - 1) / chi2.ppf(0.25, n - 1)
    for name, sign, of_one in (("x_low", -1, half), ("x_high", 1, 2 * half)):
        noise = (of_one / z) ** 2
        freedom = (noise + upper) ** 2 / (upper**2 / (n - 1))
        expected = 0.2 + sign * t.ppf(0.5 + level / 2, freedom) * np.sqrt(noise + of_mean)
        assert found.loc["mine", name] == pytest.approx(expected)


def test_ends_over_trainings_stay_in_range_and_may_be_infinite():
    share = {"reported_share_at_least": [0.1, 0.3], "reported_share_at_most": [2.0, np.inf]}
    tece = {"tece_corrected": [1e-4, 9e-4], "tece_corrected_low": [0, 1e-4]}
    runs = [
        together({"mine": {name: values[seed] for name, values in (share | tece).items()}})
        for seed in range(2)
    ]
    found = all_tasks_scores(pd.concat(r.assign(seed=s) for s, r in enumerate(runs)), "cifar10")
    assert found.loc["mine"].to_dict() == pytest.approx(
        {
            # 0.2 less 12.7 · 0.1 is below 0, and so is what is left of TECE.
            "reported_share_at_least": 0,
            "reported_share_at_most": np.inf,
            "tece_corrected": 5e-4,
            "tece_corrected_low": 0,
        }
    )


def test_tables_say_whether_they_are_of_methods_or_of_trainings():
    everything = answers(TECE)
    differences = pd.DataFrame(itertools.combinations(TECE, 2), columns=["method", "other"])
    differences = differences.assign(p_holm=1.0, p_holm_fixed=0.01)
    mixed = drop(everything, method="centroids", seed=7)
    seeds = dict.fromkeys(METHODS, SEEDS)
    for scores, options, size_text, begins in (
        (everything, {"differences": differences}, "2 trainings", ["Of methods: "]),
        (everything, {"one_encoder": True}, "2 trainings", ["Of methods: ", "All trainings"]),
        (everything.query("seed == 0"), {}, "1 training", ["Of these"]),
        # A method that has one seed lacks none, unless it should have had more.
        (mixed, {}, "1 to 2 trainings", ["Of methods: ", "Of one training"]),
        (
            mixed,
            {"seeds": seeds},
            "1 to 2 trainings",
            ["Of methods: ", "Of one training", "Partial: "],
        ),
    ):
        table = made(summary, scores, "cifar10", METHODS, **options)
        assert table.caption.endswith(f"means over 3 tasks and {size_text} of each method")
        kinds = ("Of methods: ", "All trainings", "Of these", "Of one training", "Partial: ")
        assert [k for k in kinds if any(n.startswith(k) for n in table.notes)] == begins
    assert "Partial: 12 scores missing" in table.notes[-1]
    several = made(summary, everything, "cifar10", METHODS, differences=differences)
    assert set(several.cells["group"]) == {"a", ""}
    assert set(several.cells["group_of_these_trainings"]) == {*"abc", ""}
    assert several.cells["tece_corrected_sd_over_trainings"].iloc[0] == pytest.approx(0)


@pytest.mark.fault
def test_a_label_is_neither_a_formula_nor_a_link_nor_belongs_to_the_row_before():
    cells = pd.DataFrame({"a": ["=HYPERLINK(1)", "-1", "0.1 [0.0, 0.2]"]}, index=["@x", "y", "[z"])
    made = _table.Table(cells, cells.rename_axis("Method"), "A table").contents("t")
    assert pd.read_csv(io.StringIO(made[".csv"]), index_col=0).iloc[:, 0].tolist() == [
        "'=HYPERLINK(1)",
        "-1",
        "0.1 [0.0, 0.2]",
    ]
    assert r"{[}z & 0.1 [0.0, 0.2] \\" in made[".tex"]
    assert _table._markdown("[x](javascript:1)") == r"[x\](javascript:1)"
