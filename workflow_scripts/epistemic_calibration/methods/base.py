"""The contract every method of the benchmark keeps."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

import numpy as np

from epistemic_calibration.parameters import check_ranges

if TYPE_CHECKING:
    from epistemic_calibration.latents._neighbors import Neighbors


class MethodError(RuntimeError):
    """A method returned something that is not a set of hypotheses."""


@dataclass(frozen=True)
class Predictions:
    """What a fitted method says of the test points of one one-vs-all task.

    Attributes
    ----------
    hypotheses : ndarray of shape (n_samples, n_hypotheses)
        h_j(x_n), estimates of P(Y = 1 | x_n) in [0, 1].
    epistemic_uncertainty : ndarray of shape (n_samples,) or None
        The uncertainty that the method itself reports, where it is not the variance
        of the hypotheses.
    prediction : ndarray of shape (n_samples,) or None
        The method's own point prediction in [0, 1], where it is not the mean of the
        hypotheses.
    diagnostics : dict
        Numbers that tell whether the fit can be trusted (R-hat, ...), by name.
    exchangeable : bool
        As `Method.exchangeable`.
    """

    hypotheses: np.ndarray
    epistemic_uncertainty: np.ndarray | None = None
    prediction: np.ndarray | None = None
    diagnostics: dict[str, float] = field(default_factory=dict)
    exchangeable: bool = True


@dataclass(kw_only=True, eq=False)
class Method(ABC):
    """A second-order classifier: its hypotheses are draws of P(Y = 1 | x).

    A subclass is decorated as this class is, and its fields are its parameters: each is made
    by `epistemic_calibration.parameters.parameter`, which takes the default, the bounds and a
    description, and has an annotation that can be evaluated at run time, ``Literal`` for a
    choice and ``Annotated[float, {"ge": 0}]`` for the bounds of the items of a sequence.
    Instead of fields a subclass may have an ``__init__`` of its own, which takes keywords
    with defaults, ``random_state`` among them.

    A subclass implements ``fit`` and ``sample_hypotheses``; it may report its own
    ``epistemic_uncertainty`` and ``predict_proba``; it may override ``fit_predict_tasks``
    where fitting several tasks together is faster. Heavy libraries are imported inside the
    methods, since every method's class is read whenever the configuration is checked.

    Raises
    ------
    ValueError
        If the value of a ``Literal`` field is none of its choices.

    Examples
    --------
    >>> from epistemic_calibration.parameters import parameter
    >>> @dataclass(kw_only=True, eq=False)
    ... class Guess(Method):
    ...     label: ClassVar[str] = "Guess"
    ...     n_hypotheses: int = parameter(3, ge=1, description="guesses for each input")
    ...
    ...     def fit(self, X, y):
    ...         return self
    ...
    ...     def sample_hypotheses(self, X):
    ...         rng = np.random.default_rng(self.random_state)
    ...         return rng.random((len(X), self.n_hypotheses))
    >>> Guess.default_parameters()
    {'n_hypotheses': 3}
    >>> Guess(n_hypotheses=5).predict(np.zeros((2, 4))).hypotheses.shape
    (2, 5)
    """

    #: Name in tables and figures.
    label: ClassVar[str]
    #: ``active``: the reported uncertainty is the variance of the hypotheses by design;
    #: ``illustrative``: it is not, and hypotheses are drawn to fit it (paper, section 4);
    #: ``control``: a baseline whose place is known from theory.
    family: ClassVar[Literal["active", "illustrative", "control"]] = "active"
    #: Whether the hypotheses are draws from the law of P(Y = 1 | x) that the method means, as
    #: posterior samples, passes and members are; False where they are that law themselves, such
    #: as fixed quantiles. Of H draws, E[(p* − mean)²] = (H + 1)/(H − 1)·E[variance] if they are
    #: right, of a law it is E[variance]. It matters where the variance is the uncertainty. It may
    #: be a property where a parameter decides.
    exchangeable: ClassVar[bool] = True
    #: What the method imports beyond what the benchmark needs: the module's name, and what pip
    #: installs for it.
    required_packages: ClassVar[dict[str, str]] = {}
    #: Whether the method uses the nearest neighbours that are found once for all tasks.
    uses_neighbors: ClassVar[bool] = False

    #: Seed of everything that is drawn.
    random_state: int = 0
    #: Precomputed `Neighbors` of the points given to ``sample_hypotheses``, or None. It has no
    #: annotation, which would make it a parameter.
    neighbors = None

    def __post_init__(self) -> None:
        for name, choices in _choices(type(self)).items():
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(f"{name}={value!r} must be {' or '.join(map(repr, choices))}")
        check_ranges(self)

    @abstractmethod
    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit on ``X`` (n_samples, n_features) and labels ``y`` (n_samples,) in {0, 1}."""

    @abstractmethod
    def sample_hypotheses(self, X: np.ndarray) -> np.ndarray:
        """Return the hypotheses at ``X``, shape (n_samples, n_hypotheses), in [0, 1]."""

    def epistemic_uncertainty(self, X: np.ndarray) -> np.ndarray | None:
        """Return the method's own uncertainty, shape (n_samples,), or None for the variance."""
        return None

    def predict_proba(self, X: np.ndarray) -> np.ndarray | None:
        """Return the method's own P(Y = 1 | x), shape (n_samples,), or None for the mean."""
        return None

    def diagnostics(self) -> dict[str, float]:
        """Return numbers by name that tell whether the fit can be trusted."""
        return {}

    def predict(self, X: np.ndarray) -> Predictions:
        """Return everything that the fitted method says of ``X``."""
        return Predictions(
            hypotheses=self.sample_hypotheses(X),
            epistemic_uncertainty=self.epistemic_uncertainty(X),
            prediction=self.predict_proba(X),
            diagnostics=self.diagnostics(),
            exchangeable=self.exchangeable,
        )

    @classmethod
    def fit_predict_tasks(
        cls,
        X_train: np.ndarray,
        Y_train: np.ndarray,
        X_test: np.ndarray,
        *,
        parameters: Mapping[str, Any],
        random_states: Sequence[int],
        neighbors: Neighbors | None = None,
    ) -> Iterator[Predictions]:
        """Fit every task and yield its predictions, in the order of the tasks.

        A task's predictions depend on its own labels and seed only, not on the tasks
        it shares the call with.

        Parameters
        ----------
        X_train : ndarray of shape (n_train, n_features)
        Y_train : ndarray of shape (n_train, n_tasks), labels in {0, 1}
        X_test : ndarray of shape (n_test, n_features)
        parameters : mapping
            Keywords of ``__init__``.
        random_states : sequence of int, one per task
        neighbors : Neighbors, optional
            Nearest training points of ``X_test``.
        """
        for labels, random_state in zip(Y_train.T, random_states, strict=True):
            method = cls(**parameters, random_state=random_state)
            method.neighbors = neighbors
            yield method.fit(X_train, labels).predict(X_test)

    @classmethod
    def missing_packages(cls) -> list[str]:
        """Return a line for each of ``required_packages`` that is not installed.

        Examples
        --------
        >>> class Elaborate(Method):
        ...     required_packages = {"no_such_module": "package[extra]"}
        >>> Elaborate.missing_packages()
        ["needs no_such_module: pip install 'package[extra]'"]
        """
        return [
            f"needs {module}: pip install {shlex.quote(requirement)}"
            for module, requirement in cls.required_packages.items()
            if importlib.util.find_spec(module) is None
        ]

    @classmethod
    def parameter_fields(cls) -> dict[str, dataclasses.Field[Any]] | None:
        """Return the fields that are the method's parameters, without ``random_state``.

        Returns
        -------
        dict of str to dataclasses.Field, or None
            By name. None if the class, or the one that it inherits ``__init__`` from, is not
            a dataclass: its parameters are the keywords of ``__init__``.

        Examples
        --------
        >>> from epistemic_calibration.methods import load_method
        >>> fields = load_method("random_forest").parameter_fields()
        >>> fields["min_samples_leaf"].default, fields["min_samples_leaf"].metadata["ge"]
        (5, 1)
        """
        owner = next(c for c in cls.__mro__ if "__init__" in vars(c))
        if "__dataclass_params__" not in vars(owner):
            return None
        return {f.name: f for f in dataclasses.fields(owner) if f.init and f.name != "random_state"}

    @classmethod
    def default_parameters(cls) -> dict[str, Any]:
        """Return the defaults of the parameters by name, without ``random_state``.

        Examples
        --------
        >>> from epistemic_calibration.methods import load_method
        >>> load_method("base_rate").default_parameters()
        {'n_hypotheses': 10}
        """
        fields = cls.parameter_fields()
        if fields is None:
            signature = inspect.signature(cls.__init__).parameters.values()
            return {
                p.name: p.default
                for p in signature
                if p.name not in ("self", "random_state") and p.default is not p.empty
            }
        return {
            name: f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
            for name, f in fields.items()
            if f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING
        }


@cache
def _choices(cls: type[Method]) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(cls)
    return {
        f.name: get_args(hints[f.name])
        for f in dataclasses.fields(cls)
        if get_origin(hints[f.name]) is Literal
    }


def check_predictions(
    predictions: Predictions, *, n_samples: int, task: str
) -> dict[str, np.ndarray]:
    """Return the arrays of a file of hypotheses, checked.

    Parameters
    ----------
    predictions : Predictions
        What a method gives for one task.
    n_samples : int
        Number of test points.
    task : str
        Name of the task, for messages.

    Returns
    -------
    dict of str to ndarray, float32
        ``hypotheses`` (n_samples, n_hypotheses) in [0, 1], and, where they are not None,
        ``epistemic_uncertainty`` (n_samples,), not negative, and ``prediction`` (n_samples,)
        in [0, 1]; where the hypotheses are no draws, also ``exchangeable``, which is False.

    Raises
    ------
    MethodError
        If an array has another shape, holds no real numbers, or holds NaN, infinite or
        out-of-range values; or if the hypotheses are the probabilities of both classes.

    Examples
    --------
    >>> predictions = Predictions(hypotheses=np.array([[0.1, 0.3], [0.8, 1.0]]))
    >>> arrays = check_predictions(predictions, n_samples=2, task="cat")
    >>> arrays["hypotheses"].dtype
    dtype('float32')
    >>> check_predictions(predictions, n_samples=3, task="cat")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    epistemic_calibration.methods.base.MethodError: task cat: hypotheses has shape (2, 2), ...
    """
    arrays = {"hypotheses": np.asarray(predictions.hypotheses)}
    for name in ("epistemic_uncertainty", "prediction"):
        value = getattr(predictions, name)
        if value is not None:
            arrays[name] = np.asarray(value)
    for name, array in arrays.items():
        n_dimensions = 2 if name == "hypotheses" else 1
        if array.ndim != n_dimensions or len(array) != n_samples or array.size == 0:
            wanted = f"({n_samples}, n_hypotheses)" if n_dimensions == 2 else f"({n_samples},)"
            column = "; give the column [:, 1]" if array.shape == (n_samples, 2) else ""
            raise MethodError(
                f"task {task}: {name} has shape {array.shape}, expected {wanted}{column}"
            )
        if not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
            raise MethodError(f"task {task}: {name} has dtype {array.dtype}, expected numbers")
        if not np.isfinite(array).all():
            raise MethodError(
                f"task {task}: {name} has {np.count_nonzero(~np.isfinite(array))} values that are "
                f"NaN or infinite, of {array.size}"
            )
        low, high = array.min(), array.max()
        if name == "epistemic_uncertainty" and low < 0:
            raise MethodError(f"task {task}: {name} goes down to {low}, expected values >= 0")
        if name != "epistemic_uncertainty" and (low < 0 or high > 1):
            raise MethodError(
                f"task {task}: {name} lies in [{low}, {high}], expected values in [0, 1]"
            )
    rows = arrays["hypotheses"]
    if rows.shape[1] == 2 and np.allclose(rows.sum(axis=1), 1, atol=1e-5) and np.ptp(rows) > 1e-5:
        raise MethodError(
            f"task {task}: hypotheses has two columns that add up to 1 in every row, as those of a "
            f"predict_proba do; return P(Y = 1) alone, the column [:, 1]"
        )
    checked = {name: array.astype(np.float32) for name, array in arrays.items()}
    if not predictions.exchangeable:
        checked["exchangeable"] = np.array(False)
    return checked
