"""Calls a plug-in's layout in the caller's thread; maps and counts its errors."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from rsm.layout.companion import Companion
from rsm.layout.keys import SegmentKey, StreamedKey, numbered_chunk
from rsm.layout.segment_layout import (
    LocatedBytes,
    LogToWrite,
    ObjectContent,
    SegmentEncoding,
    SegmentLayout,
    SegmentObjects,
)
from rsm.plugins.calls import CallWatch, PluginCalls
from rsm.plugins.given import CountedSource, MappedSource
from rsm.plugins.results import require_type
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.local_segment import SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange

_LEAST_OBJECTS = 2


class PluginLayout(SegmentLayout):
    """Passes calls on to `inner`. A layout is pure, so its calls have no time limit."""

    def __init__(self, inner: SegmentLayout, calls: PluginCalls) -> None:
        """Raise RetriableError if a property of the plug-in fails or is invalid."""
        self._inner = inner
        self._calls = calls
        with calls.mapped("name"):
            self._name = require_type(inner.name, str)
        with calls.mapped("can_store_empty_logs"):
            self._can_store_empty_logs = require_type(inner.can_store_empty_logs, bool)
        with calls.mapped("chunk_bytes"):
            self._chunk_bytes = inner.chunk_bytes
            if self._chunk_bytes is not None and require_type(self._chunk_bytes, int) <= 0:
                raise ValueError("the chunk length is invalid: it must be above 0")

    @property
    def name(self) -> str:
        return self._name

    @property
    def can_store_empty_logs(self) -> bool:
        return self._can_store_empty_logs

    @property
    def chunk_bytes(self) -> int | None:
        return self._chunk_bytes

    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[SegmentKey, ...]:
        with self._calls.mapped("object_keys"):
            found = require_type(self._inner.object_keys(segment_id, base_offset), tuple)
            if not all(_names(each, segment_id, base_offset) for each in found):
                raise ValueError("a key names another segment")
            if len(found) < _LEAST_OBJECTS:
                raise ValueError("fewer than two objects: a log and a companion are required")
            if self._chunk_bytes is not None and numbered_chunk(found[0], 1) == found[0]:
                raise ValueError("the first key is not that of a chunk")
            return found

    def encoding(self, log: LogToWrite) -> SegmentEncoding:
        """Return the plug-in's contents. Raises CorruptError if the log's object is not as planned.

        `closing` raises CorruptError if another object is not as planned, or if the plug-in did not
        read the whole log.
        """
        watch = CallWatch()
        counted = CountedSource(source=log.content, watch=watch)
        with self._calls.mapped("encoding", watch):
            found = require_type(
                self._inner.encoding(replace(log, content=counted)), SegmentEncoding
            )
            log_object = require_type(found.log_object, ObjectContent)
        if log_object.key != log.objects[0].key:
            raise _not_planned(log.segment_id)

        def closing(
            metadata: RemoteLogSegmentMetadata, companions: SegmentCompanions
        ) -> Generator[ObjectContent, StoredObject, None]:
            counted.read.require_whole(metadata.segment_id, metadata.segment_size_bytes)
            with self._calls.mapped("closing", watch):
                contents = found.closing(metadata, companions)
            content = self._next(contents, None, watch)
            for planned in metadata.objects[self.log_count(metadata.object_keys) :]:
                if content is None or content.key != planned.key:
                    raise _not_planned(log.segment_id)
                stored = yield content
                content = self._next(contents, stored, watch)
            if content is not None:
                raise _not_planned(log.segment_id)

        return SegmentEncoding(log_object=self._mapped(log_object, watch), closing=closing)

    def _next(
        self,
        contents: Generator[ObjectContent, StoredObject, None],
        stored: StoredObject | None,
        watch: CallWatch,
    ) -> ObjectContent | None:
        """Return the next content, and map its source's errors; None at the end."""
        with self._calls.mapped("closing", watch):
            try:
                found = next(contents) if stored is None else contents.send(stored)
            except StopIteration:
                return None
            return self._mapped(require_type(found, ObjectContent), watch)

    def _mapped(self, content: ObjectContent, watch: CallWatch) -> ObjectContent:
        source = MappedSource(source=content.source, calls=self._calls, watch=watch)
        return replace(content, source=source)

    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, objects: SegmentObjects
    ) -> LocatedBytes:
        with self._calls.mapped("locate"):
            found = require_type(self._inner.locate(metadata, positions, objects), LocatedBytes)
        join = found.join
        if join is None:
            return found

        def mapped_join(pieces: Sequence[bytes]) -> bytes:
            with self._calls.mapped("join"):
                return require_type(join(pieces), bytes)

        return replace(found, join=mapped_join)

    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        with self._calls.mapped("companion_object"):
            return require_type(self._inner.companion_object(metadata), StoredObject)

    def decode_companion(self, content: bytes) -> Companion:
        with self._calls.mapped("decode_companion"):
            return require_type(self._inner.decode_companion(content), Companion)


def _names(key: SegmentKey, segment_id: RemoteLogSegmentId, base_offset: int) -> bool:
    """Return whether a key names the segment, and its base offset if the form contains one."""
    if key.segment_id != segment_id:
        return False
    return isinstance(key, StreamedKey) or key.base_offset == base_offset


def _not_planned(segment_id: RemoteLogSegmentId) -> CorruptError:
    return CorruptError(
        "cannot accept the plug-in's objects: their keys differ from the planned keys",
        segment_id=segment_id,
    )
