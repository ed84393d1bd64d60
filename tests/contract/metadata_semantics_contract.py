"""The answers of every RemoteLogMetadataManager on lineages, deleted partitions and read leases.

A test class inherits the contract, and its module defines the fixture `open_manager`.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlmm.events.event import Event
from rlmm.events.read_lease import READ_LEASES_MAX_COUNT, release_read_lease
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError
from tests.contract.metadata_manager_contract import OpenManager
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETED,
    DELETING,
    FINISHED,
    MARKED,
    ORDERS,
    STARTED,
    claim,
    life,
    log_start,
    log_start_request,
    partition_delete,
    read_lease,
    segment_metadata,
    step,
    trim,
)

LINEAGE = Lineage.of((0, 0), (1, 60))
FIRST = segment_metadata(1, 0, 100, epochs=((0, 0), (1, 60)))
SECOND = replace(segment_metadata(2, 100, 200, epochs=((1, 100),)), has_transaction_index=True)
CUT_OFF = segment_metadata(3, 60, 90, epochs=((0, 60),))


class MetadataSemanticsContract:
    def test_lineage_when_asked_then_only_what_is_in_it_answers(
        self, open_manager: OpenManager
    ) -> None:
        """Scenarios 8, 31: KIP-405's queries by lineage and epoch."""
        manager = open_manager()
        manager.publish(claim(lineage=LINEAGE))
        for metadata in (FIRST, SECOND, CUT_OFF):
            manager.publish(step(metadata, FINISHED))
        manager.publish(step(segment_metadata(4, 200, 300, epochs=((1, 200),)), STARTED))
        manager.publish(log_start(30))

        by_epoch = manager.list_remote_log_segments(ORDERS, leader_epoch=1)
        after_first = manager.next_segment_with_txn_index(ORDERS, 1, 70)

        assert [record.metadata.offsets.start_offset for record in by_epoch] == [0, 100, 200]
        assert manager.earliest_log_offset(ORDERS) == 30
        assert manager.remote_log_size_bytes(ORDERS) == 2 * FIRST.segment_size_bytes
        assert manager.remote_log_size_bytes(ORDERS, leader_epoch=0) == 2 * FIRST.segment_size_bytes
        assert after_first is not None
        assert after_first.segment_id == SECOND.segment_id
        assert manager.next_segment_with_txn_index(ORDERS, 0, 0) is None

    def test_partition_when_deleted_then_only_that_is_left_of_it(
        self, open_manager: OpenManager
    ) -> None:
        """Scenarios 76, 106, R11: the records of the deletion make the fold refuse late copies."""
        manager = open_manager()
        said: list[Event] = [claim(), trim(50), log_start(10), log_start_request(20), read_lease()]
        said += [*life(FIRST), *map(partition_delete, (MARKED, DELETING, DELETED))]
        for event in said:
            assert manager.publish(event).accepted
        manager.write_tombstones(FIRST.segment_id)
        assert manager.caught_up(ORDERS)

        manager.write_partition_tombstones(ORDERS)

        assert manager.caught_up(ORDERS)
        late = manager.publish(step(SECOND, STARTED))
        again = open_manager("another")
        assert again.partition_state(ORDERS) == manager.partition_state(ORDERS)
        assert again.partition_state(ORDERS).deletion is DELETED
        assert late.refusal == "partition_deleted"

    def test_partition_when_segments_are_left_then_is_not_retired(
        self, open_manager: OpenManager
    ) -> None:
        manager = open_manager()
        manager.publish(claim())
        manager.publish(step(FIRST, FINISHED))
        for state in (MARKED, DELETING, DELETED):
            manager.publish(partition_delete(state))

        with pytest.raises(RetriableError):
            manager.write_partition_tombstones(ORDERS)

    def test_partition_when_it_lives_then_retiring_it_does_nothing(
        self, open_manager: OpenManager
    ) -> None:
        manager = open_manager()
        manager.publish(claim())

        manager.write_partition_tombstones(ORDERS)

        assert manager.caught_up(ORDERS)
        assert manager.partition_state(ORDERS).owner is not None

    def test_segment_when_asked_for_without_an_epoch_then_the_lineage_gives_it(
        self, open_manager: OpenManager
    ) -> None:
        """KIP-405's lookup by partition and offset; a cut-off segment is found only by epoch."""
        manager = open_manager()
        for metadata in (FIRST, SECOND, CUT_OFF):
            manager.publish(step(metadata, FINISHED))
        before = manager.remote_log_segment_metadata(ORDERS, 70)
        manager.publish(claim(lineage=LINEAGE))

        found = [manager.remote_log_segment_metadata(ORDERS, n) for n in (0, 59, 70, 100, 200)]
        cut_off = manager.remote_log_segment_metadata(ORDERS, 70, leader_epoch=0)

        assert before is None
        ids = [None if each is None else each.segment_id for each in found]
        assert ids == [*[FIRST.segment_id] * 3, SECOND.segment_id, None]
        assert cut_off is not None
        assert cut_off.segment_id == CUT_OFF.segment_id

    def test_topic_when_recreated_then_never_sees_the_old_ones_data(
        self, open_manager: OpenManager
    ) -> None:
        """Scenario 38."""
        recreated = replace(ORDERS, topic_id=UUID(int=0x2DE5))
        manager = open_manager()
        manager.publish(claim())
        manager.publish(step(FIRST, FINISHED))
        manager.publish(partition_delete(MARKED))
        manager.publish(step(segment_metadata(7, 0, 10, partition=recreated), STARTED))

        states = [r.metadata.state for r in manager.list_remote_log_segments(recreated)]

        assert states == [STARTED]
        assert manager.remote_log_segment_metadata(recreated, 5, leader_epoch=0) is None
        assert manager.partition_state(recreated).deletion is None

    def test_lease_when_taken_renewed_and_released_then_is_seen_by_all(
        self, open_manager: OpenManager
    ) -> None:
        """R13: leases are not fenced, and every follower of the topic knows them."""
        one, other = open_manager("one"), open_manager("other")
        first = one.publish(read_lease(1, 0, 50, duration_ms=60_000))
        renewed = one.publish(read_lease(1, 0, 70, duration_ms=60_000))

        assert other.caught_up(ORDERS)
        (held,) = other.partition_state(ORDERS).read_leases
        release_read_lease(one, ORDERS, UUID(int=1))

        assert other.caught_up(ORDERS)
        assert first.accepted
        assert held.offsets.end_offset == 70
        assert held.expires_ms == renewed.append_time_ms + 60_000
        assert other.partition_state(ORDERS).read_leases == ()

    def test_leases_when_too_many_then_no_further_one_is_written(
        self, open_manager: OpenManager
    ) -> None:
        """A partition has a maximum number of leases; a renewal does not count as another one."""
        manager = open_manager()
        for number in range(READ_LEASES_MAX_COUNT):
            manager.publish(read_lease(number, duration_ms=60_000))

        with pytest.raises(RetriableError):
            manager.publish(read_lease(READ_LEASES_MAX_COUNT, duration_ms=60_000))

        assert manager.publish(read_lease(0, duration_ms=60_000)).accepted
        assert len(manager.partition_state(ORDERS).read_leases) == READ_LEASES_MAX_COUNT

    def test_deletion_when_it_skips_a_step_then_says_why(self, open_manager: OpenManager) -> None:
        manager = open_manager()

        refusal = manager.publish(partition_delete(DELETED)).refusal

        assert refusal == "skipped_state"
        assert manager.newer_record(ORDERS) is None
        assert manager.metrics().newer_records_count == 0

    def test_segment_when_deleted_then_no_query_finds_it(self, open_manager: OpenManager) -> None:
        """Scenario 31."""
        manager = open_manager()
        manager.publish(claim())
        for event in life(FIRST):
            manager.publish(event)

        ended = manager.list_remote_log_segments(ORDERS, states=[DELETE_FINISHED])

        assert [record.metadata.segment_id for record in ended] == [FIRST.segment_id]
        assert list(manager.list_remote_log_segments(ORDERS)) == []
        assert list(manager.list_remote_log_segments(ORDERS, leader_epoch=0)) == []
        assert manager.earliest_log_offset(ORDERS) is None
        assert manager.remote_log_size_bytes(ORDERS) == 0
