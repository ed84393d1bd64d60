from __future__ import annotations

from uuid import UUID

import pytest

from rlmm.codec import encode
from rlmm.events.event import Event
from rlmm.partitioner import event_partition, is_misplaced, metadata_partition
from rlmm.record_keys import RecordKind
from rsm.segment.ids import TopicIdPartition
from tests.metadata_builder import (
    DELETED,
    FINISHED,
    ORDERS,
    anomaly_reported,
    claim,
    cluster_secret,
    dead_lettered,
    gap,
    gaps,
    log_start,
    log_start_request,
    loss_accepted,
    offload_request,
    offload_segment_changed,
    partition_delete,
    paused,
    policy,
    policy_level,
    read_lease,
    registration,
    segment_metadata,
    step,
    trim,
)

COUNT = 50
OF_EACH_KIND: list[Event] = [
    step(segment_metadata(), FINISHED),
    claim(),
    trim(1),
    log_start(1),
    log_start_request(1),
    partition_delete(DELETED),
    read_lease(),
    gaps(gap(0, 1)),
    offload_request(1),
    offload_segment_changed(),
    loss_accepted(0),
    anomaly_reported(),
    policy(),
    policy_level(),
    registration(),
    cluster_secret(),
    paused(),
]


def test_partition_when_computed_then_never_changes() -> None:
    """Another rule would separate a subject's records."""
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
    events = (policy(), policy_level(), registration(), cluster_secret())

    assert {event_partition(event, COUNT) for event in events} == {0}


def test_partitions_when_many_then_are_spread_over_all() -> None:
    found = {
        metadata_partition(
            TopicIdPartition(topic_id=ORDERS.topic_id, topic="t", partition=n), COUNT
        )
        for n in range(2_000)
    }

    assert found == set(range(COUNT))


@pytest.mark.parametrize("event", OF_EACH_KIND, ids=lambda event: type(event).__name__)
def test_record_when_on_another_partition_than_it_is_written_to_then_is_misplaced(
    event: Event,
) -> None:
    own, key = event_partition(event, COUNT), encode(event).key

    located = [number for number in range(COUNT) if not is_misplaced(key, number, COUNT)]

    assert located == [own]


def test_kinds_when_listed_above_then_are_all_that_there_are() -> None:
    assert {encode(event).key[0] for event in OF_EACH_KIND} == set(RecordKind)


@pytest.mark.parametrize("key", [b"", b"\x01", b"\x01" + bytes(19), b"\x7f" + bytes(36)])
def test_record_when_its_key_does_not_say_what_it_is_of_then_is_not_misplaced(key: bytes) -> None:
    assert not any(is_misplaced(key, number, COUNT) for number in range(COUNT))
