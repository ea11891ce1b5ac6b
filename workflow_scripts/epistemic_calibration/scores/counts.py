"""How many samples the scores of a task are of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from epistemic_calibration.scores.base import POSITIVE, Inputs, Metric, Row

METRICS = (
    Metric("n_samples", "Test inputs", 0, POSITIVE),
    Metric("n_positive", "Positive test inputs", 0, POSITIVE),
)


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield the numbers of test inputs and of the positive ones among them."""
    yield Row("n_samples", len(inputs.sample))
    yield Row("n_positive", int(np.count_nonzero(inputs.sample.y)))
