"""When Snakemake looks for jobs that can start."""

from __future__ import annotations

import math
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
    if getattr(scheduler, "_next_look", math.inf) <= due:
        return

    def look() -> None:
        # Told by the look itself, not by the clock, which may run on less than the timer did.
        scheduler._next_look = math.inf
        scheduler._open_jobs.release()

    scheduler._next_look = due
    timer = threading.Timer(delay, look)
    timer.daemon = True
    timer.start()
