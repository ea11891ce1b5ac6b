"""Hypotheses of scikit-learn's ensembles, against their members asked one by one."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from epistemic_calibration import hypotheses_of
from epistemic_calibration.adapters import ModelError

#: Names out of order, so that an index is no name.
NAMES = np.array(["7", "cat", "ant"])
X, Y = make_classification(300, n_informative=5, n_classes=3, random_state=0)
Y = NAMES[Y]
BINARY = np.where(Y == "cat", 30, -4)
TREE = DecisionTreeClassifier(max_depth=3)
ENSEMBLES = {
    "forest": RandomForestClassifier(6, max_depth=4, random_state=0),
    "extra_trees": ExtraTreesClassifier(6, max_depth=4, random_state=0),
    "bagging": BaggingClassifier(TREE, 6, random_state=0),
    "bagging_of_features": BaggingClassifier(
        TREE, 6, max_features=0.4, bootstrap_features=True, random_state=0
    ),
    "bagging_of_pipelines": BaggingClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), 6, random_state=0
    ),
    "voting": VotingClassifier(
        [(f"c{c}", LogisticRegression(C=c)) for c in (1e-4, 1e-3, 1e-2, 0.1, 1, 10)],
        voting="soft",
    ),
    "calibrated": CalibratedClassifierCV(LinearSVC(), cv=6),
}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_the_mean_is_the_prediction_and_members_differ(name):
    for y in (Y, BINARY):
        model = ENSEMBLES[name].fit(X, y)
        found = hypotheses_of(model, X)
        assert found.shape[:2] == (300, 6)
        own = model.predict_proba(X)
        np.testing.assert_allclose(found.mean(axis=1), own if found.ndim == 3 else own[:, 1])
        assert found.std(axis=1).max() > 0.01


def test_members_are_asked_one_by_one_each_with_its_features():
    forest = ENSEMBLES["forest"].fit(X, BINARY)
    trees = [tree.predict_proba(X)[:, 1] for tree in forest.estimators_]
    np.testing.assert_array_equal(hypotheses_of(forest, X), np.stack(trees, axis=1))
    model = ENSEMBLES["bagging_of_features"].fit(X, BINARY)
    alone = [
        member.predict_proba(X[:, features])[:, 1]
        for member, features in zip(model.estimators_, model.estimators_features_, strict=True)
    ]
    assert len({tuple(features) for features in model.estimators_features_}) > 1
    np.testing.assert_array_equal(hypotheses_of(model, X), np.stack(alone, axis=1))


def test_a_member_of_a_bagging_that_missed_a_class_gives_it_probability_0():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.repeat(["a", "b", "c"], [30, 28, 2])
    # Neighbours take no weights, so that a resample is all that a member sees.
    member = KNeighborsClassifier(1)
    model = BaggingClassifier(member, 12, max_samples=0.2, random_state=1).fit(X, y)
    missed = [j for j, each in enumerate(model.estimators_) if 2 not in each.classes_]
    saw = [j for j, each in enumerate(model.estimators_) if 2 in each.classes_]
    assert missed and saw
    found = hypotheses_of(model, X)
    assert found[:, missed, 2].max() == 0 and found[:, saw, 2].max() > 0
    np.testing.assert_allclose(found.mean(axis=1), model.predict_proba(X))


def test_data_frames_keep_their_names(recwarn):
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    for name in ("forest", "bagging_of_features", "voting"):
        model = ENSEMBLES[name].fit(frame, Y)
        expected = hypotheses_of(ENSEMBLES[name].fit(X, Y), X)
        np.testing.assert_allclose(hypotheses_of(model.fit(frame, Y), frame), expected, atol=1e-12)
        model.fit(frame, Y)
        with pytest.raises(ModelError, match="feature names"):
            hypotheses_of(model, frame[frame.columns[::-1]])
    assert not [w for w in recwarn if "feature names" in str(w.message)]


def test_ensembles_are_found_in_pipelines_searches_and_frozen():
    forest = RandomForestClassifier(6, max_depth=3, random_state=0)
    pipeline = make_pipeline(StandardScaler(), forest).fit(X, Y)
    search = GridSearchCV(pipeline, {"randomforestclassifier__max_depth": [2, 3]}, cv=2).fit(X, Y)
    for model in (pipeline, search, FrozenEstimator(pipeline)):
        found = hypotheses_of(model, X)
        assert found.shape == (300, 6, 3)
        np.testing.assert_allclose(found.mean(axis=1), model.predict_proba(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_forests_of_lightgbm_and_xgboost_have_a_hypothesis_for_each_tree(n_classes):
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    X, y = make_classification(300, n_informative=5, n_classes=n_classes, random_state=0)
    bagged = {"subsample": 0.6, "subsample_freq": 1, "n_estimators": 6, "verbose": -1}
    for forest, leaves in (
        (lightgbm.LGBMClassifier(boosting_type="rf", **bagged), {"pred_leaf": True}),
        (xgboost.XGBRFClassifier(n_estimators=6), None),
    ):
        found = hypotheses_of(forest.fit(X, y), X)
        found = np.stack([1 - found, found], axis=2) if n_classes == 2 else found
        assert found.shape == (300, 6, n_classes)
        # Their prediction is that of the mean logit, and a tree says the same in all of a leaf.
        own = forest.predict_proba(X)
        np.testing.assert_allclose(softmax(np.log(found).mean(axis=1), axis=1), own, atol=1e-5)
        leaf = forest.predict_proba(X, **leaves) if leaves else forest.apply(X)
        if n_classes == 2:
            for j in range(6):
                pairs = np.unique(np.stack([leaf[:, j], found[:, j, 1].round(5)], axis=1), axis=0)
                assert len(pairs) == len(np.unique(leaf[:, j])) > 2


def test_a_list_has_a_hypothesis_for_each():
    models = [
        LogisticRegression().fit(X, Y),
        GaussianNB().fit(X, Y),
        GradientBoostingClassifier(n_estimators=5).fit(X, Y),
        make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)).fit(X, Y),
    ]
    found = hypotheses_of(models, X)
    np.testing.assert_allclose(found, np.stack([m.predict_proba(X) for m in models], axis=1))
    np.testing.assert_allclose(hypotheses_of(tuple(models), X, n_hypotheses=4), found)


class Constant:
    classes_ = ("no", "yes")

    def __init__(self, p):
        self.p = p

    def predict_proba(self, X):
        return np.tile([1 - self.p, self.p], (len(X), 1))


@pytest.mark.parametrize(("p", "message"), [(np.nan, "NaN"), (1.5, r"in \[0, 1\]")])
def test_what_has_the_interface_must_give_probabilities(p, message):
    with pytest.raises(ModelError, match=message):
        hypotheses_of([Constant(0.25), Constant(p)], np.zeros((4, 1)))


def fitted_on_other_classes(X, y):
    return [LogisticRegression().fit(X, y), LogisticRegression().fit(X[y != "cat"], y[y != "cat"])]


REFUSED = {
    "not_fitted": (lambda X, y: RandomForestClassifier(), "not fitted: call fit"),
    "single": (lambda X, y: LogisticRegression().fit(X, y), "one hypothesis and no spread"),
    "one_tree": (lambda X, y: RandomForestClassifier(1).fit(X, y), "has 1 member"),
    "boosting": (lambda X, y: GradientBoostingClassifier(n_estimators=2).fit(X, y), "of one sum"),
    "stacking": (
        lambda X, y: StackingClassifier([("a", GaussianNB()), ("b", TREE)], cv=2).fit(X, y),
        "the members of stacking are combined",
    ),
    "hard_voting": (
        lambda X, y: VotingClassifier([("a", GaussianNB()), ("b", TREE)]).fit(X, y),
        "voting='soft' to votes",
    ),
    "weights": (
        lambda X, y: VotingClassifier(
            [("a", GaussianNB()), ("b", TREE)], voting="soft", weights=[1, 3]
        ).fit(X, y),
        "differs from its own prediction",
    ),
    "bagged_votes": (lambda X, y: BaggingClassifier(Perceptron(), 3).fit(X, y), "counts votes, as"),
    "no_probabilities": (
        lambda X, y: [LinearSVC().fit(X, y), LinearSVC(C=2).fit(X, y)],
        "LinearSVC has no predict_proba",
    ),
    "other_classes": (fitted_on_other_classes, "model 1 of the list saw other classes"),
    "other_features": (lambda X, y: RandomForestClassifier(3).fit(X[:, :4], y), "20 features"),
}


@pytest.mark.fault
@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_hypotheses_is_told_in_one_line(name):
    make, message = REFUSED[name]
    model = make(X, Y)
    with pytest.raises(ModelError, match=message) as caught:
        hypotheses_of(model, X)
    assert "\n" not in str(caught.value)


@pytest.mark.fault
def test_nan_among_the_inputs_is_told_in_one_line():
    spoilt = X.copy()
    spoilt[3, 1] = np.nan
    with pytest.raises(ModelError, match=r"LogisticRegression: Input X contains NaN\.") as caught:
        hypotheses_of([LogisticRegression().fit(X, Y), GaussianNB().fit(X, Y)], spoilt)
    assert "\n" not in str(caught.value)
    # Trees have a side for what is missing.
    assert np.isfinite(hypotheses_of(ENSEMBLES["forest"].fit(spoilt, Y), spoilt)).all()
