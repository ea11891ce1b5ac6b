"""What a run prints: a line per job, why a job failed, and at the end its tables and warnings.

Snakemake's own text is in ``.snakemake/log/``.
"""

from __future__ import annotations

import logging
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.common import LogEvent

from epistemic_calibration.workflow.job_log import read_outcome
from epistemic_calibration.workflow.job_warnings import merged
from epistemic_calibration.workflow.provenance import read_receipt
from epistemic_calibration.workflow.slurm import end_of_job
from epistemic_calibration.workflow.warning_text import sentences

# What is in the log file, and tells a user nothing. Messages have no event of their own here.
_UNTOLD = (
    "Assuming unrestricted shared filesystem",
    "Building DAG of jobs",
    "Using shell:",
    "Conda environments: ignored",
    "Select jobs to execute",
    "Removing output files of failed job",
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete successfully",
    "Trying to restart job",
    # Of the plugin for SLURM; where it is an account that lacks, sbatch says so.
    "SLURM run ID:",
    "No SLURM account given",
    "No account was given",
    "Unable to guess SLURM account",
    "Cleaning up SLURM log files",
    "Falling back to 'sacct' for status queries",
)
_SUBMITTED = re.compile(r"Job \d+ has been submitted with SLURM jobid")
_UNTOLD_EVENTS = {
    LogEvent.JOB_STARTED,
    LogEvent.JOB_FINISHED,
    LogEvent.PROGRESS,
    LogEvent.RESOURCES_INFO,
    LogEvent.WORKFLOW_STARTED,
    LogEvent.RUN_INFO,
}
_LOCKED = "Directory cannot be locked"
# What the rules refuse, and which of their lines do so.
_REFUSED = re.compile(
    r'WorkflowError in file "[^"\n]*\.smk", line \d+:\n(?P<why>.*?)(?:\n  File "[^"\n]*", .*)?',
    re.DOTALL,
)
#: What ends jobs when a user ends the run.
_INTERRUPTED = ("SIGINT", "SIGHUP")
_NOTHING_TO_DO = "Nothing to be done"
# What Python says of a process that failed; a shell adds 128 to the signal that ended a command.
_END_OF_PROCESS = re.compile(
    r"Command '.*' (?:died with <Signals\.(\w+)|returned non-zero exit status (\d+))", re.DOTALL
)


class Screen:
    """In place of Snakemake's text on the screen.

    Parameters
    ----------
    jobs : callable
        Returns the jobs of the run, each with ``jobid``, ``message`` and ``benchmark``, and with
        ``rule``, ``resources``, ``attempt`` and ``restart_times`` where one fails; called when the
        first begins.
    cores : int or None
        How many run side by side; None where that is not known.
    closing : callable
        Returns the text that follows where nothing has to be done.
    silent : callable
        Returns whether Snakemake's own text is wanted, as of a dry run.
    """

    def __init__(
        self,
        jobs: Callable[[], Iterable[Any]],
        cores: int | None,
        closing: Callable[[], str],
        silent: Callable[[], bool],
    ) -> None:
        self._jobs, self._cores, self._closing, self._silent = jobs, cores, closing, silent
        self._known: dict[int, Any] = {}
        self._messages: dict[int, str] = {}
        self._expected: dict[int, float | None] = {}
        self._began: dict[int, float] = {}
        self._finished: set[int] = set()
        self._reasons: set[str] = set()
        self._start = time.monotonic()
        # Snakemake tells how a process ended before it tells whose it was, in the same thread.
        self._local = threading.local()
        #: Messages of the jobs that failed.
        self.failed: list[str] = []

    def install(self, logger: logging.Logger) -> None:
        """Take over what the default handler of Snakemake's logger writes."""
        for handler in logger.handlers:
            if handler.name == "DefaultStreamHandler":
                handler.addFilter(self._tell)
                plain = handler.formatter
                handler.setFormatter(_Told(plain))

    def _tell(self, record: logging.LogRecord) -> bool:
        """Return whether a record is told; the text goes with it."""
        if self._silent():
            return True
        event, message = getattr(record, "event", None), record.getMessage()
        text: str | None = None
        if event == LogEvent.JOB_FINISHED:
            self._finished.add(record.job_id)
        if (
            event in _UNTOLD_EVENTS
            or message.startswith(_UNTOLD)
            or (_SUBMITTED.match(message) and record.levelno == logging.INFO)
        ):
            return False
        if event == LogEvent.JOB_INFO:
            text = self._job(record)
        elif event == LogEvent.JOB_ERROR:
            text = self._failure(record)
        elif ended := _END_OF_PROCESS.search(message):
            self._local.ended = _signal(ended)
            return False
        elif _LOCKED in message:
            text = (
                "This folder is locked: either another run is at work here, or one was killed or "
                "lost its power. If none is at work, type\n  snakemake --unlock\nand run again; "
                "what was finished is kept."
            )
        elif refused := _REFUSED.fullmatch(message):
            text = f"Error: {refused['why']}"
        elif message.startswith(_NOTHING_TO_DO):
            text = "\n".join(filter(None, ("Nothing has to be made again.", self._closing())))
        record.told = text
        return text != ""

    def _job(self, record: logging.LogRecord) -> str:
        if not self._expected:
            self._start = time.monotonic()
            self._known = {job.jobid: job for job in self._jobs()}
            self._expected = {
                i: _seconds(job.benchmark) for i, job in self._known.items() if job.message
            }
        if not record.rule_msg:
            return ""
        self._messages[record.jobid] = record.rule_msg
        self._began[record.jobid] = time.monotonic()
        n = str(len(self._expected))
        times = [_clock(time.monotonic() - self._start)]
        left = self._seconds_left()
        if left is not None:
            times.append(f"about {_clock(left)} left")
        count = f"{len(self._began):>{len(n)}}/{n}"
        return f"[{count}  {', '.join(times)}] {record.rule_msg}"

    def _seconds_left(self) -> float | None:
        """Return how long the run takes still, if all that is left has run before."""
        waiting = {i: s for i, s in self._expected.items() if i not in self._finished}
        if self._cores is None or None in waiting.values():
            return None
        now = time.monotonic()
        left = [max(0, s - (now - self._began.get(i, now))) for i, s in waiting.items()]
        return max(sum(left) / self._cores, max(left, default=0))

    def _failure(self, record: logging.LogRecord) -> str:
        what = self._messages.get(record.jobid, f"rule {record.rule_name}")
        if getattr(self._local, "ended", "") in _INTERRUPTED:
            self._local.ended = ""
            return f"Stopped: {what}"
        job = self._known.get(record.jobid)
        outcome = read_outcome(record.log[0]) if record.log else None
        logs = [_from_here(path) for path in record.log]
        reason = outcome.reason if outcome else ""
        if job is not None and record.rule_msg:
            asked = job.resources
            reason = end_of_job(record.rule_msg, logs[-1], record.rule_name, asked) or reason
        if not reason:
            ended = getattr(self._local, "ended", "")
            reason = f"its process died with {ended}" if ended else "its process ended early"
        self._local.ended = ""
        if job is not None and job.attempt <= job.restart_times:
            attempts = f"attempt {job.attempt + 1} of {job.restart_times + 1}"
            head = f"Runs again ({attempts}): {what}"
        else:
            self.failed.append(what)
            head = f"FAILED: {what}"
        if reason in self._reasons:
            return f"{head}\n  for the same reason as above"
        self._reasons.add(reason)
        return "\n".join([head, f"  {reason}", *(f"  log: {path}" for path in logs)])


class _Told(logging.Formatter):
    def __init__(self, plain: logging.Formatter | None) -> None:
        super().__init__()
        self._plain = plain or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        told = getattr(record, "told", None)
        return self._plain.format(record) if told is None else told


def warnings_of(results: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return what the jobs behind results have warned of, each once.

    Parameters
    ----------
    results : iterable of (path, fingerprint)
        Results that are not there, or were made from another spec, are left out.
    """
    receipts = ((read_receipt(path), fingerprint) for path, fingerprint in results)
    return merged(
        receipt["warnings"]
        for receipt, fingerprint in receipts
        if receipt is not None and receipt["fingerprint"] == fingerprint
    )


def closing_text(
    summaries: Sequence[str],
    places: Mapping[str, str],
    warnings: Sequence[Mapping[str, Any]],
    labels: Mapping[str, str],
) -> str:
    """Return what a run ends with.

    Parameters
    ----------
    summaries : sequence of str
        Tables, as text.
    places : mapping
        Paths, by what is there.
    warnings : sequence of mapping
        As returned by `warnings_of`.
    labels : mapping
        What readers see of methods, by name.

    Examples
    --------
    >>> print(closing_text(["A table"], {"Tables": "results/tables/"}, [], {}))
    A table
    <BLANKLINE>
    Tables: results/tables/
    """
    parts = [summary.strip("\n") for summary in summaries]
    if places:
        width = max(map(len, places)) + 1
        parts.append("\n".join(f"{what + ':':{width}} {where}" for what, where in places.items()))
    if warnings:
        parts.append("\n".join(f"Warning: {text}" for text in sentences(warnings, labels)))
    return "\n\n".join(parts)


def _signal(ended: re.Match[str]) -> str:
    """Return the name of the signal that ended a process, or an empty text."""
    if ended[1]:
        return ended[1]
    number = int(ended[2]) - 128
    return signal.Signals(number).name if number in set(signal.Signals) else ""


def _seconds(benchmark: Any) -> float | None:
    """Return how long a job took the last time, from its benchmark file, or None."""
    try:
        return float(Path(str(benchmark)).read_text(encoding="utf-8").splitlines()[1].split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _clock(seconds: float) -> str:
    """Return a time as m:ss or h:mm:ss.

    >>> _clock(61.7), _clock(3600)
    ('1:01', '1:00:00')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _from_here(path: Any) -> Path:
    """Return a path relative to the working folder, where it lies in it."""
    path = Path(path)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
