"""From a model in memory to its hypotheses.

A file ``NAME.py`` of this folder that defines one `Adapter` reads the models of the library that
is imported as NAME. It is asked only where that library is loaded, so nothing heavy is imported
that was not there.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np

from epistemic_calibration import registry
from epistemic_calibration.adapters.base import Adapter, ClassProbabilities, ModelError, name_of
from epistemic_calibration.metrics._classes import check_class_hypotheses
from epistemic_calibration.metrics._validation import check_positive_integer

__all__ = ["Adapter", "ClassProbabilities", "ModelError", "hypotheses_of"]

_COMMON = ("n_hypotheses", "random_state")


def hypotheses_of(
    model: Any,
    X: Any,
    *,
    positive_class: Any = None,
    n_hypotheses: int | None = None,
    random_state: int = 0,
    **options: Any,
) -> np.ndarray:
    """Return the hypotheses of a fitted model at inputs X, as `evaluate` takes them.

    Parameters
    ----------
    model : fitted model, or a list of them
        Scikit-learn's forests, ``BaggingClassifier``, soft ``VotingClassifier`` and
        ``CalibratedClassifierCV``, also at the end of a pipeline or in a search: a hypothesis is
        what one member says. A list of fitted classifiers with ``predict_proba`` and
        ``classes_``, or of PyTorch modules: one hypothesis each. One PyTorch module with dropout:
        a hypothesis is a pass with the dropout layers, and only those, in training mode. A fitted
        ``laplace.Laplace``: a hypothesis is a draw of the predictive.
    X : array-like or tensor, samples on axis 0
        What the model takes.
    positive_class : optional
        The class whose probability the hypotheses are; by default the second of two. Classes are
        those of ``classes_``, or 0, 1, ... of a network's outputs.
    n_hypotheses : int, optional
        Passes or draws, 100 by default. Ensembles have as many as members.
    random_state : int >= 0, default 0
        Seed of passes and draws. No state of the caller's random numbers is touched.
    outputs : {"logits", "probabilities"}, optional
        PyTorch only: what modules return. If there are two outputs per input or more, they are
        taken as probabilities where they add up to 1, and otherwise as logits; a single output
        can be either, so that it must be said.
    pred_type : {"glm", "nn"}, default "glm"
        laplace-torch only: draws of the linearised network, or of its weights.
    batch_size : int, optional
        PyTorch (default 1024) and laplace-torch (256): inputs that are passed at once. Masks of
        dropout depend on it, nothing else.

    Returns
    -------
    ndarray of shape (n_samples, n_hypotheses) or (n_samples, n_hypotheses, n_classes)
        P(Y = positive class | x) in [0, 1] where there are two classes or a positive class is
        named, otherwise the probabilities of all classes, which add up to 1.

    Raises
    ------
    ModelError
        If there is only one hypothesis, the model is not fitted, its members are no hypotheses
        (boosting, stacking) or saw different classes, or probabilities are not what they must be.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from epistemic_calibration import hypotheses_of
    >>> X, y = make_classification(200, random_state=0)
    >>> forest = RandomForestClassifier(10, random_state=0).fit(X[:100], y[:100])
    >>> hypotheses_of(forest, X[100:]).shape
    (100, 10)
    """
    random_state = check_positive_integer(random_state, name="random_state", minimum=0)
    if n_hypotheses is not None:
        n_hypotheses = check_positive_integer(n_hypotheses, name="n_hypotheses", minimum=2)
    common = {"n_hypotheses": n_hypotheses, "random_state": random_state}
    if isinstance(model, (list, tuple)):
        read = _adapter_of_list(model).from_list
    else:
        read = _adapter(model).from_model
    _check_options(read, options)
    found = read(model, X, **common, **options)
    try:
        probabilities = check_class_hypotheses(found.values)
    except ValueError as error:
        raise ModelError(f"{name_of(model)}: {error}") from None
    classes = list(np.asarray(found.classes).tolist())
    if positive_class is None:
        return probabilities[:, :, 1] if len(classes) == 2 else probabilities
    if positive_class not in classes:
        shown = ", ".join(map(repr, classes[:10])) + (", ..." if len(classes) > 10 else "")
        raise ModelError(f"positive_class {positive_class!r} is no class of the model: {shown}")
    return np.ascontiguousarray(probabilities[:, :, classes.index(positive_class)])


def _adapters() -> list[Adapter]:
    """Return the adapters of the libraries that are loaded, and of scikit-learn."""
    # Its interface is that of others, too, and it is always installed.
    loaded = {"sklearn", *sys.modules}
    names = [name for name in registry.available(__name__) if name in loaded]
    modules = (registry.load(__name__, name) for name in names)
    return [registry.only_class(module, Adapter)() for module in modules]


def _adapter(model: Any) -> Adapter:
    for adapter in _adapters():
        if adapter.handles(model):
            return adapter
    if hasattr(model, "__array__"):
        raise ModelError(
            f"{name_of(model)} is an array and no model: give evaluate(y_true, hypotheses) the "
            f"probabilities"
        )
    known = ", ".join(registry.available(__name__))
    raise ModelError(
        f"{name_of(model)} is no model of a library that is known here ({known}), nor has it "
        f"predict_proba and classes_: give evaluate(y_true, hypotheses) an array"
    )


def _adapter_of_list(models: list[Any] | tuple[Any, ...]) -> Adapter:
    if len(models) < 2:
        raise ModelError(
            f"a list of {len(models)} model(s) has no spread: give two fitted models or more"
        )
    if len({id(model) for model in models}) < len(models):
        raise ModelError(
            "the list holds the same model more than once: give models fitted apart, such as with "
            "different seeds"
        )
    adapters = [_adapter(model) for model in models]
    if len({type(adapter) for adapter in adapters}) > 1:
        raise ModelError("the list mixes models of " + " and ".join({a.label for a in adapters}))
    return adapters[0]


def _check_options(read: Any, options: dict[str, Any]) -> None:
    adapter = read.__self__
    allowed = [
        name
        for name, parameter in inspect.signature(read).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in _COMMON
    ]
    for name in options:
        if name not in allowed:
            raise ModelError(
                f"{name} is no option for {adapter.label}: {', '.join(allowed) or 'there is none'}"
            )
