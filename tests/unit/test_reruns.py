"""What a change makes run again, told by fingerprints alone: no job runs here."""

import copy
import inspect
import itertools

import pytest
from shipped import ROOT, SHIPPED

from epistemic_calibration.workflow import sources
from epistemic_calibration.workflow.config import resolve_config
from epistemic_calibration.workflow.plan import Plan, stages
from epistemic_calibration.workflow.sources import SCRIPTS

PACKAGE = SCRIPTS / "epistemic_calibration"

SMALL = {
    **SHIPPED,
    "seeds": [0],
    "benchmark": ["digits"],
    "datasets": {
        "digits": {k: v for k, v in SHIPPED["datasets"]["digits"].items() if k != "seeds"}
    },
    "methods": {name: SHIPPED["methods"][name] for name in ("random_forest", "eknn")},
    "controls": {"base_rate": {}},
    "toy": {
        "seeds": [0],
        "dataset": SHIPPED["toy"]["dataset"],
        "eece_vs_noise": {**SHIPPED["toy"]["eece_vs_noise"], "methods": ["random_forest"]},
    },
}

#: Of one method, of all methods of a data set, and of everything.
OF_SCORES = {"bounds", "comparisons", "diagnostics", "figures", "tables", "page"}
OF_SCORES |= {"claims", "paper_comparison"}
OF_METHODS = OF_SCORES | {"sensitivity_figure"}
PREPARED = {"images", "encoder", "latents", "neighbors"}
#: Of other data than the digits.
LEFT_OUT = {"label_counts", "predictions"}


def plan(change=lambda config: None):
    config = copy.deepcopy(SMALL)
    config = change(config) or config
    return Plan(resolve_config(config), ROOT)


def fingerprints(planned):
    """Return the fingerprints of all jobs of a run, by their names."""
    values = {
        "dataset": ["digits"],
        "seed": planned.config.seeds,
        "method": list(planned.entries),
        "experiment": list(planned.config.toy),
        "page": ["digits", "benchmark"],
    }
    found = {}
    for name in stages().keys() - LEFT_OUT:
        keys = [key for key in inspect.signature(stages()[name].needs).parameters if key != "plan"]
        for chosen in itertools.product(*(values[key] for key in keys)):
            where = dict(zip(keys, chosen, strict=True))
            if name != "toy_data" or where["method"] in planned.toy_runs(where["experiment"]):
                found |= planned.made_by(name, **where)
    return found


def changed(before, after):
    """Return the jobs of both plans that the second makes run again."""
    before, after = fingerprints(before), fingerprints(after)
    assert len(before) > 25
    return {job for job in before.keys() & after.keys() if before[job] != after[job]}


def of(*stages_or_jobs):
    """Return the names of all jobs of stages; of jobs themselves, their names."""
    return {
        job
        for job in fingerprints(plan())
        if job in stages_or_jobs or job.partition("/")[0] in stages_or_jobs
    }


def of_fits(*methods):
    """Return what is made of methods alone: their hypotheses, scores and sensitivity."""
    stages_of = ("hypotheses", "scores", "sensitivity")
    return {f"{stage}/digits-{method}-0" for stage in stages_of for method in methods}


TOY_FOREST = {"toy_data/eece_vs_noise-random_forest", "toy_figures/eece_vs_noise"}
CONFIG = {"resolved_config/resolved_config"}


def reversed_keys(value):
    if isinstance(value, dict):
        return {key: reversed_keys(part) for key, part in reversed(value.items())}
    return value


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: reversed_keys(c), set()),
        (lambda c: c.update(data_dir="elsewhere"), CONFIG | of("page")),
        # Another data set, which the benchmark does not have.
        (lambda c: c["datasets"].update(wine=SHIPPED["datasets"]["wine"]), CONFIG | of("page")),
        (
            lambda c: c["methods"]["eknn"].update(alpha=0.5),
            CONFIG | of_fits("eknn") | of(*OF_METHODS),
        ),
        (
            lambda c: c["methods"]["random_forest"].update(n_estimators=7),
            CONFIG | of_fits("random_forest") | of(*OF_METHODS) | TOY_FOREST,
        ),
        (
            lambda c: c["methods"]["eknn"].update(label="EKNN"),
            CONFIG
            | of("comparisons", "figures", "paper_comparison", "sensitivity_figure")
            | of("tables", "page"),
        ),
        (
            lambda c: c["datasets"]["digits"]["scores"].update(n_bins=11),
            CONFIG | of("scores", "sensitivity", *OF_METHODS),
        ),
        (
            lambda c: c["sensitivity"].update(n_tasks=1),
            CONFIG | of("sensitivity", "sensitivity_figure", "page"),
        ),
        (
            lambda c: c["latents"].update(n_neighbors=15),
            CONFIG | of("neighbors") | of_fits("eknn") | of(*OF_METHODS),
        ),
        (
            lambda c: c["latents"].update(encoder="pca"),
            set(fingerprints(plan())) - of("images", "toy_data", "toy_figures"),
        ),
        (
            lambda c: c["datasets"]["digits"].update(split_seed=1),
            set(fingerprints(plan())) - of("toy_data", "toy_figures"),
        ),
        (
            lambda c: c["toy"]["eece_vs_noise"].update(n_train=9),
            CONFIG | of("claims", "page") | TOY_FOREST,
        ),
    ],
)
def test_a_change_of_the_configuration_reaches_what_depends_on_it(change, expected):
    assert changed(plan(), plan(change)) == expected


def test_a_new_seed_fits_and_scores_nothing_of_the_old_one_again():
    more = plan(lambda c: c.update(seeds=[0, 1]))
    again = changed(plan(), more)
    assert not again & of(*PREPARED, "hypotheses", "scores", "sensitivity", "bounds", "toy_data")
    assert of("tables", "comparisons", "figures", "page", "claims", "paper_comparison") <= again
    assert "hypotheses/digits-eknn-1" in fingerprints(more)


def test_a_new_method_leaves_the_fits_and_scores_of_others_alone():
    more = plan(lambda c: c["methods"].update(mine={"method": "random_forest", "label": "Mine"}))
    assert changed(plan(), more) == CONFIG | of(*OF_METHODS)
    assert "hypotheses/digits-mine-0" in fingerprints(more)


@pytest.fixture
def edited(monkeypatch, forget_sources):
    """Return a function that returns the plan after the code of a file is edited."""

    def edit(name):
        path, read = PACKAGE / name, sources._code
        assert path.is_file()

        def code(other):
            digest, imports = read(other)
            return ("edited" if other == path else digest), imports

        before = plan()
        fingerprints(before)
        monkeypatch.setattr(sources, "_code", code)
        sources.source_hashes.cache_clear()
        return before, plan()

    return edit


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("methods/random_forest.py", of_fits("random_forest") | of(*OF_METHODS) | TOY_FOREST),
        ("workflow/stage.py", set()),
        ("workflow/provenance.py", set()),
    ],
)
def test_edited_code_reaches_what_runs_it(edited, name, expected):
    assert changed(*edited(name)) == expected


def test_an_edited_metric_is_scored_again_and_nothing_is_fitted_again(edited):
    again = changed(*edited("metrics/eece.py"))
    assert of("scores", "toy_data/eece_vs_noise-random_forest", "tables", "page") <= again
    assert not again & of(*PREPARED, "hypotheses", "encoder_figures", "resolved_config")


def test_an_edited_table_scores_nothing_again(edited):
    again = changed(*edited("report/tables/summary.py"))
    assert of("tables") <= again <= of("tables", "page")
