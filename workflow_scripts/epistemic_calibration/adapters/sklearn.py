"""Ensembles of scikit-learn, and lists of whatever has its interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array, check_is_fitted

from epistemic_calibration.adapters.base import ModelError, name_of, stack

LABEL = "scikit-learn"

#: How far the mean of the hypotheses may be from the model's own prediction: rounding of float32.
_ROUNDING = 1e-5


def handles(model: Any) -> bool:
    """Return whether a model has scikit-learn's interface."""
    if isinstance(model, type):
        return False
    return isinstance(model, BaseEstimator) or (
        hasattr(model, "predict_proba") and hasattr(model, "classes_")
    )


def from_model(
    model: Any, X: Any, *, n_hypotheses: int | None, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return what the members of an ensemble say, and the classes."""
    model, X = _innermost(model, X)
    own = _predict_proba(model, X)
    of_logits = _forest_of_logits(model)
    values = stack(list((of_logits or _members)(model, X)), n_hypotheses, name=name_of(model))
    # The hypotheses must be what the prediction is made of: weights, and releases and subclasses
    # that combine their members otherwise, are seen here.
    mean = values.mean(axis=1)
    if of_logits is not None:
        mean = softmax(np.log(np.maximum(values, 1e-30)).mean(axis=1), axis=1)
    gap = np.abs(mean - own).max()
    if not gap <= _ROUNDING:
        raise ModelError(
            f"{name_of(model)}: the mean of its members differs from its own prediction by up to "
            f"{gap:.3g}, so they are not its hypotheses: give a list of fitted classifiers"
        )
    return values, np.asarray(model.classes_)


def from_list(
    models: Sequence[Any], X: Any, *, n_hypotheses: int | None, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return what each classifier says, and the classes."""
    members = [_predict_proba(model, X) for model in models]
    classes = [np.asarray(model.classes_) for model in models]
    for i, other in enumerate(classes):
        if not np.array_equal(other, classes[0]):
            raise ModelError(
                f"model {i} of the list saw other classes ({_some(other)}) than model 0 "
                f"({_some(classes[0])}): fit all on data of the same classes"
            )
    return stack(members, n_hypotheses, name=name_of(models)), classes[0]


def _innermost(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the classifier in pipelines and searches, and what it is given for X."""
    while True:
        if isinstance(model, Pipeline):
            _check_fitted(model)
            X = model[:-1].transform(X) if len(model) > 1 else X
            model = model[-1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        else:
            return model, X


def _check_fitted(model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ModelError(f"{name_of(model)} is not fitted: call fit first") from None
    except TypeError:
        # No estimator of scikit-learn; its predict_proba will tell.
        return


def _predict_proba(model: Any, X: Any) -> np.ndarray:
    _check_fitted(model)
    name = name_of(model)
    if not hasattr(model, "predict_proba"):
        raise ModelError(
            f"{name} has no predict_proba: hypotheses are probabilities, which "
            f"CalibratedClassifierCV can add to a classifier, and voting='soft' to votes"
        )
    if isinstance(model.classes_, list):
        raise ModelError(f"{name} has several outputs: fit one label at a time")
    try:
        values = np.asarray(model.predict_proba(X))
    # A NotFittedError of a member is one, too.
    except ValueError as error:
        first, *_ = str(error).strip().split("\n")
        raise ModelError(f"{name}: {first}") from None
    n_classes = len(model.classes_)
    if values.ndim != 2 or values.shape[1] != n_classes:
        raise ModelError(
            f"{name}: predict_proba gives shape {values.shape}, expected (n_samples, {n_classes})"
        )
    if n_classes < 2:
        raise ModelError(f"{name} saw one class only: {_some(model.classes_)}")
    return values


def _some(classes: Any) -> str:
    shown = [repr(c) for c in np.asarray(classes).tolist()]
    return ", ".join(shown[:5]) + (", ..." if len(shown) > 5 else "")


def _members(model: Any, X: Any) -> Iterator[np.ndarray]:
    """Yield the probabilities of each member, in the order of the ensemble's classes."""
    if isinstance(model, (RandomForestClassifier, ExtraTreesClassifier)):
        # As the forest itself does, so that trees need not convert X each; a forest that does not
        # take NaN has refused it. Trees know classes by their index, and each knows all of them.
        X = check_array(X, dtype=np.float32, accept_sparse="csr", ensure_all_finite=False)
        yield from (tree.predict_proba(X, check_input=False) for tree in model.estimators_)
    elif isinstance(model, BaggingClassifier):
        X = check_array(X, dtype=None, accept_sparse=["csr", "csc"], ensure_all_finite=False)
        for member, features in zip(model.estimators_, model.estimators_features_, strict=True):
            if not hasattr(member, "predict_proba"):
                raise ModelError(
                    f"{name_of(model)} counts votes, as {name_of(member)} has no predict_proba"
                )
            found = member.predict_proba(X[:, features])
            # Members know classes by their index, and only those of their own resample.
            values = np.zeros((len(found), len(model.classes_)), dtype=found.dtype)
            values[:, np.asarray(member.classes_, dtype=np.intp)] = found
            yield values
    elif isinstance(model, VotingClassifier):
        yield from (_predict_proba(member, X) for member in model.estimators_)
    elif isinstance(model, CalibratedClassifierCV):
        yield from (member.predict_proba(X) for member in model.calibrated_classifiers_)
    else:
        raise ModelError(
            f"{name_of(model)} is one classifier, so one hypothesis and no spread (the trees of "
            f"boosting are terms of one sum, the members of stacking are combined by another): "
            f"give a list of several, fitted with other seeds or resamples, or a fitted "
            f"BaggingClassifier of it"
        )


def _forest_of_logits(model: Any) -> Callable[[Any, Any], Iterator[np.ndarray]] | None:
    """Return what reads a random forest of LightGBM or XGBoost, whose trees are means of logits."""
    if getattr(model, "boosting_type", None) == "rf" and hasattr(model, "n_estimators_"):
        return _trees_of_lightgbm
    named = any(base.__name__ == "XGBRFClassifier" for base in type(model).__mro__)
    return _trees_of_xgboost if named else None


def _trees_of_lightgbm(model: Any, X: Any) -> Iterator[np.ndarray]:
    for j in range(model.n_estimators_):
        yield model.predict_proba(X, start_iteration=j, num_iteration=1)


def _trees_of_xgboost(model: Any, X: Any) -> Iterator[np.ndarray]:
    trees = model.get_booster().trees_to_dataframe()
    value = trees[trees["Feature"] == "Leaf"].set_index(["Tree", "Node"])["Gain"]
    leaves = model.apply(X).astype(int)
    shares = np.stack([value.loc[t].loc[leaves[:, t]] for t in range(leaves.shape[1])], axis=1)
    margin = model.predict(X, output_margin=True).reshape(len(leaves), -1)
    # Of each class its trees, one after another; a leaf holds its share of the mean of them.
    shares = shares.reshape(len(leaves), margin.shape[1], -1)
    start, n_trees = margin - shares.sum(axis=2), shares.shape[2]
    for j in range(n_trees):
        logits = start + n_trees * shares[:, :, j]
        if logits.shape[1] == 1:
            logits = np.hstack([np.zeros_like(logits), logits])
        yield softmax(logits.astype(np.float64), axis=1)
