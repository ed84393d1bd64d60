"""Wraps a chunk storage to report its requests to metrics and the log. Changes nothing else.

Together with the inner store, it corresponds to PDP-34's BaseChunkStorage. It has no deadlines,
because a wrapper cannot end a request that hangs. The bindings limit the time of their requests,
and the source of a copy ends at the copy's deadline.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from rsm.segment.clock import Clock
from rsm.segment.local_segment import ContentSource
from rsm.segment.log_line import LogLine
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage, DeleteOutcome
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper

OK = "ok"

Observe = Callable[[str, str, int], None]
"""Receives a request's operation, result (`ok` or the error's class) and duration in ms.

Must be thread-safe.
"""

_log = logging.getLogger(__name__)


class ObservedChunkStorage(ChunkStorageWrapper):
    """Passes each request to the inner store, and reports its end to `observe` and the log.

    `delete_many` is one request with the result of the first name that failed. A listing ends with
    its iterator, so its duration includes the caller's work. A listing that the caller abandons is
    not reported. A request is slow above `slow_ms` plus 1 ms for each KiB created or read. A slow
    request logs an INFO line, unless its duration includes waits for the caller, as in listings and
    creations of unknown length.
    """

    def __init__(
        self, inner: ChunkStorage, clock: Clock, observe: Observe, *, slow_ms: int
    ) -> None:
        super().__init__(inner)
        self._clock = clock
        self._observe = observe
        self._slow_ms = slow_ms

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        with self._measured("create_with_content", name, moved_bytes=source.length_bytes):
            return self._inner.create_with_content(name, source, attributes=attributes)

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        with self._measured("read_range", name, moved_bytes=len(positions)):
            return self._inner.read_range(name, positions)

    def read_range_into(self, name: str, positions: ByteRange, target: memoryview) -> int:
        with self._measured("read_range", name, moved_bytes=len(positions)):
            return self._inner.read_range_into(name, positions, target)

    def delete_many(self, names: Sequence[str]) -> tuple[DeleteOutcome, ...]:
        started_ms = self._clock.monotonic_ms()
        try:
            outcomes = self._inner.delete_many(names)
        except Exception as error:
            self._end("delete_many", "", error, started_ms)
            raise
        first_failed = next((each for each in outcomes if each.error), DeleteOutcome(name=""))
        self._end("delete_many", first_failed.name, first_failed.error, started_ms)
        return outcomes

    def _request(self, operation: str, name: str) -> AbstractContextManager[None]:
        return self._measured(operation, name)

    @contextmanager
    def _measured(
        self, operation: str, name: str, *, moved_bytes: int | None = 0
    ) -> Iterator[None]:
        started_ms = self._clock.monotonic_ms()
        try:
            yield
        except Exception as error:
            self._end(operation, name, error, started_ms, moved_bytes=moved_bytes)
            raise
        self._end(operation, name, None, started_ms, moved_bytes=moved_bytes)

    def _end(
        self,
        operation: str,
        name: str,
        error: Exception | None,
        started_ms: int,
        *,
        moved_bytes: int | None = 0,
    ) -> None:
        duration_ms = self._clock.monotonic_ms() - started_ms
        result = OK if error is None else type(error).__name__
        self._observe(operation, result, duration_ms)
        fields = {
            "operation": operation,
            "chunk": name,
            "result": result,
            "duration_ms": duration_ms,
            "moved_bytes": moved_bytes,
        }
        waits_for_caller = moved_bytes is None or operation == "list"
        if not waits_for_caller and duration_ms > self._slow_ms + (moved_bytes or 0) // 1024:
            _log.info(LogLine("the store was slow", **fields))
        else:
            _log.debug(LogLine("sent a request to the store", **fields))
