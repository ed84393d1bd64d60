"""Which records a fold remembers, so that their owners can remove them later."""

from __future__ import annotations

import pytest

from rlmm.codec import encode
from rlmm.events.event import Event
from rlmm.record_keys import RecordKey, RecordKind, parse_record_key
from rlmm.topic.memory import MemoryLog
from rsm.segment.metadata import SegmentState
from tests.folding import append, folded, log_of, refusals
from tests.log_dir_builder import ManualClock
from tests.metadata_builder import (
    FINISHED,
    ORDERS,
    STARTED,
    anomaly_reported,
    claim,
    dead_lettered,
    gap,
    gaps,
    life,
    log_start,
    log_start_request,
    loss_accepted,
    offload_request,
    offload_segment_changed,
    read_lease,
    segment_metadata,
    step,
    trim,
    writer,
)

SEGMENT = segment_metadata()
ALL = 1 << 62
"""An offset of the metadata topic above all records."""


def kept(log: MemoryLog, kind: RecordKind) -> list[RecordKey]:
    return folded(log).superseded_keys(ORDERS, kind, ALL)


def key_of(event: Event) -> RecordKey:
    return parse_record_key(encode(event).key)


def without(log: MemoryLog, event: Event) -> MemoryLog:
    log.append(0, encode(event).key, None)
    return log


def event_ids(log: MemoryLog, *, accepted: bool) -> list[bytes]:
    entry = folded(log).segment_entry(SEGMENT.segment_id)
    return [] if entry is None else sorted(entry.event_ids(accepted=accepted))


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (claim(), RecordKind.CLAIM),
        (trim(5), RecordKind.TRIM),
        (log_start(5), RecordKind.LOG_START),
        (log_start_request(5), RecordKind.LOG_START_REQUEST),
        (gaps(gap(1, 5)), RecordKind.GAPS),
        (offload_request(5), RecordKind.OFFLOAD_REQUEST),
        (loss_accepted(3), RecordKind.LOSS_ACCEPTED),
        (read_lease(), RecordKind.READ_LEASE),
        (anomaly_reported(), RecordKind.ANOMALY),
        (offload_segment_changed(), RecordKind.OFFLOAD_SEGMENT),
    ],
)
def test_record_of_a_partition_when_folded_then_its_key_is_kept(
    event: Event, kind: RecordKind
) -> None:
    """R11: also of a refused record."""
    assert kept(log_of(event), kind) == [key_of(event)]


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (trim(5), RecordKind.TRIM),
        (log_start(5), RecordKind.LOG_START),
        (log_start_request(5), RecordKind.LOG_START_REQUEST),
        (gaps(gap(1, 5)), RecordKind.GAPS),
        (offload_request(5), RecordKind.OFFLOAD_REQUEST),
        (loss_accepted(3), RecordKind.LOSS_ACCEPTED),
        (read_lease(), RecordKind.READ_LEASE),
        (anomaly_reported(), RecordKind.ANOMALY),
        (offload_segment_changed(), RecordKind.OFFLOAD_SEGMENT),
    ],
)
def test_record_of_a_partition_when_tombstoned_then_its_key_is_forgotten(
    event: Event, kind: RecordKind
) -> None:
    assert kept(without(log_of(claim(), event), event), kind) == []


def test_records_of_a_segment_when_folded_then_accepted_and_refused_ones_are_kept_apart() -> None:
    steps = life(SEGMENT)[:3]
    dead_letter, late = dead_lettered(SEGMENT), step(SEGMENT, FINISHED)
    log = log_of(claim(), *steps, dead_letter, late)

    accepted = [*(event.event_id.bytes for event in steps), dead_letter.event_id.bytes]
    assert event_ids(log, accepted=True) == sorted(accepted)
    assert event_ids(log, accepted=False) == [late.event_id.bytes]


@pytest.mark.parametrize("events", [[], [step(SEGMENT, STARTED)]])
def test_dead_letter_when_refused_then_is_kept(events: list[Event]) -> None:
    dead_letter = dead_lettered(SEGMENT)

    assert event_ids(log_of(*events, dead_letter), accepted=False) == [dead_letter.event_id.bytes]


def test_segment_when_a_record_is_tombstoned_then_the_others_are_kept() -> None:
    """Their own tombstones may still follow."""
    started, finished = step(SEGMENT, STARTED), step(SEGMENT, FINISHED)
    log = without(log_of(started, finished), started)

    assert event_ids(log, accepted=True) == [finished.event_id.bytes]
    assert folded(log).segment(SEGMENT.segment_id) is None
    assert folded(without(log, finished)).segment_entry(SEGMENT.segment_id) is None


def test_tombstone_when_nothing_of_its_segment_is_known_then_changes_nothing() -> None:
    log = without(log_of(claim()), step(SEGMENT, STARTED))

    assert refusals(log) == {}
    assert folded(log).segment_entry(SEGMENT.segment_id) is None


@pytest.mark.parametrize("state", [STARTED, FINISHED])
def test_segment_when_it_begins_then_is_not_dead_lettered(state: SegmentState) -> None:
    log = log_of(step(SEGMENT, state))

    record = folded(log).segment(SEGMENT.segment_id)

    assert record is not None
    assert not record.is_dead_lettered


@pytest.mark.parametrize(
    ("started", "finished"),
    [
        (step(SEGMENT, STARTED), step(SEGMENT, FINISHED, copy_deadline_ms=1)),
        (step(SEGMENT, STARTED, copy_deadline_ms=1), step(SEGMENT, FINISHED)),
    ],
)
def test_copy_when_its_deadline_was_the_first_millisecond_then_is_too_late(
    started: Event, finished: Event
) -> None:
    """Only 0 means that there is no deadline."""
    clock = ManualClock(now_ms=1)
    log = MemoryLog(clock)
    append(log, started)
    clock.now_ms = 2
    append(log, finished)

    assert refusals(log) == {"too_late": 1}


def test_claim_when_of_the_same_epoch_then_owns() -> None:
    restarted = writer(0, incarnation=0xB2)

    assert folded(log_of(claim(), claim(restarted))).partition_state(ORDERS).owner == restarted
