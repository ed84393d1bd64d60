"""The metadata topic as events, over the topic's twin in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest

from rlmm.codec import encode, record_key
from rlmm.consumer import MetadataConsumer, Start
from rlmm.events.event import Event
from rlmm.positions import ReadPosition, TopicRecord
from rlmm.topic.memory import MemoryLog, MemoryTopic
from rsm.segment.errors import NotFoundError
from rsm.segment.ids import TopicIdPartition
from tests import metadata_builder as build
from tests.fakes.clock import FakeClock

_PAYMENTS = TopicIdPartition(topic_id=UUID(int=0xBA7), topic="payments", partition=0)


class _Reader:
    """The consumer of a topic in memory."""

    def __init__(self, log: MemoryLog) -> None:
        self._topic = MemoryTopic(log)

    def partitions(self, timeout_ms: int) -> Sequence[int]:
        return range(self._topic.ensure(create=False).partition_count)

    def end_offsets(self, partitions: Sequence[int], timeout_ms: int) -> Mapping[int, int]:
        return self._topic.end_offsets(partitions)

    def assign(self, positions: Mapping[int, ReadPosition]) -> None:
        self._topic.assign(positions)

    def poll(self, *, max_records: int, timeout_ms: int) -> Sequence[TopicRecord]:
        return self._topic.poll(max_records=max_records, timeout_ms=timeout_ms)

    def positions(self) -> Mapping[int, int]:
        return self._topic.positions()


def _log(*events: Event) -> MemoryLog:
    log = MemoryLog(FakeClock())
    for event in events:
        _append(log, event)
    return log


def _append(log: MemoryLog, event: Event) -> None:
    record = encode(event)
    log.append(0, record.key, record.value)


def _claim(partition: TopicIdPartition = build.ORDERS) -> Event:
    return build.claim(partition=partition)


def _started(number: int) -> Event:
    return build.life(build.segment_metadata(number))[0]


def test_consumer_when_from_the_beginning_then_hands_over_every_record_in_order() -> None:
    events = [_claim(), _started(1), _started(2)]
    consumer = MetadataConsumer(_Reader(_log(*events)))

    records = consumer.poll(timeout_ms=0)

    assert [record.event for record in records] == events
    assert [record.position.offset for record in records] == [0, 1, 2]
    assert consumer.positions() == {0: 3}


def test_consumer_when_from_now_then_hands_over_what_comes_later() -> None:
    log = _log(_claim())
    consumer = MetadataConsumer(_Reader(log), Start.NOW)
    later = _started(1)
    _append(log, later)

    records = consumer.poll(timeout_ms=0)

    assert [record.event for record in records] == [later]


def test_consumer_when_given_positions_then_continues_where_another_ended() -> None:
    events = [_claim(), _started(1), _started(2)]
    log = _log(*events)
    first = MetadataConsumer(_Reader(log))
    first.poll(timeout_ms=0, max_records=2)

    second = MetadataConsumer(_Reader(log), first.positions())

    assert [record.event for record in second.poll(timeout_ms=0)] == events[2:]


def test_consumer_when_given_positions_of_another_topic_then_does_not_continue_elsewhere() -> None:
    """Scenario 37: a topic that was recreated, and is shorter."""
    consumer = MetadataConsumer(_Reader(_log(_claim())), {0: 100})

    with pytest.raises(NotFoundError):
        consumer.poll(timeout_ms=0)


def test_consumer_when_of_one_topic_then_hands_over_its_records_and_tombstones() -> None:
    ours, theirs = _claim(), _claim(_PAYMENTS)
    log = _log(theirs, ours, build.registration())
    log.append(0, record_key(theirs), None)
    log.append(0, record_key(ours), None)
    consumer = MetadataConsumer(_Reader(log), topic="orders")

    records = consumer.poll(timeout_ms=0)

    assert [record.event for record in records] == [ours, None]
    assert [record.position.offset for record in records] == [1, 4]


def test_consumer_when_a_record_cannot_be_read_then_counts_it_and_continues() -> None:
    """Scenario 102: records of a newer version are skipped and counted."""
    log = _log(_claim())
    log.append(0, b"\x7fnewer", b"value")
    log.append(0, b"\x01short", b"value")
    last = _started(1)
    _append(log, last)
    consumer = MetadataConsumer(_Reader(log))

    records = consumer.poll(timeout_ms=0)

    assert [record.event for record in records][-1] == last
    assert consumer.skipped() == {"unsupported": 1, "corrupt": 1}
