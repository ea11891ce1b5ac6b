"""What SLURM says: which jobs of a folder are in its queue, and why one of them ended early."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

# The plugin names all jobs of a run after the run, a UUID behind a prefix of the user's.
_RUN = re.compile(r"(?:.*_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SECONDS = 60
_ENDED = re.compile(r"SLURM-job '(?P<job>[^']+)' failed.*?(?:status is: '(?P<state>\w+)'|$)", re.S)
_REFUSED = re.compile(r"SLURM sbatch failed\. The error message was '(?P<said>.*?)'\.\n", re.S)
# Not every configuration tells in the state what its log tells.
_TOLD = {
    "OUT_OF_MEMORY": re.compile(r"oom.?kill|out of memory|memory limit", re.IGNORECASE),
    "TIMEOUT": re.compile(r"DUE TO TIME LIMIT"),
    "NODE_FAIL": re.compile(r"DUE TO NODE FAILURE"),
    "PREEMPTED": re.compile(r"DUE TO PREEMPTION"),
    "CANCELLED": re.compile(r"CANCELLED AT"),
}
_LIMITS = {
    "OUT_OF_MEMORY": ("mem_mb", "used more memory than its {} MB"),
    "TIMEOUT": ("runtime", "took longer than its {} minutes"),
}
_CAUSES = {
    "NODE_FAIL": "its node failed",
    "BOOT_FAIL": "its node did not start",
    "PREEMPTED": "jobs of a higher priority took its place",
    "DEADLINE": "it would have ended after its deadline",
    "CANCELLED": "it was cancelled, as by scancel",
}
_TAIL = 4000


class QueuedJob(NamedTuple):
    """A job in the queue: its number, such as ``7_1`` or ``7_[2-3]``, and the name of its run."""

    number: str
    run: str


def queued_jobs(folder: str | Path) -> list[QueuedJob]:
    """Return the jobs of Snakemake's runs in a folder that wait or run, whoever started them.

    Raises
    ------
    OSError
        If there is no ``squeue``.
    RuntimeError
        With what it says, if the queue cannot be read.
    """
    command = ["squeue", "--noheader", "--format=%i|%T|%j|%Z"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"no answer within {_SECONDS} s") from None
    if done.returncode != 0:
        raise RuntimeError(" ".join(done.stderr.split()) or f"exit status {done.returncode}")
    return parse_queue(done.stdout, folder)


def parse_queue(table: str, folder: str | Path) -> list[QueuedJob]:
    """Return the jobs of Snakemake's runs in a folder.

    Parameters
    ----------
    table : str
        Lines ``number|state|name|working folder``.
    folder : path

    Examples
    --------
    >>> run = "35e87770-1707-43ff-9bb9-f450e6d2cba4"
    >>> parse_queue(f"7_1|RUNNING|{run}|/tmp\\n8|RUNNING|wrap|/tmp\\n9|PENDING|{run}|/", "/tmp")
    [QueuedJob(number='7_1', run='35e87770-1707-43ff-9bb9-f450e6d2cba4')]
    """
    here, found = os.path.realpath(folder), []
    for line in table.splitlines():
        number, state, name, where = line.split("|", 3)
        # What is completing has been told to end, and may stay so for ever where a node is lost.
        if state != "COMPLETING" and _RUN.fullmatch(name) and os.path.realpath(where) == here:
            found.append(QueuedJob(number, name))
    return found


def end_of_job(message: str, log: str | Path | None, rule: str, asked: Mapping[str, Any]) -> str:
    """Return why SLURM ended a job, and which option mends it, or nothing where it has not.

    Of a job that could not be submitted, what sbatch or the plugin says.

    Parameters
    ----------
    message : str
        What the plugin says of the job.
    log : path or None
        SLURM's own log of the job.
    rule : str
    asked : mapping
        What the job asked for: ``mem_mb``, and ``runtime`` in minutes.

    Examples
    --------
    >>> message = "SLURM-job '7_1' failed, SLURM status is: 'TIMEOUT'."
    >>> print(end_of_job(message, None, "scores", {"mem_mb": 4000, "runtime": 9}))
    SLURM ended job 7_1: it took longer than its 9 minutes. More: --set-resources=scores:runtime=18
    """
    ended = _ENDED.search(message)
    if ended is None:
        # It was not submitted.
        refused = _REFUSED.match(message)
        if refused is None:
            return message.partition("\n")[0]
        return f"SLURM refuses the job: {' '.join(refused['said'].split())}"
    state = ended["state"] or ""
    if state in ("FAILED", "CANCELLED", ""):
        tail = _tail(log)
        state = next((name for name, told in _TOLD.items() if told.search(tail)), state)
    job = f"SLURM ended job {ended['job']}"
    if state in _LIMITS:
        resource, what = _LIMITS[state]
        had = asked.get(resource)
        option = f"--set-resources={rule}:{resource}={2 * had}" if isinstance(had, int) else ""
        return f"{job}: it {what.format(had)}" + (f". More: {option}" if option else "")
    return f"{job}: {_CAUSES[state]}" if state in _CAUSES else ""


def patient(query: Callable[..., Any], tell: Callable[[str], None]) -> Callable[..., Any]:
    """Return a query of the plugin's that outlasts a queue that does not answer.

    The plugin (2.8) forgets its jobs, and waits for ever, if five queries in a row have failed, as
    while a controller is restarted. To a query that knows no job it says that they still wait.

    Parameters
    ----------
    query : callable
        ``query_job_status`` of the plugin.
    tell : callable
        Called with a sentence, once for each time that the queue does not answer.
    """
    answered = True

    async def patient_query(*args: Any, **kwargs: Any) -> tuple[dict[str, str], float]:
        nonlocal answered
        states, seconds = await query(*args, **kwargs)
        if states is None and answered:
            tell("SLURM does not answer; the run goes on when it does, and its jobs meanwhile")
        answered = states is not None
        return (states, seconds) if answered else ({}, 0.0)

    return patient_query


def _tail(log: str | Path | None) -> str:
    try:
        return Path(log or "").read_bytes()[-_TAIL:].decode("utf-8", errors="replace")
    except OSError:
        return ""
