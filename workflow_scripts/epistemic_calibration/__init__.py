"""Epistemic calibration: methods, metrics and the steps of the benchmark.

The package is importable without Snakemake, and importing it loads nothing heavy:
each module imports only what it uses.
"""

__version__ = "0.1.0"
