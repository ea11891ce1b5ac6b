"""Jobs of other runs that are still at work in this folder, as those of one that was killed.

Snakemake locks a folder, and `--unlock` asks nobody whether jobs go on. Two jobs that make the same
result would do no harm to numbers, since files appear whole and jobs check what they read; but one
of them would be for nothing, and could remove what the other has made.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil

from epistemic_calibration.files import write_text
from epistemic_calibration.workflow.slurm import queued_jobs

# What each run through SLURM makes, in a file of its name.
_RUNS = Path(".snakemake", "slurm_runs")
_MOST_NAMED = 10


def note_run_in_queue(run: str, outputs: Collection[str]) -> None:
    """Note what a run through SLURM makes, before its first job is in the queue."""
    write_text(_RUNS / run, "\n".join(sorted(outputs)))


def jobs_still_at_work(outputs: Collection[str], through_slurm: bool) -> str:
    """Return what makes some of these results right now, and how to go on, or nothing.

    Parameters
    ----------
    outputs : collection of str
        What the run that is about to start makes.
    through_slurm : bool
        Whether it uses SLURM.

    Raises
    ------
    RuntimeError
        If the queue of SLURM cannot be read, and this run or an earlier one needs it.
    """
    ways = []
    if numbers := [str(process.pid) for process in orphans(outputs)]:
        ways.append(("processes", numbers, f"kill {' '.join(numbers)}"))
    if numbers := _in_queue(outputs, through_slurm):
        arrays = dict.fromkeys(re.match(r"\d+", number)[0] for number in numbers)
        ways.append(("SLURM", numbers, f"scancel {' '.join(arrays)}"))
    if not ways:
        return ""
    named = "; ".join(f"{kind} {_first_of(numbers)}" for kind, numbers, _ in ways)
    commands = "\n".join(f"  {command}" for *_, command in ways)
    return (
        f"jobs of another run make results that this one would make, too: {named}. If that run is "
        f"at work, leave it alone. If it was killed, wait until its jobs are done, or end them with"
        f"\n{commands}\nThen type\n  snakemake --unlock\nand run again; what is finished is kept."
    )


def orphans(outputs: Collection[str]) -> Iterator[psutil.Process]:
    """Yield processes of this machine that make some of these results, and whose run is gone."""
    here = Path.cwd()
    for process in psutil.process_iter():
        try:
            arguments = process.cmdline()
            if (
                "--spec" in arguments
                and not {*outputs}.isdisjoint(arguments)
                and Path(process.cwd()) == here
                and not any(map(_is_snakemake, process.parents()))
            ):
                yield process
        except psutil.Error:
            # It has ended, or belongs to somebody else.
            continue


def _is_snakemake(process: psutil.Process) -> bool:
    return any("snakemake" in argument for argument in process.cmdline())


def _in_queue(outputs: Collection[str], through_slurm: bool) -> list[str]:
    if not through_slurm and (not _RUNS.is_dir() or shutil.which("squeue") is None):
        return []
    try:
        jobs = queued_jobs(Path.cwd())
    except (OSError, RuntimeError) as error:
        raise RuntimeError(
            f"squeue fails, so whether jobs of an earlier run are still at work here cannot be "
            f"told: {error}"
        ) from None
    numbers = [job.number for job in jobs if _makes_some_of(job.run, outputs)]
    return sorted(numbers, key=lambda number: [int(part) for part in re.findall(r"\d+", number)])


def _makes_some_of(run: str, outputs: Collection[str]) -> bool:
    try:
        return not {*outputs}.isdisjoint((_RUNS / run).read_text(encoding="utf-8").splitlines())
    except OSError:
        # Nobody has noted what it makes, or the note was deleted.
        return True


def _first_of(numbers: list[str]) -> str:
    more = len(numbers) - _MOST_NAMED
    return ", ".join(numbers[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
