"""Records what becomes of each offload segment (PIP-76), for people.

    Assigned recorded → the segment's own records and objects → Offloaded or Failed recorded

The account does not say what is stored. It selects the segments of an operator's deletion, and
their own records decide whether they are deleted. So only an assignment that cannot be recorded
ends an attempt: nothing is written yet. After a crash, the next claim of the partition completes
the account by the segments' own records.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from uuid import UUID

from rlm.source.log_source import LogPosition, OpenPart
from rlm.tasks.context.ports import Ports
from rlm.tasks.leadership.partition_lead import PartitionLead
from rlmm.events.offload_segment import OffloadSegmentChanged
from rlmm.state.offload_segments import (
    DriverProperty,
    OffloadPosition,
    OffloadSegmentRecord,
    OffloadSegmentStatus,
)
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import SegmentState, Writer

_log = logging.getLogger(__name__)


class OffloadAccount:
    """Writes the account of the offload segments of one manager.

    Thread-safe: one stream per partition at a time. Memory: one entry for each streamed partition.
    """

    def __init__(self, ports: Ports, driver_metadata: tuple[DriverProperty, ...] = ()) -> None:
        """`driver_metadata` locates the store of this manager."""
        self._metadata = ports.metadata
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._driver_metadata = driver_metadata
        self._completed: dict[TopicIdPartition, Writer] = {}

    def assign(
        self, lead: PartitionLead, segment_id: UUID, first: OpenPart
    ) -> OffloadSegmentRecord:
        """Record that a segment begins with this part, after what others left is completed.

        RetriableError if that fails.
        """
        tip = lead.topic_id_partition
        assigned = OffloadSegmentRecord(
            id=segment_id,
            status=OffloadSegmentStatus.ASSIGNED,
            writer=lead.writer,
            assigned_ms=self._clock.wall_ms(),
            begin=OffloadPosition(
                ledger_id=first.file_base_offset,
                entry_id=first.first_entry_id,
                offset=first.offsets.start_offset,
            ),
            segment_ids=(segment_id,),
            driver_metadata=self._driver_metadata,
        )
        is_new = self._completed.get(tip) != lead.writer
        if is_new and self._complete_earlier(tip, assigned.begin):
            self._completed[tip] = lead.writer
        self._publish(tip, assigned)
        return assigned

    def _complete_earlier(self, tip: TopicIdPartition, begin: OffloadPosition) -> bool:
        """End the accounts of ended segments; the next segment begins where the last one ended.

        Return whether no other segment is open.
        """
        are_ended = True
        for each in self._metadata.offload_segments(tip):
            if each.status is OffloadSegmentStatus.OFFLOADED:
                continue
            segment_id = RemoteLogSegmentId(topic_id_partition=tip, id=each.id)
            record = self._metadata.segment(segment_id)
            state = None if record is None else record.metadata.state
            if record is not None and state is SegmentState.COPY_SEGMENT_FINISHED:
                if record.metadata.offsets.end_offset == begin.offset:
                    self._publish(tip, self._stored(each, begin))
            elif state is not SegmentState.COPY_SEGMENT_STARTED:
                self._publish(tip, replace(each, status=OffloadSegmentStatus.FAILED))
            else:
                are_ended = False
        return are_ended

    def _stored(self, segment: OffloadSegmentRecord, end: OffloadPosition) -> OffloadSegmentRecord:
        return replace(
            segment,
            status=OffloadSegmentStatus.OFFLOADED,
            offloaded_ms=self._clock.wall_ms(),
            end=end,
        )

    def offloaded(
        self, tip: TopicIdPartition, assigned: OffloadSegmentRecord, end: LogPosition
    ) -> None:
        """Record that the segment is stored up to a position."""
        position = OffloadPosition(
            ledger_id=end.file_base_offset, entry_id=end.entry_id, offset=end.offset
        )
        self._note(tip, self._stored(assigned, position))

    def failed(self, tip: TopicIdPartition, assigned: OffloadSegmentRecord) -> None:
        """Record that the segment was given up."""
        self._note(tip, replace(assigned, status=OffloadSegmentStatus.FAILED))

    def _note(self, tip: TopicIdPartition, segment: OffloadSegmentRecord) -> None:
        try:
            self._publish(tip, segment)
        except TieredStorageError as error:
            self._completed.pop(tip, None)
            _log.info(
                LogLine(
                    "account of an offload segment is incomplete",
                    topic_partition=tip,
                    segment_id=segment.id,
                    error=error,
                )
            )

    def _publish(self, tip: TopicIdPartition, segment: OffloadSegmentRecord) -> None:
        event = OffloadSegmentChanged(
            event_id=self._new_id(), topic_id_partition=tip, segment=segment
        )
        result = self._metadata.publish(event)
        if not result.accepted:
            raise RetriableError(
                "the account of an offload segment was refused",
                segment_id=segment.id,
                reason=result.refusal,
            )
