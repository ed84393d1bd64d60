"""Which suspicions of an audit remain after it has read later metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.events.event import Event
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.segment.ids import TopicIdPartition
from rsm.segment.metadata import RemoteLogSegmentMetadata, StoredObject
from rsm.storage.chunk_storage import ChunkInfo
from spark_tools.audit.findings import Finding, FindingKind
from spark_tools.audit.objects import Age
from spark_tools.audit.settling import SettledFindings, settle
from spark_tools.quarantine import quarantined_name
from spark_tools.snapshot import MetadataSnapshot
from tests.fakes.clock import FakeClock
from tests.metadata_builder import FINISHED, ORDERS, STARTED, claim, life, segment_metadata, step

KEYS = ObjectKeys(prefix="cold")
AGE = Age(cut_off_ms=1_000)
SECOND = replace(ORDERS, partition=1)


def name_of(number: int, base_offset: int, tip: TopicIdPartition, suffix: str = "log") -> str:
    segment = segment_metadata(number, partition=tip).segment_id
    return KEYS.build(ObjectKey(segment_id=segment, base_offset=base_offset, suffix=suffix))


def segment(
    number: int, start: int, end: int, tip: TopicIdPartition, *, suffixes: tuple[str, ...]
) -> RemoteLogSegmentMetadata:
    names = (name_of(number, start, tip, suffix) for suffix in suffixes)
    metadata = segment_metadata(number, start, end, partition=tip)
    return replace(
        metadata, objects=tuple(StoredObject(key=name, length_bytes=10) for name in names)
    )


# Two overlapping segments of each partition, and a deleted one of the first partition.
FINISHED_ONES = (
    segment(1, 0, 100, ORDERS, suffixes=("log", "meta")),
    segment(2, 90, 200, ORDERS, suffixes=("log",)),
    segment(3, 0, 100, SECOND, suffixes=("log",)),
    segment(4, 90, 200, SECOND, suffixes=("log", "meta")),
)
GONE = segment(5, 0, 100, ORDERS, suffixes=("log",))


@pytest.fixture
def metadata() -> Iterator[MetadataSnapshot]:
    clock = FakeClock()
    topic, cache = MemoryTopic(MemoryLog(clock, partition_count=3)), MetadataCache(MemoryStore())
    manager = TopicBasedRemoteLogMetadataManager(topic, cache, clock)
    assert manager.wait_ready(10_000).is_ready
    events: list[Event] = [
        *(claim(partition=tip) for tip in (ORDERS, SECOND)),
        *(step(each, state) for each in FINISHED_ONES for state in (STARTED, FINISHED)),
        *life(GONE),
    ]
    for event in events:
        assert manager.publish(event).accepted
    with closing(manager):
        yield MetadataSnapshot(manager, cache, partial(topic.ensure, create=False))


def suspicion(kind: FindingKind, name: str, tip: TopicIdPartition = ORDERS) -> Finding:
    return Finding(
        kind=kind.value, topic=tip.topic, partition=tip.partition, object_key=name, detail="seen"
    )


def settled(
    metadata: MetadataSnapshot,
    *suspicions: Finding,
    there: tuple[str, ...] = (),
    age_ms: int = 0,
    length_bytes: int = 10,
) -> SettledFindings:
    """Settle the suspicions by a second look that found these objects."""
    sightings: Mapping[str, ChunkInfo] = {
        name: ChunkInfo(name=name, length_bytes=length_bytes, last_modified_ms=age_ms)
        for name in there
    }
    return settle(metadata, suspicions, sightings, AGE, KEYS)


def found(by: SettledFindings) -> list[tuple[str, str]]:
    """Return kind and object of each finding that names an object."""
    return [(each.kind, each.object_key) for each in by.findings if each.object_key]


def test_settle_when_nothing_is_suspected_then_what_the_metadata_shows_of_each_partition(
    metadata: MetadataSnapshot,
) -> None:
    result = settled(metadata)

    assert [(each.kind, each.partition) for each in result.findings] == [
        ("overlap", 0),
        ("overlap", 1),
    ]
    (totals,) = result.totals
    assert (totals.topic, totals.partitions_count, totals.segments_count) == (ORDERS.topic, 2, 4)
    assert (totals.stored_bytes, totals.findings_count) == (60, 2)
    assert result.orphans == ()


def test_settle_when_objects_are_still_absent_then_missing_in_every_partition(
    metadata: MetadataSnapshot,
) -> None:
    """One of a segment's two objects, and a segment's only object; sorted by kind and name."""
    absent = [name_of(3, 0, SECOND), name_of(1, 0, ORDERS, "meta")]

    result = settled(metadata, *(suspicion(FindingKind.MISSING, name) for name in absent))

    assert found(result) == [("missing", name) for name in sorted(absent)]
    assert [each.kind for each in result.findings] == ["missing"] * 2 + ["overlap"] * 2


def test_settle_when_an_object_is_there_after_all_then_nothing_is_left(
    metadata: MetadataSnapshot,
) -> None:
    name = name_of(1, 0, ORDERS)

    result = settled(metadata, suspicion(FindingKind.MISSING, name), there=(name,))

    assert found(result) == []


def test_settle_when_an_object_has_another_size_then_is_damaged_and_no_orphan(
    metadata: MetadataSnapshot,
) -> None:
    name, other = name_of(1, 0, ORDERS), name_of(9, 50, ORDERS)
    suspicions = (suspicion(FindingKind.SIZE, name), suspicion(FindingKind.ORPHAN, other))

    result = settled(metadata, *suspicions, there=(name, other), length_bytes=9)

    assert found(result) == [("orphan", other), ("size", name)]
    assert [each.found.name for each in result.orphans] == [other]
    assert "missing or damaged" in result.orphans[0].why_kept


def test_settle_when_newer_metadata_names_the_object_then_is_no_orphan(
    metadata: MetadataSnapshot,
) -> None:
    name = name_of(1, 0, ORDERS)

    result = settled(metadata, suspicion(FindingKind.ORPHAN, name), there=(name,))

    assert (found(result), result.orphans) == ([], ())


@pytest.mark.parametrize(("age_ms", "count"), [(999, 1), (1_000, 0)])
def test_settle_when_an_unknown_object_is_young_then_is_no_orphan(
    metadata: MetadataSnapshot, age_ms: int, count: int
) -> None:
    name = name_of(9, 50, ORDERS)

    result = settled(metadata, suspicion(FindingKind.ORPHAN, name), there=(name,), age_ms=age_ms)

    assert len(result.orphans) == count


def test_settle_when_orphans_are_proven_dead_or_not_then_each_with_the_reason(
    metadata: MetadataSnapshot,
) -> None:
    """Orphans with other copies, of a deleted segment, in quarantine, or the only copy."""
    dead, deleted = name_of(9, 50, SECOND), name_of(5, 0, ORDERS)
    only, moved = name_of(9, 500, ORDERS), quarantined_name(KEYS, name_of(8, 50, ORDERS))
    suspicions = (
        *(suspicion(FindingKind.ORPHAN, name) for name in (dead, deleted, only)),
        suspicion(FindingKind.QUARANTINED, moved),
    )

    result = settled(metadata, *suspicions, there=(dead, deleted, only, moved))

    orphans = {each.found.name: each for each in result.orphans}
    assert {name: each.topic_id_partition for name, each in orphans.items()} == {
        dead: SECOND,
        deleted: ORDERS,
        only: ORDERS,
        moved: ORDERS,
    }
    assert [name for name, each in orphans.items() if each.is_quarantined] == [moved]
    assert [name for name, each in orphans.items() if each.why_kept] == [only]
    details = {each.object_key: each.detail for each in result.findings}
    assert details[dead] == "seen; removable"
    assert details[only] == f"seen; {orphans[only].why_kept}"
    assert "only copy" in details[only]


def test_settle_when_its_partition_is_damaged_then_a_dead_orphan_is_kept(
    metadata: MetadataSnapshot,
) -> None:
    """The orphan may be the missing object; other partitions' orphans can be removed."""
    absent = name_of(1, 0, ORDERS)
    needed, only, elsewhere = (
        name_of(9, 50, ORDERS),
        name_of(9, 500, ORDERS),
        name_of(9, 50, SECOND),
    )
    orphans = (suspicion(FindingKind.ORPHAN, name) for name in (needed, only, elsewhere))

    result = settled(
        metadata,
        suspicion(FindingKind.MISSING, absent),
        *orphans,
        there=(needed, only, elsewhere),
    )

    reasons = {each.found.name: each.why_kept for each in result.orphans}
    assert "missing or damaged" in reasons[needed]
    assert "not all offsets at or above 500" in reasons[only]
    assert reasons[elsewhere] == ""


def test_settle_when_names_say_nothing_then_shown_and_not_acted_on(
    metadata: MetadataSnapshot,
) -> None:
    """The kind of the suspicion does not matter; later suspicions are settled, too."""
    orphan = name_of(9, 50, ORDERS)
    suspicions = (
        suspicion(FindingKind.FOREIGN, "cold/what is this"),
        suspicion(FindingKind.ORPHAN, "cold/nor this"),
        suspicion(FindingKind.ORPHAN, orphan),
    )

    result = settled(metadata, *suspicions, there=("cold/what is this", "cold/nor this", orphan))

    assert [each.found.name for each in result.orphans] == [orphan]
    assert found(result) == [
        ("foreign", "cold/what is this"),
        ("orphan", "cold/nor this"),
        ("orphan", orphan),
    ]
