"""The accounts of offload segments (PIP-76) in the cache: kept with the keys of their records."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from google.protobuf.message import DecodeError

from rlmm.cache.keys import after, record_content, record_key_prefix
from rlmm.cache.ordered_store import OrderedStore, Table
from rlmm.events.offload_segment import offload_segment_of, status_key_id
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKey, RecordKind, partition_subject
from rlmm.state.offload_segments import (
    STATUS_ORDER,
    OffloadSegmentRecord,
    OffloadSegmentStatus,
)
from rsm.segment.errors import CorruptError
from rsm.segment.ids import TopicIdPartition

_KIND = RecordKind.OFFLOAD_SEGMENT


class OffloadSegmentRows:
    """Reads the rows of offload segments. Thread-safe. Raises as MetadataCache does."""

    def __init__(self, store: OrderedStore) -> None:
        self._store = store

    def of(
        self, topic_id_partition: TopicIdPartition, status: OffloadSegmentStatus | None = None
    ) -> tuple[OffloadSegmentRecord, ...]:
        """Return a partition's offload segments by ascending begin, each in its furthest status.

        With `status`, it returns only their records of that status, further ones or not.
        """
        prefix = record_key_prefix(partition_subject(topic_id_partition), _KIND)
        prefix += b"" if status is None else bytes((status.value,))
        with self._store.read(Table.RECORD_KEYS) as reader:
            rows = list(reader.ascending(Table.RECORD_KEYS, prefix, after(prefix)))
        return _furthest(record_content(value) for _, value in rows)

    def keys_of(self, topic_id_partition: TopicIdPartition, segment_id: UUID) -> list[RecordKey]:
        """Return the keys of an offload segment's records, the furthest status last."""
        subject = partition_subject(topic_id_partition)
        prefix = record_key_prefix(subject, _KIND)
        ids = [status_key_id(segment_id, status).bytes for status in STATUS_ORDER]
        return [
            RecordKey(kind=_KIND, subject=subject, event_id=key_id)
            for key_id in ids
            if self._store.get(Table.RECORD_KEYS, prefix + key_id) is not None
        ]


def _furthest(contents: Iterable[bytes]) -> tuple[OffloadSegmentRecord, ...]:
    """Decode contents, of which those of refused records are empty. CorruptError.

    The assigned record decides all but the status, the end and its time.
    """
    furthest: dict[UUID, OffloadSegmentRecord] = {}
    assigned: dict[UUID, OffloadSegmentRecord] = {}
    for content in filter(None, contents):
        try:
            found = offload_segment_of(pb.OffloadSegmentChanged.FromString(content))
        except DecodeError as error:
            raise CorruptError("the value has no valid offload segment") from error
        if found.status is OffloadSegmentStatus.ASSIGNED:
            assigned[found.id] = found
        known = furthest.get(found.id)
        if known is None or known.precedes(found):
            furthest[found.id] = found
    segments = (
        assigned[each.id].reached(each) if each.id in assigned else each
        for each in furthest.values()
    )
    return tuple(sorted(segments, key=lambda each: (each.begin.offset, each.id)))
