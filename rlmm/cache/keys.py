"""The cache's key layouts. Subjects are those of rlmm/record_keys.py; numbers are u64, big endian.

| table | key | value |
|---|---|---|
| checkpoint | `identity` | CacheIdentity (rlmm/proto/cache.proto) |
| checkpoint | `p` + metadata partition (u32) | next offset, leader epoch, append time |
| segments | segment subject | SegmentEntry |
| segments by offset | partition subject, base offset, segment id | end offset |
| segments by offset | partition subject | greatest span of the partition's segments |
| unfinished by offset | partition subject, base offset, segment id | end offset |
| finished by epoch | partition subject, epoch (u32), start offset, segment id | EpochRow |
| finished by epoch | partition subject, epoch (u32) | greatest span in that epoch |
| partitions | partition subject | PartitionState (rlmm/proto/cache.proto) |
| partitions | partition subject, `d` | state of its deletion |
| record keys | partition subject, kind, event id | offset in the metadata topic |
| cluster | `policy` + topic id | MetadataEvent |
| cluster | `pause` + topic id | MetadataEvent |
| cluster | `process` + process id | time of the heartbeat, MetadataEvent |
| cluster | `newer` + length of the scope (u8), scope, record's key | NewerRecord |

Unfinished are all segments in another state than COPY_SEGMENT_FINISHED. Finished ones stand once
for each of their epochs, with the part of them that the epoch wrote; so the last key not above
(partition, epoch, offset) is where a lookup begins. A span (end minus start) never shrinks; it
bounds how far back a segment that covers an offset can begin.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from rlmm.record_keys import PARTITION_SUBJECT_BYTES, RecordKind

_U32 = Struct(">I")
_U64 = Struct(">Q")
_EPOCH_ROW = Struct(">QQ??")

IDENTITY = b"identity"
POSITION_PREFIX = b"p"
POSITION_END = b"q"
POLICY_PREFIX = b"policy"
PAUSE_PREFIX = b"pause"
PROCESS_PREFIX = b"process"
NEWER_PREFIX = b"newer"
DELETION_SUFFIX = b"d"
MAX_OFFSET = (1 << 63) - 1

_OFFSET_START = PARTITION_SUBJECT_BYTES
_EPOCH_START = PARTITION_SUBJECT_BYTES + 4


class EpochRow(NamedTuple):
    """What an epoch's index holds of a finished segment: enough to answer without the segment.

    `end_offset` is where the epoch ends in it, `size_bytes` the whole segment's. `begins`: the
    segment begins in this epoch.
    """

    end_offset: int
    size_bytes: int
    has_transaction_index: bool
    begins: bool


def offset_key(partition: bytes, base_offset: int, segment_id: bytes = b"") -> bytes:
    """In `segments by offset`: a segment, or with no id the place before all of that offset."""
    return partition + _U64.pack(base_offset) + segment_id


def offset_key_segment_id(key: bytes) -> bytes:
    """The segment id that an `offset_key` ends with."""
    return key[_OFFSET_START + 8 :]


def epoch_prefix(partition: bytes, epoch: int) -> bytes:
    """In `finished by epoch`: what all keys of an epoch begin with, and the key of its span."""
    return partition + _U32.pack(epoch)


def epoch_key(prefix: bytes, start_offset: int, segment_id: bytes = b"") -> bytes:
    """In `finished by epoch`: a segment, or with no id the place before all of that offset."""
    return prefix + _U64.pack(start_offset) + segment_id


def epoch_key_parts(key: bytes) -> tuple[int, bytes]:
    """Start offset and segment id of an `epoch_key`."""
    return _U64.unpack_from(key, _EPOCH_START)[0], key[_EPOCH_START + 8 :]


pack_epoch_row = _EPOCH_ROW.pack
"""An EpochRow's fields, in their order, as a value."""


def unpack_epoch_row(value: bytes) -> EpochRow:
    """Read what `pack_epoch_row` wrote."""
    return EpochRow._make(_EPOCH_ROW.unpack(value))


def epoch_row_end(value: bytes) -> int:
    """The end offset of an EpochRow."""
    end_offset: int = _U64.unpack_from(value)[0]
    return end_offset


def newer_prefix(scope: bytes) -> bytes:
    """In `cluster`: what all newer records of a scope begin with; the record's key follows."""
    return NEWER_PREFIX + bytes((len(scope),)) + scope


def deletion_key(partition: bytes) -> bytes:
    """In `partitions`: how far a partition's deletion has come."""
    return partition + DELETION_SUFFIX


def record_key_prefix(partition: bytes, kind: RecordKind) -> bytes:
    """In `record keys`: what all keys of a kind begin with; the event id follows."""
    return partition + bytes((kind,))


def position_key(metadata_partition: int) -> bytes:
    """In `checkpoint`: a metadata partition's position."""
    return POSITION_PREFIX + _U32.pack(metadata_partition)


def position_key_partition(key: bytes) -> int:
    """The metadata partition of a `position_key`."""
    partition: int = _U32.unpack_from(key, len(POSITION_PREFIX))[0]
    return partition


def after(prefix: bytes) -> bytes:
    """The end of the range of all keys that begin with `prefix`; it must not be all 0xff."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes((stem[-1] + 1,))


pack_number = _U64.pack
"""A number as a value."""


def unpack_number(value: bytes) -> int:
    """Read what `pack_number` wrote."""
    number: int = _U64.unpack(value)[0]
    return number
