"""The fold of a partition's deletion, read leases, gaps, requests and pauses."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlmm.codec import encode
from rlmm.events.anomaly import FOLDED_ANOMALIES_MAX_COUNT
from rlmm.events.event import Event
from rlmm.events.pause import PausableTask, paused_tasks
from rlmm.record_keys import (
    RecordKind,
    partition_key,
)
from rlmm.state.anomalies import AnomalyKind
from rlmm.state.partition_state import PartitionState
from rlmm.topic.memory import MemoryLog
from tests.folding import append, folded, log_of, refusals
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETED,
    DELETING,
    FINISHED,
    MARKED,
    ORDERS,
    STARTED,
    anomaly,
    anomaly_reported,
    claim,
    gap,
    gaps,
    life,
    log_start,
    log_start_request,
    loss_accepted,
    offload_request,
    partition_delete,
    paused,
    read_lease,
    segment_metadata,
    step,
    trim,
    writer,
)

SEGMENT = segment_metadata()


def deletion_of(*events: Event) -> object:
    return folded(log_of(*events)).partition_state(ORDERS).deletion


@pytest.mark.parametrize("length", [1, 2, 3])
def test_partition_when_its_deletion_steps_forward_then_is_accepted(length: int) -> None:
    """KIP-405: MARKED, STARTED, FINISHED."""
    states = [MARKED, DELETING, DELETED][:length]

    assert deletion_of(*map(partition_delete, states)) is states[-1]


def test_partition_when_its_deletion_skips_or_moves_back_then_is_refused() -> None:
    """KIP-405: no other transition is valid."""
    log = log_of(*map(partition_delete, (DELETING, MARKED, DELETED, DELETING, MARKED, DELETING)))

    assert refusals(log) == {"skipped_state": 2, "step_back": 2}
    assert folded(log).partition_state(ORDERS).deletion is DELETING


def test_copy_when_the_partition_is_to_be_deleted_then_none_begins() -> None:
    """Scenario 106: no new copy of it, not even one that comes as finished."""
    log = log_of(claim(), partition_delete(MARKED), step(SEGMENT, STARTED), step(SEGMENT, FINISHED))

    assert refusals(log) == {"partition_deleted": 2}
    assert folded(log).segment(SEGMENT.segment_id) is None


def test_segments_when_the_partition_is_to_be_deleted_then_end_and_are_deleted() -> None:
    """Scenario 76: unfinished work continues."""
    log = log_of(
        claim(),
        step(SEGMENT, STARTED),
        partition_delete(MARKED),
        *life(SEGMENT)[1:],
        partition_delete(DELETING),
        partition_delete(DELETED),
    )

    assert refusals(log) == {}
    record = folded(log).segment(SEGMENT.segment_id)
    assert record is not None
    assert record.metadata.state is DELETE_FINISHED


def test_partition_when_deleted_then_nothing_else_is_known_and_all_is_refused() -> None:
    said: list[Event] = [claim(), trim(10), log_start(5), log_start_request(7), read_lease()]
    ended = [*said, *map(partition_delete, (MARKED, DELETING, DELETED))]
    log = log_of(*ended, claim(writer(9)), log_start_request(90), read_lease(2), trim(99))

    assert folded(log).partition_state(ORDERS) == PartitionState(deletion=DELETED)
    assert refusals(log) == {"partition_deleted": 3, "not_owner": 1}


def test_claims_when_the_partition_is_deleted_then_may_be_removed() -> None:
    """R11: claims are kept for the partition's life, and no longer than that."""
    first = claim()
    log = log_of(first, *map(partition_delete, (MARKED, DELETING, DELETED)))
    log.append(0, encode(first).key, None)

    assert refusals(log) == {}
    assert folded(log).superseded_keys(ORDERS, RecordKind.CLAIM, 1 << 62) == []


def test_deletion_of_a_partition_when_tombstoned_then_holds() -> None:
    """R11: because of the deletion's record, the fold refuses late copies."""
    marked = partition_delete(MARKED)
    log = log_of(marked)
    log.append(0, encode(marked).key, None)

    assert refusals(log) == {"partition_delete_removed": 1}
    assert folded(log).partition_state(ORDERS).deletion is MARKED


def test_topic_when_recreated_then_does_not_know_the_old_ones_data() -> None:
    """Scenario 38: another id, another partition."""
    recreated = replace(ORDERS, topic_id=UUID(int=0x2DE5))
    cache = folded(
        log_of(claim(), step(SEGMENT, FINISHED), trim(50), partition_delete(MARKED), read_lease())
    )

    assert cache.partition_state(recreated) == PartitionState()
    assert cache.segments(recreated) == []
    assert cache.finished_segment(recreated, 5, leader_epoch=0) is None
    assert cache.earliest_log_offset(recreated) is None


def test_lease_when_taken_again_then_the_last_record_holds() -> None:
    """R13: it expires by the broker's time of its newest record."""
    clock = ManualClock(now_ms=1_000)
    log = MemoryLog(clock)
    append(log, read_lease(1, 0, 50, duration_ms=500))
    append(log, read_lease(2, 60, 70, duration_ms=100))
    clock.now_ms = 1_400
    append(log, read_lease(1, 0, 80, duration_ms=500))

    state = folded(log).partition_state(ORDERS)

    assert [(held.offsets.end_offset, held.expires_ms) for held in state.read_leases] == [
        (80, 1_900),
        (70, 1_100),
    ]
    assert [held.lease_id.int for held in state.active_leases(1_100)] == [1]


def test_lease_when_tombstoned_then_is_gone() -> None:
    log = log_of(read_lease(1), read_lease(2))
    log.append(0, partition_key(RecordKind.READ_LEASE, ORDERS, UUID(int=1)), None)

    assert [held.lease_id.int for held in folded(log).partition_state(ORDERS).read_leases] == [2]


def test_anomaly_when_reported_again_then_the_last_record_holds() -> None:
    """One record for each segment, object and kind, by any writer."""
    first, again = anomaly(1, attempts=3), anomaly(1, attempts=1, last_ms=9_000)
    other = anomaly(1, key="orders/7.meta")

    log = log_of(anomaly_reported(first), anomaly_reported(other), anomaly_reported(again))

    found = folded(log).partition_state(ORDERS).anomalies
    assert set(found) == {again, other}


def test_anomaly_when_tombstoned_then_is_cleared() -> None:
    left = anomaly(2)
    log = log_of(anomaly_reported(anomaly(1)), anomaly_reported(left))
    log.append(0, partition_key(RecordKind.ANOMALY, ORDERS, anomaly(1).id), None)

    assert folded(log).partition_state(ORDERS).anomalies == (left,)


def test_anomaly_when_its_partition_is_deleted_then_refused() -> None:
    log = log_of(*map(partition_delete, (MARKED, DELETING, DELETED)), anomaly_reported(anomaly(1)))

    assert folded(log).partition_state(ORDERS).anomalies == ()
    assert refusals(log) == {"partition_deleted": 1}


@pytest.mark.parametrize("unknown", range(4))
def test_anomaly_when_another_is_tombstoned_then_is_kept(unknown: int) -> None:
    """The order of the two ids does not matter."""
    known, *others = sorted((anomaly(number) for number in range(1, 6)), key=lambda each: each.id)
    kept = others[1]
    assert known.id < kept.id < others[-1].id
    absent = [known, others[0], *others[2:]][unknown]
    log = log_of(anomaly_reported(kept))
    log.append(0, partition_key(RecordKind.ANOMALY, ORDERS, absent.id), None)

    assert folded(log).partition_state(ORDERS).anomalies == (kept,)


def test_anomalies_when_a_writer_ignores_the_limit_then_no_more_are_kept() -> None:
    """The cache writes a partition's state as a whole, so its size must be bounded."""
    many = [anomaly(number) for number in range(1, FOLDED_ANOMALIES_MAX_COUNT + 3)]
    again = replace(many[0], attempts=9)
    log = log_of(*map(anomaly_reported, [*many, again]))

    kept = folded(log).partition_state(ORDERS).anomalies

    assert set(kept) == {again, *many[1:FOLDED_ANOMALIES_MAX_COUNT]}
    assert refusals(log) == {"too_many": 2}


def test_accepted_loss_when_there_are_as_many_anomalies_as_are_kept_then_is_kept() -> None:
    """An operator can accept losses, and a cleared anomaly makes room."""
    many = [anomaly(number) for number in range(1, FOLDED_ANOMALIES_MAX_COUNT + 1)]
    accepted, next_one = anomaly(1, kind=AnomalyKind.LOSS_ACCEPTED), anomaly(10_000)
    log = log_of(*map(anomaly_reported, [*many, accepted]))
    log.append(0, partition_key(RecordKind.ANOMALY, ORDERS, many[0].id), None)
    append(log, anomaly_reported(next_one))

    kept = folded(log).partition_state(ORDERS).anomalies

    assert set(kept) == {accepted, next_one, *many[1:]}
    assert list(kept) == sorted(kept, key=lambda each: each.id)


def test_gaps_when_recorded_again_then_the_owners_last_ones_hold() -> None:
    """R6: each record has the whole set, so superseded records are not needed any more."""
    log = log_of(
        claim(),
        gaps(gap(10, 20)),
        gaps(gap(10, 20), gap(50, 60)),
        gaps(gap(0, 99), by=writer(1)),
    )

    assert folded(log).partition_state(ORDERS).gaps == (gap(10, 20), gap(50, 60))
    assert refusals(log) == {"not_owner": 1}


def test_gaps_when_the_log_start_has_passed_them_then_are_not_kept() -> None:
    before = log_of(claim(), gaps(gap(10, 20), gap(50, 60)), log_start(55))
    after = log_of(claim(), log_start(20), gaps(gap(10, 20), gap(50, 60)))

    assert folded(before).partition_state(ORDERS).gaps == (gap(50, 60),)
    assert folded(after).partition_state(ORDERS).gaps == (gap(50, 60),)


def test_gaps_when_two_overlap_then_are_no_gaps_of_a_partition() -> None:
    with pytest.raises(ValueError, match="overlap"):
        gaps(gap(10, 20), gap(19, 30))


def test_losses_when_accepted_in_any_order_then_both_maxima_hold() -> None:
    """R5, R6, R13: written by operators, unfenced."""
    losses = [loss_accepted(3, 10), loss_accepted(2, 40), loss_accepted(-1)]

    states = [
        folded(log_of(claim(), *order)).partition_state(ORDERS) for order in (losses, losses[::-1])
    ]

    assert [s.accepted_loss_epoch for s in states] == [3, 3]
    assert [s.accepted_start_offset for s in states] == [40, 40]


def test_offload_when_requested_then_the_furthest_offset_holds() -> None:
    log = log_of(claim(), offload_request(50), offload_request(20), offload_request(50))

    assert folded(log).partition_state(ORDERS).offload_requested_offset == 50
    assert refusals(log) == {"below_current": 1}


def test_pause_when_written_again_then_the_last_one_holds_for_all_partitions() -> None:
    """R13: last writer wins."""
    log = log_of(paused(PausableTask.COPY, PausableTask.TRIM), paused(PausableTask.TRIM))

    assert paused_tasks(folded(log), ORDERS.topic_id) == {PausableTask.TRIM}
    assert paused_tasks(folded(log), UUID(int=1)) == frozenset()
