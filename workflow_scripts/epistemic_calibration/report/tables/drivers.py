"""What drives EECE: its parts beside the estimate of the error it stands for, and the tests."""

from __future__ import annotations

from collections.abc import Iterator

from epistemic_calibration.report._trainings import about_trainings
from epistemic_calibration.report.results import DatasetResults
from epistemic_calibration.report.tables._by_method import coarse_p_values, ranked_table
from epistemic_calibration.report.tables._table import WARNING, Table

SUFFIX = "_drivers"


def make(results: DatasetResults) -> Table:
    """Return one row per method with the metrics of the table ``drivers``.

    In the text the corrected TECE has the interval of its mean over tasks, which takes into
    account that they share their images; with several seeds, it is over trainings.

    Where each test drew too few label sets to reject anything, cells are empty and a note says so.
    """
    return ranked_table(
        results,
        table="drivers",
        caption=f"What drives EECE on {results.title}: means over {results.size_text()}",
        notes=(
            "EECE = Σ w |g² − W|. g²: what the mean of the hypotheses gets wrong, with the noise "
            "of the labels (the floor) in it. W: scatter of the hypotheses that the bins average "
            "away; it holds no label.",
            "Corrected TECE: without that noise, [confidence interval of the mean over tasks]; "
            "it is mean miscalibration plus epistemic dependence. "
            "It is of what its bins see, a lower bound of TECE: half and twice the bins show how "
            "it moves. The cross-fitted bound needs no bins.",
            "Corrected TECE is of the hypotheses; TECE with the reported uncertainty is at least "
            "the last of these columns. Of H draws from a right law it is above 0, by about their "
            "mean uncertainty/(H − 1) at most: compare few and many hypotheses with care.",
            *about_trainings(results),
            *_hidden_by_bins(results),
            "Rejected: tasks in which the test rejects at 0.05, by Holm over those of a seed.",
            *coarse_p_values(results),
        ),
    )


def _hidden_by_bins(results: DatasetResults) -> Iterator[str]:
    """Say so where the bound without bins is surely above what the bins see."""
    chosen, together = results.of_tasks, results.together
    bound = chosen[chosen["metric"] == "tece_cross_fitted_low"].groupby("method")["value"].mean()
    if "tece_corrected_high" not in together:
        return
    high = together["tece_corrected_high"].reindex(bound.index)
    if above := results.labels(bound.index[bound > high]):
        yield (
            f"{WARNING} the bins hide error of {', '.join(above)}: the lower limit of the bound "
            f"without bins is above the upper limit of the corrected TECE. Use more bins."
        )
