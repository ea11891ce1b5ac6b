"""How many label sets a test must draw so that Holm's correction can reject at all."""

from __future__ import annotations

import math

#: Level of all tests of one name, data set and seed together.
LEVEL = 0.05
#: Steps of `adequate_resamples`: a further method rarely leads to the next one, which would
#: score all methods again. The first is enough for 15 methods on ten tasks.
_STEP = 3000
#: Beyond, tests would take longer than fits: about 20 s each for 10,000 inputs.
_MOST = 48_000


def resamples_needed(n_tests: int) -> int:
    """Return the smallest number of resamples with which Holm can reject any of the tests.

    A p-value by resampling is 1/(n_resamples + 1) at least, and Holm multiplies the smallest of
    them by the number of tests.

    Examples
    --------
    >>> resamples_needed(150)
    2999
    """
    return math.ceil(n_tests / LEVEL) - 1


def adequate_resamples(n_tests: int) -> int:
    """Return what ``n_resamples: auto`` stands for: `resamples_needed`, rounded up.

    It is one less than 3000, 6000, 12,000, …, at most 48,000, which is too few for more than
    2,400 tests: methods and controls times tasks of a data set.

    Examples
    --------
    >>> [adequate_resamples(n_tests) for n_tests in (1, 150, 151, 300, 10_000)]
    [2999, 2999, 5999, 5999, 47999]
    """
    steps = (resamples_needed(n_tests) + 1) / _STEP
    return min(_STEP * 2 ** max(0, math.ceil(math.log2(steps))), _MOST) - 1
