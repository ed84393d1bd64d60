"""The account of offload segments (PIP-76): its content, and how long it is kept."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from uuid import UUID

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.codec import decode, encode
from rlmm.events.offload_segment import offload_segments
from rlmm.manager import ManagerSettings, TopicBasedRemoteLogMetadataManager
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind
from rlmm.spi import PartitionKey
from rlmm.state.offload_segments import (
    DRIVER_PROPERTIES_MAX_COUNT,
    OBJECTS_MAX_COUNT,
    STORED_SEGMENTS_MAX_COUNT,
    DriverProperty,
    OffloadPosition,
    OffloadSegmentRecord,
    OffloadSegmentStatus,
)
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import CorruptError
from tests.folding import folded, log_of, refusals
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    DELETED,
    DELETING,
    MARKED,
    ORDERS,
    claim,
    life,
    offload_segment,
    offload_segment_changed,
    partition_delete,
    segment_metadata,
    writer,
)

ASSIGNED, OFFLOADED, FAILED = OffloadSegmentStatus
STATUSES = (ASSIGNED, OFFLOADED, FAILED)
SEGMENT = segment_metadata()


def known(*records: OffloadSegmentRecord) -> tuple[OffloadSegmentRecord, ...]:
    """Return the account after these records."""
    log = log_of(claim(), *map(offload_segment_changed, records))
    return offload_segments(folded(log), ORDERS)


def opened(log: MemoryLog | None = None) -> TopicBasedRemoteLogMetadataManager:
    manager = TopicBasedRemoteLogMetadataManager(
        MemoryTopic(log or MemoryLog(ManualClock())),
        MetadataCache(MemoryStore()),
        ManualClock(),
        ManagerSettings(tombstone_grace_ms=0),
    )
    manager.wait_ready(1_000)
    manager.publish(claim())
    return manager


@pytest.mark.parametrize("statuses", [*permutations(STATUSES)])
def test_account_when_records_come_in_any_order_then_what_is_offloaded_stays(
    statuses: tuple[OffloadSegmentStatus, ...],
) -> None:
    assert known(*(offload_segment(1, each) for each in statuses)) == (
        offload_segment(1, OFFLOADED),
    )


def test_account_when_it_failed_twice_then_the_last_record_counts() -> None:
    again = replace(offload_segment(1, FAILED), writer=writer(1))

    assert known(offload_segment(1, FAILED), again) == (again,)


@pytest.mark.parametrize("later", [FAILED, OFFLOADED])
def test_account_when_a_later_record_has_other_values_then_only_its_status_and_end_count(
    later: OffloadSegmentStatus,
) -> None:
    other = replace(
        offload_segment(1, later),
        writer=writer(1),
        assigned_ms=7,
        begin=OffloadPosition(ledger_id=0, entry_id=11, offset=110),
        segment_ids=(UUID(int=1), UUID(int=2)),
        driver_metadata=(),
        objects=("other",),
    )

    for records in permutations((offload_segment(1), other)):
        assert known(*records) == (offload_segment(1, later),)


def test_account_when_the_end_is_not_above_the_assigned_begin_then_stays_assigned() -> None:
    begin = OffloadPosition(ledger_id=0, entry_id=0, offset=0)
    end = OffloadPosition(ledger_id=0, entry_id=10, offset=100)
    below = replace(offload_segment(1, OFFLOADED), begin=begin, end=end)

    assert known(offload_segment(1), below) == (offload_segment(1),)


def test_account_when_of_several_segments_then_each_is_there_by_its_begin() -> None:
    segments = (offload_segment(3), offload_segment(1, OFFLOADED), offload_segment(2, FAILED))

    assert known(*segments) == tuple(sorted(segments, key=lambda each: each.begin.offset))


def test_account_when_the_partition_is_deleted_then_refused_and_not_kept() -> None:
    log = log_of(
        claim(),
        *(partition_delete(each) for each in (MARKED, DELETING, DELETED)),
        offload_segment_changed(),
    )

    assert refusals(log) == {"partition_deleted": 1}
    assert offload_segments(folded(log), ORDERS) == ()
    assert len(folded(log).superseded_keys(ORDERS, RecordKind.OFFLOAD_SEGMENT, 1 << 62)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"segment_ids": ()},
        {"segment_ids": (UUID(int=9),)},
        {"segment_ids": (UUID(int=1),) * 257},
        {"driver_metadata": (DriverProperty(name="a", value=""),) * 33},
        {"objects": ("a",) * 257},
        {"end": None},
        {"offloaded_ms": None},
        {"status": ASSIGNED},
        {"status": FAILED},
        {"end": OffloadPosition(ledger_id=0, entry_id=11, offset=100)},
        {"assigned_ms": -1},
        {"offloaded_ms": -1},
    ],
)
def test_account_when_its_values_contradict_each_other_then_refused(
    changes: dict[str, object],
) -> None:
    with pytest.raises(ValueError, match=r"offload segment|driver"):
        replace(offload_segment(1, OFFLOADED), **changes)  # type: ignore[arg-type]  # any field


@pytest.mark.parametrize("field", ["ledger_id", "entry_id", "offset"])
def test_position_when_negative_then_corrupt(field: str) -> None:
    record = encode(offload_segment_changed())
    message = pb.MetadataEvent.FromString(record.value)
    setattr(message.offload_segment_changed.begin, field, -1)

    with pytest.raises(CorruptError, match="cannot read an offload segment"):
        decode(record.key, message.SerializeToString())


def test_account_when_published_then_any_process_reads_it() -> None:
    manager = opened()
    segment = offload_segment(1, ASSIGNED, by=writer(7))

    assert manager.publish(offload_segment_changed(segment)).accepted

    assert offload_segments(manager, ORDERS) == (segment,)


def test_account_when_it_changes_then_its_partition_has_changed() -> None:
    log = MemoryLog(ManualClock())
    manager = opened(log)
    event = offload_segment_changed()
    before = manager.changed_partitions(0).count

    manager.publish(event)
    published = manager.changed_partitions(before)
    log.append(0, encode(event).key, None)
    assert manager.caught_up(ORDERS)
    removed = manager.changed_partitions(published.count)

    changed = frozenset({PartitionKey(ORDERS.topic_id, ORDERS.partition)})
    assert (published.partition_keys, removed.partition_keys) == (changed, changed)
    assert offload_segments(manager, ORDERS) == ()


def test_account_when_its_stored_segment_is_purged_then_ends_with_it() -> None:
    """State is bounded by what is stored."""
    manager = opened()
    own = replace(
        offload_segment(1, OFFLOADED),
        id=SEGMENT.segment_id.id,
        segment_ids=(SEGMENT.segment_id.id,),
    )
    assigned = replace(own, status=ASSIGNED, end=None, offloaded_ms=None)
    other = offload_segment(77, OFFLOADED)
    for account in (assigned, own, other):
        manager.publish(offload_segment_changed(account))
    for event in life(SEGMENT):
        manager.publish(event)
    assert len(offload_segments(manager, ORDERS)) == 2

    manager.write_tombstones(SEGMENT.segment_id)

    assert manager.caught_up(ORDERS)
    assert offload_segments(manager, ORDERS) == (other,)
    kept = manager._cache.superseded_keys(ORDERS, RecordKind.OFFLOAD_SEGMENT, 1 << 62)
    assert len(kept) == 1


def test_account_when_it_failed_without_a_segment_then_ends_with_the_next_purge() -> None:
    manager = opened()
    for status in (ASSIGNED, FAILED):
        manager.publish(offload_segment_changed(offload_segment(77, status)))
    manager.publish(offload_segment_changed(offload_segment(78, ASSIGNED)))
    for event in life(SEGMENT):
        manager.publish(event)

    manager.write_tombstones(SEGMENT.segment_id)

    assert manager.caught_up(ORDERS)
    assert offload_segments(manager, ORDERS) == (offload_segment(78, ASSIGNED),)


def test_account_when_it_failed_and_its_segment_is_known_then_stays_until_that_is_purged() -> None:
    manager = opened()
    other = segment_metadata(2)
    failed = replace(
        offload_segment(1, FAILED), id=other.segment_id.id, segment_ids=(other.segment_id.id,)
    )
    manager.publish(offload_segment_changed(failed))
    for event in (*life(other)[:1], *life(SEGMENT)):
        manager.publish(event)

    manager.write_tombstones(SEGMENT.segment_id)

    assert manager.caught_up(ORDERS)
    assert offload_segments(manager, ORDERS) == (failed,)


def _driver(count: int) -> tuple[DriverProperty, ...]:
    return tuple(DriverProperty(name=f"p{number}", value="v") for number in range(count))


def test_record_when_at_its_bounds_then_valid_and_beyond_them_refused() -> None:
    record = offload_segment(1, OFFLOADED)
    others = tuple(UUID(int=1000 + number) for number in range(STORED_SEGMENTS_MAX_COUNT))

    full = replace(
        record,
        segment_ids=(record.id, *others[1:]),
        driver_metadata=_driver(DRIVER_PROPERTIES_MAX_COUNT),
        objects=("o",) * OBJECTS_MAX_COUNT,
    )

    assert len(full.segment_ids) == STORED_SEGMENTS_MAX_COUNT
    with pytest.raises(ValueError, match="stored segments"):
        replace(record, segment_ids=(record.id, *others))
    with pytest.raises(ValueError, match="properties"):
        replace(record, driver_metadata=_driver(DRIVER_PROPERTIES_MAX_COUNT + 1))
    with pytest.raises(ValueError, match="objects"):
        replace(record, objects=("o",) * (OBJECTS_MAX_COUNT + 1))


@pytest.mark.parametrize("status", STATUSES)
def test_record_when_compared_with_an_equal_status_then_does_not_precede_it(
    status: OffloadSegmentStatus,
) -> None:
    assert not offload_segment(1, status).precedes(offload_segment(1, status))
