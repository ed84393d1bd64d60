"""Wraps the sources and attempts that `rlm` and a plug-in pass to each other.

Counts the bytes that a plug-in reads, because the plug-in's report proves nothing. Maps the errors
of a plug-in's sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from crc32c import crc32c

from rsm.plugins.calls import CallWatch, PluginCalls
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import SizedSource, WrappedSource, acknowledge
from rsm.spi import CopyAttempt


@dataclass(slots=True)
class BytesRead:
    """Represents the length and the CRC32C of the last complete pass over a source."""

    length_bytes: int | None = None
    crc32c: int = 0

    def require_whole(self, segment_id: RemoteLogSegmentId, length_bytes: int) -> None:
        """Raise CorruptError unless a complete pass yielded `length_bytes`."""
        if self.length_bytes != length_bytes:
            raise CorruptError(
                "the plug-in did not read the whole log",
                segment_id=segment_id,
                length_bytes=length_bytes,
                read_bytes=self.length_bytes,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedSource(WrappedSource):
    """Counts the bytes of each pass over a source. A pass fails once its call is abandoned."""

    watch: CallWatch
    read: BytesRead = field(default_factory=BytesRead)

    def chunks(self) -> Iterator[memoryview]:
        length_bytes, checksum = 0, 0
        views = self.source.chunks()
        while True:
            with self.watch.used():
                view = next(views, None)
                if view is not None:
                    length_bytes += len(view)
                    checksum = crc32c(view, checksum)
            if view is None:
                self.read.length_bytes, self.read.crc32c = length_bytes, checksum
                return
            yield view
            # A plug-in that requests the next chunk has consumed this one.
            acknowledge(self.source, len(view))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedLog(CountedSource):
    """Represents a counted source of a known length."""

    source: SizedSource

    @property
    def length_bytes(self) -> int:
        return self.source.length_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedSource(WrappedSource):
    """Maps the errors of a plug-in's source; `watch` gets those of the source that it reads."""

    calls: PluginCalls
    watch: CallWatch

    def chunks(self) -> Iterator[memoryview]:
        with self.calls.mapped("chunks", self.watch):
            yield from self.source.chunks()


class WatchedAttempt(CopyAttempt):
    """Represents an attempt whose checks count as progress of its call."""

    def __init__(self, attempt: CopyAttempt, watch: CallWatch) -> None:
        self._attempt = attempt
        self._watch = watch

    def check(self) -> None:
        with self._watch.used():
            self._attempt.check()
