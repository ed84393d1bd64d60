"""Decisions on dead letters of segments by their keys, from a metadata topic in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from uuid import UUID

import pyarrow as pa
import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.dead_letters.dead_letter import DeadLetter, encode
from rlmm.events.event import Event
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.partitioner import metadata_partition
from rlmm.positions import MetadataPosition
from rlmm.proto import events_pb2 as pb
from rlmm.record_keys import RecordKind, partition_key, segment_subject
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState, StoredObject
from rsm.segment.ranges import OffsetRange
from spark_tools.repair.batch_decisions import BatchDecisions, DeadLetterLocation
from spark_tools.repair.driver_decisions import decide_on_batch
from spark_tools.repair.orphan_decisions import OrphanTerms
from spark_tools.repair.proof import RepairAction
from spark_tools.snapshot import LeaseTerms, MetadataSnapshot
from tests.fakes.clock import FakeClock
from tests.metadata_builder import (
    DELETE_STARTED,
    FINISHED,
    OWNER,
    STARTED,
    claim,
    segment_metadata,
    step,
)

KEYS = ObjectKeys(prefix="cold")
ORPHANS = OrphanTerms(keys=KEYS, cut_off_ms=2_000, seen_since_ms=0)


def named(segment: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
    """Return a dead letter with one object of the expected name."""
    name = ObjectKey(segment_id=segment.segment_id, base_offset=0, suffix="meta")
    return replace(segment, objects=(StoredObject(key=KEYS.build(name)),))


ALIVE, UNKNOWN = (named(segment_metadata(number)) for number in (1, 3))
DYING = segment_metadata(2)
"""A segment whose objects are below another prefix."""
DYING_TOO = named(segment_metadata(4, 100, 200))


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog(FakeClock(), partition_count=3)


@pytest.fixture
def metadata(log: MemoryLog) -> Iterator[MetadataSnapshot]:
    clock = FakeClock()
    topic, cache = MemoryTopic(log), MetadataCache(MemoryStore())
    manager = TopicBasedRemoteLogMetadataManager(topic, cache, clock)
    assert manager.wait_ready(10_000).is_ready
    events: list[Event] = [
        claim(),
        *(step(each, state) for each in (ALIVE, DYING, DYING_TOO) for state in (STARTED, FINISHED)),
        *(
            step(each, DELETE_STARTED, by=OWNER, expected_state=FINISHED)
            for each in (DYING, DYING_TOO)
        ),
    ]
    for event in events:
        assert manager.publish(event).accepted
    with closing(manager):
        yield MetadataSnapshot(manager, cache, partial(topic.ensure, create=False))


def dead_letter(segment: RemoteLogSegmentMetadata) -> DeadLetter:
    return DeadLetter(
        metadata=segment, reason="refused", attempts=5, first_attempt_ms=1, last_attempt_ms=2
    )


def decided(
    metadata: MetadataSnapshot,
    rows: dict[DeadLetterLocation, tuple[bytes | None, bytes | None]],
    misplaced: Collection[DeadLetterLocation] = (),
) -> BatchDecisions:
    """Decide on dead letters with these keys, and these values where the driver reads them."""
    records = [
        {"partition": partition, "offset": offset, "key": key, "value": value}
        for (partition, offset), (key, value) in rows.items()
    ]
    batch = pa.RecordBatch.from_pylist(records)
    return decide_on_batch([batch], metadata, ORPHANS, lambda _decisions, _keys: misplaced)


def subject(segment: RemoteLogSegmentMetadata) -> bytes:
    return segment_subject(segment.segment_id)


def test_decide_on_batch_when_given_keys_then_the_states_that_the_metadata_has(
    metadata: MetadataSnapshot,
) -> None:
    """R22: the state in the dead letter does not matter."""
    segments = (ALIVE, DYING, UNKNOWN)

    found = decided(metadata, {(0, n): (subject(each), None) for n, each in enumerate(segments)})

    states: list[SegmentState | None] = [FINISHED, DELETE_STARTED, None]
    assert found.states == dict(zip(map(subject, segments), states, strict=True))
    actions = [found.decision((0, n), dead_letter(each)).action for n, each in enumerate(segments)]
    assert actions == [RepairAction.REFUSE, RepairAction.DELETE, RepairAction.REFUSE]


def test_decide_on_batch_when_names_say_nothing_then_only_those_that_the_metadata_lists_may_go(
    metadata: MetadataSnapshot,
) -> None:
    """R22: the executors get only these decisions."""
    forged = replace(DYING, objects=(*DYING.objects, StoredObject(key="orders/0/another.log")))

    found = decided(
        metadata, {(0, n): (subject(s), None) for n, s in enumerate((DYING, DYING_TOO))}
    )

    assert found.listed == {subject(DYING): frozenset(DYING.object_keys)}
    assert found.objects_count == {subject(s): len(s.objects) for s in (DYING, DYING_TOO)}
    actions = [
        found.decision((0, n), dead_letter(each)).action
        for n, each in ((0, DYING), (0, forged), (1, DYING_TOO))
    ]
    assert actions == [RepairAction.DELETE, RepairAction.REFUSE, RepairAction.DELETE]


def test_decide_on_batch_when_a_record_can_not_be_read_then_gone_is_no_proof(
    metadata: MetadataSnapshot, log: MemoryLog
) -> None:
    """R22: the unknown segment may be in the unreadable record."""
    partition = metadata_partition(UNKNOWN.topic_id_partition, 3)
    gone = replace(
        dead_letter(UNKNOWN),
        delete_started=MetadataPosition(partition=partition, offset=0),
        metadata_topic_id=metadata.identity.topic_id,
    )
    rows: dict[DeadLetterLocation, tuple[bytes | None, bytes | None]]
    rows = {(0, 0): (subject(UNKNOWN), None)}
    proved = decided(metadata, rows).decision((0, 0), gone)
    log.append(partition, b"\xff what is this", b"\xff")

    decision = decided(metadata, rows).decision((0, 0), gone)

    assert (proved.action, decision.action) == (RepairAction.DELETE_OBJECTS, RepairAction.WAIT)
    assert "cannot be read completely" in decision.reason


def test_decide_on_batch_when_somebody_reads_a_segment_then_its_letter_waits(
    metadata: MetadataSnapshot,
) -> None:
    """R13: it waits while the lease lasts, and only if the lease covers its offsets."""
    rows: dict[DeadLetterLocation, tuple[bytes | None, bytes | None]]
    rows = {(0, 0): (subject(DYING), None)}
    terms = LeaseTerms(holder="a Spark job", duration_ms=60_000)
    actions = []

    for start_offset, end_offset in ((100, 200), (99, 100)):
        offsets = OffsetRange(start_offset=start_offset, end_offset=end_offset)
        metadata.take_lease(DYING.topic_id_partition, offsets, terms)
        actions.append(decided(metadata, rows).decision((0, 0), dead_letter(DYING)).action)

    assert actions == [RepairAction.DELETE, RepairAction.WAIT]


def test_decide_on_batch_when_the_key_is_not_a_segments_then_the_dead_letter_decides(
    metadata: MetadataSnapshot,
) -> None:
    """Dead letters without a key, and records that are no dead letters."""
    given = dead_letter(DYING)

    found = decided(metadata, {(0, 0): (None, encode(given).value), (0, 1): (b"key", b"\xff")})

    assert found.decision((0, 0), given).action is RepairAction.DELETE
    assert found.states.keys() == {subject(DYING)}


def test_decide_on_batch_when_there_are_several_of_a_segment_then_the_last_has_the_say(
    metadata: MetadataSnapshot,
) -> None:
    locations: list[DeadLetterLocation] = [(0, 7), (0, 5), (0, 9)]

    found = decided(metadata, dict.fromkeys(locations, (subject(DYING), None)))

    actions = {
        location: found.decision(location, dead_letter(DYING)).action for location in locations
    }
    assert actions == {
        (0, 7): RepairAction.SUPERSEDED,
        (0, 5): RepairAction.SUPERSEDED,
        (0, 9): RepairAction.DELETE,
    }


@pytest.mark.parametrize("misplaced", [[(0, 9)], [(0, 9), (0, 5)], [(0, 5), (0, 7), (0, 9)]])
def test_decide_on_batch_when_the_last_is_not_in_order_then_it_supersedes_nothing(
    metadata: MetadataSnapshot, misplaced: list[DeadLetterLocation]
) -> None:
    """Scenario 79: what cannot be read, or is another segment's, says nothing of this one."""
    locations: list[DeadLetterLocation] = [(0, 7), (0, 5), (0, 9)]

    found = decided(metadata, dict.fromkeys(locations, (subject(DYING), None)), misplaced)

    in_order = sorted(set(locations) - set(misplaced))
    assert set(found.decided) == set(in_order[:-1])
    actions = [found.decision(location, dead_letter(DYING)).action for location in in_order[-1:]]
    assert actions == [RepairAction.DELETE] * len(in_order[-1:])


def test_decide_on_batch_when_no_key_comes_twice_then_no_letter_is_looked_at(
    metadata: MetadataSnapshot,
) -> None:
    def never(
        _decisions: BatchDecisions, keys: Collection[bytes]
    ) -> Collection[DeadLetterLocation]:
        raise AssertionError(keys)

    rows = [{"partition": 0, "offset": 1, "key": subject(DYING), "value": None}]
    batch = pa.RecordBatch.from_pylist(rows)

    found = decide_on_batch([batch], metadata, ORPHANS, never)

    assert found.decision((0, 1), dead_letter(DYING)).action is RepairAction.DELETE


def test_decide_on_batch_when_several_segments_have_several_letters_then_each_ones_last_has_the_say(
    metadata: MetadataSnapshot,
) -> None:
    keys = {(0, n): subject(DYING if n % 2 else DYING_TOO) for n in range(6)}

    found = decided(metadata, {location: (key, None) for location, key in keys.items()})

    assert set(found.decided) == {(0, 0), (0, 1), (0, 2), (0, 3)}


def test_decide_on_batch_when_a_segment_is_not_deleted_then_its_objects_are_not_passed_on(
    metadata: MetadataSnapshot,
) -> None:
    found = decided(metadata, {(0, 0): (subject(ALIVE), None), (0, 1): (subject(DYING), None)})

    assert found.objects_count.keys() == {subject(DYING)}


def test_decide_on_batch_when_a_record_needs_newer_rules_then_the_partitions_letters_wait(
    metadata: MetadataSnapshot, log: MemoryLog
) -> None:
    """R14: a record of a newer version may forbid the deletion."""
    key = partition_key(RecordKind.TRIM, DYING.topic_id_partition, UUID(int=1))
    newer = pb.MetadataEvent(min_fold_version=99).SerializeToString()
    log.append(metadata_partition(DYING.topic_id_partition, 3), key, newer)

    found = decided(metadata, {(0, 0): (subject(DYING), None)})

    decision = found.decision((0, 0), dead_letter(DYING))
    assert decision.action is RepairAction.WAIT
    assert "version 99" in decision.reason
