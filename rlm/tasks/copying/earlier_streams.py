"""Lets a stream reuse what unfinished streams of the same records have sent.

    an unfinished stream found → its deletion started, which fences its end
    → the next segment's writer may reuse that stream's parts in this lineage

Two logs contain the same records up to the end of the last leader epoch that they have in common
(KIP-101). So nothing is reused beyond the end of the epoch in which a process wrote the unfinished
stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from rlm.policy.stream.reuse import reusable_streams
from rlm.tasks.context.deletion_start import fence_attempt
from rlm.tasks.context.ports import Ports
from rlm.tasks.leadership.partition_task import PartitionTask
from rlmm.events.offload_segment import offload_segments
from rlmm.events.pause import PausableTask, paused_tasks
from rsm.segment.epochs import Lineage
from rsm.segment.metadata import RemoteLogSegmentMetadata, SegmentState
from rsm.segment.ranges import OffsetRange
from rsm.spi import SegmentWriter

_UNFINISHED = (SegmentState.COPY_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_STARTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierStreams:
    """Represents fenced, unfinished streams whose parts the next segment may reuse.

    Their logs may differ from the lineage from `end_offset` onward; it is None if they cannot.
    `SegmentWriter.reuse` describes `reused` and `unused`.
    """

    segments: tuple[RemoteLogSegmentMetadata, ...]
    end_offset: int | None
    reused: Callable[[int], None]
    unused: Callable[[UUID], None]

    def offer_to(self, writer: SegmentWriter) -> None:
        """Let a new writer reuse what these streams have sent."""
        writer.reuse(self.segments, reused=self.reused, unused=self.unused)

    def limit(self, writer: SegmentWriter, appended: OffsetRange) -> None:
        """End the reuse before `appended` is written, if it ends above `end_offset`."""
        if self.end_offset is not None and appended.end_offset > self.end_offset:
            writer.end_reuse()


def earlier_streams(
    ports: Ports,
    task: PartitionTask,
    begin_offset: int,
    lineage: Lineage,
    reused: Callable[[int], None],
) -> EarlierStreams | None:
    """Fence and return the unfinished streams that begin at `begin_offset`.

    Returns None if the store cannot reuse them. Also returns None while deletions are paused,
    because only a deletion discards the remains of failed attempts. Raises RetriableError if the
    metadata topic cannot be read or written.
    """
    if not ports.storage.can_reuse_unfinished:
        return None
    if PausableTask.DELETE in paused_tasks(ports.metadata, task.topic_id_partition.topic_id):
        return None
    state, writer = task.streaming, task.lead.writer
    found = reusable_streams(
        ports.metadata.list_remote_log_segments(task.topic_id_partition, states=_UNFINISHED),
        begin_offset=begin_offset,
        incarnation=writer.incarnation,
        broker_ms=ports.metadata.broker_time_ms(),
        spent=state.spent(),
    )
    segments, ends = [], []
    # The account names the stream's writer; the segment's record names the writer of the fence.
    assigned = offload_segments(ports.metadata, task.topic_id_partition) if found else ()
    epochs = {each.id: each.writer.leader_epoch for each in assigned}
    for metadata in (record.metadata for record in found):
        epoch = epochs.get(metadata.segment_id.id)
        if epoch is None or lineage.start_offset(epoch) is None:
            state.spend(metadata.segment_id.id)
            continue
        is_fenced = metadata.state is SegmentState.DELETE_SEGMENT_STARTED
        fenced = metadata if is_fenced else fence_attempt(ports, metadata, writer)
        if fenced is not None:
            segments.append(fenced)
            ends.append(lineage.end_offset(epoch))
    return EarlierStreams(
        segments=tuple(segments),
        end_offset=min((each for each in ends if each is not None), default=None),
        reused=reused,
        unused=state.spend,
    )
