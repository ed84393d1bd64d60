"""Stores a segment unchanged, divided into objects of bounded length (layout `chunked`). Pure.

The objects `.log.00000`, `.log.00001`, … contain the bytes of the segment in order, and nothing
else (PDP-34). Only the last chunk may be shorter than the others. The companion `.meta` is written
last, so its existence proves that all chunks were written. The record of a segment has the length
of each chunk, so reads do not depend on settings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rsm.layout.companion import Companion, decode_companion
from rsm.layout.keys import ObjectKey
from rsm.layout.raw import COMPANION_SUFFIX, LOG_SUFFIX, closing_companion, origin_attributes
from rsm.layout.segment_layout import (
    LocatedBytes,
    LogToWrite,
    ObjectContent,
    ObjectOrigin,
    ObjectRange,
    SegmentEncoding,
    SegmentLayout,
    SegmentObjects,
)
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.metadata import (
    RemoteLogSegmentMetadata,
    StoredObject,
    chunk_key,
    short_keys,
)
from rsm.segment.ranges import ByteRange

NAME = "chunked"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedLayout(SegmentLayout):
    """Writes chunks of `max_chunk_bytes`, and reads chunks of any length.

    New objects carry `origin` as attributes.
    """

    max_chunk_bytes: int
    origin: ObjectOrigin | None = None

    @property
    def name(self) -> str:
        return NAME

    @property
    def can_store_empty_logs(self) -> bool:
        return True

    @property
    def chunk_bytes(self) -> int:
        return self.max_chunk_bytes

    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[ObjectKey, ...]:
        return tuple(
            ObjectKey(segment_id=segment_id, base_offset=base_offset, suffix=suffix)
            for suffix in (chunk_key(f"{LOG_SUFFIX}.", 0), COMPANION_SUFFIX)
        )

    def encoding(self, log: LogToWrite) -> SegmentEncoding:
        origin = origin_attributes(self.origin)
        return SegmentEncoding(
            log_object=ObjectContent(
                key=log.objects[0].key, source=log.content, inline_attributes=origin
            ),
            closing=partial(closing_companion, origin, self.companion_object),
        )

    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, objects: SegmentObjects
    ) -> LocatedBytes:
        ends = self._chunk_ends(metadata)
        number = bisect_right(ends, positions.start_position)
        begin = ends[number - 1] if number else 0
        ranges = []
        while number < len(ends) and begin < positions.end_position:
            first = max(positions.start_position, begin)
            end = min(positions.end_position, ends[number])
            if first < end:
                within = ByteRange(start_position=first - begin, end_position=end - begin)
                ranges.append(ObjectRange(key=metadata.objects[number].key, positions=within))
            begin = ends[number]
            number += 1
        return LocatedBytes(ranges=tuple(ranges))

    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        self._chunks_count(metadata)
        return metadata.objects[-1]

    def decode_companion(self, content: bytes) -> Companion:
        return decode_companion(content)

    def _chunk_ends(self, metadata: RemoteLogSegmentMetadata) -> Sequence[int]:
        """Return the end position of each chunk.

        Raises CorruptError if lengths are missing or do not add up to the segment's length.
        """
        count, ends = self._chunks_count(metadata), metadata.chunks.ends
        if len(ends) < count or ends[-1] != metadata.segment_size_bytes:
            raise CorruptError(
                "the chunks' lengths are missing or do not add up to the segment's length",
                segment_id=metadata.segment_id,
                segment_bytes=metadata.segment_size_bytes,
                chunks_bytes=ends[-1] if ends else 0,
                chunks=count,
                written=len(ends),
            )
        return ends

    def _chunks_count(self, metadata: RemoteLogSegmentMetadata) -> int:
        count, objects = metadata.chunks.count, metadata.objects
        if (
            not count
            or len(objects) != count + 1
            or not objects[-1].key.endswith(f".{COMPANION_SUFFIX}")
        ):
            raise CorruptError(
                "the objects of a chunked segment are invalid",
                segment_id=metadata.segment_id,
                expected=f".{LOG_SUFFIX}.00000 and any further chunks, then .{COMPANION_SUFFIX}",
                found=" ".join(short_keys(metadata.object_keys)),
            )
        return count
