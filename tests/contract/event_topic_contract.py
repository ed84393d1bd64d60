"""The contract of every EventTopic.

A binding's test module defines the fixtures `open_topic`, and `missing_topic`: a client of a topic
that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rlmm.positions import ReadPosition, TopicRecord
from rlmm.topic.event_topic import EventTopic
from rsm.segment.errors import NotFoundError
from tests.services.waiting import wait_until

PARTITION_COUNT = 2
START = ReadPosition(offset=0)

OpenTopic = Callable[[], EventTopic]
"""Opens one more client of the same existing topic, which has PARTITION_COUNT partitions."""


class EventTopicContract:
    def test_ensure_when_called_by_two_clients_then_names_the_same_topic(
        self, open_topic: OpenTopic
    ) -> None:
        first, second = open_topic().ensure(create=True), open_topic().ensure(create=False)

        assert first == second
        assert first.partition_count == PARTITION_COUNT
        assert first.cluster_id
        assert first.topic_id

    def test_ensure_when_the_topic_is_missing_then_is_not_created_unless_asked(
        self, missing_topic: EventTopic
    ) -> None:
        """Scenario 37: a deleted topic is never silently created again."""
        with pytest.raises(NotFoundError):
            missing_topic.ensure(create=False)

        with pytest.raises(NotFoundError):
            missing_topic.ensure(create=False)

    def test_record_when_published_then_every_reader_gets_it(self, open_topic: OpenTopic) -> None:
        written = open_topic().publish(1, b"key", b"value")

        (record,) = read(open_topic(), {1: START}, 1)

        assert (record.partition, record.offset) == (written.partition, written.offset) == (1, 0)
        assert (record.key, record.value) == (b"key", b"value")
        assert record.append_time_ms > 0

    def test_record_when_without_value_then_is_a_tombstone(self, open_topic: OpenTopic) -> None:
        open_topic().publish(0, b"key", None)

        (record,) = read(open_topic(), {0: START}, 1)

        assert record.value is None

    def test_partition_when_read_then_its_records_come_in_order(
        self, open_topic: OpenTopic
    ) -> None:
        topic = open_topic()
        for number in range(20):
            topic.publish(number % 2, b"key", b"%d" % number)

        records = read(topic, {0: START, 1: START}, 20, max_records=7)

        for partition in range(2):
            values = [r.value for r in records if r.partition == partition]
            assert values == [b"%d" % number for number in range(partition, 20, 2)]

    def test_reader_when_assigned_a_position_then_begins_there(self, open_topic: OpenTopic) -> None:
        topic = open_topic()
        for number in range(5):
            topic.publish(0, b"key", b"%d" % number)

        records = read(topic, {0: ReadPosition(offset=3)}, 2)

        assert [record.offset for record in records] == [3, 4]

    def test_reader_when_assigned_again_then_reads_once_more(self, open_topic: OpenTopic) -> None:
        topic = open_topic()
        topic.publish(0, b"key", b"value")
        first = read(topic, {0: START}, 1)

        assert read(topic, {0: START}, 1) == first

    def test_reader_when_it_was_given_the_leader_epoch_then_continues(
        self, open_topic: OpenTopic
    ) -> None:
        topic = open_topic()
        for _ in range(3):
            topic.publish(0, b"key", b"value")
        first = read(topic, {0: START}, 3)[0]

        position = ReadPosition(offset=1, leader_epoch=first.leader_epoch)

        assert [record.offset for record in read(topic, {0: position}, 2)] == [1, 2]

    def test_positions_when_all_was_read_then_are_the_ends(self, open_topic: OpenTopic) -> None:
        topic = open_topic()
        topic.publish(0, b"key", b"value")
        read(topic, {0: START, 1: START}, 1)

        def positions() -> object:
            topic.poll(max_records=10, timeout_ms=50)
            return topic.positions()

        ends = topic.end_offsets([0, 1])
        wait_until(lambda: positions() == ends, 20.0, "the positions to be the ends")
        assert ends == {0: 1, 1: 0}

    def test_partitions_when_assigned_then_answer_once_a_record_or_the_end_was_seen(
        self, open_topic: OpenTopic
    ) -> None:
        topic = open_topic()
        topic.publish(0, b"key", b"value")
        position = ReadPosition(offset=1, leader_epoch=0)
        topic.assign({0: position, 1: START})
        before = set(topic.answered())

        def answered() -> bool:
            assert list(topic.poll(max_records=10, timeout_ms=50)) == []
            return set(topic.answered()) == {0, 1}

        wait_until(answered, 20.0, lambda: f"both partitions: {topic.answered()}")
        assert before == set()

    def test_poll_when_nothing_is_new_then_returns_nothing(self, open_topic: OpenTopic) -> None:
        topic = open_topic()
        topic.assign({0: START})

        assert list(topic.poll(max_records=10, timeout_ms=50)) == []

    def test_poll_when_more_is_there_then_returns_no_more_than_asked(
        self, open_topic: OpenTopic
    ) -> None:
        topic = open_topic()
        for _ in range(10):
            topic.publish(0, b"key", b"value")
        topic.assign({0: START})

        batch = wait_until(lambda: topic.poll(max_records=4, timeout_ms=200), 20.0, "records")

        assert len(batch) <= 4

    def test_reader_when_its_position_is_beyond_the_end_then_is_reported(
        self, open_topic: OpenTopic
    ) -> None:
        """Scenario 37: never a silent jump to the beginning or the end."""
        topic = open_topic()
        topic.publish(0, b"key", b"value")
        topic.assign({0: ReadPosition(offset=100)})

        def is_reported() -> bool:
            try:
                topic.poll(max_records=10, timeout_ms=200)
            except NotFoundError:
                return True
            return False

        wait_until(is_reported, 20.0, "a position that does not exist to be reported")

    def test_publish_when_called_by_many_threads_then_each_record_is_there_once(
        self, open_topic: OpenTopic
    ) -> None:
        topic = open_topic()
        values = [b"%d" % number for number in range(40)]
        with ThreadPoolExecutor(8) as pool:
            written = list(pool.map(lambda value: topic.publish(0, b"key", value), values))

        records = read(open_topic(), {0: START}, len(values))

        by_offset = {record.offset: record.value for record in records}
        assert [by_offset[each.offset] for each in written] == values
        assert len(by_offset) == len(values)

    def test_close_when_called_twice_then_nothing_happens(self, open_topic: OpenTopic) -> None:
        topic = open_topic()
        topic.close()
        topic.close()


def read(
    topic: EventTopic, positions: dict[int, ReadPosition], count: int, *, max_records: int = 100
) -> list[TopicRecord]:
    """Read `count` records from these positions on."""
    topic.assign(positions)
    records: list[TopicRecord] = []

    def enough() -> bool:
        records.extend(topic.poll(max_records=max_records, timeout_ms=200))
        return len(records) >= count

    wait_until(enough, 20.0, lambda: f"{count} records, got {len(records)}")
    assert len(records) == count, "more records than were written"
    return records
