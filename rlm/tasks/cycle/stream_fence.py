"""Fences streams that other processes left open, before this manager streams the same records.

The start of the deletion is recorded: from then on the metadata refuses the end of the stream
(PIP-76: a segment is closed before the next one begins). The lanes delete its objects later.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from rlm.policy.leftovers import unfenced_streams
from rlm.policy.view import PartitionView
from rlm.tasks.context.ports import Ports
from rlmm.events.segment import SegmentEvent
from rlmm.spi import SegmentRecord
from rsm.segment.log_line import LogLine
from rsm.segment.metadata import SegmentState

_log = logging.getLogger(__name__)


class StreamFence:
    """Records the fences of led partitions. Not thread-safe."""

    def __init__(self, ports: Ports) -> None:
        self._metadata = ports.metadata
        self._clock = ports.clock
        self._new_id = ports.new_id

    def look(self, view: PartitionView) -> PartitionView:
        """Fence what is open, also while deletions are paused, and return the view after that.

        Raises RetriableError if the metadata topic cannot be written.
        """
        found = unfenced_streams(view)
        if not found:
            return view
        fenced = {record: self._fence(view, record) for record in found}
        return replace(view, segments=tuple(fenced.get(record, record) for record in view.segments))

    def _fence(self, view: PartitionView, record: SegmentRecord) -> SegmentRecord:
        """Return the record after the fence; the same one if the stream has ended meanwhile."""
        started = record.metadata.in_state(
            SegmentState.DELETE_SEGMENT_STARTED,
            event_timestamp_ms=self._clock.wall_ms(),
            writer=view.writer,
        )
        result = self._metadata.publish(
            SegmentEvent(
                event_id=self._new_id(), metadata=started, expected_state=record.metadata.state
            )
        )
        _log.info(
            LogLine(
                "fenced a stream of another process",
                segment_id=started.segment_id,
                base_offset=started.offsets.start_offset,
                broker_id=record.metadata.writer.broker_id,
                leader_epoch=record.metadata.writer.leader_epoch,
                accepted=result.accepted,
            )
        )
        return replace(record, metadata=started) if result.accepted else record
