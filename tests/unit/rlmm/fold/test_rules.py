from __future__ import annotations

import pytest

from rlmm.codec import encode
from rlmm.events.event import Event
from rlmm.events.policy import PolicyState, topic_policies
from rlmm.events.registration import registrations
from rlmm.events.secret import cluster_secret
from rlmm.events.segment import SegmentEvent
from rlmm.topic.memory import MemoryLog
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import SegmentState
from tests import metadata_builder as build
from tests.folding import append, folded, log_of, refusals
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    DELETE_FINISHED,
    DELETE_STARTED,
    FINISHED,
    ORDERS,
    STARTED,
    claim,
    dead_lettered,
    life,
    log_start,
    open_segment_metadata,
    policy,
    registration,
    segment_metadata,
    step,
    trim,
    writer,
)

SEGMENT = segment_metadata()


def state_after(*events: Event) -> SegmentState | None:
    record = folded(log_of(*events)).segment(SEGMENT.segment_id)
    return record.metadata.state if record else None


def delete_started(expected: SegmentState = FINISHED, *, epoch: int = 0) -> SegmentEvent:
    return step(SEGMENT, DELETE_STARTED, by=writer(epoch), expected_state=expected)


@pytest.mark.parametrize("length", range(1, 5))
def test_segment_when_it_steps_forward_then_is_accepted(length: int) -> None:
    """Scenario 29: each step forward."""
    events = life(SEGMENT)[:length]

    assert state_after(claim(), *events) is events[-1].metadata.state


def test_segment_when_finished_from_nothing_then_is_accepted() -> None:
    """Scenario 29: also from nothing."""
    assert state_after(step(SEGMENT, FINISHED)) is FINISHED


def test_segment_when_started_without_an_end_then_the_finished_state_has_it() -> None:
    """R23: STARTED carries the begin only; the end comes with FINISHED."""
    opened = open_segment_metadata(1, 50)
    finished = segment_metadata(1, 50, 250, epochs=((0, 50), (1, 60)))
    started = step(opened, STARTED, copy_timeout_ms=60_000)

    before = folded(log_of(claim(), started)).segment(opened.segment_id)
    after = folded(log_of(claim(), started, step(finished, FINISHED))).segment(opened.segment_id)

    assert before is not None
    assert after is not None
    assert (before.metadata.offsets.start_offset, before.metadata.is_open) == (50, True)
    assert (after.metadata.offsets, after.metadata.is_open) == (finished.offsets, False)
    assert after.metadata.segment_size_bytes == finished.segment_size_bytes
    assert after.copy_deadline_ms == before.copy_deadline_ms


def test_segment_when_without_an_end_then_its_deletion_keeps_that() -> None:
    opened = open_segment_metadata()
    deleted = step(opened, DELETE_STARTED, by=writer(), expected_state=STARTED)

    record = folded(log_of(claim(), step(opened, STARTED), deleted)).segment(opened.segment_id)

    assert record is not None
    assert (record.metadata.state, record.metadata.is_open) == (DELETE_STARTED, True)


@pytest.mark.parametrize("late", [STARTED, FINISHED, DELETE_FINISHED])
@pytest.mark.parametrize("length", [2, 3, 4])
def test_segment_when_an_older_step_comes_again_then_nothing_changes(
    length: int, late: SegmentState
) -> None:
    """Scenarios 29, 30: a step back or a duplicate is dropped and counted."""
    events = life(SEGMENT)[:length]
    if late.value > events[-1].metadata.state.value:
        late = STARTED
    log = log_of(claim(), *events, step(SEGMENT, late))

    assert state_after(claim(), *events, step(SEGMENT, late)) is events[-1].metadata.state
    assert refusals(log) == {"step_back": 1}


def test_segment_when_all_its_events_come_twice_then_ends_as_once() -> None:
    """Scenario 30."""
    events = life(SEGMENT)

    assert state_after(claim(), *events, *life(SEGMENT)) is DELETE_FINISHED


def test_deletion_finished_when_from_nothing_then_is_refused() -> None:
    """R11: DELETE_SEGMENT_FINISHED from nothing is dropped."""
    log = log_of(step(SEGMENT, DELETE_FINISHED))

    assert refusals(log) == {"unknown_segment": 1}


def test_deletion_finished_when_not_started_then_is_refused() -> None:
    log = log_of(step(SEGMENT, FINISHED), step(SEGMENT, DELETE_FINISHED))

    assert refusals(log) == {"skipped_state": 1}


def test_deletion_when_the_copy_has_just_finished_then_is_refused() -> None:
    """R7: a deletion names the state that it was decided on."""
    log = log_of(claim(), step(SEGMENT, STARTED), step(SEGMENT, FINISHED), delete_started(STARTED))

    assert refusals(log) == {"unexpected_state": 1}


def test_deletion_when_by_an_older_leader_then_is_refused() -> None:
    """R7: the decision of a writer that no longer owns is fenced."""
    log = log_of(claim(writer(1)), step(SEGMENT, FINISHED), delete_started(epoch=0))

    assert refusals(log) == {"not_owner": 1}


def test_deletion_when_by_a_restarted_process_of_the_same_epoch_then_is_refused() -> None:
    """R7, scenario 100: the same broker and epoch, but another incarnation claimed since."""
    other = writer(0, incarnation=0xB2)
    log = log_of(claim(), claim(other), step(SEGMENT, FINISHED), delete_started())

    assert refusals(log) == {"not_owner": 1}


def test_copy_when_finished_by_an_older_leader_then_is_accepted() -> None:
    """Scenario 6: the end of an earlier copy is not fenced."""
    started: list[Event] = [claim(writer(0)), step(SEGMENT, STARTED)]

    assert state_after(*started, claim(writer(1)), step(SEGMENT, FINISHED)) is FINISHED


def test_deletion_when_finished_by_anyone_then_is_accepted() -> None:
    """R13: repair jobs own nothing."""
    stranger = step(SEGMENT, DELETE_FINISHED, by=writer(9, broker_id=9, incarnation=9))

    assert state_after(claim(), step(SEGMENT, FINISHED), delete_started(), stranger) is (
        DELETE_FINISHED
    )


def test_copy_when_finished_after_its_own_deadline_then_is_refused() -> None:
    """R11: a zombie must not revive a deleted copy, even if none of its records is known."""
    clock = ManualClock(now_ms=1_000)
    log = MemoryLog(clock)
    clock.now_ms = 2_001
    append(log, step(SEGMENT, FINISHED, copy_deadline_ms=2_000))

    assert refusals(log) == {"too_late": 1}


def test_copy_when_finished_at_its_deadline_then_is_accepted() -> None:
    clock = ManualClock(now_ms=2_000)
    log = MemoryLog(clock)
    append(log, step(SEGMENT, FINISHED, copy_deadline_ms=2_000))

    assert refusals(log) == {}


def test_copy_when_finished_after_the_deadline_of_its_start_then_is_refused() -> None:
    """R11: also where the event itself names no deadline."""
    clock = ManualClock(now_ms=1_000)
    log = MemoryLog(clock)
    append(log, step(SEGMENT, STARTED, copy_timeout_ms=500))
    clock.now_ms = 1_501
    append(log, step(SEGMENT, FINISHED))

    assert refusals(log) == {"too_late": 1}


def test_copy_when_started_then_its_deadline_counts_from_the_brokers_time() -> None:
    log = MemoryLog(ManualClock(now_ms=1_000))
    append(log, step(SEGMENT, STARTED, copy_timeout_ms=500))

    record = folded(log).segment(SEGMENT.segment_id)

    assert record is not None
    assert (record.changed_ms, record.copy_deadline_ms) == (1_000, 1_500)


def test_copy_when_it_has_no_deadline_then_what_follows_is_folded_still() -> None:
    """A faulty writer must not stop any process."""
    log = log_of(step(SEGMENT, STARTED, copy_timeout_ms=(1 << 63) - 1), claim())

    cache = folded(log)

    assert cache.partition_state(ORDERS).owner is not None
    record = cache.segment(SEGMENT.segment_id)
    assert record is not None
    assert record.metadata.state is STARTED


def test_dead_letter_when_its_deletion_is_under_way_then_is_marked() -> None:
    """Scenario 73."""
    log = log_of(claim(), step(SEGMENT, FINISHED), delete_started(), dead_lettered(SEGMENT))

    record = folded(log).segment(SEGMENT.segment_id)

    assert record is not None
    assert record.is_dead_lettered
    assert record.metadata.state is DELETE_STARTED


def test_dead_letter_when_the_segment_is_not_being_deleted_then_is_refused() -> None:
    log = log_of(step(SEGMENT, FINISHED), dead_lettered(SEGMENT))

    assert refusals(log) == {"unexpected_state": 1}


def test_claim_when_of_a_newer_epoch_then_owns_and_brings_its_lineage() -> None:
    newer = claim(writer(4), lineage=Lineage.of((0, 0), (4, 50)))

    state = folded(log_of(claim(writer(3)), newer)).partition_state(ORDERS)

    assert (state.owner, state.lineage) == (writer(4), newer.lineage)


def test_claim_when_of_an_older_epoch_then_is_refused() -> None:
    """R7: the last claim of the highest epoch owns."""
    log = log_of(claim(writer(4)), claim(writer(3)))

    assert folded(log).partition_state(ORDERS).owner == writer(4)
    assert refusals(log) == {"stale_epoch": 1}


def test_trim_when_by_the_owner_then_moves_offset_and_lineage() -> None:
    """Scenario 82: the lineage is stored before the broker cuts it."""
    lineage = Lineage.of((0, 0), (2, 70))

    log = log_of(claim(writer(2)), trim(100, by=writer(2), lineage=lineage))
    state = folded(log).partition_state(ORDERS)

    assert (state.trimmed_offset, state.lineage) == (100, lineage)


@pytest.mark.parametrize("maker", [trim, log_start])
def test_offset_when_it_moves_back_then_is_refused(maker: type) -> None:
    """Both are maxima."""
    log = log_of(claim(), maker(100), maker(99))

    assert refusals(log) == {"below_current": 1}


@pytest.mark.parametrize("maker", [trim, log_start])
def test_offset_when_moved_by_no_owner_then_is_refused(maker: type) -> None:
    """R7: without a claim nobody decides."""
    assert refusals(log_of(maker(100))) == {"not_owner": 1}


def test_policy_when_written_twice_then_the_last_holds() -> None:
    cache = folded(log_of(policy(PolicyState.ENABLING), policy(PolicyState.ACTIVE)))

    assert [found.state for found in topic_policies(cache)] == [PolicyState.ACTIVE]


def test_registration_when_repeated_then_the_brokers_time_of_the_last_counts() -> None:
    """R14: liveness is judged by broker time."""
    clock = ManualClock(now_ms=1_000)
    log = MemoryLog(clock)
    append(log, registration(1))
    clock.now_ms = 2_000
    append(log, registration(1, http_address="127.0.0.1:81"))

    (found,) = registrations(folded(log))

    assert (found.heartbeat_ms, found.process.http_address) == (2_000, "127.0.0.1:81")


def test_registration_when_tombstoned_then_is_gone() -> None:
    log = log_of(registration(1), registration(2))
    log.append(0, encode(registration(1)).key, None)

    assert len(registrations(folded(log))) == 1


def test_claim_when_tombstoned_then_still_owns() -> None:
    """R11: claims are kept for the partition's life."""
    owner = claim(writer(7))
    log = log_of(owner)
    log.append(0, encode(owner).key, None)

    assert folded(log).partition_state(ORDERS).owner == writer(7)
    assert refusals(log) == {"claim_removed": 1}


def test_segment_when_any_of_its_records_is_tombstoned_then_is_gone() -> None:
    """R11: compaction may have taken the others already."""
    events = life(SEGMENT)
    log = log_of(claim(), *events)
    log.append(0, encode(events[0]).key, None)

    cache = folded(log)

    assert cache.segment(SEGMENT.segment_id) is None
    assert cache.segments(ORDERS, states=list(SegmentState)) == []


@pytest.mark.parametrize("removed", range(5))
def test_retirement_when_it_ends_half_way_then_the_rest_revives_nothing(removed: int) -> None:
    """R11: refused records are removed first, then the others from the oldest on.

    No remaining record makes a segment that answers, or that a leader would delete again.
    """
    zombie = step(SEGMENT, FINISHED)
    story = life(SEGMENT)
    in_order_of_removal = [zombie, *story]
    left = set(map(id, in_order_of_removal[removed:]))
    events = [event for event in (*story, zombie) if id(event) in left]

    assert state_after(claim(), *events) in {None, DELETE_FINISHED}


def test_cluster_secret_when_set_and_removed_then_known_as_long_as_its_record_is_there() -> None:
    event = build.cluster_secret(2, previous=1)
    log = log_of(event)

    found = cluster_secret(folded(log))
    log.append(0, encode(event).key, None)

    assert found is not None
    assert (found.current, found.previous) == (event.current, event.previous)
    assert cluster_secret(folded(log)) is None
