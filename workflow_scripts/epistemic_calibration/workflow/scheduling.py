"""When Snakemake looks for jobs that can start."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snakemake.scheduling.job_scheduler import JobScheduler


def look_again(scheduler: JobScheduler, delay: float) -> None:
    """Have a scheduler look again after ``delay`` seconds, unless it will by then.

    Each look of Snakemake's asks for another one, and each job that ends is a look of its own:
    with every finished job there would be one more, every few seconds, until no job waits. A
    timer that is left over at the end of a run does not hold it up.
    """
    now = time.monotonic()
    due = now + delay
    # One that is due has been made, or is being made: it is not the one to wait for.
    if now < getattr(scheduler, "_next_look", now) <= due:
        return
    scheduler._next_look = due
    timer = threading.Timer(delay, scheduler._open_jobs.release)
    timer.daemon = True
    timer.start()
