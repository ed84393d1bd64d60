"""Runs code that waits for one future after another, without a dedicated thread.

A generator yields each future. The thread that completes the future resumes the generator with the
future's value. The generator's return value is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar
from weakref import ref

AwaitedT = TypeVar("AwaitedT")
ResultT = TypeVar("ResultT")

Chain = Generator[Future[AwaitedT], AwaitedT, ResultT]


def run_chain(
    chain: Chain[AwaitedT, ResultT], *, unwanted: Callable[[ResultT], None]
) -> Future[ResultT]:
    """Run `chain` here up to its first wait, then on the threads that complete the futures.

    Canceling the result cancels the awaited future. If the future cannot be canceled any more,
    `chain` continues, and `unwanted` gets its result.
    """
    runner = _Runner(chain, unwanted)
    runner.run(None)
    return runner.result


class _Runner(Generic[AwaitedT, ResultT]):
    """Runs one generator. It awaits one future at a time, so one thread at a time runs it."""

    def __init__(
        self, chain: Chain[AwaitedT, ResultT], unwanted: Callable[[ResultT], None]
    ) -> None:
        self._chain = chain
        self._unwanted = unwanted
        self._awaited: Future[AwaitedT] | None = None
        self.result: Future[ResultT] = Future()
        # The reference is weak, because the future keeps its callback, which would keep the runner.
        runner = ref(self)
        self.result.add_done_callback(lambda result: _cancel_awaited(runner(), result))

    def run(self, done: Future[AwaitedT] | None) -> None:
        """Run until a yielded future is not complete. A loop avoids recursion for complete ones."""
        self._awaited = None
        while True:
            try:
                awaited = next(self._chain) if done is None else self._resume(done)
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
                awaited.add_done_callback(self.run)
                return
            done = awaited

    def _resume(self, done: Future[AwaitedT]) -> Future[AwaitedT]:
        try:
            value = done.result()
        except BaseException as error:  # noqa: BLE001 - raised in the generator, which awaits it
            return self._chain.throw(error)
        return self._chain.send(value)

    def _return(self, value: ResultT) -> None:
        if self.result.set_running_or_notify_cancel():
            self.result.set_result(value)
        else:
            self._unwanted(value)

    def cancel(self) -> None:
        """Cancel the awaited future, because the result was canceled."""
        awaited = self._awaited
        if awaited is not None:
            awaited.cancel()


def _cancel_awaited(runner: _Runner[Any, Any] | None, result: Future[Any]) -> None:
    if runner is not None and result.cancelled():
        runner.cancel()
