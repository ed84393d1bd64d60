"""Runs the follower in a thread, and detects a call that does not return."""

from __future__ import annotations

import logging
from threading import Event, Thread
from typing import Protocol

from rsm.segment.clock import Clock

_BUG_PAUSE_MS = 1000
# The requests, retries and writes of one call take less, even on a very slow disk.
_HANG_LIMIT_MS = 600_000
_log = logging.getLogger(__name__)


class LoopBody(Protocol):
    """Represents the object whose `step` the thread calls in a loop."""

    def step(self) -> int:
        """Do what is due; return the pause before the next call, in milliseconds."""


class FollowerThread:
    """Calls `step` in a loop, from `start` until `request_stop`. Thread-safe."""

    def __init__(self, follower: LoopBody, clock: Clock) -> None:
        self._follower = follower
        self._clock = clock
        self._stop = Event()
        self._thread: Thread | None = None
        self._called_ms = 0

    @property
    def is_started(self) -> bool:
        """Return whether `start` was called, even if the thread has ended since."""
        return self._thread is not None

    @property
    def is_stopping(self) -> bool:
        """Return whether `request_stop` was called."""
        return self._stop.is_set()

    def is_hanging(self) -> bool:
        """Return whether the current call began over ten minutes ago; it will not return.

        librdkafka can deadlock when a broker leaves the cluster. Only a restart of the process
        helps.
        """
        if self._thread is None or self._stop.is_set():
            return False
        return self._clock.monotonic_ms() - self._called_ms > _HANG_LIMIT_MS

    def start(self) -> None:
        """Start the thread. Call this at most once."""
        self._called_ms = self._clock.monotonic_ms()
        self._thread = Thread(target=self._run, name="rlmm-follower", daemon=True)
        self._thread.start()

    def request_stop(self) -> None:
        """Make the thread end after the current call; do not wait for it."""
        self._stop.set()

    def join(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` for the thread to end."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._called_ms = self._clock.monotonic_ms()
            try:
                pause_ms = self._follower.step()
            except BaseException:  # noqa: BLE001 - the loop survives a bug, as the cache is usable
                _log.exception("cannot follow the metadata topic: unexpected error, trying again")
                pause_ms = _BUG_PAUSE_MS
            if pause_ms:
                self._stop.wait(pause_ms / 1000)
