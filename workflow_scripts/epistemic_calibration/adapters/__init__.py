"""From a model in memory to its hypotheses.

A file ``NAME.py`` of this folder reads the models of the library that is imported as NAME: it has
the name of the library, ``LABEL``, and functions ``handles(model)``, ``from_model`` and, unless a
model has draws of its own, ``from_list``, which return probabilities (n_samples, n_hypotheses,
n_classes) and the names of the classes; further keywords are options of the library. It is asked
only where that library is loaded, so nothing heavy is imported that was not there.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epistemic_calibration import registry
from epistemic_calibration.adapters.base import ModelError, name_of
from epistemic_calibration.metrics._classes import check_class_hypotheses
from epistemic_calibration.metrics._validation import check_positive_integer

__all__ = ["ModelError", "dirichlet_hypotheses", "hypotheses_of"]


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
        what one member says. Random forests of LightGBM (``boosting_type="rf"``) and XGBoost
        (``XGBRFClassifier``), whose prediction is the mean of logits: give `evaluate` their own
        as ``prediction``. A list of fitted classifiers with ``predict_proba`` and ``classes_``,
        or of PyTorch modules: one hypothesis each. One PyTorch module (also of Keras 3 on it)
        whose passes differ: a hypothesis is a pass with dropout layers, and only those, in
        training mode. A fitted ``laplace.Laplace``: a hypothesis is a draw of the predictive.
    X : array-like or tensor, samples on axis 0
        What the model takes. Of PyTorch also a dictionary of them, passed as keywords, or a
        ``Dataset`` or ``DataLoader`` without shuffling, of whose batches the first part is taken,
        or, if they are dictionaries, all but ``label`` and ``labels``.
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
        can be either, so that it must be said. Outputs with an attribute or key ``logits`` are
        those. Of images, (n, n_classes, height, width), pixels are samples.
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
    TypeError
        If an option is none of the library.
    ModelError
        If there is only one hypothesis, or all are equal, the model is not fitted, its members
        are no hypotheses (boosting, stacking) or saw different classes, or probabilities are not
        what they must be.

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
    several = isinstance(model, (list, tuple))
    read = _adapter_of_list(model).from_list if several else _adapter(model).from_model
    values, classes = read(
        model, X, n_hypotheses=n_hypotheses, random_state=random_state, **options
    )
    try:
        probabilities = check_class_hypotheses(values)
    except ValueError as error:
        raise ModelError(f"{name_of(model)}: {error}") from None
    if (probabilities == probabilities[:, :1]).all():
        raise ModelError(
            f"all {probabilities.shape[1]} hypotheses of {name_of(model)} are equal: members are "
            f"copies, or forward does not use its dropout layers. Give models fitted apart"
        )
    classes = np.asarray(classes).tolist()
    if positive_class is None:
        return probabilities[:, :, 1] if len(classes) == 2 else probabilities
    if positive_class not in classes:
        shown = ", ".join(map(repr, classes[:10])) + (", ..." if len(classes) > 10 else "")
        raise ModelError(f"positive_class {positive_class!r} is no class of the model: {shown}")
    return np.ascontiguousarray(probabilities[:, :, classes.index(positive_class)])


def dirichlet_hypotheses(
    alpha: ArrayLike, *, n_hypotheses: int = 200, random_state: int = 0
) -> np.ndarray:
    """Return draws of Dirichlet laws, as evidential networks and posteriors of counts give them.

    Of a Beta law, ``alpha`` has two columns, b and a. Where mean and variance are all that is
    known, no draws are needed: the mean is the one hypothesis, the variance the
    ``epistemic_uncertainty`` of `evaluate`. Quantiles are hypotheses with ``exchangeable=False``.

    Parameters
    ----------
    alpha : array-like of shape (n_samples, n_classes), > 0
    n_hypotheses : int, default 200
    random_state : int >= 0, default 0

    Returns
    -------
    ndarray of shape (n_samples, n_hypotheses), or (n_samples, n_hypotheses, n_classes)
        Of two classes the probabilities of the second.

    Raises
    ------
    ValueError
        If ``alpha`` are not positive numbers with two columns or more.

    Examples
    --------
    >>> from epistemic_calibration.adapters import dirichlet_hypotheses
    >>> dirichlet_hypotheses([[1, 3], [2, 2]], n_hypotheses=5).shape
    (2, 5)
    """
    alpha = np.asarray(alpha, dtype=np.float64)
    if alpha.ndim != 2 or alpha.shape[1] < 2 or not np.all((alpha > 0) & (alpha < np.inf)):
        raise ValueError(
            f"alpha must be positive numbers (n_samples, n_classes), got shape {alpha.shape} and "
            f"values from {alpha.min() if alpha.size else 'none'}"
        )
    n_hypotheses = check_positive_integer(n_hypotheses, name="n_hypotheses", minimum=2)
    rng = np.random.default_rng(
        check_positive_integer(random_state, name="random_state", minimum=0)
    )
    shape = len(alpha), n_hypotheses, alpha.shape[1]
    # A Gamma(a) is Gamma(a + 1) U^(1/a), whose logarithm is no -inf where a is near 0.
    logs = np.log(rng.standard_gamma(np.broadcast_to(alpha[:, None] + 1, shape)))
    logs += np.log1p(-rng.random(shape)) / alpha[:, None]
    draws = np.exp(logs - logs.max(axis=2, keepdims=True))
    draws /= draws.sum(axis=2, keepdims=True)
    return draws[:, :, 1] if shape[2] == 2 else draws


def _adapter(model: Any) -> ModuleType:
    # The interface of scikit-learn is that of others, too, and it is always installed.
    loaded = {"sklearn", *sys.modules}
    known = registry.available(__name__)
    for name in known:
        if name in loaded and (adapter := registry.load(__name__, name)).handles(model):
            return adapter
    raise ModelError(
        f"{name_of(model)} is no model of a library that is known here ({', '.join(known)}), nor "
        f"has it predict_proba and classes_: give evaluate(y_true, hypotheses) an array"
    )


def _adapter_of_list(models: list[Any] | tuple[Any, ...]) -> ModuleType:
    if len({id(model) for model in models}) < max(len(models), 2):
        raise ModelError(
            f"{name_of(models)} has no spread: give two models or more, fitted apart, such as with "
            f"different seeds"
        )
    first, *others = [_adapter(model) for model in models]
    if set(others) != {first}:
        raise ModelError(
            "the list mixes models of " + " and ".join(sorted({a.LABEL for a in (first, *others)}))
        )
    if not hasattr(first, "from_list"):
        raise ModelError(
            f"{name_of(models)} of {first.LABEL}, each with draws of its own: call hypotheses_of "
            f"for one at a time, and concatenate on axis 1 for a mixture"
        )
    return first
