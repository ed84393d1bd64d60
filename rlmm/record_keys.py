"""Defines the keys of the metadata topic's records, and the subjects that group them.

| kind | byte | rest |
|---|---|---|
| segment event (dead-lettered too) | 0x01 | partition subject (20), segment (16), event (16) |
| leadership claimed | 0x02 | partition subject (20), event (16) |
| local log trimmed | 0x03 | partition subject (20), event (16) |
| log start advanced | 0x04 | partition subject (20), event (16) |
| log start requested | 0x05 | partition subject (20), event (16) |
| partition delete | 0x06 | partition subject (20), event (16) |
| read lease | 0x07 | partition subject (20), lease (16) |
| gaps recorded | 0x08 | partition subject (20), event (16) |
| offload requested | 0x09 | partition subject (20), event (16) |
| loss accepted | 0x0a | partition subject (20), event (16) |
| anomaly | 0x0b | partition subject (20), anomaly (16) |
| offload segment | 0x0c | partition subject (20), status (1), offload segment without byte 0 (15) |
| topic policy | 0x10 | topic id (16) |
| process registration | 0x11 | process id (16) |
| topic paused | 0x12 | topic id (16) |
| cluster secret set | 0x13 | nothing |
| policy level | 0x14 | first 16 bytes of the SHA-256 of its pattern in UTF-8 |

Numbers in parentheses are lengths in bytes. A partition subject is the topic id (16) and the
partition as u32, big endian. A segment subject is a partition subject and the segment id. The key
alone identifies a record's subject, even for a tombstone. Keys of kinds whose acceptance depends on
order contain the event's id, so that no record replaces another.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from uuid import UUID

from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition

_PARTITION = Struct(">16sI")
PARTITION_SUBJECT_BYTES = _PARTITION.size
SEGMENT_SUBJECT_BYTES = PARTITION_SUBJECT_BYTES + 16
EVENT_ID_BYTES = 16


class RecordKind(IntEnum):
    """Represents the kind of a record: the first byte of its key."""

    SEGMENT = 0x01
    CLAIM = 0x02
    TRIM = 0x03
    LOG_START = 0x04
    LOG_START_REQUEST = 0x05
    PARTITION_DELETE = 0x06
    READ_LEASE = 0x07
    GAPS = 0x08
    OFFLOAD_REQUEST = 0x09
    LOSS_ACCEPTED = 0x0A
    ANOMALY = 0x0B
    OFFLOAD_SEGMENT = 0x0C
    POLICY = 0x10
    REGISTRATION = 0x11
    PAUSE = 0x12
    CLUSTER_SECRET = 0x13
    POLICY_LEVEL = 0x14


_CLUSTER_SUBJECT_BYTES = {
    RecordKind.POLICY: 16,
    RecordKind.REGISTRATION: 16,
    RecordKind.PAUSE: 16,
    RecordKind.CLUSTER_SECRET: 0,
    RecordKind.POLICY_LEVEL: 16,
}
_OF_ALL = frozenset({RecordKind.REGISTRATION, RecordKind.POLICY_LEVEL})
CLUSTER_KINDS = frozenset(_CLUSTER_SUBJECT_BYTES)
"""Kinds that concern no single user partition; their keys are the kind and the subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKey:
    """Represents a parsed key.

    `event_id` is the id of the event, or of the lease, anomaly or offload segment status that the
    key identifies. It is empty if the key is only the kind and the subject.
    """

    kind: RecordKind
    subject: bytes
    event_id: bytes = b""

    def to_bytes(self) -> bytes:
        return bytes((self.kind,)) + self.subject + self.event_id


def parse_record_key(key: bytes) -> RecordKey:
    """Parse a key. Raises UnsupportedError for an unknown kind, CorruptError for a wrong length."""
    if not key:
        raise CorruptError("the record is invalid: it has no key")
    try:
        kind = RecordKind(key[0])
    except ValueError as error:
        raise UnsupportedError(
            "cannot decode the record: its kind is unknown", kind=key[0]
        ) from error
    subject_end = 1 + _subject_bytes(kind)
    key_end = subject_end if kind in CLUSTER_KINDS else subject_end + EVENT_ID_BYTES
    if len(key) != key_end:
        raise CorruptError(
            "the record is invalid: its key has a wrong length",
            kind=kind.name,
            length_bytes=len(key),
        )
    return RecordKey(kind=kind, subject=key[1:subject_end], event_id=key[subject_end:])


def _subject_bytes(kind: RecordKind) -> int:
    if kind is RecordKind.SEGMENT:
        return SEGMENT_SUBJECT_BYTES
    return _CLUSTER_SUBJECT_BYTES.get(kind, PARTITION_SUBJECT_BYTES)


def partition_subject(value: TopicIdPartition) -> bytes:
    """Return the bytes that follow the kind in every key about one topic-id-partition."""
    return _PARTITION.pack(value.topic_id.bytes, value.partition)


def subject_partition_number(subject: bytes) -> int:
    """Return the partition number of a partition or segment subject."""
    number: int = _PARTITION.unpack_from(subject)[1]
    return number


def segment_subject(value: RemoteLogSegmentId) -> bytes:
    """Return the bytes that follow the kind in every key about one segment."""
    return partition_subject(value.topic_id_partition) + value.id.bytes


def segment_key(segment: RemoteLogSegmentId, event_id: UUID) -> bytes:
    """Return the key of a segment's event."""
    return bytes((RecordKind.SEGMENT,)) + segment_subject(segment) + event_id.bytes


def partition_key(kind: RecordKind, value: TopicIdPartition, event_id: UUID) -> bytes:
    """Return the key of a partition's event; `event_id` is as in RecordKey."""
    return bytes((kind,)) + partition_subject(value) + event_id.bytes


def record_scope(key: bytes) -> bytes:
    """Return what a key of any version concerns: a partition subject, a topic id, or b"" for all.

    Unreadable keys, and keys of processes, policy levels and the secret, concern everything.
    """
    try:
        parsed = parse_record_key(key)
    except (CorruptError, UnsupportedError):
        return b""
    if parsed.kind in _OF_ALL:
        return b""
    return parsed.subject[:PARTITION_SUBJECT_BYTES]
