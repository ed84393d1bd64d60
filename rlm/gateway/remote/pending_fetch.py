"""PendingFetch: starts one read of the store in a pool; the reading threads finish it.

Each wake-up of the loop would delay the read, because both share one interpreter. The reading
threads therefore do all intermediate work, and notify the loop once. This module does not depend on
permits, quotas or connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future, InvalidStateError
from dataclasses import dataclass
from functools import partial

from rlm.gateway.fetch.remote_result import FetchOutcome, ReadRefused, RemoteOutcome, release_all
from rlm.gateway.model.actions import PartitionFetch
from rlm.gateway.remote.read_failures import ReadFailures
from rlm.gateway.remote.remote_partition_reader import RemotePartitionReader
from rlm.wire.error_codes import ErrorCode
from rlmm.lookup import NotStored

_STORAGE_ERROR = ReadRefused(ErrorCode.KAFKA_STORAGE_ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPartitionFetch:
    """Represents one partition to read, and the client that reads it."""

    read: PartitionFetch
    read_committed: bool
    client: Hashable


class PendingFetch:
    """Represents one read. `outcome` belongs to the loop that created the read, and never raises.

    `was_cold`: whether the read had to wait for the store; None before its start, or if it ended
    without a read.
    """

    def __init__(
        self,
        asked: ClientPartitionFetch,
        tier: RemotePartitionReader,
        pool: Executor,
        failures: ReadFailures,
    ) -> None:
        self.asked = asked
        self.was_cold: bool | None = None
        self.is_given_up = False
        self._tier = tier
        self._pool = pool
        self._failures = failures
        self._reading: Future[FetchOutcome] | None = None
        self._ended: Future[RemoteOutcome] = Future()
        self._ended.set_running_or_notify_cancel()
        self.outcome: asyncio.Future[RemoteOutcome] = asyncio.wrap_future(self._ended)
        self.outcome.add_done_callback(self._release_unwanted)
        self._in_pool(self._begin)

    def give_up(self) -> None:
        """Release the read's current or future result. Do not use the outcome afterwards."""
        self.is_given_up = True
        if self.outcome.done():
            release_all([self.outcome.result()])
        elif self._reading is not None:
            self._reading.cancel()

    def _begin(self) -> RemoteOutcome | None:
        """Start the read; return None if its future sets the outcome."""
        asked = self.asked
        started = self._tier.begin(
            asked.read, read_committed=asked.read_committed, client=asked.client
        )
        if not isinstance(started, Future):
            return started
        self.was_cold = not started.done()
        self._reading = started
        if self.is_given_up:
            started.cancel()
        started.add_done_callback(self._receive)
        return None

    def _receive(self, reading: Future[FetchOutcome]) -> None:
        error = None if reading.cancelled() else reading.exception()
        if reading.cancelled():
            self._end(_STORAGE_ERROR)  # No client receives this outcome.
        elif error is not None:
            self._fail(error)
        elif isinstance(found := reading.result(), NotStored):
            self._in_pool(partial(self._tier.absent, self.asked.read, found))
        else:
            self._end(found)

    def _in_pool(self, step: Callable[[], RemoteOutcome | None]) -> None:
        try:
            self._pool.submit(self._take, step)
        except RuntimeError as error:
            # The pool is shut down, or cannot start a thread; then it may still call `_take` later.
            self._fail(error)

    def _take(self, step: Callable[[], RemoteOutcome | None]) -> None:
        try:
            outcome = step()
        except Exception as error:  # noqa: BLE001 - other partitions continue
            self._fail(error)
        else:
            if outcome is not None:
                self._end(outcome)

    def _fail(self, error: BaseException) -> None:
        self._failures.record(self.asked.read, error)
        self._end(_STORAGE_ERROR)

    def _end(self, outcome: RemoteOutcome) -> None:
        """Set the outcome; if another outcome is already set, release this one."""
        try:
            self._ended.set_result(outcome)
        except InvalidStateError:
            release_all([outcome])

    def _release_unwanted(self, outcome: asyncio.Future[RemoteOutcome]) -> None:
        if self.is_given_up:
            release_all([outcome.result()])
