"""Lanes: at most one running job per key, on a pool whose size bounds them all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from threading import Lock

_log = logging.getLogger(__name__)


class Lanes:
    """Runs jobs on `executor`, never two of one key. Thread-safe.

    Memory: one entry per key that runs or waits; keys are the partitions of one broker.
    """

    def __init__(self, executor: Executor, name: str) -> None:
        self._executor = executor
        self._name = name
        self._busy: set[Hashable] = set()
        self._lock = Lock()

    def offer(self, key: Hashable, job: Callable[[], None]) -> bool:
        """Start `job` unless one of this key is running or waiting; whether it was taken."""
        with self._lock:
            if key in self._busy:
                return False
            self._busy.add(key)
        try:
            self._executor.submit(self._run, key, job)
        except RuntimeError:  # the pool was shut down: the process is stopping
            self._leave(key)
            return False
        return True

    def busy(self) -> frozenset[Hashable]:
        """The keys that run or wait now."""
        with self._lock:
            return frozenset(self._busy)

    def _run(self, key: Hashable, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception:  # noqa: BLE001 - a lane must outlive a bug in a job
            _log.exception("job failed", extra={"lane": self._name, "key": key})
        finally:
            self._leave(key)

    def _leave(self, key: Hashable) -> None:
        with self._lock:
            self._busy.discard(key)
