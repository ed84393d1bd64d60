"""Runs the calls of a plug-in: maps errors, limits the time, and counts failed calls.

    error that the SPI permits          passed on without secrets: callers react to its class
    error of rlm's source or attempt    passed on
    any other error, a wrong result     counted, logged, RetriableError
    no result in time                   counted, logged, RetriableError; the thread is abandoned
    more than CALLS_MAX calls at once   counted, logged, RetriableError; the call is not made

So only an error of the SPI (spi_errors.py) can mean that an object is absent or work is done.
Each call outside of `mapped` runs in a separate thread, because a caller cannot end a call that
hangs. Abandoned calls count toward CALLS_MAX until they end.

An abandoned call gets no more bytes of its source, because the caller may have closed the file.
Time that a call spends in its source does not count, because a throttle may delay the source.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from rsm.plugins.plugin import Plugin
from rsm.plugins.spi_errors import is_of_spi
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.log_line import LogLine

CALLS_MAX = 256
_LISTED_AT_ONCE = 500
_OWN_ERRORS_MAX_COUNT = 16
_log = logging.getLogger(__name__)

T = TypeVar("T")

PluginFailed = Callable[[str, str], None]
"""Counts a failed call, by the plug-in's class and method. Thread-safe."""


def ignore_failure(_class: str, _method: str) -> None:
    """Count nothing, for programs without metrics. PluginCalls logs the error anyway."""


class PluginCalls:
    """Runs the calls of one plug-in. Thread-safe."""

    def __init__(self, plugin: Plugin, failed: PluginFailed) -> None:
        self._plugin = plugin
        self._failed = failed
        self._slots = threading.BoundedSemaphore(CALLS_MAX)

    @contextmanager
    def mapped(
        self,
        method: str,
        watch: CallWatch | None = None,
        permits: Callable[[str, BaseException], bool] = is_of_spi,
    ) -> Iterator[None]:
        """Map errors of calls in the `with` block. They run in this thread, with no time limit.

        Passes on the errors that `permits` returns true for, those that `watch` got from a source
        or an attempt of `rlm`, KeyboardInterrupt and GeneratorExit.
        """
        try:
            yield
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if watch is not None and watch.is_own(error):
                raise
            if not (isinstance(error, TieredStorageError) and permits(method, error)):
                raise self._error(method, error) from error
            if not self.hide_secrets(error):
                raise self._error(method, error) from None
            raise

    def run(self, method: str, call: Callable[[], T], watch: CallWatch | None = None) -> T:
        """Return the result of a call; its sources and its attempt report progress to `watch`."""
        if not self._slots.acquire(blocking=False):
            raise self._late(method, "too many calls of the plug-in are running")
        running = _Running(call)
        try:
            self._start(method, running)
        except RuntimeError as error:  # No thread can be started.
            self._slots.release()
            raise self._late(method, "cannot call the plug-in", reason=error) from error
        watch = watch or CallWatch()
        if not running.wait(self._plugin.timeout_ms, watch):
            raise self._late(method, "the plug-in did not return in time")
        with self.mapped(method, watch):
            return running.result()

    def items(self, method: str, call: Callable[[], Iterator[T]]) -> Iterator[T]:
        """Yield the items that a call returns; the time limit of a call applies to each batch."""
        iterator = self.run(method, lambda: iter(call()))
        count = 1  # Often the caller needs only the first item.
        while batch := self.run(method, lambda: list(islice(iterator, count))):  # noqa: B023
            yield from batch
            count = _LISTED_AT_ONCE

    def _start(self, method: str, running: _Running[T]) -> None:
        def run() -> None:
            try:
                running.run()
            finally:
                self._slots.release()

        name = f"plugin-{self._plugin.class_name.name}-{method}"
        threading.Thread(target=run, name=name, daemon=True).start()

    def _error(self, method: str, error: BaseException) -> RetriableError:
        reason = self._without_secrets(f"{type(error).__name__}: {_text(error)}")
        message = "the plug-in raised an error or returned a wrong result"
        return self._late(method, message, reason=reason)

    def hide_secrets(self, error: TieredStorageError) -> bool:
        """Replace the secrets in an error that keeps its class and is shown as it is.

        Returns False if the error must not be shown: it still shows a secret, or has no text.
        """
        try:
            if self._shows_secret(error):
                self._replace_secrets(error)
            return not self._shows_secret(error)
        except Exception:  # noqa: BLE001 - the plug-in's class may not work
            return False

    def _replace_secrets(self, error: TieredStorageError) -> None:
        error.message = self._without_secrets(error.message)
        error.context = {
            name: self._without_secrets(str(value)) if self._shows_secret(value) else value
            for name, value in error.context.items()
        }
        error.args = (error.message,)
        error.__cause__ = None
        error.__suppress_context__ = True

    def _shows_secret(self, value: object) -> bool:
        text = str(value)
        return any(secret in text for secret in self._plugin.secrets())

    def _without_secrets(self, text: str) -> str:
        for secret in self._plugin.secrets():
            text = text.replace(secret, "(not shown)")
        return text

    def _late(self, method: str, message: str, **context: object) -> RetriableError:
        self._failed(str(self._plugin.class_name), method)
        found = RetriableError(message, plugin=self._plugin.class_name, method=method, **context)
        _log.warning(LogLine(message, plugin=self._plugin.class_name, method=method, error=found))
        return found


@dataclass(slots=True)
class _Outcome(Generic[T]):
    value: T


class _Running(Generic[T]):
    """One call in its thread."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._outcome: _Outcome[T] | None = None
        self._error: BaseException | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            self._outcome = _Outcome(self._call())
        except BaseException as error:  # noqa: BLE001 - raised in the thread of the caller
            self._error = error
        finally:
            self._ended.set()

    def wait(self, timeout_ms: int, watch: CallWatch) -> bool:
        """Wait until the call ends or is abandoned; return whether it ended."""
        while not self._ended.wait(watch.remaining_s(timeout_ms)):
            if watch.abandon(timeout_ms):
                return self._ended.is_set()
        return True

    def result(self) -> T:
        if self._outcome is not None:
            return self._outcome.value
        assert self._error is not None
        if isinstance(self._error, KeyboardInterrupt | GeneratorExit):
            # Python raises these only in other threads, so the plug-in itself raised it.
            name = type(self._error).__name__
            raise RuntimeError(f"the plug-in raised {name}") from self._error  # noqa: TRY004
        raise self._error


class CallWatch:
    """Records when one call last used its sources or its attempt, and their last errors.

    Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_s = time.monotonic()
        self._uses = 0
        self._is_abandoned = False
        self._own_errors: deque[BaseException] = deque(maxlen=_OWN_ERRORS_MAX_COUNT)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Do not count the time of a use. Raises RetriableError if the call is abandoned."""
        with self._lock:
            if self._is_abandoned:
                raise RetriableError("the call was abandoned: it took too long")
            self._uses += 1
        try:
            yield
        except BaseException as error:
            self._own_errors.append(error)
            raise
        finally:
            with self._lock:
                self._uses -= 1
                self._last_s = time.monotonic()

    def is_own(self, error: BaseException) -> bool:
        """Return whether a source or an attempt of `rlm` raised this error."""
        return any(error is each for each in self._own_errors)

    def remaining_s(self, timeout_ms: int) -> float:
        """Return how long the call may still take without progress.

        Returns the whole limit while the call uses a source or its attempt.
        """
        with self._lock:
            if self._uses:
                return timeout_ms / 1000
            return max(0.0, self._last_s + timeout_ms / 1000 - time.monotonic())

    def abandon(self, timeout_ms: int) -> bool:
        """Abandon the call if its time limit has passed; return whether it is abandoned."""
        with self._lock:
            elapsed_s = time.monotonic() - self._last_s
            self._is_abandoned = not self._uses and elapsed_s >= timeout_ms / 1000
            return self._is_abandoned


def _text(error: BaseException) -> str:
    """Return the text of a plug-in's error; its class may not work."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - as above
        return "(no text)"
