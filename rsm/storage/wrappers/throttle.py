"""Wraps a chunk storage to limit its bytes and its requests per second.

A request above a limit waits in its caller's thread; no request is refused. Both limits apply on
average: after a pause, the unused amount of at most one second is available at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rsm.segment.clock import Clock
from rsm.segment.local_segment import ContentSource, WrappedSource
from rsm.segment.ranges import ByteRange
from rsm.storage.chunk_storage import ChunkStorage
from rsm.storage.wrappers.wrapper import ChunkStorageWrapper


class RateGate:
    """Limits an amount per second. Thread-safe."""

    def __init__(self, clock: Clock, *, per_second: int) -> None:
        self._clock = clock
        self._per_second = per_second
        self._free_at_ms = clock.monotonic_ms()
        self._remainder = 0  # This is the amount below a whole millisecond, times 1000.
        self._lock = threading.Lock()

    def pass_through(self, amount: int) -> None:
        """Wait until the rate allows all earlier amounts. Later callers also wait for `amount`."""
        with self._lock:
            now_ms = self._clock.monotonic_ms()
            start_ms = max(self._free_at_ms, now_ms - 1_000)
            taken_ms, self._remainder = divmod(amount * 1_000 + self._remainder, self._per_second)
            self._free_at_ms = start_ms + taken_ms
            wait_ms = start_ms - now_ms
        if wait_ms > 0:
            self._clock.sleep_ms(wait_ms)


class ThrottledChunkStorage(ChunkStorageWrapper):
    """Limits the rates of `inner`; None is unlimited.

    Counts a creation's bytes as the store reads them from the source, an append's bytes before the
    request, and a read's bytes after it.
    """

    def __init__(
        self,
        inner: ChunkStorage,
        clock: Clock,
        *,
        bytes_per_second: int | None = None,
        requests_per_second: int | None = None,
    ) -> None:
        super().__init__(inner)
        self._bytes = bytes_per_second and RateGate(clock, per_second=bytes_per_second)
        self._requests = requests_per_second and RateGate(clock, per_second=requests_per_second)

    def create_with_content(
        self,
        name: str,
        source: ContentSource,
        *,
        attributes: Mapping[str, str] | None = None,
    ) -> int:
        if self._bytes:
            source = _GatedSource(source=source, gate=self._bytes)
        return super().create_with_content(name, source, attributes=attributes)

    def append(self, name: str, offset_bytes: int, data: bytes | memoryview) -> None:
        if self._bytes:
            self._bytes.pass_through(len(data))
        super().append(name, offset_bytes, data)

    def read_range(self, name: str, positions: ByteRange) -> bytes:
        content = super().read_range(name, positions)
        if self._bytes:
            self._bytes.pass_through(len(content))
        return content

    # The default calls `read_range`, which applies the limits.
    read_range_into = ChunkStorage.read_range_into

    @contextmanager
    def _request(self, operation: str, name: str) -> Iterator[None]:
        if self._requests:
            self._requests.pass_through(1)
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class _GatedSource(WrappedSource):
    gate: RateGate

    def chunks(self) -> Iterator[memoryview]:
        for view in self.source.chunks():
            self.gate.pass_through(len(view))
            yield view
