"""What a toy experiment is, and the settings that several experiments share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from epistemic_calibration.paper.toy_drawing import Canvas

#: Settings that several experiments share. The bounds are named as by
#: `epistemic_calibration.parameters.parameter`.
TrainingSetSize = Annotated[int, {"ge": 2, "description": "training points"}]
TestSetSize = Annotated[int, {"ge": 1, "description": "test points"}]

#: Keywords of ``run`` that come from the workflow, not from the experiment's settings.
_NOT_SETTINGS = ("method", "seed", "parameters", "implementation")


@dataclass(frozen=True)
class Experiment:
    """One toy experiment: how its table is made and drawn, and which methods it is run with.

    Attributes
    ----------
    run : callable
        Makes the table of one seed, and of one method if the experiment has methods. All its
        parameters are keywords: ``seed``; if the experiment has methods also ``method``, the
        name in the table, ``implementation``, the registered name or the file of the method,
        by default ``method``, and ``parameters``, a mapping, by default the method's own. Any
        others are the settings of the experiment. Each is annotated with its type and, as
        ``Annotated[int, {"ge": 2, "description": "training points"}]``, with its bounds and a
        description; annotations must be valid at run time.
    plot : callable
        Gets the table, methods and seeds joined, and a
        `epistemic_calibration.paper.toy_drawing.Canvas`; returns the figure.
    methods : bool
        Whether the experiment is run with methods of the benchmark.
    controls : tuple of str
        Further names it is run with, whatever the methods: ``oracle`` is the true
        P(Y = 1 | x). An experiment without methods needs exactly one, to name its table.

    Notes
    -----
    The canvas is passed in, so that the file of an experiment does not import how figures
    look: the workflow would rerun every fit after a change of colour.
    """

    run: Callable[..., pd.DataFrame]
    plot: Callable[[pd.DataFrame, Canvas], Figure]
    methods: bool = True
    controls: tuple[str, ...] = ()

    def settings(self) -> dict[str, tuple[Any, Any, dict[str, Any]]]:
        """Return the settings by name: their annotation, default and metadata.

        The annotation is without the outermost ``Annotated``; items of a sequence keep
        theirs. The default is ``...`` where there is none, as pydantic writes it. The
        metadata are the bounds and the description.

        Examples
        --------
        >>> from epistemic_calibration.paper.toy import load_experiment
        >>> load_experiment("dataset").settings()
        {'n_samples': (<class 'int'>, 500, {'ge': 1, 'description': 'points in the sample'})}
        """
        signature = inspect.signature(self.run).parameters
        names = [name for name in signature if name not in _NOT_SETTINGS]
        # Without what the function returns: pandas is not imported here.
        bare = [name for name in names if name not in self.run.__annotations__]
        if bare:
            raise TypeError(f"{self.run.__module__}.run lacks annotations of {', '.join(bare)}")
        annotations = {name: self.run.__annotations__[name] for name in names}
        hints = get_type_hints(
            SimpleNamespace(__annotations__=annotations),
            globalns=self.run.__globals__,
            include_extras=True,
        )
        found = {}
        for name in names:
            default = signature[name].default
            annotation, metadata = hints[name], {}
            if get_origin(annotation) is Annotated:
                annotation, *parts = get_args(annotation)
                for part in parts:
                    metadata |= part
            found[name] = (
                annotation,
                ... if default is inspect.Parameter.empty else default,
                metadata,
            )
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
        """Return the keywords of ``run`` but ``seed``.

        Parameters
        ----------
        settings : mapping
            Values of settings by name; those left out take their defaults.
        method : str
            One of `runs`.
        entry : mapping, optional
            ``implementation`` and ``parameters`` of a method; None for a control. Other keys
            are not read.
        """
        arguments = dict(settings)
        if self.methods:
            arguments["method"] = method
        if entry is not None:
            arguments |= {name: entry[name] for name in ("implementation", "parameters")}
        return arguments
