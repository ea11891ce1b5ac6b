"""One row per method with the common metrics, in the order of the paper: by EECE."""

from __future__ import annotations

from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.tables._by_method import ranked_table
from epistemic_calibration.report.tables._table import Table

SUFFIX = "_by_eece"


def make(results: DatasetResults) -> Table:
    """Return one row per method: mean ± sd of the metrics of the table ``by_eece``."""
    return ranked_table(
        results,
        table="by_eece",
        caption=f"Methods by EECE on {results.title}: mean ± standard deviation over "
        f"{results.size_text()}",
        notes=(
            "EECE = Σ w |g² − W|: g² is what the mean of the hypotheses gets wrong, W is the "
            "scatter that the bins average away.",
            "Ranked by EECE; controls are not ranked.",
        ),
    )
