"""Parses the fields of a segment's record that the fold reads. Pure.

Nearly all records are segment events, and the fold needs few of their fields. So `parse_segment`
reads the message directly, without the values that `rlmm.codec` builds. It accepts exactly what the
codec accepts, and raises errors of the same classes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import NamedTuple

from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import SEGMENT_SUBJECT_BYTES
from rlmm.state.segment_entry import pack_epoch
from rsm.segment.errors import CorruptError
from rsm.segment.metadata import SegmentState, Writer, may_be_open
from rsm.segment.metadata_codec import state_from_number, writer_from_message
from rsm.segment.proto import segment_pb2
from rsm.segment.proto.chunk_table import check_chunks

_SEGMENT_KEY = Struct(">B16sI16s16s")
SEGMENT_KEY_BYTES = _SEGMENT_KEY.size
_SUBJECT_END = 1 + SEGMENT_SUBJECT_BYTES
_DELETE_STARTED = SegmentState.DELETE_SEGMENT_STARTED
_STATES = {state.value: state for state in SegmentState}


class ParsedSegment(NamedTuple):
    """Represents the fields of a SegmentEvent that the fold reads.

    `value` is the whole value of the record. rlmm/record_keys.py defines `subject` and `event_id`,
    and rlmm/state/segment_entry.py defines `epochs`. `writer` is None except for
    DELETE_SEGMENT_STARTED: only for this state does the fold check that the writer owns the
    partition.
    """

    subject: bytes
    event_id: bytes
    state: SegmentState
    expected_state: SegmentState | None
    writer: Writer | None
    base_offset: int
    end_offset: int
    size_bytes: int
    has_transaction_index: bool
    epochs: bytes
    copy_timeout_ms: int
    copy_deadline_ms: int
    value: bytes


_Fields = tuple[
    bytes,
    bytes,
    SegmentState,
    SegmentState | None,
    Writer | None,
    int,
    int,
    int,
    bool,
    bytes,
    int,
    int,
    bytes,
]
_new_parsed: Callable[[_Fields], ParsedSegment] = partial(tuple.__new__, ParsedSegment)
"""Builds a ParsedSegment from all its fields in order, in half the constructor's time."""


def parse_segment(key: bytes, value: bytes, message: pb.MetadataEvent) -> ParsedSegment:
    """Parse a record of a segment event in `message`. Raises CorruptError, UnsupportedError."""
    event = message.segment
    metadata = event.metadata
    partition = metadata.topic_id_partition
    _, topic_id, number, segment_id, event_id = _SEGMENT_KEY.unpack(key)
    if (
        partition.topic_id != topic_id
        or partition.partition != number
        or metadata.id != segment_id
        or message.event_id != event_id
    ):
        raise CorruptError(
            "the record is invalid: its key does not match its value", kind="SEGMENT"
        )
    timeout_ms, deadline_ms = event.copy_timeout_ms, event.copy_deadline_ms
    if timeout_ms < 0 or deadline_ms < 0:
        raise CorruptError("cannot read a segment event: a time limit of its copy is negative")
    state = _STATES.get(metadata.state) or state_from_number(metadata.state)
    expected = event.expected_state
    writer = metadata.writer
    if len(writer.incarnation) != 16:
        raise CorruptError(
            "the id is invalid: expected 16 bytes", length_bytes=len(writer.incarnation)
        )
    start_offset, end_offset = metadata.start_offset, metadata.end_offset
    size_bytes = metadata.segment_size_bytes
    if not 0 <= start_offset < end_offset or size_bytes < 0:
        raise CorruptError("the segment metadata is invalid", start=start_offset, end=end_offset)
    if metadata.is_open and not may_be_open(state, end_offset - start_offset, size_bytes):
        raise CorruptError(
            "cannot read an open segment: it must not be finished, or have an end or a size",
            state=state.name,
        )
    if metadata.HasField("chunks"):
        check_chunks(metadata.chunks)
    return _new_parsed(
        (
            key[1:_SUBJECT_END],
            event_id,
            state,
            state_from_number(expected) if expected else None,
            writer_from_message(writer) if state is _DELETE_STARTED else None,
            start_offset,
            end_offset,
            size_bytes,
            metadata.has_transaction_index,
            _checked_epochs(metadata, start_offset, end_offset),
            timeout_ms,
            deadline_ms,
            value,
        )
    )


def _checked_epochs(
    metadata: segment_pb2.RemoteLogSegmentMetadata, start_offset: int, end_offset: int
) -> bytes:
    last_epoch, last_start = -1, start_offset
    packed = b""
    # Iterates over a slice: ending a repeated field's iterator costs as much as several entries.
    for entry in metadata.segment_leader_epochs[:]:
        epoch, start = entry.epoch, entry.start_offset
        if epoch <= last_epoch or start < last_start:
            raise CorruptError(
                "the leader epochs are invalid: an epoch or start offset is out of order",
                epoch=epoch,
                start_offset=start,
            )
        last_epoch, last_start = epoch, start
        packed += pack_epoch(epoch, start)
    if not packed or last_start >= end_offset:
        raise CorruptError(
            "the leader epochs are invalid: they do not fit the segment's offsets",
            end_offset=end_offset,
            last_epoch_start=last_start,
        )
    return packed
