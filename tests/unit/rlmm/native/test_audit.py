"""Findings in records of Kafka's own tiered storage, from invented histories of segments."""

from __future__ import annotations

from uuid import UUID

import pytest

from rlmm.native.audit import NativeAudit, NativeFinding, NativeFindingKind, NativePosition
from rlmm.native.records import (
    NativePartitionDeleteState,
    NativeRecord,
    NativeSegmentFacts,
    NativeSegmentState,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
)
from rlmm.positions import MetadataPosition
from rsm.segment.errors import CorruptError
from rsm.segment.ids import RemoteLogSegmentId
from rsm.segment.ranges import OffsetRange
from tests.metadata_builder import ORDERS, segment_id

COPYING = NativeSegmentState.COPY_SEGMENT_STARTED
FINISHED = NativeSegmentState.COPY_SEGMENT_FINISHED
DELETING = NativeSegmentState.DELETE_SEGMENT_STARTED
DELETED = NativeSegmentState.DELETE_SEGMENT_FINISHED
PARTITION_MARKED = NativePartitionDeleteState.DELETE_PARTITION_MARKED
PARTITION_DELETED = NativePartitionDeleteState.DELETE_PARTITION_FINISHED


def started(number: int, first_offset: int, last_offset: int) -> NativeRecord:
    facts = NativeSegmentFacts(
        start_offset=first_offset,
        end_offset=last_offset,
        broker_id=1,
        max_timestamp_ms=1,
        event_timestamp_ms=1,
        segment_leader_epochs=((0, first_offset),),
        segment_size_bytes=10,
        custom_metadata=None,
        state=COPYING,
        txn_index_empty=True,
    )
    return RemoteLogSegmentMetadataRecord(segment_id=segment_id(number), facts=facts)


def update(number: int, state: NativeSegmentState) -> NativeRecord:
    return RemoteLogSegmentMetadataUpdateRecord(
        segment_id=segment_id(number),
        broker_id=1,
        event_timestamp_ms=1,
        custom_metadata=None,
        state=state,
    )


def partition_delete(state: NativePartitionDeleteState) -> NativeRecord:
    return RemotePartitionDeleteMetadataRecord(
        topic_id_partition=ORDERS, broker_id=1, event_timestamp_ms=1, state=state
    )


def stored(number: int, first_offset: int, last_offset: int) -> tuple[NativeRecord, ...]:
    return started(number, first_offset, last_offset), update(number, FINISHED)


def native_position(offset: int) -> NativePosition:
    """Return the record at an offset, with that number of milliseconds as its timestamp."""
    position = MetadataPosition(partition=0, offset=offset)
    return NativePosition(position=position, append_time_ms=offset)


def audited(*records: NativeRecord) -> NativeAudit:
    audit = NativeAudit()
    for offset, record in enumerate(records):
        audit.add(record, native_position(offset))
    return audit


def found(*records: NativeRecord, cut_off_ms: int = 1_000) -> list[NativeFinding]:
    return list(audited(*records).findings(cut_off_ms))


def of_segment(
    kind: NativeFindingKind, number: int, offset: int, offsets: OffsetRange | None
) -> NativeFinding:
    segment: RemoteLogSegmentId = segment_id(number)
    return NativeFinding(
        kind=kind,
        native_position=native_position(offset),
        topic_id_partition=ORDERS,
        segment_id=segment,
        offsets=offsets,
    )


@pytest.mark.parametrize(
    "records",
    [
        (),
        (*stored(1, 0, 9), *stored(2, 10, 19)),
        (*stored(2, 10, 19), *stored(1, 0, 9)),
        (*stored(1, 0, 9), *stored(2, 5, 19), *stored(3, 7, 8), *stored(4, 20, 29)),
        (*stored(1, 0, 9), update(1, DELETING), update(1, DELETED), *stored(2, 20, 29)),
        (started(1, 0, 9), update(1, DELETING), update(1, DELETED)),
        (*stored(1, 0, 9), partition_delete(PARTITION_MARKED), partition_delete(PARTITION_DELETED)),
        (update(1, DELETED),),
    ],
    ids=[
        "nothing",
        "two in a row",
        "in another order",
        "stored twice by two leaders",
        "deleted from the front",
        "a copy given up",
        "a partition deleted",
        "a deletion recorded twice",
    ],
)
def test_records_when_all_is_in_order_then_nothing_is_found(
    records: tuple[NativeRecord, ...],
) -> None:
    assert found(*records) == []


def test_copy_when_never_ended_then_found_at_its_beginning() -> None:
    (finding,) = found(*stored(1, 0, 9), started(2, 10, 19))

    offsets = OffsetRange(start_offset=10, end_offset=20)
    assert finding == of_segment(NativeFindingKind.DANGLING_COPY, 2, 2, offsets)


def test_deletion_when_never_ended_then_found_where_it_started() -> None:
    (finding,) = found(*stored(1, 0, 9), update(1, DELETING))

    offsets = OffsetRange(start_offset=0, end_offset=10)
    assert finding == of_segment(NativeFindingKind.DANGLING_DELETE, 1, 2, offsets)


def test_update_when_its_segment_was_never_started_then_found_without_offsets() -> None:
    (finding,) = found(update(1, FINISHED))

    assert finding == of_segment(NativeFindingKind.UNKNOWN_SEGMENT, 1, 0, None)


def test_stored_segments_when_apart_then_the_gap_is_found_at_the_one_after_it() -> None:
    (finding,) = found(*stored(1, 0, 9), *stored(2, 15, 19))

    assert finding == NativeFinding(
        kind=NativeFindingKind.GAP,
        native_position=native_position(3),
        topic_id_partition=ORDERS,
        offsets=OffsetRange(start_offset=10, end_offset=15),
    )


def test_partition_deletion_when_never_ended_then_it_alone_is_found() -> None:
    (finding,) = found(*stored(1, 0, 9), *stored(2, 15, 19), partition_delete(PARTITION_MARKED))

    assert finding == NativeFinding(
        kind=NativeFindingKind.DANGLING_PARTITION_DELETE,
        native_position=native_position(4),
        topic_id_partition=ORDERS,
    )


def test_copy_when_younger_than_the_cut_off_then_is_not_judged() -> None:
    assert found(started(1, 0, 9), cut_off_ms=0) == []


def test_segment_when_its_offsets_are_no_range_then_is_left_out_as_corrupt() -> None:
    audit = audited(*stored(1, 0, 9))

    with pytest.raises(CorruptError, match="its offsets are invalid"):
        audit.add(started(2, 9, 5), native_position(2))

    assert audit.segments_count() == 1


def test_same_topic_when_recreated_then_is_another_partition() -> None:
    other = segment_id(2, type(ORDERS)(topic_id=UUID(int=7), topic="orders", partition=0))
    behind = started(2, 15, 19)
    assert isinstance(behind, RemoteLogSegmentMetadataRecord)
    elsewhere = RemoteLogSegmentMetadataRecord(segment_id=other, facts=behind.facts)
    ended = RemoteLogSegmentMetadataUpdateRecord(
        segment_id=other, broker_id=1, event_timestamp_ms=1, custom_metadata=None, state=FINISHED
    )

    assert found(*stored(1, 0, 9), elsewhere, ended) == []
