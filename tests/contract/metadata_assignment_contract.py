"""The contract of every manager that follows only the partitions hosted by its process.

A test module defines the fixture `open_manager`, whose topic has several metadata partitions.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest

from rlmm.events.pause import PAUSES
from rlmm.events.policy import topic_policies, topic_policy
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.partitioner import metadata_partition
from rsm.segment.errors import RetriableError
from rsm.segment.ids import TopicIdPartition
from tests.contract.metadata_manager_contract import OpenManager
from tests.hosted_partitions import stored, user_partitions
from tests.metadata_builder import (
    DELETE_FINISHED,
    FINISHED,
    ORDERS,
    claim,
    paused,
    policy,
    registration,
    segment_metadata,
    step,
)
from tests.services.waiting import wait_until

_PER_METADATA_PARTITION = 4


class MetadataAssignmentContract:
    def test_lookups_when_partitions_are_reassigned_then_work_for_all_that_are_hosted(
        self, open_manager: OpenManager
    ) -> None:
        """Scenario 89: each lookup works before and after, for every metadata partition."""
        writer, manager = open_manager("writer"), open_manager("one", follows_all=False)
        count = _count(writer)
        by_number = [
            user_partitions(number, count, _PER_METADATA_PARTITION) for number in range(count)
        ]
        for partition in chain(*by_number):
            writer.publish(stored(partition))
        manager.on_partition_leadership_changes(by_number[1], by_number[0])
        for partition in by_number[1]:
            assert manager.caught_up(partition)
        found = [_stored(manager, partition) for partition in (*by_number[0], *by_number[1])]
        later = by_number[-1]

        manager.on_stop_partitions(by_number[1])
        manager.on_partition_leadership_changes(later, ())

        assert all(manager.caught_up(partition) for partition in later)
        assert all(found)
        assert all(_stored(manager, partition) for partition in (*by_number[0], *later))

    def test_partition_when_hosted_no_longer_then_is_neither_answered_nor_written(
        self, open_manager: OpenManager
    ) -> None:
        writer, manager = open_manager("writer"), open_manager("one", follows_all=False)
        (partition,) = user_partitions(1, _count(writer))
        writer.publish(stored(partition))
        manager.on_partition_leadership_changes([partition], [])
        assert manager.caught_up(partition)
        positions = manager.metrics().positions

        manager.on_stop_partitions([partition])

        wait_until(lambda: not _answers(manager, partition), 30.0, "the end of answers")
        assert not manager.caught_up(partition)
        with pytest.raises(RetriableError, match="not followed"):
            manager.publish(claim(partition=partition))
        assert positions.keys() == {0, 1}
        assert writer.caught_up(partition)
        assert writer.partition_state(partition).owner is None

    def test_partition_when_never_hosted_then_no_question_about_it_is_answered(
        self, open_manager: OpenManager
    ) -> None:
        """A partition that is not followed must not look like an empty one."""
        manager = open_manager("one", follows_all=False)
        partition = _apart_from_the_cluster()
        metadata = segment_metadata(partition=partition)

        for ask in (
            lambda: manager.partition_state(partition),
            lambda: manager.segment(metadata.segment_id),
            lambda: manager.list_remote_log_segments(partition),
            lambda: manager.remote_log_segment_metadata(partition, 0, leader_epoch=0),
            lambda: manager.highest_offset_for_epoch(partition, 0),
            lambda: manager.earliest_log_offset(partition),
            lambda: manager.remote_log_size_bytes(partition),
            lambda: manager.publish(step(metadata, FINISHED)),
            lambda: manager.write_tombstones(metadata.segment_id),
            lambda: manager.write_partition_tombstones(partition),
        ):
            with pytest.raises(RetriableError):
                ask()

    def test_cluster_when_nothing_is_hosted_then_is_known(self, open_manager: OpenManager) -> None:
        manager = open_manager("one", follows_all=False)

        manager.publish(policy())

        assert len(topic_policies(manager)) == 1

    def test_process_when_opened_again_then_answers_for_what_it_hosts(
        self, open_manager: OpenManager
    ) -> None:
        """Scenario 36."""
        first = open_manager("one", follows_all=False)
        partition = _apart_from_the_cluster()
        first.on_partition_leadership_changes([partition], [])
        assert first.caught_up(partition)
        first.publish(stored(partition))
        first.close()

        again = open_manager("one", follows_all=False)
        again.on_partition_leadership_changes([partition], [])

        assert again.caught_up(partition)
        assert _stored(again, partition)

    def test_deletion_when_its_partition_is_hosted_then_is_published_and_read_back(
        self, open_manager: OpenManager
    ) -> None:
        manager = open_manager("one", follows_all=False)
        partition = _apart_from_the_cluster()
        manager.on_partition_leadership_changes([], [partition])
        assert manager.caught_up(partition)

        refused = manager.publish(step(segment_metadata(partition=partition), DELETE_FINISHED))

        assert not refused.accepted

    def test_topic_when_nobody_hosts_it_any_more_then_all_its_partitions_are_found(
        self, open_manager: OpenManager
    ) -> None:
        """Scenario 76: the stored partitions of a deleted topic, on any metadata partition."""
        writer, manager = open_manager("writer"), open_manager("one", follows_all=False)
        partitions = [replace(ORDERS, partition=number) for number in (0, 3, 4, 7, 300)]
        writer.publish(claim(partition=partitions[0]))
        for partition in partitions[1:]:
            writer.publish(stored(partition))
        manager.on_partition_leadership_changes([], [])
        wait_until(lambda: not _finds(manager), 30.0, "only what is hosted is followed")

        manager.follow_topics([ORDERS.topic_id])

        wait_until(lambda: _finds(manager), 30.0, "everything is followed")
        found = manager.partitions_of(ORDERS.topic_id, ORDERS.topic)
        manager.follow_topics([])
        wait_until(lambda: not _finds(manager), 30.0, "only what is hosted is followed")
        assert list(found) == partitions

    def test_topic_when_a_partition_was_written_a_moment_ago_then_is_found(
        self, open_manager: OpenManager
    ) -> None:
        """Scenario 76: the removal of a topic must not miss partitions that are not read yet."""
        writer, manager = open_manager("writer"), open_manager("one")
        partitions = [replace(ORDERS, partition=number) for number in (0, 3, 4, 7, 300)]
        for partition in partitions:
            writer.publish(stored(partition))

        found = manager.partitions_of(ORDERS.topic_id, ORDERS.topic)

        assert list(found) == partitions

    def test_policy_when_retired_then_is_known_no_longer(self, open_manager: OpenManager) -> None:
        """Scenario 76."""
        writer, manager = open_manager("writer"), open_manager("one", follows_all=False)
        writer.publish(policy())
        writer.publish(paused())  # pauses no task, as a resume does
        assert topic_policy(writer, ORDERS.topic_id) is not None

        writer.write_topic_tombstones(ORDERS.topic_id)

        manager.publish(registration())
        writer.publish(registration())
        assert topic_policies(writer) == topic_policies(manager) == ()
        for each in (writer, manager):
            assert each.cluster_value(PAUSES, ORDERS.topic_id.bytes) is None


def _finds(manager: TopicBasedRemoteLogMetadataManager) -> bool:
    """Return whether the manager knows all stored partitions of a topic."""
    manager.publish(registration())  # lets a manager without a thread read the topic
    try:
        manager.partitions_of(ORDERS.topic_id, ORDERS.topic)
    except RetriableError:
        return False
    return True


def _count(manager: TopicBasedRemoteLogMetadataManager) -> int:
    return len(manager.metrics().positions)


def _apart_from_the_cluster() -> TopicIdPartition:
    """Return a user partition that is not in metadata partition 0 of two, nor of three."""
    partitions = (replace(ORDERS, partition=number) for number in range(100))
    return next(each for each in partitions if all(metadata_partition(each, n) for n in (2, 3)))


def _stored(manager: TopicBasedRemoteLogMetadataManager, partition: TopicIdPartition) -> bool:
    found = manager.remote_log_segment_metadata(partition, 50, leader_epoch=0)
    return found is not None and found.topic_id_partition == partition


def _answers(manager: TopicBasedRemoteLogMetadataManager, partition: TopicIdPartition) -> bool:
    manager.publish(policy())  # lets a manager without a thread read the topic
    try:
        manager.partition_state(partition)
    except RetriableError:
        return False
    return True
