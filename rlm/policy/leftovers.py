"""Finds segments to delete or purge: unfinished, expired or outside of the lineage. Pure.

An unfinished copy is deleted at once if its process served this broker: that process is gone, or it
is this manager and has given up. A stream of an earlier leader is deleted at once, too, because
this leader streams the same records. Any other copy is deleted after its deadline, when its own
leader can no longer finish it. A deletion that has started is continued. A segment's records are
purged after its deletion, once no late record of the segment can arrive.
"""

from __future__ import annotations

from rlm.policy.losses import contradicted
from rlm.policy.view import PartitionView
from rlmm.events.policy import PolicyState
from rlmm.spi import SegmentRecord
from rsm.segment.metadata import SegmentState


def dangling_copies(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """Return abandoned copies, including streams that an earlier leader could still finish."""
    return tuple(
        record
        for record in view.segments
        if record.metadata.state is SegmentState.COPY_SEGMENT_STARTED
        and record.metadata.segment_id.id not in view.in_flight
        and _is_abandoned(view, record)
    )


def unfenced_streams(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """Return abandoned streams that another process could still finish."""
    if not view.is_owned or view.newer is not None:
        return ()
    return tuple(
        record
        for record in dangling_copies(view)
        if record.metadata.is_open and record.metadata.writer.incarnation != view.writer.incarnation
    )


def started_deletions(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """Return the started deletions to continue; omits dead letters."""
    return tuple(
        record
        for record in view.segments
        if record.metadata.state is SegmentState.DELETE_SEGMENT_STARTED
        and not record.is_dead_lettered
    )


def removable_after_disabling(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """Return the finished segments that end above the log start if tiering was disabled.

    Returns none unless the remote data of the disabled topic is to be deleted, and none until the
    log start has reached the local start: then all readable records are local.
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
    """Return finished segments wholly below the log start, oldest first.

    Returns none while the local log starts lower: that log is trimmed first, so that no reader
    finds a start without data. A segment that an election cut off has not expired. It is kept for
    the grace after it was stored. The grace does not apply to records past the retention, or if
    tiering was disabled with the deletion of remote data.
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
    """Return finished segments that have been outside of the lineage for longer than the grace.

    Considers segments wholly outside of the lineage, if the lineage shows which epoch wrote their
    offsets. The grace begins once both the segment and a readable segment of a later epoch are
    stored. The history of a leader epoch is fixed at its start, so an election had cut off the
    segment by then.
    """
    if view.is_diverged or view.conflict_offset is not None:
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
    """Return each stored segment's last epoch in the lineage, and when the segment was stored."""
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
    """Return whether a cut-off segment below the log start may be deleted."""
    if view.policy.state is PolicyState.DISABLED and view.policy.delete_remote:
        return True
    age_ms = view.moment.retention_ms - record.metadata.max_timestamp_ms
    is_past_retention = 0 <= view.policy.retention_ms < age_ms
    grace_ends_ms = record.changed_ms + view.limits.unreferenced_grace_ms
    return is_past_retention or view.moment.broker_ms > grace_ends_ms


def has_never_finished(record: SegmentRecord) -> bool:
    """Return whether a copy never finished: until its deadline, its writer may write objects."""
    return any(stored.length_bytes is None for stored in record.metadata.objects)


def purgeable(view: PartitionView) -> tuple[SegmentRecord, ...]:
    """Return deleted segments whose deadline and grace have passed, by the brokers' clock."""
    return tuple(
        record
        for record in view.segments
        if record.metadata.state is SegmentState.DELETE_SEGMENT_FINISHED
        and view.moment.broker_ms
        > max(record.copy_deadline_ms, record.changed_ms) + view.limits.orphan_grace_ms
    )


def _is_abandoned(view: PartitionView, record: SegmentRecord) -> bool:
    writer = record.metadata.writer
    if writer.broker_id == view.writer.broker_id:
        return True
    if record.metadata.is_open and writer.leader_epoch < view.writer.leader_epoch:
        return True
    deadline_ms = record.copy_deadline_ms or record.changed_ms + view.limits.orphan_grace_ms
    return view.moment.broker_ms > deadline_ms
