import threading
import time
from types import SimpleNamespace

from snakemake.scheduling.job_scheduler import JobScheduler

from epistemic_calibration.workflow.scheduling import look_again


def scheduler():
    return SimpleNamespace(_open_jobs=threading.Semaphore(0))


def test_snakemake_has_what_is_replaced():
    assert callable(JobScheduler._schedule_reevalutation)


def test_many_who_ask_get_one_look():
    asked = scheduler()
    for _ in range(50):
        look_again(asked, 0.2)
    assert asked._open_jobs.acquire(timeout=20)
    assert not asked._open_jobs.acquire(timeout=0.5)
    # The next one who asks gets the next.
    look_again(asked, 0.01)
    assert asked._open_jobs.acquire(timeout=20)


def test_an_earlier_look_does_not_wait_for_a_later_one():
    asked = scheduler()
    look_again(asked, 3600)
    look_again(asked, 0.01)
    assert asked._open_jobs.acquire(timeout=20)


def test_what_is_left_over_does_not_hold_up_the_end():
    asked, before = scheduler(), set(threading.enumerate())
    look_again(asked, 3600)
    (timer,) = set(threading.enumerate()) - before
    assert timer.daemon
    timer.cancel()
    timer.join(20)
    assert not asked._open_jobs.acquire(timeout=0)


def test_a_look_in_progress_is_followed_by_another():
    asked = scheduler()
    looks, end = 0, time.monotonic() + 1
    while time.monotonic() < end:
        look_again(asked, 0.01)
        looks += asked._open_jobs.acquire(timeout=20)
    assert looks > 5


def test_who_asks_while_a_look_is_being_made_gets_another():
    asked, looks = SimpleNamespace(), threading.Semaphore(0)

    class AsksAtOnce:
        """The scheduler is faster than the timer's thread, which has still to end."""

        def release(self):
            looks.release()
            look_again(asked, 0.01)

    asked._open_jobs = AsksAtOnce()
    look_again(asked, 0.01)
    for _ in range(3):
        assert looks.acquire(timeout=20)


def test_a_timer_that_is_early_by_the_clock_does_not_lose_the_next_look(monkeypatch):
    asked = scheduler()
    look_again(asked, 0.01)
    just_before = asked._next_look - 1e-6
    assert asked._open_jobs.acquire(timeout=20)
    monkeypatch.setattr(time, "monotonic", lambda: just_before)
    look_again(asked, 0.01)
    assert asked._open_jobs.acquire(timeout=20)
