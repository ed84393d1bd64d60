from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from rlm.tasks.context.lanes import Job, Lanes
from tests.fakes.queued_executor import QueuedExecutor
from tests.log_records import fields_of


class Work:
    """Jobs that record their names when they run."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def job(self, *names: str) -> Job:
        """Return a job with these names, each of which runs after the one before."""

        def run() -> Job | None:
            self.done.append(names[0])
            return self.job(*names[1:]) if names[1:] else None

        return run


def test_lanes_when_keys_have_several_jobs_then_take_turns() -> None:
    """Scenario 25: a partition with many jobs does not delay other partitions."""
    work, executor = Work(), QueuedExecutor()
    lanes = Lanes(executor, "copy", limit=1)
    lanes.offer("a", work.job("a1", "a2", "a3"))
    lanes.offer("b", work.job("b1", "b2"))
    lanes.offer("c", work.job("c1"))

    executor.run_all()

    assert work.done == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert not any(map(lanes.is_busy, "abc"))


def test_lanes_when_a_key_is_busy_then_another_job_of_it_is_not_taken() -> None:
    work, executor = Work(), QueuedExecutor()
    lanes = Lanes(executor, "copy")

    taken = [lanes.offer("a", work.job("first")), lanes.offer("a", work.job("second"))]

    assert (lanes.is_busy("a"), lanes.is_busy("b")) == (True, False)
    executor.run_all()
    assert taken == [True, False]
    assert work.done == ["first"]


def test_lanes_when_the_limit_is_reached_then_the_rest_waits() -> None:
    work, executor = Work(), QueuedExecutor()
    lanes = Lanes(executor, "copy", limit=2)

    for key in "abc":
        lanes.offer(key, work.job(key))

    assert len(executor.waiting) == 2
    executor.run_all()
    assert work.done == ["a", "b", "c"]


def test_lanes_when_a_job_is_written_off_then_its_place_and_key_are_free() -> None:
    """Scenario 12: a job that hangs delays no other, and its late return changes nothing."""
    work, executor = Work(), QueuedExecutor()
    lanes = Lanes(executor, "copy", limit=1)
    hung = work.job("hung", "never")
    lanes.offer("a", hung)
    lanes.offer("b", work.job("b"))
    lanes.write_off("a", hung)
    lanes.offer("a", work.job("again"))
    lanes.write_off("a", hung)

    executor.run(1)
    executor.run(1)
    executor.run_all()

    assert work.done == ["b", "again", "hung"]
    assert not any(map(lanes.is_busy, "ab"))


def test_lanes_when_only_waiting_then_is_not_written_off() -> None:
    work, executor = Work(), QueuedExecutor()
    lanes = Lanes(executor, "copy", limit=1)
    waiting = work.job("b")
    lanes.offer("a", work.job("a"))
    lanes.offer("b", waiting)

    lanes.write_off("b", waiting)

    executor.run_all()
    assert work.done == ["a", "b"]


def test_lanes_when_asked_what_runs_then_neither_waiting_jobs_nor_those_written_off() -> None:
    work, executor = Work(), QueuedExecutor()
    lanes = Lanes(executor, "copy", limit=2)
    jobs = {key: work.job(key) for key in "abc"}
    for key, job in jobs.items():
        lanes.offer(key, job)
    running = lanes.running()

    lanes.write_off("a", jobs["a"])

    assert running == (jobs["a"], jobs["b"])
    assert lanes.running() == (jobs["b"], jobs["c"])
    assert [lanes.job(key) for key in "abc"] == [None, jobs["b"], jobs["c"]]


def test_lanes_when_a_job_has_ended_meanwhile_then_the_next_one_is_not_written_off() -> None:
    work, executor = Work(), QueuedExecutor()
    lanes = Lanes(executor, "copy", limit=1)
    ended = work.job("ended", "next")
    lanes.offer("a", ended)
    executor.run()

    lanes.write_off("a", ended)

    assert lanes.is_busy("a")
    executor.run_all()
    assert work.done == ["ended", "next"]


class ThreadlessExecutor(QueuedExecutor):
    """Queues a job and then fails, as ThreadPoolExecutor does, while `is_failing`."""

    is_failing = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        if self.is_failing:
            raise RuntimeError("no more threads")
        return future


def test_lanes_when_a_thread_cannot_be_started_then_only_that_job_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    work, executor = Work(), ThreadlessExecutor()
    lanes = Lanes(executor, "copy", limit=2)
    running = work.job("running")
    lanes.offer("a", running)
    executor.is_failing = True
    lanes.offer("b", work.job("dropped"))
    lanes.offer("c", work.job("also dropped"))
    during = lanes.job("a"), lanes.job("b"), lanes.waiting_count()
    executor.is_failing = False

    again = lanes.offer("b", work.job("again"))

    assert during == (running, None, 0)
    assert again
    executor.run_all()
    assert work.done == ["running", "again"]
    (line,) = caplog.records
    assert (fields_of(line)["lane"], fields_of(line)["key"]) == ("copy", "b")


def test_lanes_when_another_thread_takes_the_job_then_it_is_not_dropped() -> None:
    """A pool with threads runs what it queued, although it could not start one more."""

    class Busy(ThreadlessExecutor):
        is_failing = True

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            try:
                return super().submit(fn, *args, **kwargs)
            finally:
                self.run_all()

    work = Work()
    lanes = Lanes(Busy(), "copy", limit=1)

    lanes.offer("a", work.job("a1", "a2"))

    assert work.done == ["a1", "a2"]
    assert not lanes.is_busy("a")
    assert not lanes.is_full()
