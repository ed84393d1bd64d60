"""Records what becomes of each offload segment (PIP-76), for people.

    Assigned recorded → the segment's own records and objects → Offloaded or Failed recorded

The account does not say what is stored. It selects the segments of an operator's deletion, and
their own records decide whether they are deleted. So only an assignment that cannot be recorded
ends an attempt: nothing is written yet. What a crash or an error leaves assigned, the next cycle
completes by the segments' own records.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
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
from rsm.segment.epochs import Lineage
from rsm.segment.errors import RetriableError, TieredStorageError
from rsm.segment.ids import RemoteLogSegmentId, TopicIdPartition
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import SegmentState, Writer

_log = logging.getLogger(__name__)


class OffloadAccount:
    """Writes the account of the offload segments of one manager.

    Thread-safe: one stream per partition at a time. Memory: one entry for each led partition.
    """

    def __init__(self, ports: Ports, driver_metadata: tuple[DriverProperty, ...] = ()) -> None:
        """`driver_metadata` locates the store of this manager."""
        self._metadata = ports.metadata
        self._source = ports.source
        self._clock = ports.clock
        self._new_id = ports.new_id
        self._driver_metadata = driver_metadata
        self._completed: dict[TopicIdPartition, Writer] = {}

    def assign(
        self, lead: PartitionLead, lineage: Lineage, segment_id: UUID, first: OpenPart
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
        self.complete(lead, lineage, lambda: frozenset({segment_id}))
        self._publish(tip, assigned)
        return assigned

    def complete(
        self, lead: PartitionLead, lineage: Lineage, in_flight: Callable[[], frozenset[UUID]]
    ) -> None:
        """End the accounts of ended segments, once for each claim, and after a lost record.

        `in_flight` returns the segments that this process is writing. Raises RetriableError if the
        metadata topic cannot be read or written; the next call continues.
        """
        tip = lead.topic_id_partition
        if self._completed.get(tip) == lead.writer:
            return
        accounts = self._metadata.offload_segments(tip)
        running = in_flight()  # read later: a segment that has ended since has its last record
        ended = [self._is_ended(tip, each, lineage) for each in accounts if each.id not in running]
        if all(ended):
            self._completed[tip] = lead.writer

    def _is_ended(
        self, tip: TopicIdPartition, account: OffloadSegmentRecord, lineage: Lineage
    ) -> bool:
        """End the account if its segment has ended; return whether it has."""
        if account.status is OffloadSegmentStatus.OFFLOADED:
            return True
        record = self._metadata.segment(RemoteLogSegmentId(topic_id_partition=tip, id=account.id))
        state = None if record is None else record.metadata.state
        if record is not None and state is SegmentState.COPY_SEGMENT_FINISHED:
            end = self._end_position(tip, record.metadata.offsets.end_offset, lineage)
            if end is not None:
                self._publish(tip, self._stored(account, end))
        elif state is SegmentState.COPY_SEGMENT_STARTED:
            return False
        elif account.status is OffloadSegmentStatus.ASSIGNED:
            self._publish(tip, replace(account, status=OffloadSegmentStatus.FAILED))
        return True

    def _end_position(
        self, tip: TopicIdPartition, end_offset: int, lineage: Lineage
    ) -> OffloadPosition | None:
        """Return the position after the last batch; None if the log cannot show it.

        The batch may be trimmed, or cut off by an election. That must not stop the next stream.
        """
        last = LogPosition(offset=end_offset - 1)
        try:
            with self._source.open_part(tip, last, end_offset, lineage, max_bytes=1) as part:
                found = part.following
        except TieredStorageError:
            return None
        return _position(found) if found.offset == end_offset else None

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
        self._note(tip, self._stored(assigned, _position(end)))

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
                    "cannot record the end of an offload segment, the next cycle does",
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


def _position(end: LogPosition) -> OffloadPosition:
    return OffloadPosition(ledger_id=end.file_base_offset, entry_id=end.entry_id, offset=end.offset)
