"""Epistemic calibration: methods, metrics and the steps of the benchmark.

The package is importable without Snakemake, and importing it loads nothing heavy:
each module imports only what it uses.
"""

__version__ = "0.1.0"

__all__ = [
    "Evaluation",
    "Slices",
    "__version__",
    "adapters",
    "evaluate",
    "hypotheses_of",
    "metrics",
]


def __getattr__(name):
    # No import statement: whatever a job of the benchmark imports would count as its code.
    from importlib import import_module

    if name in ("Evaluation", "evaluate"):
        return getattr(import_module("epistemic_calibration.evaluation"), name)
    if name == "Slices":
        return import_module("epistemic_calibration._slices").Slices
    if name == "hypotheses_of":
        return import_module("epistemic_calibration.adapters").hypotheses_of
    if name in ("adapters", "metrics"):
        return import_module(f"epistemic_calibration.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
