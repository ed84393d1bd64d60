"""Deadlines to the millisecond, repeated records, and how far a request reaches."""

from __future__ import annotations

from uuid import UUID

import pytest

from rlmm.codec import encode
from rlmm.events.event import Event
from rlmm.events.pause import PausableTask, paused_tasks
from rlmm.events.policy import topic_policies
from rlmm.state.log_starts import LogStart
from rlmm.state.partition_state import PartitionState
from rlmm.topic.memory import MemoryLog
from rsm.segment.epochs import Lineage
from tests.folding import append, folded, log_of, refusals
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    DELETED,
    DELETING,
    FINISHED,
    MARKED,
    ORDERS,
    STARTED,
    claim,
    dead_lettered,
    gap,
    gaps,
    life,
    log_start,
    log_start_request,
    log_starts,
    loss_accepted,
    offload_request,
    partition_delete,
    paused,
    policy,
    read_lease,
    segment_metadata,
    step,
    trim,
    writer,
)

SEGMENT = segment_metadata()
LAST_MS = (1 << 63) - 1


def copied(started: Event, finished: Event, *, after_ms: int) -> MemoryLog:
    """Return a log with a copy that starts at 1000 and finishes `after_ms` later."""
    clock = ManualClock(now_ms=1_000)
    log = MemoryLog(clock)
    append(log, started)
    clock.now_ms = 1_000 + after_ms
    append(log, finished)
    return log


def deadline_of(log: MemoryLog) -> int:
    record = folded(log).segment(SEGMENT.segment_id)
    assert record is not None
    return record.copy_deadline_ms


def without(log: MemoryLog, event: Event) -> MemoryLog:
    """Return the log with a tombstone of the event."""
    log.append(0, encode(event).key, None)
    return log


def test_copy_when_finished_at_the_deadline_of_its_start_then_is_accepted() -> None:
    started = step(SEGMENT, STARTED, copy_timeout_ms=500)

    log = copied(started, step(SEGMENT, FINISHED), after_ms=500)

    assert refusals(log) == {}


@pytest.mark.parametrize(
    ("own_deadline_ms", "expected"), [(0, 1_500), (1_300, 1_500), (1_800, 1_800)]
)
def test_copy_when_finished_then_the_later_of_its_deadlines_is_kept(
    own_deadline_ms: int, expected: int
) -> None:
    """The deletion waits for the deadline, whichever record compaction leaves."""
    started = step(SEGMENT, STARTED, copy_timeout_ms=500)
    finished = step(SEGMENT, FINISHED, copy_deadline_ms=own_deadline_ms)

    assert deadline_of(copied(started, finished, after_ms=200)) == expected


def test_copy_when_started_without_a_time_then_the_deadline_that_it_names_is_kept() -> None:
    assert deadline_of(log_of(step(SEGMENT, STARTED, copy_deadline_ms=2_000))) == 2_000


def test_copy_when_finished_then_a_time_for_it_makes_no_deadline() -> None:
    assert deadline_of(log_of(step(SEGMENT, FINISHED, copy_timeout_ms=500))) == 0


@pytest.mark.parametrize("timeout_ms", [LAST_MS, LAST_MS - 1])
def test_copy_when_its_deadline_is_beyond_time_then_it_is_the_last_millisecond(
    timeout_ms: int,
) -> None:
    log = MemoryLog(ManualClock(now_ms=1_000))
    append(log, step(SEGMENT, STARTED, copy_timeout_ms=timeout_ms))

    assert deadline_of(log) == LAST_MS


def test_segment_when_its_deletion_finishes_at_last_then_is_dead_lettered_still() -> None:
    started: list[Event] = [claim(), *life(SEGMENT)[:3], dead_lettered(SEGMENT)]
    log = log_of(*started, step(SEGMENT, DELETE_FINISHED))

    record = folded(log).segment(SEGMENT.segment_id)

    assert record is not None
    assert (record.metadata.state, record.is_dead_lettered) == (DELETE_FINISHED, True)


@pytest.mark.parametrize("before", [[], [step(SEGMENT, DELETE_FINISHED)]])
def test_dead_letter_when_no_record_of_the_segment_was_accepted_then_is_refused(
    before: list[Event],
) -> None:
    log = log_of(*before, dead_lettered(SEGMENT))

    assert refusals(log) == {"unknown_segment": len(before) + 1}


def test_deletion_when_it_starts_twice_then_the_second_is_a_step_back() -> None:
    begin = step(SEGMENT, DELETE_STARTED, by=writer(0), expected_state=FINISHED)
    log = log_of(claim(), *life(SEGMENT)[:3], begin)

    assert refusals(log) == {"step_back": 1}


@pytest.mark.parametrize("event", [trim(100), log_start(100), offload_request(100)])
def test_offset_when_said_again_then_is_no_step_back(event: Event) -> None:
    """A retry is not a step back."""
    assert refusals(log_of(claim(), event, event)) == {}


@pytest.mark.parametrize(
    "event", [loss_accepted(3, 40), loss_accepted(2, 40), loss_accepted(3, 10)]
)
def test_loss_when_no_more_is_accepted_than_before_then_is_refused(event: Event) -> None:
    assert refusals(log_of(claim(), loss_accepted(3, 40), event)) == {"below_current": 1}


@pytest.mark.parametrize("offset", [80, 79])
def test_request_when_the_log_starts_there_already_then_is_refused(offset: int) -> None:
    log = log_of(claim(), log_start(80), log_start_request(offset))

    assert refusals(log) == {"below_current": 1}
    assert folded(log).partition_state(ORDERS).log_start_requested_offset is None


def test_request_when_the_log_start_comes_to_it_then_is_met() -> None:
    log = log_of(claim(), log_start_request(80), log_start(80))

    assert folded(log).partition_state(ORDERS).log_start_requested_offset is None


@pytest.mark.parametrize(("leader_epoch", "expected"), [(0, 50), (4, 50), (5, 90), (-1, 90)])
def test_request_when_a_later_epoch_begins_below_then_reaches_up_to_it(
    leader_epoch: int, expected: int
) -> None:
    """A request that names no epoch belongs to the owner's epoch."""
    owner = claim(writer(5), lineage=Lineage.of((0, 0), (5, 50)))
    log = log_of(owner, log_start_request(90, leader_epoch=leader_epoch))

    assert folded(log).partition_state(ORDERS).log_start_requested_offset == expected


def test_request_when_nobody_owns_the_partition_then_is_of_the_first_epoch() -> None:
    owner = claim(writer(1), lineage=Lineage.of((0, 0), (1, 50)))

    state = folded(log_of(log_start_request(90), owner)).partition_state(ORDERS)

    assert state.log_start_requested_offset == 50


@pytest.mark.parametrize(("log_start_offset", "count"), [(9, 2), (19, 2), (20, 1), (60, 0)])
def test_gaps_when_the_log_starts_at_the_end_of_one_then_it_is_none(
    log_start_offset: int, count: int
) -> None:
    log = log_of(claim(), gaps(gap(10, 20), gap(50, 60)), log_start(log_start_offset))

    assert len(folded(log).partition_state(ORDERS).gaps) == count


@pytest.mark.parametrize(
    ("later_start", "expected"),
    [(61, (gap(10, 20), gap(50, 60))), (55, (gap(10, 20), gap(50, 55))), (50, (gap(10, 20),))],
)
def test_gaps_when_a_later_epoch_begins_in_one_then_it_ends_there(
    later_start: int, expected: tuple[object, ...]
) -> None:
    """Records of the later leader are not in a gap."""
    later = claim(writer(1), lineage=Lineage.of((0, 0), (1, later_start)))
    log = log_of(claim(), gaps(gap(10, 20), gap(50, 60)), later)

    assert folded(log).partition_state(ORDERS).gaps == expected


def test_leases_when_taken_in_any_order_then_ascend_by_id() -> None:
    state = folded(log_of(read_lease(2), read_lease(1), read_lease(3))).partition_state(ORDERS)

    assert [lease.lease_id for lease in state.read_leases] == [UUID(int=n) for n in (1, 2, 3)]


def test_partition_when_its_deletion_is_marked_then_what_is_known_stays() -> None:
    log = log_of(claim(), trim(50), partition_delete(MARKED), offload_request(70), read_lease())

    state = folded(log).partition_state(ORDERS)

    assert (state.trimmed_offset, state.offload_requested_offset) == (50, 70)
    assert len(state.read_leases) == 1


def test_claim_when_tombstoned_while_the_deletion_is_only_marked_then_still_owns() -> None:
    owner = claim()
    log = without(log_of(owner, partition_delete(MARKED)), owner)

    assert refusals(log) == {"claim_removed": 1}


def test_policy_when_tombstoned_then_is_gone() -> None:
    written = policy()
    log = without(log_of(written), written)

    assert topic_policies(folded(log)) == ()


def test_pause_when_tombstoned_then_nothing_is_paused() -> None:
    written = paused(PausableTask.TRIM)
    log = without(log_of(written), written)

    assert paused_tasks(folded(log), ORDERS.topic_id) == frozenset()


@pytest.mark.parametrize("event", [trim(50), log_start(50), gaps(gap(10, 20))])
def test_record_when_its_key_is_tombstoned_then_what_it_said_holds(event: Event) -> None:
    """Owners write tombstones for records that later ones replace; the state stays."""
    log = log_of(claim(), event)

    assert folded(log).partition_state(ORDERS) == folded(without(log, event)).partition_state(
        ORDERS
    )


@pytest.mark.parametrize("event", [offload_request(5), loss_accepted(3, 40)])
def test_request_when_the_partition_is_deleted_then_is_refused(event: Event) -> None:
    log = log_of(*map(partition_delete, (MARKED, DELETING, DELETED)), event)

    assert refusals(log) == {"partition_deleted": 1}
    assert folded(log).partition_state(ORDERS) == PartitionState(deletion=DELETED)


@pytest.mark.parametrize(("requested", "expected"), [(79, None), (80, None), (81, 81)])
def test_request_when_a_later_leader_took_it_and_the_log_starts_there_then_is_met(
    requested: int, expected: int | None
) -> None:
    state = PartitionState(
        log_starts=(LogStart(80, 0),), log_start_requests=(LogStart(requested, 1),)
    )

    assert state.log_start_requested_offset == expected


@pytest.mark.parametrize(
    ("log_start_offset", "requested", "expected"),
    [(10, 50, 50), (50, 10, 50), (10, None, 10), (None, 50, 50), (None, None, None)],
)
def test_first_readable_when_requested_or_recorded_then_the_later_of_both(
    log_start_offset: int | None, requested: int | None, expected: int | None
) -> None:
    state = PartitionState(
        log_starts=log_starts(log_start_offset), log_start_requests=log_starts(requested)
    )

    assert state.first_readable_offset == expected
