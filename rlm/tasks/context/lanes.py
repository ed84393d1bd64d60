"""Lanes: at most one job per key, and so many at once; keys take turns, job by job.

A job may name the one that follows it: that goes to the end of the queue, so a key with much to do
does not keep the others waiting. A job that hangs can be written off: its key and its place are
free again, and what it still does is for its own deadline to end.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

_log = logging.getLogger(__name__)


class Job(Protocol):
    """A piece of work; returns the one that follows it, if any."""

    def __call__(self) -> Job | None: ...


@dataclass(slots=True, eq=False)
class _QueueEntry:
    """A key's place in the queue or at work. Lost when its job was written off."""

    key: Hashable
    job: Job
    running: bool = False


class Lanes:
    """Runs jobs on `executor`, never two of one key, `limit` at once. Thread-safe.

    Memory: one entry per key that runs or waits; keys are the partitions of one broker. An executor
    with more threads than `limit` has some to spare for jobs that were written off.
    """

    def __init__(self, executor: Executor, name: str, *, limit: int | None = None) -> None:
        """`limit` None: as many as the executor takes."""
        self._executor = executor
        self._name = name
        self._limit = limit
        self._entries: dict[Hashable, _QueueEntry] = {}
        self._waiting: deque[_QueueEntry] = deque()
        self._running_count = 0
        self._closed = False
        self._lock = Lock()

    def offer(self, key: Hashable, job: Job | Callable[[], None]) -> bool:
        """Start `job` unless one of this key is running or waiting; whether it was taken."""
        with self._lock:
            if key in self._entries or self._closed:
                return False
            self._entries[key] = entry = _QueueEntry(key, job)
            self._waiting.append(entry)
        self._start_waiting()
        return True

    def write_off(self, key: Hashable) -> None:
        """Take a job that hangs for ended: another one of its key may run beside it."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or not entry.running:
                return
            del self._entries[key]
            self._running_count -= 1
        self._start_waiting()

    def set_limit(self, limit: int) -> None:
        """So many at once from now on. What runs beyond that runs to its end."""
        with self._lock:
            self._limit = limit
        self._start_waiting()

    def is_saturated(self) -> bool:
        """Whether all places are taken, and more wait for one."""
        with self._lock:
            full = self._limit is not None and self._running_count >= self._limit
            return full and bool(self._waiting)

    def is_busy(self, key: Hashable) -> bool:
        """Whether a job of this key runs or waits now."""
        with self._lock:
            return key in self._entries

    def _start_waiting(self) -> None:
        while (entry := self._next()) is not None:
            try:
                self._executor.submit(self._run, entry)
            except RuntimeError:  # the pool was shut down: the process is stopping
                with self._lock:
                    self._closed = True
                    self._waiting.clear()
                    self._entries.clear()
                return

    def _next(self) -> _QueueEntry | None:
        with self._lock:
            full = self._limit is not None and self._running_count >= self._limit
            if full or not self._waiting:
                return None
            entry = self._waiting.popleft()
            entry.running = True
            self._running_count += 1
            return entry

    def _run(self, entry: _QueueEntry) -> None:
        following: Job | None = None
        try:
            following = entry.job()
        except Exception:  # noqa: BLE001 - a lane must outlive a bug in a job
            _log.exception("job failed", extra={"lane": self._name, "key": entry.key})
        finally:
            self._end(entry, following)
        self._start_waiting()

    def _end(self, entry: _QueueEntry, following: Job | None) -> None:
        with self._lock:
            if self._entries.get(entry.key) is not entry:
                return  # written off, or all is over
            self._running_count -= 1
            if following is None:
                del self._entries[entry.key]
            else:
                self._entries[entry.key] = later = _QueueEntry(entry.key, following)
                self._waiting.append(later)
