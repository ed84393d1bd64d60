"""Fences streams that other processes left open, before this manager streams the same records.

A fence records the start of the stream's deletion. From then on, the metadata refuses the stream's
COPY_SEGMENT_FINISHED (PIP-76 closes a segment before the next one begins). The expiry lanes delete
the stream's objects later.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from rlm.policy.leftovers import unfenced_streams
from rlm.policy.view import PartitionView
from rlm.tasks.context.deletion_start import start_deletion
from rlm.tasks.context.ports import Ports
from rlmm.spi import SegmentRecord
from rsm.segment.errors import FencedError
from rsm.segment.log_line import LogLine

_log = logging.getLogger(__name__)


class StreamFence:
    """Records the fences of led partitions. Not thread-safe."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def fence_open_streams(self, view: PartitionView) -> PartitionView:
        """Fence open streams, even while deletions are paused; return the view with the fences.

        Raises RetriableError if the metadata topic cannot be written.
        """
        found = unfenced_streams(view)
        if not found:
            return view
        fenced = {record: self._fence(view, record) for record in found}
        return replace(view, segments=tuple(fenced.get(record, record) for record in view.segments))

    def _fence(self, view: PartitionView, record: SegmentRecord) -> SegmentRecord:
        """Fence one stream; return its new record. Returns `record` if the fence is refused."""
        metadata = record.metadata
        fields = {
            "segment_id": metadata.segment_id,
            "base_offset": metadata.offsets.start_offset,
            "broker_id": metadata.writer.broker_id,
            "leader_epoch": metadata.writer.leader_epoch,
        }
        try:
            started = start_deletion(self._ports, metadata, view.writer)
        except FencedError as error:
            _log.info(LogLine("cannot fence a stream of another process", **fields, error=error))
            return record
        _log.info(LogLine("fenced a stream of another process", **fields))
        return replace(record, metadata=started)
