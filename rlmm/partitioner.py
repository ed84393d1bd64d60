"""Maps a subject to the partition of the metadata topic that contains its records.

**The mapping must never change:** records of one subject on two partitions have no order, so a fold
would be wrong.
"""

from __future__ import annotations

from crc32c import crc32c

from rlmm.events.event import Event
from rlmm.events.registry import family_of
from rlmm.positions import CLUSTER_PARTITION
from rlmm.record_keys import (
    CLUSTER_KINDS,
    PARTITION_SUBJECT_BYTES,
    RecordKind,
    partition_subject,
)
from rsm.segment.ids import TopicIdPartition

_PARTITION_KINDS = frozenset(RecordKind) - CLUSTER_KINDS
_SUBJECT_END = 1 + PARTITION_SUBJECT_BYTES


def metadata_partition(value: TopicIdPartition, partition_count: int) -> int:
    """Return the CRC32C of topic id (16 bytes) and partition (u32, big endian), modulo count."""
    return subject_partition(partition_subject(value), partition_count)


def subject_partition(subject: bytes, partition_count: int) -> int:
    """Return the metadata partition of a partition subject (rlmm/record_keys.py)."""
    return crc32c(subject) % partition_count


def event_partition(event: Event, partition_count: int) -> int:
    """Return the metadata partition to which an event is written."""
    partition = family_of(event).partition_of(event)
    if partition is None:
        return CLUSTER_PARTITION
    return metadata_partition(partition, partition_count)


def is_misplaced(key: bytes, partition: int, partition_count: int) -> bool:
    """Return whether a record is on a metadata partition to which its key does not belong.

    Returns False for an empty key, an unknown kind, and a partition's key that is too short.
    """
    if len(key) < _SUBJECT_END:
        return bool(key) and key[0] in CLUSTER_KINDS and partition != CLUSTER_PARTITION
    if key[0] in _PARTITION_KINDS:
        return subject_partition(key[1:_SUBJECT_END], partition_count) != partition
    return False
