"""The example files of methods keep the contract, where their own package is installed."""

import numpy as np
import pytest
from shipped import ROOT
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score

from epistemic_calibration.methods import load_method
from epistemic_calibration.methods._check import check_file

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
#: Far fewer trees and draws than by default.
SMALL = {
    "bart": {"n_trees": 20, "n_burn_in": 30, "n_hypotheses": 30},
    "catboost_virtual_ensembles": {"iterations": 100},
}


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.stem)
def example(request):
    missing = load_method(str(request.param)).missing_packages()
    if missing:
        pytest.skip("; ".join(missing))
    return request.param


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES} == set(SMALL)


def test_the_contract_is_kept(example, tmp_path):
    # With smaller defaults, as each check fits anew.
    text = example.read_text()
    for name, value in SMALL[example.stem].items():
        before, found, after = text.partition(f"    {name}: int = parameter(")
        assert found
        text = before + found + f"{value}," + after.partition(",")[2]
    path = tmp_path / example.name
    path.write_text(text)
    # Before an overwritten default there is nothing left in another place.
    assert load_method(str(path)).default_parameters().items() >= SMALL[example.stem].items()
    assert [str(outcome) for outcome in check_file(path) if outcome.fault] == []


def test_hypotheses_differ_and_predict(example):
    X, y = make_classification(900, 6, n_informative=4, n_redundant=0, random_state=0)
    method = load_method(str(example))(**SMALL[example.stem], random_state=3)
    hypotheses = method.fit(X[:600], y[:600]).sample_hypotheses(X[600:])
    assert hypotheses.shape == (300, method.n_hypotheses)
    assert np.mean(hypotheses.std(axis=1)) > 1e-4
    assert roc_auc_score(y[600:], hypotheses.mean(axis=1)) > 0.85
