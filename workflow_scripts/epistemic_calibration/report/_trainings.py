"""What tables say of: methods, or the trainings of a run alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epistemic_calibration.report.results import DatasetResults


def about_trainings(results: DatasetResults) -> Iterator[str]:
    """Yield what intervals, groups and comparisons of a data set are of."""
    n = results.n_trainings
    alone = [name for name in results.order if n.get(name) == 1]
    if n.max() < 2:
        yield (
            "Of these trainings: intervals, groups and comparisons are of one training of each "
            "method; trained anew, methods may change places. More seeds tell methods apart."
        )
        return
    yield (
        "Of methods: intervals, groups and comparisons are over test images and trainings, those "
        "with other seeds among them (t distribution, Satterthwaite's degrees of freedom)."
    )
    if results.one_encoder:
        yield "All trainings share one encoder: what another one would change is not in intervals."
    if alone:
        yield (
            f"Of one training only: {', '.join(results.labels(alone))}. Intervals are of this "
            f"training; in comparisons its standard deviation over trainings is taken to be that "
            f"of the other method."
        )
