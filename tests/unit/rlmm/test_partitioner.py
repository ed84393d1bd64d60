from __future__ import annotations

from uuid import UUID

from rlmm.events import Event
from rlmm.partitioner import event_partition, metadata_partition
from rsm.segment.ids import TopicIdPartition
from tests.metadata_builder import (
    FINISHED,
    ORDERS,
    claim,
    dead_lettered,
    log_start,
    policy,
    registration,
    segment_metadata,
    step,
    trim,
)

COUNT = 50


def test_partition_when_computed_then_never_changes() -> None:
    """Another rule would part a subject's records."""
    topic_id = UUID("00112233-4455-6677-8899-aabbccddeeff")
    partitions = [TopicIdPartition(topic_id=topic_id, topic="t", partition=n) for n in range(4)]

    assert [metadata_partition(each, COUNT) for each in partitions] == [20, 9, 21, 0]


def test_events_when_of_one_partition_then_share_a_metadata_partition() -> None:
    """Scenario 89."""
    metadata = segment_metadata()
    events: list[Event] = [step(metadata, FINISHED), dead_lettered(metadata), claim()]
    events += [trim(1), log_start(1)]

    found = {event_partition(event, COUNT) for event in events}

    assert found == {metadata_partition(ORDERS, COUNT)}


def test_events_when_of_the_cluster_then_go_to_partition_zero() -> None:
    assert [event_partition(event, COUNT) for event in (policy(), registration())] == [0, 0]


def test_partitions_when_many_then_are_spread_over_all() -> None:
    found = {
        metadata_partition(
            TopicIdPartition(topic_id=ORDERS.topic_id, topic="t", partition=n), COUNT
        )
        for n in range(2_000)
    }

    assert found == set(range(COUNT))
