"""The fold's parser accepts exactly the segment records that the codec accepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from rlmm.codec import FOLD_VERSION, decode, encode
from rlmm.events.parsed_segment import ParsedSegment
from rlmm.fold import parse_record
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import segment_key
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.metadata import SegmentState
from rsm.segment.proto import segment_pb2
from tests.metadata_builder import (
    DELETE_STARTED,
    FINISHED,
    ORDERS,
    STARTED,
    segment_id,
    segment_metadata,
    step,
    writer,
)

EVENT = step(
    segment_metadata(1, 10, 100),
    DELETE_STARTED,
    by=writer(7),
    expected_state=FINISHED,
    copy_timeout_ms=500,
    copy_deadline_ms=900,
)
RECORD = encode(EVENT)


def changed(change: Callable[[pb.SegmentEvent], object]) -> bytes:
    """Return the record's value after a change of its message."""
    assert RECORD.value is not None
    message = pb.MetadataEvent.FromString(RECORD.value)
    change(message.segment)
    return message.SerializeToString()


def is_taken(value: bytes, key: bytes = RECORD.key) -> bool:
    """Return whether the fold takes a record; the codec has to agree."""
    taken = []
    for read in (parse_record, decode):
        try:
            read(key, value)
        except CorruptError:
            taken.append(False)
        else:
            taken.append(True)
    assert taken[0] == taken[1]
    return taken[0]


def test_step_when_read_then_says_what_the_event_says() -> None:
    assert RECORD.value is not None
    found = parse_record(RECORD.key, RECORD.value)

    assert isinstance(found, ParsedSegment)
    assert (found.state, found.expected_state, found.writer) == (
        DELETE_STARTED,
        FINISHED,
        writer(7),
    )
    assert (found.base_offset, found.end_offset, found.size_bytes) == (10, 100, 4_096)
    assert (found.copy_timeout_ms, found.copy_deadline_ms) == (500, 900)


def test_step_when_no_state_is_expected_then_none() -> None:
    record = encode(step(segment_metadata(), STARTED))
    assert record.value is not None

    found = parse_record(record.key, record.value)

    assert isinstance(found, ParsedSegment)
    assert (found.state, found.expected_state) == (SegmentState.COPY_SEGMENT_STARTED, None)


@pytest.mark.parametrize(
    ("epochs", "taken"),
    [
        ([(0, 10)], True),
        ([(0, 10), (1, 50)], True),
        ([(0, 10), (5, 10), (6, 99)], True),
        ([(0, 10), (0, 50)], False),
        ([(1, 10), (0, 50)], False),
        ([(0, 50), (1, 49)], False),
        ([(0, 10), (1, 60), (2, 50)], False),
        ([(-1, 10)], False),
        ([(0, 9)], False),
        ([(0, 99)], True),
        ([(0, 100)], False),
        ([(0, 10), (1, 100)], False),
        ([], False),
    ],
)
def test_step_when_its_epochs_do_not_ascend_within_the_segment_then_corrupt(
    epochs: list[tuple[int, int]], *, taken: bool
) -> None:
    def change(event: pb.SegmentEvent) -> None:
        entries = [
            segment_pb2.EpochEntry(epoch=epoch, start_offset=start) for epoch, start in epochs
        ]
        del event.metadata.segment_leader_epochs[:]
        event.metadata.segment_leader_epochs.extend(entries)

    assert is_taken(changed(change)) == taken


@pytest.mark.parametrize(
    ("field", "value", "taken"),
    [
        ("start_offset", -1, False),
        ("end_offset", 11, True),
        ("end_offset", 10, False),
        ("segment_size_bytes", 0, True),
        ("segment_size_bytes", -1, False),
    ],
)
def test_step_when_a_number_of_its_segment_can_not_be_then_corrupt(
    field: str, value: int, *, taken: bool
) -> None:
    assert is_taken(changed(lambda event: setattr(event.metadata, field, value))) == taken


@pytest.mark.parametrize(
    ("state", "end_offset", "size_bytes", "taken"),
    [
        (SegmentState.COPY_SEGMENT_STARTED, 11, 0, True),
        (SegmentState.COPY_SEGMENT_STARTED, 12, 0, False),
        (SegmentState.COPY_SEGMENT_STARTED, 11, 1, False),
        (SegmentState.DELETE_SEGMENT_STARTED, 11, 0, True),
        (SegmentState.DELETE_SEGMENT_FINISHED, 11, 0, True),
        (FINISHED, 11, 0, False),
    ],
)
def test_step_when_its_end_is_not_known_then_has_neither_an_end_nor_a_size(
    state: SegmentState, end_offset: int, size_bytes: int, *, taken: bool
) -> None:
    def change(event: pb.SegmentEvent) -> None:
        fields = {"state": state.value, "end_offset": end_offset, "segment_size_bytes": size_bytes}
        event.metadata.is_open = True
        for name, value in fields.items():
            setattr(event.metadata, name, value)

    assert is_taken(changed(change)) == taken


@pytest.mark.parametrize(
    ("field", "value", "taken"),
    [
        ("copy_timeout_ms", 0, True),
        ("copy_timeout_ms", -1, False),
        ("copy_deadline_ms", 0, True),
        ("copy_deadline_ms", -1, False),
    ],
)
def test_step_when_a_time_of_its_copy_is_negative_then_corrupt(
    field: str, value: int, *, taken: bool
) -> None:
    assert is_taken(changed(lambda event: setattr(event, field, value))) == taken


@pytest.mark.parametrize("length", [0, 15, 17])
def test_step_when_its_writer_is_none_then_corrupt(length: int) -> None:
    value = changed(lambda event: setattr(event.metadata.writer, "incarnation", bytes(length)))
    assert not is_taken(value)


@pytest.mark.parametrize("length", [0, 15, 16, 17])
def test_step_when_its_writer_decides_nothing_then_must_be_one_all_the_same(length: int) -> None:
    record = encode(step(segment_metadata(), STARTED))
    assert record.value is not None
    message = pb.MetadataEvent.FromString(record.value)
    message.segment.metadata.writer.incarnation = bytes(length)

    assert is_taken(message.SerializeToString(), record.key) == (length == 16)


@pytest.mark.parametrize("key", [RECORD.key[:-1], RECORD.key + b"x", b"\x7f" + RECORD.key[1:], b""])
def test_step_when_its_key_is_no_segments_then_corrupt(key: bytes) -> None:
    assert RECORD.value is not None
    with pytest.raises((CorruptError, UnsupportedError)):
        parse_record(key, RECORD.value)


@pytest.mark.parametrize(("version", "is_read"), [(FOLD_VERSION, True), (FOLD_VERSION + 1, False)])
def test_step_when_it_needs_these_rules_then_read_and_newer_ones_not(
    version: int, *, is_read: bool
) -> None:
    assert RECORD.value is not None
    message = pb.MetadataEvent.FromString(RECORD.value)
    message.min_fold_version = version
    if is_read:
        assert isinstance(parse_record(RECORD.key, message.SerializeToString()), ParsedSegment)
        return

    with pytest.raises(UnsupportedError):
        parse_record(RECORD.key, message.SerializeToString())


def test_step_when_its_segment_starts_at_0_then_taken() -> None:
    record = encode(step(segment_metadata(1, 0, 1), STARTED))
    assert record.value is not None
    assert is_taken(record.value, record.key)


@pytest.mark.parametrize(
    "key",
    [
        segment_key(segment_id(2), EVENT.event_id),
        segment_key(segment_id(1), UUID(int=99)),
        segment_key(segment_id(1, replace(ORDERS, partition=1)), EVENT.event_id),
        segment_key(segment_id(1, replace(ORDERS, topic_id=UUID(int=9))), EVENT.event_id),
    ],
)
def test_step_when_its_key_is_another_records_then_corrupt(key: bytes) -> None:
    assert RECORD.value is not None
    assert is_taken(RECORD.value)
    assert not is_taken(RECORD.value, key)
