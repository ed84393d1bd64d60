"""Calls `step` repeatedly in one thread, and continues after exceptions."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Protocol

from rsm.segment.clock import Clock
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_RETRY_MS = 1000
_BEGINNING_MS = 10_000
_LOGGED_MAX_COUNT = 16
_NUMBER = re.compile(r"\d+")


class Step(Protocol):
    """Represents work that a thread repeats."""

    def step(self) -> object:
        """Do what is due. Raises TieredStorageError; the caller then calls again soon."""


class Periodic:
    """Runs `step` at once, then after pauses of `interval_ms`, or of at most 1 s after a failure.

    Passes each exception of `step` to `failed`; `problem` returns it until the next run ends. Logs
    a TieredStorageError as a warning, unless an equal error was logged since the last success. The
    comparison ignores numbers, because repeated errors can differ in a count or a time. The memory
    for this comparison is limited to 16 errors; then it starts again. The processes of a host start
    together. So a RetriableError before the first success is logged at INFO in the first 10 s. Any
    other exception is a bug, or the panic of a library: it is logged with its stack trace, and the
    work continues. Thread-safe.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], object],
        *,
        interval_ms: int,
        failed: Callable[[str, BaseException], None],
        clock: Clock,
    ) -> None:
        self._name = name
        self._step = step
        self._interval_ms = interval_ms
        self._failed = failed
        self._clock = clock
        self._beginning_ends_ms: int | None = None
        self._logged: set[tuple[int, str]] = set()
        self._problem: BaseException | None = None
        self._stopping = Event()
        self._ending = Event()
        self._woken = Event()
        self._lock = Lock()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; call once."""
        self._beginning_ends_ms = self._clock.monotonic_ms() + _BEGINNING_MS
        self._thread.start()

    def problem(self) -> BaseException | None:
        """Return the exception of the last run; None if the run succeeded or no run has ended."""
        with self._lock:
            return self._problem

    def wake(self) -> None:
        """End the current pause: `step` is called at once, or when the running call ends."""
        self._woken.set()

    def stop(self) -> None:
        """Start no further `step`; returns at once. Idempotent."""
        self._stopping.set()
        self._woken.set()

    def end(self, timeout_ms: int) -> bool:
        """Call `step` a last time and wait. Returns false if the thread does not end in time.

        Call only after `start`.
        """
        self._ending.set()
        self._woken.set()
        return self.join(timeout_ms)

    def join(self, timeout_ms: int) -> bool:
        """Wait for the thread's end. Returns false if the thread does not end in time.

        Call only after `start`.
        """
        self._thread.join(max(0, timeout_ms) / 1000)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            self._woken.clear()
            if self._stopping.is_set():
                return
            is_last = self._ending.is_set()
            self._run_step()
            if is_last:
                return
            pause_ms = self._interval_ms
            if self.problem() is not None:
                pause_ms = min(pause_ms, _RETRY_MS)
            self._woken.wait(pause_ms / 1000)

    def _run_step(self) -> None:
        problem: BaseException | None = None
        try:
            self._step()
        except TieredStorageError as error:
            problem = error
            self._log(error)
        except BaseException as error:  # noqa: BLE001 - the loop must survive any bug in `step`
            problem = error
            _log.exception(LogLine("task failed", task=self._name))
        if problem is not None:
            self._failed(self._name, problem)
        else:
            self._beginning_ends_ms = None
            self._logged.clear()
        with self._lock:
            self._problem = problem

    def _log(self, error: TieredStorageError) -> None:
        ends_ms = self._beginning_ends_ms
        begins = ends_ms is not None and self._clock.monotonic_ms() < ends_ms
        waits = begins and isinstance(error, RetriableError)
        level = logging.INFO if waits else logging.WARNING
        kind = (level, _NUMBER.sub("", str(error)))
        if kind in self._logged:
            return
        if len(self._logged) >= _LOGGED_MAX_COUNT:
            self._logged.clear()
        self._logged.add(kind)
        _log.log(level, LogLine("task failed", task=self._name, error=error))
