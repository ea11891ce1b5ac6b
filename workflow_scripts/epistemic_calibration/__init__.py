"""Epistemic calibration: methods, metrics and the steps of the benchmark.

The package is importable without Snakemake, and importing it loads nothing heavy:
each module imports only what it uses.
"""

__version__ = "0.1.0"

_HOMES = {
    "Evaluation": "evaluation",
    "Slices": "evaluation._slices",
    "adapters": "",
    "evaluate": "evaluation",
    "hypotheses_of": "adapters",
    "metrics": "",
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name):
    # No import statement: whatever a job of the benchmark imports would count as its code.
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"epistemic_calibration.{_HOMES[name] or name}")
    return getattr(module, name) if _HOMES[name] else module


def __dir__():
    return sorted({*globals(), *__all__})
