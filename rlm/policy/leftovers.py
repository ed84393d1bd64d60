"""What crashes, failed deletions and finished stories leave behind, and when each may be cleared.

A copy that did not finish is deleted at once if its process was beside this broker (it is gone, or
it is us and has given up), else after its deadline, when its own leader can no longer finish it. A
deletion that was begun is finished. A segment whose deletion has finished is forgotten when no
late record of it can come any more.
"""

from __future__ import annotations

from rlm.policy.losses import contradicted
from rlm.policy.view import PartitionView
from rlmm.events.values import PolicyState
from rlmm.spi import SegmentRecord
from rsm.segment.metadata import SegmentState


def dangling_copies(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """Copies that nobody will finish."""
    return tuple(
        record
        for record in view.segments
        if record.metadata.state is SegmentState.COPY_SEGMENT_STARTED
        and record.metadata.segment_id.id not in view.in_flight
        and _abandoned(view, record)
    )


def started_deletions(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """Deletions to carry on with; not those that a repair job has been given."""
    return tuple(
        record
        for record in view.segments
        if record.metadata.state is SegmentState.DELETE_SEGMENT_STARTED and not record.dead_lettered
    )


def removable_after_disabling(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """All finished segments, where tiering was disabled with deletion of what is remote.

    Not before the log start has reached the local start: from there on all of it is local.
    """
    policy, log_start = view.policy, view.state.log_start_offset
    if policy.state is not PolicyState.DISABLED or not policy.delete_remote:
        return ()
    if log_start is None or log_start < view.local_start_offset:
        return ()
    return tuple(
        record
        for record in view.segments
        if record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
        and record.metadata.offsets.end_offset > log_start
    )


def below_log_start(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """Finished segments wholly below the log start, oldest first.

    None of them while the local log still starts lower: it is moved first, so that no reader finds
    a start whose data is gone. What an election has cut off is not what has expired: it stays for
    the grace after it was stored, unless its own records are past the retention.
    """
    log_start = view.state.log_start_offset
    if log_start is None or view.local_start_offset < log_start:
        return ()
    found = tuple(
        record
        for record in view.segments
        if record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
        and record.metadata.offsets.end_offset <= log_start
    )
    if not found:
        return ()
    segments = (record.metadata for record in found)
    cut = {each.segment_id for _, each in contradicted(view.lineage, view.stored, segments)}
    return tuple(
        record
        for record in found
        if record.metadata.segment_id not in cut or _is_done_with(view, record)
    )


def unreferenced(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """Finished segments of a history that an election cut off longer than the grace ago.

    Wholly out of the lineage, where that says which epoch wrote their offsets. Since when is told
    by what is stored of it: a leader epoch's past is fixed once it has begun, so what it does not
    refer to has been cut off since before the first segment of it, or of a later one, was stored.
    """
    if view.diverged or view.conflict_offset is not None:
        return ()
    references = _references(view)
    readable = {part.metadata.segment_id for part in view.stored}
    known_from = next((e.start_offset for e in view.lineage.entries), None)
    return tuple(
        record
        for record in view.segments
        if record.metadata.state is SegmentState.COPY_SEGMENT_FINISHED
        and record.metadata.segment_id not in readable
        and known_from is not None
        and known_from <= record.metadata.segment_leader_epochs.entries[0].start_offset
        and _is_past_grace(view, record, references)
    )


def _references(view: PartitionView) -> tuple[tuple[int, int], ...]:
    """(the last epoch read from it, when it was stored) of each segment in the lineage."""
    stored_ms = {record.metadata.segment_id: record.changed_ms for record in view.segments}
    found = (
        (view.lineage.epoch_for_offset(part.offsets.last_offset), part.metadata.segment_id)
        for part in view.stored
    )
    return tuple((epoch, stored_ms[key]) for epoch, key in found if epoch is not None)


def _is_past_grace(
    view: PartitionView, record: SegmentRecord, references: tuple[tuple[int, int], ...]
) -> bool:
    last_epoch = record.metadata.segment_leader_epochs.entries[-1].epoch
    since_ms = min((ms for epoch, ms in references if epoch > last_epoch), default=None)
    if since_ms is None:
        return False
    grace_ms = view.limits.unreferenced_grace_ms
    return view.moment.broker_ms > max(since_ms, record.changed_ms) + grace_ms


def _is_done_with(view: PartitionView, record: SegmentRecord) -> bool:
    """Whether a segment that was cut off, and lies below the log start, may go."""
    if view.policy.state is PolicyState.DISABLED and view.policy.delete_remote:
        return True
    age_ms = view.moment.retention_ms - record.metadata.max_timestamp_ms
    is_past_retention = 0 <= view.policy.retention_ms < age_ms
    grace_ends_ms = record.changed_ms + view.limits.unreferenced_grace_ms
    return is_past_retention or view.moment.broker_ms > grace_ends_ms


def never_finished(record: SegmentRecord) -> bool:
    """Whether a segment's copy did not end: its writer may be at it until its deadline."""
    return any(stored.length_bytes is None for stored in record.metadata.objects)


def purgeable(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """Deleted segments of which no late record can come: past deadline and grace, broker time."""
    return tuple(
        record
        for record in view.segments
        if record.metadata.state is SegmentState.DELETE_SEGMENT_FINISHED
        and view.moment.broker_ms
        > max(record.copy_deadline_ms, record.changed_ms) + view.limits.orphan_grace_ms
    )


def _abandoned(view: PartitionView, record: SegmentRecord) -> bool:
    if record.metadata.writer.broker_id == view.writer.broker_id:
        return True
    deadline_ms = record.copy_deadline_ms or record.changed_ms + view.limits.orphan_grace_ms
    return view.moment.broker_ms > deadline_ms
