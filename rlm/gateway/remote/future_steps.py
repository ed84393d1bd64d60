"""Code that waits for futures one after the other without a thread of its own.

A generator yields the futures it waits for and is resumed with their values on whichever thread
completes them; what it returns is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar
from weakref import ref

AwaitedT = TypeVar("AwaitedT")
ResultT = TypeVar("ResultT")

Steps = Generator[Future[AwaitedT], AwaitedT, ResultT]


def run_steps(
    steps: Steps[AwaitedT, ResultT], *, unwanted: Callable[[ResultT], None]
) -> Future[ResultT]:
    """Run `steps` up to their first wait, here; the rest where what they wait for is completed.

    Cancelling the result cancels what is waited for; where that comes too late the steps go on,
    and a result that nobody waits for any more is given to `unwanted`.
    """
    runner = _Runner(steps, unwanted)
    runner.go_on(None)
    return runner.result


class _Runner(Generic[AwaitedT, ResultT]):
    """One generator. Only one thread at a time runs it: it waits for one future at a time."""

    def __init__(
        self, steps: Steps[AwaitedT, ResultT], unwanted: Callable[[ResultT], None]
    ) -> None:
        self._steps = steps
        self._unwanted = unwanted
        self._awaited: Future[AwaitedT] | None = None
        self.result: Future[ResultT] = Future()
        # Weak, for a future keeps its callbacks: what it holds is to go with its last user.
        runner = ref(self)
        self.result.add_done_callback(lambda result: _has_ended(runner(), result))

    def go_on(self, done: Future[AwaitedT] | None) -> None:
        """Run until there is something to wait for, in a loop: what is done is not waited for."""
        self._awaited = None
        while True:
            try:
                awaited = next(self._steps) if done is None else self._resume(done)
            except StopIteration as stop:
                self._return(stop.value)
                return
            except BaseException as error:  # noqa: BLE001 - raised by the result, as executors do
                if self.result.set_running_or_notify_cancel():
                    self.result.set_exception(error)
                return
            self._awaited = awaited
            if self.result.cancelled():
                awaited.cancel()
            if not awaited.done():
                awaited.add_done_callback(self.go_on)
                return
            done = awaited

    def _resume(self, done: Future[AwaitedT]) -> Future[AwaitedT]:
        try:
            value = done.result()
        except BaseException as error:  # noqa: BLE001 - raised in the steps, where it belongs
            return self._steps.throw(error)
        return self._steps.send(value)

    def _return(self, value: ResultT) -> None:
        if self.result.set_running_or_notify_cancel():
            self.result.set_result(value)
        else:
            self._unwanted(value)

    def cancel(self) -> None:
        """Nobody waits for the result any more."""
        awaited = self._awaited
        if awaited is not None:
            awaited.cancel()


def _has_ended(runner: _Runner[Any, Any] | None, result: Future[Any]) -> None:
    if runner is not None and result.cancelled():
        runner.cancel()
