"""Tables and figures of scores."""

from __future__ import annotations

from epistemic_calibration import registry
from epistemic_calibration.report import figures, tables

__all__ = ["FIGURES", "TABLES", "figures", "tables"]

#: Names of the tables and of the figures that every data set has.
TABLES = registry.available(tables.__name__)
FIGURES = registry.available(figures.__name__)
