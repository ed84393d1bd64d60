"""Dead letters about orphans, decided by metadata that was read from a topic in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pyarrow as pa
import pytest

from rlmm.cache.memory import MemoryStore
from rlmm.cache.metadata_cache import MetadataCache
from rlmm.dead_letters.orphan_dead_letter import OrphanDeadLetter, OrphanTreatment, encode
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.partitioner import metadata_partition
from rlmm.positions import MetadataPosition
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.layout.keys import ObjectKey, ObjectKeys
from rsm.segment.errors import RetriableError
from spark_tools.repair.driver_decisions import decide_on_batch
from spark_tools.repair.orphan_decisions import SIGHTING_MAX_AGE_MS, OrphanTerms
from spark_tools.repair.proof import RepairAction
from spark_tools.snapshot import MetadataSnapshot
from tests.fakes.clock import FakeClock
from tests.metadata_builder import (
    FINISHED,
    ORDERS,
    STARTED,
    claim,
    segment_id,
    segment_metadata,
    step,
)

PARTITIONS = 3
KEYS = ObjectKeys(prefix="cold")
TERMS = OrphanTerms(keys=KEYS, cut_off_ms=2_000, seen_since_ms=6_000)
OURS = KEYS.build(ObjectKey(segment_id=segment_id(9), base_offset=7, suffix="log"))


class World:
    """A partition whose offsets [0, 100) are stored, and a snapshot of its metadata."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.log = MemoryLog(clock, partition_count=PARTITIONS)
        topic, cache = MemoryTopic(self.log), MetadataCache(MemoryStore())
        self.manager = TopicBasedRemoteLogMetadataManager(topic, cache, clock)
        assert self.manager.wait_ready(10_000).is_ready
        stored = segment_metadata(1)
        for event in (claim(), step(stored, STARTED), step(stored, FINISHED)):
            assert self.manager.publish(event).accepted
        self.snapshot = MetadataSnapshot(self.manager, cache, partial(topic.ensure, create=False))

    def dead_letter(self) -> OrphanDeadLetter:
        """Return one about an object of an unknown segment from offset 7 on: all is proved."""
        partition = metadata_partition(ORDERS, PARTITIONS)
        offset = self.snapshot.positions()[partition]
        return OrphanDeadLetter(
            object_key=OURS,
            length_bytes=3,
            last_modified_ms=1_999,
            first_seen_ms=5_000,
            last_seen_ms=6_000,
            treatment=OrphanTreatment.DELETE,
            read_to=MetadataPosition(partition=partition, offset=offset),
            metadata_topic_id=self.snapshot.identity.topic_id,
        )

    def decided(self, *dead_letters: OrphanDeadLetter) -> list[tuple[RepairAction, str]]:
        found = decide_on_batch(
            [asked(*dead_letters)], self.snapshot, TERMS, lambda _decisions, _keys: ()
        )
        decisions = [
            found.decision((0, at), dead_letter) for at, dead_letter in enumerate(dead_letters)
        ]
        return [(each.action, each.reason) for each in decisions]


def asked(*dead_letters: OrphanDeadLetter) -> pa.RecordBatch:
    records = [encode(dead_letter) for dead_letter in dead_letters]
    rows = [
        {"partition": 0, "offset": offset, "key": each.key, "value": each.value}
        for offset, each in enumerate(records)
    ]
    return pa.RecordBatch.from_pylist(rows)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    with closing(world.manager):
        yield world


def test_decide_when_all_is_proved_then_the_orphan_is_deleted(world: World) -> None:
    """R22: an orphan's own proof."""
    assert world.decided(world.dead_letter()) == [(RepairAction.DELETE_OBJECTS, "")]


def test_decide_when_anything_is_not_proved_then_refused(world: World) -> None:
    """R22: source, topic, position, sightings, grace and name, each by itself."""
    dead_letter = world.dead_letter()
    read_to = dead_letter.read_to
    wrong = {
        "did not see the object twice": replace(dead_letter, last_seen_ms=5_000),
        "too long ago: audit again": replace(dead_letter, last_seen_ms=5_999),
        "another metadata topic": replace(dead_letter, metadata_topic_id="elsewhere"),
        "ends before": replace(dead_letter, read_to=read_to._replace(offset=read_to.offset + 1)),
        "another metadata partition": replace(
            dead_letter, read_to=read_to._replace(partition=(read_to.partition + 1) % PARTITIONS)
        ),
        "rlm does not write objects with this name": replace(dead_letter, object_key="cold/readme"),
    }

    for reason, each in wrong.items():
        ((decision, found),) = world.decided(each)
        assert (decision, reason in found) == (RepairAction.REFUSE, True), (reason, found)


def test_decide_when_it_was_first_seen_in_the_first_millisecond_then_that_counts(
    world: World,
) -> None:
    """0 means that the dead letter has no such time."""
    seen, never = (replace(world.dead_letter(), first_seen_ms=first_ms) for first_ms in (1, 0))

    assert world.decided(seen) == [(RepairAction.DELETE_OBJECTS, "")]
    assert world.decided(never) == [(RepairAction.REFUSE, "the audit did not see the object twice")]


def test_decide_when_it_was_registered_since_then_refused(world: World) -> None:
    """R22, scenario 108: the dead letter was correct when it was written."""
    dead_letter = world.dead_letter()
    assert world.manager.publish(step(segment_metadata(9), STARTED)).accepted

    ((decision, reason),) = world.decided(dead_letter)

    assert (decision, "COPY_SEGMENT_STARTED" in reason) == (RepairAction.REFUSE, True)


def test_decide_when_it_is_too_young_then_it_waits(world: World) -> None:
    """R22: the grace ends later, so the dead letter waits."""
    young = replace(world.dead_letter(), last_modified_ms=2_000)

    assert world.decided(young) == [
        (RepairAction.WAIT, "the object is younger than remote.orphan.grace.ms")
    ]


def test_decide_when_the_metadata_is_not_whole_then_it_waits(world: World) -> None:
    """R14, R22 and scenario 107."""
    dead_letter = world.dead_letter()
    world.log.append(0, b"\xff what is this", b"\xff")

    ((decision, reason),) = world.decided(dead_letter)

    assert (decision, "read completely" in reason) == (RepairAction.WAIT, True)


def test_decide_when_the_metadata_topic_is_created_again_then_nothing_is_decided(
    world: World,
) -> None:
    """R22: the proof must come from the same topic."""
    dead_letter = world.dead_letter()
    world.log.recreate("topic-2")

    with pytest.raises(RetriableError):
        world.decided(dead_letter)


def test_decide_when_there_are_several_about_an_object_then_the_last_one_counts(
    world: World,
) -> None:
    """The last one describes the object as it was last seen."""
    earlier = replace(world.dead_letter(), attempts=5)

    actions = [decision for decision, _ in world.decided(earlier, world.dead_letter())]

    assert actions == [RepairAction.SUPERSEDED, RepairAction.DELETE_OBJECTS]


def test_sighting_when_older_than_a_week_then_is_too_old() -> None:
    assert timedelta(milliseconds=SIGHTING_MAX_AGE_MS) == timedelta(days=7)
