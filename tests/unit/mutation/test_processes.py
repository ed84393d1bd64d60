from __future__ import annotations

import os
from pathlib import Path

from tests.mutation.processes import Outcome, Task, run_tasks


def _pass_all(remark: Path) -> bool:
    remark.write_text("all tests passed")
    return True


def _fail_one(remark: Path) -> bool:
    remark.write_text("test_first")
    os._exit(1)


def _end_without_a_result(_remark: Path) -> bool:
    raise MemoryError("pytest itself failed")


def test_task_when_nothing_is_named_that_failed_then_is_broken(tmp_path: Path) -> None:
    """For example after an internal error of pytest: no test has noticed the mutant."""
    task = Task(key=1, run=_end_without_a_result, cpu_s=60)

    (ended,) = run_tasks([task], jobs=1, directory=tmp_path)

    assert (ended.outcome, ended.remark) == (Outcome.BROKEN, "exit code 1")


def test_tasks_when_they_end_then_outcome_and_remark_of_each(tmp_path: Path) -> None:
    tasks = [Task(key=key, run=run, cpu_s=60) for key, run in enumerate((_pass_all, _fail_one))]

    ends = sorted(run_tasks(tasks, jobs=2, directory=tmp_path), key=lambda ended: ended.key)

    assert [(ended.outcome, ended.remark) for ended in ends] == [
        (Outcome.SURVIVED, "all tests passed"),
        (Outcome.KILLED, "test_first"),
    ]
    assert not list(tmp_path.iterdir())
