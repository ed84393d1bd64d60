"""Folds a segment's record; rlmm/fold.py lists the rules. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rlmm.events.fold_state import FoldState, Refusal
from rlmm.events.segment_step import SegmentStep
from rlmm.positions import TopicRecord
from rlmm.record_keys import PARTITION_SUBJECT_BYTES, RecordKey
from rlmm.state.segment_entry import ACCEPTED, REFUSED, SegmentEntry, new_entry, with_record
from rsm.segment.metadata import SegmentState, Writer

STARTED = SegmentState.COPY_SEGMENT_STARTED
FINISHED = SegmentState.COPY_SEGMENT_FINISHED
DELETE_STARTED = SegmentState.DELETE_SEGMENT_STARTED
_LAST_MS = (1 << 63) - 1
_MAY_FOLLOW: Mapping[SegmentState, tuple[SegmentState | None, ...]] = {
    STARTED: (None,),
    FINISHED: (None, STARTED),
    DELETE_STARTED: (STARTED, FINISHED),
    SegmentState.DELETE_SEGMENT_FINISHED: (DELETE_STARTED,),
}
"""The states that a segment may be in before each state; None: no record was accepted."""


def fold_segment(state: FoldState, step: SegmentStep, record: TopicRecord) -> Refusal | None:
    """Set a segment's next state; of a refused record keep only the id."""
    (
        subject,
        event_id,
        wanted,
        _,
        _,
        base_offset,
        end_offset,
        size_bytes,
        has_transaction_index,
        epochs,
        copy_timeout_ms,
        deadline_ms,
        value,
    ) = step
    append_time_ms = record.append_time_ms
    before = state.segment_entry(subject)
    refusal = _segment_refusal(state, step, before, append_time_ms)
    if refusal:
        _note_refused(state, subject, before, event_id)
        return refusal
    if wanted is STARTED and copy_timeout_ms:
        deadline_ms = min(append_time_ms + copy_timeout_ms, _LAST_MS)
    if before and before.copy_deadline_ms > deadline_ms:
        deadline_ms = before.copy_deadline_ms
    entry = new_entry(
        (
            with_record(before, ACCEPTED, event_id),
            wanted,
            before.dead_lettered if before else False,
            base_offset,
            end_offset,
            size_bytes,
            has_transaction_index,
            append_time_ms,
            deadline_ms,
            record.partition,
            record.offset,
            epochs,
            value,
        )
    )
    state.put_segment(subject, entry)
    return None


def fold_dead_lettered(state: FoldState, key: RecordKey) -> Refusal | None:
    """Mark a failed deletion, given its record's key; the segment stays in its state."""
    subject, event_id = key.subject, key.event_id
    before = state.segment_entry(subject)
    if before is None or before.state is not DELETE_STARTED:
        _note_refused(state, subject, before, event_id)
        unknown = before is None or before.state is None
        return Refusal.UNKNOWN_SEGMENT if unknown else Refusal.UNEXPECTED_STATE
    records = with_record(before, ACCEPTED, event_id)
    state.put_segment(subject, before._replace(records=records, dead_lettered=True))
    return None


def erase_segment(state: FoldState, key: RecordKey) -> None:
    """Fold a tombstone of any of a segment's records."""
    before = state.segment_entry(key.subject)
    if before is None:
        return
    # Keep the keys of the remaining records, because their tombstones may still follow.
    records = before.without_record(key.event_id)
    state.put_segment(key.subject, SegmentEntry(records=records) if records else None)


def _segment_refusal(
    state: FoldState, step: SegmentStep, before: SegmentEntry | None, append_time_ms: int
) -> Refusal | None:
    current = before.state if before else None
    wanted = step.state
    if wanted is DELETE_STARTED and not _owns(state, step.subject, step.writer):
        return Refusal.NOT_OWNER
    if current not in _MAY_FOLLOW[wanted]:
        if current is None:
            return Refusal.UNKNOWN_SEGMENT
        return Refusal.STEP_BACK if current.value >= wanted.value else Refusal.SKIPPED_STATE
    if current is None and state.partition_deletion(step.subject[:PARTITION_SUBJECT_BYTES]):
        return Refusal.PARTITION_DELETED
    if wanted is DELETE_STARTED and step.expected_state is not current:
        return Refusal.UNEXPECTED_STATE
    if wanted is FINISHED:
        # The event has its own deadline, so that a fold without its STARTED refuses it too.
        if 0 < step.copy_deadline_ms < append_time_ms:
            return Refusal.TOO_LATE
        if before and 0 < before.copy_deadline_ms < append_time_ms:
            return Refusal.TOO_LATE
    return None


def _note_refused(
    state: FoldState, subject: bytes, before: SegmentEntry | None, event_id: bytes
) -> None:
    records = with_record(before, REFUSED, event_id)
    entry = before._replace(records=records) if before else SegmentEntry(records=records)
    state.put_segment(subject, entry)


def _owns(state: FoldState, subject: bytes, writer: Writer | None) -> bool:
    return state.partition_state(subject[:PARTITION_SUBJECT_BYTES]).owner == writer
