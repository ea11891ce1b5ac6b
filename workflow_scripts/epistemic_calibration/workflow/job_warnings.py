"""What jobs warn of: kept with their results, handed on to what is made from these.

A job that fits may find that its result says little, and still end well: a chain that did not
converge, an autoencoder that learnt nothing. Each warning that its code logs, or that Python
shows, goes into the receipts of its results, and from there into the receipts of everything
made from them, so that a table knows it, also when the job does not run again.
"""

from __future__ import annotations

import logging
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_PYTHON = logging.getLogger("py.warnings")
# First parts of the names of loggers whose warnings speak of results: the library's, Python's, and
# that of methods which log without one of their own.
_LOGGERS = {"epistemic_calibration", "py", "root"}
# What speaks of code, not of numbers.
_ABOUT_CODE = (
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ImportWarning,
    ResourceWarning,
    SyntaxWarning,
)
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
    >>> collector.found("results/a.npz", "hypotheses", {"method": "mine"})[0]["count"]
    3
    >>> log.removeHandler(collector)
    """

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)
        self.counts: Counter[str] = Counter()
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Count a log record, unless it is an error or of a library that logs for itself."""
        if record.levelno < logging.ERROR and record.name.split(".")[0] in _LOGGERS:
            self.counts[_one_line(record.getMessage())] += 1

    def show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: Any = None,
        line: str | None = None,
    ) -> None:
        """Log a warning of Python's the first time, and count it each time.

        In place of `warnings.showwarning`, whose arguments it has.
        """
        text = _one_line(f"{category.__name__}: {message} ({Path(filename).name}, line {lineno})")
        if text in self._told:
            if not issubclass(category, _ABOUT_CODE):
                self.counts[text] += 1
            return
        self._told.add(text)
        level = logging.INFO if issubclass(category, _ABOUT_CODE) else logging.WARNING
        _PYTHON.log(level, "%s", text)

    def install(self) -> None:
        """Collect from now on; warnings are told from errors, and each is counted."""
        logging.getLogger().addHandler(self)
        warnings.showwarning = self.show
        # Python shows one of a place only, so that a count would depend on what was imported.
        for category in (UserWarning, RuntimeWarning):
            warnings.filterwarnings("always", category=category)

    def found(self, job: str, stage: str, where: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the warnings so far as receipts hold them.

        Parameters
        ----------
        job : str
            What tells the job from others: its first output.
        stage : str
        where : mapping
            The job's wildcards.
        """
        origin = {"job": job, "stage": stage, "where": dict(where)}
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
        key = (warning["stage"], warning["job"], warning["text"])
        # A job that finishes its results one by one counts on from the one to the next.
        if key not in found or found[key]["count"] < warning["count"]:
            found[key] = dict(warning)
    return [found[key] for key in sorted(found)]


def _one_line(text: str) -> str:
    return textwrap.shorten(text, _MAX_LENGTH, placeholder=" …")
