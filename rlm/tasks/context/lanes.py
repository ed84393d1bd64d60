"""Runs queued jobs: at most one per key and a limited number at once, in fair order of keys.

A job may return the next job of its key. That job joins the end of the queue, so a key with many
jobs does not delay the others. A caller can write off a hanging job: the key and the slot become
free, but the job runs until its own deadline. A job is dropped if no thread can run it, and may be
offered again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Hashable
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from rlm.tasks.context.log_once import LogOnce
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

_START = "start"


class Job(Protocol):
    """Represents a piece of work. A call returns the next job of the same key, if any."""

    def __call__(self) -> Job | None: ...


@dataclass(slots=True, eq=False)
class _QueueEntry:
    """Represents a key's waiting or running job, until the job ends, is dropped or is written off.

    The job occupies a slot if `is_running`. A thread of the pool has begun to run it if `is_taken`.
    """

    key: Hashable
    job: Job
    is_running: bool = False
    is_taken: bool = False


class Lanes:
    """Runs jobs on `executor`, at most one per key and at most `limit` at once. Thread-safe.

    Memory: one entry per key with a job; keys are the partitions of one broker. The executor needs
    more threads than `limit`, because a job that was written off still occupies its thread.
    """

    def __init__(self, executor: Executor, name: str, *, limit: int | None = None) -> None:
        """Limit the running jobs to `limit`; if it is None, only the executor limits them."""
        self._executor = executor
        self._name = name
        self._limit = limit
        self._entries: dict[Hashable, _QueueEntry] = {}
        self._waiting: deque[_QueueEntry] = deque()
        self._running_count = 0
        self._log_once = LogOnce()
        self._lock = Lock()

    def offer(self, key: Hashable, job: Job) -> bool:
        """Queue `job` unless a job of this key runs or waits; return whether it was queued.

        A queued job is dropped if no thread can run it.
        """
        with self._lock:
            if key in self._entries:
                return False
            self._entries[key] = entry = _QueueEntry(key, job)
            self._waiting.append(entry)
        self._start_waiting()
        return True

    def write_off(self, key: Hashable, job: Job) -> None:
        """Count a hanging job as ended, so that another job of its key can run at the same time.

        Does nothing if `job` waits or has ended, even if another job of its key runs.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.job is not job or not entry.is_running:
                return
            self._remove(entry)
        self._start_waiting()

    def set_limit(self, limit: int) -> None:
        """Change the limit of running jobs. Jobs above a lower limit still run to their end."""
        with self._lock:
            self._limit = limit
        self._start_waiting()

    def is_full(self) -> bool:
        """Return whether all slots are taken."""
        with self._lock:
            return self._is_full()

    def waiting_count(self) -> int:
        """Return how many jobs wait for a slot."""
        with self._lock:
            return len(self._waiting) if self._is_full() else 0

    def is_saturated(self) -> bool:
        """Return whether all slots are taken and more jobs wait."""
        return self.waiting_count() > 0

    def is_busy(self, key: Hashable) -> bool:
        """Return whether a job of this key runs or waits."""
        return self.job(key) is not None

    def job(self, key: Hashable) -> Job | None:
        """Return the job of this key that runs or waits; None if there is none."""
        with self._lock:
            entry = self._entries.get(key)
        return None if entry is None else entry.job

    def running(self) -> tuple[Job, ...]:
        """Return the running jobs, except those that were written off."""
        with self._lock:
            return tuple(entry.job for entry in self._entries.values() if entry.is_running)

    def _start_waiting(self) -> None:
        while (entry := self._next()) is not None:
            try:
                self._executor.submit(self._run, entry)
            except RuntimeError as error:  # No thread can be started, or the pool is shut down.
                self._drop(entry, error)
            else:
                self._log_once.clear(_START)

    def _drop(self, entry: _QueueEntry, error: RuntimeError) -> None:
        """Remove a job that `submit` refused, unless a thread of the pool has taken it.

        The pool may have queued the job before `submit` failed, and may still run it.
        """
        with self._lock:
            if entry.is_taken or self._entries.get(entry.key) is not entry:
                return
            entry.is_running = False
            self._remove(entry)
        if self._log_once.changed(_START, str(error)):
            level = logging.INFO if "shutdown" in str(error) else logging.WARNING
            line = LogLine("cannot start a job", lane=self._name, key=entry.key, error=error)
            _log.log(level, line)

    def _remove(self, entry: _QueueEntry) -> None:
        del self._entries[entry.key]
        self._running_count -= 1

    def _next(self) -> _QueueEntry | None:
        with self._lock:
            if self._is_full() or not self._waiting:
                return None
            entry = self._waiting.popleft()
            entry.is_running = True
            self._running_count += 1
            return entry

    def _is_full(self) -> bool:
        return self._limit is not None and self._running_count >= self._limit

    def _run(self, entry: _QueueEntry) -> None:
        following: Job | None = None
        with self._lock:
            if not entry.is_running:
                return  # `_drop` has removed the job.
            entry.is_taken = True
        try:
            following = entry.job()
        except Exception:  # noqa: BLE001 - a lane must outlive a bug in a job
            self._note_bug(entry.key)
        except BaseException:  # For example, a panic of a native library.
            _log.exception(LogLine("job ended", lane=self._name, key=entry.key))
            raise
        finally:
            self._end(entry, following)
            self._start_waiting()

    def _note_bug(self, key: Hashable) -> None:
        _log.exception(LogLine("job failed", lane=self._name, key=key))

    def _end(self, entry: _QueueEntry, following: Job | None) -> None:
        with self._lock:
            if self._entries.get(entry.key) is not entry:
                return  # `write_off` has removed the job.
            self._remove(entry)
            if following is not None:
                self._entries[entry.key] = later = _QueueEntry(entry.key, following)
                self._waiting.append(later)
