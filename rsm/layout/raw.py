"""Stores a segment unchanged as `.log`, and its companion as `.meta` (layout `raw`). Pure.

The `.log` is written first, so an existing `.meta` proves that the whole `.log` was written.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial

from rsm.layout.companion import Companion, decode_companion, encode_companion
from rsm.layout.keys import ObjectKey
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
from rsm.segment.local_segment import BytesSource, SegmentCompanions
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.segment.ranges import ByteRange

NAME = "raw"
LOG_SUFFIX = "log"
COMPANION_SUFFIX = "meta"
_VERSION_KEY = "softwareversion"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawLayout(SegmentLayout):
    """Stores a segment unchanged. New objects carry `origin` as attributes."""

    origin: ObjectOrigin | None = None

    @property
    def name(self) -> str:
        return NAME

    @property
    def can_store_empty_logs(self) -> bool:
        return True

    def object_keys(
        self, segment_id: RemoteLogSegmentId, base_offset: int
    ) -> tuple[ObjectKey, ...]:
        return tuple(
            ObjectKey(segment_id=segment_id, base_offset=base_offset, suffix=suffix)
            for suffix in (LOG_SUFFIX, COMPANION_SUFFIX)
        )

    def encoding(self, log: LogToWrite) -> SegmentEncoding:
        origin = origin_attributes(self.origin)
        return SegmentEncoding(
            log_object=ObjectContent(
                key=_objects(log)[0].key, source=log.content, inline_attributes=origin
            ),
            closing=partial(closing_companion, origin, self.companion_object),
        )

    def locate(
        self, metadata: RemoteLogSegmentMetadata, positions: ByteRange, objects: SegmentObjects
    ) -> LocatedBytes:
        log, _ = _objects(metadata)
        end_position = min(positions.end_position, metadata.segment_size_bytes)
        if positions.start_position >= end_position:
            return LocatedBytes(ranges=())
        within = ByteRange(start_position=positions.start_position, end_position=end_position)
        return LocatedBytes(ranges=(ObjectRange(key=log.key, positions=within),))

    def companion_object(self, metadata: RemoteLogSegmentMetadata) -> StoredObject:
        return _objects(metadata)[1]

    def decode_companion(self, content: bytes) -> Companion:
        return decode_companion(content)


def origin_attributes(origin: ObjectOrigin | None) -> Mapping[str, str]:
    """Return the attributes of new objects."""
    return {} if origin is None else origin.attributes(version_key=_VERSION_KEY)


def closing_companion(
    origin: Mapping[str, str],
    companion_object: Callable[[RemoteLogSegmentMetadata], StoredObject],
    metadata: RemoteLogSegmentMetadata,
    companions: SegmentCompanions,
) -> Generator[ObjectContent, StoredObject, None]:
    """Yield the companion: the only other object of a segment whose log is stored unchanged."""
    record = Companion(metadata=metadata, companions=companions)
    yield ObjectContent(
        key=companion_object(metadata).key,
        source=BytesSource(content=encode_companion(record)),
        inline_attributes=origin,
    )


def _objects(segment: RemoteLogSegmentMetadata | LogToWrite) -> tuple[StoredObject, StoredObject]:
    """Find the log and the companion by their suffixes, in any order. Raises CorruptError."""
    by_suffix = {o.key.rpartition(".")[2]: o for o in segment.objects}
    if len(segment.objects) != 2 or by_suffix.keys() != {LOG_SUFFIX, COMPANION_SUFFIX}:
        raise CorruptError(
            "the objects of a raw segment are invalid",
            segment_id=segment.segment_id,
            expected=f"2 objects, .{LOG_SUFFIX} and .{COMPANION_SUFFIX}",
            found=f"objects: {len(segment.objects)}, suffixes: {' '.join(sorted(by_suffix))}",
        )
    return by_suffix[LOG_SUFFIX], by_suffix[COMPANION_SUFFIX]
