"""Adjusts the number of concurrent copies to their throughput, measured in time windows.

This module measures the windows; `rlm.policy.resources.copy_concurrency` decides after each one.
The first copy that hands over a piece after the end of a window evaluates the window. If no copy
does so, the cycle evaluates it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock

from rlm.policy.resources.copy_concurrency import CopyConcurrency, CopyWindow, adjusted
from rlm.tasks.context.lanes import Lanes
from rsm.segment.clock import Clock
from rsm.segment.local_segment import SizedSource
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)

# A window ends after the least time if the copies moved enough bytes to measure a rate, else after
# the longest time.
_LEAST_WINDOW_MS = 500
_LONGEST_WINDOW_MS = 2_000
_WINDOW_BYTES = 32 << 20


class CopyPace:
    """Limits concurrent copies. Thread-safe.

    `on_limit` receives the first limit and each later one.
    """

    def __init__(
        self, clock: Clock, lanes: Lanes, *, max_copies: int, on_limit: Callable[[int], None]
    ) -> None:
        """Start with a limit of at most `max_copies`, which no later limit exceeds."""
        self._clock = clock
        self._lanes = lanes
        self._on_limit = on_limit
        self._now = CopyConcurrency.beginning(max_copies)
        self._lock = Lock()
        self._begin_window()
        lanes.set_limit(self._now.limit)
        on_limit(self._now.limit)

    def count_bytes(self, size_bytes: int) -> None:
        """Count bytes that a copy has passed to the store."""
        with self._lock:
            self._moved_bytes += size_bytes
        self.evaluate()

    def record_refusal(self) -> None:
        """Record that an attempt to write to the store failed with a retriable error."""
        with self._lock:
            self._refused = True

    def evaluate(self) -> None:
        """Adjust the limit if the window has ended."""
        with self._lock:
            elapsed_ms = self._clock.monotonic_ms() - self._started_ms
            is_plenty = self._moved_bytes >= _WINDOW_BYTES
            if elapsed_ms < (_LEAST_WINDOW_MS if is_plenty else _LONGEST_WINDOW_MS):
                return
            before = self._now.limit
            window = CopyWindow(
                moved_bytes=self._moved_bytes,
                elapsed_ms=elapsed_ms,
                is_saturated=self._started_saturated and self._lanes.is_saturated(),
                is_refused=self._refused,
            )
            self._now = adjusted(self._now, window)
            limit = self._now.limit
            self._begin_window()
        if limit != before:
            self._lanes.set_limit(limit)
            self._on_limit(limit)
            _log.debug(
                LogLine("changed the limit of concurrent copies", limit=limit, before=before)
            )

    def _begin_window(self) -> None:
        self._started_ms = self._clock.monotonic_ms()
        self._moved_bytes = 0
        self._refused = False
        self._started_saturated = self._lanes.is_saturated()


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedContent:
    """Represents a source that reports each piece to the pace after the reader has taken it."""

    source: SizedSource
    pace: CopyPace

    @property
    def length_bytes(self) -> int:
        return self.source.length_bytes

    def chunks(self) -> Iterator[memoryview]:
        for view in self.source.chunks():
            yield view
            self.pace.count_bytes(len(view))
