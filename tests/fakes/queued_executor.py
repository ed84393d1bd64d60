"""An executor that runs its jobs when a test says so, in the order that the test chooses."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any


class QueuedExecutor(Executor):
    """Jobs wait until `run` starts them. Not thread-safe."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.submitted_count = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.submitted_count += 1
        self.waiting.append(partial(self._carry_out, future, partial(fn, *args, **kwargs)))
        return future

    def run(self, number: int = 0) -> None:
        """Run one of the waiting jobs, the oldest by default."""
        self.waiting.pop(number)()

    def run_all(self) -> None:
        """Run all jobs, including those that they submit."""
        while self.waiting:
            self.run()

    @staticmethod
    def _carry_out(future: Future[Any], job: Callable[[], Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            value = job()
        except Exception as error:  # noqa: BLE001 - handed to the caller that asks for the result
            future.set_exception(error)
        else:
            future.set_result(value)
