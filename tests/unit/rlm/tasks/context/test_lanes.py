from __future__ import annotations

from rlm.tasks.context.lanes import Job, Lanes
from tests.twins.held_executor import HeldExecutor


class Work:
    """Jobs that write down that they ran."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def job(self, *names: str) -> Job:
        """Jobs that follow one another."""

        def run() -> Job | None:
            self.done.append(names[0])
            return self.job(*names[1:]) if names[1:] else None

        return run


def test_lanes_when_keys_have_several_jobs_then_take_turns() -> None:
    """Scenario 25: a partition with many jobs does not delay the others."""
    work, executor = Work(), HeldExecutor()
    lanes = Lanes(executor, "copy", limit=1)
    lanes.offer("a", work.job("a1", "a2", "a3"))
    lanes.offer("b", work.job("b1", "b2"))
    lanes.offer("c", work.job("c1"))

    executor.run_all()

    assert work.done == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert not any(map(lanes.is_busy, "abc"))


def test_lanes_when_a_key_is_busy_then_another_job_of_it_is_not_taken() -> None:
    work, executor = Work(), HeldExecutor()
    lanes = Lanes(executor, "copy")

    taken = [lanes.offer("a", work.job("first")), lanes.offer("a", work.job("second"))]

    assert (lanes.is_busy("a"), lanes.is_busy("b")) == (True, False)
    executor.run_all()
    assert taken == [True, False]
    assert work.done == ["first"]


def test_lanes_when_the_limit_is_reached_then_the_rest_waits() -> None:
    work, executor = Work(), HeldExecutor()
    lanes = Lanes(executor, "copy", limit=2)

    for key in "abc":
        lanes.offer(key, work.job(key))

    assert len(executor.waiting) == 2
    executor.run_all()
    assert work.done == ["a", "b", "c"]


def test_lanes_when_a_job_is_written_off_then_its_place_and_key_are_free() -> None:
    """Scenario 12: a job that hangs delays no other, and its late return changes nothing."""
    work, executor = Work(), HeldExecutor()
    lanes = Lanes(executor, "copy", limit=1)
    lanes.offer("a", work.job("hung", "never"))
    lanes.offer("b", work.job("b"))
    lanes.write_off("a")
    lanes.offer("a", work.job("again"))

    executor.run(1)
    executor.run(1)
    executor.run_all()

    assert work.done == ["b", "again", "hung"]
    assert not any(map(lanes.is_busy, "ab"))


def test_lanes_when_only_waiting_then_is_not_written_off() -> None:
    work, executor = Work(), HeldExecutor()
    lanes = Lanes(executor, "copy", limit=1)
    lanes.offer("a", work.job("a"))
    lanes.offer("b", work.job("b"))

    lanes.write_off("b")

    executor.run_all()
    assert work.done == ["a", "b"]


def test_lanes_when_asked_what_runs_then_neither_waiting_jobs_nor_those_written_off() -> None:
    work, executor = Work(), HeldExecutor()
    lanes = Lanes(executor, "copy", limit=2)
    jobs = {key: work.job(key) for key in "abc"}
    for key, job in jobs.items():
        lanes.offer(key, job)
    running = lanes.running()

    lanes.write_off("a")

    assert running == (jobs["a"], jobs["b"])
    assert lanes.running() == (jobs["b"], jobs["c"])
    assert [lanes.job(key) for key in "abc"] == [None, jobs["b"], jobs["c"]]
