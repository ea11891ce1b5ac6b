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
    due = time.monotonic() + delay
    timer = getattr(scheduler, "_timer", None)
    if timer is not None and timer.is_alive() and timer.due <= due:
        return
    timer = threading.Timer(delay, scheduler._open_jobs.release)
    timer.daemon = True
    timer.due = due
    scheduler._timer = timer
    timer.start()
