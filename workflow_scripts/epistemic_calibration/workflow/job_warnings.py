"""What jobs warn of: kept with their results, handed on to what is made from these.

A job that fits may find that its result says little, and still end well: a chain that did not
converge, an autoencoder that learnt nothing. Each warning that its code logs, or that Python
shows, goes into the receipts of its results, and from there into the receipts of everything
made from them, so that a table knows it, also when the job does not run again.
"""

from __future__ import annotations

import logging
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

# First parts of the names of loggers whose warnings speak of results: the library's, Python's, and
# that of methods which log without one of their own.
_LOGGERS = {"epistemic_calibration", "py", "root"}
#: What Python's own logger says of a warning: "PATH:LINE: CATEGORY: TEXT", and the line of code.
_OF_PYTHON = re.compile(
    r"(?P<file>.*?):(?P<line>\d+): (?P<category>\w+): (?P<text>.*?)\n", re.DOTALL
)
# What speaks of code, not of numbers.
_ABOUT_CODE = {
    "DeprecationWarning",
    "PendingDeprecationWarning",
    "FutureWarning",
    "ImportWarning",
    "ResourceWarning",
    "SyntaxWarning",
}
_MAX_LENGTH = 300


class WarningCollector(logging.Handler):
    """Count the warnings of this process, each text for itself.

    Examples
    --------
    >>> collector = WarningCollector()
    >>> log = logging.getLogger("epistemic_calibration")
    >>> log.addHandler(collector)
    >>> for _ in range(3):
    ...     log.warning("the chain has not converged")
    >>> collector.found("hypotheses/mine-0", {"method": "mine"})[0]["count"]
    3
    >>> log.removeHandler(collector)
    """

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)
        self.counts: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Count a log record, unless it is an error, speaks of code, or is of another library."""
        if record.levelno >= logging.ERROR or record.name.split(".")[0] not in _LOGGERS:
            return
        text = record.getMessage()
        if record.name == "py.warnings" and (told := _OF_PYTHON.match(text)):
            if told["category"] in _ABOUT_CODE:
                return
            place = f"{Path(told['file']).name}, line {told['line']}"
            text = f"{told['category']}: {told['text']} ({place})"
        self.counts[textwrap.shorten(text, _MAX_LENGTH, placeholder=" …")] += 1

    def install(self) -> None:
        """Collect from now on; Python's warnings go to the log, the same one each time it comes."""
        logging.getLogger().addHandler(self)
        logging.captureWarnings(True)
        # Python shows one of a place only, so that a count would depend on what was imported.
        for category in (UserWarning, RuntimeWarning):
            warnings.filterwarnings("always", category=category)

    def found(self, job: str, where: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the warnings so far as receipts hold them."""
        origin = {"job": job, "stage": job.partition("/")[0], "where": dict(where)}
        return [{**origin, "text": text, "count": n} for text, n in self.counts.items()]


def merged(lists: Iterable[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return warnings that came by several ways, each once, in an order of their own.

    Examples
    --------
    >>> one = {"job": "a", "stage": "encoder", "where": {}, "text": "no better", "count": 1}
    >>> len(merged([[one], [one]]))
    1
    """
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for warning in (w for some in lists for w in some):
        found.setdefault((warning["stage"], warning["job"], warning["text"]), dict(warning))
    return [found[key] for key in sorted(found)]
