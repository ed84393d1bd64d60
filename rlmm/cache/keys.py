"""Defines the layouts of the cache's keys.

Subjects are those of rlmm/record_keys.py. Numbers are big-endian, and u64 unless noted.

| table | key | value |
|---|---|---|
| checkpoint | `identity` | CacheIdentity (rlmm/proto/cache.proto) |
| checkpoint | `p` + metadata partition (u32) | next offset, leader epoch, append time |
| segments | partition subject, base offset, segment id | SegmentEntry |
| segment offsets | segment subject | base offset |
| unfinished by offset | partition subject, base offset, segment id | end offset |
| bounds | partition subject | highest span of the partition's segments |
| bounds | partition subject, epoch (u32) | lowest, highest base offset of the epoch's segments |
| partitions | partition subject | PartitionState (rlmm/proto/cache.proto) |
| partitions | partition subject, `d` | state of the partition's deletion |
| record keys | partition subject, kind, event id | offset in the metadata topic, kept content |
| cluster | `row_prefix` of a family (rlmm/events) + subject | as the family encodes it |
| cluster | `newer` + length of the scope (u8), scope, record's key | NewerRecord |
| cluster | `unreadable` + key of a record that newer rules cannot read either | NewerRecord |

A segment's key contains its base offset, so that a lookup or listing finds the segment with one
seek. The base offset is 0 if no record of the segment was accepted. A segment is unfinished in each
state except COPY_SEGMENT_FINISHED. Bounds never become narrower. The highest span (end minus base
offset) limits how far below an offset a segment with that offset can begin. An epoch's base offsets
limit the search for segments with records of the epoch.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from rlmm.record_keys import PARTITION_SUBJECT_BYTES, RecordKey, RecordKind
from rlmm.state.segment_entry import pack_covered_epoch

_U32 = Struct(">I")
_U64 = Struct(">Q")
_EPOCH_BASES = Struct(">QQ")

IDENTITY = b"identity"
POSITION_PREFIX = b"p"
POSITION_END = b"q"
NEWER_PREFIX = b"newer"
UNREADABLE_PREFIX = b"unreadable"
DELETION_SUFFIX = b"d"
MAX_OFFSET = (1 << 63) - 1

_OFFSET_START = PARTITION_SUBJECT_BYTES
OFFSET_KEY_ID = _OFFSET_START + _U64.size
"""The position of the segment's id in an `offset_key`."""


class EpochBases(NamedTuple):
    """Represents the range of base offsets of an epoch's segments; both ends are inclusive."""

    least_offset: int
    greatest_offset: int

    def joined(self, other: EpochBases) -> EpochBases:
        """Return the range that covers both."""
        return EpochBases(
            min(self.least_offset, other.least_offset),
            max(self.greatest_offset, other.greatest_offset),
        )


def offset_key(partition: bytes, base_offset: int, segment_id: bytes = b"") -> bytes:
    """Return a segment's key in `segments`; without an id, the lower bound of an offset's keys."""
    return partition + pack_number(base_offset) + segment_id


def offset_key_parts(key: bytes) -> tuple[int, bytes]:
    """Return the base offset and the segment id in an `offset_key`."""
    return _U64.unpack_from(key, _OFFSET_START)[0], key[OFFSET_KEY_ID:]


def subject_key(subject: bytes, base_offset: bytes) -> bytes:
    """Return a segment's key in `segments`, given its value in `segment offsets`."""
    return subject[:_OFFSET_START] + base_offset + subject[_OFFSET_START:]


def offset_key_subject(key: bytes) -> bytes:
    """Return the segment subject in an `offset_key`."""
    return key[:_OFFSET_START] + key[OFFSET_KEY_ID:]


def epoch_key(partition: bytes, epoch: int) -> bytes:
    """Return the key of an epoch's base offsets in `bounds`."""
    return partition + pack_covered_epoch(epoch)


def pack_epoch_bases(bases: EpochBases) -> bytes:
    """Encode an epoch's base offsets as a value."""
    return _EPOCH_BASES.pack(*bases)


def unpack_epoch_bases(value: bytes) -> EpochBases:
    """Decode a value of `pack_epoch_bases`."""
    return EpochBases._make(_EPOCH_BASES.unpack(value))


def newer_prefix(scope: bytes) -> bytes:
    """Return the prefix of a scope's newer records in `cluster`; the record's key follows."""
    return NEWER_PREFIX + bytes((len(scope),)) + scope


def deletion_key(partition: bytes) -> bytes:
    """Return the key of a partition's deletion state in `partitions`."""
    return partition + DELETION_SUFFIX


def record_key_prefix(partition: bytes, kind: RecordKind) -> bytes:
    """Return the prefix of a kind's keys in `record keys`; the event id follows."""
    return partition + bytes((kind,))


def record_row(key: RecordKey) -> bytes:
    """Return the key of a partition's record in `record keys`."""
    return record_key_prefix(key.subject, key.kind) + key.event_id


def record_offset(value: bytes) -> int:
    """Return the offset in the metadata topic that a value of `record keys` contains."""
    return unpack_number(value[: _U64.size])


def record_content(value: bytes) -> bytes:
    """Return the kept content in a value of `record keys`; empty if nothing was kept."""
    return value[_U64.size :]


def position_key(metadata_partition: int) -> bytes:
    """Return the key of a metadata partition's position in `checkpoint`."""
    return POSITION_PREFIX + _U32.pack(metadata_partition)


def position_key_partition(key: bytes) -> int:
    """Return the metadata partition in a `position_key`."""
    partition: int = _U32.unpack_from(key, len(POSITION_PREFIX))[0]
    return partition


def after(prefix: bytes) -> bytes:
    """Return the exclusive end of the keys with `prefix`, which must not be all 0xff."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,))


pack_number = _U64.pack
"""Encodes a number as a value."""


def unpack_number(value: bytes) -> int:
    """Decode a value of `pack_number`."""
    number: int = _U64.unpack(value)[0]
    return number
