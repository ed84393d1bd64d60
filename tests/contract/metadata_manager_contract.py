"""What every RemoteLogMetadataManager must do. A test module defines the fixture `open_manager`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Protocol
from uuid import UUID

import pytest

from rlmm.codec import encode
from rlmm.events.policy import topic_policies, topic_policy, topic_policy_position
from rlmm.events.policy_level import policy_levels, remove_policy_level
from rlmm.events.registration import registrations
from rlmm.manager import TopicBasedRemoteLogMetadataManager
from rlmm.record_keys import RecordKind, parse_record_key
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError
from rsm.segment.metadata import SegmentState
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    FINISHED,
    ORDERS,
    STARTED,
    claim,
    life,
    log_start,
    policy,
    policy_level,
    registration,
    segment_metadata,
    step,
    trim,
    writer,
)
from tests.services.waiting import wait_until

SEGMENT = segment_metadata(1, 0, 100, epochs=((0, 0), (1, 60)))
LONG_MS = 3_600_000


class OpenManager(Protocol):
    def __call__(
        self, process: str = "one", *, tombstone_grace_ms: int = 0, follows_all: bool = True
    ) -> TopicBasedRemoteLogMetadataManager:
        """Open one more process's manager of the same topic and wait until it is ready.

        A process that is opened again continues with its own cache.
        """


class MetadataThreadsContract:
    """The contract of managers that follow the topic on a thread of their own."""

    def test_events_when_published_by_many_threads_then_each_gets_its_own_result(
        self, open_manager: OpenManager
    ) -> None:
        manager = open_manager()
        starts = [step(segment_metadata(n // 2, n, n + 1), STARTED) for n in range(20)]

        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(manager.publish, starts))

        assert sum(result.accepted for result in results) == 10


class MetadataManagerContract:
    def test_event_when_published_then_is_read_at_once(self, open_manager: OpenManager) -> None:
        manager = open_manager()

        result = manager.publish(step(SEGMENT, FINISHED))

        assert result.accepted
        found = manager.remote_log_segment_metadata(ORDERS, 99, leader_epoch=1)
        assert found is not None
        assert found.segment_id == SEGMENT.segment_id
        assert found.state is FINISHED

    def test_event_when_refused_then_says_why(self, open_manager: OpenManager) -> None:
        """R11: `publish` returns whether the event was accepted, or why it was refused."""
        result = open_manager().publish(step(SEGMENT, DELETE_FINISHED))

        assert (result.accepted, result.refusal) == (False, "unknown_segment")

    def test_event_when_published_by_another_process_then_is_there_once_caught_up(
        self, open_manager: OpenManager
    ) -> None:
        """Scenario 35: caught up means up to the end at the time of the call."""
        one, other = open_manager("one"), open_manager("other")
        one.publish(step(SEGMENT, FINISHED))

        assert other.caught_up(ORDERS)

        assert other.segment(SEGMENT.segment_id) == one.segment(SEGMENT.segment_id)

    def test_record_when_listed_then_shows_times_and_place(self, open_manager: OpenManager) -> None:
        """R22: a dead letter needs the position of the accepted deletion."""
        manager = open_manager()
        result = manager.publish(step(SEGMENT, STARTED, copy_timeout_ms=500))

        (record,) = manager.list_remote_log_segments(ORDERS)

        assert record.changed_ms == result.append_time_ms
        assert record.copy_deadline_ms == result.append_time_ms + 500
        assert record.changed_at is not None
        assert record.changed_at.offset >= 0
        assert manager.broker_time_ms() >= result.append_time_ms

    def test_segments_when_listed_by_state_then_others_are_left_out(
        self, open_manager: OpenManager
    ) -> None:
        """Scenario 31."""
        manager = open_manager()
        manager.publish(step(SEGMENT, FINISHED))
        manager.publish(step(segment_metadata(2, 100, 200), STARTED))

        listed = manager.list_remote_log_segments(ORDERS, states=[STARTED])

        assert [record.metadata.offsets.start_offset for record in listed] == [100]

    def test_highest_offset_when_asked_then_is_the_last_of_that_epoch(
        self, open_manager: OpenManager
    ) -> None:
        manager = open_manager()
        manager.publish(step(SEGMENT, FINISHED))

        found = [manager.highest_offset_for_epoch(ORDERS, epoch) for epoch in (0, 1, 2)]

        assert found == [59, 99, None]

    def test_partition_when_claimed_and_trimmed_then_its_state_has_both(
        self, open_manager: OpenManager
    ) -> None:
        manager = open_manager()
        lineage = Lineage.of((0, 0), (3, 40))
        manager.publish(claim(writer(3)))
        manager.publish(trim(60, by=writer(3), lineage=lineage))
        manager.publish(log_start(20, by=writer(3)))

        state = manager.partition_state(ORDERS)

        assert (state.owner, state.lineage) == (writer(3), lineage)
        assert (state.trimmed_offset, state.log_start_offset) == (60, 20)

    def test_policy_level_when_set_and_removed_then_other_processes_see_both(
        self, open_manager: OpenManager
    ) -> None:
        first = open_manager("one")
        default, pattern = policy_level(""), policy_level("orders-*", retention_ms=2)
        for event in (policy_level("orders-*"), pattern, default):
            assert first.publish(event).accepted

        remove_policy_level(first, "")
        remove_policy_level(first, "unknown-*")

        assert policy_levels(first) == (pattern.level,)
        assert policy_levels(open_manager("two")) == (pattern.level,)

    def test_record_when_acceptance_depends_on_its_order_then_only_its_owner_removes_it(
        self, open_manager: OpenManager
    ) -> None:
        manager = open_manager()
        event = claim()
        assert manager.publish(event).accepted
        key = parse_record_key(encode(event).key)

        with pytest.raises(ValueError, match="only a record's owner removes CLAIM"):
            manager.remove_record(key)

        assert manager.partition_state(ORDERS).owner == event.writer

    def test_policy_and_registration_when_published_then_are_found(
        self, open_manager: OpenManager
    ) -> None:
        manager = open_manager()
        wanted = policy()
        manager.publish(wanted)
        process = registration(7)
        manager.publish(process)

        assert topic_policy(manager, ORDERS.topic_id) == wanted.policy
        assert topic_policies(manager) == (wanted.policy,)
        position = topic_policy_position(manager, ORDERS.topic_id)
        assert position is not None
        assert position.partition == 0
        assert topic_policy_position(manager, UUID(int=0)) is None
        assert [found.process for found in registrations(manager)] == [process]

    def test_policy_when_changed_by_another_process_then_is_there_once_current(
        self, open_manager: OpenManager
    ) -> None:
        writing, reading = open_manager("one"), open_manager("two")
        assert writing.publish(policy()).accepted

        assert reading.is_cluster_current(timeout_ms=20_000)

        assert [each.topic for each in topic_policies(reading)] == [policy().policy.topic]

    def test_trim_when_superseded_then_only_the_newest_key_is_left(
        self, open_manager: OpenManager
    ) -> None:
        """R11: superseded records are removed by tombstones once the newer one was accepted."""
        manager = open_manager()
        manager.publish(claim())
        for offset in (10, 20, 30):
            manager.publish(trim(offset))

        assert manager.caught_up(ORDERS)
        cache = manager._cache
        wait_until(
            lambda: len(cache.superseded_keys(ORDERS, RecordKind.TRIM, 1 << 62)) == 1,
            20.0,
            "the superseded keys to be gone",
        )
        assert manager.partition_state(ORDERS).trimmed_offset == 30

    def test_trim_when_a_newer_leader_trimmed_meanwhile_then_its_record_stays(
        self, open_manager: OpenManager
    ) -> None:
        """R11: only records before the process's own accepted record get tombstones."""
        one, other = open_manager("one"), open_manager("other")
        one.publish(claim(writer(0)))
        one.publish(trim(10, by=writer(0)))
        other.publish(claim(writer(1)))
        other.publish(trim(20, by=writer(1)))
        assert one.caught_up(ORDERS)

        one.publish(trim(30, by=writer(0)))

        restarted = open_manager("a third")
        assert restarted.partition_state(ORDERS).trimmed_offset == 20

    def test_segment_when_retired_then_nothing_of_it_is_left(
        self, open_manager: OpenManager
    ) -> None:
        """R11."""
        manager = open_manager()
        manager.publish(claim())
        for event in life(SEGMENT):
            manager.publish(event)

        manager.write_tombstones(SEGMENT.segment_id)

        assert manager.caught_up(ORDERS)
        assert manager._cache.segment_entry(SEGMENT.segment_id) is None

    def test_segment_when_not_deleted_then_is_not_retired(self, open_manager: OpenManager) -> None:
        manager = open_manager()
        manager.publish(claim())
        manager.publish(step(SEGMENT, FINISHED))
        manager.publish(step(SEGMENT, DELETE_STARTED, expected_state=FINISHED))

        with pytest.raises(RetriableError):
            manager.write_tombstones(SEGMENT.segment_id)

    def test_segment_when_late_records_may_come_then_is_not_retired(
        self, open_manager: OpenManager
    ) -> None:
        """R11: only after the grace, by the broker's clock."""
        manager = open_manager(tombstone_grace_ms=LONG_MS)
        manager.publish(claim())
        for event in life(SEGMENT):
            manager.publish(event)

        with pytest.raises(RetriableError):
            manager.write_tombstones(SEGMENT.segment_id)

        assert manager.segment(SEGMENT.segment_id) is not None

    def test_segment_when_unknown_then_retiring_it_does_nothing(
        self, open_manager: OpenManager
    ) -> None:
        open_manager().write_tombstones(SEGMENT.segment_id)

    def test_process_when_opened_again_then_answers_as_before(
        self, open_manager: OpenManager
    ) -> None:
        """Scenario 36: from its checkpoint, or from the whole topic if the checkpoint is lost."""
        first = open_manager()
        first.publish(claim())
        first.publish(step(SEGMENT, FINISHED))
        first.publish(policy())
        expected = list(first.list_remote_log_segments(ORDERS, states=list(SegmentState)))
        first.close()

        again = open_manager()

        assert list(again.list_remote_log_segments(ORDERS)) == expected
        assert again.partition_state(ORDERS).owner == writer()
        assert len(topic_policies(again)) == 1
        assert again.broker_time_ms() > 0

    def test_metrics_when_events_were_applied_then_count_them(
        self, open_manager: OpenManager
    ) -> None:
        manager = open_manager()
        manager.publish(step(SEGMENT, STARTED))
        manager.publish(step(SEGMENT, STARTED))

        metrics = manager.metrics()

        assert metrics.is_ready
        assert metrics.applied_events_count == 1
        assert metrics.refused_events_count == {"step_back": 1}
        assert sum(metrics.positions.values()) == 2

    def test_close_when_called_twice_then_nothing_happens(self, open_manager: OpenManager) -> None:
        manager = open_manager()
        manager.close()
        manager.close()
