"""What a toy experiment is, what it fits, and the settings that several share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np

from epistemic_calibration.methods import Predictions, user_file
from epistemic_calibration.methods._tasks import load_told, predict_tasks
from epistemic_calibration.metrics.binning import Binning
from epistemic_calibration.paper.toy._mixture import (
    sample_mixture,
    sample_training_set,
    true_probability,
)
from epistemic_calibration.seeds import derive_seed

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from epistemic_calibration.paper.toy._drawing import Canvas

#: Settings that several experiments share, with bounds as of `parameters.parameter`.
TrainingSetSize = Annotated[int, {"ge": 2, "description": "training points"}]
TestSetSize = Annotated[int, {"ge": 1, "description": "test points"}]
NumberOfBins = Annotated[int, {"ge": 1, "description": "bins of the EECE"}]
BinningName = Annotated[Binning, {"description": "how the bins of the EECE are built"}]


class Toy:
    """Training and test set of one experiment and seed, the same for all methods, and a method.

    ``method`` is its name in the table, on which the seed of its fit depends; ``implementation``
    the registered name, the file of the method, or ``oracle``, the true P(Y = 1 | x), by default
    ``method``. ``draw`` sets the attributes X_train, y_train, X_test and y_test.
    """

    def __init__(
        self,
        experiment: str,
        seed: int,
        method: str | None = None,
        implementation: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        #: First parts of all seeds that the experiment derives.
        self.key = ("toy", experiment, seed)
        self.method = method
        self.implementation = implementation or method
        self.parameters = dict(parameters or {})

    def draw(self, n_train: int, n_test: int = 0) -> None:
        """Draw the training set, and the test set unless ``n_test`` is 0."""
        seed = derive_seed(*self.key, "training", n_train)
        self.X_train, self.y_train = sample_training_set(n_train, seed)
        if n_test:
            self.X_test, self.y_test = sample_mixture(n_test, derive_seed(*self.key, "test"))

    def fit_predict(self, X: np.ndarray | None = None, **changes: Any) -> Predictions:
        """Fit the method, with some parameters changed; predict at ``X`` or at the test set."""
        X = self.X_test if X is None else X
        if self.implementation == "oracle":
            return Predictions(np.repeat(true_probability(X)[:, None], 100, axis=1))
        cls = load_told(self.implementation)
        parameters = {**self.parameters, **changes}
        if "min_steps" in cls.default_parameters():
            # The paper's toy sets are as small as this, and its networks make its epochs.
            parameters["min_steps"] = 1
        fitted = predict_tasks(
            cls,
            self.X_train,
            self.y_train[:, None],
            X,
            parameters=parameters,
            random_states=[derive_seed(*self.key, self.method)],
            path=user_file(self.implementation),
        )
        return next(fitted)

    def tece(self, predictions: Predictions) -> float:
        """Return the true epistemic calibration error (TECE) at the test set."""
        from epistemic_calibration.metrics import true_epistemic_calibration_error

        return true_epistemic_calibration_error(
            true_probability(self.X_test),
            predictions.hypotheses,
            epistemic_uncertainty=predictions.epistemic_uncertainty,
        )

    def eece(self, predictions: Predictions, n_bins: int, binning: str) -> Any:
        """Return the EECE at the test set and its parts, as `metrics.decompose_eece` does."""
        from epistemic_calibration.metrics import decompose_eece

        return decompose_eece(
            self.y_test,
            predictions.hypotheses,
            epistemic_uncertainty=predictions.epistemic_uncertainty,
            binning=binning,
            bins=self.bins(predictions, n_bins, binning),
        )

    def bins(self, predictions: Predictions, n_bins: int, binning: str) -> np.ndarray:
        """Return the bin of each test point."""
        from epistemic_calibration.metrics import assign_bins

        # In the precision in which the benchmark stores hypotheses, and twice as fast.
        return assign_bins(
            predictions.hypotheses.astype(np.float32),
            n_bins=n_bins,
            binning=binning,
            random_state=derive_seed(*self.key, "bins"),
        )

    def errors(self, n_bins: int, binning: str, **context: Any) -> list[dict[str, Any]]:
        """Fit the method and return TECE and EECE as `rows` does."""
        found = self.fit_predict()
        values = {"tece": self.tece(found), "eece": self.eece(found, n_bins, binning).eece}
        return self.rows(values, found, n_bins, binning, **context)

    def rows(
        self,
        values: Mapping[str, float],
        predictions: Predictions,
        n_bins: int,
        binning: str,
        **context: Any,
    ) -> list[dict[str, Any]]:
        """Return values by metric as rows of a tidy table, with what they have in common."""
        common = {
            "n_bins": n_bins,
            "n_hypotheses": predictions.hypotheses.shape[1],
            "binning": binning,
            "n_train": len(self.y_train),
            "n_test": len(self.y_test),
        }
        return [
            {**context, "metric": name, "value": float(value), **common}
            for name, value in values.items()
        ]


def point_prediction(predictions: Predictions) -> np.ndarray:
    """Return the estimates of P(Y = 1 | x), shape (n_samples,): a method's own, or the mean."""
    if predictions.prediction is not None:
        return predictions.prediction
    return predictions.hypotheses.mean(axis=1, dtype=np.float64)


@dataclass(frozen=True)
class Experiment:
    """One toy experiment: how its table is made and drawn, and which methods it is run with.

    Attributes
    ----------
    measure : callable
        Gets a `Toy` and the settings of the experiment, and returns the table of one seed and
        method, or its rows. Each setting is annotated with its type and, as ``Annotated[int,
        {"ge": 2, "description": "training points"}]``, with its bounds and a description;
        annotations must be valid at run time.
    plot : callable
        Gets the table, methods and seeds joined, and a
        `epistemic_calibration.paper.toy._drawing.Canvas`; returns the figure.
    methods : bool
        Whether the experiment is run with methods of the benchmark.
    controls : tuple of str
        Further names it is run with, whatever the methods: ``oracle`` is the true
        P(Y = 1 | x). An experiment without methods needs exactly one, to name its table.

    The canvas is passed in, so that the file of an experiment does not import how figures look:
    the workflow would rerun every fit after a change of colour.
    """

    measure: Callable[..., DataFrame | list[dict[str, Any]]]
    plot: Callable[[DataFrame, Canvas], Figure]
    methods: bool = True
    controls: tuple[str, ...] = ()

    def run(
        self,
        *,
        seed: int,
        method: str | None = None,
        implementation: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> DataFrame:
        """Return the table of one seed and method: its name and the seed, then what is measured."""
        import pandas as pd

        name = self.measure.__module__.rpartition(".")[2]
        toy = Toy(name, seed, method, implementation, parameters)
        table = pd.DataFrame(self.measure(toy, **settings))
        table.insert(0, "seed", seed)
        if self.methods:
            table.insert(0, "method", method)
        return table

    def settings(self) -> dict[str, tuple[Any, Any, dict[str, Any]]]:
        """Return the settings by name: annotation, default, and bounds and description.

        The annotation is without the outermost ``Annotated``; items of a sequence keep theirs.
        The default is ``...`` where there is none, as pydantic writes it.

        Examples
        --------
        >>> from epistemic_calibration.paper.toy import load_experiment
        >>> load_experiment("dataset").settings()
        {'n_samples': (<class 'int'>, 500, {'ge': 1, 'description': 'points in the sample'})}
        """
        _, *given = inspect.signature(self.measure).parameters.values()
        # Without what the function returns: pandas is not imported here.
        hints = get_type_hints(
            SimpleNamespace(__annotations__={p.name: p.annotation for p in given}),
            globalns=self.measure.__globals__,
            include_extras=True,
        )
        found = {}
        for p in given:
            annotation, metadata = hints[p.name], {}
            if get_origin(annotation) is Annotated:
                annotation, metadata = get_args(annotation)
            default = ... if p.default is inspect.Parameter.empty else p.default
            found[p.name] = (annotation, default, dict(metadata))
        return found

    def runs(self, methods: Sequence[str]) -> list[str]:
        """Return the names the experiment is run with, given the methods of its entry.

        Examples
        --------
        >>> from epistemic_calibration.paper.toy import load_experiment
        >>> load_experiment("eece_per_method").runs(["random_forest"])
        ['random_forest', 'oracle']
        """
        return [*(methods if self.methods else ()), *self.controls]

    def arguments(
        self, settings: Mapping[str, Any], method: str, entry: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the keywords of `run` but ``seed``; ``entry`` is None for a control."""
        arguments = {**settings, "method": method}
        if entry is not None:
            arguments |= {name: entry[name] for name in ("implementation", "parameters")}
        return arguments
