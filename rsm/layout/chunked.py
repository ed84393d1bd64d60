"""Layout `chunked`: the segment byte for byte in objects of bounded length, and its companion.

The objects `.log.00000`, `.log.00001`, … contain the bytes of the segment one after the other, and
nothing else (PDP-34). Each is full except the last one. The companion `.meta` is written last, so
it proves that the chunks are complete. The record of a segment has the length of each chunk: reads
depend on no setting. Pure.
"""

from __future__ import annotations

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
    leading_chunks,
    short_keys,
)
from rsm.segment.ranges import ByteRange

NAME = "chunked"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedLayout(SegmentLayout):
    """Writes chunks of `max_chunk_bytes`, reads any. New objects carry `origin` as attributes."""

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
        ranges = []
        begin = 0
        for key, length_bytes in self._chunks(metadata):
            first = max(positions.start_position, begin)
            end = min(positions.end_position, begin + length_bytes)
            if first < end:
                within = ByteRange(start_position=first - begin, end_position=end - begin)
                ranges.append(ObjectRange(key=key, positions=within))
            begin += length_bytes
        return LocatedBytes(ranges=tuple(ranges))

    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        self._chunks_count(metadata)
        return metadata.objects[-1]

    def decode_companion(self, content: bytes) -> Companion:
        return decode_companion(content)

    def _chunks(self, metadata: RemoteLogSegmentMetadata) -> Sequence[tuple[str, int]]:
        """Return the keys and lengths of all chunks. CorruptError if they are not the segment."""
        stored = metadata.objects[: self._chunks_count(metadata)]
        chunks = [(o.key, o.length_bytes) for o in stored if o.length_bytes is not None]
        if len(chunks) < len(stored) or sum(n for _, n in chunks) != metadata.segment_size_bytes:
            raise CorruptError(
                "the chunks of a segment are not as long as the segment",
                segment_id=metadata.segment_id,
                segment_bytes=metadata.segment_size_bytes,
                chunks_bytes=sum(n for _, n in chunks),
                chunks=len(stored),
                written=len(chunks),
            )
        return chunks

    def _chunks_count(self, metadata: RemoteLogSegmentMetadata) -> int:
        keys = metadata.object_keys
        count = leading_chunks(keys)
        if not count or len(keys) != count + 1 or not keys[-1].endswith(f".{COMPANION_SUFFIX}"):
            raise CorruptError(
                "a chunked segment must have chunks and a companion",
                segment_id=metadata.segment_id,
                expected=f".{LOG_SUFFIX}.00000 and further chunks, .{COMPANION_SUFFIX}",
                found=" ".join(short_keys(keys)),
            )
        return count
